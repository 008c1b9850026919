//! Image files of names: as [`crate::image_file`] has those of addresses, with two attachments of their own.
//!
//! ```text
//! buckets … head   the engine's sections
//! names            the entries, each with its result
//! labels           what the results are called
//! ```

use std::path::{Path, PathBuf};

use wirespeed_image::{Image, ImageError, Table};
use wirespeed_namelookup::read::Labels;

use super::engine::{EngineName, of_kind};
use super::{NameRib, entry_list};
use crate::engine;
use crate::error::Error;

/// The attachment that [`Labels::to_bytes`] made.
pub(crate) const LABELS: &str = "labels";
/// The attachment that [`entry_list::to_bytes`] made.
const NAMES: &str = "names";

/// Writes a table with its names, and what their results are called, as a file, in place of one that is there.
pub fn save<T: Table>(table: &T, names: &NameRib, labels: &Labels, path: &Path) -> Result<Image, Error> {
    let named = |source| Error::Image { path: path.to_owned(), source };
    let image = table.image().with_attachment(NAMES, &entry_list::to_bytes(names)).map_err(named)?;
    let image = image.with_attachment(LABELS, &labels.to_bytes()).map_err(named)?;
    image.save(path).map_err(named)?;
    Ok(image)
}

/// An image of names whose engine is in this build.
#[derive(Debug)]
pub struct NameImageFile {
    path: PathBuf,
    image: Image,
    engine: EngineName,
}

impl NameImageFile {
    /// Opens an image file and finds out whose it is. The sections are checked when the engine takes it.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let image = Image::open(path).map_err(|source| Error::Image { path: path.to_owned(), source })?;
        Self::of(path, image)
    }

    /// The same of an image that was read.
    pub(crate) fn of(path: &Path, image: Image) -> Result<Self, Error> {
        let path = path.to_owned();
        match (of_kind(image.kind()), engine::is_kind(image.kind())) {
            (Some(engine), _) => Ok(Self { path, image, engine }),
            (None, true) => Err(Error::ImageOfRoutes { path }),
            (None, false) => Err(Error::ImageKind { path, kind: image.kind().to_owned() }),
        }
    }

    /// The file, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The engine that reads it.
    pub fn engine(&self) -> EngineName {
        self.engine
    }

    /// How many names it has.
    pub fn len(&self) -> u64 {
        self.image.entries()
    }

    /// Whether it has no names.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The engine's table of it, checked, without what the file holds beside it.
    pub fn into_table<T: Table>(self) -> Result<T, Error> {
        let image = self.image.without_attachments(&[LABELS, NAMES]);
        let table = image.and_then(T::from_image);
        table.map_err(|source| Error::Image { path: self.path, source })
    }

    /// What the results are called; empty where the file doesn't say.
    pub fn labels(&self) -> Result<Labels, Error> {
        match self.image.attachment(LABELS) {
            None => Ok(Labels::new()),
            Some(bytes) => Labels::from_bytes(bytes).ok_or_else(|| self.malformed(LABELS)),
        }
    }

    /// The names; `None` where the file holds the compiled table alone.
    pub fn names(&self) -> Result<Option<NameRib>, Error> {
        let Some(bytes) = self.image.attachment(NAMES) else { return Ok(None) };
        let names = entry_list::from_bytes(bytes).ok_or_else(|| self.malformed(NAMES))?;
        if names.len() as u64 != self.image.entries() {
            return Err(self.malformed(NAMES));
        }
        Ok(Some(names))
    }

    fn malformed(&self, what: &str) -> Error {
        let source = ImageError::Malformed(format!("the attachment {what}"));
        Error::Image { path: self.path.clone(), source }
    }
}
