//! [`RuleError`]: why a rule is none.

/// Why a rule can't be, or can't be where it is to go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// Ranges of too many prefixes.
    #[error("the ranges of a rule make {found} patterns, {limit} are allowed")]
    Patterns {
        /// How many they make.
        found: u128,
        /// How many may be.
        limit: usize,
    },
    /// A range that ends before it starts, or after the field's last number.
    #[error("{from}-{to} is no range of {field}, whose numbers go up to {last}")]
    Range {
        /// The field.
        field: &'static str,
        /// Its start.
        from: u128,
        /// Its end.
        to: u128,
        /// The field's largest number.
        last: u128,
    },
    /// A number that another rule has.
    #[error("there is a rule {0} already")]
    Taken(u32),
    /// A number that no rule can have.
    #[error("{found} is no number of a rule: they go from 1 to {limit}")]
    Number {
        /// The number.
        found: u32,
        /// The largest that may be.
        limit: u32,
    },
    /// No number is left after the last rule's: the set has to be renumbered.
    #[error("all {limit} numbers of rules are spent")]
    Spent {
        /// How many there are.
        limit: u32,
    },
}
