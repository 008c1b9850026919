//! [`Values`]: what tables say of each index.

use std::sync::Arc;

use anyhow::Result;
use arrow::array::{Array, ArrayRef, StringArray, StringBuilder, UInt32Array};
use arrow::compute::take;
use wirespeed_commands::enrich;
use wirespeed_records::TableFile;

/// The values of each index, a column for each field. Index 0 is no match, and an empty value is null.
pub(crate) struct Values {
    columns: Vec<Arc<StringArray>>,
    /// The columns that are not whole yet.
    builders: Vec<StringBuilder>,
}

impl Values {
    /// A field of the values of these indexes.
    pub(crate) fn of(&self, indexes: &UInt32Array, field: usize) -> Result<ArrayRef> {
        let values = &self.columns[field];
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

impl enrich::Values for Values {
    fn new(fields: usize) -> Self {
        let mut builders: Vec<_> = (0..fields).map(|_| StringBuilder::new()).collect();
        builders.iter_mut().for_each(StringBuilder::append_null);
        Self { columns: Vec::new(), builders }
    }

    fn add(&mut self, text: &str, file: &TableFile) {
        let mut columns = self.builders.iter_mut();
        file.each_field(text, |value| {
            // As many as there are fields.
            if let Some(column) = columns.next() {
                column.append_option((!value.is_empty()).then_some(value));
            }
        });
    }

    fn finish(&mut self) {
        self.columns = self.builders.drain(..).map(|mut column| Arc::new(column.finish())).collect();
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;

    use enrich::Values as _;

    use super::*;

    fn file(fields: &[&str]) -> TableFile {
        let fields = fields.iter().map(|&field| field.to_owned()).collect();
        TableFile { name: "t".into(), path: "x".into(), fields, ..TableFile::default() }
    }

    #[test]
    fn values_by_field() {
        let of = |text: &str, fields: &[&str]| {
            let mut values = Values::new(fields.len().max(1));
            values.add(text, &file(fields));
            values.finish();
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
        let mut values = Values::new(1);
        values.add("a", &file(&[]));
        values.finish();
        let column = values.of(&UInt32Array::from(vec![Some(1), Some(7), Some(0)]), 0).unwrap();
        let rows: Vec<_> = column.as_string::<i32>().iter().collect();
        assert_eq!(rows, [Some("a"), Some("7"), None]);
    }
}
