//! [`How`]: options for reading a file, as fields and as text, and which content each is for.

use std::path::Path;

use wirespeed_classify::read::RuleFormat;
use wirespeed_fib::read::{BadOption, Format, ReadOptions};
use wirespeed_namelookup::read::lists::ListFormat;
use wirespeed_namelookup::read::{NameFormat, ReadOptions as NameOptions};

use super::{Content, ContentError};
use crate::classify::TupleName;

/// Options for reading a file.
///
/// Programs that take options as text, such as those of SQL, [set](Self::set) them by name.
#[derive(Clone, Debug, Default)]
pub struct How {
    /// The format. By default recognised by content.
    pub content: Option<Content>,
    /// Options for routes. Their format is not heeded.
    pub routes: ReadOptions,
    /// Options for names: the columns of CSV. Their form is not heeded.
    pub names: NameOptions,
    /// Whether wrong lines are passed over, and rules that header fields can't decide are left out.
    pub lenient: bool,
    /// Facts about all packets that decide rules: [`assume`](crate::classify::ClassifierBuilder::assume).
    pub assume: Vec<String>,
    /// The tuple of rules, of IPv4 or IPv6. By default recognised by content; a file of rules of both
    /// families is refused then, unless wrong lines are passed over.
    pub tuple: Option<TupleName>,
    /// The chain of rules, the security groups or the network policy:
    /// [`chain`](crate::classify::ClassifierBuilder::chain).
    pub chain: Option<String>,
    /// The table of rules, or the direction:
    /// [`rule_table`](crate::classify::ClassifierBuilder::rule_table).
    pub rule_table: Option<String>,
    /// Whether only the ICANN section of the Public Suffix List is read.
    pub icann_only: bool,
}

/// The reason why options for reading are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HowError {
    /// No option has the name.
    #[error("no option for reading is called {name:?}: there are {}", How::names().collect::<Vec<_>>().join(", "))]
    Unknown {
        /// The name.
        name: String,
    },
    /// The option was set before.
    #[error("{option} is given twice")]
    Twice {
        /// The option.
        option: &'static str,
    },
    /// The option can't have the value.
    #[error("{option}={value}: {reason}")]
    Value {
        /// The option.
        option: &'static str,
        /// The value.
        value: String,
        /// The reason.
        reason: String,
    },
    /// The file has no use for the option.
    #[error("{option} is for {wanted}, and the file is of the format {found}")]
    NotFor {
        /// The option.
        option: &'static str,
        /// The content that has a use for it.
        wanted: &'static str,
        /// The content of the file.
        found: Content,
    },
}

/// An option that only some content has a use for.
struct Particular {
    name: &'static str,
    wanted: &'static str,
    is_set: fn(&How) -> bool,
    is_for: fn(Content) -> bool,
}

fn is_routes(content: Content, is_one: fn(Format) -> bool) -> bool {
    matches!(content, Content::Routes(format) if is_one(format))
}

fn is_rules(content: Content, is_one: fn(RuleFormat) -> bool) -> bool {
    matches!(content, Content::Rules(format) if is_one(format))
}

const WITH_PEERS: &str = "MRT and bgpdump";
const WITH_CHAINS: &str = "iptables-save, nft, security groups and network policies";

const PARTICULAR: [Particular; 14] = [
    Particular {
        name: "peer",
        wanted: WITH_PEERS,
        is_set: |how| how.routes.peer.is_some(),
        is_for: |content| is_routes(content, Format::names_peers),
    },
    Particular {
        name: "vrf",
        wanted: "FRR's JSON",
        is_set: |how| how.routes.vrf.is_some(),
        is_for: |content| is_routes(content, |format| format == Format::FrrJson),
    },
    Particular {
        name: "set",
        wanted: "sets of ipset and nft",
        is_set: |how| how.routes.set.is_some(),
        is_for: |content| is_routes(content, Format::has_sets),
    },
    Particular {
        name: "origins",
        wanted: WITH_PEERS,
        is_set: |how| how.routes.origins,
        is_for: |content| is_routes(content, Format::names_peers),
    },
    Particular {
        name: "mask-host-bits",
        wanted: "routes",
        is_set: |how| how.routes.mask_host_bits,
        is_for: |content| is_routes(content, |_| true),
    },
    Particular {
        name: "value-columns",
        wanted: "formats with fields: CSV, MaxMind DBs, ranges of clouds and delegations",
        is_set: |how| !(how.routes.columns.values.is_empty() && how.names.columns.values.is_empty()),
        is_for: |content| matches!(content, Content::Names(_)) || is_routes(content, Format::has_fields),
    },
    Particular {
        name: "prefix-columns or range-columns",
        wanted: "CSV",
        is_set: |how| how.routes.columns.prefix.is_some(),
        is_for: |content| is_routes(content, |format| format == Format::Csv),
    },
    Particular {
        name: "address-numbers",
        wanted: "CSV",
        is_set: |how| how.routes.columns.numbers.is_some(),
        is_for: |content| is_routes(content, |format| format == Format::Csv),
    },
    Particular {
        name: "name-column",
        wanted: "names in CSV",
        is_set: |how| how.names.columns.name.is_some(),
        is_for: |content| matches!(content, Content::Names(_)),
    },
    Particular {
        name: "assume",
        wanted: "rules",
        is_set: |how| !how.assume.is_empty(),
        is_for: |content| is_rules(content, |_| true),
    },
    Particular {
        name: "tuple",
        wanted: "rules",
        is_set: |how| how.tuple.is_some(),
        is_for: |content| is_rules(content, |_| true),
    },
    Particular {
        name: "chain",
        wanted: WITH_CHAINS,
        is_set: |how| how.chain.is_some(),
        is_for: |content| is_rules(content, RuleFormat::has_chains),
    },
    Particular {
        name: "rule-table",
        wanted: WITH_CHAINS,
        is_set: |how| how.rule_table.is_some(),
        is_for: |content| is_rules(content, RuleFormat::has_chains),
    },
    Particular {
        name: "icann",
        wanted: "the Public Suffix List",
        is_set: |how| how.icann_only,
        is_for: |content| content == Content::List(ListFormat::Psl),
    },
];

impl How {
    /// The names beside those of [`ReadOptions`].
    const NAMES: [&str; 7] = ["name-column", "lenient", "assume", "tuple", "chain", "rule-table", "icann"];

    /// The names that [`set`](Self::set) takes.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ReadOptions::NAMES.into_iter().chain(Self::NAMES)
    }

    /// Sets an option by its name, which is that of `lookupctl`'s option: `chain`, `range-columns`. Values of
    /// several parts have commas between. An option that is on or off has an empty value. `assume` may be set
    /// several times.
    ///
    /// ```
    /// use wirespeed::content::How;
    ///
    /// let mut how = How::default();
    /// how.set("chain", "FORWARD")?;
    /// how.set("range-columns", "first,last")?;
    /// how.set("lenient", "")?;
    /// assert_eq!(how.chain.as_deref(), Some("FORWARD"));
    /// assert!(how.set("chain", "INPUT").is_err() && how.set("chains", "INPUT").is_err());
    /// # Ok::<(), wirespeed::content::HowError>(())
    /// ```
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), HowError> {
        let unknown = || HowError::Unknown { name: name.to_owned() };
        let option = Self::names().find(|known| *known == name).ok_or_else(unknown)?;
        let wrong = |reason: &dyn ToString| HowError::Value {
            option,
            value: value.to_owned(),
            reason: reason.to_string(),
        };
        let is_switch = matches!(option, "origins" | "mask-host-bits" | "lenient" | "icann");
        match (is_switch, value.is_empty()) {
            (true, false) => return Err(wrong(&"the option is set by its name alone")),
            (false, true) => return Err(wrong(&"the option needs a value")),
            _ => {}
        }
        let text = || value.to_owned();
        let Self { content, routes, names, lenient, assume, tuple, chain, rule_table, icann_only } = self;
        let is_first = match option {
            "format" => content.replace(value.parse().map_err(|error| wrong(&error))?).is_none(),
            "name-column" => names.columns.name.replace(text()).is_none(),
            "lenient" => !std::mem::replace(lenient, true),
            "assume" => {
                assume.push(text());
                true
            }
            "tuple" => tuple
                .replace(match TupleName::of(value) {
                    Some(tuple @ (TupleName::Ipv4 | TupleName::Ipv6)) => tuple,
                    _ => return Err(wrong(&"a tuple is ipv4 or ipv6")),
                })
                .is_none(),
            "chain" => chain.replace(text()).is_none(),
            "rule-table" => rule_table.replace(text()).is_none(),
            "icann" => !std::mem::replace(icann_only, true),
            // The others are those of routes.
            _ => match routes.state(option, if is_switch { "true" } else { value }) {
                Ok(()) => true,
                Err(BadOption::Twice(_)) => false,
                Err(BadOption::Value { why, .. }) => return Err(wrong(&why)),
                Err(_) => return Err(unknown()),
            },
        };
        // Names have the columns of their values, too.
        names.columns.values.clone_from(&routes.columns.values);
        if is_first { Ok(()) } else { Err(HowError::Twice { option }) }
    }

    /// The content of a file: what is stated here, or else what is recognised. A file that is not recognised
    /// is CSV if columns are named, of domains if one of them is the column of names.
    pub fn content_of(&self, path: &Path) -> Result<Content, ContentError> {
        match self.content.map_or_else(|| Content::of_file(path), Ok) {
            Err(ContentError::Unknown { .. }) if self.names.columns.name.is_some() => {
                Ok(Content::Names(NameFormat::Domains))
            }
            Err(ContentError::Unknown { .. }) if self.routes.columns.is_given() => {
                Ok(Content::Routes(Format::Csv))
            }
            content => content,
        }
    }

    /// Refuses an option that a file of this content has no use for. Wrong lines may be passed over in any
    /// file.
    pub fn check(&self, content: Content) -> Result<(), HowError> {
        check_all(&[(self, content)]).map_err(|(_, error)| error)
    }
}

/// Refuses an option that no file has a use for, of those that it is set for. Returns the first of these,
/// too.
pub(super) fn check_all(files: &[(&How, Content)]) -> Result<(), (usize, HowError)> {
    for Particular { name, wanted, is_set, is_for } in PARTICULAR {
        let mut set_for = files.iter().enumerate().filter(|(_, (how, _))| is_set(how));
        if let Some((at, &(_, found))) = set_for.next()
            && !is_for(found)
            && !set_for.any(|(_, (_, content))| is_for(*content))
        {
            return Err((at, HowError::NotFor { option: name, wanted, found }));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn how(options: &[(&str, &str)]) -> Result<How, String> {
        let mut how = How::default();
        for (name, value) in options {
            how.set(name, value).map_err(|error| error.to_string())?;
        }
        Ok(how)
    }

    #[test]
    fn each_option_is_set_once_and_has_its_content() {
        for (name, value, content) in [
            ("format", "mrt", "csv"),
            ("peer", "AS64496", "mrt"),
            ("vrf", "red", "frr-json"),
            ("set", "blocked", "ipset"),
            ("origins", "", "bgpdump"),
            ("mask-host-bits", "", "plain"),
            ("value-columns", "asn,site", "mmdb"),
            ("prefix-columns", "net,len", "csv"),
            ("range-columns", "first,last", "csv"),
            ("address-numbers", "6", "csv"),
            ("name-column", "site", "urls"),
            ("lenient", "", "hosts"),
            ("assume", "ct=new", "rules"),
            ("tuple", "ipv6", "classbench"),
            ("chain", "FORWARD", "iptables"),
            ("rule-table", "egress", "security-groups"),
            ("icann", "", "psl"),
        ] {
            let one = how(&[(name, value)]).unwrap();
            one.check(content.parse().unwrap()).unwrap();
            let twice = how(&[(name, value), (name, value)]);
            assert_eq!(twice.is_ok(), name == "assume", "{name}");
            // Files of names, and images, have no use for most.
            let is_for_all = matches!(name, "format" | "lenient");
            for other in [Content::Image, "hosts".parse().unwrap()] {
                assert_eq!(one.check(other).is_ok(), is_for_all, "{name}");
            }
        }
        assert_eq!(How::names().count(), 17);
        let said = how(&[("chain", "x")]).unwrap().check("mrt".parse().unwrap()).unwrap_err().to_string();
        assert!(
            said.starts_with("chain is for iptables-save") && said.ends_with("of the format mrt"),
            "{said}"
        );
        // One of several files has a use for it.
        let (set, other) = (how(&[("set", "x")]).unwrap(), How::default());
        let contents = ["mrt", "ipset"].map(|name| name.parse::<Content>().unwrap());
        assert!(check_all(&[(&set, contents[0]), (&set, contents[1])]).is_ok());
        assert_eq!(check_all(&[(&other, contents[1]), (&set, contents[0])]).unwrap_err().0, 1);
    }

    #[test]
    fn what_is_no_option_or_value_is_refused() {
        for (name, value, said) in [
            ("chains", "x", "no option for reading is called \"chains\": there are format, peer"),
            ("chain", "", "chain=: the option needs a value"),
            ("origins", "no", "origins=no: the option is set by its name alone"),
            ("format", "mrtt", "format=mrtt: no format is called"),
            ("peer", "x", "peer=x: "),
            ("value-columns", "a,,b", "a column has a name"),
            ("prefix-columns", "a,", "a column has a name"),
            ("range-columns", "first", "a range has two columns"),
            ("address-numbers", "5", "a family is 4 or 6"),
            ("tuple", "openflow", "a tuple is ipv4 or ipv6"),
        ] {
            let error = how(&[(name, value)]).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        let both = how(&[("prefix-columns", "net"), ("range-columns", "a,b")]).unwrap_err();
        assert_eq!(both, "range-columns is given twice");
    }
}
