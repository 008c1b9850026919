//! ClassBench filters: `@SRC/LEN DST/LEN FROM : TO FROM : TO PROTO/MASK FLAGS/MASK`.
//!
//! The TCP flags are not a part of a 5-tuple. The reader ignores the flags of a filter, as the lists of right
//! answers in use do, and [counts](super::RuleReport::widened) such filters. An answer that is such a filter
//! [is in doubt](super::Doubts::widened). The flags may be absent. Any other line is not a filter.

use wirespeed_input::Input;

use super::RuleFile;
use super::report::{Fault, LeftOut, ReadError, Reading};
use super::uncertain::{Effect, Uncertain};
use crate::pattern::Pattern;
use crate::rule::Rule;
use crate::text::Parts;
use crate::tuple::{Fields, Tuple};

pub(super) fn read<T: Tuple>(
    input: &mut Input<'_>,
    reading: &mut Reading,
    file: &mut RuleFile<T>,
) -> Result<(), ReadError> {
    reading.each_record(input, &mut |at, line, report| {
        let (taken, text) = match line {
            Ok(line) => (filter(line), line),
            Err(fault) => (Err(fault), ""),
        };
        let taken = taken.and_then(|(rule, flags)| {
            let Some(flags) = flags else { return file.add(rule).map_err(Fault::Bad) };
            file.add(rule.clone()).map_err(Fault::Bad)?;
            report.widened += 1;
            let why = format!("TCP flags ({flags}) are no field of a tuple");
            let why = LeftOut { place: at.into(), why, text: text.to_owned() };
            file.doubts.widen(file.rules.last_number(), rule, why);
            Ok(())
        });
        taken.inspect_err(|fault| {
            // The line could be any filter, at this place.
            let before = file.rules.last_number().saturating_add(1);
            let (rule, effect) = (Rule::new(Pattern::all(), 0, 0), Effect::Any);
            let why = LeftOut { place: at.into(), why: fault.why().to_owned(), text: text.to_owned() };
            file.doubts.uncertain.push(Uncertain { rule, effect, before, skips: 0, why });
        })
    })
}

/// A filter, and the flags that it looks at, if any.
fn filter<T: Tuple>(line: &str) -> Result<(Rule<T>, Option<&str>), Fault> {
    let bad = || Fault::bad("not a filter of ClassBench");
    let (fields, flags) = parts(line).ok_or_else(bad)?;
    let mut all = Parts::new(Fields::of::<T>());
    for (field, value) in ["src", "dst", "sport", "dport", "proto"].into_iter().zip(fields) {
        all.field(field, &value).map_err(Fault::bad)?;
    }
    Ok((all.rule().map_err(Fault::bad)?, flags))
}

/// The five fields as text for a tuple, and the flags if their mask is not empty.
fn parts(line: &str) -> Option<([String; 5], Option<&str>)> {
    let mut words = line.strip_prefix('@')?.split_whitespace();
    let mut address = || {
        let word = words.next()?;
        let (_, length) = word.split_once('/')?;
        is_decimal(length).then(|| word.to_owned())
    };
    let [src, dst] = [address()?, address()?];
    let mut range = || {
        let (from, colon, to) = (words.next()?, words.next()?, words.next()?);
        (colon == ":" && is_decimal(from) && is_decimal(to)).then(|| format!("{from}-{to}"))
    };
    let [sport, dport] = [range()?, range()?];
    let proto = words.next()?;
    masked(proto, 0xff)?;
    let flags = match words.next() {
        Some(flags) => (masked(flags, 0xffff)? != 0).then_some(flags),
        None => None,
    };
    words.next().is_none().then(|| ([src, dst, sport, dport, proto.to_owned()], flags))
}

fn is_decimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// The mask of `0xV/0xMASK`.
fn masked(text: &str, all: u128) -> Option<u128> {
    let (value, mask) = text.split_once('/')?;
    let number = |text: &str| u128::from_str_radix(text.strip_prefix("0x")?, 16).ok().filter(|n| *n <= all);
    number(value).and_then(|_| number(mask))
}
