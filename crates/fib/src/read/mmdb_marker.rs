//! The first bytes of MaxMind DB files.

/// What stands before the metadata, at the end of a file.
const MARKER: &[u8] = b"\xab\xcd\xefMaxMind.com";

/// Whether bytes are the start of a MaxMind DB file. A small file shows its marker. A larger one starts with
/// the number of a node near the root, whose first byte is 0; no other format starts so.
pub(super) fn is_start(start: &[u8]) -> bool {
    start.first() == Some(&0) || is_in(start)
}

/// Whether the marker is among bytes.
pub(super) fn is_in(bytes: &[u8]) -> bool {
    bytes.windows(MARKER.len()).any(|bytes| bytes == MARKER)
}
