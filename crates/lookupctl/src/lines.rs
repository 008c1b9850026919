//! Lines of standard input, each answered as it comes.

use std::io::{BufRead, BufReader, Read};

use anyhow::{Context, Result, bail};

use crate::number::counted_u64;

/// The number of bad lines that are reported singly; the others are counted.
const TOLD: u64 = 20;

/// The reason why a line can't be answered. Later lines can.
#[derive(Debug)]
pub(crate) struct BadLine(pub(crate) anyhow::Error);

/// Gives each line of standard input that is not empty, cut at `longest` bytes. After `answer`, `pause` is
/// called if no more input is buffered. An error names the line's number.
pub(crate) fn each<S>(
    session: &mut S,
    longest: u64,
    answer: impl Fn(&mut S, &[u8]) -> Result<()>,
    pause: impl Fn(&mut S) -> Result<()>,
) -> Result<()> {
    each_good(session, longest, false, |session, line| Ok(Ok(answer(session, line)?)), pause)
}

/// Gives each line like [`each`], but lines may be bad. The first bad line ends the input. With `lenient` bad
/// lines are reported by number and passed over, and at the end an error gives their count.
pub(crate) fn each_good<S>(
    session: &mut S,
    longest: u64,
    lenient: bool,
    answer: impl Fn(&mut S, &[u8]) -> Result<Result<(), BadLine>>,
    pause: impl Fn(&mut S) -> Result<()>,
) -> Result<()> {
    let mut input = BufReader::with_capacity(1 << 16, std::io::stdin().lock());
    let (mut line, mut number, mut bad) = (Vec::new(), 0u64, 0u64);
    loop {
        line.clear();
        number += 1;
        if input.by_ref().take(longest).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let place = || format!("standard input:{number}");
        match answer(session, &line).with_context(place)? {
            Ok(()) => {}
            Err(BadLine(why)) if !lenient => return Err(why.context(place())),
            Err(BadLine(why)) => {
                bad += 1;
                pause(session)?;
                match bad {
                    ..=TOLD => eprintln!("{}: passed over: {why:#}", place()),
                    _ if bad == TOLD + 1 => eprintln!("further lines are passed over without a word"),
                    _ => {}
                }
            }
        }
        if line.last() != Some(&b'\n') {
            // The rest of a line that was cut is skipped.
            input.skip_until(b'\n')?;
        }
        if !input.buffer().contains(&b'\n') {
            pause(session)?;
        }
    }
    pause(session)?;
    match bad {
        0 => Ok(()),
        _ => bail!("standard input: {} of {} could not be answered", bad, counted_u64(number - 1, "line")),
    }
}
