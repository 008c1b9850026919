//! [`Source`]: a table of any engine, as it is copied to GPUs.

use wirespeed_image::Image;
use wirespeed_image::device::{OnDevice, Programs, Sections};

/// A table of any engine, as it is copied to GPUs.
pub trait Source: Sync {
    /// The image.
    fn image(&self) -> &Image;

    /// [`OnDevice::programs`].
    fn programs(&self, sections: Sections<'_>) -> Programs;
}

impl<T: OnDevice> Source for T {
    fn image(&self) -> &Image {
        Self::image(self)
    }

    fn programs(&self, sections: Sections<'_>) -> Programs {
        Self::programs(self, sections)
    }
}
