//! [`Escaped`]: text in which control characters are escaped.
//!
//! Messages and results quote files and file names. A file that holds the codes of a terminal must not steer
//! the one that shows the message. So all text passes here on its way to stdout and stderr; JSON escapes by
//! itself.

use std::fmt::{self, Display, Write};

/// A text, shown with its control characters escaped, except tabs and ends of lines.
pub struct Escaped<T>(pub T);

impl<T: Display> Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

/// Escapes each piece of a text.
struct Escaping<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let is_steering = |c: char| c.is_control() && !matches!(c, '\t' | '\n');
        let mut rest = text;
        while let Some(at) = rest.find(is_steering) {
            let (before, after) = rest.split_at(at);
            let mut chars = after.chars();
            self.0.write_str(before)?;
            chars.next().map_or(Ok(()), |steering| write!(self.0, "{}", steering.escape_debug()))?;
            rest = chars.as_str();
        }
        self.0.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_shown() {
        for (text, shown) in [
            ("plain é\ttext\n", "plain é\ttext\n"),
            ("a\x1b[31mb\x07", "a\\u{1b}[31mb\\u{7}"),
            ("\u{9b}2J\r\0", "\\u{9b}2J\\r\\0"),
            ("\\u{1b} \"quoted\"", "\\u{1b} \"quoted\""),
        ] {
            assert_eq!(Escaped(text).to_string(), shown);
            assert_eq!(Escaped(format_args!("<{text}>")).to_string(), format!("<{shown}>"));
        }
    }
}
