//! [`Front`]: the leading sections of an image that two live copies share.
//!
//! ```text
//! one image      header, directory | sections 0 .. n | sections n ..
//! two copies     └──────── one Front ───────┘        └── one storage each
//! ```
//!
//! The engine of such a table writes to the front only where no reader of either copy reads
//! ([`Table::share`](crate::Table::share)). The other elements are read meanwhile, so there are no references
//! to the elements of a front: readers and the writer use pointers, and single elements are atomic.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::fetch::prefetch_at;
use crate::image::Element;
use crate::patch::Write;
use crate::storage::Storage;

/// The first bytes of an image, shared.
#[derive(Debug)]
pub(crate) struct Front {
    /// All bytes of the image that was shared.
    bytes: NonNull<[u8]>,
    /// Locked while elements are written, and while they are copied as a whole. It holds the largest result
    /// that was ever stated for an element.
    results: Mutex<u64>,
    /// The memory of the bytes.
    _storage: Storage,
}

#[allow(unsafe_code)]
// SAFETY: the pointer is to memory that the front owns. Elements are read and written by atomic operations,
// or copied as a whole under the lock that writers take.
unsafe impl Send for Front {}
#[allow(unsafe_code)]
// SAFETY: as above.
unsafe impl Sync for Front {}

impl Front {
    pub(crate) fn new(mut storage: Storage, results: u64) -> std::io::Result<Self> {
        let bytes = NonNull::from(storage.bytes_mut()?);
        Ok(Self { bytes, results: Mutex::new(results), _storage: storage })
    }

    /// The start of the bytes.
    #[inline]
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.bytes.cast()
    }

    /// Copies the first bytes, and returns the largest result that any element in them may have.
    pub(crate) fn copy(&self, to: &mut [u8]) -> u64 {
        assert!(to.len() <= self.bytes.len(), "a front is as long as its image");
        let results = self.lock();
        #[allow(unsafe_code)]
        // SAFETY: the front has as many bytes. Nobody writes to them while the lock is held.
        unsafe {
            std::ptr::copy_nonoverlapping(self.start().as_ptr(), to.as_mut_ptr(), to.len());
        }
        *results
    }

    /// Writes to a section of elements of `WIDTH` bytes that starts at `start` and has `len` elements.
    /// Panics if a write has no location. `results` is the largest result after the patch.
    pub(crate) fn write<const WIDTH: usize>(&self, start: usize, len: usize, writes: &[Write], results: u64) {
        /// Writes whose lines are fetched ahead.
        const AHEAD: usize = 32;
        let inside = start.is_multiple_of(WIDTH) && start + len * WIDTH <= self.bytes.len();
        assert!(inside, "a section lies in the front, aligned");
        let place = |write: &Write| {
            let index = write.index_in_memory();
            assert!(index < len, "a write to element {index} of {len}");
            self.start().as_ptr().wrapping_add(start + index * WIDTH)
        };
        let mut most = self.lock();
        *most = results.max(*most);
        for (at, write) in writes.iter().enumerate() {
            if let Some(ahead) = writes.get(at + AHEAD) {
                prefetch_at(place(ahead));
            }
            let (to, value) = (place(write), write.value.to_le_bytes());
            #[allow(unsafe_code)]
            // SAFETY: the element lies in the front, at a multiple of its width, as was asserted. All other
            // accesses are atomic, too, or under the lock.
            unsafe {
                match WIDTH {
                    1 => AtomicU8::from_ptr(to).store(value[0], Ordering::Relaxed),
                    2 => AtomicU16::from_ptr(to.cast()).store(first(value), Ordering::Relaxed),
                    4 => AtomicU32::from_ptr(to.cast()).store(first(value), Ordering::Relaxed),
                    _ => AtomicU64::from_ptr(to.cast()).store(first(value), Ordering::Relaxed),
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        // A panic in a write is before the element is written.
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lower bytes of a value.
fn first<T: Element>(value: [u8; 8]) -> T {
    bytemuck::pod_read_unaligned(&value[..size_of::<T>()])
}
