//! [`RuleError`]: the reason why a rule is refused.

/// The reason why a rule is not valid, or can't have the number that was given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// The ranges make too many patterns.
    #[error("the ranges of a rule make {found} patterns, {limit} are allowed")]
    Patterns {
        /// The number of patterns.
        found: u128,
        /// The largest number allowed.
        limit: usize,
    },
    /// A range that ends before it starts, or that goes past the field's largest number.
    #[error("{from}-{to} is not a range of {field}: its numbers go up to {last}")]
    Range {
        /// The field.
        field: &'static str,
        /// The start of the range.
        from: u128,
        /// The end of the range.
        to: u128,
        /// The field's largest number.
        last: u128,
    },
    /// A number that another rule has.
    #[error("there is a rule {0} already")]
    Taken(u32),
    /// A number that no rule can have.
    #[error("{found} is not a rule number: rule numbers go from 1 to {limit}")]
    Number {
        /// The number.
        found: u32,
        /// The largest number of a rule.
        limit: u32,
    },
    /// The largest number is used. The set must be renumbered before a rule can come after all others.
    #[error("no rule number is left: the largest is {limit}")]
    Spent {
        /// The largest number of a rule.
        limit: u32,
    },
}
