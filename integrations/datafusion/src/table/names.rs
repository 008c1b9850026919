//! [`NameTable`]: longest-prefix match over columns of names, domains and URLs.

use std::fmt::Display;
use std::path::Path;

use arrow::array::{Array, ArrayRef, UInt32Array};
use wirespeed::names::read::{Former, NameFormat};
use wirespeed::prelude::{Labels, NameBatch, NameReader, NextHop};
use wirespeed_columns::{self as column, Invalid, Refused, each_text};

use crate::error::Error;
use crate::labels::LabelColumn;

/// A table of names.
#[derive(Debug)]
pub struct NameTable {
    reader: NameReader,
    labels: LabelColumn,
}

impl NameTable {
    /// Takes a table with its labels as they are now. Nobody changes the table any more.
    pub fn new<T: Display>(table: wirespeed::NameTable, labels: &Labels<T>) -> Self {
        Self { reader: table.reader(), labels: LabelColumn::new(labels) }
    }

    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self { reader: NameReader::open(path)?, labels: LabelColumn::open(path)? })
    }

    /// The index of each name's longest prefix.
    pub(crate) fn lookup(
        &self,
        array: &ArrayRef,
        form: NameFormat,
        invalid: Invalid,
    ) -> Result<UInt32Array, Error> {
        let mut refused = Refused::new(invalid);
        let (mut former, mut names, mut rows) = (Former::default(), NameBatch::new(), Vec::new());
        each_text(array.as_ref(), |row, text| {
            let Some(text) = text else { return Ok(()) };
            let pushed = match former.form(text.as_bytes(), form) {
                Ok(name) => names.push(name).map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            match pushed {
                Ok(()) => rows.push(row),
                Err(reason) => refused.note(row, format_args!("{text:?} is no name: {reason}"))?,
            }
            Ok(())
        })?;
        let mut of_names = vec![NextHop::NONE; rows.len()];
        self.reader.lookup_batch(&names, &mut of_names);
        let mut found = vec![0; array.len()];
        for (row, next_hop) in rows.into_iter().zip(of_names) {
            found[row] = next_hop.0;
        }
        // A row without a name has no result.
        Ok(column::found(found, None))
    }

    /// The label of each name's longest prefix.
    pub(crate) fn labels(
        &self,
        array: &ArrayRef,
        form: NameFormat,
        invalid: Invalid,
    ) -> Result<ArrayRef, Error> {
        self.labels.of(self.lookup(array, form, invalid)?)
    }
}
