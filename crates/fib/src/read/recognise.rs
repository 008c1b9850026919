//! The recognition of formats by the first bytes of a file.

use std::net::IpAddr;

use super::csv::header::is_start as is_csv;
use super::format::Format;
use super::starts::{self, Provider};
use super::text::{TYPES, first_cell, words};
use super::{mmdb_marker, mrt_header, vrps_header};

impl Format {
    /// Recognises the format by the first bytes of a file. `None` if they fit no format. Text without a
    /// significant line is [`Plain`](Self::Plain).
    pub fn recognise(start: &[u8]) -> Option<Self> {
        let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
        if mrt_header::is_header(start) {
            return Some(Self::Mrt);
        }
        if mmdb_marker::is_start(start) {
            return Some(Self::Mmdb);
        }
        match start.iter().find(|b| !b.is_ascii_whitespace()) {
            Some(b'[') => return Some(Self::IpRouteJson),
            Some(b'{') if vrps_header::is_json(start) => return Some(Self::VrpJson),
            Some(b'{') if starts::is_nft(start) => return Some(Self::NftSets),
            Some(b'{') => return Some(starts::provider(start).map_or(Self::FrrJson, Self::of_cloud)),
            _ => {}
        }
        if let Some(format) = csv_of(start) {
            return Some(format);
        }
        let mut significant = start
            .split(|&b| b == b'\n')
            .map(|line| line.split(|&b| b == b'#').next().unwrap_or_default().trim_ascii_end())
            .filter(|line| !line.is_empty())
            .take(64)
            .peekable();
        if significant.peek().is_none() {
            return Some(Self::Plain);
        }
        while let Some(line) = significant.next() {
            match Self::of_line(line.trim_ascii_start()) {
                // `ip route` writes a bare prefix only before the lines of a group; otherwise it is a list of
                // prefixes.
                Some(Self::Plain)
                    if is_one_word(line) && significant.peek().is_some_and(|next| is_member(next)) =>
                {
                    return Some(Self::IpRoute);
                }
                Some(format) => return Some(format),
                None => {}
            }
        }
        None
    }

    /// The format that a line fits, if any.
    fn of_line(line: &[u8]) -> Option<Self> {
        if line.starts_with(b"TABLE_DUMP") || line.starts_with(b"BGP4MP") {
            return line.contains(&b'|').then_some(Self::Bgpdump);
        }
        let line = std::str::from_utf8(line).ok()?;
        if starts::is_delegated(line) {
            return Some(Self::Delegated);
        }
        if starts::is_ipset(line) {
            return Some(Self::Ipset);
        }
        let mut columns = words(line);
        let first = columns.next()?;
        let second = columns.next();
        let third = columns.next();
        let is_update = |word: &str| matches!(word, "A" | "W");
        if is_update(first) || first.parse::<f64>().is_ok() && second.is_some_and(is_update) {
            return Some(Self::Updates);
        }
        if first == "default" || TYPES.contains(&first) {
            return Some(Self::IpRoute);
        }
        // A line of CSV is left to the plain reader, whose error says so.
        let first = first_cell(first);
        let (address, len) = first.split_once('/').unwrap_or((first, ""));
        address.parse::<IpAddr>().ok()?;
        match (second, third) {
            (Some(second), Some(_)) if len.is_empty() && second.parse::<u8>().is_ok() => Some(Self::Pfx2as),
            (Some("via" | "dev" | "proto" | "scope" | "metric" | "nexthop" | "nhid"), _) => {
                Some(Self::IpRoute)
            }
            _ => Some(Self::Plain),
        }
    }

    /// The format in which a cloud provider publishes its ranges.
    const fn of_cloud(provider: Provider) -> Self {
        match provider {
            Provider::Aws => Self::Aws,
            Provider::Gcp => Self::Gcp,
            Provider::Azure => Self::Azure,
            Provider::Oracle => Self::Oracle,
            Provider::Cloudflare => Self::Cloudflare,
        }
    }
}

/// The format of CSV whose columns the first line that is no comment names.
fn csv_of(start: &[u8]) -> Option<Format> {
    let mut lines = start
        .split(|&b| b == b'\n')
        .filter(|line| !matches!(line.trim_ascii().first(), None | Some(b'#')))
        .map(std::str::from_utf8);
    let (Some(Ok(first)), second) = (lines.next(), lines.next()) else { return None };
    if vrps_header::is_csv(first) {
        return Some(Format::VrpCsv);
    }
    is_csv(first, second.and_then(Result::ok)).then_some(Format::Csv)
}

/// Whether a line holds nothing but a prefix.
fn is_one_word(line: &[u8]) -> bool {
    !line.trim_ascii_start().iter().any(u8::is_ascii_whitespace)
}

/// Whether a line continues a route of `ip route` with a member of its group.
fn is_member(line: &[u8]) -> bool {
    line[0].is_ascii_whitespace() && line.trim_ascii_start().starts_with(b"nexthop")
}
