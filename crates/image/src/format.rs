//! The bytes of an image file.
//!
//! ```text
//! 0     Header, 128 bytes
//! 128   directory: one SectionEntry of 48 bytes a section, in the order of the sections
//!       sections, each at a multiple of 64 and followed by at least 64 zero bytes, so that a vector load which
//!       starts at the last element stays inside
//! ```
//!
//! All integers are little-endian. The checksum is the XXH3-64 of the whole file with the checksum field
//! zero.

use bytemuck::{Pod, Zeroable};

use crate::error::ImageError;

/// First bytes of every image.
pub(crate) const MAGIC: [u8; 8] = *b"WIRESPD\x1a";
/// The version of this format.
pub(crate) const VERSION: u32 = 1;
/// Alignment of a section, and the number of zero bytes after it.
pub(crate) const ALIGN: u64 = 64;
/// Most sections in an image.
pub(crate) const MAX_SECTIONS: usize = 4096;
/// Bytes of a kind and of a section name.
pub(crate) const NAME: usize = 16;

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Header {
    pub(crate) magic: [u8; 8],
    pub(crate) version: u32,
    pub(crate) sections: u32,
    pub(crate) kind: [u8; NAME],
    pub(crate) layout: u32,
    pub(crate) reserved: u32,
    pub(crate) length: u64,
    pub(crate) entries: u64,
    pub(crate) results: u64,
    pub(crate) checksum: u64,
    pub(crate) reserved_tail: [u64; 7],
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct SectionEntry {
    pub(crate) name: [u8; NAME],
    pub(crate) width: u32,
    pub(crate) reserved: u32,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) reserved_tail: u64,
}

const _: () = assert!(size_of::<Header>() == 128 && size_of::<SectionEntry>() == 48);

/// The lowest offset of the first section.
pub(crate) fn data_start(sections: usize) -> u64 {
    (size_of::<Header>() + sections * size_of::<SectionEntry>()).next_multiple_of(64) as u64
}

/// Bytes from the start of a section to the lowest offset of the next one. `None` past 2^64.
pub(crate) fn extent(width: u64, len: u64) -> Option<u64> {
    len.checked_mul(width)?.checked_add(ALIGN)?.checked_next_multiple_of(ALIGN)
}

/// A name as stored: ASCII letters, digits and `-_.`, zero-padded. Panics on any other name, which is an
/// error in an engine.
pub(crate) fn pack_name(name: &str) -> [u8; NAME] {
    assert!(is_name(name), "{name:?} is no name of 1 to {NAME} of a-z A-Z 0-9 - _ .");
    let mut packed = [0; NAME];
    packed[..name.len()].copy_from_slice(name.as_bytes());
    packed
}

/// A stored name, if it is one.
pub(crate) fn unpack_name(packed: &[u8; NAME]) -> Option<&str> {
    let len = packed.iter().position(|&b| b == 0).unwrap_or(NAME);
    let name = std::str::from_utf8(&packed[..len]).ok()?;
    (is_name(name) && packed[len..].iter().all(|&b| b == 0)).then_some(name)
}

fn is_name(name: &str) -> bool {
    (1..=NAME).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// The checksum of a whole image. The content of the checksum field does not matter.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    let at = std::mem::offset_of!(Header, checksum);
    let mut hash = xxhash_rust::xxh3::Xxh3::new();
    hash.update(&bytes[..at]);
    hash.update(&[0; 8]);
    hash.update(&bytes[at + 8..]);
    hash.digest()
}

/// Header and directory of an image, checked except for the content of the sections.
pub(crate) fn parse(bytes: &[u8]) -> Result<(Header, Vec<SectionEntry>), ImageError> {
    let malformed = |what: String| Err(ImageError::Malformed(what));
    let found = bytes.len() as u64;
    if bytes.len() < MAGIC.len() || bytes[..MAGIC.len()] != MAGIC {
        return Err(ImageError::NotAnImage);
    }
    let Some(head) = bytes.get(..size_of::<Header>()) else {
        return Err(ImageError::Length { found, wanted: size_of::<Header>() as u64 });
    };
    let header: Header = bytemuck::pod_read_unaligned(head);
    if header.version != VERSION {
        return Err(ImageError::Version { found: header.version, supported: VERSION });
    }
    if header.length != found {
        return Err(ImageError::Length { found, wanted: header.length });
    }
    let sum = checksum(bytes);
    if sum != header.checksum {
        return Err(ImageError::Checksum { found: sum, wanted: header.checksum });
    }
    if unpack_name(&header.kind).is_none() {
        return malformed("the kind is no name".into());
    }
    if header.reserved != 0 || header.reserved_tail != [0; 7] {
        return malformed("a reserved field of the header is not zero".into());
    }
    let count = header.sections as usize;
    let start = data_start(count.min(MAX_SECTIONS));
    if count > MAX_SECTIONS || start > found {
        return malformed(format!("{count} sections in {found} bytes"));
    }
    let directory = &bytes[size_of::<Header>()..][..count * size_of::<SectionEntry>()];
    let entries: Vec<SectionEntry> =
        directory.chunks_exact(size_of::<SectionEntry>()).map(bytemuck::pod_read_unaligned).collect();
    let mut free = start;
    for (i, entry) in entries.iter().enumerate() {
        if unpack_name(&entry.name).is_none() || entry.reserved != 0 || entry.reserved_tail != 0 {
            return malformed(format!("entry {i} of the directory"));
        }
        if !matches!(entry.width, 1 | 2 | 4 | 8) {
            return malformed(format!("section {i} has elements of {} bytes", entry.width));
        }
        // Gaps would gain nothing: all images are packed alike, so the offset is implied and only checked.
        let end = extent(u64::from(entry.width), entry.len).and_then(|bytes| free.checked_add(bytes));
        match end {
            Some(end) if end <= found && entry.offset == free => free = end,
            _ => return malformed(format!("section {i}: {} elements at {}", entry.len, entry.offset)),
        }
        if entries[..i].iter().any(|other| other.name == entry.name) {
            return malformed(format!("two sections of one name, the second is {i}"));
        }
    }
    if free != found {
        return malformed(format!("{} bytes after the last section", found - free));
    }
    Ok((header, entries))
}
