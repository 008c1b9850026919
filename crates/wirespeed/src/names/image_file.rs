//! Image files of names, like those of addresses in [`crate::image_file`], with other attachments.
//!
//! ```text
//! buckets … head   the engine's sections
//! names            the entries, each with its result
//! labels           what the results are called
//! made             how it was made, in words: the engine; "aggregated" where only the reduced names are compiled
//! list             of a list of domains: what the results stand for; without it results are labels
//! ```
//!
//! Several engines may read one kind of image, as `mata` and `mata-nw` do: `made` names the engine. An image
//! without it belongs to the first of these engines.

use std::path::{Path, PathBuf};

use wirespeed_image::{Image, ImageError};
use wirespeed_namelookup::NameDomain;
use wirespeed_namelookup::list::{Answers, Resolved};
use wirespeed_namelookup::read::Labels;

use super::{NameRib, entry_list};
use crate::bare::bare;
use crate::engine::{AnyTable, EngineName, ImageOf, Served, image_of, reads};
use crate::error::Error;

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
    write(image, names, labels, &made, path)
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
    let named = |source| Error::Image { path: path.to_owned(), source };
    let image = image.with_attachment(LIST, &list.answers.to_bytes()).map_err(named)?;
    write(&image, &list.names, labels, engine.as_str(), path)
}

fn write(image: &Image, names: &NameRib, labels: &Labels, made: &str, path: &Path) -> Result<Image, Error> {
    let named = |source| Error::Image { path: path.to_owned(), source };
    let image = image.with_attachment(NAMES, &entry_list::to_bytes(names)).map_err(named)?;
    let image = image.with_attachment(LABELS, &labels.to_bytes()).map_err(named)?;
    let image = image.with_attachment(MADE, made.as_bytes()).map_err(named)?;
    image.save(path).map_err(named)?;
    Ok(image)
}

/// An image of names whose engine is in this build.
#[derive(Debug)]
pub struct NameImageFile {
    path: PathBuf,
    image: Image,
    engine: EngineName,
    is_aggregated: bool,
}

impl NameImageFile {
    /// Opens an image file and finds its engine. The engine checks the sections when it takes them.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let image = Image::open(path).map_err(|source| Error::Image { path: path.to_owned(), source })?;
        Self::of(path, image)
    }

    /// Finds the engine of an image that was read.
    pub(crate) fn of(path: &Path, image: Image) -> Result<Self, Error> {
        let (path, kind) = (path.to_owned(), image.kind());
        let engine = match image_of(kind) {
            Some((ImageOf::Names, engine)) => engine,
            Some((found, _)) => return Err(Error::ImageOf { path, found: found.name(), wanted: "names" }),
            None => return Err(Error::of_kind(path, kind, "names")),
        };
        match made(&image, engine) {
            Some((engine, is_aggregated)) => Ok(Self { path, image, engine, is_aggregated }),
            None => Err(malformed(path, MADE)),
        }
    }

    /// The file, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The engine that made the image, and reads it.
    #[must_use]
    pub fn engine(&self) -> EngineName {
        self.engine
    }

    /// Whether only the reduced names are compiled. Results are the same as with all names. Match lengths
    /// refer to the reduced names.
    #[must_use]
    pub fn is_aggregated(&self) -> bool {
        self.is_aggregated
    }

    /// The number of compiled names.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.image.entries()
    }

    /// Whether it has no names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes the engine's table, checked, without attachments.
    pub fn into_table(self) -> Result<Box<dyn AnyTable<NameDomain>>, Error> {
        let engine = self.engine;
        let (path, image) = self.into_bare()?;
        NameDomain::adopt(engine, image)?.map_err(|source| Error::Image { path, source })
    }

    /// Takes the engine's sections, not checked yet, without attachments; and the file.
    pub fn into_bare(self) -> Result<(PathBuf, Image), Error> {
        bare(self.path, &self.image, &[LABELS, NAMES, MADE, LIST])
    }

    /// The answers of a list of domains. `None` if the file holds a table of names.
    pub fn list(&self) -> Result<Option<Answers>, Error> {
        let Some(bytes) = self.image.attachment(LIST) else { return Ok(None) };
        let malformed = || malformed(self.path.clone(), LIST);
        let answers = Answers::from_bytes(bytes).ok_or_else(malformed)?;
        // A list is never aggregated, and each of its values has a text.
        let has_labels = answers.largest_value() as usize <= self.labels()?.len();
        if self.is_aggregated || !has_labels { Err(malformed()) } else { Ok(Some(answers)) }
    }

    /// The file, if it holds a table of names. Fails if it holds a list of domains, whose results stand for
    /// something else than labels.
    pub fn without_list(self) -> Result<Self, Error> {
        match self.image.attachment(LIST) {
            None => Ok(self),
            Some(_) => Err(Error::ImageOf { path: self.path, found: "a list of domains", wanted: "names" }),
        }
    }

    /// The texts of the results. Empty if the file has none.
    pub fn labels(&self) -> Result<Labels, Error> {
        match self.image.attachment(LABELS) {
            None => Ok(Labels::new()),
            Some(bytes) => Labels::from_bytes(bytes).ok_or_else(|| malformed(self.path.clone(), LABELS)),
        }
    }

    /// The names, also those that aggregation left out. `None` if the file holds the compiled table alone.
    pub fn names(&self) -> Result<Option<NameRib>, Error> {
        let Some(bytes) = self.image.attachment(NAMES) else { return Ok(None) };
        let names = entry_list::from_bytes(bytes).ok_or_else(|| malformed(self.path.clone(), NAMES))?;
        let (found, compiled) = (names.len() as u64, self.image.entries());
        if found < compiled || (found > compiled && !self.is_aggregated) {
            return Err(malformed(self.path.clone(), NAMES));
        }
        Ok(Some(names))
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

fn malformed(path: PathBuf, attachment: &str) -> Error {
    Error::Image { path, source: ImageError::Malformed(format!("the attachment {attachment}")) }
}
