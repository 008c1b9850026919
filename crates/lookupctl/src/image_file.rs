//! Image files: opened, checked, and handed to the engine that reads their kind.
//!
//! Beside the engine's sections the file holds two attachments, which make a lookup in an image tell what one in the
//! source tells: what the next hops are called, and the prefixes.
//!
//! Opened means copied into memory of our own. Mapping would spare the copy but asks for a promise that nobody
//! writes to the file meanwhile, which a command line can't give for its user.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use wirespeed_fib::{Address, Family, NextHop, NextHops, Prefix, Rib, V4, V6};
use wirespeed_image::{Image, SectionUsage, Table};

use crate::engine::Engines;
use crate::number::{Bytes, Grouped};
use crate::prefix_list::{self, PrefixList};

/// The attachment that [`NextHops::to_bytes`] made.
const NEXT_HOPS: &str = "next-hops";
/// The attachment that [`prefix_list::to_bytes`] made.
const PREFIXES: &str = "prefixes";

/// Writes a table with its attachments as a file, in place of one that is there.
pub(crate) fn save<A: Address, T: Table>(
    table: &T,
    rib: &Rib<A>,
    next_hops: &NextHops,
    path: &Path,
) -> Result<Image> {
    let image = table
        .image()
        .with_attachment(NEXT_HOPS, &next_hops.to_bytes())?
        .with_attachment(PREFIXES, &prefix_list::to_bytes(rib))?;
    image.save(path).with_context(|| path.display().to_string())?;
    Ok(image)
}

/// An image whose engine is in this build.
#[derive(Debug)]
pub(crate) struct ImageFile {
    path: PathBuf,
    image: Image,
    /// The family of its addresses.
    pub(crate) family: Family,
    /// The engine that reads it.
    pub(crate) engine: &'static str,
}

impl ImageFile {
    /// Opens an image file and finds out whose it is. The sections are checked when the engine takes it.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let image = Image::open(path).with_context(|| path.display().to_string())?;
        let kind = image.kind();
        let (family, engine) = match (V4::engine_of_kind(kind), V6::engine_of_kind(kind)) {
            (Some(engine), _) => (Family::V4, engine),
            (_, Some(engine)) => (Family::V6, engine),
            _ => bail!("{}: no engine of this build reads images of kind {kind:?}", path.display()),
        };
        Ok(Self { path: path.to_owned(), image, family, engine })
    }

    /// The file, for messages.
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The engine's table of it, checked.
    pub(crate) fn into_table<T: Table>(self) -> Result<T> {
        T::from_image(self.image).with_context(|| self.path.display().to_string())
    }

    /// What the next hops are called; empty where the file doesn't say.
    pub(crate) fn next_hops(&self) -> Result<NextHops> {
        match self.image.attachment(NEXT_HOPS) {
            None => Ok(NextHops::new()),
            Some(bytes) => NextHops::from_bytes(bytes)
                .with_context(|| format!("{}: {NEXT_HOPS} is malformed", self.path.display())),
        }
    }
}

/// The prefixes of a table by what is kept beside its image, with no next hops; `None` where there is nothing.
pub(crate) fn prefixes<A: Address>(image: &Image) -> Result<Option<Rib<A>>> {
    let Some(bytes) = image.attachment(PREFIXES) else { return Ok(None) };
    let prefixes = PrefixList(bytes).prefixes::<A>();
    let prefixes = prefixes.with_context(|| format!("the image is malformed: {PREFIXES}"))?;
    Ok(Some(prefixes.into_iter().map(|prefix| (prefix, NextHop::NONE)).collect()))
}

/// Bytes of an image without what is kept beside it.
pub(crate) fn bytes_of_table(image: &Image) -> u64 {
    let beside = [NEXT_HOPS, PREFIXES].into_iter().filter_map(|name| image.attachment(name));
    image.bytes() - beside.map(|bytes| bytes.len() as u64).sum::<u64>()
}

/// The longest prefix of a table that contains an address, by what is kept beside its image.
pub(crate) fn longest_match<A: Address>(image: &Image, address: A) -> Option<Prefix<A>> {
    PrefixList(image.attachment(PREFIXES)?).longest_match(address)
}

/// What a section of an image takes.
#[derive(Debug, Serialize)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) element_bytes: u32,
    pub(crate) elements: u64,
    pub(crate) bytes: u64,
}

/// The sections of an image, in order.
pub(crate) fn sections(image: &Image) -> Vec<Section> {
    image
        .memory_usage()
        .into_iter()
        .map(|SectionUsage { name, width, len, bytes }| Section {
            name,
            element_bytes: width,
            elements: len,
            bytes,
        })
        .collect()
}

impl std::fmt::Display for Section {
    /// A line of a list.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, element_bytes, elements, bytes } = self;
        let elements = Grouped(*elements);
        write!(f, "{name:<8} {elements:>14} × {element_bytes} B  {:>10}", Bytes(*bytes).to_string())
    }
}
