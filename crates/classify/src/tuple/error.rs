//! [`TupleError`]: text that is not a tuple.

use super::field::ValueError;

/// Text that is not a tuple.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TupleError {
    /// Text without a field.
    #[error("no field is given")]
    Empty,
    /// A word without `=`.
    #[error("{0:?} is not of the form FIELD=VALUE")]
    Word(String),
    /// Text with neither fields nor enough columns.
    #[error(
        "{0} columns: source, destination, ports and protocol are five, or fields are given as FIELD=VALUE"
    )]
    Columns(usize),
    /// Text after the five columns that is not a number.
    #[error("{0:?} behind the five columns is not a number")]
    Behind(String),
    /// A field that the tuple doesn't have.
    #[error("a tuple of {tuple} has no field {field:?}; it has {}", .has.join(", "))]
    Field {
        /// The tuple's name.
        tuple: &'static str,
        /// The field.
        field: String,
        /// The names of the tuple's fields.
        has: Vec<&'static str>,
    },
    /// A field that is given twice.
    #[error("{0} is given twice")]
    Twice(&'static str),
    /// A value that the field can't have.
    #[error(transparent)]
    Value(#[from] ValueError),
}
