//! [`Shape`]: the columns of records that are looked up, and those that are added.

use std::net::IpAddr;

use wirespeed_fib::Family;
use wirespeed_fib::read::address_of_number;
use wirespeed_records::{Role, added_name, address, is_unset, listed};

use super::table::{Kind, Spec};

/// The columns that the command line names.
#[derive(Clone, Debug, Default)]
pub struct Given {
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
    pub numbers: Option<Family>,
}

const NO_ADDRESS: &str = "no address";

/// A column that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name in the records.
    pub name: String,
    /// Its content.
    pub role: Role,
}

impl Column {
    /// The option that would take a text as an address, because it is a number or may be one, in parentheses.
    /// `numbers` is the family that it has already.
    #[must_use]
    pub fn hint(&self, numbers: Option<Family>, text: &[u8]) -> &'static str {
        let is_number = text.iter().all(u8::is_ascii_digit);
        match self.refusal() == NO_ADDRESS && numbers.is_none() && is_number {
            true => " (--address-numbers takes numbers as addresses)",
            false => "",
        }
    }

    /// The reason why a wrong cell of it is refused: `no address`.
    #[must_use]
    pub const fn refusal(&self) -> &'static str {
        match self.role {
            Role::Name => "no name",
            Role::Protocol => "no protocol",
            Role::SourcePort | Role::DestinationPort => "no port",
            Role::IcmpType | Role::IcmpCode => "no number of a byte",
            _ => NO_ADDRESS,
        }
    }
}

/// The columns whose cells are looked up together: one, or the several of a 5-tuple.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The tables that answer.
    pub kind: Kind,
    /// The start of the names of the new columns. None for 5-tuples: a record has one.
    pub label: Option<String>,
    /// One, or those of a 5-tuple.
    pub columns: Vec<Column>,
    /// The place of the first column among all that are read.
    pub first: usize,
    /// The family of addresses that are numbers.
    pub numbers: Option<Family>,
}

impl Key {
    /// The address of a cell. `None` if it says that there is none. Fails if it is no address.
    #[allow(clippy::result_unit_err)] // the cell is the reason
    pub fn address(&self, cell: &[u8]) -> Result<Option<IpAddr>, ()> {
        if is_unset(cell) {
            return Ok(None);
        }
        let number = || address_of_number(cell, self.numbers?);
        let parsed = address(cell).or_else(number).ok_or(())?;
        Ok(Some(parsed.to_canonical()))
    }

    /// The name for messages.
    pub fn shown(&self) -> &str {
        match (self.kind, &*self.columns) {
            (Kind::Rules, _) | (_, []) => "5-tuples",
            (_, [column, ..]) => &column.name,
        }
    }
}

/// A column that is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// The key that is looked up.
    pub key: usize,
    /// The table that answers.
    pub table: usize,
    /// The part of the answer that it has.
    pub part: Part,
}

/// A part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
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
pub struct Shape {
    /// The keys that are looked up.
    pub keys: Vec<Key>,
    /// The columns that are added, those of a key together, and of these those of a table.
    pub added: Vec<Added>,
    /// The names of those that are added.
    pub names: Vec<String>,
}

/// The names of columns, as records have them.
#[derive(Clone, Copy, Debug)]
pub enum Header<'n> {
    /// All columns of all records.
    Columns(&'n [String]),
    /// The members of the first object. Others may have other members.
    Members(&'n [String]),
}

impl Shape {
    /// Plans by the names of a header. `keys` are those of an earlier header of one stream.
    ///
    /// Fails if a column is missing that is to be looked up, or if two could be meant.
    pub fn plan(
        given: &Given,
        specs: &[Spec],
        header: Header<'_>,
        keys: Option<&[Key]>,
    ) -> Result<Self, String> {
        let keys = match keys {
            Some(keys) => keys.to_vec(),
            None => self::keys(given, specs, header)?,
        };
        let (added, names) = added(&keys, specs, given.prefix);
        for (at, name) in names.iter().enumerate() {
            if names[..at].contains(name) {
                return Err(format!("two new columns would be named {name:?}: name the tables otherwise"));
            }
        }
        Ok(Self { keys, added, names })
    }

    /// All columns that are read.
    pub fn columns(&self) -> impl Iterator<Item = &Column> {
        self.keys.iter().flat_map(|key| &key.columns)
    }
}

/// The columns that the tables add for the keys, and their names.
fn added(keys: &[Key], specs: &[Spec], prefix: bool) -> (Vec<Added>, Vec<String>) {
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
            } else if prefix {
                add(Part::Prefix, name(Some("prefix")));
            }
        }
    }
    (added, added_names)
}

/// The keys to look up.
fn keys(given: &Given, specs: &[Spec], header: Header<'_>) -> Result<Vec<Key>, String> {
    let (Header::Columns(names) | Header::Members(names)) = header;
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
                let of = lists(header);
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
                let of = lists(header);
                format!("no column is known to hold names; name some with --name-column; {of}")
            })?;
            push(column, column, kind, Role::Name);
        }
    }
    if has(Kind::Rules) {
        let columns = tuple(given, header)?;
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
fn tuple(given: &Given, header: Header<'_>) -> Result<Vec<Column>, String> {
    let (Header::Columns(names) | Header::Members(names)) = header;
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
            (None, None) if matches!(header, Header::Members(_)) => {
                let all = role.usual().iter().map(|&name| Column { name: name.to_owned(), role });
                columns.extend(all);
            }
            (None, None) => {}
            (None, Some(what)) => {
                let of = lists(header);
                return Err(format!("no column is known to hold {what}; name one with {option}; {of}"));
            }
        }
    }
    Ok(columns)
}

fn lists(header: Header<'_>) -> String {
    let (what, names) = match header {
        Header::Members(names) => ("the members of the first object", names),
        Header::Columns(names) => ("the columns", names),
    };
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

    fn read(shape: &Shape) -> Vec<&str> {
        shape.columns().map(|column| &*column.name).collect()
    }

    fn planned(given: &Given, names: &[&str]) -> Result<Shape, String> {
        let spec = |name: &str, kind, fields: &[&str]| {
            let fields = fields.iter().map(|&field| field.to_owned()).collect();
            Spec::new(TableFile { name: name.into(), path: "x".into(), fields, ..TableFile::default() }, kind)
        };
        let specs =
            [spec("asn", Kind::Addresses, &[]), spec("geo", Kind::Addresses, &["country.iso_code", "city"])];
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        Shape::plan(given, &specs, Header::Columns(&names), None)
    }

    #[test]
    fn usual_names() {
        let plan = planned(&Given::default(), &["ts", "SrcAddr", "dstAddr"]).unwrap();
        assert_eq!(read(&plan), ["SrcAddr", "dstAddr"]);
        let of = |key: &str| ["asn", "geo_country_iso_code", "geo_city"].map(|name| format!("{key}_{name}"));
        assert_eq!(plan.names, [of("src"), of("dst")].concat());
        let one = Given { addresses: vec!["id.orig_h".into()], prefix: true, ..Given::default() };
        let plan = planned(&one, &["src", "src_ip", "id.orig_h"]).unwrap();
        assert_eq!((read(&plan).len(), plan.names.len(), &*plan.names[1]), (1, 5, "id_orig_h_asn_prefix"));
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
            Shape::plan(given, std::slice::from_ref(&spec), Header::Columns(&names), None)
        };
        let plan = planned(&Given::default(), "sa sp proto da dp").unwrap();
        assert_eq!(read(&plan), ["sa", "da", "proto", "sp", "dp"]);
        assert_eq!(plan.names, ["fw", "fw_rule", "fw_uncertain_because"]);
        let given = Given { protocol: Some("p".into()), ..Given::default() };
        assert_eq!(read(&planned(&given, "src dst p icmp_type").unwrap()), ["src", "dst", "p", "icmp_type"]);
        let error = planned(&Given::default(), "src dst").unwrap_err();
        assert_eq!(
            error,
            "no column is known to hold protocols; name one with --proto; the columns are src, dst"
        );
        let error = planned(&Given::default(), "src dst proto pr").unwrap_err();
        assert_eq!(error, "more than one column could be meant: proto, pr; name one with --proto");
    }
}
