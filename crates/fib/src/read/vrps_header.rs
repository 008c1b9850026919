//! The first bytes of files of VRPs: JSON with payloads, or the columns of CSV.

use super::csv::cells::{BadQuotes, Cells, Separator};

/// Whether JSON starts like payloads: an object with payloads that starts with them or with metadata.
pub(super) fn is_json(start: &[u8]) -> bool {
    let Some(object) = start.trim_ascii_start().strip_prefix(b"{") else { return false };
    let object = object.trim_ascii_start();
    let is_first = [&b"\"metadata\""[..], b"\"roas\""].iter().any(|key| object.starts_with(key));
    is_first && object.windows(6).any(|bytes| bytes == b"\"roas\"")
}

/// Whether a line names the columns of payloads.
pub(super) fn is_csv(line: &str) -> bool {
    Columns::find(line).is_ok()
}

/// The columns of payloads in CSV.
pub(super) struct Columns {
    pub(super) separator: Separator,
    pub(super) len: usize,
    pub(super) asn: usize,
    pub(super) prefix: usize,
    pub(super) max_len: usize,
}

impl Columns {
    /// Finds the columns. Fails with the names that there are.
    pub(super) fn find(line: &str) -> Result<Self, String> {
        let separator = Separator::of(line.as_bytes());
        let mut cells = Cells::default();
        cells.split(line, separator).map_err(|BadQuotes| "unknown".to_owned())?;
        let names = cells.as_slice();
        let find = |name| names.iter().position(|cell| cell.eq_ignore_ascii_case(name));
        match (find("asn"), find("ip prefix"), find("max length")) {
            (Some(asn), Some(prefix), Some(max_len)) => {
                Ok(Self { separator, len: names.len(), asn, prefix, max_len })
            }
            _ => Err(names.join(", ")),
        }
    }
}
