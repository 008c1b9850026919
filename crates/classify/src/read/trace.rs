//! Traces: tuples to look up, in order. Each line is a tuple as text, or five decimal numbers as ClassBench
//! writes them (source, destination, ports, protocol). Numbers after these are ignored.

use std::io::Read;

use wirespeed_input::{Input, Source, open};

use super::ReadOptions;
use super::format::RuleFormat;
use super::report::{Fault, ReadError, Reading, RuleReport};
use crate::tuple::{Fields, Tuple, TupleError, decimal};

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

#[inline(never)] // one copy for all crates
fn read<T: Tuple>(mut input: Input<'_>, options: &ReadOptions) -> Result<(Vec<T>, RuleReport), ReadError> {
    let mut reading = Reading::new(&input, RuleFormat::Plain, options.lenient);
    let mut tuples = Vec::new();
    reading.each_line(&mut input, |line, report| {
        if !line.contains('=') {
            report.format = RuleFormat::ClassBench;
        }
        tuples.push(tuple_of_line(line).map_err(Fault::bad)?);
        Ok(())
    })?;
    Ok((tuples, reading.report))
}

/// The tuple of a line of a trace: as fields, or as columns.
///
/// ```
/// use wirespeed_classify::Ipv4Tuple;
/// use wirespeed_classify::read::tuple_of_line;
///
/// let tuple: Ipv4Tuple = tuple_of_line("10.0.0.1 192.0.2.7 4000 443 tcp")?;
/// assert_eq!(tuple_of_line("src=10.0.0.1 dst=192.0.2.7 sport=4000 dport=443 tcp"), Ok(tuple));
/// # Ok::<(), wirespeed_classify::TupleError>(())
/// ```
#[inline(never)] // one copy for all crates
pub fn tuple_of_line<T: Tuple>(line: &str) -> Result<T, TupleError> {
    const COLUMNS: [&str; 5] = ["src", "dst", "sport", "dport", "proto"];
    let mut words = line.split_whitespace();
    let columns = words.clone().count();
    // A protocol may stand alone.
    if line.contains('=') || columns == 1 {
        return line.parse();
    }
    if columns < COLUMNS.len() {
        return Err(TupleError::Columns(columns));
    }
    let tuple = COLUMNS.iter().zip(&mut words).try_fold(T::default(), |tuple, (name, word)| {
        let field = Fields::of::<T>().get(name)?;
        Ok::<_, TupleError>(tuple.with(field, field.parse_column(word)?))
    })?;
    // Flags, and the filter that the tuple was made of.
    match words.find(|word| decimal(word).is_none()) {
        None => Ok(tuple),
        Some(word) => Err(TupleError::Behind(word.to_owned())),
    }
}
