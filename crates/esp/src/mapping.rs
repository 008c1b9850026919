//! [`Mapping`]: the address and the port that the other end of a tunnel in UDP sends from.
//!
//! Address translation between both ends may change them. A new one is learned from a packet that is
//! authentic and has a higher sequence number than all before it (RFC 7296, 2.23), so neither from a copy of
//! a packet, nor from one that comes late. It is counted. Packets go there only for an association with
//! [`nat_follow`](crate::SaConfig::nat_follow): one who can hold the newest packet back, and sends it on from
//! elsewhere, gets what goes through the tunnel until the next packet comes. He reads nothing of it.

use std::net::IpAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;

/// A tunnel in UDP as its associations say: the addresses and ports here and there.
pub(crate) type Ends = [(IpAddr, u16); 2];

/// Where the other end of a tunnel is seen. Its associations share it.
#[derive(Debug)]
pub(crate) struct Mapping(ArcSwap<(IpAddr, u16)>);

impl Mapping {
    /// The other end is where its associations say.
    pub(crate) fn new([_, there]: Ends) -> Self {
        Self(ArcSwap::from_pointee(there))
    }

    /// The address and the port that it was seen at last.
    pub(crate) fn seen(&self) -> (IpAddr, u16) {
        **self.0.load()
    }

    /// Notes where the newest packet is from, and tells whether that is another place than before.
    pub(crate) fn see(&self, from: (IpAddr, u16)) -> bool {
        let is_other = self.seen() != from;
        if is_other {
            self.0.store(Arc::new(from));
        }
        is_other
    }
}
