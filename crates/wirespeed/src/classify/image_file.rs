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
use crate::bare::bare;
use crate::engine::{AnyTable, EngineName, ImageOf, RuleTuple, image_of};
use crate::error::Error;

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

/// Writes an engine's table as a file, with its rules, the names of their actions, the doubts, and the lines
/// of the rules if they are known. Replaces an existing file.
pub fn save<T: RuleTuple>(
    image: &Image,
    rules: &RuleSet<T>,
    labels: &NextHops,
    (doubts, lines): (&Doubts<T>, &Lines),
    path: &Path,
) -> Result<Image, Error> {
    let named = |source| Error::Image { path: path.to_owned(), source };
    let mut words = Vec::new();
    // Writing to memory doesn't fail.
    write_rules(rules, &mut words)
        .map_err(|error| named(ImageError::Malformed(format!("the attachment {RULES}: {error}"))))?;
    let image = image.with_attachment(TUPLE, T::NAME.as_bytes()).map_err(named)?;
    let image = image.with_attachment(RULES, &words).map_err(named)?;
    let mut image = image.with_attachment(LABELS, &labels.to_bytes()).map_err(named)?;
    for (name, text) in [(DOUBTS, doubts.to_text()), (LINES, lines.to_text())] {
        if !text.is_empty() {
            image = image.with_attachment(name, text.as_bytes()).map_err(named)?;
        }
    }
    image.save(path).map_err(named)?;
    Ok(image)
}

/// An image of rules whose engine is in this build.
#[derive(Debug)]
pub struct RuleImageFile {
    path: PathBuf,
    image: Image,
    engine: EngineName,
    tuple: TupleName,
}

impl RuleImageFile {
    /// Opens an image file and finds its engine and tuple. The engine checks the sections when it takes them.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let image = Image::open(path).map_err(|source| Error::Image { path: path.to_owned(), source })?;
        Self::of(path, image)
    }

    /// Finds the engine and the tuple of an image that was read.
    pub(crate) fn of(path: &Path, image: Image) -> Result<Self, Error> {
        let (path, kind) = (path.to_owned(), image.kind());
        let engine = match image_of(kind) {
            Some((ImageOf::Rules, engine)) => engine,
            Some((found, _)) => return Err(Error::ImageOf { path, found: found.name(), wanted: "rules" }),
            None => return Err(Error::of_kind(path, kind, "rules")),
        };
        let name = image.attachment(TUPLE).and_then(|name| std::str::from_utf8(name).ok());
        match name.and_then(TupleName::of) {
            Some(tuple) => Ok(Self { path, image, engine, tuple }),
            None => Err(malformed(path, TUPLE)),
        }
    }

    /// The file, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The engine that reads it.
    #[must_use]
    pub fn engine(&self) -> EngineName {
        self.engine
    }

    /// The tuple of the rules.
    #[must_use]
    pub fn tuple(&self) -> TupleName {
        self.tuple
    }

    /// The file itself if its rules are of this tuple; an error otherwise.
    pub fn of_tuple<T: RuleTuple>(self) -> Result<Self, Error> {
        match self.tuple.as_str() {
            found if found != T::NAME => Err(Error::ImageTuple { path: self.path, found, wanted: T::NAME }),
            _ => Ok(self),
        }
    }

    /// The number of compiled rules.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.image.entries()
    }

    /// Whether it has no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes the engine's table, checked, without attachments.
    pub fn into_table<T: RuleTuple>(self) -> Result<Box<dyn AnyTable<T>>, Error> {
        let engine = self.engine;
        let (path, image) = self.into_bare()?;
        T::adopt(engine, image)?.map_err(|source| Error::Image { path, source })
    }

    /// Takes the engine's sections, not checked yet, without attachments; and the file.
    pub fn into_bare(self) -> Result<(PathBuf, Image), Error> {
        bare(self.path, &self.image, &[TUPLE, RULES, LABELS, DOUBTS, LINES])
    }

    /// The names of the actions. Empty if the file has none.
    pub fn labels(&self) -> Result<NextHops, Error> {
        match self.image.attachment(LABELS) {
            None => Ok(NextHops::new()),
            Some(bytes) => NextHops::from_bytes(bytes).ok_or_else(|| malformed(self.path.clone(), LABELS)),
        }
    }

    /// The rules that were left out and could change answers, and the assumptions about packets. Empty if the
    /// file has none.
    pub fn doubts<T: RuleTuple>(&self) -> Result<Doubts<T>, Error> {
        let Some(bytes) = self.image.attachment(DOUBTS) else { return Ok(Doubts::none()) };
        let doubts = std::str::from_utf8(bytes).ok().and_then(|text| Doubts::from_text(text).ok());
        doubts.ok_or_else(|| malformed(self.path.clone(), DOUBTS))
    }

    /// The lines of the source file that the rules come from. Empty if the file has none.
    pub fn lines(&self) -> Result<Lines, Error> {
        let Some(bytes) = self.image.attachment(LINES) else { return Ok(Lines::default()) };
        let lines = std::str::from_utf8(bytes).ok().and_then(|text| Lines::from_text(text).ok());
        lines.ok_or_else(|| malformed(self.path.clone(), LINES))
    }

    /// The rules. Fails if the file holds the compiled table alone.
    pub fn rules<T: RuleTuple>(&self) -> Result<RuleSet<T>, Error> {
        let Some(words) = self.image.attachment(RULES) else {
            return Err(Error::without(&self.path, "rules"));
        };
        rules(words, &self.image).ok_or_else(|| malformed(self.path.clone(), RULES))
    }
}

/// The rules that an image was compiled from. `None` if the text is not valid, or does not fit the number of
/// rules and the largest number of the image.
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

fn malformed(path: PathBuf, attachment: &str) -> Error {
    Error::Image { path, source: ImageError::Malformed(format!("the attachment {attachment}")) }
}
