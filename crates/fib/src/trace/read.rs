//! Traces from a file of any format.

use std::io::{self, Read};

use super::addresses::Trace;
#[cfg(feature = "capture")]
use super::capture;
use super::error::TraceError;
use super::magic::SECTION;
use super::{packed, text};
use crate::address::Address;

/// The formats of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One address on each line; see [`text::from_text`](super::from_text).
    Text,
    /// Packed addresses in network order; see [`from_packed`](super::from_packed).
    Packed,
    /// A capture, pcap or pcapng. Needs the feature `capture`.
    Capture,
}

impl Format {
    /// Recognises the format by `head`, the first few dozen bytes: captures by magic number, text if all
    /// bytes are printable. All other content is packed addresses. Packed addresses that happen to be
    /// printable must be named by the caller.
    pub fn of(head: &[u8]) -> Self {
        let printable = |&byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0x80..);
        if is_capture(head) {
            Self::Capture
        } else if head.iter().all(printable) && std::str::from_utf8(whole_chars(head)).is_ok() {
            Self::Text
        } else {
            Self::Packed
        }
    }
}

/// Whether a source that starts with `head` is a capture, pcap or pcapng.
pub fn is_capture(head: &[u8]) -> bool {
    head.first_chunk().is_some_and(|&magic| {
        let magic = u32::from_be_bytes(magic);
        magic == SECTION || [magic, magic.swap_bytes()].iter().any(|m| matches!(m, 0xa1b2_c3d4 | 0xa1b2_3c4d))
    })
}

/// `head` without an incomplete character at its end.
fn whole_chars(head: &[u8]) -> &[u8] {
    match std::str::from_utf8(head) {
        Err(error) if error.error_len().is_none() => &head[..error.valid_up_to()],
        _ => head,
    }
}

/// Reads a trace. By default `format` is recognised by content. `name` is for messages. The source must be
/// uncompressed.
pub fn from_reader<A: Address>(
    mut source: impl Read,
    name: &str,
    format: Option<Format>,
) -> Result<Trace<A>, TraceError> {
    let mut head = Vec::with_capacity(64);
    source.by_ref().take(64).read_to_end(&mut head).map_err(|error| TraceError::io(name, error))?;
    let format = format.unwrap_or_else(|| Format::of(&head));
    let whole = io::Cursor::new(head).chain(source);
    match format {
        Format::Text => text::from_text(whole, name),
        Format::Packed => packed::from_packed(whole, name),
        #[cfg(feature = "capture")]
        Format::Capture => capture::from_capture(whole, name),
        #[cfg(not(feature = "capture"))]
        Format::Capture => Err(TraceError::LeftOut { name: name.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{V4, V6};

    #[test]
    fn formats_are_told_apart() {
        assert_eq!(Format::of(b"10.0.0.1\n"), Format::Text);
        assert_eq!(Format::of("# trac\u{e9}s\n".as_bytes()), Format::Text);
        assert_eq!(Format::of(&"# trac\u{e9}".as_bytes()[..7]), Format::Text);
        assert_eq!(Format::of(&[10, 0, 0, 1]), Format::Packed);
        assert_eq!(Format::of(&0xa1b2_c3d4u32.to_le_bytes()), Format::Capture);
        assert_eq!(Format::of(&0x0a0d_0d0au32.to_le_bytes()), Format::Capture);
        assert_eq!(Format::of(b""), Format::Text);
    }

    #[test]
    fn the_whole_source_is_read() {
        let text = "10.0.0.1\n".repeat(100);
        assert_eq!(from_reader::<V4>(text.as_bytes(), "t", None).unwrap().keys.len(), 100);
    }

    #[test]
    fn a_trace_of_the_other_family_says_so() {
        let error = from_reader::<V4>(&b"::1\n::2\n"[..], "t.txt", None).unwrap_err();
        assert_eq!(error.to_string(), "trace t.txt holds IPv6 addresses, the table is IPv4");
        let error = from_reader::<V6>(&b"# none\n"[..], "t.txt", None).unwrap_err();
        assert_eq!(error.to_string(), "trace t.txt holds no IPv6 address");
        let mixed = from_reader::<V6>(&b"1.1.1.1\n::2\n"[..], "t.txt", None).unwrap();
        assert_eq!((mixed.keys, mixed.other_family), (vec![V6(2)], 1));
    }

    #[cfg(all(feature = "capture", feature = "synth"))]
    #[test]
    fn real_traces_are_read_whole() {
        use crate::synth::tests::real_file;
        if let Some(file) = real_file("traces/ipsum-hosts.txt.zst") {
            let trace = from_reader::<V4>(zstd::Decoder::new(file).unwrap(), "ipsum", None).unwrap();
            assert_eq!((trace.keys.len(), trace.other_family, trace.damage), (120_430, 0, None));
        }
        if let Some(file) = real_file("traces/zeek-smtp-many-addresses.pcap.gz") {
            let source = flate2::read::MultiGzDecoder::new(file);
            let trace = from_reader::<V4>(source, "zeek", None).unwrap();
            assert!(trace.keys.len() > 10 && trace.damage.is_none(), "{trace}");
        }
    }

    #[test]
    fn noise_is_an_error_or_a_trace_but_never_a_panic() {
        let mut rng = wirespeed_rng::Rng::new(4);
        for len in 0..300 {
            let noise: Vec<u8> = (0..len).map(|_| rng.bits().to_le_bytes()[0]).collect();
            for format in [None, Some(Format::Text), Some(Format::Packed), Some(Format::Capture)] {
                let _ = from_reader::<V4>(&noise[..], "noise", format);
                let _ = from_reader::<V6>(&noise[..], "noise", format);
            }
        }
    }
}
