//! [`Wrong`]: why a line is no rule.

/// What is wrong with a line, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// iptables would not take it.
    Bad(String),
    /// Matches no packet in question, as it is of the other family.
    OtherFamily(String),
    /// Means what isn't known.
    Unknown(String),
}
