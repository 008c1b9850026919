//! [`LabelColumn`]: the labels of a table as the values of a dictionary, which all batches share.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Display;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow::array::{Array, ArrayRef, DictionaryArray, StringArray, StringBuilder, UInt32Array};
use arrow::datatypes::UInt32Type;
use wirespeed::Labels;
use wirespeed::fib::read::MEMBER;
use wirespeed::fib::read::record::{self, NoField};
use wirespeed::fib::rpki::Origin;
use wirespeed_columns::{Invalid, Refused};

use crate::error::Error;

/// The labels by index. Index 0 is no result, and an index without a label is null.
#[derive(Debug)]
pub(crate) struct LabelColumn {
    texts: Arc<StringArray>,
    asns: OnceLock<Vec<Asn>>,
    /// The fields that calls have asked for.
    fields: Mutex<HashMap<String, Arc<FieldColumn>>>,
}

/// The values of a field of all labels, each value once.
#[derive(Debug)]
struct FieldColumn {
    /// The value of each label, by index. `None` for a label that lacks the field.
    keys: Vec<Option<u32>>,
    values: ArrayRef,
}

impl FieldColumn {
    /// Fails if no label has the field.
    fn new(texts: &StringArray, field: &str) -> Result<Self, NoField> {
        record::check_field(|| texts.iter().flatten(), field)?;
        let (mut known, mut values) = (HashMap::new(), StringBuilder::new());
        let mut key = |value: Cow<'_, str>| {
            // There are no more values than labels, which have u32 as indexes.
            let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
            *known.entry(value.into_owned()).or_insert_with_key(|value| {
                values.append_value(value);
                next
            })
        };
        let keys = texts.iter().map(|text| record::field(text?, field).map(&mut key)).collect();
        Ok(Self { keys, values: Arc::new(values.finish()) })
    }
}

/// A label as the origin of a route.
#[derive(Clone, Copy, Debug)]
enum Asn {
    Number(u32),
    /// Several ASes: no number.
    Set,
    Other,
}

impl LabelColumn {
    /// Copies the labels as they are now.
    pub(crate) fn new<T: Display>(labels: &Labels<T>) -> Self {
        let mut texts = Texts::default();
        texts.push(labels);
        texts.finish()
    }

    /// The labels of names that are a list without results, up to this line.
    pub(crate) fn members(lines: u32) -> Self {
        let mut texts = Texts::default();
        (0..lines).for_each(|_| texts.0.append_value(MEMBER));
        texts.finish()
    }

    /// The labels of an image.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self::new(&Labels::<String>::open(path)?))
    }

    /// Whether both have the same label for each index.
    pub(crate) fn is_equal(&self, other: &Self) -> bool {
        self.texts == other.texts
    }

    /// The labels of indexes. Nothing is copied: the indexes are the keys.
    pub(crate) fn of(&self, indexes: UInt32Array) -> Result<ArrayRef, Error> {
        let is_labelled = |index: usize| index < self.texts.len() && self.texts.is_valid(index);
        // u32 fits in usize on all targets.
        if let Some(index) = indexes.iter().flatten().find(|&index| !is_labelled(index as usize)) {
            return Err(Error::NoLabel { index });
        }
        Ok(Arc::new(DictionaryArray::<UInt32Type>::try_new(indexes, Arc::clone(&self.texts) as ArrayRef)?))
    }

    /// A field of the labels of indexes, where labels are records. A label that lacks the field is null.
    pub(crate) fn field(&self, indexes: &UInt32Array, field: &str) -> Result<ArrayRef, Error> {
        let column = {
            // A map that a panic left is whole.
            let mut fields = self.fields.lock().unwrap_or_else(PoisonError::into_inner);
            match fields.get(field) {
                Some(column) => Arc::clone(column),
                None => {
                    let column = Arc::new(FieldColumn::new(&self.texts, field)?);
                    fields.insert(field.to_owned(), Arc::clone(&column));
                    column
                }
            }
        };
        let keys =
            indexes.iter().map(|index| match index.map(|index| (index, column.keys.get(index as usize))) {
                None => Ok(None),
                Some((_, Some(key))) => Ok(*key),
                Some((index, None)) => Err(Error::NoLabel { index }),
            });
        let keys = keys.collect::<Result<UInt32Array, Error>>()?;
        Ok(Arc::new(DictionaryArray::<UInt32Type>::try_new(keys, Arc::clone(&column.values))?))
    }

    /// The labels of indexes as AS numbers. A set of ASes is null.
    pub(crate) fn asns(&self, indexes: &UInt32Array, invalid: Invalid) -> Result<ArrayRef, Error> {
        let asns = self.asns.get_or_init(|| self.texts.iter().map(|text| asn(text.unwrap_or(""))).collect());
        let mut refused = Refused::new(invalid);
        let mut column = Vec::with_capacity(indexes.len());
        for (row, index) in indexes.iter().enumerate() {
            column.push(match index.map(|index| (index, asns.get(index as usize))) {
                None => None,
                Some((index, None)) => return Err(Error::NoLabel { index }),
                Some((_, Some(Asn::Number(asn)))) => Some(*asn),
                Some((_, Some(Asn::Set))) => None,
                Some((index, Some(Asn::Other))) => {
                    refused.note(
                        row,
                        format_args!("the label {:?} is no AS number", self.texts.value(index as usize)),
                    )?;
                    None
                }
            });
        }
        Ok(Arc::new(UInt32Array::from(column)))
    }
}

/// An AS number or a set of them, as [`Origin`] has them, or with `_` between the ASes of a set as pfx2as has
/// them.
fn asn(text: &str) -> Asn {
    match text.replace('_', ",").parse() {
        Ok(Origin::As(asn)) => Asn::Number(asn),
        Ok(Origin::None) => Asn::Set,
        Err(_) => Asn::Other,
    }
}

/// Collects the labels of one or several tables.
#[derive(Debug)]
pub(crate) struct Texts(StringBuilder);

impl Default for Texts {
    fn default() -> Self {
        let mut texts = StringBuilder::new();
        texts.append_value(""); // index 0 is no result
        Self(texts)
    }
}

impl Texts {
    /// Adds the labels of a table. Returns what its indexes are greater by in the column.
    pub(crate) fn push<T: Display>(&mut self, labels: &Labels<T>) -> usize {
        use arrow::array::ArrayBuilder as _;
        let before = self.0.len() - 1;
        for (index, text) in labels.enter().iter() {
            // Indexes without a label lie between.
            while self.0.len() < before + index.0 as usize {
                self.0.append_null();
            }
            self.0.append_value(text.to_string());
        }
        before
    }

    pub(crate) fn finish(mut self) -> LabelColumn {
        LabelColumn { texts: Arc::new(self.0.finish()), asns: OnceLock::new(), fields: Mutex::default() }
    }
}
