//! Errors of ICMP to senders whose packets can't go into a tunnel, and events for the operator.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Instant;

use wirespeed_esp::{Fault, Sa};

use super::super::ip::icmp;
use super::Esp;
use crate::{Chunk, Memory, narrow};

impl Esp<'_> {
    /// Counts and tells that the other end of a tunnel sends from another place.
    #[cold]
    pub(super) fn tell_moved(&mut self, sa: &Sa) {
        self.counts.moved += 1;
        if let Some((address, port)) = sa.seen()
            && self.events.take(Instant::now())
        {
            let (spi, peer) = (sa.spi(), sa.tunnel().0);
            tracing::warn!(
                "association {spi:#x}: packets of {peer} come from {address}, port {port}, now: \
                 address translation changed"
            );
        }
    }

    /// Tells the sender of a packet that it can't go into the tunnel: it is too large, or its hops are spent.
    #[cold]
    pub(super) fn tell(
        &mut self,
        chunk: &mut Chunk,
        memory: &mut Memory,
        at: usize,
        start: usize,
        sa: &Sa,
        fault: Fault,
    ) {
        /// The smallest link of IPv6.
        const LEAST_V6: usize = 1280;
        let frame = memory.bytes(&chunk.frames()[at]);
        let (link, packet) = frame.split_at(start);
        let is_v4 = packet[0] >> 4 == 4;
        let most = if is_v4 { sa.most_inner() } else { sa.most_inner().max(LEAST_V6) };
        let fault = match fault {
            Fault::Expired => icmp::Fault::Expired,
            Fault::TooBig => icmp::Fault::TooBig(narrow::u16(most)),
            _ => return,
        };
        let port = chunk.port();
        let answer = if is_v4 {
            let own: Option<Ipv4Addr> = self.own.find(port, |own| own.v4);
            own.filter(|_| icmp::may_answer_v4(packet)).map(|own| icmp::error_v4(packet, fault, own))
        } else {
            let own: Option<Ipv6Addr> = self.own.find(port, |own| own.v6);
            own.filter(|_| icmp::may_answer_v6(packet, fault)).map(|own| icmp::error_v6(packet, fault, own))
        };
        let Some(answer) = answer else { return };
        let mut link = link.to_vec();
        link[..12].rotate_left(6);
        // A buffer that is taken and not sent would be lost.
        let is_allowed = self.limit.take(Instant::now());
        let made = is_allowed.then(|| memory.copy_of(&[&link[..], &answer].concat())).flatten();
        match made {
            Some(made) => {
                chunk.send(port, made);
                self.counts.errors_sent += 1;
            }
            None => self.counts.errors_held += 1,
        }
    }
}
