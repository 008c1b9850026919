//! The memory of an image: anonymous pages, huge if the system gives them, or a mapped file.

use std::fs::File;
use std::ops::Range;
use std::ptr::NonNull;

use memmap2::{Mmap, MmapMut, MmapOptions};

/// Size of a huge page on x86-64 and most other systems. On others it is only an alignment.
const HUGE_PAGE: usize = 2 << 20;

#[derive(Debug)]
pub(crate) struct Storage {
    memory: Memory,
    /// The bytes in that memory, found once. Every lookup starts from this pointer.
    bytes: NonNull<[u8]>,
}

#[derive(Debug)]
enum Memory {
    /// Zeroed anonymous pages. If the bytes fill a huge page they start at a multiple of [`HUGE_PAGE`], and
    /// the map reaches to a multiple of it, so that the whole table can lie in huge pages: a lookup touches
    /// random lines, and with small pages most of its time would go into TLB misses.
    Owned { map: MmapMut, bytes: Range<usize> },
    /// A file, read in place.
    Mapped(Mmap),
}

#[allow(unsafe_code)]
// SAFETY: the pointer is to memory that this storage alone owns, and is written through only by way of
// `&mut self`.
unsafe impl Send for Storage {}
#[allow(unsafe_code)]
// SAFETY: as above.
unsafe impl Sync for Storage {}

impl Storage {
    /// Allocates `len` zero bytes.
    pub(crate) fn zeroed(len: usize) -> std::io::Result<Self> {
        let huge = len >= HUGE_PAGE / 2;
        let room = if huge { len.next_multiple_of(HUGE_PAGE) + HUGE_PAGE } else { len.max(1) };
        let map = MmapMut::map_anon(room)?;
        let start = if huge { map.as_ptr().align_offset(HUGE_PAGE) } else { 0 };
        #[cfg(target_os = "linux")]
        if huge {
            // Without huge pages the table works, too, only slower.
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        Ok(Self::of(Memory::Owned { map, bytes: start..start + len }))
    }

    /// Maps a whole file.
    ///
    /// # Safety
    /// Nobody may write to or shorten the file while the storage lives.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn map(file: &File) -> std::io::Result<Self> {
        // SAFETY: the caller promises that the file does not change.
        unsafe { MmapOptions::new().populate().map(file) }.map(|map| Self::of(Memory::Mapped(map)))
    }

    fn of(memory: Memory) -> Self {
        let bytes = match &memory {
            Memory::Owned { map, bytes } => &map[bytes.clone()],
            Memory::Mapped(map) => map,
        };
        Self { bytes: bytes.into(), memory }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        #[allow(unsafe_code)]
        // SAFETY: these bytes are part of `memory`, a map, which stays where it is as long as this storage
        // has it; whoever writes to them borrows the storage mutably.
        unsafe {
            self.bytes.as_ref()
        }
    }

    /// The bytes for writing. A mapped file is copied first.
    pub(crate) fn bytes_mut(&mut self) -> std::io::Result<&mut [u8]> {
        if let Memory::Mapped(map) = &self.memory {
            let mut own = Self::zeroed(map.len())?;
            own.bytes_mut()?.copy_from_slice(map);
            *self = own;
        }
        match &mut self.memory {
            Memory::Owned { map, bytes } => Ok(&mut map[bytes.clone()]),
            Memory::Mapped(_) => Err(std::io::Error::other("a mapped file was just made our own")),
        }
    }
}
