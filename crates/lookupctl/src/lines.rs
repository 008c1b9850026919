//! What is asked for on standard input, a line each, and answered as it comes.

use std::io::{BufRead, BufReader, Read};

use anyhow::{Context, Result};

/// Gives each line of standard input that says something, cut at `longest` bytes: one that is longer needn't be read to its end. After
/// `answer`, `pause` is called where nothing more is there to read. An error is told with the line's number.
pub(crate) fn each<S>(
    session: &mut S,
    longest: u64,
    answer: impl Fn(&mut S, &[u8]) -> Result<()>,
    pause: impl Fn(&mut S) -> Result<()>,
) -> Result<()> {
    let mut input = BufReader::with_capacity(1 << 16, std::io::stdin().lock());
    let (mut line, mut number) = (Vec::new(), 0u64);
    loop {
        line.clear();
        number += 1;
        if input.by_ref().take(longest).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        answer(session, &line).with_context(|| format!("standard input:{number}"))?;
        if !input.buffer().contains(&b'\n') {
            pause(session)?;
        }
    }
}
