//! Image files: they are opened, checked, and handed to the engine that reads their kind.
//!
//! The file may hold two attachments beside the engine's sections: the routes, and the texts of their next
//! hops. With these a lookup in an image can report as much as a lookup in the source.
//!
//! ```text
//! bcn16 … n32      the engine's sections
//! routes           prefix and next hop of each route
//! next-hops        a text for each index, from 1
//! ```
//!
//! Opening copies the file into memory. Mapping the file would save the copy, but nobody may write to a
//! mapped file, and a safe function can't promise that for its caller.

use std::path::{Path, PathBuf};

use wirespeed_fib::{Address, Family, NextHops, Prefix, Rib};
use wirespeed_image::{Image, ImageError};

use crate::bare::bare;
#[cfg(feature = "rules")]
use crate::classify::image_file::RuleImageFile;
use crate::engine::{Addresses, AnyTable, EngineName, ImageOf, image_of};
use crate::error::Error;
use crate::labels::saved;
#[cfg(feature = "names")]
use crate::names::image_file::NameImageFile;
use crate::route_list::{self, RouteList};

/// The attachment that [`NextHops::to_bytes`] writes.
const NEXT_HOPS: &str = "next-hops";
/// The attachment that [`route_list::to_bytes`] writes.
const ROUTES: &str = "routes";

/// Writes a compiled table as a file, with its routes and the texts of their next hops, if there are any.
/// Replaces an existing file.
pub fn save<A: Address>(
    image: &Image,
    rib: &Rib<A>,
    next_hops: &NextHops,
    path: &Path,
) -> Result<Image, Error> {
    let named = |source| Error::Image { path: path.to_owned(), source };
    let image = image.with_attachment(ROUTES, &route_list::to_bytes(rib)).map_err(named)?;
    let image = image.with_attachment(NEXT_HOPS, &next_hops.to_bytes()).map_err(named)?;
    image.save(path).map_err(named)?;
    Ok(image)
}

/// An image whose engine is in this build.
#[derive(Debug)]
pub struct ImageFile {
    path: PathBuf,
    image: Image,
    family: Family,
    engine: EngineName,
}

impl ImageFile {
    /// Opens an image file and finds its family and engine. The engine checks the sections when it takes
    /// them.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let image = Image::open(path).map_err(|source| Error::Image { path: path.to_owned(), source })?;
        Self::of(path, image)
    }

    fn of(path: &Path, image: Image) -> Result<Self, Error> {
        let kind = image.kind();
        let path = path.to_owned();
        match image_of(kind) {
            Some((ImageOf::Addresses(family), engine)) => Ok(Self { path, image, family, engine }),
            #[cfg(any(feature = "names", feature = "rules"))]
            Some((found, _)) => Err(Error::ImageOf { path, found: found.name(), wanted: "addresses" }),
            None => Err(Error::ImageKind { path, kind: kind.to_owned() }),
        }
    }

    /// The file, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The family of its addresses.
    pub fn family(&self) -> Family {
        self.family
    }

    /// The engine that reads it.
    pub fn engine(&self) -> EngineName {
        self.engine
    }

    /// Makes the engine's table, checked, with the attachments that [`longest_match`] needs.
    pub fn into_table<A: Addresses>(self) -> Result<Box<dyn AnyTable<A>>, Error> {
        let Self { path, image, engine, .. } = self;
        A::adopt(engine, image)?.map_err(|source| Error::Image { path, source })
    }

    /// Takes the engine's sections, not checked yet, without attachments; and the file.
    pub fn into_bare(self) -> Result<(PathBuf, Image), Error> {
        bare(self.path, &self.image, &[NEXT_HOPS, ROUTES])
    }

    /// The texts of the next hops. Empty if the file has none.
    pub fn next_hops(&self) -> Result<NextHops, Error> {
        match self.image.attachment(NEXT_HOPS) {
            None => Ok(NextHops::new()),
            Some(bytes) => NextHops::from_bytes(bytes).ok_or_else(|| self.malformed(NEXT_HOPS)),
        }
    }

    /// The routes. `None` if the file holds the compiled table alone.
    pub fn routes<A: Address>(&self) -> Result<Option<Rib<A>>, Error> {
        let Some(bytes) = self.image.attachment(ROUTES) else { return Ok(None) };
        let rib = RouteList(bytes).routes::<A>().ok_or_else(|| self.malformed(ROUTES))?;
        if rib.len() as u64 != self.image.entries() {
            return Err(self.malformed(ROUTES));
        }
        Ok(Some(rib))
    }

    fn malformed(&self, what: &str) -> Error {
        let source = ImageError::Malformed(format!("the attachment {what}"));
        Error::Image { path: self.path.clone(), source }
    }
}

/// Calls `give` with the text of each index of an image file of any domain, in order from 1, or with `None`
/// for an index without a label. Fails if the texts are not of this type.
pub(crate) fn each_label(
    path: &Path,
    of_type: Option<&str>,
    mut give: impl FnMut(Option<&str>) -> Result<(), Error>,
) -> Result<(), Error> {
    let image = Image::open(path).map_err(|source| Error::Image { path: path.to_owned(), source })?;
    let texts: Vec<_> = match image_of(image.kind()).map(|(of, _)| of) {
        #[cfg(feature = "names")]
        Some(ImageOf::Names) => {
            let labels = NameImageFile::of(path, image.clone())?.labels()?;
            labels.iter().map(|(_, label)| label.to_string()).collect()
        }
        #[cfg(feature = "rules")]
        Some(ImageOf::Rules) => owned(&RuleImageFile::of(path, image.clone())?.labels()?),
        // An image of an unknown kind gives an error here.
        Some(ImageOf::Addresses(_)) | None => owned(&ImageFile::of(path, image.clone())?.next_hops()?),
    };
    if !texts.is_empty() {
        saved::check_type(&image, path, of_type)?;
    }
    saved::fill_gaps(&image, path, texts)?.iter().try_for_each(|text| give(text.as_deref()))
}

fn owned(texts: &NextHops) -> Vec<String> {
    texts.iter().map(|(_, text)| text.to_owned()).collect()
}

/// Bytes of an image without its attachments.
pub fn bytes_of_table(image: &Image) -> u64 {
    let beside = [NEXT_HOPS, ROUTES].into_iter().filter_map(|name| image.attachment(name));
    image.bytes() - beside.map(|bytes| bytes.len() as u64).sum::<u64>()
}

/// The longest prefix of a table that contains an address, found in the routes beside its image. O(lengths ×
/// log routes).
pub fn longest_match<A: Address>(image: &Image, address: A) -> Option<Prefix<A>> {
    RouteList(image.attachment(ROUTES)?).longest_match(address)
}
