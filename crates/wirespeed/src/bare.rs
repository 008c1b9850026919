//! Images without the attachments that files hold beside the compiled table.

use std::path::PathBuf;

use wirespeed_image::Image;

use crate::error::Error;
use crate::labels::saved::{GAPS, TYPE};

/// An image without these attachments and those of labels, with its file.
pub(crate) fn bare(path: PathBuf, image: &Image, attachments: &[&str]) -> Result<(PathBuf, Image), Error> {
    match image.without_attachments(&[attachments, &[GAPS, TYPE]].concat()) {
        Ok(image) => Ok((path, image)),
        Err(source) => Err(Error::Image { path, source }),
    }
}
