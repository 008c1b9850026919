//! Traces from captures, pcap and pcapng: the destination address of each packet.
//!
//! A capture is parsed in a window that slides over the source, so it may have any length. A block may have
//! up to 16 MiB, the most that any tool writes. Timestamps in micro- and nanoseconds, both byte orders,
//! several interfaces and sections are supported. pcap records come from the `pcap-file` crate, without its
//! check, which refuses a snapshot that is shorter than the packet. pcapng blocks are parsed here: the crate
//! demands an end of option lists that some tools don't write, and destinations need no options.

use std::io::{self, Read};

use pcap_file::PcapError;
use pcap_file::pcap::PcapParser;

use super::error::TraceError;
use super::packet::Link;
use super::read::{SECTION, Trace};
use crate::address::Address;

/// The longest record or block.
const LONGEST: usize = 16 << 20;

/// Reads the destinations of a capture. If the capture is truncated or broken after its header, the part
/// before that is taken, and [`Trace::damage`] says so.
pub fn from_capture<A: Address>(source: impl Read, name: &str) -> Result<Trace<A>, TraceError> {
    let mut window = Window::new(source);
    let mut trace = Trace::default();
    while window.bytes().len() < 4 && window.fill().map_err(|error| TraceError::io(name, error))? > 0 {}
    let result = match window.bytes().first_chunk() {
        Some(&magic) if u32::from_be_bytes(magic) == SECTION => pcapng(&mut window, &mut trace),
        _ => pcap(&mut window, &mut trace),
    };
    let seen_any = !trace.keys.is_empty() || trace.other_family + trace.not_ip > 0;
    match result {
        Ok(()) => {}
        Err(Fault::Io(error)) => return Err(TraceError::io(name, error)),
        Err(Fault::Bad(reason)) if !seen_any => {
            return Err(TraceError::BadCapture { name: name.to_owned(), offset: window.offset, reason });
        }
        Err(Fault::Bad(reason)) => {
            trace.damage =
                Some(format!("{name}: {} bytes in, {reason}; nothing after that was read", window.offset));
        }
    }
    trace.checked(name)
}

/// The reason why reading stops.
enum Fault {
    Io(io::Error),
    Bad(String),
}

impl Fault {
    fn bad(reason: &str) -> Self {
        Self::Bad(reason.to_owned())
    }
}

fn pcap<A: Address>(window: &mut Window<impl Read>, trace: &mut Trace<A>) -> Result<(), Fault> {
    let parser =
        window.parse(|bytes| PcapParser::new(bytes).map(|(rest, parser)| (bytes.len() - rest.len(), parser)));
    let Some(parser) = parser? else { return Err(Fault::bad("it is empty")) };
    let link = Link::of(u32::from(parser.header().datalink));
    let mut packet = |bytes: &[u8]| {
        let (rest, packet) = parser.next_raw_packet(bytes)?;
        match link.destination(&packet.data) {
            Some(address) => trace.take(address),
            None => trace.not_ip += 1,
        }
        Ok((bytes.len() - rest.len(), ()))
    };
    while window.parse(&mut packet)?.is_some() {}
    Ok(())
}

/// Block types of pcapng.
const INTERFACE: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

fn pcapng<A: Address>(window: &mut Window<impl Read>, trace: &mut Trace<A>) -> Result<(), Fault> {
    let mut section = Section { big_endian: false, links: Vec::new() };
    while window.parse(|bytes| section.block(bytes, trace))?.is_some() {}
    Ok(())
}

/// The properties of a section, set by its header.
struct Section {
    big_endian: bool,
    links: Vec<Link>,
}

impl Section {
    /// Takes the block at the start of `bytes`. Returns its length.
    fn block<A: Address>(&mut self, bytes: &[u8], trace: &mut Trace<A>) -> Result<(usize, ()), PcapError> {
        let head = bytes.get(..12).ok_or(PcapError::IncompleteBuffer)?;
        if head[..4] == SECTION.to_be_bytes() {
            self.big_endian = match &head[8..] {
                [0x1a, 0x2b, 0x3c, 0x4d] => true,
                [0x4d, 0x3c, 0x2b, 0x1a] => false,
                _ => return Err(PcapError::InvalidField("a section header without its byte-order mark")),
            };
            self.links.clear();
        }
        let len = usize::try_from(self.u32(head, 4)?).unwrap_or(usize::MAX);
        if len < 12 || len % 4 != 0 || len > LONGEST {
            return Err(PcapError::InvalidField("a block of impossible length"));
        }
        let block = bytes.get(..len).ok_or(PcapError::IncompleteBuffer)?;
        if self.u32(block, len - 4)? as usize != len {
            return Err(PcapError::InvalidField("a block whose two lengths differ"));
        }
        self.body(self.u32(block, 0)?, &block[8..len - 4], trace)?;
        Ok((len, ()))
    }

    fn body<A: Address>(&mut self, kind: u32, body: &[u8], trace: &mut Trace<A>) -> Result<(), PcapError> {
        // Interface and data of a packet, by type of block.
        let (interface, data) = match kind {
            INTERFACE => {
                self.links.push(Link::of(self.u16(body, 0)?.into()));
                return Ok(());
            }
            ENHANCED_PACKET => (self.u32(body, 0)?, self.data(body, 12, 20)?),
            PACKET => (self.u16(body, 0)?.into(), self.data(body, 12, 20)?),
            SIMPLE_PACKET => (0, body.get(4..).ok_or(SHORT)?),
            _ => return Ok(()),
        };
        let link = usize::try_from(interface).ok().and_then(|index| self.links.get(index));
        let link = link.ok_or(PcapError::InvalidField("a packet of an interface that was not described"))?;
        match link.destination(data) {
            Some(address) => trace.take(address),
            None => trace.not_ip += 1,
        }
        Ok(())
    }

    /// The data from `start` on. Its length is stored at `len_at`.
    fn data<'a>(&self, body: &'a [u8], len_at: usize, start: usize) -> Result<&'a [u8], PcapError> {
        let len = usize::try_from(self.u32(body, len_at)?).map_err(|_| SHORT)?;
        body.get(start..).and_then(|data| data.get(..len)).ok_or(SHORT)
    }

    fn u32(&self, bytes: &[u8], at: usize) -> Result<u32, PcapError> {
        let bytes = *bytes.get(at..).and_then(|rest| rest.first_chunk()).ok_or(SHORT)?;
        Ok(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn u16(&self, bytes: &[u8], at: usize) -> Result<u16, PcapError> {
        let bytes = *bytes.get(at..).and_then(|rest| rest.first_chunk()).ok_or(SHORT)?;
        Ok(if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }
}

const SHORT: PcapError = PcapError::InvalidField("a block too short for what it says it holds");

/// The part of the source that is being parsed.
struct Window<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the source before `start`.
    offset: u64,
}

impl<R: Read> Window<R> {
    fn new(source: R) -> Self {
        Self { source, buffer: vec![0; 1 << 16], start: 0, end: 0, offset: 0 }
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Parses one item, and reads as much of the source as it needs. `None` at the end. `parse` returns the
    /// length of the item.
    fn parse<T>(
        &mut self,
        mut parse: impl FnMut(&[u8]) -> Result<(usize, T), PcapError>,
    ) -> Result<Option<T>, Fault> {
        loop {
            if !self.bytes().is_empty() {
                match parse(self.bytes()) {
                    Ok((len, item)) => {
                        self.start += len;
                        self.offset += len as u64;
                        return Ok(Some(item));
                    }
                    Err(PcapError::IncompleteBuffer) => {}
                    Err(PcapError::InvalidField(what)) => return Err(Fault::bad(what)),
                    Err(error) => return Err(Fault::Bad(error.to_string())),
                }
            }
            if self.bytes().len() > LONGEST {
                return Err(Fault::Bad(format!("a record of over {LONGEST} bytes")));
            }
            if self.fill().map_err(Fault::Io)? == 0 {
                return match self.bytes().len() {
                    0 => Ok(None),
                    left => Err(Fault::Bad(format!("cut off: {left} bytes of an unfinished record"))),
                };
            }
        }
    }

    /// Reads more bytes. Returns their number, 0 at the end.
    fn fill(&mut self) -> io::Result<usize> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.end, self.start) = (self.end - self.start, 0);
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => {
                    self.end += *result.as_ref().unwrap_or(&0);
                    return result;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
