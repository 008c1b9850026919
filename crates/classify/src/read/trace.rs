//! Traces: tuples to look up, in order. Each line is one in words, or five decimal numbers as ClassBench writes them (source,
//! destination, ports, protocol; what comes after these is passed over).

use std::io::Read;

use wirespeed_fib::read::{Input, Source, open};

use super::ReadOptions;
use super::format::RuleFormat;
use super::report::{Fault, ReadError, Reading, RuleReport};
use crate::tuple::Tuple;

/// Reads a trace.
pub fn read_trace<T: Tuple>(
    source: &Source,
    options: &ReadOptions,
) -> Result<(Vec<T>, RuleReport), ReadError> {
    read(open(source)?, options)
}

/// Reads a trace from a stream of bytes; `name` is for messages.
///
/// ```
/// use wirespeed_classify::Ipv4Tuple;
/// use wirespeed_classify::read::{ReadOptions, read_trace_from};
///
/// let text = "167772161 3221225991 4000 443 6 0 17\nsrc=10.0.0.1 dst=192.0.2.7 sport=4000 dport=443 tcp\n";
/// let (tuples, _) = read_trace_from::<Ipv4Tuple>(text.as_bytes(), "trace", &ReadOptions::default())?;
/// assert_eq!(tuples[0], tuples[1]);
/// # Ok::<(), wirespeed_classify::read::ReadError>(())
/// ```
pub fn read_trace_from<T: Tuple>(
    reader: impl Read + Send,
    name: &str,
    options: &ReadOptions,
) -> Result<(Vec<T>, RuleReport), ReadError> {
    read(Input::new(Box::new(reader), name.to_owned())?, options)
}

fn read<T: Tuple>(mut input: Input<'_>, options: &ReadOptions) -> Result<(Vec<T>, RuleReport), ReadError> {
    let mut reading = Reading::new(&input, RuleFormat::Plain, options.lenient);
    let mut tuples = Vec::new();
    reading.each_line(&mut input, |line, report| {
        tuples.push(match line.contains('=') {
            true => line.parse().map_err(Fault::bad)?,
            false => {
                report.format = RuleFormat::ClassBench;
                numbers(line)?
            }
        });
        Ok(())
    })?;
    Ok((tuples, reading.report))
}

fn numbers<T: Tuple>(line: &str) -> Result<T, Fault> {
    let mut words = line.split_whitespace();
    let mut tuple = T::default();
    for name in ["src", "dst", "sport", "dport", "proto"] {
        let field = T::field_of(name).ok_or_else(|| Fault::bad("a tuple without these fields"))?;
        let word = words.next().ok_or_else(|| Fault::bad("fewer than five numbers"))?;
        tuple.set_field(field, field.parse(word).map_err(Fault::bad)?);
    }
    Ok(tuple)
}
