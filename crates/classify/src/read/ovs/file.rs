//! Rules that go into the file which is being read.

use crate::read::RuleFile;
use crate::rule::Rule;
use crate::tuple::Tuple;

/// Adds a rule of a line.
pub(super) fn add<T: Tuple>(
    file: &mut RuleFile<T>,
    rule: Rule<T>,
    at: u64,
    line: &str,
) -> Result<(), String> {
    file.add(rule)?;
    file.lines.add(file.rules.last_number(), Some(at.into()), line);
    Ok(())
}

/// The number that the next rule will have.
pub(super) fn next<T: Tuple>(file: &RuleFile<T>) -> u32 {
    file.rules.last_number().saturating_add(1)
}
