//! Image files of both families: a container with a whole image of each.
//!
//! ```text
//! ipv4         the image of the IPv4 table, with its routes
//! ipv6         the image of the IPv6 table, with its routes
//! next-hops    a text for each index, for both families
//! ```
//!
//! The container has no sections. Its checksum covers the images inside, which have their own. Images of VRFs
//! are such containers, too, of another kind.

use std::path::Path;

use wirespeed_fib::{Family, NextHops};
use wirespeed_image::{Image, ImageBuilder, ImageError};

use super::{ImageFile, NEXT_HOPS, opened};
use crate::engine::BOTH_FAMILIES;
use crate::error::Error;

const LAYOUT: u32 = 1;

/// Whether an image is a container of both families.
pub(crate) fn holds(image: &Image) -> bool {
    image.kind() == BOTH_FAMILIES
}

/// A container of a kind, without labels.
pub(crate) fn container(kind: &str, v4: &Image, v6: &Image) -> Result<Image, ImageError> {
    let empty = ImageBuilder::new(kind, LAYOUT).build(None)?;
    empty.with_attachment(name(Family::V4), &bytes(v4)?)?.with_attachment(name(Family::V6), &bytes(v6)?)
}

/// Saves a container with the texts of labels. Returns the length of the file.
pub(crate) fn save(container: &Image, texts: &NextHops, path: &Path) -> Result<u64, Error> {
    let saved = opened::write(container, &[(NEXT_HOPS, &texts.to_bytes())], path)?;
    Ok(saved.bytes())
}

/// The image of a family in a container, with the texts of the container.
pub(crate) fn part(path: &Path, container: &Image, family: Family) -> Result<ImageFile, Error> {
    let in_file = |source| Error::in_image(path, source);
    let mut image = image(container, family).map_err(in_file)?;
    if let Some(texts) = container.attachment(NEXT_HOPS) {
        image = image.with_attachment(NEXT_HOPS, texts).map_err(in_file)?;
    }
    let file = if holds(&image) { Err(in_file(malformed(family))) } else { ImageFile::of(path, image) }?;
    if file.family() == family { Ok(file) } else { Err(in_file(malformed(family))) }
}

/// The image of a family in a container of any kind.
pub(crate) fn image(container: &Image, family: Family) -> Result<Image, ImageError> {
    if container.layout() != LAYOUT {
        let found = container.layout();
        return Err(ImageError::Malformed(format!("layout {found} of both families")));
    }
    Image::from_bytes(container.attachment(name(family)).ok_or_else(|| malformed(family))?)
}

fn malformed(family: Family) -> ImageError {
    ImageError::Malformed(format!("the attachment {}", name(family)))
}

fn name(family: Family) -> &'static str {
    match family {
        Family::V4 => "ipv4",
        Family::V6 => "ipv6",
    }
}

fn bytes(image: &Image) -> Result<Vec<u8>, ImageError> {
    let mut bytes = Vec::new();
    image.write(&mut bytes)?;
    Ok(bytes)
}
