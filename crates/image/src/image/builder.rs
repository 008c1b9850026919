//! [`ImageBuilder`]: collects the sections of an image, and then allocates them together.

use std::io::Write as _;

use super::{Element, Image, zeroed};
use crate::error::ImageError;
use crate::format::{
    Header, MAGIC, MAX_SECTIONS, NAME, SectionEntry, VERSION, data_start, extent, pack_name,
};

/// Collects sections; [`build`](Self::build) then allocates all of them at once, zeroed.
#[derive(Clone, Debug)]
pub struct ImageBuilder {
    kind: [u8; NAME],
    layout: u32,
    directory: Vec<SectionEntry>,
}

impl ImageBuilder {
    /// Starts an image without sections, with an engine's kind and layout version.
    pub fn new(kind: &str, layout: u32) -> Self {
        Self { kind: pack_name(kind), layout, directory: Vec::new() }
    }

    /// Adds a section of `len` elements of type `T`. Sections get ids in order from 0.
    #[must_use]
    pub fn section<T: Element>(self, name: &str, len: u64) -> Self {
        self.section_of_width(name, size_of::<T>(), len)
    }

    /// Adds a section of `len` elements of `width` bytes: 1, 2, 4 or 8.
    #[must_use]
    pub fn section_of_width(mut self, name: &str, width: usize, len: u64) -> Self {
        assert!(matches!(width, 1 | 2 | 4 | 8), "an element of {width} bytes");
        assert!(self.directory.len() < MAX_SECTIONS, "over {MAX_SECTIONS} sections");
        let name = pack_name(name);
        assert!(self.directory.iter().all(|entry| entry.name != name), "two sections of one name");
        #[allow(clippy::cast_possible_truncation)] // at most 8
        let width = width as u32;
        self.directory.push(SectionEntry { name, width, reserved: 0, offset: 0, len, reserved_tail: 0 });
        self
    }

    /// Makes the image, all zero. Fails if it would take more than `cap` bytes.
    pub fn build(mut self, cap: Option<u64>) -> Result<Image, ImageError> {
        let cap = cap.unwrap_or(u64::MAX);
        let mut length = data_start(self.directory.len());
        for entry in &mut self.directory {
            entry.offset = length;
            length = extent(u64::from(entry.width), entry.len)
                .and_then(|bytes| length.checked_add(bytes))
                .ok_or(ImageError::OverCap { needed: u64::MAX, cap })?;
        }
        if length > cap {
            return Err(ImageError::OverCap { needed: length, cap });
        }
        #[allow(clippy::cast_possible_truncation)] // at most MAX_SECTIONS
        let header = Header {
            magic: MAGIC,
            version: VERSION,
            sections: self.directory.len() as u32,
            kind: self.kind,
            layout: self.layout,
            reserved: 0,
            length,
            entries: 0,
            results: 0,
            checksum: 0,
            reserved_tail: [0; 7],
        };
        let mut storage = zeroed(length)?;
        let mut to = storage.bytes_mut()?;
        to.write_all(bytemuck::bytes_of(&header))?;
        to.write_all(bytemuck::cast_slice(&self.directory))?;
        Ok(Image::of(storage, header, self.directory))
    }
}
