//! [`Lines`]: which line of its file a rule comes from.
//!
//! Where chains are written out, a rule's number says nothing of its place in the file, and one line may have
//! become many rules.

use std::fmt::Write as _;

use super::report::Place;

/// The lines that rules come from, by the rules' numbers. Empty of formats in which a line is a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// The number of the first rule of each, ascending; those up to the next one's are of the same line.
    lines: Vec<(u32, SourceLine)>,
    /// The number of the last rule of all.
    last: u32,
}

/// A line of a file of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The place. `None` of what no single line says, such as a chain's policy.
    pub place: Option<Place>,
    /// The text of the line.
    pub text: String,
}

/// Text that [`Lines::to_text`] didn't write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {0} of where rules come from is none")]
pub struct LinesError(usize);

impl Lines {
    /// The line of a rule; `None` where nothing is known of it.
    pub fn of(&self, number: u32) -> Option<&SourceLine> {
        let after = self.lines.partition_point(|&(first, _)| first <= number);
        let (_, line) = self.lines[..after].last()?;
        (number <= self.last).then_some(line)
    }

    /// Whether nothing is known of any rule.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Notes where a rule comes from that has a larger number than all before.
    pub(super) fn add(&mut self, number: u32, place: Option<Place>, text: &str) {
        if !self.lines.last().is_some_and(|(_, last)| last.place == place && last.text == text) {
            self.lines.push((number, SourceLine { place, text: text.to_owned() }));
        }
        self.last = number;
    }

    /// All of it as lines of text, which [`from_text`](Self::from_text) reads:
    /// `12 7<TAB>-A INPUT -j ACCEPT`, of JSON `12 7/4<TAB>…`, and the number of the last rule at the end.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (first, SourceLine { place, text: said }) in &self.lines {
            let said = said.replace(['\n', '\r'], " ");
            let _ = writeln!(text, "{first} {}\t{said}", place.unwrap_or_default().word()); // a String takes all
        }
        if !self.is_empty() {
            let _ = writeln!(text, "{}", self.last);
        }
        text
    }

    /// Reads what [`to_text`](Self::to_text) wrote.
    pub fn from_text(text: &str) -> Result<Self, LinesError> {
        let mut lines = Self::default();
        let count = text.lines().count();
        for (at, line) in (1..).zip(text.lines()) {
            let one = match at {
                _ if at == count => line.parse().ok().map(|last| lines.last = last),
                _ => source_line(line).map(|one| lines.lines.push(one)),
            };
            one.ok_or(LinesError(at))?;
        }
        let is_ascending = lines.lines.is_sorted_by(|a, b| a.0 < b.0);
        let is_last = lines.lines.last().is_none_or(|&(first, _)| first <= lines.last);
        if is_ascending && is_last { Ok(lines) } else { Err(LinesError(count)) }
    }
}

fn source_line(text: &str) -> Option<(u32, SourceLine)> {
    let (numbers, said) = text.split_once('\t')?;
    let (first, line) = numbers.split_once(' ')?;
    let place = Some(Place::parse(line)?).filter(|place| place.line > 0);
    Some((first.parse().ok()?, SourceLine { place, text: said.to_owned() }))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;

    #[test]
    fn rules_of_lines() {
        let mut lines = Lines::default();
        assert_eq!((lines.of(1), lines.is_empty()), (None, true));
        for (number, line, text) in [
            (1, Some(3), "a"),
            (2, Some(3), "a"),
            (3, Some(7), "b\tc"),
            (4, Some(3), "a"),
            (5, Some(8), "c"),
            (6, None, "policy"),
        ] {
            let entry = NonZeroU64::new(4).filter(|_| line == Some(8));
            lines.add(number, line.map(|line| Place { line, entry }), text);
        }
        let place = |number| lines.of(number).map(|line| line.place.map(|place| place.to_string()));
        let of: Vec<_> = (0..8).map(place).collect();
        let lines_of = ["3", "3", "7", "3", "8, entry 4"].map(|line| Some(Some(format!("line {line}"))));
        assert_eq!((&of[0], &of[1..6], &of[6..]), (&None, &lines_of[..], &[Some(None), None][..]));
        assert_eq!(Lines::from_text(&lines.to_text()), Ok(lines));
        assert_eq!(Lines::from_text(""), Ok(Lines::default()));
        for wrong in ["x", "1 3 a\n1", "1 3\ta\n0", "2 3\ta\n1 3\tb\n9", "1 3\ta", "0\n\n"] {
            assert!(Lines::from_text(wrong).is_err(), "{wrong:?}");
        }
    }
}
