//! [`Socket`]: a netlink socket that receives into one buffer.

use std::io;
use std::time::Duration;

use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket as Netlink, SocketAddr};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use rustix::net::{RecvFlags, recvfrom};

use crate::error::Error;

/// The multicast groups, as bits of their number less one: links 1, neighbours 3, IPv4 addresses 5, routes 7
/// and rules 8, IPv6 addresses 9, routes 11 and rules 19, next-hop objects 32.
const GROUPS: u32 = 1 | 1 << 2 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 18 | 1 << 31;

/// A datagram of the kernel is at most this long: a dump's is 32 KiB, a route's with its hops 64 KiB.
const DATAGRAM: usize = 256 << 10;

/// A netlink socket that receives into one buffer.
#[derive(Debug)]
pub(super) struct Socket {
    inner: Netlink,
    buffer: Vec<u8>,
}

/// What a call of [`Socket::receive`] gave.
#[derive(Debug)]
pub(super) enum Received<'a> {
    Datagram(&'a [u8]),
    /// None is there now.
    Nothing,
    /// The kernel dropped datagrams.
    Overrun,
}

impl Socket {
    /// Opens a socket for requests.
    pub(super) fn for_requests() -> Result<Self, Error> {
        Self::open(0, 1 << 20)
    }

    /// Opens a socket that receives all changes.
    pub(super) fn for_events(receive_buffer: usize) -> Result<Self, Error> {
        Self::open(GROUPS, receive_buffer)
    }

    fn open(groups: u32, receive_buffer: usize) -> Result<Self, Error> {
        let mut inner = Netlink::new(NETLINK_ROUTE).map_err(failed("open a socket"))?;
        // The kernel takes twice the number, and at least its own least.
        let half = receive_buffer / 2;
        if set_socket_recv_buffer_size_force(&inner, half).is_err() {
            let limit = "net.core.rmem_max";
            tracing::debug!(limit, "the receive buffer is limited: CAP_NET_ADMIN would lift that");
            set_socket_recv_buffer_size(&inner, half)
                .map_err(|error| failed("set the receive buffer")(error.into()))?;
        }
        // Dumps without routes that are only cached. Kernels before 4.20 do without.
        let _ = inner.set_netlink_get_strict_chk(true);
        inner.bind(&SocketAddr::new(0, groups)).map_err(failed("bind"))?;
        inner.set_non_blocking(true).map_err(failed("set non-blocking"))?;
        Ok(Self { inner, buffer: vec![0; DATAGRAM] })
    }

    /// Sends a request.
    pub(super) fn send(&self, request: &[u8]) -> Result<(), Error> {
        self.inner.send(request, 0).map(drop).map_err(failed("send a request"))
    }

    /// Takes a datagram of the kernel.
    pub(super) fn receive(&mut self) -> Result<Received<'_>, Error> {
        loop {
            let received = recvfrom(&self.inner, self.buffer.as_mut_slice(), RecvFlags::TRUNC);
            match received {
                Ok((_, length, from)) => {
                    let sender = from.and_then(|from| SocketAddrNetlink::try_from(from).ok());
                    // Other processes may send to this socket, too.
                    if sender.is_some_and(|sender| sender.pid() != 0) {
                        continue;
                    }
                    // The rest of a datagram that is too long is lost.
                    return Ok(match self.buffer.get(..length) {
                        Some(datagram) => Received::Datagram(datagram),
                        None => Received::Overrun,
                    });
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(Received::Nothing),
                Err(rustix::io::Errno::NOBUFS) => return Ok(Received::Overrun),
                Err(error) => return Err(failed("receive")(error.into())),
            }
        }
    }

    /// Throws away what is there.
    pub(super) fn discard(&mut self) -> Result<(), Error> {
        while let Received::Datagram(_) = self.receive()? {}
        Ok(())
    }

    /// Waits until a datagram is there, at most as long as `timeout`.
    pub(super) fn wait(&self, timeout: Duration) -> Result<(), Error> {
        let timeout = Timespec::try_from(timeout).unwrap_or_default();
        match poll(&mut [PollFd::new(&self.inner, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(failed("wait")(error.into())),
        }
    }
}

/// Makes the error of an action.
fn failed(action: &'static str) -> impl Fn(io::Error) -> Error {
    move |error| Error::Netlink { action, error }
}
