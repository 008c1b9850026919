//! [`Image`]: named flat sections of integers in one piece of memory.
//!
//! This file has the parts that engines read, and the writing of patches. `builder` makes images, `file`
//! writes and reads them, and `attached` has the parts that lookups don't use.

mod attached;
mod builder;
mod element;
mod file;
#[cfg(test)]
mod tests;

pub use builder::ImageBuilder;
pub use element::{Element, number, width_for};

use crate::error::{ImageError, PatchError};
use crate::fetch::prefetch;
use crate::format::{Header, MAGIC, SectionEntry, unpack_name};
use crate::patch::{Patch, Write};
use crate::section::SectionId;
use crate::storage::Storage;

/// A compiled table. Its memory is the sections and under a kilobyte more. A clone is a full copy.
#[derive(Debug)]
pub struct Image {
    // Holds the file byte for byte, except for the counts and the checksum, which are filled in on writing.
    storage: Storage,
    header: Header,
    directory: Vec<SectionEntry>,
}

/// The offset of a section in an image: the fast way to single elements. It is valid for every image with the
/// same sections, so for as long as its table lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    start: usize,
}

/// The memory of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionUsage {
    /// The section's name.
    pub name: String,
    /// Bytes of an element.
    pub width: u32,
    /// Number of elements, head room included.
    pub len: u64,
    /// Bytes of the whole section.
    pub bytes: u64,
}

impl Image {
    /// Whether bytes start like an image file.
    pub fn is_start(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC)
    }

    /// The kind of image, by which engines know it.
    pub fn kind(&self) -> &str {
        unpack_name(&self.header.kind).unwrap_or_default()
    }

    /// The version of the engine's layout.
    pub fn layout(&self) -> u32 {
        self.header.layout
    }

    /// Number of prefixes, names or rules in the table.
    pub fn entries(&self) -> u64 {
        self.header.entries
    }

    /// The largest result that a lookup can return.
    pub fn results(&self) -> u64 {
        self.header.results
    }

    /// Sets the counts of the table.
    pub fn set_counts(&mut self, entries: u64, results: u64) {
        self.header.entries = entries;
        self.header.results = results;
    }

    /// Number of sections.
    pub fn sections(&self) -> usize {
        self.directory.len()
    }

    /// The section with a name.
    pub fn find(&self, name: &str) -> Option<SectionId> {
        let at = self.directory.iter().position(|entry| unpack_name(&entry.name) == Some(name))?;
        u16::try_from(at).ok().map(SectionId)
    }

    /// Bytes of an element of a section. `None` if there is no such section.
    pub fn width(&self, id: SectionId) -> Option<u32> {
        self.directory.get(usize::from(id.0)).map(|entry| entry.width)
    }

    /// The elements of a section. Panics if there is no such section, or if its elements have another width:
    /// a [`Table`](crate::Table) checks both once when it takes an image.
    #[inline]
    pub fn section<T: Element>(&self, id: SectionId) -> &[T] {
        let entry = self.entry::<T>(id);
        bytemuck::cast_slice(&self.storage.bytes()[range(entry)])
    }

    /// The bytes of a section. Panics if there is no such section.
    #[inline]
    pub(crate) fn bytes_of(&self, id: SectionId) -> &[u8] {
        &self.storage.bytes()[range(&self.directory[usize::from(id.0)])]
    }

    /// The value of an element, however wide. Panics if there is none.
    #[inline]
    pub(crate) fn value(&self, id: SectionId, index: usize) -> u64 {
        let (bytes, width) = (self.bytes_of(id), self.directory[usize::from(id.0)].width as usize);
        let mut value = [0; 8];
        value[..width].copy_from_slice(&bytes[index * width..][..width]);
        u64::from_le_bytes(value)
    }

    /// The offset of a section. Panics if there is no such section.
    pub fn column(&self, id: SectionId) -> Column {
        Column { start: range(&self.directory[usize::from(id.0)]).start }
    }

    /// Reads an element of type `T` of a column. `index` counts elements of type `T`, whatever the width of
    /// the section's elements. Panics past the end of the image.
    #[inline]
    pub fn at<T: Element>(&self, column: Column, index: usize) -> T {
        let from = column.start + index * size_of::<T>();
        bytemuck::pod_read_unaligned(&self.storage.bytes()[from..from + size_of::<T>()])
    }

    /// The bytes of a section with at least 64 bytes of padding, so that a vector load may start at the last
    /// element. Panics if there is no such section.
    #[inline]
    pub fn padded(&self, id: SectionId) -> &[u8] {
        let range = range(&self.directory[usize::from(id.0)]);
        &self.storage.bytes()[range.start..range.end + 64]
    }

    /// The elements of a section for writing, while the image is compiled. Panics like
    /// [`section`](Self::section).
    pub fn section_mut<T: Element>(&mut self, id: SectionId) -> Result<&mut [T], ImageError> {
        let range = range(self.entry::<T>(id));
        Ok(bytemuck::cast_slice_mut(&mut self.storage.bytes_mut()?[range]))
    }

    /// The memory of each section.
    pub fn memory_usage(&self) -> Vec<SectionUsage> {
        self.directory
            .iter()
            .map(|entry| SectionUsage {
                name: unpack_name(&entry.name).unwrap_or_default().to_owned(),
                width: entry.width,
                len: entry.len,
                bytes: entry.len * u64::from(entry.width),
            })
            .collect()
    }

    /// Bytes of the image, header and alignment included. It is also the length of the file.
    pub fn bytes(&self) -> u64 {
        self.header.length
    }

    /// Writes the values of a patch, after checking every location. O(writes).
    pub fn apply(&mut self, patch: &Patch) -> Result<(), PatchError> {
        self.check(patch)?;
        self.write_patch(patch);
        Ok(())
    }

    /// Checks that every write of a patch has a location here.
    pub fn check(&self, patch: &Patch) -> Result<(), PatchError> {
        for writes in patch.sections() {
            let section = writes[0].section();
            let entry = self.directory.get(usize::from(section.0)).ok_or(PatchError::Section(section))?;
            // Writes ascend, so the last has the largest index.
            if let Some(last) = writes.last().filter(|last| last.index() >= entry.len) {
                return Err(PatchError::Index { section, index: last.index(), len: entry.len });
            }
            let is_wide = |write: &&Write| write.value >> (8 * entry.width) != 0;
            if entry.width < 8
                && let Some(wide) = writes.iter().find(is_wide)
            {
                return Err(PatchError::Value { section, value: wide.value });
            }
        }
        Ok(())
    }

    /// Writes the values of a patch that was checked. Panics if a write has no location.
    pub(crate) fn write_patch(&mut self, patch: &Patch) {
        // Only a mapped file needs memory here: it is copied first.
        let bytes = self.storage.bytes_mut().expect("memory for the copy of a mapped image");
        for writes in patch.sections() {
            let entry = &self.directory[usize::from(writes[0].section().0)];
            let elements = &mut bytes[range(entry)];
            match entry.width {
                1 => write_elements::<1>(elements, writes),
                2 => write_elements::<2>(elements, writes),
                4 => write_elements::<4>(elements, writes),
                _ => write_elements::<8>(elements, writes),
            }
        }
        if let Some((entries, results)) = patch.counts() {
            self.set_counts(entries, results);
        }
    }

    #[inline]
    fn entry<T: Element>(&self, id: SectionId) -> &SectionEntry {
        let entry = &self.directory[usize::from(id.0)];
        assert!(entry.width as usize == size_of::<T>(), "section {} is {} bytes wide", id.0, entry.width);
        entry
    }
}

impl Clone for Image {
    /// Panics if there is no memory for the copy.
    fn clone(&self) -> Self {
        let mut storage = zeroed(self.header.length).expect("memory for the copy of an image");
        storage.bytes_mut().expect("zeroed storage is our own").copy_from_slice(self.storage.bytes());
        Self { storage, header: self.header, directory: self.directory.clone() }
    }
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // the section lies in memory: `parse` and `build` have seen to that
fn range(entry: &SectionEntry) -> std::ops::Range<usize> {
    let start = entry.offset as usize;
    start..start + entry.len as usize * entry.width as usize
}

/// Writes values to elements of `WIDTH` bytes, and prefetches the elements of later writes.
fn write_elements<const WIDTH: usize>(elements: &mut [u8], writes: &[Write]) {
    /// A write takes a nanosecond or two, fetching a line a hundred.
    const AHEAD: usize = 128;
    let (elements, _) = elements.as_chunks_mut::<WIDTH>();
    writes.iter().take(AHEAD).for_each(|write| prefetch(elements, write.index_in_memory()));
    let put = |elements: &mut [[u8; WIDTH]], write: &Write| {
        elements[write.index_in_memory()].copy_from_slice(&write.value.to_le_bytes()[..WIDTH]);
    };
    let (first, last) = writes.split_at(writes.len().saturating_sub(AHEAD));
    for (write, ahead) in first.iter().zip(&writes[writes.len() - first.len()..]) {
        prefetch(elements, ahead.index_in_memory());
        put(elements, write);
    }
    last.iter().for_each(|write| put(elements, write));
}

fn zeroed(bytes: u64) -> Result<Storage, ImageError> {
    let len =
        usize::try_from(bytes).map_err(|_| ImageError::OverCap { needed: bytes, cap: usize::MAX as u64 })?;
    Storage::zeroed(len).map_err(|source| ImageError::Memory { bytes, source })
}
