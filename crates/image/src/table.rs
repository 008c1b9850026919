//! [`Table`]: an image that an engine has checked and can look up in; [`Step`]: a step of a lookup; and
//! [`Outgrown`]: the error of a table that must be rebuilt.

use crate::error::{ImageError, PatchError};
use crate::image::Image;
use crate::patch::{Patch, Write};
use crate::section::SectionId;

/// Proof that a write was checked. Only this crate can make one, so that no other code writes to a table: an
/// engine's unsafe code may rely on the elements.
#[derive(Debug)]
pub struct Checked(pub(crate) ());

impl Checked {
    /// Makes the first sections of an image ones that its twins share. There is a section after them.
    pub fn share(self, image: &mut Image, sections: u16) {
        image.share(sections);
    }

    /// Makes a copy that has the shared sections in common with an image.
    pub fn twin(self, image: &Image) -> Image {
        image.twin()
    }
}

/// The data plane of an engine: an image of its kind in which a lookup can follow every index.
///
/// [`admits`](Self::admits) alone defines this invariant: [`from_image`](Self::from_image) checks every
/// element with it, [`apply`](Self::apply) every write.
pub trait Table: Clone + Send + Sync + Sized + 'static {
    /// The kind of image that it reads.
    const KIND: &'static str;
    /// The version of that kind's layout.
    const LAYOUT: u32;

    /// Takes an image after checking its sections and all elements. O(size).
    fn from_image(image: Image) -> Result<Self, ImageError>;

    /// The image.
    fn image(&self) -> &Image;

    /// The image, for writing a checked patch.
    fn image_mut(&mut self, _: Checked) -> &mut Image;

    /// Whether an element of a section may have this value, in a table whose largest result is `results`.
    fn admits(&self, section: SectionId, value: u64, results: u64) -> bool;

    /// Like [`admits`](Self::admits), for a section whose elements have different meanings by index. Then
    /// this function defines the invariant.
    fn admits_at(&self, section: SectionId, index: u64, value: u64, results: u64) -> bool {
        let _ = index;
        self.admits(section, value, results)
    }

    /// Prepares the table to have a [twin](Self::twin) that shares the leading sections of its image. Only an
    /// engine may do so whose patches write these sections where no lookup of the state before reads, nor one
    /// of the state before that if the patch before was published. By default nothing is shared.
    fn share(&mut self, _: Checked) {}

    /// Makes the other copy of a live table: a clone, if the table shares nothing.
    #[must_use]
    fn twin(&self, _: Checked) -> Self {
        self.clone()
    }

    /// Whether every value is valid for every element of a section, so that writes to it need no check.
    fn admits_any(&self, section: SectionId) -> bool {
        let _ = section;
        false
    }

    /// Checks that the table stays valid after a patch. O(writes).
    fn check(&self, patch: &Patch) -> Result<(), PatchError> {
        self.image().check(patch)?;
        let results = patch.counts().map_or(self.image().results(), |(_, results)| results);
        let is_bad = |write: &&Write| !self.admits_at(write.section(), write.index(), write.value, results);
        let mut checked = patch.sections().filter(|writes| !self.admits_any(writes[0].section()));
        match checked.find_map(|writes| writes.iter().find(is_bad)) {
            Some(bad) => Err(PatchError::Value { section: bad.section(), value: bad.value }),
            None => Ok(()),
        }
    }

    /// Checks a patch and applies it. O(writes).
    fn apply(&mut self, patch: &Patch) -> Result<(), PatchError> {
        self.check(patch)?;
        self.image_mut(Checked(())).write_patch(patch);
        Ok(())
    }

    /// Checks kind and layout; the first line of every [`from_image`](Self::from_image).
    fn expect_kind(image: &Image) -> Result<(), ImageError> {
        if image.kind() != Self::KIND {
            return Err(ImageError::Kind { found: image.kind().to_owned(), wanted: Self::KIND });
        }
        if image.layout() != Self::LAYOUT {
            let (found, supported) = (image.layout(), Self::LAYOUT);
            return Err(ImageError::Layout { kind: Self::KIND, found, supported });
        }
        Ok(())
    }
}

/// One element read in a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Name of the section.
    pub section: &'static str,
    /// Index of the element.
    pub index: u64,
    /// The element's value.
    pub value: u64,
    /// The meaning of the value, as text.
    pub meaning: String,
}

/// A table can't take an update in place and must be rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the table has outgrown its {0}")]
pub struct Outgrown(pub &'static str);
