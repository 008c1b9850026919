//! [`Wrong`]: the reason for which a line is no rule.

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
