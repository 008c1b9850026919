//! The columns that are looked up, and those that are added.

use anyhow::{Result, bail};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::compute::nullif;
use arrow::datatypes::{DataType, Fields, Schema};
use wirespeed_records::{Role, added_name};

use crate::keys::may_hold;
use crate::table::{Kind, ReadTable};

/// The columns that the command line names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    pub(crate) src: Option<String>,
    pub(crate) dst: Option<String>,
    pub(crate) addresses: Vec<String>,
    pub(crate) names: Vec<String>,
    /// Whether matched prefixes are added.
    pub(crate) prefix: bool,
}

/// A column that is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) kind: Kind,
    pub(crate) column: Column,
    pub(crate) added: Vec<Added>,
}

/// A column of a file: a field, or one within structs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    /// The name, with dots between those of structs.
    pub(crate) name: String,
    path: Vec<String>,
    of: DataType,
}

/// A column that is added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Added {
    /// The table that answers.
    pub(crate) table: usize,
    pub(crate) part: Part,
    pub(crate) name: String,
}

/// A part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A field of the value.
    Field(usize),
    /// The prefix that matched.
    Prefix,
    /// The public suffix of a domain.
    Suffix,
    /// The registrable domain of a domain.
    Registrable,
}

impl Column {
    /// Whether rows have places of values.
    pub(crate) fn is_dictionary(&self) -> bool {
        matches!(self.of, DataType::Dictionary(..))
    }

    /// The values in a batch. A row within a struct that is null is null.
    pub(crate) fn of(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let missing = || anyhow::anyhow!("column {:?} was not read", self.name);
        let [first, rest @ ..] = &*self.path else { return Err(missing()) };
        let mut array = batch.column_by_name(first).cloned().ok_or_else(missing)?;
        for name in rest {
            let parent = array.as_struct_opt().ok_or_else(missing)?;
            let child = parent.column_by_name(name).cloned().ok_or_else(missing)?;
            array = match parent.logical_nulls() {
                Some(nulls) => nullif(&child, &BooleanArray::new(!nulls.inner(), None))?,
                None => child,
            };
        }
        Ok(array)
    }
}

/// The columns of a schema.
fn columns(schema: &Schema) -> Vec<Column> {
    fn add(fields: &Fields, path: &[String], into: &mut Vec<Column>) {
        for field in fields {
            let path = [path, &[field.name().clone()]].concat();
            match field.data_type() {
                DataType::Struct(fields) => add(fields, &path, into),
                of => into.push(Column { name: path.join("."), path, of: of.clone() }),
            }
        }
    }
    let mut all = Vec::new();
    add(schema.fields(), &[], &mut all);
    all
}

/// Plans by the schema of a file.
pub(crate) fn plan(given: &Given, tables: &[ReadTable], schema: &Schema) -> Result<Vec<Key>> {
    let columns = columns(schema);
    let mut keys = Vec::new();
    for (label, name, kind) in wanted(given, tables, &columns)? {
        let mut of_name = columns.iter().filter(|column| column.name == name);
        let Some(column) = of_name.next() else {
            bail!("there is no column {name:?}; {}", list(&columns));
        };
        if of_name.next().is_some() {
            bail!("there are two columns {name:?}");
        }
        if !may_hold(kind, &column.of) {
            let (what, types) = match kind {
                Kind::Addresses => ("addresses", "text, integers, FixedSizeBinary(4 or 16) and Binary"),
                _ => ("names", "text"),
            };
            bail!("column {name:?} is {}, which holds no {what}: {types} do", column.of);
        }
        let added = tables.iter().enumerate().filter(|(_, table)| table.kind() == kind);
        let added = added.flat_map(|(at, table)| parts(&label, at, table, given.prefix)).collect();
        keys.push(Key { kind, column: column.clone(), added });
    }
    let names: Vec<_> = keys.iter().flat_map(|key| &key.added).map(|added| &added.name).collect();
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name) {
            bail!("two new columns would be named {name:?}: name the tables otherwise");
        }
        if schema.fields().iter().any(|field| field.name() == *name) {
            bail!("there is a column {name:?} already");
        }
    }
    Ok(keys)
}

/// The columns that a table adds for a key.
fn parts(label: &str, at: usize, table: &ReadTable, prefix: bool) -> Vec<Added> {
    let fields = &table.file.fields;
    let named = |part, name: Option<&str>| {
        let name = added_name(Some(label), &table.file.name, name);
        Added { table: at, part, name }
    };
    let mut parts: Vec<_> =
        fields.iter().enumerate().map(|(at, field)| named(Part::Field(at), Some(field))).collect();
    if fields.is_empty() {
        parts.push(named(Part::Field(0), None));
    }
    if table.is_of_suffixes() {
        parts.push(named(Part::Suffix, Some("suffix")));
        parts.push(named(Part::Registrable, Some("registrable")));
    } else if prefix {
        parts.push(named(Part::Prefix, Some("prefix")));
    }
    parts
}

/// The columns to look up: what the names of new columns begin with, the name, and the keys.
fn wanted(given: &Given, tables: &[ReadTable], columns: &[Column]) -> Result<Vec<(String, String, Kind)>> {
    let has = |kind| tables.iter().any(|table| table.kind() == kind);
    let names: Vec<_> = columns.iter().map(|column| column.name.clone()).collect();
    let mut wanted = Vec::new();
    let mut push = |label: &str, name: &str, kind| wanted.push((label.to_owned(), name.to_owned(), kind));
    let Given { src, dst, addresses, names: named, .. } = given;
    if has(Kind::Addresses) {
        let is_given = src.is_some() || dst.is_some() || !addresses.is_empty();
        let mut found = is_given;
        for (given, label, role) in [(src, "src", Role::Source), (dst, "dst", Role::Destination)] {
            let name = match given {
                None if is_given => None,
                None => only(role, &names, &format!("--{label}"))?,
                Some(name) => Some(name.as_str()),
            };
            if let Some(name) = name {
                push(label, name, Kind::Addresses);
                found = true;
            }
        }
        addresses.iter().for_each(|name| push(name, name, Kind::Addresses));
        if !found {
            match only(Role::Address, &names, "--address")? {
                Some(name) => push(name, name, Kind::Addresses),
                None => bail!(
                    "no column is known to hold addresses; name some with --src, --dst or --address; {}",
                    list(columns)
                ),
            }
        }
    }
    for kind in [Kind::Names, Kind::Domains].into_iter().filter(|&kind| has(kind)) {
        named.iter().for_each(|name| push(name, name, kind));
        if named.is_empty() {
            match only(Role::Name, &names, "--domain")? {
                Some(name) => push(name, name, kind),
                None => {
                    bail!("no column is known to hold names; name some with --domain; {}", list(columns))
                }
            }
        }
    }
    Ok(wanted)
}

fn list(columns: &[Column]) -> String {
    let names: Vec<_> = columns.iter().map(|column| &*column.name).collect();
    format!("the columns are {}", names.join(", "))
}

/// The only column with a usual name. Fails if there are several.
fn only<'n>(role: Role, names: &'n [String], option: &str) -> Result<Option<&'n str>> {
    role.find(names).map_err(|several| {
        anyhow::anyhow!("more than one column could be meant: {}; name one with {option}", several.join(", "))
    })
}
