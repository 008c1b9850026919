//! [`Wrong`]: why a line is no rule.

/// What is wrong with a line, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// iptables would not take it.
    Bad(String),
    /// It is of the other family: no packet in question matches it.
    OtherFamily(String),
    /// It isn't known what it means.
    Unknown(String),
}
