//! [`Labels`]: the texts of a table's results.

use std::fmt;

use wirespeed_fib::NextHops;
use wirespeed_fib::read::parts::Fault;

/// The user's results by number, from 1: first the lines of a list, if the table is one, then words in order
/// of first appearance.
///
/// ```
/// use wirespeed_namelookup::read::Labels;
///
/// let mut labels = Labels::new();
/// assert_eq!((labels.intern("192.0.2.1")?, labels.intern("core")?, labels.intern("192.0.2.1")?), (1, 2, 1));
/// assert_eq!(labels.label(2).map(|label| label.to_string()).as_deref(), Some("core"));
/// assert_eq!(labels.label(3), None);
/// # Ok::<(), wirespeed_fib::TooManyNextHops>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// Results that are lines: 1 up to this number.
    lines: u32,
    /// The other results, numbered after the lines.
    words: NextHops,
    /// The last word: neighbours in a table often share a result.
    last: (String, u32),
}

/// The text of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label<'l> {
    /// The line of its name, in a table without results.
    Line(u32),
    /// A word, a number or an address.
    Word(&'l str),
}

impl fmt::Display for Label<'_> {
    /// The number of the line, or the word.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => line.fmt(f),
            Self::Word(word) => f.write_str(word),
        }
    }
}

impl Labels {
    /// Makes an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes labels of results that are the lines of a list, up to this number.
    pub fn of_lines(lines: u32) -> Self {
        Self { lines, ..Self::default() }
    }

    /// Makes labels of results that are all words, with the numbers that these have.
    pub(crate) fn of_words(words: NextHops) -> Self {
        Self { words, ..Self::default() }
    }

    /// The result of a word. A new word gets a new result. O(length).
    pub fn intern(&mut self, word: &str) -> Result<u32, wirespeed_fib::TooManyNextHops> {
        if let Some(result) = self.again(word.as_bytes()) {
            return Ok(result);
        }
        let index = self.words.intern(word)?.0;
        let result = self.lines.checked_add(index).ok_or(wirespeed_fib::TooManyNextHops)?;
        self.last.0.clear();
        self.last.0.push_str(word);
        self.last.1 = result;
        Ok(result)
    }

    /// The result of a word that equals the last one, without any check.
    #[inline]
    pub(super) fn again(&self, word: &[u8]) -> Option<u32> {
        (self.last.1 != 0 && self.last.0.as_bytes() == word).then_some(self.last.1)
    }

    /// The result of a line. Only valid while there are no words.
    pub(super) fn line<F, R>(&mut self, line: u64) -> Result<u32, Fault<F, R>> {
        let line = u32::try_from(line).map_err(|_| Fault::Full(wirespeed_fib::TooManyNextHops))?;
        debug_assert!(self.words.is_empty());
        self.lines = self.lines.max(line);
        Ok(line)
    }

    /// Makes a result of the next line of a list. `TooManyNextHops` if there are words, whose results follow
    /// the last line's.
    pub fn next_line(&mut self) -> Result<u32, wirespeed_fib::TooManyNextHops> {
        if !self.words.is_empty() {
            return Err(wirespeed_fib::TooManyNextHops);
        }
        self.lines = self.lines.checked_add(1).ok_or(wirespeed_fib::TooManyNextHops)?;
        Ok(self.lines)
    }

    /// The result of a word. `None` if it never appeared.
    pub fn find(&self, word: &str) -> Option<u32> {
        self.words.find(word).map(|index| self.lines + index.0)
    }

    /// The text of a result. `None` for 0 and for numbers that are no results.
    pub fn label(&self, result: u32) -> Option<Label<'_>> {
        match result.checked_sub(self.lines) {
            None | Some(0) => (result != 0).then_some(Label::Line(result)),
            Some(index) => self.words.text(wirespeed_fib::NextHop(index)).map(Label::Word),
        }
    }

    /// The number of results, which is also the largest.
    pub fn len(&self) -> usize {
        self.lines as usize + self.words.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of results that are lines of a list.
    pub const fn lines(&self) -> u32 {
        self.lines
    }

    /// All texts with their results, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Label<'_>)> {
        let words = self.words.iter().map(|(index, word)| (self.lines + index.0, Label::Word(word)));
        (1..=self.lines).map(|line| (line, Label::Line(line))).chain(words)
    }

    /// The labels as bytes, for storing beside an image: the number of lines, 4 bytes little-endian, then
    /// each word after its length.
    pub fn to_bytes(&self) -> Vec<u8> {
        [&self.lines.to_le_bytes()[..], &self.words.to_bytes()].concat()
    }

    /// Reads the bytes of [`to_bytes`](Self::to_bytes). `None` for other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (lines, words) = bytes.split_first_chunk::<4>()?;
        let (lines, words) = (u32::from_le_bytes(*lines), NextHops::from_bytes(words)?);
        let most = u32::try_from(words.len()).ok()?;
        lines.checked_add(most)?;
        Some(Self { lines, words, last: Default::default() })
    }
}
