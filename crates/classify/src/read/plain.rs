//! The plain form: a rule as text on each line, with `number=N` where numbers are not consecutive.

use wirespeed_input::Input;

use super::RuleFile;
use super::report::{Fault, ReadError, Reading};
use crate::rule::Rule;
use crate::tuple::{Tuple, decimal};

pub(super) fn read<T: Tuple>(
    input: &mut Input<'_>,
    reading: &mut Reading,
    file: &mut RuleFile<T>,
) -> Result<(), ReadError> {
    reading.each_line(input, |line, _| take(line, file))
}

fn take<T: Tuple>(line: &str, file: &mut RuleFile<T>) -> Result<(), Fault> {
    let (number, rest) = numbered(line.split('#').next().unwrap_or_default())?;
    let rule: Rule<T> = rest.parse().map_err(Fault::bad)?;
    let put = match number {
        Some(number) => file.rules.insert_at(number, rule),
        None => file.rules.insert(rule),
    };
    put.map(|_| ()).map_err(Fault::bad)
}

/// The number at the start of a line, if there is one, and the rest of the line.
pub(super) fn numbered(line: &str) -> Result<(Option<u32>, &str), Fault> {
    let Some(rest) = line.strip_prefix("number=") else { return Ok((None, line)) };
    let (number, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let parsed = decimal(number).and_then(|number| u32::try_from(number).ok());
    Ok((Some(parsed.ok_or_else(|| Fault::bad("not a rule's number"))?), rest))
}
