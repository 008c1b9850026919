//! [`Image`]: named flat sections of integers in one piece of memory.
//!
//! This file has the parts that engines read, and the writing of patches. `builder` makes images, `file`
//! writes and reads them, `shared` has the sections that two live copies may share, and `attached` the parts
//! that lookups don't use.

mod attached;
mod builder;
mod element;
mod file;
mod shared;
#[cfg(test)]
mod tests;

pub use builder::ImageBuilder;
pub use element::{Element, number, width_for};
pub use shared::{Padded, Shared};

use std::borrow::Cow;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::error::{ImageError, PatchError};
use crate::fetch::prefetch;
use crate::format::{Header, MAGIC, SectionEntry, unpack_name};
use crate::front::Front;
use crate::patch::{Patch, Write};
use crate::section::SectionId;
use crate::storage::Storage;

/// A compiled table. Its memory is the sections and under a kilobyte more. A clone is a full copy.
///
/// The two copies of a live table may [share](crate::Table::share) leading sections. These are read by
/// [`shared`](Self::shared) and [`shared_at`](Self::shared_at), which take any section that may be shared,
/// whether it is or not.
#[derive(Debug)]
pub struct Image {
    // Holds the file byte for byte, except for the counts and the checksum, which are filled in on writing.
    // If there is a front, it holds the file from `base` on.
    storage: Storage,
    /// The part before `base`, if two copies share it.
    front: Option<Arc<Front>>,
    /// The offset in the file of the first byte of `storage`.
    base: usize,
    /// The first byte of the file, in the front or in the storage.
    start: NonNull<u8>,
    header: Header,
    directory: Vec<SectionEntry>,
}

#[allow(unsafe_code)]
// SAFETY: `start` is a pointer to memory that the storage or the front owns, for loads only.
unsafe impl Send for Image {}
#[allow(unsafe_code)]
// SAFETY: as above.
unsafe impl Sync for Image {}

/// The offset of a section in an image: the fast way to single elements. It is valid for every image with the
/// same sections that shares the same of them, so for as long as its table lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    start: usize,
}

/// The place of a section that may be shared: the fast way to its single elements. It is valid like a
/// [`Column`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedColumn {
    start: usize,
    len: usize,
    width: usize,
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

    /// Upper bound of what a lookup can return. It does not fall with updates.
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
    /// a [`Table`](crate::Table) checks both once when it takes an image. Panics, too, if the section is
    /// shared.
    #[inline]
    pub fn section<T: Element>(&self, id: SectionId) -> &[T] {
        let entry = self.entry::<T>(id);
        bytemuck::cast_slice(&self.storage.bytes()[self.range(entry)])
    }

    /// The elements of a section, whether it is shared or not. Otherwise like [`section`](Self::section).
    #[inline]
    pub fn shared<T: Element>(&self, id: SectionId) -> Shared<'_, T> {
        let range = range(self.entry::<T>(id));
        assert!(self.front.is_none() || range.start < self.base, "section {} is not shared", id.0);
        self.elements(range.start, range.len() / size_of::<T>())
    }

    /// The place of a section, whether it is shared or not. Panics if there is no such section, or if the
    /// image shares others.
    pub fn shared_column(&self, id: SectionId) -> SharedColumn {
        let entry = &self.directory[usize::from(id.0)];
        let (range, width) = (range(entry), entry.width as usize);
        assert!(self.front.is_none() || range.start < self.base, "section {} is not shared", id.0);
        SharedColumn { start: range.start, len: range.len() / width, width }
    }

    /// The elements of a place. Panics if they have another width, or are past the end of the image.
    #[inline(always)]
    pub fn shared_at<T: Element>(&self, column: SharedColumn) -> Shared<'_, T> {
        let end = if self.front.is_some() { self.base } else { self.storage.bytes().len() };
        let fits = column.start + column.len * column.width + 64 <= end;
        assert!(fits && column.width == size_of::<T>(), "a place of another image");
        self.elements(column.start, column.len)
    }

    /// The elements at an offset of the file. The section and its padding lie in the storage, or in the
    /// front.
    #[inline(always)]
    fn elements<T: Element>(&self, at: usize, len: usize) -> Shared<'_, T> {
        #[allow(unsafe_code)]
        // SAFETY: the elements and 64 bytes after them are in the memory that `start` is of, as sections are
        // padded; sections and maps are aligned to 64. It lives as long as the image. Only the front is
        // written to while there are references to the image, and there by atomic operations.
        unsafe {
            Shared::new(self.start.add(at), len)
        }
    }

    /// The image, or a copy of it if sections are shared: all sections can be read.
    pub fn whole(&self) -> Cow<'_, Self> {
        if self.front.is_some() { Cow::Owned(self.clone()) } else { Cow::Borrowed(self) }
    }

    /// Makes the first sections ones that twins share. There is a section after them. An image that shares
    /// some already stays as it is. Panics if there is no memory.
    pub(crate) fn share(&mut self, sections: u16) {
        if self.front.is_some() {
            return;
        }
        let base = range(&self.directory[usize::from(sections)]).start;
        let own = copy_of(&self.storage.bytes()[base..]);
        let whole = std::mem::replace(&mut self.storage, own);
        let front = Front::new(whole, self.header.results).expect("memory for the copy of a mapped image");
        (self.start, self.base) = (front.start(), base);
        self.front = Some(Arc::new(front));
    }

    /// Makes a copy for other readers, which has the shared sections in common with this one. A patch is
    /// [written](Self::write_patch) to one of them, then [the rest of it](Self::write_again) to the other.
    pub(crate) fn twin(&self) -> Self {
        let Some(front) = &self.front else { return self.clone() };
        Self {
            storage: copy_of(self.storage.bytes()),
            front: Some(Arc::clone(front)),
            base: self.base,
            start: self.start,
            header: self.header,
            directory: self.directory.clone(),
        }
    }

    /// Bytes of the image and a twin.
    pub(crate) fn bytes_of_twins(&self) -> u64 {
        let own = self.header.length - self.base as u64;
        2 * own + if self.front.is_some() { self.header.length } else { 0 }
    }

    fn of(storage: Storage, header: Header, directory: Vec<SectionEntry>) -> Self {
        let start = NonNull::from(storage.bytes()).cast();
        Self { storage, front: None, base: 0, start, header, directory }
    }

    /// The bytes of a section. Panics if there is no such section.
    #[inline]
    pub(crate) fn bytes_of(&self, id: SectionId) -> &[u8] {
        &self.storage.bytes()[self.range(&self.directory[usize::from(id.0)])]
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
        Column { start: self.range(&self.directory[usize::from(id.0)]).start }
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
        let range = self.range(&self.directory[usize::from(id.0)]);
        &self.storage.bytes()[range.start..range.end + 64]
    }

    /// The elements of a section for writing, while the image is compiled. Panics like
    /// [`section`](Self::section).
    pub fn section_mut<T: Element>(&mut self, id: SectionId) -> Result<&mut [T], ImageError> {
        let range = self.range(self.entry::<T>(id));
        let bytes = self.storage.bytes_mut()?;
        // A mapped file was copied.
        if self.front.is_none() {
            self.start = NonNull::from(&mut *bytes).cast();
        }
        Ok(bytemuck::cast_slice_mut(&mut bytes[range]))
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
        self.write_sections(patch, true);
    }

    /// Writes the values of a patch that a twin has [written](Self::write_patch).
    pub(crate) fn write_again(&mut self, patch: &Patch) {
        self.write_sections(patch, false);
    }

    fn write_sections(&mut self, patch: &Patch, to_front: bool) {
        let results = patch.counts().map_or(self.header.results, |(_, results)| results);
        // Only a mapped file needs memory here: it is copied first.
        let bytes = self.storage.bytes_mut().expect("memory for the copy of a mapped image");
        if self.front.is_none() {
            self.start = NonNull::from(&mut *bytes).cast();
        }
        for writes in patch.sections() {
            let entry = &self.directory[usize::from(writes[0].section().0)];
            let place = range(entry);
            if let Some(front) = self.front.as_ref().filter(|_| place.start < self.base) {
                let (start, len) = (place.start, place.len() / entry.width as usize);
                match entry.width {
                    _ if !to_front => {}
                    1 => front.write::<1>(start, len, writes, results),
                    2 => front.write::<2>(start, len, writes, results),
                    4 => front.write::<4>(start, len, writes, results),
                    _ => front.write::<8>(start, len, writes, results),
                }
                continue;
            }
            let elements = &mut bytes[place.start - self.base..place.end - self.base];
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

    /// The place of a section in the storage. Panics if it is shared.
    #[inline]
    fn range(&self, entry: &SectionEntry) -> std::ops::Range<usize> {
        let range = range(entry);
        assert!(range.start >= self.base, "the section is shared");
        range.start - self.base..range.end - self.base
    }

    #[inline]
    fn entry<T: Element>(&self, id: SectionId) -> &SectionEntry {
        let entry = &self.directory[usize::from(id.0)];
        assert!(entry.width as usize == size_of::<T>(), "section {} is {} bytes wide", id.0, entry.width);
        entry
    }
}

impl Clone for Image {
    /// Makes an image that shares nothing. Panics if there is no memory for the copy.
    fn clone(&self) -> Self {
        let mut storage = zeroed(self.header.length).expect("memory for the copy of an image");
        let (front, own) = storage.bytes_mut().expect("zeroed storage is our own").split_at_mut(self.base);
        own.copy_from_slice(self.storage.bytes());
        let mut header = self.header;
        if let Some(shared) = &self.front {
            // Elements that no lookup of this state reaches may be of a later one.
            header.results = header.results.max(shared.copy(front));
        }
        Self::of(storage, header, self.directory.clone())
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

/// Our own memory with the same bytes. Panics if there is none.
fn copy_of(bytes: &[u8]) -> Storage {
    let mut copy = zeroed(bytes.len() as u64).expect("memory for the copy of an image");
    copy.bytes_mut().expect("zeroed storage is our own").copy_from_slice(bytes);
    copy
}

fn zeroed(bytes: u64) -> Result<Storage, ImageError> {
    let len =
        usize::try_from(bytes).map_err(|_| ImageError::OverCap { needed: bytes, cap: usize::MAX as u64 })?;
    Storage::zeroed(len).map_err(|cause| ImageError::Memory { bytes, cause })
}
