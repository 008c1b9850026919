//! [`Fields`]: the fields of a tuple as data, for readers of text: they are compiled once for all tuples.

use super::error::TupleError;
use super::field::{Field, FieldMatch, Kind, protocol_number};

/// The fields of a tuple.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    /// The tuple's name.
    pub(super) tuple: &'static str,
    /// The fields in the order of their offsets.
    pub(super) all: &'static [Field],
}

/// Fields that a rule tests, each with the match that it wants.
pub(crate) type Wanted = [(&'static Field, FieldMatch)];

impl Fields {
    /// The field of a name or an alias.
    pub(crate) fn called(self, name: &str) -> Option<&'static Field> {
        self.all.iter().find(|field| field.is_called(name))
    }

    /// The field of a name or an alias; an error if the tuple doesn't have it.
    pub(crate) fn get(self, name: &str) -> Result<&'static Field, TupleError> {
        self.called(name).ok_or_else(|| {
            let has = self.all.iter().map(|field| field.name).collect();
            TupleError::Field { tuple: self.tuple, field: name.to_owned(), has }
        })
    }

    /// The field of a protocol whose name stands alone.
    pub(crate) fn of_protocol(self, word: &str) -> Result<&'static Field, TupleError> {
        let field = self.all.iter().find(|field| field.kind == Kind::Protocol);
        let field = field.filter(|_| protocol_number(word).is_some());
        field.ok_or_else(|| TupleError::Word(word.to_owned()))
    }

    /// The field of a name that all tuples have: of an address, a port or the protocol.
    #[cfg(feature = "text")]
    pub(crate) fn named(self, name: &str) -> &'static Field {
        self.called(name).expect("all tuples have these")
    }

    /// Whether addresses are those of IPv6.
    #[cfg(feature = "text")]
    pub(crate) fn are_v6(self) -> bool {
        self.called("src").is_some_and(|field| field.width == 128)
    }
}
