//! Traces from captures: the destination address of each packet.

use std::io::Read;

use super::addresses::Trace;
use super::error::TraceError;
use super::packet::Link;
use super::packets::{PacketError, Packets};
use crate::address::Address;

/// Reads the destinations of a capture. If the capture is truncated or broken after its header, the part
/// before that is taken, and [`Trace::damage`] says so.
pub fn from_capture<A: Address>(source: impl Read, name: &str) -> Result<Trace<A>, TraceError> {
    let mut packets = Packets::new(source);
    let mut trace = Trace::default();
    loop {
        match packets.next() {
            Ok(None) => break,
            Ok(Some(packet)) => match Link::of(packet.link).destination(packet.data) {
                Some(address) => trace.take(address),
                None => trace.not_ip += 1,
            },
            Err(PacketError::Io(error)) => return Err(TraceError::io(name, error)),
            Err(PacketError::Bad { offset, reason }) => {
                let seen_any = !trace.keys.is_empty() || trace.other_family + trace.not_ip > 0;
                if !seen_any {
                    return Err(TraceError::BadCapture { name: name.to_owned(), offset, reason });
                }
                trace.damage =
                    Some(format!("{name}: {offset} bytes in, {reason}; nothing after that was read"));
                break;
            }
        }
    }
    trace.checked(name)
}

#[cfg(test)]
mod tests;
