//! [`NameTable`]: longest-prefix match over columns of names, domains and URLs.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringViewBuilder, UInt32Array};
use wirespeed::names::image_file::NameImageFile;
use wirespeed::names::read::{Former, NameFormat};
use wirespeed::names::{AnyNameReader, AnyNames};
use wirespeed::prelude::{Labels, NameBatch, NextHop};
use wirespeed_columns::{self as column, Invalid, Refused, each_text};

use crate::error::Error;
use crate::labels::LabelColumn;

/// A table of names, or a list of domains with scopes and exceptions. The index of a name in a list is that
/// of the value of the entry that wins; an exception has none.
#[derive(Debug)]
pub struct NameTable {
    reader: AnyNameReader,
    labels: LabelColumn,
}

impl NameTable {
    /// Takes a table with its labels as they are now. Nobody changes the table any more.
    pub fn new<T: Display>(table: wirespeed::NameTable, labels: &Labels<T>) -> Self {
        Self::of(&AnyNames::Table(table), labels)
    }

    /// Takes a table or a list with its labels as they are now. Nobody changes the table any more.
    pub fn of<T: Display>(names: &AnyNames, labels: &Labels<T>) -> Self {
        Self { reader: names.reader(), labels: LabelColumn::new(labels) }
    }

    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let reader = AnyNameReader::open(path)?;
        let labels = match &reader {
            AnyNameReader::Names(_) => match NameImageFile::open(path)?.labels()?.lines() {
                0 => LabelColumn::open(path)?,
                lines => LabelColumn::members(lines),
            },
            AnyNameReader::List(_) => LabelColumn::new(&reader.labels_of::<String>(path)?),
        };
        Ok(Self { reader, labels })
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

    /// The registrable domain of each domain. Null for a public suffix itself.
    pub(crate) fn registrable(&self, array: &ArrayRef, invalid: Invalid) -> Result<ArrayRef, Error> {
        let (suffixes, mut refused) = (self.reader.suffixes()?, Refused::new(invalid));
        let (mut former, mut domain) = (Former::default(), String::new());
        let mut domains = StringViewBuilder::with_capacity(array.len());
        each_text(array.as_ref(), |row, text| {
            domain.clear();
            let found = match text {
                None => Ok(false),
                Some(text) => suffixes.registrable(text, &mut former, &mut domain),
            };
            let is_found = found.or_else(|reason| {
                let text = text.unwrap_or_default();
                refused.note(row, format_args!("{text:?} is no domain: {reason}")).map(|()| false)
            })?;
            domains.append_option(is_found.then_some(&domain));
            Ok(())
        })?;
        Ok(Arc::new(domains.finish()))
    }

    /// A field of the label of each name's longest prefix.
    pub(crate) fn field(
        &self,
        array: &ArrayRef,
        form: NameFormat,
        field: &str,
        invalid: Invalid,
    ) -> Result<ArrayRef, Error> {
        self.labels.field(&self.lookup(array, form, invalid)?, field)
    }
}
