//! The first bytes of files, by which [`Format`](super::Format) recognises what is published. Here, and not
//! in the readers, because these need the format.

/// A cloud provider.
#[derive(Clone, Copy)]
pub(super) enum Provider {
    Aws,
    Gcp,
    Azure,
    Oracle,
    Cloudflare,
}

/// The first members of a file, and members of which one appears soon, of each provider.
const MARKS: [(Provider, &[&str], &[&str]); 5] = [
    (Provider::Aws, &["syncToken", "createDate", "prefixes", "ipv6_prefixes"], &["ip_prefix", "ipv6_prefix"]),
    (Provider::Gcp, &["syncToken", "creationTime", "prefixes"], &["ipv4Prefix", "ipv6Prefix"]),
    (Provider::Azure, &["changeNumber", "cloud", "values"], &["addressPrefixes"]),
    (Provider::Oracle, &["last_updated_timestamp", "regions"], &["cidrs"]),
    (Provider::Cloudflare, &["result", "success", "errors", "messages"], &["ipv4_cidrs", "ipv6_cidrs"]),
];

/// The provider whose JSON starts like this. `None` for other JSON.
pub(super) fn provider(start: &[u8]) -> Option<Provider> {
    let start = std::str::from_utf8(start).unwrap_or_else(|cut| {
        // A character may be cut in two at the end.
        std::str::from_utf8(&start[..cut.valid_up_to()]).unwrap_or_default()
    });
    let object = start.trim_start().strip_prefix('{')?.trim_start().strip_prefix('"')?;
    let first = object.split('"').next()?;
    let has = |key: &&str| start.contains(&format!("\"{key}\""));
    let fits =
        |(_, firsts, keys): &&(Provider, &[&str], &[&str])| firsts.contains(&first) && keys.iter().any(has);
    MARKS.iter().find(fits).map(|(provider, ..)| *provider)
}

/// Whether JSON starts like a list of nft.
pub(super) fn is_nft(start: &[u8]) -> bool {
    let object = start.trim_ascii_start().strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    object.is_some_and(|object| object.starts_with(b"\"nftables\""))
}

/// Whether a line starts a file of `ipset save`.
pub(super) fn is_ipset(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let types = ["hash:", "bitmap:", "list:set"];
    matches!(words.next(), Some("create" | "-N"))
        && words.nth(1).is_some_and(|kind| types.iter().any(|known| kind.starts_with(known)))
}

/// The registries, by their names in files.
pub(super) const REGISTRIES: [&str; 7] = ["afrinic", "apnic", "arin", "iana", "lacnic", "nro", "ripencc"];

/// Whether a line is the first one of a registry's file: a version and a registry.
pub(super) fn is_delegated(line: &str) -> bool {
    let mut columns = line.split('|');
    let version = columns.next().unwrap_or_default();
    let is_number = version.starts_with(|first: char| first.is_ascii_digit());
    is_number
        && version.parse::<f32>().is_ok()
        && columns.next().is_some_and(|name| REGISTRIES.contains(&name))
}
