//! [`Opened`]: what image files of all domains have in common.

use std::path::{Path, PathBuf};

use wirespeed_image::Image;

use super::left_out::LEFT_OUT;
#[cfg(any(feature = "names", feature = "rules"))]
use crate::engine::{AnyTable, Served};
use crate::engine::{EngineName, ImageOf, image_of};
use crate::error::Error;
use crate::labels::saved::{GAPS, TYPE};

/// An image that was read, with its file and its engine.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) path: PathBuf,
    pub(crate) image: Image,
    pub(crate) engine: EngineName,
}

impl Opened {
    /// Finds the engine of an image. `take` tells what it is of, and says no to images of other domains than
    /// the one that is wanted.
    pub(crate) fn of<T>(
        path: &Path,
        image: Image,
        wanted: &'static str,
        take: impl FnOnce(ImageOf) -> Option<T>,
    ) -> Result<(Self, T), Error> {
        let (path, kind) = (path.to_owned(), image.kind());
        let Some((found, engine)) = image_of(kind) else { return Err(Error::of_kind(path, kind, wanted)) };
        match take(found) {
            Some(taken) => Ok((Self { path, image, engine }, taken)),
            None => Err(Error::ImageOf { path, found: found.name(), wanted }),
        }
    }

    /// Makes a value of an attachment. `None` without the attachment. Fails if `parse` makes nothing of it.
    pub(crate) fn attached<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        attached(&self.image, &self.path, name, parse)
    }

    /// The number of lines that a lenient reading left out of the table.
    pub(crate) fn left_out(&self) -> Result<u64, Error> {
        let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).ok();
        Ok(self.attached(LEFT_OUT, number)?.unwrap_or_default())
    }

    pub(crate) fn malformed(&self, name: &str) -> Error {
        Error::attachment(&self.path, name)
    }

    /// Makes the engine's table, checked, without attachments: these, and those of all domains.
    #[cfg(any(feature = "names", feature = "rules"))]
    pub(crate) fn into_table<D: Served>(self, attachments: &[&str]) -> Result<Box<dyn AnyTable<D>>, Error> {
        let engine = self.engine;
        let (path, image) = self.into_bare(attachments)?;
        D::adopt(engine, image)?.map_err(|cause| Error::Image { path, cause })
    }

    /// Takes the engine's sections, not checked yet, without these attachments and those of all domains; and
    /// the file.
    pub(crate) fn into_bare(self, attachments: &[&str]) -> Result<(PathBuf, Image), Error> {
        match self.image.without_attachments(&[attachments, &[GAPS, TYPE, LEFT_OUT]].concat()) {
            Ok(image) => Ok((self.path, image)),
            Err(cause) => Err(Error::Image { path: self.path, cause }),
        }
    }
}

/// Reads an image file.
pub(crate) fn read(path: &Path) -> Result<Image, Error> {
    Image::open(path).map_err(|source| Error::in_image(path, source))
}

/// Writes an image with more attachments as a file, and returns it. Replaces an existing file.
pub(crate) fn write(image: &Image, attachments: &[(&str, &[u8])], path: &Path) -> Result<Image, Error> {
    let written = image.with_attachments(attachments).and_then(|image| image.save(path).map(|()| image));
    written.map_err(|source| Error::in_image(path, source))
}

/// Makes a value of an attachment, like [`Opened::attached`].
pub(crate) fn attached<T>(
    image: &Image,
    path: &Path,
    name: &str,
    parse: impl FnOnce(&[u8]) -> Option<T>,
) -> Result<Option<T>, Error> {
    let Some(bytes) = image.attachment(name) else { return Ok(None) };
    parse(bytes).map(Some).ok_or_else(|| Error::attachment(path, name))
}

/// Methods that image files of all domains have. The type has a field `file`, an [`Opened`], and a function
/// `of` that makes it of a path and an image. With the word for its entries it also gets their number.
macro_rules! image_file_methods {
    () => {
        /// Opens an image file and finds its engine. The engine checks the sections when it takes them.
        pub fn open(path: &std::path::Path) -> Result<Self, crate::Error> {
            Self::of(path, crate::image_file::opened::read(path)?)
        }

        /// The file, for messages.
        #[must_use]
        pub fn path(&self) -> &std::path::Path {
            &self.file.path
        }

        /// The engine that made the image, and reads it.
        #[must_use]
        pub fn engine(&self) -> crate::engine::EngineName {
            self.file.engine
        }
    };
    ($entries:literal) => {
        image_file_methods!();

        #[doc = concat!("The number of compiled ", $entries, ".")]
        #[must_use]
        pub fn len(&self) -> u64 {
            self.file.image.entries()
        }

        #[doc = concat!("Whether it has no ", $entries, ".")]
        #[must_use]
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }
    };
}
pub(crate) use image_file_methods;
