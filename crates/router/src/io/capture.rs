//! [`CapturePort`]: frames from a capture file, and to one.
//!
//! Captures are pcap or pcapng, recognised by content, and compressed or not. Several ports can write to one
//! [`CaptureWriter`]: in pcapng each is an interface of its own. Packets without an Ethernet header get one,
//! with addresses of zeros.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pcap_file::pcap::{PcapPacket, PcapWriter};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, PcapError};
use wirespeed::fib::trace::{PacketError, Packets};
use wirespeed_input::{Source, open};

use super::{Port, PortCounts};
use crate::header::{TYPE_IPV4, TYPE_IPV6};
use crate::worker::DropSink;
use crate::{Error, Frame, Memory, Reason, narrow};

/// The link types of tcpdump.org that can be forwarded: Ethernet, and bare IP.
const ETHERNET: u32 = 1;
const RAW: [u32; 5] = [12, 14, 101, 228, 229];

/// The most bytes of frames that [`CapturePort::frames`] keeps: 1 GiB.
pub const MOST_KEPT: usize = 1 << 30;

/// A port whose frames come from a capture, and go to one.
pub struct CapturePort {
    name: String,
    source: Option<Packets<Box<dyn Read + Send>>>,
    /// A packet that found no free buffer.
    waiting: Option<Vec<u8>>,
    damage: Option<String>,
    writer: Option<(CaptureWriter, u32)>,
    counts: PortCounts,
}

impl CapturePort {
    /// A port without frames to receive and without a file to write to: what is sent is counted.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            source: None,
            waiting: None,
            damage: None,
            writer: None,
            counts: PortCounts::default(),
        }
    }

    /// Receives the packets of a capture; `-` is the standard input.
    pub fn from_file(mut self, path: &Path) -> Result<Self, Error> {
        let bad = |what: String| Error::Capture { path: path.to_owned(), what };
        let input = open(&Source::from_arg(path)).map_err(|error| bad(error.cause.to_string()))?;
        // Packets are read one at a time.
        let mut packets = Packets::new(Box::new(input.unlimited()) as Box<dyn Read + Send>);
        // A file that is no capture is an error now; damage further in ends the frames.
        self.waiting = match packets.next() {
            Ok(None) => None,
            Ok(Some(packet)) => as_ethernet(packet.link, packet.data).or_else(|| {
                self.counts.refused += 1;
                None
            }),
            Err(error) => return Err(bad(error.to_string())),
        };
        self.source = Some(packets);
        Ok(self)
    }

    /// The frames of a capture, to be given from memory. Fails if one can't be forwarded, has more than
    /// `most` bytes or is cut off, and if there are none or more than [`MOST_KEPT`] bytes of them.
    pub fn frames(path: &Path, most: usize) -> Result<Vec<Vec<u8>>, Error> {
        let bad = |what: String| Err(Error::Capture { path: path.to_owned(), what });
        let mut port = Self::new("in").from_file(path)?;
        let (mut frames, mut bytes) = (Vec::new(), 0);
        while port.next()? {
            let Some(frame) = port.waiting.take() else { break };
            if frame.len() > most {
                return bad(format!(
                    "packet {} has {} bytes, and at most {most} fit a buffer",
                    frames.len() + 1,
                    frame.len()
                ));
            }
            bytes += frame.len();
            if bytes > MOST_KEPT {
                return bad(format!(
                    "its frames have more than {MOST_KEPT} bytes, which is too many to keep"
                ));
            }
            frames.push(frame);
        }
        match (port.damage, port.counts.refused, frames.len()) {
            (Some(damage), ..) => bad(damage),
            (None, 0, 0) => bad("it has no packet".to_owned()),
            (None, 0, _) => Ok(frames),
            (None, refused, _) => bad(format!("{refused} of its packets are neither Ethernet nor IP")),
        }
    }

    /// Writes what is sent to a capture, as an interface of the port's name.
    pub fn to_writer(mut self, writer: &CaptureWriter) -> Result<Self, Error> {
        let interface = writer.interface(&self.name)?;
        self.writer = Some((writer.clone(), interface));
        Ok(self)
    }

    /// Reads the next packet into `waiting`. Returns `false` at the end.
    fn next(&mut self) -> Result<bool, Error> {
        while self.waiting.is_none()
            && let Some(packets) = &mut self.source
        {
            match packets.next() {
                Ok(Some(packet)) => {
                    self.waiting = as_ethernet(packet.link, packet.data);
                    self.counts.refused += u64::from(self.waiting.is_none());
                }
                Ok(None) => self.source = None,
                // Compressed data that is cut off or damaged has no error of the operating system.
                Err(PacketError::Io(error)) if error.raw_os_error().is_some() => {
                    return Err(Error::port(self.name.clone(), "reading it", error));
                }
                Err(error) => {
                    tracing::warn!("{}: {error}; nothing after that is read", self.name);
                    self.damage = Some(error.to_string());
                    self.source = None;
                }
            }
        }
        Ok(self.waiting.is_some())
    }
}

/// A packet as an Ethernet frame. `None` for link types that carry something else.
fn as_ethernet(link: u32, data: &[u8]) -> Option<Vec<u8>> {
    if link == ETHERNET {
        return Some(data.to_vec());
    }
    let kind = match data.first()? >> 4 {
        4 => TYPE_IPV4,
        6 => TYPE_IPV6,
        _ => return None,
    };
    RAW.contains(&link).then(|| [&[0; 12][..], &kind.to_be_bytes(), data].concat())
}

impl Port for CapturePort {
    fn name(&self) -> &str {
        &self.name
    }

    fn receive(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>, most: usize) -> Result<usize, Error> {
        let mut received = 0;
        while received < most && self.next()? {
            let Some(bytes) = self.waiting.take() else { break };
            if bytes.len() > memory.capacity() {
                self.counts.refused += 1;
                continue;
            }
            let Some(frame) = memory.copy_of(&bytes) else {
                self.waiting = Some(bytes);
                break;
            };
            frames.push(frame);
            received += 1;
        }
        self.counts.received += received as u64;
        Ok(received)
    }

    fn send(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>) -> Result<usize, Error> {
        let sent = frames.len();
        if let Some((writer, interface)) = &self.writer {
            writer.write(*interface, frames.iter().map(|frame| memory.bytes(frame)))?;
        }
        frames.drain(..).for_each(|frame| memory.give(frame));
        self.counts.sent += sent as u64;
        Ok(sent)
    }

    fn held(&self) -> usize {
        0
    }

    fn close(&mut self, _: &mut Memory) {}

    fn is_at_end(&self) -> bool {
        self.source.is_none() && self.waiting.is_none()
    }

    fn can_wait(&self) -> bool {
        true
    }

    fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    fn counts(&self) -> PortCounts {
        self.counts
    }
}

/// A capture that several ports write to. Clones write to the same one.
#[derive(Clone)]
pub struct CaptureWriter(Arc<Mutex<Inner>>);

struct Inner {
    path: PathBuf,
    format: Format,
    interfaces: u32,
}

enum Format {
    Pcap(PcapWriter<Output>),
    Pcapng(PcapNgWriter<Output>),
    Finished,
}

impl CaptureWriter {
    /// Creates a capture. A name that ends in `.pcap`, before `.gz` or `.zst`, makes a pcap; others pcapng.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let output = Output::create(path).map_err(|error| unwritable(path, &error))?;
        let name = path.to_string_lossy();
        let bare = name.trim_end_matches(".gz").trim_end_matches(".zst");
        let format = if bare.ends_with(".pcap") {
            Format::Pcap(PcapWriter::new(output).map_err(|error| failed(path, &error))?)
        } else {
            Format::Pcapng(PcapNgWriter::new(output).map_err(|error| failed(path, &error))?)
        };
        Ok(Self(Arc::new(Mutex::new(Inner { path: path.to_owned(), format, interfaces: 0 }))))
    }

    /// Begins an interface of this name. Returns its number.
    pub fn interface(&self, name: &str) -> Result<u32, Error> {
        let mut inner = self.lock();
        let number = inner.interfaces;
        inner.interfaces += 1;
        let mut result = Ok(());
        if let Format::Pcapng(writer) = &mut inner.format {
            let mut block = InterfaceDescriptionBlock::new(DataLink::ETHERNET, 0);
            block.options.push(InterfaceDescriptionOption::IfName(name.into()));
            // Nanoseconds.
            block.options.push(InterfaceDescriptionOption::IfTsResol(9));
            result = writer.write_pcapng_block(block).map(|_| ());
        }
        result.map_err(|error| inner.failed(&error))?;
        Ok(number)
    }

    /// Writes frames of an interface.
    pub fn write<'f>(&self, interface: u32, frames: impl Iterator<Item = &'f [u8]>) -> Result<(), Error> {
        let mut inner = self.lock();
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        for frame in frames {
            inner.format.write(interface, time, frame).map_err(|error| inner.failed(&error))?;
        }
        Ok(())
    }

    /// Writes everything out. Nothing can be written after it.
    pub fn finish(&self) -> Result<(), Error> {
        let mut inner = self.lock();
        let format = std::mem::replace(&mut inner.format, Format::Finished);
        let output = match format {
            Format::Pcap(writer) => writer.into_writer(),
            Format::Pcapng(writer) => writer.into_inner(),
            Format::Finished => return Ok(()),
        };
        output.finish().map_err(|error| unwritable(&inner.path, &error))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for CaptureWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CaptureWriter").field(&self.lock().path).finish()
    }
}

impl Inner {
    fn failed(&self, error: &PcapError) -> Error {
        failed(&self.path, error)
    }
}

/// The error of a capture that can't be written. The library says of any error of a file that it was reading.
fn failed(path: &Path, error: &PcapError) -> Error {
    match error {
        PcapError::IoError(error) => unwritable(path, error),
        other => Error::Capture { path: path.to_owned(), what: other.to_string() },
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Error {
    Error::Capture { path: path.to_owned(), what: format!("can't be written: {error}") }
}

impl Format {
    fn write(&mut self, interface: u32, time: Duration, frame: &[u8]) -> Result<(), PcapError> {
        // Frames are shorter than 2^16.
        let len = narrow::u32(frame.len());
        match self {
            Self::Pcap(writer) => writer.write_packet(&PcapPacket::new(time, len, frame)).map(|_| ()),
            Self::Pcapng(writer) => {
                let block = EnhancedPacketBlock {
                    interface_id: interface,
                    timestamp: time,
                    original_len: len,
                    data: frame.into(),
                    options: Vec::new(),
                };
                writer.write_pcapng_block(block).map(|_| ())
            }
            Self::Finished => Ok(()),
        }
    }
}

/// Copies of dropped frames in a capture, an interface for each reason.
pub struct DropCapture {
    writer: CaptureWriter,
    interfaces: Vec<Option<u32>>,
}

impl DropCapture {
    /// Writes to this capture.
    #[must_use]
    pub fn new(writer: &CaptureWriter) -> Self {
        Self { writer: writer.clone(), interfaces: vec![None; Reason::ALL.len()] }
    }
}

impl DropSink for DropCapture {
    fn dropped(&mut self, reason: Reason, frame: &[u8]) {
        let interface = match self.interfaces[reason as usize] {
            Some(interface) => Ok(interface),
            None => self.writer.interface(reason.name()),
        };
        let result = interface.and_then(|interface| {
            self.interfaces[reason as usize] = Some(interface);
            self.writer.write(interface, std::iter::once(frame))
        });
        if let Err(error) = result {
            tracing::warn!("dropped frames are not written: {error}");
        }
    }
}

/// A file that is written, compressed if its name says so.
enum Output {
    Plain(BufWriter<File>),
    Gzip(flate2::write::GzEncoder<File>),
    Zstd(zstd::Encoder<'static, File>),
}

impl Output {
    fn create(path: &Path) -> io::Result<Self> {
        let file = File::create(path)?;
        Ok(match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => Self::Gzip(flate2::write::GzEncoder::new(file, flate2::Compression::fast())),
            Some("zst") => Self::Zstd(zstd::Encoder::new(file, 1)?),
            _ => Self::Plain(BufWriter::with_capacity(1 << 18, file)),
        })
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Plain(mut file) => file.flush(),
            Self::Gzip(file) => file.finish().map(drop),
            Self::Zstd(file) => file.finish().map(drop),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(file) => file.write(bytes),
            Self::Zstd(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Gzip(file) => file.flush(),
            Self::Zstd(file) => file.flush(),
        }
    }
}
