//! The sections of an image, as reports show them.

use serde::Serialize;
use wirespeed_image::{Image, SectionUsage};

use crate::number::{Bytes, Grouped};

/// The memory of a section.
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
    /// Writes a line of a list.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, element_bytes, elements, bytes } = self;
        let elements = Grouped(*elements);
        write!(f, "{name:<10} {elements:>12} × {element_bytes} B  {:>10}", Bytes(*bytes).to_string())
    }
}
