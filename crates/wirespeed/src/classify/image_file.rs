//! Image files of rules, like those of addresses in [`crate::image_file`], with other attachments.
//!
//! ```text
//! head … ranks     the engine's sections
//! tuple            the tuple's name: an engine's images are of one kind for all
//! rules            the rules in words, as `wirespeed_classify::write` writes them
//! labels           what their actions are called: a text for each, from 1
//! doubts           rules that were left out and could change answers, and what was assumed, as `Doubts::to_text` writes them
//! lines            which lines of their file the rules come from, as `Lines::to_text` writes them
//! ```
//!
//! An image of complete rules without assumptions has no doubts, nor has an image of an older version. If
//! each rule is simply a line of its file there are no lines.

use std::path::{Path, PathBuf};

use wirespeed_classify::read::{Doubts, Lines, ReadOptions, RuleFormat, read_rules_from};
use wirespeed_classify::write::write_rules;
use wirespeed_classify::{Pattern, Rule, RuleNumber, RuleSet};
use wirespeed_fib::NextHops;
use wirespeed_image::{Image, ImageError};

use super::tuple_name::TupleName;
use crate::engine::{AnyTable, ImageOf, RuleTuple};
use crate::error::Error;
use crate::image_file::opened::{self, Opened, image_file_methods};

/// The attachment that names the tuple.
const TUPLE: &str = "tuple";
/// The attachment that holds the rules.
const RULES: &str = "rules";
/// The attachment that [`NextHops::to_bytes`] writes.
const LABELS: &str = "labels";
/// The attachment that [`Doubts::to_text`] writes.
const DOUBTS: &str = "doubts";
/// The attachment that [`Lines::to_text`] writes.
const LINES: &str = "lines";
const ATTACHMENTS: [&str; 5] = [TUPLE, RULES, LABELS, DOUBTS, LINES];

/// Writes an engine's table as a file, with its rules, the names of their actions, the doubts, and the lines
/// of the rules if they are known. Replaces an existing file.
#[inline(never)] // one copy for all crates
pub fn save<T: RuleTuple>(
    image: &Image,
    rules: &RuleSet<T>,
    labels: &NextHops,
    (doubts, lines): (&Doubts<T>, &Lines),
    path: &Path,
) -> Result<Image, Error> {
    let mut words = Vec::new();
    // Writing to memory doesn't fail.
    write_rules(rules, &mut words).map_err(|error| {
        Error::in_image(path, ImageError::Malformed(format!("the attachment {RULES}: {error}")))
    })?;
    let (labels, doubts, lines) = (labels.to_bytes(), doubts.to_text(), lines.to_text());
    let mut attachments = vec![(TUPLE, T::NAME.as_bytes()), (RULES, &words), (LABELS, &labels)];
    let beside = [(DOUBTS, doubts.as_bytes()), (LINES, lines.as_bytes())];
    attachments.extend(beside.into_iter().filter(|(_, text)| !text.is_empty()));
    opened::write(image, &attachments, path)
}

/// An image of rules whose engine is in this build.
#[derive(Debug)]
pub struct RuleImageFile {
    file: Opened,
    tuple: TupleName,
}

impl RuleImageFile {
    image_file_methods!("rules");

    /// Finds the engine and the tuple of an image that was read.
    pub(crate) fn of(path: &Path, image: Image) -> Result<Self, Error> {
        let is_rules = |of| matches!(of, ImageOf::Rules).then_some(());
        let (file, ()) = Opened::of(path, image, "rules", is_rules)?;
        let tuple = file.attached(TUPLE, |name| TupleName::of(std::str::from_utf8(name).ok()?))?;
        match tuple {
            Some(tuple) => Ok(Self { file, tuple }),
            None => Err(file.malformed(TUPLE)),
        }
    }

    /// The tuple of the rules.
    #[must_use]
    pub fn tuple(&self) -> TupleName {
        self.tuple
    }

    /// The file itself if its rules are of this tuple; an error otherwise.
    pub fn of_tuple<T: RuleTuple>(self) -> Result<Self, Error> {
        match self.tuple.as_str() {
            found if found != T::NAME => {
                Err(Error::ImageTuple { path: self.file.path, found, wanted: T::NAME })
            }
            _ => Ok(self),
        }
    }

    /// Makes the engine's table, checked, without attachments.
    pub fn into_table<T: RuleTuple>(self) -> Result<Box<dyn AnyTable<T>>, Error> {
        self.file.into_table(&ATTACHMENTS)
    }

    /// Takes the engine's sections, not checked yet, without attachments; and the file.
    pub fn into_bare(self) -> Result<(PathBuf, Image), Error> {
        self.file.into_bare(&ATTACHMENTS)
    }

    /// The names of the actions. Empty if the file has none.
    pub fn labels(&self) -> Result<NextHops, Error> {
        Ok(self.file.attached(LABELS, NextHops::from_bytes)?.unwrap_or_default())
    }

    /// The rules that were left out and could change answers, and the assumptions about packets. Empty if the
    /// file has none.
    pub fn doubts<T: RuleTuple>(&self) -> Result<Doubts<T>, Error> {
        let doubts = self.text(DOUBTS, |text| Doubts::from_text(text).ok())?;
        Ok(doubts.unwrap_or_else(Doubts::none))
    }

    /// The lines of the source file that the rules come from. Empty if the file has none.
    pub fn lines(&self) -> Result<Lines, Error> {
        Ok(self.text(LINES, |text| Lines::from_text(text).ok())?.unwrap_or_default())
    }

    /// Makes a value of an attachment of text, like [`Opened::attached`].
    fn text<V>(&self, name: &str, parse: impl FnOnce(&str) -> Option<V>) -> Result<Option<V>, Error> {
        self.file.attached(name, |bytes| parse(std::str::from_utf8(bytes).ok()?))
    }

    /// The rules. Fails if the file holds the compiled table alone.
    pub fn rules<T: RuleTuple>(&self) -> Result<RuleSet<T>, Error> {
        let rules = self.file.attached(RULES, |words| rules(words, &self.file.image))?;
        rules.ok_or_else(|| Error::without(&self.file.path, "rules"))
    }
}

/// The rules that an image was compiled from. `None` if the text is not valid, or does not fit the number of
/// rules and the largest number of the image.
#[inline(never)] // one copy for all crates
fn rules<T: RuleTuple>(words: &[u8], image: &Image) -> Option<RuleSet<T>> {
    let options = ReadOptions { format: Some(RuleFormat::Plain), ..ReadOptions::default() };
    let (file, _) = read_rules_from::<T>(words, RULES, &options).ok()?;
    let (mut rules, last) = (file.rules, u32::try_from(image.results()).ok()?);
    if rules.len() as u64 != image.entries() || rules.last_number() > last {
        return None;
    }
    number_from(&mut rules, last)?;
    Some(rules)
}

/// Gives no number up to `last` to further rules: numbers of removed rules are not given again. `None` if it
/// is no number of a rule.
pub(super) fn number_from<T: RuleTuple>(rules: &mut RuleSet<T>, last: u32) -> Option<()> {
    if rules.last_number() < last {
        let number = rules.set(last, Rule::new(Pattern::all(), 0, 0)).ok()?.0;
        rules.remove(RuleNumber::get(number));
    }
    Some(())
}
