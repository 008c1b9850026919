//! [`refuse`]: an option that nothing would heed is refused, and not passed over.

use std::fmt;

use anyhow::{Result, bail};

/// An option by its name without dashes, and whether it is given.
pub type Given<'o> = (&'o str, bool);

/// Refuses the first of these options that is given. `why` follows its name in the message.
pub fn refuse(options: &[Given<'_>], why: impl fmt::Display) -> Result<()> {
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => bail!("--{option} {why}"),
        None => Ok(()),
    }
}

/// The reason why options for a table that is read are refused where none is.
pub const NO_TABLE: &str = "is for a table that is read, and none is";
/// The reason why options for a table are refused beside an image. `info` takes `--engine`, as its help says.
pub const IMAGE: &str = "is for a table, and an image is compiled already";
/// The reason why a seed is refused where nothing is made.
pub const NOTHING_MADE: &str = "is for what is made, and nothing is";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_given_is_told() {
        let said = refuse(&[("a", false), ("b", true), ("c", true)], NO_TABLE).unwrap_err().to_string();
        assert_eq!(said, "--b is for a table that is read, and none is");
        assert!(refuse(&[("a", false)], NO_TABLE).is_ok() && refuse(&[], NO_TABLE).is_ok());
    }
}
