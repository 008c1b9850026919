//! [`PayloadTable`]: origin validation (RFC 6811) over columns of prefixes and origins.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, StringArray, UInt8Array};
use arrow::datatypes::{DataType, UInt8Type, UInt32Type};
use wirespeed::fib::rpki::{Origin, Validity, Vrps};
use wirespeed::{Prefix, V4, V6};
use wirespeed_columns::{Invalid, Refused, each_text};

use crate::error::Error;

/// Validated payloads of the RPKI, of both families.
#[derive(Debug)]
pub struct PayloadTable(Box<Vrps>);

/// The states of routes: the values of each result.
static STATES: LazyLock<Arc<StringArray>> =
    LazyLock::new(|| Arc::new(StringArray::from(vec!["valid", "invalid", "not-found"])));

impl PayloadTable {
    /// Takes payloads.
    #[must_use]
    pub fn new(payloads: Vrps) -> Self {
        Self(Box::new(payloads))
    }

    /// The state of each route: of its prefix, as text, and its origin, a number or text.
    pub(crate) fn states(
        &self,
        prefixes: &ArrayRef,
        origins: &ArrayRef,
        invalid: Invalid,
    ) -> Result<ArrayRef, Error> {
        let mut refused = Refused::new(invalid);
        let origins = read_origins(origins, &mut refused)?;
        let mut states = Vec::with_capacity(prefixes.len());
        each_text(prefixes.as_ref(), |row, prefix| {
            states.push(match (prefix, origins[row]) {
                (Some(prefix), Some(origin)) => match self.validate(prefix, origin) {
                    Some(validity) => Some(number(validity)),
                    None => {
                        refused.note(row, format_args!("{prefix:?} is no prefix"))?;
                        None
                    }
                },
                _ => None,
            });
            Ok(())
        })?;
        let keys = UInt8Array::from(states);
        Ok(Arc::new(DictionaryArray::<UInt8Type>::try_new(keys, Arc::clone(&*STATES) as ArrayRef)?))
    }

    /// The state of a route. `None` if the prefix is none.
    fn validate(&self, prefix: &str, origin: Origin) -> Option<Validity> {
        if prefix.contains(':') {
            return Some(self.0.v6.validate(prefix.parse::<Prefix<V6>>().ok()?, origin));
        }
        Some(self.0.v4.validate(prefix.parse::<Prefix<V4>>().ok()?, origin))
    }
}

fn number(validity: Validity) -> u8 {
    match validity {
        Validity::Valid => 0,
        Validity::Invalid(_) => 1,
        Validity::NotFound => 2,
    }
}

fn read_origins(array: &ArrayRef, refused: &mut Refused) -> Result<Vec<Option<Origin>>, Error> {
    if array.data_type() == &DataType::UInt32 {
        return Ok(array.as_primitive::<UInt32Type>().iter().map(|asn| asn.map(Origin::As)).collect());
    }
    let mut origins = Vec::with_capacity(array.len());
    each_text(array.as_ref(), |row, text| {
        origins.push(match text.map(|text| text.parse::<Origin>().map_err(|error| (text, error))) {
            None => None,
            Some(Ok(origin)) => Some(origin),
            Some(Err((text, error))) => {
                refused.note(row, format_args!("{text:?}: {error}"))?;
                None
            }
        });
        Ok(())
    })?;
    Ok(origins)
}
