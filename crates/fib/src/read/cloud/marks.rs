//! The first bytes of files of cloud providers.

use super::super::format::Format;

/// The first members of a file, and members of which one appears soon, of each provider.
const MARKS: [(Format, &[&str], &[&str]); 5] = [
    (Format::Aws, &["syncToken", "createDate", "prefixes", "ipv6_prefixes"], &["ip_prefix", "ipv6_prefix"]),
    (Format::Gcp, &["syncToken", "creationTime", "prefixes"], &["ipv4Prefix", "ipv6Prefix"]),
    (Format::Azure, &["changeNumber", "cloud", "values"], &["addressPrefixes"]),
    (Format::Oracle, &["last_updated_timestamp", "regions"], &["cidrs"]),
    (Format::Cloudflare, &["result", "success", "errors", "messages"], &["ipv4_cidrs", "ipv6_cidrs"]),
];

/// The provider whose JSON starts like this. `None` for other JSON.
pub(in crate::read) fn recognise(start: &[u8]) -> Option<Format> {
    let start = std::str::from_utf8(start).unwrap_or_else(|cut| {
        // A character may be cut in two at the end.
        std::str::from_utf8(&start[..cut.valid_up_to()]).unwrap_or_default()
    });
    let object = start.trim_start().strip_prefix('{')?.trim_start().strip_prefix('"')?;
    let first = object.split('"').next()?;
    let has = |key: &&str| start.contains(&format!("\"{key}\""));
    let fits =
        |(_, firsts, keys): &&(Format, &[&str], &[&str])| firsts.contains(&first) && keys.iter().any(has);
    MARKS.iter().find(fits).map(|(format, ..)| *format)
}
