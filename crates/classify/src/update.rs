//! [`RuleUpdate`]: a change of one rule.

use crate::error::RuleError;
use crate::rank::RuleNumber;
use crate::rule::Rule;

/// A change of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleUpdate<T> {
    /// Adds a rule after all others, with the next number.
    Insert(Rule<T>),
    /// Puts a rule under a number, and replaces the rule that had it, if any.
    Set(u32, Rule<T>),
    /// Removes the rule of a number. It is no error if there is none.
    Remove(u32),
}

impl<T> RuleUpdate<T> {
    /// Whether rules whose last number is this one can take updates: all that may be wrong is a number.
    pub(crate) fn check<'u>(
        mut last: u32,
        updates: impl IntoIterator<Item = &'u Self>,
    ) -> Result<(), RuleError>
    where
        T: 'u,
    {
        let limit = RuleNumber::MOST;
        for update in updates {
            match update {
                Self::Insert(_) if last >= limit => return Err(RuleError::Spent { limit }),
                Self::Insert(_) => last += 1,
                &Self::Set(found, _) => {
                    RuleNumber::new(found).ok_or(RuleError::Number { found, limit })?;
                    last = last.max(found);
                }
                Self::Remove(_) => {}
            }
        }
        Ok(())
    }
}
