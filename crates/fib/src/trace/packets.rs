//! [`Packets`]: the packets of a capture, pcap or pcapng, one after the other.
//!
//! A capture is parsed in a window that slides over the source, so it may have any length. A block may have
//! up to 16 MiB, the most that any tool writes. Timestamps in micro- and nanoseconds, both byte orders,
//! several interfaces and sections are supported. pcap records come from the `pcap-file` crate, without its
//! check, which refuses a snapshot that is shorter than the packet. pcapng blocks are parsed here: the crate
//! demands an end of option lists that some tools don't write, and packets need no options.

use std::io::{self, Read};
use std::ops::Range;

use pcap_file::PcapError;
use pcap_file::pcap::PcapParser;

use super::magic::SECTION;

/// The longest record or block.
const LONGEST: usize = 16 << 20;

/// A packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'c> {
    /// The type of its link layer, in the registry of tcpdump.org: 1 is Ethernet.
    pub link: u32,
    /// The bytes that were captured.
    pub data: &'c [u8],
}

/// The reason why no more packets come.
#[derive(Debug, thiserror::Error)]
pub enum PacketError {
    /// The source can't be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The capture is broken, or cut off.
    #[error("{offset} bytes in, {reason}")]
    Bad {
        /// The place of the damage, in bytes from the start.
        offset: u64,
        /// The damage.
        reason: String,
    },
}

/// Reads the packets of a capture.
pub struct Packets<R> {
    window: Window<R>,
    format: Option<Format>,
}

impl<R> std::fmt::Debug for Packets<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packets").field("offset", &self.window.offset).finish_non_exhaustive()
    }
}

enum Format {
    Pcap(PcapParser),
    Pcapng(Section),
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

/// A packet in the window: its link type, and where its data lies from the start of its record on.
type Found = Option<(u32, Range<usize>)>;

impl<R: Read> Packets<R> {
    /// Begins to read a capture.
    pub fn new(source: R) -> Self {
        Self { window: Window::new(source), format: None }
    }

    /// The next packet; `None` at the end. After an error nothing more comes that could be trusted.
    #[allow(clippy::should_implement_trait)] // a packet borrows what is read, so this is no iterator
    pub fn next(&mut self) -> Result<Option<Packet<'_>>, PacketError> {
        match self.found() {
            Ok(None) => Ok(None),
            Ok(Some((link, at))) => Ok(Some(Packet { link, data: &self.window.buffer[at] })),
            Err(Fault::Io(error)) => Err(PacketError::Io(error)),
            Err(Fault::Bad(reason)) => Err(PacketError::Bad { offset: self.window.offset, reason }),
        }
    }

    /// The next packet: its link type, and where it lies in the window's buffer.
    fn found(&mut self) -> Result<Found, Fault> {
        let format = match &mut self.format {
            Some(format) => format,
            empty => empty.insert(format_of(&mut self.window)?),
        };
        let window = &mut self.window;
        loop {
            let found = match format {
                Format::Pcap(parser) => window.parse(|bytes| record(parser, bytes))?,
                Format::Pcapng(section) => window.parse(|bytes| section.block(bytes))?,
            };
            match found {
                None => return Ok(None),
                // A block without a packet.
                Some((_, None)) => {}
                Some((start, Some((link, at)))) => {
                    return Ok(Some((link, start + at.start..start + at.end)));
                }
            }
        }
    }
}

/// Recognises the format, and takes the header of a pcap capture.
fn format_of(window: &mut Window<impl Read>) -> Result<Format, Fault> {
    while window.bytes().len() < 4 && window.fill().map_err(Fault::Io)? > 0 {}
    if window.bytes().first_chunk().is_some_and(|&magic| u32::from_be_bytes(magic) == SECTION) {
        return Ok(Format::Pcapng(Section { big_endian: false, links: Vec::new() }));
    }
    let parser = window
        .parse(|bytes| PcapParser::new(bytes).map(|(rest, parser)| (bytes.len() - rest.len(), parser)))?;
    let (_, parser) = parser.ok_or_else(|| Fault::bad("it is empty"))?;
    Ok(Format::Pcap(parser))
}

/// The record of a pcap capture at the start of `bytes`, with its length.
fn record(parser: &PcapParser, bytes: &[u8]) -> Result<(usize, Found), PcapError> {
    let (rest, packet) = parser.next_raw_packet(bytes)?;
    let len = bytes.len() - rest.len();
    // The data ends the record.
    let at = len - packet.data.len()..len;
    Ok((len, Some((u32::from(parser.header().datalink), at))))
}

/// Block types of pcapng.
pub(super) const INTERFACE: u32 = 1;
pub(super) const PACKET: u32 = 2;
pub(super) const SIMPLE_PACKET: u32 = 3;
pub(super) const ENHANCED_PACKET: u32 = 6;

/// The properties of a section, set by its header.
struct Section {
    big_endian: bool,
    /// The type of each interface's link layer.
    links: Vec<u32>,
}

impl Section {
    /// Takes the block at the start of `bytes`. Returns its length, and its packet if it has one.
    fn block(&mut self, bytes: &[u8]) -> Result<(usize, Found), PcapError> {
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
        let found = self.body(self.u32(block, 0)?, &block[8..len - 4])?;
        Ok((len, found.map(|(link, at)| (link, 8 + at.start..8 + at.end))))
    }

    /// The packet of a block's body.
    fn body(&mut self, kind: u32, body: &[u8]) -> Result<Found, PcapError> {
        // Interface and data of a packet, by type of block.
        let (interface, data) = match kind {
            INTERFACE => {
                self.links.push(self.u16(body, 0)?.into());
                return Ok(None);
            }
            ENHANCED_PACKET => (self.u32(body, 0)?, self.data(body, 12, 20)?),
            PACKET => (self.u16(body, 0)?.into(), self.data(body, 12, 20)?),
            SIMPLE_PACKET => (0, body.get(4..).map(|_| 4..body.len()).ok_or(SHORT)?),
            _ => return Ok(None),
        };
        let link = usize::try_from(interface).ok().and_then(|index| self.links.get(index));
        let link = link.ok_or(PcapError::InvalidField("a packet of an interface that was not described"))?;
        Ok(Some((*link, data)))
    }

    /// Where the data lies that begins at `start`. Its length is stored at `len_at`.
    fn data(&self, body: &[u8], len_at: usize, start: usize) -> Result<Range<usize>, PcapError> {
        let len = usize::try_from(self.u32(body, len_at)?).map_err(|_| SHORT)?;
        let end = start.checked_add(len).filter(|&end| end <= body.len()).ok_or(SHORT)?;
        Ok(start..end)
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

    /// Parses one item, and reads as much of the source as it needs. Returns where the item began in the
    /// buffer, too; it stays there until the next call. `None` at the end. `parse` returns the length of the
    /// item.
    fn parse<T>(
        &mut self,
        mut parse: impl FnMut(&[u8]) -> Result<(usize, T), PcapError>,
    ) -> Result<Option<(usize, T)>, Fault> {
        loop {
            if !self.bytes().is_empty() {
                match parse(self.bytes()) {
                    Ok((len, item)) => {
                        let start = self.start;
                        self.start += len;
                        self.offset += len as u64;
                        return Ok(Some((start, item)));
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
