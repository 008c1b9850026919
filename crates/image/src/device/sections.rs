//! [`Sections`]: the addresses of an image's sections on a device.

use bytemuck::{Pod, Zeroable};

use crate::section::SectionId;

/// An address in a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct DevicePtr(pub u64);

impl DevicePtr {
    /// The address `bytes` bytes further on.
    #[must_use]
    pub const fn plus(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }
}

/// The addresses of an image's sections on a device, in the image's order.
#[derive(Clone, Copy, Debug)]
pub struct Sections<'a>(pub &'a [DevicePtr]);

impl Sections<'_> {
    /// The address of a section's first element.
    pub fn at(&self, section: SectionId) -> DevicePtr {
        self.0[usize::from(section.0)]
    }
}
