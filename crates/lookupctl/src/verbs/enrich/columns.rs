//! The columns of records that are looked up, and those that are added.

use std::sync::{Arc, OnceLock};

use wirespeed_records::{Format, Plan};

use super::table::{Kind, Spec};

/// Usual names of columns, without regard to case. Names that only one family of addresses has are none.
const SOURCES: [&str; 13] = [
    "id.orig_h",
    "sa",
    "srcaddr",
    "src_ip",
    "src",
    "src_addr",
    "srcip",
    "source_ip",
    "sourceip",
    "source.ip",
    "source_address",
    "saddr",
    "ip_src",
];
const DESTINATIONS: [&str; 17] = [
    "id.resp_h",
    "da",
    "dstaddr",
    "dst_ip",
    "dst",
    "dst_addr",
    "dstip",
    "dest_ip",
    "dest",
    "destination_ip",
    "destinationip",
    "destip",
    "destination.ip",
    "destination_address",
    "daddr",
    "ip_dst",
    "dest_addr",
];
const ADDRESSES: [&str; 7] =
    ["ip", "address", "ip_address", "client_ip", "clientip", "remote_addr", "remote_ip"];
const NAMES: [&str; 8] =
    ["query", "qname", "server_name", "host", "hostname", "domain", "dns.question.name", "dns.rrname"];

/// The columns that the command line names.
#[derive(Clone, Debug, Default)]
pub(super) struct Given {
    pub(super) src: Option<String>,
    pub(super) dst: Option<String>,
    pub(super) addresses: Vec<String>,
    pub(super) names: Vec<String>,
    /// Whether matched prefixes are added.
    pub(super) prefix: bool,
}

/// A column that is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// Its name in the records.
    pub(super) column: String,
    /// The start of the names of the new columns.
    label: String,
    pub(super) kind: Kind,
}

/// A column that is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Added {
    /// The key that is looked up.
    pub(super) key: usize,
    /// The table that answers.
    pub(super) table: usize,
    /// A field of its values; `None` for the prefix that matched.
    pub(super) field: Option<usize>,
}

/// All columns that are looked up and added.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) keys: Vec<Key>,
    pub(super) added: Vec<Added>,
    /// The names of those that are added.
    pub(super) names: Vec<String>,
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
            let whole = format!("{}_{}", key.label, spec.name);
            if spec.fields.is_empty() {
                added.push(Added { key: at, table, field: Some(0) });
                added_names.push(whole.clone());
            }
            for (field, name) in spec.fields.iter().enumerate() {
                added.push(Added { key: at, table, field: Some(field) });
                added_names.push(format!("{whole}_{}", name.replace('.', "_")));
            }
            if given.prefix {
                added.push(Added { key: at, table, field: None });
                added_names.push(format!("{whole}_prefix"));
            }
        }
    }
    for (at, name) in added_names.iter().enumerate() {
        if added_names[..at].contains(name) {
            return Err(format!("two new columns would be named {name:?}: name the tables otherwise"));
        }
    }
    let wanted = keys.iter().map(|key| key.column.clone()).collect();
    let _ = shape.set(Shape { keys, added, names: added_names.clone() });
    Ok(Plan { wanted, added: added_names })
}

/// The columns to look up.
fn keys(given: &Given, specs: &[Spec], format: Format, names: &[String]) -> Result<Vec<Key>, String> {
    let has = |kind| specs.iter().any(|spec| spec.kind == kind);
    let mut keys = Vec::new();
    let mut push = |column: &str, label: &str, kind| {
        keys.push(Key { column: column.to_owned(), label: label.replace('.', "_"), kind });
    };
    let Given { src, dst, addresses, names: named, .. } = given;
    if has(Kind::Addresses) {
        let is_given = src.is_some() || dst.is_some() || !addresses.is_empty();
        let mut found = false;
        for (given, label, usual) in [(src, "src", &SOURCES[..]), (dst, "dst", &DESTINATIONS[..])] {
            let option = format!("--{label}");
            let column = match given {
                None if is_given => None,
                None => only(usual, names, &option)?,
                Some(column) => Some(column.as_str()),
            };
            if let Some(column) = column {
                push(column, label, Kind::Addresses);
                found = true;
            }
        }
        addresses.iter().for_each(|column| push(column, column, Kind::Addresses));
        if !found && !is_given {
            let column = only(&ADDRESSES, names, "--address")?.ok_or_else(|| {
                let of = lists(format, names);
                format!(
                    "no column is known to hold addresses; name some with --src, --dst or --address; {of}"
                )
            })?;
            push(column, column, Kind::Addresses);
        }
    }
    if has(Kind::Names) {
        named.iter().for_each(|column| push(column, column, Kind::Names));
        if named.is_empty() {
            let column = only(&NAMES, names, "--name-column")?.ok_or_else(|| {
                let of = lists(format, names);
                format!("no column is known to hold names; name some with --name-column; {of}")
            })?;
            push(column, column, Kind::Names);
        }
    }
    Ok(keys)
}

fn lists(format: Format, names: &[String]) -> String {
    let what = if format == Format::NdJson { "the members of the first object" } else { "the columns" };
    format!("{what} are {}", names.join(", "))
}

/// The only column with a usual name. Fails if there are several.
fn only<'n>(usual: &[&str], names: &'n [String], option: &str) -> Result<Option<&'n str>, String> {
    let is_usual = |name: &&String| usual.iter().any(|usual| usual.eq_ignore_ascii_case(name));
    let found: Vec<&str> = names.iter().filter(is_usual).map(String::as_str).collect();
    match &*found {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        several => Err(format!(
            "more than one column could be meant: {}; name one with {option}",
            several.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(given: &Given, names: &[&str]) -> Result<Plan, String> {
        let spec = |name: &str, kind, fields: &[&str]| Spec {
            name: name.into(),
            path: "x".into(),
            kind,
            fields: fields.iter().map(|&field| field.to_owned()).collect(),
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
}
