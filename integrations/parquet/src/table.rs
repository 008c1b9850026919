//! The tables that answer, and what they say of each index.

use std::sync::Arc;

use anyhow::{Context, Result};
use arrow::array::{Array, ArrayRef, StringArray, StringBuilder, UInt32Array};
use arrow::compute::take;
use wirespeed::NameReader;
use wirespeed::names::{AnyNameReader, NameList};
use wirespeed_records::{AddressTable, TableError, TableFile, TableReading};

/// The keys of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Addresses,
    /// Names, each with all names beneath it.
    Names,
    /// Entries of a list of domains, with scopes and exceptions.
    Domains,
}

/// A table that was read.
pub(crate) struct ReadTable {
    pub(crate) file: TableFile,
    pub(crate) lookup: Lookup,
    pub(crate) values: Values,
}

/// What looks up.
pub(crate) enum Lookup {
    Addresses(AddressTable),
    Names(NameReader),
    Domains(Arc<NameList>),
}

impl ReadTable {
    /// Reads a table of addresses.
    pub(crate) fn addresses(file: TableFile, reading: TableReading) -> Result<Self> {
        Self::read(file, |file, add| {
            let (table, report) = file.read_addresses(reading, add)?;
            Ok((Lookup::Addresses(table), report))
        })
    }

    /// Reads a table of names, or a list of domains.
    pub(crate) fn names(file: TableFile, reading: TableReading) -> Result<Self> {
        Self::read(file, |file, add| {
            let (names, report) = file.read_names(reading, add)?;
            let lookup = match names {
                AnyNameReader::Names(names) => Lookup::Names(names),
                AnyNameReader::List(list) => Lookup::Domains(list),
            };
            Ok((lookup, report))
        })
    }

    fn read(
        file: TableFile,
        by: impl FnOnce(&TableFile, &mut dyn FnMut(&str)) -> Result<(Lookup, Option<String>), TableError>,
    ) -> Result<Self> {
        let mut values = Builder::new(file.fields.len().max(1));
        let read = by(&file, &mut |text| values.add(text, &file));
        let (lookup, report) = read.with_context(|| file.name.clone())?;
        if let Some(report) = report {
            eprintln!("{}: {report}", file.name);
        }
        Ok(Self { lookup, values: values.finish(), file })
    }

    /// The keys. The content of a file of names says which.
    pub(crate) fn kind(&self) -> Kind {
        match self.lookup {
            Lookup::Addresses(_) => Kind::Addresses,
            Lookup::Names(_) => Kind::Names,
            Lookup::Domains(_) => Kind::Domains,
        }
    }

    /// Whether it is a list of public suffixes.
    pub(crate) fn is_of_suffixes(&self) -> bool {
        matches!(&self.lookup, Lookup::Domains(list) if list.is_of_suffixes())
    }
}

/// The values of each index, a column for each field. Index 0 is no match, and an empty value is null.
pub(crate) struct Values(Vec<Arc<StringArray>>);

impl Values {
    /// A field of the values of these indexes.
    pub(crate) fn of(&self, indexes: &UInt32Array, field: usize) -> Result<ArrayRef> {
        let values = &self.0[field];
        // u32 fits in usize on all targets.
        let has_text = |index: u32| (index as usize) < values.len();
        if indexes.values().iter().all(|&index| has_text(index)) {
            return Ok(take(values.as_ref(), indexes, None)?);
        }
        // An index without a text is shown as a number.
        let texts = indexes.iter().map(|index| match index {
            Some(index) if has_text(index) => {
                let index = index as usize;
                values.is_valid(index).then(|| values.value(index).to_owned())
            }
            index => index.map(|index| index.to_string()),
        });
        Ok(Arc::new(texts.collect::<StringArray>()))
    }
}

struct Builder(Vec<StringBuilder>);

impl Builder {
    fn new(fields: usize) -> Self {
        let mut columns: Vec<_> = (0..fields).map(|_| StringBuilder::new()).collect();
        columns.iter_mut().for_each(StringBuilder::append_null);
        Self(columns)
    }

    /// Adds the fields of the next index.
    fn add(&mut self, text: &str, file: &TableFile) {
        let mut columns = self.0.iter_mut();
        file.each_field(text, |value| {
            // As many as there are fields.
            if let Some(column) = columns.next() {
                column.append_option((!value.is_empty()).then_some(value));
            }
        });
    }

    fn finish(mut self) -> Values {
        Values(self.0.iter_mut().map(|column| Arc::new(column.finish())).collect())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;

    use super::*;

    fn file(fields: &[&str]) -> TableFile {
        let fields = fields.iter().map(|&field| field.to_owned()).collect();
        TableFile { name: "t".into(), path: "x".into(), fields, ..TableFile::default() }
    }

    #[test]
    fn values_by_field() {
        let of = |text: &str, fields: &[&str]| {
            let mut values = Builder::new(fields.len().max(1));
            values.add(text, &file(fields));
            let values = values.finish();
            let indexes = UInt32Array::from(vec![Some(1), Some(0), None]);
            let texts = (0..fields.len().max(1)).map(|field| values.of(&indexes, field).unwrap());
            let rows = texts.map(|column| {
                let column = column.as_string::<i32>();
                assert!(column.is_null(1) && column.is_null(2));
                column.is_valid(0).then(|| column.value(0).to_owned())
            });
            rows.collect::<Vec<_>>()
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(of("a=1,b=2", &[]), [text("a=1,b=2")]);
        assert_eq!(of("United%20States%", &["country"]), [text("United States%")]);
        assert_eq!(
            of("asn=1,org%20name=A%2C%20B%3D\u{e9}", &["Org name", "x", "asn"]),
            [text("A, B=\u{e9}"), None, text("1")]
        );
    }

    #[test]
    fn an_index_without_a_text_is_a_number() {
        let mut values = Builder::new(1);
        values.add("a", &file(&[]));
        let column = values.finish().of(&UInt32Array::from(vec![Some(1), Some(7), Some(0)]), 0).unwrap();
        let rows: Vec<_> = column.as_string::<i32>().iter().collect();
        assert_eq!(rows, [Some("a"), Some("7"), None]);
    }
}
