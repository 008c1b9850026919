//! Updates of a set. `A` and a rule as text adds the rule, under a number if one is given, else after all
//! others. `W` and a number removes the rule of that number.

use std::io::Read;

use wirespeed_input::{Input, Source, open};

use super::ReadOptions;
use super::format::RuleFormat;
use super::plain::numbered;
use super::report::{Fault, ReadError, Reading, RuleReport};
use crate::rank::RuleNumber;
use crate::tuple::Tuple;
use crate::update::RuleUpdate;

/// Reads updates.
pub fn read_updates<T: Tuple>(
    source: &Source,
    options: &ReadOptions,
) -> Result<(Vec<RuleUpdate<T>>, RuleReport), ReadError> {
    read(open(source)?, options)
}

/// Reads updates from a stream of bytes; `name` is for messages.
///
/// ```
/// use wirespeed_classify::read::{ReadOptions, read_updates_from};
/// use wirespeed_classify::{Ipv4Tuple, RuleUpdate};
///
/// let text = "A src=10.0.0.0/8 priority=3\nA number=2 udp\nW number=1\n";
/// let (updates, _) = read_updates_from::<Ipv4Tuple>(text.as_bytes(), "updates", &ReadOptions::default())?;
/// assert_eq!(updates[0], RuleUpdate::Insert("src=10.0.0.0/8 priority=3".parse()?));
/// assert_eq!(updates[1..], [RuleUpdate::Set(2, "udp".parse()?), RuleUpdate::Remove(1)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_updates_from<T: Tuple>(
    reader: impl Read + Send,
    name: &str,
    options: &ReadOptions,
) -> Result<(Vec<RuleUpdate<T>>, RuleReport), ReadError> {
    read(Input::new(Box::new(reader), name.to_owned())?, options)
}

#[inline(never)] // one copy for all crates
fn read<T: Tuple>(
    mut input: Input<'_>,
    options: &ReadOptions,
) -> Result<(Vec<RuleUpdate<T>>, RuleReport), ReadError> {
    let mut reading = Reading::new(&input, RuleFormat::Plain, options.lenient);
    let mut updates = Vec::new();
    reading.each_line(&mut input, |line, _| {
        updates.push(update(line.split('#').next().unwrap_or_default())?);
        Ok(())
    })?;
    Ok((updates, reading.report))
}

fn update<T: Tuple>(line: &str) -> Result<RuleUpdate<T>, Fault> {
    let (what, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let (number, rest) = numbered(rest.trim())?;
    if let Some(number) = number.filter(|&number| RuleNumber::new(number).is_none()) {
        return Err(Fault::bad(format!("no rule has the number {number}")));
    }
    match (what, number) {
        ("A", None) => Ok(RuleUpdate::Insert(rest.parse().map_err(Fault::bad)?)),
        ("A", Some(number)) => Ok(RuleUpdate::Set(number, rest.parse().map_err(Fault::bad)?)),
        ("W", Some(number)) if rest.is_empty() => Ok(RuleUpdate::Remove(number)),
        ("W", _) => Err(Fault::bad("a rule goes by its number: W number=7")),
        _ => Err(Fault::bad("neither a rule that comes (A) nor one that goes (W)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Kind, churn, classbench};
    use crate::write::write_updates;
    use crate::{Ipv4Tuple, OpenFlowTuple};

    fn are_read_as_written<T: Tuple>() {
        let updates = churn(&classbench::<T>(Kind::Firewall, 50, 1), 300, 2);
        let mut written = Vec::new();
        write_updates(&updates, &mut written).expect("a Vec takes what is written");
        let (read, report) =
            read_updates_from::<T>(&written[..], "churn", &ReadOptions::default()).expect("updates");
        assert_eq!((read, report.records), (updates, 300));
    }

    #[test]
    fn updates_are_read_as_written() {
        are_read_as_written::<Ipv4Tuple>();
        are_read_as_written::<OpenFlowTuple>();
    }

    #[test]
    fn lines_that_are_no_updates() {
        for wrong in
            ["B tcp", "W", "W 7", "W number=7 tcp", "A number=x tcp", "A number=0 tcp", "A quic", "tcp"]
        {
            let text = format!("# comment\n\nW number=1\n{wrong}\n");
            let error = read_updates_from::<Ipv4Tuple>(text.as_bytes(), "u", &ReadOptions::default());
            let error = error.expect_err(wrong).to_string();
            assert!(error.starts_with("u:4: "), "{wrong}: {error}");
            let lenient = ReadOptions { lenient: true, ..ReadOptions::default() };
            let (updates, report) =
                read_updates_from::<Ipv4Tuple>(text.as_bytes(), "u", &lenient).expect(wrong);
            assert_eq!((updates.len(), report.left_out.len()), (1, 1));
        }
    }
}
