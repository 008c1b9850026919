//! [`Wrong`]: the reason for which a line is no rule.

use crate::tuple::{Field, Fields};

/// The reason for which a line, or a part of it, makes no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// iptables would not take it.
    Bad(String),
    /// Belongs to the other family, and matches no packet in question.
    OtherFamily(String),
    /// Its meaning isn't known.
    Unknown(String),
}

/// A field of the tuple by its name; iptables is about packets that all tuples have these fields of.
pub(super) fn field(fields: Fields, name: &str) -> Result<&'static Field, Wrong> {
    fields.called(name).ok_or_else(|| Wrong::Unknown(format!("no field of a tuple ({name})")))
}
