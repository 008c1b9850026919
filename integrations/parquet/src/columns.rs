//! The columns that are looked up, and those that are added.

use anyhow::{Error, Result, bail};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::compute::nullif;
use arrow::datatypes::{DataType, Fields, Schema};
use wirespeed_commands::enrich::{self, Given, Header, Part, Shape, Spec};
use wirespeed_records::Role;

use crate::keys::{Values, may_hold};

/// The columns that are looked up together: one, or the several of a 5-tuple.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) of: enrich::Key,
    /// Its columns in the file.
    pub(crate) columns: Vec<Column>,
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
pub(crate) fn plan(given: &Given, specs: &[Spec], schema: &Schema) -> Result<Vec<Key>> {
    let columns = columns(schema);
    let names: Vec<_> = columns.iter().map(|column| column.name.clone()).collect();
    let shape = Shape::plan(given, specs, Header::Columns(&names), None).map_err(Error::msg)?;
    if let Some(name) = shape.names.iter().find(|name| schema.fields().iter().any(|it| it.name() == *name)) {
        bail!("there is a column {name:?} already");
    }
    let keys = shape.keys.into_iter().enumerate().map(|(at, of)| {
        let of_key = of.columns.iter().map(|column| found(column, &columns)).collect::<Result<_>>()?;
        let added = shape.added.iter().zip(&shape.names).filter(|(added, _)| added.key == at);
        let added =
            added.map(|(&enrich::Added { table, part, .. }, name)| Added { table, part, name: name.clone() });
        Ok(Key { of, columns: of_key, added: added.collect() })
    });
    keys.collect()
}

/// The column of a file that is to be looked up.
fn found(wanted: &enrich::Column, columns: &[Column]) -> Result<Column> {
    let name = &wanted.name;
    let mut of_name = columns.iter().filter(|column| column.name == *name);
    let Some(column) = of_name.next() else {
        let names: Vec<_> = columns.iter().map(|column| &*column.name).collect();
        bail!("there is no column {name:?}; the columns are {}", names.join(", "));
    };
    if of_name.next().is_some() {
        bail!("there are two columns {name:?}");
    }
    let values = Values::of(wanted.role);
    if !may_hold(values, &column.of) {
        let (what, types) = match wanted.role {
            Role::Source | Role::Destination | Role::Address => {
                ("addresses", "text, integers, FixedSizeBinary(4 or 16) and Binary")
            }
            Role::Name => ("names", "text"),
            Role::Protocol => ("protocols", "text and integers"),
            Role::SourcePort | Role::DestinationPort => ("ports", "text and integers"),
            _ => ("numbers of a byte", "text and integers"),
        };
        bail!("column {name:?} is {}, which holds no {what}: {types} do", column.of);
    }
    Ok(column.clone())
}
