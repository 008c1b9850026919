//! Counts in text: `1,042,325 prefixes`.

use std::fmt;

use wirespeed_input::plural;

/// A count with thousands separated.
pub struct Grouped(pub u64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut text = String::with_capacity(digits.len() * 4 / 3);
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        f.pad_integral(true, "", &text)
    }
}

/// A count of elements of a slice, with thousands separated.
pub fn grouped(count: usize) -> Grouped {
    Grouped(count as u64)
}

/// A count and its noun: `1 prefix`, `1,042,325 prefixes`.
pub fn counted(count: usize, noun: &str) -> String {
    counted_u64(count as u64, noun)
}

/// Formats like [`counted`], for a `u64`.
pub fn counted_u64(count: u64, noun: &str) -> String {
    format!("{} {}", Grouped(count), plural(count, noun))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        let text: Vec<_> = [0, 12, 999, 1_000, 1_042_325].map(|n| Grouped(n).to_string()).into();
        assert_eq!(text, ["0", "12", "999", "1,000", "1,042,325"]);
        assert_eq!(format!("{:>7}", Grouped(1_000)), "  1,000");
    }

    #[test]
    fn one_is_singular() {
        assert_eq!([counted(1, "prefix"), counted(1_000, "prefix")], ["1 prefix", "1,000 prefixes"]);
    }
}
