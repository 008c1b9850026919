//! The columns of a file that the caller names.

use crate::address::Family;

/// The columns of a CSV file to read, by the names on its first line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// The columns of the prefix. By default found by usual names (network, prefix, cidr, start_ip and
    /// end_ip, address and length, ...).
    pub prefix: Option<PrefixColumns>,
    /// The columns of the value. By default all columns but those of the prefix.
    pub values: Vec<String>,
    /// The family of addresses that are decimal numbers. By default only ranges in columns that are named by
    /// the caller, or have a usual name with `ip` or `address` in it, may be numbers: of IPv4 if both ends
    /// are at most 4294967295, and no number of the file is larger.
    pub numbers: Option<Family>,
}

impl Columns {
    /// Whether a column is named.
    pub fn is_given(&self) -> bool {
        *self != Self::default()
    }

    /// Whether something is stated of prefixes, which is for CSV alone.
    pub(in crate::read) fn is_of_prefixes(&self) -> bool {
        self.prefix.is_some() || self.numbers.is_some()
    }
}

/// The columns that make a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrefixColumns {
    /// A prefix, an address, or a range in one cell.
    Prefix(String),
    /// The first and the last address of a range.
    Range(String, String),
    /// An address, and a length or a netmask.
    Length(String, String),
}

impl PrefixColumns {
    /// Parses `NAME`, or `ADDRESS,LENGTH`.
    pub fn of_prefix(text: &str) -> Result<Self, &'static str> {
        match text.split_once(',') {
            Some((address, len)) if !address.is_empty() && !len.is_empty() => {
                Ok(Self::Length(address.to_owned(), len.to_owned()))
            }
            None if !text.is_empty() => Ok(Self::Prefix(text.to_owned())),
            _ => Err("a column has a name"),
        }
    }

    /// Parses `FIRST,LAST`.
    pub fn of_range(text: &str) -> Result<Self, &'static str> {
        match text.split_once(',') {
            Some((first, last)) if !first.is_empty() && !last.is_empty() => {
                Ok(Self::Range(first.to_owned(), last.to_owned()))
            }
            _ => Err("a range has two columns: FIRST,LAST"),
        }
    }
}
