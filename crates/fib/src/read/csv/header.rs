//! The first line of a CSV file: the columns of the prefix, and those of the value.

use std::net::IpAddr;

use super::cells::{BadQuotes, Cells, Separator, quoted};
use super::columns::{Columns, PrefixColumns};

/// Usual names of columns, without case, blanks and punctuation.
const PREFIX: [&str; 10] = [
    "prefix",
    "network",
    "cidr",
    "subnet",
    "ipprefix",
    "ipnetwork",
    "ipcidr",
    "cidrblock",
    "addressblock",
    "addressprefix",
];
const FIRST: [&str; 10] = [
    "startip",
    "ipstart",
    "start",
    "firstip",
    "ipfirst",
    "rangestart",
    "ipfrom",
    "startaddress",
    "firstaddress",
    "startipaddress",
];
const LAST: [&str; 10] = [
    "endip",
    "ipend",
    "end",
    "lastip",
    "iplast",
    "rangeend",
    "ipto",
    "endaddress",
    "lastaddress",
    "endipaddress",
];
/// Names of ranges of anything, which may hold other numbers than addresses: times, positions.
const ANY_RANGE: [&str; 4] = ["start", "rangestart", "end", "rangeend"];
const ADDRESS: [&str; 4] = ["address", "ip", "ipaddress", "networkaddress"];
const LENGTH: [&str; 9] =
    ["length", "len", "prefixlength", "prefixlen", "masklength", "masklen", "mask", "netmask", "subnetmask"];

/// Whether a file with these first lines is CSV for certain: the first line has usual names. Where it has one
/// name alone, which could be any word, the second line has a prefix.
pub(in crate::read) fn is_start(first: &str, second: Option<&str>) -> bool {
    let Ok(header) = Header::find(first, &Columns::default()) else { return false };
    let mut cells = Cells::default();
    header.names.len() > 1
        || second.is_none_or(|line| {
            let is_whole = cells.split(line, header.separator).is_ok();
            let key = cells.as_slice().first().and_then(|cell| cell.split(['/', '-']).next());
            is_whole && key.is_some_and(is_address)
        })
}

/// Whether a column of this name is a value's, after a first column named `prefix`.
pub(in crate::read) fn is_value(name: &str) -> bool {
    let line = format!("prefix,{}", quoted(name));
    let header = Header::find(&line, &Columns::default());
    let is_so = |header: Header| header.key == Key::Prefix(0) && header.names[1..] == [name];
    !name.contains(['\n', '\r']) && header.is_ok_and(is_so)
}

fn is_address(word: &str) -> bool {
    word.trim().parse::<IpAddr>().is_ok()
}

/// The columns in which a record has its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A prefix, or a range within one cell.
    Prefix(usize),
    /// The first and the last address.
    Range(usize, usize),
    /// An address and a length or netmask.
    Length(usize, usize),
}

/// The columns of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) separator: Separator,
    pub(super) key: Key,
    /// The columns of the value.
    pub(super) values: Vec<usize>,
    pub(super) names: Vec<String>,
    /// Whether the columns of the prefix may hold numbers of addresses without a stated family.
    pub(super) is_of_addresses: bool,
}

/// A problem with the first line, and the names that it has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unfit {
    pub(super) problem: String,
    pub(super) columns: String,
}

impl Header {
    /// Finds the columns that are wanted, or have usual names. Without wanted values all other columns are
    /// the value's.
    pub(super) fn find(line: &str, wanted: &Columns) -> Result<Self, Unfit> {
        let separator = Separator::of(line.as_bytes());
        let mut cells = Cells::default();
        if let Err(BadQuotes) = cells.split(line, separator) {
            return Err(Unfit { problem: "quotes that don't fit".into(), columns: "unknown".into() });
        }
        let names = cells.as_slice().to_vec();
        let unfit = |problem| Unfit { problem, columns: listed(&names) };
        let named = |name: &String| column(&names, name);
        let key = match &wanted.prefix {
            Some(PrefixColumns::Prefix(prefix)) => named(prefix).map(Key::Prefix),
            Some(PrefixColumns::Range(first, last)) => {
                named(first).and_then(|first| Ok(Key::Range(first, named(last)?)))
            }
            Some(PrefixColumns::Length(address, len)) => {
                named(address).and_then(|address| Ok(Key::Length(address, named(len)?)))
            }
            None => usual(&names),
        }
        .map_err(unfit)?;
        let values = if wanted.values.is_empty() {
            (0..names.len()).filter(|&at| !key.holds(at)).collect()
        } else {
            wanted.values.iter().map(named).collect::<Result<_, _>>().map_err(unfit)?
        };
        let is_any = |at: usize| ANY_RANGE.contains(&plain(&names[at]).as_str());
        let is_of_addresses = match key {
            Key::Range(first, last) => wanted.prefix.is_some() || !(is_any(first) || is_any(last)),
            Key::Prefix(_) | Key::Length(..) => false,
        };
        Ok(Self { separator, key, values, names, is_of_addresses })
    }
}

impl Key {
    /// The cells of the prefix in a whole record: one, or two.
    pub(super) fn cells(self, cells: &[String]) -> (&str, &str) {
        match self {
            Self::Prefix(prefix) => (&cells[prefix], ""),
            Self::Range(one, other) | Self::Length(one, other) => (&cells[one], &cells[other]),
        }
    }

    /// Whether the prefix takes this column.
    fn holds(self, column: usize) -> bool {
        match self {
            Self::Prefix(prefix) => column == prefix,
            Self::Range(one, other) | Self::Length(one, other) => column == one || column == other,
        }
    }
}

/// The columns of the prefix by their usual names: a prefix, alone or with a length; else a range; else an
/// address and a length.
fn usual(names: &[String]) -> Result<Key, String> {
    let find = |usual: &[&str]| usual_column(names, usual, "the prefix");
    if let Some(prefix) = find(&PREFIX)? {
        return Ok(find(&LENGTH)?.map_or(Key::Prefix(prefix), |len| Key::Length(prefix, len)));
    }
    match (find(&FIRST)?, find(&LAST)?) {
        (Some(first), Some(last)) => return Ok(Key::Range(first, last)),
        (Some(_), None) => return Err("a column with the first address, and none with the last one".into()),
        (None, _) => {}
    }
    match find(&ADDRESS)? {
        Some(address) => Ok(find(&LENGTH)?.map_or(Key::Prefix(address), |len| Key::Length(address, len))),
        None => {
            Err("no column is named like a prefix (network, prefix, cidr, start_ip and end_ip, ip)".into())
        }
    }
}

/// The only column of a name.
pub fn column(names: &[String], name: &str) -> Result<usize, String> {
    let mut found = (0..names.len()).filter(|&at| names[at] == name);
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => Err(format!("two columns are named {name}")),
        (None, _) => Err(format!("no column {name}")),
    }
}

/// The only column whose name, without case, blanks and punctuation, is one of these. `what` it may hold is
/// for the error if there are several.
pub fn usual_column(names: &[String], usual: &[&str], what: &str) -> Result<Option<usize>, String> {
    let mut found = (0..names.len()).filter(|&at| usual.contains(&plain(&names[at]).as_str()));
    match (found.next(), found.next()) {
        (Some(one), Some(other)) => {
            Err(format!("both {} and {} may hold {what}: name the one", names[one], names[other]))
        }
        (one, _) => Ok(one),
    }
}

/// A name without case, blanks and punctuation.
fn plain(name: &str) -> String {
    name.chars().filter(|symbol| symbol.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The names for a message.
pub fn listed(names: &[String]) -> String {
    const SHOWN: usize = 20;
    // A line that is no header may be one long name.
    const LONGEST: usize = 40;
    let short = |name: &String| match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", name[..end].escape_debug()),
        None => name.escape_debug().to_string(),
    };
    let shown: Vec<_> = names.iter().take(SHOWN).map(short).collect();
    shown.join(", ") + if names.len() > SHOWN { ", …" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(line: &str) -> Result<Key, String> {
        Header::find(line, &Columns::default()).map(|header| header.key).map_err(|unfit| unfit.problem)
    }

    #[test]
    fn names_for_messages_are_cut() {
        let names = |count: usize, len: usize| vec!["x".repeat(len); count];
        assert_eq!(listed(&names(20, 40)), names(20, 40).join(", "));
        assert_eq!(listed(&names(1, 41)), format!("{}…", "x".repeat(40)));
        assert!(listed(&names(21, 1)).ends_with("x, …"));
    }

    #[test]
    fn usual_names() {
        for (line, found) in [
            ("network,asn", Key::Prefix(0)),
            ("asn\tIP Prefix", Key::Prefix(1)),
            ("Network;Prefix_Length;x", Key::Length(0, 1)),
            ("start_ip,end_ip,country", Key::Range(0, 1)),
            ("a,IP-From,ip_to", Key::Range(1, 2)),
            ("address,netmask", Key::Length(0, 1)),
            ("host,ip", Key::Prefix(1)),
            ("\"network\",\"org, name\"", Key::Prefix(0)),
        ] {
            assert_eq!(key(line), Ok(found), "{line}");
        }
        assert!(key("network,cidr").unwrap_err().starts_with("both network and cidr"));
        assert!(key("a,b").unwrap_err().starts_with("no column is named like a prefix"));
        assert!(key("start_ip,x").unwrap_err().contains("none with the last one"));
    }

    #[test]
    fn columns_by_name() {
        let wanted = Columns {
            prefix: Some(PrefixColumns::Prefix("b".into())),
            values: vec!["c".into(), "a".into()],
            numbers: None,
        };
        let header = Header::find("a,b,c,d", &wanted).unwrap();
        assert_eq!((header.key, header.values), (Key::Prefix(1), vec![2, 0]));
        let unfit = Header::find("a,B,c", &wanted).unwrap_err();
        assert_eq!((unfit.problem.as_str(), unfit.columns.as_str()), ("no column b", "a, B, c"));
        assert_eq!(Header::find("a,b,b,c", &wanted).unwrap_err().problem, "two columns are named b");
        let all = Header::find("a,network,c", &Columns::default()).unwrap();
        assert_eq!(all.values, [0, 2]);
    }
}
