//! [`Tracer`]: the ways of single frames through the stages, in text.
//!
//! ```text
//! frame 1: in eth0, 98 bytes
//!   before  02:…:01 > 02:…:02  IPv4 10.0.0.1 > 192.0.2.9  protocol 1  hops 64
//!   after   02:…:03 > 02:…:04  IPv4 10.0.0.1 > 192.0.2.9  protocol 1  hops 63
//!   out eth1 (CPU)
//! ```

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::header::{ETHERNET, IPV4, IPV6, TYPE_IPV4, TYPE_IPV6, ipv4_addresses, ipv6_addresses, network};
use crate::{Chunk, Mac, Memory, PortId, Verdict};

/// Tells the ways of the first frames.
#[derive(Debug)]
pub(crate) struct Tracer {
    left: u64,
    seen: u64,
    /// What was told of frames that are under way, by the number of their buffer.
    before: HashMap<u32, String>,
}

impl Tracer {
    /// Tells the ways of this number of frames.
    pub(crate) fn new(frames: u64) -> Self {
        Self { left: frames, seen: 0, before: HashMap::new() }
    }

    /// A chunk was received.
    #[inline]
    pub(crate) fn received(&mut self, chunk: &Chunk, memory: &Memory, port: &str) {
        if self.left > 0 {
            self.note(chunk, memory, port);
        }
    }

    #[cold]
    fn note(&mut self, chunk: &Chunk, memory: &Memory, port: &str) {
        for frame in chunk.frames() {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            self.seen += 1;
            let bytes = memory.bytes(frame);
            let text =
                format!("frame {}: in {port}, {} bytes\n  before  {}", self.seen, bytes.len(), told(bytes));
            self.before.insert(frame.buffer(), text);
        }
    }

    /// A chunk is decided. Prints the ways of its frames to stderr.
    #[inline]
    pub(crate) fn decided<'p>(&mut self, chunk: &Chunk, memory: &Memory, port: impl Fn(PortId) -> &'p str) {
        if !self.before.is_empty() {
            self.tell(chunk, memory, port);
        }
    }

    #[cold]
    fn tell<'p>(&mut self, chunk: &Chunk, memory: &Memory, port: impl Fn(PortId) -> &'p str) {
        for (frame, verdict) in chunk.frames().iter().zip(chunk.verdicts()) {
            let Some(mut text) = self.before.remove(&frame.buffer()) else { continue };
            let by = if chunk.is_by_gpu() { "GPU" } else { "CPU" };
            // Writing to a string does not fail.
            let _ = match *verdict {
                Verdict::Out(to) => {
                    write!(text, "\n  after   {}\n  out {} ({by})", told(memory.bytes(frame)), port(to))
                }
                Verdict::Drop(reason) => write!(text, "\n  dropped: {}", reason.name()),
                Verdict::Kernel => write!(text, "\n  to the operating system"),
                Verdict::Controller => write!(text, "\n  to controllers"),
                Verdict::Undecided => write!(text, "\n  dropped: undecided"),
            };
            for (to, made) in chunk.made.iter().filter(|_| matches!(verdict, Verdict::Drop(_))) {
                let _ = write!(text, "\n  made    {}, out {}", told(memory.bytes(made)), port(*to));
            }
            eprintln!("{text}");
        }
    }
}

/// The headers of a frame in a line.
fn told(frame: &[u8]) -> String {
    let (kind, at) = match network(frame) {
        Ok(found) => found,
        Err(_) => return "no whole Ethernet header".into(),
    };
    let mac = |at: usize| {
        let mut mac = [0; 6];
        mac.copy_from_slice(&frame[at..at + 6]);
        Mac(mac)
    };
    let mut text = format!("{} > {}", mac(6), mac(0));
    if at > ETHERNET {
        let _ = write!(text, "  {} VLAN tags", (at - ETHERNET) / 4);
    }
    let packet = &frame[at..];
    let _ = match kind {
        TYPE_IPV4 if packet.len() >= IPV4 => {
            let (from, to) = ipv4_addresses(packet);
            write!(text, "  IPv4 {from} > {to}  protocol {}  hops {}", packet[9], packet[8])
        }
        TYPE_IPV6 if packet.len() >= IPV6 => {
            let (from, to) = ipv6_addresses(packet);
            write!(text, "  IPv6 {from} > {to}  protocol {}  hops {}", packet[6], packet[7])
        }
        kind => write!(text, "  EtherType {kind:#06x}"),
    };
    text
}
