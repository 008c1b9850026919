//! The number of lines that a lenient reading left out of a table, in its image.

use std::borrow::Cow;
use std::path::Path;

use wirespeed_image::{Image, ImageError};

use crate::error::Error;

/// The attachment of that number, 8 bytes little-endian.
pub(crate) const LEFT_OUT: &str = "left-out";

/// Notes in a compiled table of addresses or names how many lines a lenient reading left out of it, before
/// the table is saved. [`ImageFile::left_out`](super::ImageFile::left_out) tells it. An image of a whole
/// table stays as it is.
pub fn with_left_out<'i>(image: &'i Image, lines: u64, path: &Path) -> Result<Cow<'i, Image>, Error> {
    noted(image, lines).map_err(|source| Error::in_image(path, source))
}

/// Notes the number like [`with_left_out`].
pub(crate) fn noted(image: &Image, lines: u64) -> Result<Cow<'_, Image>, ImageError> {
    match lines {
        0 => Ok(Cow::Borrowed(image)),
        _ => image.with_attachment(LEFT_OUT, &lines.to_le_bytes()).map(Cow::Owned),
    }
}
