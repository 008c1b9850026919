//! The columns of records that are looked up, and those that are added.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use wirespeed_fib::Family;
use wirespeed_fib::read::address_of_number;
use wirespeed_records::{Format, Plan, Role, added_name, address, listed};

use super::table::{Kind, Spec};

/// The columns that the command line names.
#[derive(Clone, Debug, Default)]
pub(super) struct Given {
    pub(super) src: Option<String>,
    pub(super) dst: Option<String>,
    pub(super) addresses: Vec<String>,
    pub(super) names: Vec<String>,
    pub(super) protocol: Option<String>,
    pub(super) sport: Option<String>,
    pub(super) dport: Option<String>,
    pub(super) icmp_type: Option<String>,
    pub(super) icmp_code: Option<String>,
    /// Whether matched prefixes are added.
    pub(super) prefix: bool,
    /// The family of addresses that are numbers.
    pub(super) numbers: Option<Family>,
}

/// A column that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// Its name in the records.
    pub(super) name: String,
    pub(super) role: Role,
}

/// The columns whose cells are looked up together: one, or the several of a 5-tuple.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) kind: Kind,
    /// The start of the names of the new columns. None for 5-tuples: a record has one.
    pub(super) label: Option<String>,
    pub(super) columns: Vec<Column>,
    /// The place of the first column among all that are read.
    pub(super) first: usize,
    /// The family of addresses that are numbers.
    pub(super) numbers: Option<Family>,
}

impl Key {
    /// The address of a cell.
    pub(super) fn address(&self, cell: &[u8]) -> Option<IpAddr> {
        let of_text = address(cell);
        let parsed = of_text.or_else(|| address_of_number(cell, self.numbers?));
        parsed.map(|address| address.to_canonical())
    }

    /// The name for messages.
    pub(super) fn shown(&self) -> &str {
        match (self.kind, &*self.columns) {
            (Kind::Rules, _) | (_, []) => "5-tuples",
            (_, [column, ..]) => &column.name,
        }
    }
}

/// A column that is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Added {
    /// The key that is looked up.
    pub(super) key: usize,
    /// The table that answers.
    pub(super) table: usize,
    pub(super) part: Part,
}

/// A part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A field of the value.
    Field(usize),
    /// The prefix that matched.
    Prefix,
    /// The number of the rule.
    Rule,
    /// The reasons why the answer of rules is uncertain.
    Because,
    /// The public suffix of a domain.
    Suffix,
    /// The registrable domain of a domain.
    Registrable,
}

/// All columns that are looked up and added.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) keys: Vec<Key>,
    pub(super) added: Vec<Added>,
    /// The names of those that are added.
    pub(super) names: Vec<String>,
}

impl Shape {
    /// The column that is read at a place.
    pub(super) fn column(&self, at: usize) -> Option<&Column> {
        self.keys.iter().flat_map(|key| &key.columns).nth(at)
    }
}

/// The shape, which is known from the first header on.
pub(super) type Shared = Arc<OnceLock<Shape>>;

/// Plans by the names of a header. Later headers of one stream get the plan of the first.
pub(super) fn plan(
    given: &Given,
    specs: &[Spec],
    shape: &Shared,
    format: Format,
    names: &[String],
) -> Result<Plan, String> {
    let keys = match shape.get() {
        Some(shape) => shape.keys.clone(),
        None => keys(given, specs, format, names)?,
    };
    let (mut added, mut added_names) = (Vec::new(), Vec::new());
    for (at, key) in keys.iter().enumerate() {
        for (table, spec) in specs.iter().enumerate().filter(|(_, spec)| spec.kind == key.kind) {
            let mut add = |part, name| {
                added.push(Added { key: at, table, part });
                added_names.push(name);
            };
            let name = |part| added_name(key.label.as_deref(), &spec.file.name, part);
            if spec.file.fields.is_empty() {
                add(Part::Field(0), name(None));
            }
            for (field, of) in spec.file.fields.iter().enumerate() {
                add(Part::Field(field), name(Some(of)));
            }
            if spec.kind == Kind::Rules {
                add(Part::Rule, name(Some("rule")));
                add(Part::Because, name(Some("uncertain_because")));
            } else if spec.of_suffixes {
                add(Part::Suffix, name(Some("suffix")));
                add(Part::Registrable, name(Some("registrable")));
            } else if given.prefix {
                add(Part::Prefix, name(Some("prefix")));
            }
        }
    }
    for (at, name) in added_names.iter().enumerate() {
        if added_names[..at].contains(name) {
            return Err(format!("two new columns would be named {name:?}: name the tables otherwise"));
        }
    }
    let columns = || keys.iter().flat_map(|key| &key.columns);
    let wanted = columns().map(|column| column.name.clone()).collect();
    let is_text = |role| match role {
        Role::Source | Role::Destination | Role::Address => given.numbers.is_none(),
        role => role == Role::Name,
    };
    let numbers =
        columns().filter(|column| !is_text(column.role)).map(|column| column.name.clone()).collect();
    let _ = shape.set(Shape { keys, added, names: added_names.clone() });
    Ok(Plan { wanted, numbers, added: added_names })
}

/// The keys to look up.
fn keys(given: &Given, specs: &[Spec], format: Format, names: &[String]) -> Result<Vec<Key>, String> {
    let has = |kind| specs.iter().any(|spec| spec.kind == kind);
    let mut keys = Vec::new();
    let mut push = |column: &str, label: &str, kind, role| {
        let columns = vec![Column { name: column.to_owned(), role }];
        let label = Some(label.to_owned());
        keys.push(Key { kind, label, columns, first: 0, numbers: given.numbers });
    };
    let Given { src, dst, addresses, names: named, .. } = given;
    if has(Kind::Addresses) {
        let is_given = src.is_some() || dst.is_some() || !addresses.is_empty();
        let mut found = false;
        for (given, label, role) in [(src, "src", Role::Source), (dst, "dst", Role::Destination)] {
            let option = format!("--{label}");
            let column = match given {
                None if is_given => None,
                None => only(role, names, &option)?,
                Some(column) => Some(column.as_str()),
            };
            if let Some(column) = column {
                push(column, label, Kind::Addresses, role);
                found = true;
            }
        }
        addresses.iter().for_each(|column| push(column, column, Kind::Addresses, Role::Address));
        if !found && !is_given {
            let column = only(Role::Address, names, "--address")?.ok_or_else(|| {
                let of = lists(format, names);
                format!(
                    "no column is known to hold addresses; name some with --src, --dst or --address; {of}"
                )
            })?;
            push(column, column, Kind::Addresses, Role::Address);
        }
    }
    for kind in [Kind::Names, Kind::Domains].into_iter().filter(|&kind| has(kind)) {
        named.iter().for_each(|column| push(column, column, kind, Role::Name));
        if named.is_empty() {
            let column = only(Role::Name, names, "--name-column")?.ok_or_else(|| {
                let of = lists(format, names);
                format!("no column is known to hold names; name some with --name-column; {of}")
            })?;
            push(column, column, kind, Role::Name);
        }
    }
    if has(Kind::Rules) {
        let columns = tuple(given, format, names)?;
        keys.push(Key { kind: Kind::Rules, label: None, columns, first: 0, numbers: given.numbers });
    }
    let mut first = 0;
    for key in &mut keys {
        key.first = first;
        first += key.columns.len();
    }
    Ok(keys)
}

/// The columns of the 5-tuple. Records may lack ports, but not the rest. Of JSON there may be several for a
/// port: members of which an object has at most one.
fn tuple(given: &Given, format: Format, names: &[String]) -> Result<Vec<Column>, String> {
    let mut columns = Vec::new();
    for (given, option, role, needed) in [
        (&given.src, "--src", Role::Source, Some("source addresses")),
        (&given.dst, "--dst", Role::Destination, Some("destination addresses")),
        (&given.protocol, "--proto", Role::Protocol, Some("protocols")),
        (&given.sport, "--sport", Role::SourcePort, None),
        (&given.dport, "--dport", Role::DestinationPort, None),
        (&given.icmp_type, "--icmp-type", Role::IcmpType, None),
        (&given.icmp_code, "--icmp-code", Role::IcmpCode, None),
    ] {
        let name = match given {
            Some(name) => Some(name.as_str()),
            None => only(role, names, option)?,
        };
        match (name, needed) {
            (Some(name), _) => columns.push(Column { name: name.to_owned(), role }),
            // Objects differ, and the first one may be of another kind than most.
            (None, None) if format == Format::NdJson => {
                let all = role.usual().iter().map(|&name| Column { name: name.to_owned(), role });
                columns.extend(all);
            }
            (None, None) => {}
            (None, Some(what)) => {
                let of = lists(format, names);
                return Err(format!("no column is known to hold {what}; name one with {option}; {of}"));
            }
        }
    }
    Ok(columns)
}

fn lists(format: Format, names: &[String]) -> String {
    let what = if format == Format::NdJson { "the members of the first object" } else { "the columns" };
    format!("{what} are {}", listed(names))
}

/// The only column with a usual name. Fails if there are several.
fn only<'n>(role: Role, names: &'n [String], option: &str) -> Result<Option<&'n str>, String> {
    role.find(names).map_err(|several| {
        format!("more than one column could be meant: {}; name one with {option}", several.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use wirespeed_records::TableFile;

    use super::*;

    fn planned(given: &Given, names: &[&str]) -> Result<Plan, String> {
        let spec = |name: &str, kind, fields: &[&str]| {
            let fields = fields.iter().map(|&field| field.to_owned()).collect();
            Spec::new(TableFile { name: name.into(), path: "x".into(), fields, ..TableFile::default() }, kind)
        };
        let specs =
            [spec("asn", Kind::Addresses, &[]), spec("geo", Kind::Addresses, &["country.iso_code", "city"])];
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        plan(given, &specs, &Shared::default(), Format::Csv, &names)
    }

    #[test]
    fn usual_names() {
        let plan = planned(&Given::default(), &["ts", "SrcAddr", "dstAddr"]).unwrap();
        assert_eq!(plan.wanted, ["SrcAddr", "dstAddr"]);
        let of = |key: &str| ["asn", "geo_country_iso_code", "geo_city"].map(|name| format!("{key}_{name}"));
        assert_eq!(plan.added, [of("src"), of("dst")].concat());
        let one = Given { addresses: vec!["id.orig_h".into()], prefix: true, ..Given::default() };
        let plan = planned(&one, &["src", "src_ip", "id.orig_h"]).unwrap();
        assert_eq!((plan.wanted.len(), plan.added.len(), &*plan.added[1]), (1, 5, "id_orig_h_asn_prefix"));
        let error = planned(&Given::default(), &["src", "src_ip"]).unwrap_err();
        assert_eq!(error, "more than one column could be meant: src, src_ip; name one with --src");
        let error = planned(&Given::default(), &["a", "b"]).unwrap_err();
        assert!(error.ends_with("; the columns are a, b"), "{error}");
    }

    #[test]
    fn columns_of_a_tuple() {
        let spec = Spec::new(TableFile::parse("fw=x").unwrap(), Kind::Rules);
        let planned = |given: &Given, names: &str| {
            let names: Vec<_> = names.split(' ').map(str::to_owned).collect();
            plan(given, std::slice::from_ref(&spec), &Shared::default(), Format::Csv, &names)
        };
        let plan = planned(&Given::default(), "sa sp proto da dp").unwrap();
        assert_eq!(plan.wanted, ["sa", "da", "proto", "sp", "dp"]);
        assert_eq!(plan.numbers, ["proto", "sp", "dp"]);
        assert_eq!(plan.added, ["fw", "fw_rule", "fw_uncertain_because"]);
        let given = Given { protocol: Some("p".into()), ..Given::default() };
        assert_eq!(planned(&given, "src dst p icmp_type").unwrap().wanted, ["src", "dst", "p", "icmp_type"]);
        let error = planned(&Given::default(), "src dst").unwrap_err();
        assert_eq!(
            error,
            "no column is known to hold protocols; name one with --proto; the columns are src, dst"
        );
        let error = planned(&Given::default(), "src dst proto pr").unwrap_err();
        assert_eq!(error, "more than one column could be meant: proto, pr; name one with --proto");
    }
}
