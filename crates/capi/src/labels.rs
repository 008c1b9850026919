//! [`Texts`]: the labels of a table, as C reads them. They stay until the caller says that it holds none.

use std::ffi::{CString, c_char};
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr;
use std::str::FromStr;

use wirespeed::fib::read::record;
use wirespeed::{Labels, NextHop};

use crate::boundary::{Failure, status};

/// A label: a text that ends with a zero byte.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Text(CString);

impl FromStr for Text {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        CString::new(text).map(Self).map_err(|_| "a zero byte ends a text of C")
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Made of a `str`.
        f.write_str(&self.0.to_string_lossy())
    }
}

/// The labels of a table. Labels of the façade end with their last route; these are claimed once more each,
/// so that a number and its text stay while C may hold them.
pub(crate) struct Texts {
    labels: Labels<Text>,
    /// Whether the label of an index is claimed, from index 1.
    held: Vec<bool>,
}

impl Texts {
    pub(crate) fn new() -> Self {
        Self::of(Labels::new())
    }

    /// Labels that were read.
    pub(crate) fn of(labels: Labels<Text>) -> Self {
        let mut texts = Self { labels, held: Vec::new() };
        texts.hold();
        texts
    }

    pub(crate) fn labels(&self) -> &Labels<Text> {
        &self.labels
    }

    /// Whether there are no labels: results are the caller's numbers.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Claims the labels that are new.
    pub(crate) fn hold(&mut self) {
        let known = self.labels.enter();
        for (index, text) in known.iter() {
            let at = index.0 as usize;
            if self.held.len() <= at {
                self.held.resize(at + 1, false);
            }
            if !self.held[at] && self.labels.intern(text.clone()) == Ok(index) {
                self.held[at] = true;
            }
        }
    }

    /// Lets the labels that no route leads to end.
    pub(crate) fn forget(&mut self) {
        for (index, held) in (0..).map(NextHop).zip(&mut self.held) {
            if std::mem::take(held) {
                self.labels.release(index);
            }
        }
        self.labels.reclaim();
        self.hold();
    }

    /// Makes a change that leads to a label. The change gets the label's index, and settles one claim on it
    /// if it succeeds.
    pub(crate) fn with<R>(
        &mut self,
        text: &str,
        change: impl FnOnce(NextHop, &Labels<Text>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let text: Text = text.parse().map_err(|why: &str| Failure::argument(why))?;
        let is_known = self.labels.find(&text).is_some();
        let index = self.labels.intern(text).map_err(wirespeed::Error::from)?;
        let changed = change(index, &self.labels);
        if changed.is_err() {
            self.labels.release(index);
        } else if !is_known {
            self.hold();
        }
        changed
    }

    /// Claims the label of an index for a change that leads to it. Fails if the table has labels, and none of
    /// this index.
    pub(crate) fn claim(&self, index: NextHop) -> Result<(), Failure> {
        if self.is_empty() || !index.is_some() {
            return Ok(());
        }
        let text = self.labels.get(index).map(|text| text.clone());
        match text.map(|text| self.labels.intern(text)) {
            Some(Ok(found)) if found == index => Ok(()),
            Some(Ok(other)) => {
                self.labels.release(other);
                Err(no_label(index))
            }
            _ => Err(no_label(index)),
        }
    }

    /// Claims the labels of changes, makes them, and gives the claims back if they fail.
    pub(crate) fn claimed<R>(
        &self,
        indexes: &[NextHop],
        change: impl FnOnce() -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        if self.is_empty() {
            return change();
        }
        let mut claimed = 0;
        let all = indexes.iter().try_for_each(|&index| {
            self.claim(index)?;
            claimed += 1;
            Ok(())
        });
        let changed = all.and_then(|()| change());
        if changed.is_err() {
            for &index in indexes[..claimed].iter().filter(|index| index.is_some()) {
                self.labels.release(index);
            }
        }
        changed
    }
}

fn no_label(index: NextHop) -> Failure {
    Failure::state(format!("{index} is the number of no label, and this table has labels"))
}

/// Refuses labels in a table whose results are the caller's numbers.
pub(crate) fn check_no_numbers(texts: &Texts, is_empty: bool) -> Result<(), Failure> {
    if texts.is_empty() && !is_empty {
        return Err(Failure::state("this table has numbers of the caller's own, and no labels"));
    }
    Ok(())
}

/// The text of a label, or NULL. It stays in place as [`Texts`] says.
fn text_of(labels: &Labels<Text>, number: u64) -> *const c_char {
    let index = u32::try_from(number).map_or(NextHop::NONE, NextHop);
    labels.get(index).map_or(ptr::null(), |text| text.0.as_ptr())
}

/// The text of a label of a reader, or NULL also if the call fails.
pub(crate) fn label_of<'c>(
    labels: impl FnOnce() -> Result<&'c Labels<Text>, Failure>,
    number: u64,
) -> *const c_char {
    let mut found = ptr::null();
    status(|| {
        found = text_of(labels()?, number);
        Ok(())
    });
    found
}

/// Writes the value of a field of a label: [`write_text`]. Returns its bytes, 0 for a label that lacks the
/// field. Fails if no label has it.
pub(crate) fn write_field(
    labels: &Labels<Text>,
    number: u64,
    field: &str,
    value: &mut [MaybeUninit<c_char>],
) -> Result<usize, Failure> {
    let known = labels.enter();
    let index = u32::try_from(number).map_or(NextHop::NONE, NextHop);
    let label = known.get(index).map(ToString::to_string).unwrap_or_default();
    let found = record::field(&label, field);
    if found.is_none() {
        let all: Vec<_> = known.iter().map(|(_, text)| text.0.to_string_lossy()).collect();
        record::check_field(|| all.iter().map(AsRef::as_ref), field)
            .map_err(|error| Failure::argument(error.to_string()))?;
    }
    Ok(write_text(&found.unwrap_or_default(), value))
}

/// Writes as much of a text as fits with the zero that ends it. Returns the bytes of the whole text without
/// that zero.
pub(crate) fn write_text(text: &str, value: &mut [MaybeUninit<c_char>]) -> usize {
    if let Some(most) = value.len().checked_sub(1) {
        let bytes = text.bytes().take(most).chain([0]);
        // A `char` of C may have a sign; its bits are the byte's.
        value.iter_mut().zip(bytes).for_each(|(to, byte)| _ = to.write(c_char::from_ne_bytes([byte])));
    }
    text.len()
}

/// A number of the caller's as an index.
pub(crate) fn index(number: u64, what: &str) -> Result<NextHop, Failure> {
    let index = u32::try_from(number).map_err(|_| {
        Failure::argument(format!("{what} {number} is too large: the largest is {}", u32::MAX))
    })?;
    Ok(NextHop(index))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Labels without routes.
    fn texts(texts: &[&str]) -> Texts {
        let labels = Labels::new();
        let given: Vec<_> = texts.iter().map(|text| labels.intern(text.parse().unwrap()).unwrap()).collect();
        let texts = Texts::of(labels);
        given.into_iter().for_each(|index| texts.labels().release(index));
        texts
    }

    #[test]
    fn labels_stay_until_they_are_forgotten() {
        use wirespeed::prelude::*;

        let mut texts = texts(&[]);
        let mut table = Ipv4Table::builder().labels(texts.labels()).build().unwrap();
        let net: Ipv4Net = "10.0.0.0/8".parse().unwrap();
        for text in ["a", "b"] {
            texts.with(text, |index, _| Ok(table.insert(net, index)?)).unwrap();
        }
        let [a, b] = [1, 2].map(|index| text_of(texts.labels(), index));
        assert!(!a.is_null() && !b.is_null());
        // Readers of other tests may keep the text for a moment.
        let is_gone = |texts: &mut Texts| {
            texts.forget();
            std::thread::yield_now();
            text_of(texts.labels(), 1).is_null()
        };
        assert!((0..100_000).any(|_| is_gone(&mut texts)));
        assert_eq!(text_of(texts.labels(), 2), b);
        // The number of a label that ended is given again.
        texts.with("c", |index, _| Ok(table.insert(net, index)?)).unwrap();
        assert_eq!(texts.labels().len(), 2);
        assert!(!text_of(texts.labels(), 1).is_null());
    }

    #[test]
    fn a_change_that_fails_leaves_no_label() {
        let mut texts = texts(&["a"]);
        let failed = texts.with("b", |_, _| Err::<(), _>(Failure::state("no")));
        assert!(failed.is_err());
        texts.forget();
        assert!(texts.is_empty());
        assert!(texts.with("a\0", |_, _| Ok(())).is_err());
    }

    #[test]
    fn numbers_without_a_label_are_refused() {
        let texts = texts(&["a", "b"]);
        assert!(texts.claimed(&[NextHop(1), NextHop::NONE, NextHop(2)], || Ok(())).is_ok());
        assert!(texts.claimed(&[NextHop(1), NextHop(3)], || Ok(())).is_err());
        assert!(check_no_numbers(&texts, false).is_ok());
        assert!(check_no_numbers(&Texts::new(), true).is_ok());
        assert!(check_no_numbers(&Texts::new(), false).is_err());
    }
}
