//! [`Resolver`]: asks the kernel to find the hardware addresses of neighbours.

use std::net::IpAddr;

use super::socket::Socket;
use crate::error::Error;
use crate::netlink::resolve_request;

/// Asks the kernel to find the hardware addresses of neighbours, as if it had a packet for them. A feed of
/// [`follow`](super::follow) then tells what it found.
///
/// Forwarders need this whose packets the kernel doesn't see. The kernel asks three times, a second apart by
/// default, and then says that the neighbour failed. It also checks a neighbour that it knows and has not
/// heard of for a while.
#[derive(Debug)]
pub struct Resolver(Socket);

impl Resolver {
    /// Opens a socket in the network namespace of the calling thread.
    pub fn open() -> Result<Self, Error> {
        Socket::for_requests().map(Self)
    }

    /// Asks for a neighbour on the link of an interface. Does not wait. Needs `CAP_NET_ADMIN`.
    pub fn ask(&mut self, interface: u32, address: IpAddr) -> Result<(), Error> {
        // The kernel answers errors alone: that an interface is gone, that its table of neighbours is full,
        // or that this is not allowed. The first two pass, so nothing is done about them.
        self.0.send(&resolve_request(interface, address))?;
        self.0.discard()
    }
}
