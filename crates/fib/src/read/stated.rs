//! Options for reading by their names, for command lines, configurations and other languages.

use std::fmt;

use super::csv::PrefixColumns;
use super::{Columns, Format, PeerChoice, ReadOptions};
use crate::address::Family;

/// The reason why an option can't be stated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadOption {
    /// There is no option of this name.
    #[error("no option {name:?} for reading a table; there are {}", ReadOptions::NAMES.join(", "))]
    Unknown {
        /// The name.
        name: String,
    },
    /// The option does not have such a value.
    #[error("{name} {value:?}: {why}")]
    Value {
        /// The option.
        name: String,
        /// The value.
        value: String,
        /// The reason.
        why: String,
    },
    /// The option was stated before, or another one that says the opposite.
    #[error("{0} is stated twice")]
    Twice(String),
}

/// An option that no input heeds, because no input is of a format that has such a thing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option}: {why}")]
pub struct Unheeded {
    /// The option with its value.
    pub option: String,
    /// The reason.
    pub why: String,
}

impl ReadOptions {
    /// The names that [`state`](Self::state) takes: those of the options of `lookupctl build`.
    pub const NAMES: [&str; 10] = [
        "format",
        "peer",
        "vrf",
        "set",
        "origins",
        "mask-host-bits",
        "value-columns",
        "prefix-columns",
        "range-columns",
        "address-numbers",
    ];

    /// States an option by its name, with a value as a command line has it. `origins` and `mask-host-bits`
    /// are `true` or `false`.
    ///
    /// ```
    /// use wirespeed_fib::read::ReadOptions;
    ///
    /// let mut options = ReadOptions::default();
    /// options.state("set", "blocked")?;
    /// options.state("range-columns", "from,to")?;
    /// assert_eq!(options.set.as_deref(), Some("blocked"));
    /// assert!(options.state("set", "other").is_err());
    /// assert!(options.state("colour", "red").is_err());
    /// # Ok::<(), wirespeed_fib::read::BadOption>(())
    /// ```
    pub fn state(&mut self, name: &str, value: &str) -> Result<(), BadOption> {
        let bad = |why: &dyn fmt::Display| BadOption::Value {
            name: name.to_owned(),
            value: value.to_owned(),
            why: why.to_string(),
        };
        let flag = || value.parse::<bool>().map_err(|_| bad(&"it is true or false"));
        let text = || match value {
            "" => Err(bad(&"it has a name")),
            value => Ok(value.to_owned()),
        };
        let is_new = match name {
            "format" => put(&mut self.format, value.parse().map_err(|error| bad(&error))?),
            "peer" => put(&mut self.peer, value.parse::<PeerChoice>().map_err(|error| bad(&error))?),
            "vrf" => put(&mut self.vrf, text()?),
            "set" => put(&mut self.set, text()?),
            "origins" => !std::mem::replace(&mut self.origins, flag()?),
            "mask-host-bits" => !std::mem::replace(&mut self.mask_host_bits, flag()?),
            "value-columns" => {
                let values: Vec<_> = value.split(',').map(str::to_owned).collect();
                if values.iter().any(String::is_empty) {
                    return Err(bad(&"a column has a name"));
                }
                std::mem::replace(&mut self.columns.values, values).is_empty()
            }
            "prefix-columns" => {
                put(&mut self.columns.prefix, PrefixColumns::of_prefix(value).map_err(|why| bad(&why))?)
            }
            "range-columns" => {
                put(&mut self.columns.prefix, PrefixColumns::of_range(value).map_err(|why| bad(&why))?)
            }
            "address-numbers" => {
                put(&mut self.columns.numbers, family(value).ok_or_else(|| bad(&"a family is 4 or 6"))?)
            }
            _ => return Err(BadOption::Unknown { name: name.to_owned() }),
        };
        if is_new { Ok(()) } else { Err(BadOption::Twice(name.to_owned())) }
    }

    /// Refuses an option for something that no input has: peers, AS paths, fields, sets, VRFs. `tables` and
    /// `updates` are the formats that were read.
    pub fn check_heeded(&self, tables: &[Format], updates: Option<Format>) -> Result<(), Unheeded> {
        let unheeded = |option: String, why: &str| Err(Unheeded { option, why: why.to_owned() });
        let any = |has: fn(Format) -> bool| tables.iter().any(|&format| has(format));
        let updates_have_peers = updates.is_some_and(Format::names_peers);
        let has_peers = any(Format::names_peers) || updates_have_peers;
        match self.peer {
            Some(PeerChoice::All) if !updates_have_peers => {
                return unheeded(
                    "peer all".into(),
                    "it is for updates of MRT or bgpdump, and there are none",
                );
            }
            Some(peer) if !has_peers => {
                let why = "no input names peers: only MRT and bgpdump do";
                return unheeded(format!("peer {peer}"), why);
            }
            _ => {}
        }
        if self.origins && !has_peers {
            return unheeded("origins".into(), "no input has AS paths: only MRT and bgpdump do");
        }
        if let Some(option) = self.columns.given().filter(|_| !any(Format::has_fields)) {
            let formats = Format::ALL.into_iter().filter(|format| format.has_fields()).map(Format::name);
            let why = format!("no input has fields by name: {} do", formats.collect::<Vec<_>>().join(", "));
            return unheeded(option.into(), &why);
        }
        match (&self.set, &self.vrf) {
            (Some(set), _) if !any(Format::has_sets) => {
                unheeded(format!("set {set}"), "no input names sets: only those of ipset and nft do")
            }
            (_, Some(vrf)) if !any(|format| format == Format::FrrJson) => {
                let why = "no input names VRFs: only FRR's JSON and images of VRFs do";
                unheeded(format!("vrf {vrf}"), why)
            }
            _ => Ok(()),
        }
    }
}

impl Columns {
    /// The first option that names columns, if one is given.
    fn given(&self) -> Option<&'static str> {
        match self {
            Self { values, .. } if !values.is_empty() => Some("value-columns"),
            Self { prefix: Some(PrefixColumns::Range(..)), .. } => Some("range-columns"),
            Self { prefix: Some(_), .. } => Some("prefix-columns"),
            Self { numbers, .. } => numbers.map(|_| "address-numbers"),
        }
    }
}

/// Puts a value where none is. Returns whether none was.
fn put<T>(place: &mut Option<T>, value: T) -> bool {
    place.replace(value).is_none()
}

fn family(text: &str) -> Option<Family> {
    match text {
        "4" => Some(Family::V4),
        "6" => Some(Family::V6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_is_stated_by_its_name_and_once() {
        let values = ["csv", "AS64496", "red", "blocked", "true", "true", "a,b", "net,len", "from,to", "6"];
        for (name, value) in ReadOptions::NAMES.into_iter().zip(values) {
            let mut options = ReadOptions::default();
            options.state(name, value).unwrap();
            assert_ne!(options, ReadOptions::default(), "{name}");
            assert_eq!(options.state(name, value), Err(BadOption::Twice(name.to_owned())));
        }
        let mut options = ReadOptions::default();
        for (name, value, said) in [
            ("format", "nosuch", "unknown format \"nosuch\""),
            ("peer", "x", "peer \"x\": "),
            ("set", "", "it has a name"),
            ("origins", "yes", "origins \"yes\": it is true or false"),
            ("prefix-columns", "", "a column has a name"),
            ("value-columns", "a,,b", "a column has a name"),
            ("range-columns", "a", "two columns"),
            ("address-numbers", "5", "a family is 4 or 6"),
            ("colour", "red", "no option \"colour\" for reading a table; there are format, peer"),
        ] {
            let error = options.state(name, value).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        assert_eq!(options, ReadOptions::default());
        options.state("prefix-columns", "net").unwrap();
        assert!(options.state("range-columns", "a,b").is_err(), "the prefix has its columns");
    }

    #[test]
    fn options_that_no_input_heeds() {
        for (name, value, heeded, said) in [
            ("peer", "7", Format::Mrt, "peer 7: no input names peers"),
            ("origins", "true", Format::Bgpdump, "origins: no input has AS paths"),
            ("value-columns", "a", Format::Mmdb, "value-columns: no input has fields by name: csv, mmdb"),
            ("range-columns", "a,b", Format::Csv, "range-columns: no input has fields"),
            ("prefix-columns", "a", Format::Csv, "prefix-columns: no input has fields"),
            ("address-numbers", "4", Format::Csv, "address-numbers: no input has fields"),
            ("set", "a", Format::Ipset, "set a: no input names sets"),
            ("vrf", "red", Format::FrrJson, "vrf red: no input names VRFs"),
        ] {
            let mut options = ReadOptions::default();
            options.state(name, value).unwrap();
            assert_eq!(options.check_heeded(&[Format::Plain, heeded], None), Ok(()));
            let error = options.check_heeded(&[Format::Plain], None).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
        let all = ReadOptions { peer: Some(PeerChoice::All), ..ReadOptions::default() };
        assert!(all.check_heeded(&[Format::Mrt], None).is_err());
        assert_eq!(all.check_heeded(&[Format::Plain], Some(Format::Mrt)), Ok(()));
    }
}
