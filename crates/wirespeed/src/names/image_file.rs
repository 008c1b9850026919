//! Image files of names, like those of addresses in [`crate::image_file`], with other attachments.
//!
//! ```text
//! buckets … head   the engine's sections
//! names            the entries, each with its result
//! labels           what the results are called
//! made             how it was made, in words: the engine; "aggregated" where only the reduced names are compiled
//! list             of a list of domains: what the results stand for; without it results are labels
//! left-out         how many lines a lenient reading left out, if it did
//! ```
//!
//! Several engines may read one kind of image, as `mata` and `mata-nw` do: `made` names the engine. An image
//! without it belongs to the first of these engines.

use std::path::{Path, PathBuf};

use wirespeed_image::Image;
use wirespeed_namelookup::NameDomain;
use wirespeed_namelookup::list::{Answers, Resolved};
use wirespeed_namelookup::read::Labels;

use super::{NameRib, entry_list};
use crate::engine::{AnyTable, EngineName, ImageOf, reads};
use crate::error::Error;
use crate::image_file::opened::{self, Opened, image_file_methods};

/// The attachment that [`Labels::to_bytes`] writes.
pub(crate) const LABELS: &str = "labels";
/// The attachment that [`entry_list::to_bytes`] writes.
const NAMES: &str = "names";
/// The attachment that names the engine, and says whether names are aggregated.
const MADE: &str = "made";
/// The attachment that [`Answers::to_bytes`] writes.
const LIST: &str = "list";
/// A word of [`MADE`]: only the reduced names are compiled.
const AGGREGATED: &str = "aggregated";
const ATTACHMENTS: [&str; 4] = [LABELS, NAMES, MADE, LIST];

/// Writes an engine's table as a file, with all its names (also those that aggregation left out) and the
/// texts of their results. Replaces an existing file.
pub fn save(
    engine: EngineName,
    image: &Image,
    names: &NameRib,
    labels: &Labels,
    is_aggregated: bool,
    path: &Path,
) -> Result<Image, Error> {
    let made = if is_aggregated { format!("{engine} {AGGREGATED}") } else { engine.to_string() };
    let (names, labels) = (entry_list::to_bytes(names), labels.to_bytes());
    opened::write(image, &[(NAMES, &names), (LABELS, &labels), (MADE, made.as_bytes())], path)
}

/// Writes an engine's table of a list of domains as a file, with the list's names and answers and the texts
/// of its values. Replaces an existing file.
pub fn save_list(
    engine: EngineName,
    image: &Image,
    list: &Resolved,
    labels: &Labels,
    path: &Path,
) -> Result<Image, Error> {
    let answers = list.answers.to_bytes();
    let (names, labels, made) = (entry_list::to_bytes(&list.names), labels.to_bytes(), engine.as_str());
    let attachments: [(_, &[u8]); 4] =
        [(LIST, &answers), (NAMES, &names), (LABELS, &labels), (MADE, made.as_bytes())];
    opened::write(image, &attachments, path)
}

/// An image of names whose engine is in this build.
#[derive(Debug)]
pub struct NameImageFile {
    file: Opened,
    is_aggregated: bool,
}

impl NameImageFile {
    image_file_methods!("names");

    /// Finds the engine of an image that was read.
    pub(crate) fn of(path: &Path, image: Image) -> Result<Self, Error> {
        let is_names = |of| matches!(of, ImageOf::Names).then_some(());
        let (mut file, ()) = Opened::of(path, image, "names", is_names)?;
        let (engine, is_aggregated) = made(&file.image, file.engine).ok_or_else(|| file.malformed(MADE))?;
        file.engine = engine;
        Ok(Self { file, is_aggregated })
    }

    /// Whether only the reduced names are compiled. Results are the same as with all names. Match lengths
    /// refer to the reduced names.
    #[must_use]
    pub fn is_aggregated(&self) -> bool {
        self.is_aggregated
    }

    /// The number of names that are compiled.
    pub(super) fn entries(&self) -> u64 {
        self.file.image.entries()
    }

    /// Makes the engine's table, checked, without attachments.
    pub fn into_table(self) -> Result<Box<dyn AnyTable<NameDomain>>, Error> {
        self.file.into_table(&ATTACHMENTS)
    }

    /// Takes the engine's sections, not checked yet, without attachments; and the file.
    pub fn into_bare(self) -> Result<(PathBuf, Image), Error> {
        self.file.into_bare(&ATTACHMENTS)
    }

    /// The answers of a list of domains. `None` if the file holds a table of names.
    pub fn list(&self) -> Result<Option<Answers>, Error> {
        let Some(answers) = self.file.attached(LIST, Answers::from_bytes)? else { return Ok(None) };
        // A list is never aggregated, and each of its values has a text.
        let has_labels = answers.largest_value() as usize <= self.labels()?.len();
        if self.is_aggregated || !has_labels { Err(self.file.malformed(LIST)) } else { Ok(Some(answers)) }
    }

    /// The file, if it holds a table of names. Fails if it holds a list of domains, whose results stand for
    /// something else than labels.
    pub fn without_list(self) -> Result<Self, Error> {
        match self.file.image.attachment(LIST) {
            None => Ok(self),
            Some(_) => {
                Err(Error::ImageOf { path: self.file.path, found: "a list of domains", wanted: "names" })
            }
        }
    }

    /// The number of lines that a lenient reading left out of the table. 0 of a whole table, and if the file
    /// does not tell it, as older ones don't.
    pub fn left_out(&self) -> Result<u64, Error> {
        self.file.left_out()
    }

    /// The texts of the results. Empty if the file has none.
    pub fn labels(&self) -> Result<Labels, Error> {
        Ok(self.file.attached(LABELS, Labels::from_bytes)?.unwrap_or_default())
    }

    /// The names, also those that aggregation left out. `None` if the file holds the compiled table alone.
    pub fn names(&self) -> Result<Option<NameRib>, Error> {
        let compiled = self.file.image.entries();
        let is_whole = |names: &NameRib| match names.len() as u64 {
            all if self.is_aggregated => all >= compiled,
            all => all == compiled,
        };
        self.file.attached(NAMES, |bytes| entry_list::from_bytes(bytes).filter(is_whole))
    }
}

/// The engine that made an image, and whether it is aggregated. `None` if the attachment is not valid.
fn made(image: &Image, engine: EngineName) -> Option<(EngineName, bool)> {
    let Some(bytes) = image.attachment(MADE) else { return Some((engine, false)) };
    let mut words = std::str::from_utf8(bytes).ok()?.split(' ');
    let engine = EngineName::of(words.next()?).filter(|&engine| reads::<NameDomain>(engine, image.kind()))?;
    match (words.next(), words.next()) {
        (None, _) => Some((engine, false)),
        (Some(AGGREGATED), None) => Some((engine, true)),
        _ => None,
    }
}
