//! [`Input`]: bytes and lines for readers, decompressed, with the name and position for messages.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::source::OpenError;

/// Size of the window on the decompressed bytes. It limits the length of a line.
///
/// The window is small for fuzzing, for speed and so that its edges are tested.
const WINDOW: usize = if cfg!(fuzzing) { 16 << 10 } else { 256 << 10 };
/// Bytes of a read from the file.
const CHUNK: usize = 64 << 10;
/// Bytes that any compressed file may unpack to.
const FREE: u64 = 64 << 20;
/// How many times its size a compressed file may unpack to, beyond [`FREE`].
const RATIO: u64 = 100;

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Not compressed.
    None,
    /// gzip (RFC 1952), any number of members.
    Gzip,
    /// bzip2, any number of streams.
    Bzip2,
    /// Zstandard (RFC 8878), any number of frames.
    Zstd,
}

impl Compression {
    /// The usual name, empty for none. It is also the name of the cargo feature.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Zstd => "zstd",
        }
    }

    /// Recognises the compression by the first bytes of a file.
    fn recognise(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, 8, ..] => Self::Gzip,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Self::Bzip2,
            // A frame, or a skippable frame before it.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::None,
        }
    }

    /// Makes a decoder of `raw`. Fails if this build has none.
    fn decoder<'a>(self, raw: impl BufRead + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
        match self {
            Self::None => Ok(Box::new(raw)),
            #[cfg(feature = "gzip")]
            Self::Gzip => Ok(Box::new(flate2::bufread::MultiGzDecoder::new(raw))),
            #[cfg(feature = "bzip2")]
            Self::Bzip2 => Ok(Box::new(bzip2::bufread::MultiBzDecoder::new(raw))),
            #[cfg(feature = "zstd")]
            Self::Zstd => Ok(Box::new(zstd::stream::read::Decoder::with_buffer(raw)?)),
            #[cfg(not(all(feature = "gzip", feature = "bzip2", feature = "zstd")))]
            _ => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("compressed with {0}, which needs a build with the feature `{0}`", self.name()),
            )),
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            _ => write!(f, " in {}", self.name()),
        }
    }
}

/// A stream that counts its bytes.
struct Counted<R> {
    stream: R,
    bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.stream.read(into)?;
        self.bytes.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// An open file or stream, decompressed: buffered bytes and lines with their positions.
///
/// A compressed file may unpack to 64 MiB, or to 100 times the bytes that were read of it if that is more.
/// Beyond that, reading fails with [`FileTooLarge`](io::ErrorKind::FileTooLarge): what holds a whole file in
/// memory needs a bound. [`unlimited`](Self::unlimited) lifts it.
pub struct Input<'a> {
    name: String,
    compression: Compression,
    decoder: Box<dyn Read + Send + 'a>,
    /// Bytes that were read of the source, if their number limits what they unpack to.
    packed: Option<Arc<AtomicU64>>,
    window: Box<[u8]>,
    start: usize,
    end: usize,
    /// The offset of `window[start]` in the decompressed stream.
    offset: u64,
    lines: u64,
    /// An error found while looking ahead; it is returned when the bytes before it are used.
    waiting: Option<io::Error>,
}

/// One line of an [`Input`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line without its end. `\r\n` counts as one end of line.
    Whole(&'a [u8]),
    /// A line longer than 256 KiB, which was passed over.
    TooLong,
}

impl<'a> Input<'a> {
    /// The longest line that is read.
    pub const LONGEST_LINE: usize = WINDOW - 1;

    /// Reads `raw`, decompressed by magic number. `name` is for messages.
    pub fn new(raw: Box<dyn Read + Send + 'a>, name: String) -> Result<Self, OpenError> {
        let bytes = Arc::new(AtomicU64::new(0));
        let mut raw = BufReader::with_capacity(CHUNK, Counted { stream: raw, bytes: Arc::clone(&bytes) });
        let mut start = Vec::new();
        // A pipe may give its first bytes one at a time.
        if let Err(cause) = (&mut raw).take(4).read_to_end(&mut start) {
            return Err(OpenError { name, cause });
        }
        if start.starts_with(b"\xfd7zX") {
            let what = "compressed with xz, which is not supported: decompress it first (xz -d), or use zstd";
            return Err(OpenError { name, cause: io::Error::new(io::ErrorKind::Unsupported, what) });
        }
        let compression = Compression::recognise(&start);
        // Bytes that have come with the first ones: to wait for more would hold records of a pipe back.
        if let Err(cause) = refuse_archive(&[&start, raw.buffer()].concat()) {
            return Err(OpenError { name, cause });
        }
        let raw = BufReader::with_capacity(CHUNK, io::Cursor::new(start).chain(raw));
        let decoder = match compression.decoder(raw) {
            Ok(decoder) => decoder,
            Err(cause) => return Err(OpenError { name, cause }),
        };
        let packed = (compression != Compression::None).then_some(bytes);
        let window = vec![0; WINDOW].into_boxed_slice();
        let mut input = Self {
            name,
            compression,
            decoder,
            packed,
            window,
            start: 0,
            end: 0,
            offset: 0,
            lines: 0,
            waiting: None,
        };
        if compression != Compression::None {
            match input.fill() {
                Ok(_) => refuse_archive(&input.window[..input.end])
                    .map_err(|cause| OpenError { name: input.name.clone(), cause })?,
                Err(error) => input.waiting = Some(error),
            }
        }
        Ok(input)
    }

    /// Lifts the limit on what a compressed file unpacks to: for readers that hold little of it at a time.
    #[must_use]
    pub fn unlimited(mut self) -> Self {
        self.packed = None;
        self
    }

    /// The name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The compression of the source.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// The number of decompressed bytes that have been used.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The number of lines that [`next_line`](Self::next_line) has read.
    pub fn lines_read(&self) -> u64 {
        self.lines
    }

    /// Looks at the next bytes without using them: at least `want` bytes (at most 256 KiB) if there are so
    /// many; and whether the input ends after them. An error is returned later, when the bytes before it are
    /// used.
    pub fn look_ahead(&mut self, want: usize) -> (&[u8], bool) {
        let mut ends = false;
        while self.end - self.start < want.min(WINDOW) && self.waiting.is_none() && !ends {
            match self.fill() {
                Ok(n) => ends = n == 0,
                Err(error) => self.waiting = Some(error),
            }
        }
        (&self.window[self.start..self.end], ends)
    }

    /// Reads the next line; `None` at the end. The last line may lack an end of line. After an error nothing
    /// more can be read; the bytes of an incomplete line are lost.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut searched = 0;
        let len = loop {
            let seen = &self.window[self.start + searched..self.end];
            if let Some(at) = seen.iter().position(|&b| b == b'\n') {
                break searched + at;
            }
            searched += seen.len();
            if searched == WINDOW {
                self.skip_line()?;
                return Ok(Some(Line::TooLong));
            }
            if self.fill()? == 0 {
                if searched == 0 {
                    return Ok(None);
                }
                break searched;
            }
        };
        let from = self.start;
        self.advance((len + 1).min(self.end - from));
        self.lines += 1;
        let line = &self.window[from..from + len];
        Ok(Some(Line::Whole(line.strip_suffix(b"\r").unwrap_or(line))))
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let seen = &self.window[self.start..self.end];
            if let Some(at) = seen.iter().position(|&b| b == b'\n') {
                self.advance(at + 1);
                break;
            }
            self.advance(seen.len());
            if self.fill()? == 0 {
                break;
            }
        }
        self.lines += 1;
        Ok(())
    }

    fn advance(&mut self, by: usize) {
        self.start += by;
        self.offset += by as u64;
    }

    /// Reads more bytes into the window. Returns 0 at the end, or if the window is full.
    fn fill(&mut self) -> io::Result<usize> {
        if let Some(error) = self.waiting.take() {
            return Err(error);
        }
        self.window.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let n = decode(&mut self.decoder, &mut self.window[self.end..])?;
        self.end += n;
        self.check_size(self.end)?;
        Ok(n)
    }

    /// Refuses a file that unpacks to more than its size allows, with so many bytes after those that were
    /// used.
    fn check_size(&self, more: usize) -> io::Result<()> {
        let Some(packed) = &self.packed else { return Ok(()) };
        let unpacked = self.offset + more as u64;
        if unpacked <= FREE.max(packed.load(Ordering::Relaxed).saturating_mul(RATIO)) {
            return Ok(());
        }
        let what = format!(
            "unpacks to over {} MiB and over {RATIO} times its size, which is the limit for {}: unpack it first \
             if that is right",
            FREE >> 20,
            self.compression.name()
        );
        Err(io::Error::new(io::ErrorKind::FileTooLarge, what))
    }
}

/// Refuses a file of files, by its first bytes.
fn refuse_archive(start: &[u8]) -> io::Result<()> {
    let kind = match start {
        [b'P', b'K', 3, 4, ..] => "zip",
        _ if is_tar(start) => "tar",
        _ => return Ok(()),
    };
    let what = format!("an archive of {kind}: unpack it, and name the file that is in it");
    Err(io::Error::new(io::ErrorKind::Unsupported, what))
}

/// Whether a file begins with the header of tar: the sum of its bytes stands in it, in octal digits, and
/// counts as blanks.
fn is_tar(start: &[u8]) -> bool {
    const SUM: std::ops::Range<usize> = 148..156;
    let Some(header) = start.first_chunk::<512>().filter(|header| header[257..].starts_with(b"ustar")) else {
        return false;
    };
    let sum = |bytes: &[u8]| bytes.iter().map(|&byte| u32::from(byte)).sum::<u32>();
    let mut told = header[SUM].iter().take_while(|byte| !matches!(byte, 0 | b' '));
    let told = told.try_fold(0, |sum, &byte| Some(sum * 8 + char::from(byte).to_digit(8)?));
    told == Some(sum(header) - sum(&header[SUM]) + 8 * u32::from(b' '))
}

/// Reads until it is not interrupted.
fn decode(decoder: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match decoder.read(into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

impl BufRead for Input<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end {
            self.fill()?;
        }
        Ok(&self.window[self.start..self.end])
    }

    fn consume(&mut self, amount: usize) {
        self.advance(amount.min(self.end - self.start));
    }
}

impl Read for Input<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // Bytes for which the window is too small don't go through it.
        if self.start == self.end && self.waiting.is_none() && into.len() >= WINDOW {
            let n = decode(&mut self.decoder, into)?;
            self.check_size(n)?;
            self.offset += n as u64;
            return Ok(n);
        }
        let n = self.fill_buf()?.read(into)?;
        self.consume(n);
        Ok(n)
    }
}

impl fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input")
            .field("name", &self.name)
            .field("compression", &self.compression)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "compression")]
    use std::io::Write;

    use super::*;

    fn input(bytes: &[u8]) -> Input<'_> {
        Input::new(Box::new(bytes), "test".into()).unwrap()
    }

    #[cfg(feature = "compression")]
    fn text(input: &mut Input<'_>) -> io::Result<String> {
        let mut text = String::new();
        input.read_to_string(&mut text).map(|_| text)
    }

    #[cfg(feature = "compression")]
    fn gz(text: &[u8]) -> Vec<u8> {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(text).unwrap();
        gz.finish().unwrap()
    }

    #[cfg(feature = "compression")]
    fn bz2(text: &[u8]) -> Vec<u8> {
        let mut bz = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        bz.write_all(text).unwrap();
        bz.finish().unwrap()
    }

    /// The start of an archive: a header, and the bytes of its file.
    fn tar(content: &[u8]) -> Vec<u8> {
        let mut header = [0; 512];
        header[..8].copy_from_slice(b"GeoLite2");
        header[148..156].fill(b' ');
        header[257..265].copy_from_slice(b"ustar  \0");
        let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        [&header[..], content].concat()
    }

    #[test]
    fn archives_are_refused_with_what_to_do() {
        let (tar, zip) = (tar(b"10.0.0.0/8 1\n"), b"PK\x03\x04\x14\0".to_vec());
        let refused = |bytes: &[u8], kind: &str| {
            let error = Input::new(Box::new(bytes), "test".into()).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("test: an archive of {kind}: unpack it, and name the file that is in it")
            );
        };
        refused(&tar, "tar");
        refused(&zip, "zip");
        #[cfg(feature = "compression")]
        for packed in [gz(&tar), bz2(&tar)] {
            refused(&packed, "tar");
        }
        // Text that has the word there is none.
        let mut text = tar;
        text[0] = b'x';
        assert_eq!(input(&text).look_ahead(1024).0, text);
    }

    #[test]
    fn what_the_build_leaves_out_is_refused_by_the_name_of_the_feature() {
        let all: [(&[u8], Compression, bool); 4] = [
            (b"\x1f\x8b\x08\0", Compression::Gzip, cfg!(feature = "gzip")),
            (b"BZh9", Compression::Bzip2, cfg!(feature = "bzip2")),
            (b"\x28\xb5\x2f\xfd", Compression::Zstd, cfg!(feature = "zstd")),
            (b"\x50\x2a\x4d\x18", Compression::Zstd, cfg!(feature = "zstd")),
        ];
        for (start, compression, is_built_in) in all {
            match Input::new(Box::new(start), "test".into()) {
                Ok(input) => assert!(is_built_in && input.compression() == compression, "{input:?}"),
                Err(error) => {
                    assert!(!is_built_in, "{error}");
                    assert_eq!(error.cause.kind(), io::ErrorKind::Unsupported);
                    let name = compression.name();
                    let said = format!(
                        "test: compressed with {name}, which needs a build with the feature `{name}`"
                    );
                    assert_eq!(error.to_string(), said);
                }
            }
        }
    }

    #[test]
    fn xz_is_refused_by_its_name() {
        let error = Input::new(Box::new(&b"\xfd7zXZ\0\0\x04"[..]), "test".into()).unwrap_err();
        assert!(error.to_string().starts_with("test: compressed with xz, which is not supported"), "{error}");
    }

    #[cfg(feature = "compression")]
    #[test]
    fn decompresses_by_magic_number_with_several_members() {
        let zstd = |text: &[u8]| zstd::encode_all(text, 1).unwrap();
        for (pack, compression) in [
            (&gz as &dyn Fn(&[u8]) -> Vec<u8>, Compression::Gzip),
            (&bz2, Compression::Bzip2),
            (&zstd, Compression::Zstd),
        ] {
            let packed = [pack(b"one\n"), pack(b"two\n")].concat();
            let mut input = input(&packed);
            assert_eq!(input.compression(), compression);
            assert_eq!(text(&mut input).unwrap(), "one\ntwo\n");
            assert_eq!(input.offset(), 8);
        }
    }

    #[cfg(feature = "compression")]
    #[test]
    fn what_is_cut_off_or_corrupt_gives_an_error_after_what_is_whole() {
        let long: Vec<u8> = (0..200_000u32).flat_map(|i| format!("line {i}\n").into_bytes()).collect();
        let mut zstd = zstd::Encoder::new(Vec::new(), 1).unwrap();
        zstd.include_checksum(true).unwrap();
        zstd.write_all(&long).unwrap();
        for packed in [gz(&long), bz2(&long), zstd.finish().unwrap()] {
            let mut cut = input(&packed[..packed.len() - packed.len() / 4]);
            let error = loop {
                match cut.next_line() {
                    Ok(line) => assert!(line.is_some()),
                    Err(error) => break error,
                }
            };
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{error}");
            let mut corrupt = packed.clone();
            let middle = corrupt.len() / 2;
            corrupt[middle..middle + 64].fill(0x5a);
            assert!(text(&mut input(&corrupt)).is_err());
        }
    }

    /// Members that each unpack to as many zeros, after a line.
    #[cfg(feature = "compression")]
    fn bomb(pack: &dyn Fn(&[u8]) -> Vec<u8>, members: usize) -> Vec<u8> {
        let zeros = pack(&vec![0; 1 << 20]);
        [pack(b"a line\n"), zeros.repeat(members)].concat()
    }

    #[cfg(feature = "compression")]
    #[test]
    fn what_unpacks_to_too_many_times_its_size_is_refused() {
        let zstd = |text: &[u8]| zstd::encode_all(text, 1).unwrap();
        for (pack, name) in [(&gz as &dyn Fn(&[u8]) -> Vec<u8>, "gzip"), (&bz2, "bzip2"), (&zstd, "zstd")] {
            let packed = bomb(pack, 80);
            let read = |mut input: Input<'_>| io::copy(&mut input, &mut io::sink());
            let error = read(input(&packed)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
            let said = format!(
                "unpacks to over 64 MiB and over 100 times its size, which is the limit for {name}: unpack it \
                 first if that is right"
            );
            assert_eq!(error.to_string(), said);
            assert_eq!(read(input(&packed).unlimited()).unwrap(), (80 << 20) + 7);
            assert_eq!(read(input(&bomb(pack, 63))).unwrap(), (63 << 20) + 7);
        }
        // Not packed, or not packed so much.
        let noise: Vec<u8> =
            (0..65u32 << 18).flat_map(|at| at.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
        for bytes in [zstd(&noise), noise] {
            assert_eq!(io::copy(&mut input(&bytes), &mut io::sink()).unwrap(), 65 << 20);
        }
    }

    #[test]
    fn lines_with_all_kinds_of_ends() {
        let mut input = input(b"one\r\ntwo\n\nlast");
        for expected in ["one", "two", "", "last"] {
            assert_eq!(input.next_line().unwrap(), Some(Line::Whole(expected.as_bytes())));
        }
        assert_eq!(input.next_line().unwrap(), None);
        assert_eq!((input.lines_read(), input.offset()), (4, 14));
    }

    #[test]
    fn overlong_lines_are_passed_over() {
        let text = [b"a\n", &vec![b'x'; 3 * WINDOW][..], b"\nb\n", &vec![b'x'; WINDOW + 1][..]].concat();
        let mut input = input(&text);
        let expected = [Line::Whole(b"a"), Line::TooLong, Line::Whole(b"b"), Line::TooLong];
        for line in expected {
            assert_eq!(input.next_line().unwrap(), Some(line));
        }
        assert_eq!(input.next_line().unwrap(), None);
        assert_eq!(input.lines_read(), 4);
    }

    #[test]
    fn reads_beside_the_window_and_through_it() {
        let bytes: Vec<u8> = (0..=255).cycle().step_by(7).take(5 * WINDOW).collect();
        let (mut input, mut read) = (input(&bytes), Vec::new());
        for (turn, len) in [WINDOW, 10, 2 * WINDOW, 100, WINDOW + 1].into_iter().cycle().enumerate() {
            if turn % 3 == 1 {
                let (next, _) = input.look_ahead(50);
                assert_eq!(next, &bytes[read.len()..][..next.len()]);
            }
            let mut into = vec![0; len];
            let n = input.read(&mut into).unwrap();
            read.extend_from_slice(&into[..n]);
            assert_eq!(input.offset(), read.len() as u64);
            if n == 0 {
                break;
            }
        }
        assert!(read == bytes);
    }

    #[test]
    fn looking_ahead_uses_nothing_up() {
        let mut input = input(b"one\ntwo\n");
        assert_eq!(input.look_ahead(1000), (&b"one\ntwo\n"[..], true));
        assert_eq!(input.offset(), 0);
        assert_eq!(input.next_line().unwrap(), Some(Line::Whole(b"one")));
        assert_eq!(input.look_ahead(2), (&b"two\n"[..], false));
    }
}
