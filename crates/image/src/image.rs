//! [`Image`]: named flat sections of integers in one piece of memory.

use std::fs::File;
use std::io::{Read, Write as _};
use std::path::Path;

use bytemuck::Pod;

use crate::error::{ImageError, PatchError};
use crate::fetch::prefetch;
use crate::format::{
    Header, MAGIC, MAX_SECTIONS, NAME, SectionEntry, VERSION, data_start, extent, pack_name, parse,
    unpack_name,
};
use crate::patch::{Patch, Write};
use crate::storage::Storage;

/// An unsigned integer that a section can be made of.
pub trait Element: Pod + Ord + Into<u64> + TryFrom<u64> + Send + Sync {}

impl Element for u8 {}
impl Element for u16 {}
impl Element for u32 {}
impl Element for u64 {}

/// An element of a section that lookups read, as the integer it is: these are of 32 bits at most.
#[inline]
#[allow(clippy::cast_possible_truncation)]
pub fn number<T: Element>(element: T) -> u32 {
    let wide: u64 = element.into();
    wide as u32
}

/// The narrowest element that holds a value, in bytes: for [`ImageBuilder::section_of_width`].
pub const fn width_for(value: u64) -> usize {
    match value {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}

/// A section by its place in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectionId(pub u16);

/// A compiled table. Memory is that of its sections and under a kilobyte; a clone is a full copy.
#[derive(Debug)]
pub struct Image {
    // Holds the file byte for byte, but for the counts and the checksum, which are filled in when it is written.
    storage: Storage,
    header: Header,
    directory: Vec<SectionEntry>,
}

/// Where a section lies in an image, found once: the short way to single elements. It holds for every image with the
/// same sections, so for a table as long as it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    start: usize,
}

/// What one section takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionUsage {
    /// Its name.
    pub name: String,
    /// Bytes of an element.
    pub width: u32,
    /// Number of elements, head room included.
    pub len: u64,
    /// Bytes in all.
    pub bytes: u64,
}

impl Image {
    /// Whether bytes start as an image file does.
    pub fn is_start(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC)
    }

    /// The engine kind that it was compiled for.
    pub fn kind(&self) -> &str {
        unpack_name(&self.header.kind).unwrap_or_default()
    }

    /// The version of that engine's layout.
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

    /// States the counts of the table.
    pub fn set_counts(&mut self, entries: u64, results: u64) {
        self.header.entries = entries;
        self.header.results = results;
    }

    /// Number of sections.
    pub fn sections(&self) -> usize {
        self.directory.len()
    }

    /// The section of a name.
    pub fn find(&self, name: &str) -> Option<SectionId> {
        let at = self.directory.iter().position(|entry| unpack_name(&entry.name) == Some(name))?;
        u16::try_from(at).ok().map(SectionId)
    }

    /// Bytes of an element of a section, or `None` where there is no such section.
    pub fn width(&self, id: SectionId) -> Option<u32> {
        self.directory.get(usize::from(id.0)).map(|entry| entry.width)
    }

    /// The elements of a section. Panics where there is no such section or its elements are of another width:
    /// a [`Table`](crate::Table) checks both once when it takes an image.
    #[inline]
    pub fn section<T: Element>(&self, id: SectionId) -> &[T] {
        let entry = self.entry::<T>(id);
        bytemuck::cast_slice(&self.storage.bytes()[range(entry)])
    }

    /// Where a section lies. Panics where there is no such section.
    pub fn column(&self, id: SectionId) -> Column {
        Column { start: range(&self.directory[usize::from(id.0)]).start }
    }

    /// An element of type `T` of a column, counted in elements of that type whatever the section is made of. Panics past
    /// the end of the image.
    #[inline]
    pub fn at<T: Element>(&self, column: Column, index: usize) -> T {
        let from = column.start + index * size_of::<T>();
        bytemuck::pod_read_unaligned(&self.storage.bytes()[from..from + size_of::<T>()])
    }

    /// The bytes of a section and the at least 64 bytes of padding after it, which a vector load that starts at the
    /// last element may read. Panics where there is no such section.
    #[inline]
    pub fn padded(&self, id: SectionId) -> &[u8] {
        let range = range(&self.directory[usize::from(id.0)]);
        &self.storage.bytes()[range.start..range.end + 64]
    }

    /// The elements of a section for writing, while the image is compiled. Panics as [`section`](Self::section).
    pub fn section_mut<T: Element>(&mut self, id: SectionId) -> Result<&mut [T], ImageError> {
        let range = range(self.entry::<T>(id));
        Ok(bytemuck::cast_slice_mut(&mut self.storage.bytes_mut()?[range]))
    }

    /// Memory by section.
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

    /// The same image with one more section of bytes after its own: what belongs to a table but is not looked up
    /// in, such as what its results stand for. A full copy. Panics where the name is taken.
    pub fn with_attachment(&self, name: &str, bytes: &[u8]) -> Result<Self, ImageError> {
        let mut image = self.copied(|_| true, |builder| builder.section::<u8>(name, bytes.len() as u64))?;
        if let Some(last) = image.directory.last() {
            let to = range(last);
            image.storage.bytes_mut()?[to].copy_from_slice(bytes);
        }
        Ok(image)
    }

    /// The same image without the attachments of some names, whether they are there or not. A full copy.
    pub fn without_attachments(&self, names: &[&str]) -> Result<Self, ImageError> {
        self.copied(|name| !names.contains(&name), |builder| builder)
    }

    /// The sections whose names are to stay, in their order, and room for more after them.
    fn copied(
        &self,
        stays: impl Fn(&str) -> bool,
        more: impl FnOnce(ImageBuilder) -> ImageBuilder,
    ) -> Result<Self, ImageError> {
        let name_of = |entry: &SectionEntry| unpack_name(&entry.name).unwrap_or_default().to_owned();
        let old: Vec<_> = self.directory.iter().filter(|entry| stays(&name_of(entry))).collect();
        let mut builder = ImageBuilder::new(self.kind(), self.layout());
        for entry in &old {
            builder = builder.section_of_width(&name_of(entry), entry.width as usize, entry.len);
        }
        let mut image = more(builder).build(None)?;
        image.set_counts(self.entries(), self.results());
        let to = image.storage.bytes_mut()?;
        let from = self.storage.bytes();
        for (old, new) in old.into_iter().zip(&image.directory) {
            to[range(new)].copy_from_slice(&from[range(old)]);
        }
        Ok(image)
    }

    /// The bytes of an attachment; `None` where there is none of that name.
    pub fn attachment(&self, name: &str) -> Option<&[u8]> {
        let id = self.find(name)?;
        (self.width(id) == Some(1)).then(|| self.section::<u8>(id))
    }

    /// Bytes in all, header and alignment included; also the length of the file.
    pub fn bytes(&self) -> u64 {
        self.header.length
    }

    /// Writes the values of a patch, after checking that each has its place; O(writes).
    pub fn apply(&mut self, patch: &Patch) -> Result<(), PatchError> {
        self.check(patch)?;
        self.write_patch(patch);
        Ok(())
    }

    /// Whether each write of a patch has its place here.
    pub fn check(&self, patch: &Patch) -> Result<(), PatchError> {
        for writes in patch.sections() {
            let section = writes[0].section();
            let entry = self.directory.get(usize::from(section.0)).ok_or(PatchError::Section(section))?;
            // They ascend.
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

    /// Writes the values of a patch that was checked. Panics where a write has no place.
    pub(crate) fn write_patch(&mut self, patch: &Patch) {
        // Only a mapped file needs memory here, for the copy that makes it our own.
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

    /// Writes the image as a file, beside the old one and then in its place, so that no reader sees a part of it.
    pub fn save(&self, path: &Path) -> Result<(), ImageError> {
        let mut part = path.as_os_str().to_owned();
        part.push(format!(".part-{}", std::process::id()));
        let part = Path::new(&part);
        let done = (|| {
            let mut file = File::create(part)?;
            self.write(&mut file)?;
            file.sync_all()?;
            std::fs::rename(part, path)
        })();
        if done.is_err() {
            let _ = std::fs::remove_file(part);
        }
        Ok(done?)
    }

    /// Writes the bytes of the image.
    pub fn write(&self, to: &mut impl std::io::Write) -> std::io::Result<()> {
        let bytes = self.storage.bytes();
        let mut header = Header { checksum: 0, ..self.header };
        let mut hash = xxhash_rust::xxh3::Xxh3::new();
        hash.update(bytemuck::bytes_of(&header));
        hash.update(&bytes[size_of::<Header>()..]);
        header.checksum = hash.digest();
        to.write_all(bytemuck::bytes_of(&header))?;
        to.write_all(&bytes[size_of::<Header>()..])
    }

    /// Reads a file into memory of our own, huge pages where there are, and checks it.
    pub fn open(path: &Path) -> Result<Self, ImageError> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        if length < size_of::<Header>() as u64 {
            return Self::check_short(&mut file);
        }
        let mut storage = zeroed(length)?;
        file.read_exact(storage.bytes_mut()?)?;
        Self::adopt(storage)
    }

    /// Reads an image from bytes, by copying them, and checks it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
        parse(bytes)?;
        let mut storage = zeroed(bytes.len() as u64)?;
        storage.bytes_mut()?.copy_from_slice(bytes);
        Self::adopt(storage)
    }

    /// Maps a file and checks it; nothing is copied. Lookups then go through the small pages of the file cache:
    /// [`open`](Self::open) costs a copy once and is faster after it.
    ///
    /// # Safety
    /// Nobody may write to the file or shorten it while the image lives: what was checked must stay true.
    #[allow(unsafe_code)]
    pub unsafe fn map(path: &Path) -> Result<Self, ImageError> {
        let mut file = File::open(path)?;
        if file.metadata()?.len() < size_of::<Header>() as u64 {
            return Self::check_short(&mut file);
        }
        // SAFETY: our caller promises what `Storage::map` asks for.
        Self::adopt(unsafe { Storage::map(&file) }?)
    }

    /// The error for a file that is too short to hold a header.
    fn check_short(file: &mut File) -> Result<Self, ImageError> {
        let mut bytes = Vec::new();
        file.take(size_of::<Header>() as u64).read_to_end(&mut bytes)?;
        Self::from_bytes(&bytes)
    }

    fn adopt(storage: Storage) -> Result<Self, ImageError> {
        let (header, directory) = parse(storage.bytes())?;
        Ok(Self { storage, header, directory })
    }

    #[inline]
    fn entry<T: Element>(&self, id: SectionId) -> &SectionEntry {
        let entry = &self.directory[usize::from(id.0)];
        assert!(entry.width as usize == size_of::<T>(), "section {} is {} bytes wide", id.0, entry.width);
        entry
    }
}

impl Clone for Image {
    /// Panics when there is no memory for the copy.
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

/// Writes values to elements of `WIDTH` bytes, with those to come on their way.
fn write_elements<const WIDTH: usize>(elements: &mut [u8], writes: &[Write]) {
    /// A write takes a nanosecond or two, and a line a hundred to come.
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

/// Sections first, then memory: [`build`](Self::build) takes it all at once, zeroed.
#[derive(Clone, Debug)]
pub struct ImageBuilder {
    kind: [u8; NAME],
    layout: u32,
    directory: Vec<SectionEntry>,
}

impl ImageBuilder {
    /// An image without sections, of an engine's kind and layout version.
    pub fn new(kind: &str, layout: u32) -> Self {
        Self { kind: pack_name(kind), layout, directory: Vec::new() }
    }

    /// Adds a section of `len` elements of type `T`; ids are given in order from 0.
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

    /// The image, all zero, unless it would take more than `cap` bytes.
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
        Ok(Image { storage, header, directory: self.directory })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::checksum;
    use crate::patch::PatchBuilder;

    const A: SectionId = SectionId(0);
    const B: SectionId = SectionId(1);

    fn sample() -> Image {
        let mut image =
            ImageBuilder::new("sample", 3).section::<u8>("a", 5).section::<u32>("b", 3).build(None).unwrap();
        image.section_mut::<u8>(A).unwrap().copy_from_slice(&[1, 2, 3, 4, 5]);
        image.section_mut::<u32>(B).unwrap().copy_from_slice(&[7, 8, u32::MAX]);
        image.set_counts(11, 255);
        image
    }

    fn bytes(image: &Image) -> Vec<u8> {
        let mut bytes = Vec::new();
        image.write(&mut bytes).unwrap();
        bytes
    }

    /// Bytes with the checksum made right again, so that what lies behind it is reached.
    fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
        let sum = checksum(&bytes);
        let at = std::mem::offset_of!(Header, checksum);
        bytes[at..at + 8].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    #[test]
    fn there_and_back_through_bytes_file_and_map() {
        let image = sample();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.img");
        image.save(&path).unwrap();
        #[allow(unsafe_code)]
        // SAFETY: nobody else knows of the temporary file.
        let mapped = unsafe { Image::map(&path) }.unwrap();
        for back in [Image::open(&path).unwrap(), mapped, Image::from_bytes(&bytes(&image)).unwrap()] {
            assert_eq!((back.kind(), back.layout(), back.entries(), back.results()), ("sample", 3, 11, 255));
            assert_eq!(back.section::<u8>(A), [1, 2, 3, 4, 5]);
            assert_eq!(back.section::<u32>(B), [7, 8, u32::MAX]);
            assert_eq!(back.find("b"), Some(B));
            assert_eq!(back.memory_usage()[1].bytes, 12);
            assert_eq!(bytes(&back), bytes(&image));
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no part file is left");
    }

    #[test]
    fn an_attachment_rides_along() {
        let image = sample();
        let with = image.with_attachment("notes", b"hello").unwrap();
        assert_eq!((with.entries(), with.results(), with.sections()), (11, 255, 3));
        assert_eq!(
            (with.section::<u8>(A), with.section::<u32>(B)),
            (image.section::<u8>(A), image.section::<u32>(B))
        );
        let back = Image::from_bytes(&bytes(&with)).unwrap();
        assert_eq!(back.attachment("notes"), Some(&b"hello"[..]));
        assert_eq!((back.attachment("b"), back.attachment("none")), (None, None));
        let without = back.without_attachments(&["notes", "none"]).unwrap();
        assert_eq!(bytes(&without), bytes(&image));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_an_error() {
        let whole = bytes(&sample());
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut bad = whole.clone();
                bad[at] ^= 1 << bit;
                assert!(Image::from_bytes(&bad).is_err(), "byte {at} bit {bit}");
            }
            assert!(Image::from_bytes(&whole[..at]).is_err(), "cut at {at}");
        }
        let longer = [&whole[..], &[0]].concat();
        assert!(matches!(Image::from_bytes(&longer), Err(ImageError::Length { .. })));
    }

    #[test]
    fn a_hostile_header_with_a_right_checksum_is_an_error_or_harmless() {
        let whole = bytes(&sample());
        let head = size_of::<Header>() + 2 * size_of::<SectionEntry>();
        for at in 0..head {
            for value in [0u8, 1, 2, 3, 0x7f, 0x80, 0xff] {
                let mut bad = whole.clone();
                bad[at] = value;
                if let Ok(image) = Image::from_bytes(&resealed(bad)) {
                    // Kind, layout, counts and names may be anything; sections lie inside all the same.
                    for id in 0..2 {
                        match image.width(SectionId(id)).unwrap() {
                            1 => drop(image.section::<u8>(SectionId(id)).to_vec()),
                            2 => drop(image.section::<u16>(SectionId(id)).to_vec()),
                            4 => drop(image.section::<u32>(SectionId(id)).to_vec()),
                            _ => drop(image.section::<u64>(SectionId(id)).to_vec()),
                        }
                    }
                }
            }
        }
        let mut other = whole.clone();
        other[8] = 2;
        assert!(matches!(
            Image::from_bytes(&resealed(other)),
            Err(ImageError::Version { found: 2, supported: 1 })
        ));
    }

    #[test]
    fn a_short_file_is_told_from_another_kind_of_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, b"").unwrap();
        assert!(matches!(Image::open(&path), Err(ImageError::NotAnImage)));
        std::fs::write(&path, &bytes(&sample())[..40]).unwrap();
        assert!(matches!(Image::open(&path), Err(ImageError::Length { found: 40, wanted: 128 })));
        std::fs::write(&path, [7u8; 4096]).unwrap();
        assert!(matches!(Image::open(&path), Err(ImageError::NotAnImage)));
    }

    #[test]
    fn a_patch_is_applied_whole_or_not_at_all() {
        let mut image = sample();
        let mut patch = PatchBuilder::new();
        patch.set(B, 1, 99);
        patch.set(A, 0, 42);
        patch.set(B, 1, 100);
        image.apply(&patch.finish(Some((12, 100)))).unwrap();
        assert_eq!((image.section::<u8>(A)[0], image.section::<u32>(B)[1]), (42, 100));
        assert_eq!((image.entries(), image.results()), (12, 100));
        let before = bytes(&image);
        for (section, index, value) in [(A, 5, 0), (A, 1, 256), (B, 0, 1 << 32), (SectionId(2), 0, 0)] {
            let mut patch = PatchBuilder::new();
            patch.set(A, 2, 77);
            patch.set(section, index, value);
            assert!(image.apply(&patch.finish(None)).is_err());
            assert_eq!(bytes(&image), before);
        }
    }

    #[test]
    fn a_mapped_image_is_patched_in_memory_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.img");
        sample().save(&path).unwrap();
        #[allow(unsafe_code)]
        // SAFETY: nobody else knows of the temporary file.
        let mut image = unsafe { Image::map(&path) }.unwrap();
        let mut patch = PatchBuilder::new();
        patch.set(A, 0, 42);
        image.apply(&patch.finish(None)).unwrap();
        assert_eq!(image.section::<u8>(A)[0], 42);
        assert_eq!(Image::open(&path).unwrap().section::<u8>(A)[0], 1);
    }

    #[test]
    fn a_large_image_starts_at_a_huge_page_and_a_cap_is_kept() {
        let builder = ImageBuilder::new("sample", 1).section::<u64>("a", 1 << 19);
        let image = builder.clone().build(None).unwrap();
        assert_eq!(image.storage.bytes().as_ptr().align_offset(2 << 20), 0);
        let needed = image.bytes();
        assert!(builder.clone().build(Some(needed)).is_ok());
        assert!(matches!(builder.build(Some(needed - 1)), Err(ImageError::OverCap { .. })));
        let absurd = ImageBuilder::new("sample", 1).section::<u64>("a", u64::MAX / 4);
        assert!(absurd.build(None).is_err());
    }
}
