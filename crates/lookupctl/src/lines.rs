//! What is asked for on standard input, a line each, and answered as it comes.

use std::io::{BufRead, BufReader, Read};

use anyhow::{Context, Result, bail};

use crate::number::counted_u64;

/// Lines that are told with their numbers where bad ones are passed over; the rest are counted.
const TOLD: u64 = 20;

/// A line that can't be answered, and why. The lines after it can.
#[derive(Debug)]
pub(crate) struct BadLine(pub(crate) anyhow::Error);

/// Gives each line of standard input that says something, cut at `longest` bytes: one that is longer needn't
/// be read to its end. After `answer`, `pause` is called where nothing more is there to read. An error is
/// told with the line's number.
pub(crate) fn each<S>(
    session: &mut S,
    longest: u64,
    answer: impl Fn(&mut S, &[u8]) -> Result<()>,
    pause: impl Fn(&mut S) -> Result<()>,
) -> Result<()> {
    each_good(session, longest, false, |session, line| Ok(Ok(answer(session, line)?)), pause)
}

/// [`each`], where a line may be a bad one. The first of them ends it; with `lenient` each is told by its
/// number and passed over, and at the end an error says how many there were.
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
            // What is past the longest is no line of its own.
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
