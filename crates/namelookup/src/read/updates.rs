//! The lines of updates: `A name result` and `W name`, with an optional time in seconds before them.

use std::ops::ControlFlow;
use std::time::Duration;

use wirespeed_fib::read::parts::{each_line, split_word, time};

use super::foreign::check_line;
use super::form::Former;
use super::labels::Labels;
use super::reason::{NameReason, result_word};
use super::table::{column, no_more};
use super::{End, Fault, Input, Ledger};
use crate::update::NameUpdate;

/// An update and its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedUpdate {
    /// The time since the epoch, if the source has it.
    pub time: Option<Duration>,
    /// The update.
    pub update: NameUpdate,
}

pub(super) fn read(
    input: &mut Input<'_>,
    ledger: &mut Ledger,
    labels: &mut Labels,
    give: &mut dyn FnMut(TimedUpdate) -> ControlFlow<()>,
) -> Result<(), End> {
    let mut former = Former::default();
    each_line(input, ledger, |line, _, ledger| {
        let update = update(line, &mut former, labels, ledger)?;
        ledger.report.routes += 1;
        match give(update) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Fault::Stop),
        }
    })
}

fn update(
    line: &[u8],
    former: &mut Former,
    labels: &mut Labels,
    ledger: &Ledger,
) -> Result<TimedUpdate, Fault> {
    let (when, kind, rest) = split_kind(line);
    let time = when.map(seconds).transpose()?;
    let inserts = match kind {
        b"A" => true,
        b"W" => false,
        _ => return Err(NameReason::UpdateKind.into()),
    };
    let (word, rest) = split_word(rest);
    check_line(word, b"", ledger.report.format)?;
    let name = former.form(word, ledger.report.format)?.to_owned();
    let (result, rest) = if inserts { column(rest) } else { (&b""[..], rest) };
    no_more(rest)?;
    let update = match inserts {
        true => NameUpdate::Insert(name, labels.intern(result_word(result)?)?),
        false => NameUpdate::Remove(name),
    };
    Ok(TimedUpdate { time, update })
}

/// The time, the kind, and the rest of the line.
fn split_kind(line: &[u8]) -> (Option<&[u8]>, &[u8], &[u8]) {
    let (word, rest) = split_word(line);
    if !word.first().is_some_and(u8::is_ascii_digit) {
        return (None, word, rest);
    }
    let (kind, rest) = split_word(rest);
    (Some(word), kind, rest)
}

fn seconds(word: &[u8]) -> Result<Duration, NameReason> {
    std::str::from_utf8(word).ok().and_then(|word| time(word).ok()).ok_or(NameReason::Time)
}

/// The name in a line of updates, if the line is one.
pub(super) fn name_of(line: &[u8]) -> Option<&[u8]> {
    let (_, kind, rest) = split_kind(line);
    matches!(kind, b"A" | b"W").then(|| split_word(rest).0).filter(|name| !name.is_empty())
}
