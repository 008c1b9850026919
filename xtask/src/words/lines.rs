//! [`Block`]: lines of comment that follow each other, told from what only looks like them in strings.

/// Lines of comment with one mark and one indent.
pub(super) struct Block<'t> {
    /// The line of the file, from 0, that the first one is.
    pub(super) first: usize,
    pub(super) indent: &'t str,
    /// `//`, `///` or `//!`.
    pub(super) mark: &'static str,
    /// Whole lines, without their ends.
    pub(super) lines: Vec<&'t str>,
}

impl<'t> Block<'t> {
    pub(super) fn is_doc(&self) -> bool {
        self.mark != "//"
    }

    /// What a line says after its mark, without the blank that follows the mark.
    pub(super) fn content(&self, line: usize) -> &'t str {
        let content = &self.lines[line][self.indent.len() + self.mark.len()..];
        content.strip_prefix(' ').unwrap_or(content).trim_end()
    }
}

/// The comments of a file that have lines of their own.
pub(super) fn blocks(text: &str) -> Vec<Block<'_>> {
    let (mut blocks, mut state): (Vec<Block<'_>>, State) = (Vec::new(), State::Code);
    for (number, line) in text.lines().enumerate() {
        let after = state.after(line);
        let begins_in = std::mem::replace(&mut state, after);
        let Some(mark) = (begins_in == State::Code).then(|| mark(line)).flatten() else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        match blocks.last_mut() {
            Some(block)
                if block.first + block.lines.len() == number
                    && (block.mark, block.indent) == (mark, indent) =>
            {
                block.lines.push(line);
            }
            _ => blocks.push(Block { first: number, indent, mark, lines: vec![line] }),
        }
    }
    blocks
}

/// Says of each line whether it is part of a public enum or trait, the first line not included.
pub(super) fn within_public(lines: &[&str]) -> Vec<bool> {
    // The indent of the last one that began, until it ends.
    let mut begun: Option<usize> = None;
    let is_within = |line: &&str| {
        let item = line.trim_start();
        let indent = line.len() - item.len();
        if let Some(of) = begun {
            let ends = indent == of && item.starts_with('}');
            begun = (!ends).then_some(of);
            return !ends;
        }
        let begins = ["pub enum ", "pub trait ", "pub unsafe trait "].iter().any(|of| item.starts_with(of));
        begun = (begins && !item.ends_with('}')).then_some(indent);
        false
    };
    lines.iter().map(is_within).collect()
}

/// The mark of a line that is all comment.
fn mark(line: &str) -> Option<&'static str> {
    let line = line.trim_start();
    let mark = ["//!", "///", "//"].into_iter().find(|mark| line.starts_with(mark))?;
    (!line.starts_with("////")).then_some(mark)
}

/// What a place of a file is in.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Code,
    /// A block comment in so many others.
    Comment(usize),
    String,
    /// A raw string that ends with so many hashes.
    Raw(usize),
}

impl State {
    /// What the next line begins in.
    fn after(self, line: &str) -> Self {
        let (mut state, mut rest) = (self, line);
        while !rest.is_empty() {
            let skipped;
            (state, skipped) = match state {
                Self::Code if rest.starts_with("//") => return Self::Code,
                Self::Code => Self::of_code(rest),
                Self::Comment(depth) if rest.starts_with("*/") => {
                    (depth.checked_sub(1).map_or(Self::Code, Self::Comment), 2)
                }
                Self::Comment(depth) if rest.starts_with("/*") => (Self::Comment(depth + 1), 2),
                Self::String if rest.starts_with('\\') => (state, 2),
                Self::String if rest.starts_with('"') => (Self::Code, 1),
                Self::Raw(hashes)
                    if rest.strip_prefix('"').is_some_and(|rest| rest.starts_with(&"#".repeat(hashes))) =>
                {
                    (Self::Code, 1 + hashes)
                }
                Self::Comment(_) | Self::String | Self::Raw(_) => (state, 1),
            };
            rest = rest.char_indices().nth(skipped).map_or("", |(at, _)| &rest[at..]);
        }
        state
    }

    /// What follows in code, and after how many characters.
    fn of_code(rest: &str) -> (Self, usize) {
        if rest.starts_with("/*") {
            return (Self::Comment(0), 2);
        }
        if rest.starts_with('"') {
            return (Self::String, 1);
        }
        if let Some(raw) = rest.strip_prefix('r') {
            let hashes = raw.len() - raw.trim_start_matches('#').len();
            if raw[hashes..].starts_with('"') {
                return (Self::Raw(hashes), 2 + hashes);
            }
        }
        let mut characters = rest.chars();
        match (characters.next(), characters.next(), characters.next()) {
            (Some('\''), Some('\\'), Some(_)) => {
                let escaped = characters.take_while(|&character| character != '\'').count();
                (Self::Code, 4 + escaped)
            }
            (Some('\''), Some(_), Some('\'')) => (Self::Code, 3),
            _ => (Self::Code, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_no_comments() {
        for (text, count) in [
            ("// a\n// b\n", 1),
            ("// a\n    // b\n/// c\n", 3),
            ("let a = \"\n// b\n\";\n// c\n", 1),
            ("let a = r#\"\n// \" b\n\"#;\n// c\n", 1),
            ("let a = ('\"', '\\'', '\\\\', \"\\\"\");\n// c\n", 1),
            ("fn f<'a>(a: &'a str) {} // \"\n// c\n", 1),
            ("/* \" /* */\n// b\n*/\n// c\n", 1),
            ("//// a\n", 0),
        ] {
            assert_eq!(blocks(text).len(), count, "{text}");
        }
    }
}
