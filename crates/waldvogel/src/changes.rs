//! [`Changes`]: what an update makes different in a table.

use wirespeed_image::{Patch, PatchBuilder, SectionId};

/// Collects the writes of a patch; while a table is built, when nobody asks, it drops them.
pub(crate) struct Changes(Option<PatchBuilder>);

impl Changes {
    /// Not wanted.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Wanted.
    pub(crate) fn collected() -> Self {
        Self(Some(PatchBuilder::new()))
    }

    /// An element has a new value.
    #[inline]
    pub(crate) fn set(&mut self, section: SectionId, index: u64, value: u64) {
        if let Some(patch) = &mut self.0 {
            patch.set(section, index, value);
        }
    }

    /// The patch.
    pub(crate) fn finish(self, counts: (u64, u64)) -> Patch {
        self.0.unwrap_or_default().finish(Some(counts))
    }
}
