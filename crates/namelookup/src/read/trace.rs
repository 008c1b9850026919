//! The lines of a trace, and of a list of paths: a name, and anything after it.

use wirespeed_fib::read::parts::{each_line, split_word};

use super::foreign::check_line;
use super::form::Former;
use super::reason::NameReason;
use super::{End, Input, Ledger};
use crate::names::NameBatch;

pub(super) fn read(input: &mut Input<'_>, ledger: &mut Ledger, batch: &mut NameBatch) -> Result<(), End> {
    let mut former = Former::default();
    each_line(input, ledger, |line, _, ledger| {
        let (word, rest) = split_word(line);
        check_line(word, rest, ledger.report.format)?;
        let name = former.form(word, ledger.report.format)?;
        batch.push(name).map_err(NameReason::from)?;
        ledger.report.routes += 1;
        Ok(())
    })
}

/// Reads only the paths. Names without a path are passed over.
pub(super) fn read_paths(
    input: &mut Input<'_>,
    ledger: &mut Ledger,
    batch: &mut NameBatch,
) -> Result<(), End> {
    let mut former = Former::default();
    each_line(input, ledger, |line, _, ledger| {
        let path = former.path(split_word(line).0, ledger.report.format)?;
        if !path.is_empty() {
            batch.push(path).map_err(NameReason::from)?;
            ledger.report.routes += 1;
        }
        Ok(())
    })
}
