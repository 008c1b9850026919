//! `--strides`: the levels of a multi-bit trie, parsed here only.

use clap::Args;
use wirespeed_fib::Strides;
use wirespeed_gamt::strides::MAX_STRIDE;

/// The levels of a multi-bit trie.
#[derive(Clone, Debug, Args)]
pub(crate) struct StridesArgument {
    /// Levels of an engine whose levels can be chosen (gamt, gamt-s): fastest; a number of levels, where the
    /// widest level is as narrow as possible and then memory transactions are fewest (levels=6,
    /// levels=6,transaction=32); or the bits of each level (16,8,8)
    #[arg(long, value_name = "fastest|levels=N|BITS,…", default_value = "fastest", value_parser = parse)]
    pub(crate) strides: Strides,
}

/// The default bytes of a memory transaction.
pub(crate) const TRANSACTION: u32 = 128;

/// Parses `fastest`, `levels=N`, `levels=N,transaction=BYTES`, or strides from the first bit on.
fn parse(text: &str) -> Result<Strides, String> {
    if text == "fastest" {
        return Ok(Strides::Fastest);
    }
    match text.strip_prefix("levels=") {
        Some(rest) => levels(rest),
        None if text.starts_with(|c: char| c.is_ascii_digit()) => given(text),
        None => Err("it is fastest, levels=N, levels=N,transaction=BYTES, or bits such as 16,8,8".to_owned()),
    }
}

fn levels(text: &str) -> Result<Strides, String> {
    let (levels, transaction) = match text.split_once(',') {
        None => (text, TRANSACTION),
        Some((levels, rest)) => {
            let bytes = rest.strip_prefix("transaction=");
            (levels, parse_transaction(bytes.ok_or("after levels=N comes ,transaction=BYTES or nothing")?)?)
        }
    };
    match number(levels) {
        Some(levels @ 1..=128) => Ok(Strides::Levels { levels, transaction }),
        _ => Err(format!("{levels:?}: there are 1 to 128 levels")),
    }
}

/// Parses the bytes of a GPU's memory transaction.
pub(crate) fn parse_transaction(text: &str) -> Result<u32, String> {
    match number(text) {
        Some(bytes @ (32 | 64 | 128)) => Ok(bytes.into()),
        _ => Err(format!("{text:?}: a transaction has 32, 64 or 128 bytes")),
    }
}

fn given(text: &str) -> Result<Strides, String> {
    let stride = |text: &str| match number(text) {
        Some(bits @ 1..=MAX_STRIDE) => Ok(bits),
        _ => Err(format!("{text:?}: a level takes 1 to {MAX_STRIDE} bits")),
    };
    let strides = text.split(',').map(stride).collect::<Result<Vec<u8>, String>>()?;
    match strides.iter().map(|&bits| u32::from(bits)).sum::<u32>() {
        ..=128 => Ok(Strides::Given(strides)),
        bits => Err(format!("these are {bits} bits, an address has at most 128")),
    }
}

/// Parses a number without a sign; `parse` would accept one.
fn number(text: &str) -> Option<u8> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_ask() {
        assert_eq!(parse("fastest"), Ok(Strides::Fastest));
        assert_eq!(parse("levels=6"), Ok(Strides::Levels { levels: 6, transaction: 128 }));
        assert_eq!(parse("levels=128,transaction=32"), Ok(Strides::Levels { levels: 128, transaction: 32 }));
        assert_eq!(parse("24"), Ok(Strides::Given(vec![24])));
        assert_eq!(parse("16,8,8"), Ok(Strides::Given(vec![16, 8, 8])));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, says) in [
            ("", "fastest"),
            ("slowest", "fastest"),
            ("-1", "fastest"),
            ("16,0,8", "\"0\": a level takes 1 to 24 bits"),
            ("16,25", "\"25\""),
            ("16,,8", "\"\": a level"),
            ("16,8,", "\"\": a level"),
            ("16, 8", "\" 8\""),
            ("16,+8", "\"+8\""),
            ("24,24,24,24,24,24", "144 bits"),
            ("levels=", "1 to 128 levels"),
            ("levels=0", "1 to 128 levels"),
            ("levels=129", "1 to 128 levels"),
            ("levels=300", "1 to 128 levels"),
            ("levels=6,", "transaction=BYTES"),
            ("levels=6,16", "transaction=BYTES"),
            ("levels=6,transaction=16", "32, 64 or 128"),
            ("levels=6,transaction=", "32, 64 or 128"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(says), "{text:?}: {error}");
        }
    }
}
