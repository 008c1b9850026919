//! Numbers in text: `11.5 MB`, and sizes of the command line.

use std::fmt;

pub(crate) use wirespeed_commands::number::{Grouped, counted, counted_u64, grouped};

/// Bytes as a size with one digit after the point.
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[allow(clippy::cast_precision_loss)] // for reading
        let bytes = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{} B", self.0),
            1_000..1_000_000 => write!(f, "{:.1} kB", bytes / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.1} MB", bytes / 1e6),
            _ => write!(f, "{:.1} GB", bytes / 1e9),
        }
    }
}

/// Bytes of one of many, with one digit after the point: a tenth of a byte counts where they are few.
pub(crate) struct BytesEach(pub(crate) f64);

impl fmt::Display for BytesEach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 999.95 {
            return write!(f, "{:.1} B", self.0);
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        // positive, and of a table in memory
        Bytes(self.0.round() as u64).fmt(f)
    }
}

/// `part` of `whole` as a share from 0 to 1; 0 of nothing.
#[allow(clippy::cast_precision_loss)] // for reading
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Parses a size in bytes: `800000`, `512M`, `4GiB`. Units are powers of 1024, as in limits of other tools.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err(format!("{unit:?} is no unit of size: K, M, G and T are")),
    };
    let number: u64 = number.parse().map_err(|_| "a size is a number and a unit, such as 512M".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "that is over 2^64 bytes".to_owned())
}

/// Parses a count: `4000000`, `4M`, `64k`. Units are powers of 1000.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    let (number, factor) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1_000),
        Some((at, 'm' | 'M')) => (&text[..at], 1_000_000),
        Some((at, 'g' | 'G')) => (&text[..at], 1_000_000_000),
        _ => (text, 1),
    };
    let number: u64 =
        number.parse().map_err(|_| "a count is a whole number, such as 4M or 65536".to_owned())?;
    number.checked_mul(factor).ok_or_else(|| "that is over 2^64".to_owned())
}

/// Parses a count like [`parse_count`] that is at least 1 and fits memory.
pub(crate) fn parse_positive(text: &str) -> Result<usize, String> {
    match usize::try_from(parse_count(text)?) {
        Ok(0) => Err("at least 1 is needed".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err("that is more than this machine can address".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_one_have_a_unit() {
        let text = [3.96, 999.94, 999.96, 543_552.0, 16.8e6].map(|bytes| BytesEach(bytes).to_string());
        assert_eq!(text, ["4.0 B", "999.9 B", "1.0 kB", "543.6 kB", "16.8 MB"]);
    }

    #[test]
    fn sizes_as_people_write_them() {
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("2k"), Ok(2048));
        assert_eq!(parse_size("1GiB"), Ok(1 << 30));
        assert_eq!(parse_size("1MB"), Ok(1 << 20));
        assert!(parse_size("").is_err() && parse_size("-1").is_err() && parse_size("3 parsecs").is_err());
        assert!(parse_size("99999999999T").is_err());
    }

    #[test]
    fn counts_as_people_write_them() {
        assert_eq!(parse_count("4M"), Ok(4_000_000));
        assert_eq!(parse_positive("64k"), Ok(64_000));
        assert!(parse_positive("0").is_err() && parse_count("M").is_err() && parse_count("1.5").is_err());
    }
}
