//! The first bytes of files of VRPs: JSON with payloads, or the columns of CSV.

use super::csv::cells::{BadQuotes, Cells, Separator};
use super::csv::header::listed;

/// The arrays at the top of JSON, of rpki-client and Routinator.
const ARRAYS: [&[u8]; 5] = [b"aspas", b"bgpsec_keys", b"nonfunc_cas", b"roas", b"routerKeys"];

/// Whether JSON starts like payloads: an object that starts with one of its arrays, or with metadata and has
/// such an array. Where keys are sorted the payloads may be far behind the start.
pub(super) fn is_json(start: &[u8]) -> bool {
    /// What follows a sign and blanks.
    fn after<'s>(text: &'s [u8], sign: &[u8]) -> Option<&'s [u8]> {
        text.trim_ascii_start().strip_prefix(sign)
    }
    let Some(key) = after(start, b"{").and_then(|object| after(object, b"\"")) else { return false };
    let Some(end) = key.iter().position(|&b| b == b'"') else { return false };
    let (key, value) = key.split_at(end);
    if key == b"metadata" {
        return start.split(|&b| b == b'"').any(|part| ARRAYS.contains(&part));
    }
    // FRR's JSON may have a VRF of any name, but that is an object.
    let is_array = after(&value[1..], b":").and_then(|value| after(value, b"[")).is_some();
    ARRAYS.contains(&key) && is_array
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
    /// The column of trust anchors, if there is one.
    pub(super) anchor: Option<usize>,
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
                let anchor = find("trust anchor");
                Ok(Self { separator, len: names.len(), asn, prefix, max_len, anchor })
            }
            _ => Err(listed(names)),
        }
    }
}
