//! Standard input, which can be read only once.

use std::ffi::OsStr;

use anyhow::{Result, bail};

/// Refuses a command line with two inputs `-`. Each input comes with its name, `the table` or `the trace`.
pub fn at_most_one<'a>(inputs: impl IntoIterator<Item = (&'a str, Option<&'a OsStr>)>) -> Result<()> {
    let mut from_there = inputs.into_iter().filter(|(_, from)| from.is_some_and(|from| from == "-"));
    match (from_there.next(), from_there.next()) {
        (Some((one, _)), Some((other, _))) if one == other => {
            bail!("only one input can come from standard input: {one} is - twice")
        }
        (Some((one, _)), Some((other, _))) => {
            bail!("{one} and {other} can't both come from standard input")
        }
        _ => Ok(()),
    }
}
