//! ClassBench filters: `@SRC/LEN DST/LEN FROM : TO FROM : TO PROTO/MASK FLAGS/MASK`.
//!
//! The flags (of TCP) are no part of a 5-tuple; filters that look at some are taken without them, as the lists of right answers that
//! are in use have it.

use wirespeed_input::Input;

use super::RuleFile;
use super::report::{Fault, ReadError, Reading};
use crate::text::Parts;
use crate::tuple::Tuple;

pub(super) fn read<T: Tuple>(
    input: &mut Input<'_>,
    reading: &mut Reading,
    file: &mut RuleFile<T>,
) -> Result<(), ReadError> {
    reading.each_line(input, |line, _| {
        let rule = parts(line).ok_or_else(|| Fault::bad("not a filter of ClassBench"))?;
        let mut all = Parts::<T>::default();
        for (field, value) in ["src", "dst", "sport", "dport", "proto"].into_iter().zip(rule) {
            all.field(field, &value).map_err(Fault::bad)?;
        }
        let rule = all.rule().map_err(Fault::bad)?;
        file.add(rule).map_err(Fault::Bad)
    })
}

/// The five fields as a tuple reads them.
fn parts(line: &str) -> Option<[String; 5]> {
    let mut words = line.strip_prefix('@')?.split_whitespace();
    let [src, dst] = [words.next()?, words.next()?];
    let mut range = || {
        let (from, colon, to) = (words.next()?, words.next()?, words.next()?);
        (colon == ":").then(|| format!("{from}-{to}"))
    };
    let [sport, dport] = [range()?, range()?];
    Some([src.to_owned(), dst.to_owned(), sport, dport, words.next()?.to_owned()])
}
