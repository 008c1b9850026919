//! The lines of a table: a name with a result in every line, or in no line.

use wirespeed_fib::read::parts::{each_line, split_word};

use super::foreign::check_line;
use super::form::Former;
use super::labels::Labels;
use super::reason::{NameReason, result_word};
use super::{End, Fault, Input, Ledger, Place};
use crate::name::Name;

pub(super) fn read(
    input: &mut Input<'_>,
    ledger: &mut Ledger,
    labels: &mut Labels,
    mut give: impl FnMut(&Name, u32, &mut Ledger) -> Result<(), Fault>,
) -> Result<(), End> {
    let mut former = Former::default();
    let mut with_results = None;
    each_line(input, ledger, |line, place, ledger| {
        let (word, rest) = split_word(line);
        check_line(word, rest, ledger.report.format)?;
        let name = former.form(word, ledger.report.format)?;
        let (result, rest) = column(rest);
        no_more(rest)?;
        let result = match (*with_results.get_or_insert(!result.is_empty()), place) {
            (true, _) => match labels.again(result) {
                Some(result) => result,
                None => labels.intern(result_word(result)?)?,
            },
            (false, Place::Line(line)) if result.is_empty() => labels.line(line)?,
            _ => return Err(NameReason::TooManyColumns.into()),
        };
        ledger.report.routes += 1;
        give(name, result, ledger)
    })
}

/// The next word and the rest. The word is empty at a comment.
#[inline]
pub(super) fn column(line: &[u8]) -> (&[u8], &[u8]) {
    match split_word(line) {
        ([b'#', ..], _) => (&[], &[]),
        column => column,
    }
}

/// Checks that only a comment follows.
#[inline]
pub(super) fn no_more(rest: &[u8]) -> Result<(), NameReason> {
    if column(rest).0.is_empty() { Ok(()) } else { Err(NameReason::TooManyColumns) }
}
