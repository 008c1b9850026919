//! [`Shared`]: a section that two live copies may share (`front.rs`), and so may be written while it is read.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::Element;

/// The elements of a section that two live copies may share, and at least 64 bytes of padding after them.
#[derive(Clone, Copy, Debug)]
pub struct Shared<'i, T> {
    start: NonNull<u8>,
    len: usize,
    memory: PhantomData<&'i [T]>,
}

impl<'i, T: Element> Shared<'i, T> {
    /// # Safety
    /// There are as many elements and 64 bytes more at `start`, aligned, for as long as `'i`. Whoever writes
    /// to them meanwhile does so by atomic operations.
    #[allow(unsafe_code)]
    #[inline]
    pub(crate) unsafe fn new(start: NonNull<u8>, len: usize) -> Self {
        Self { start, len, memory: PhantomData }
    }

    /// The number of elements.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // no section of a table is empty
    pub fn len(self) -> usize {
        self.len
    }

    /// An element. Panics if there is none.
    #[inline(always)]
    pub fn at(self, index: usize) -> T {
        assert!(index < self.len, "element {index} of {}", self.len);
        let from = self.start.as_ptr().wrapping_add(index * size_of::<T>());
        #[allow(unsafe_code)]
        // SAFETY: the element is one of those at `start`, and aligned. Writes to it are atomic, too.
        unsafe {
            match size_of::<T>() {
                1 => bytemuck::cast(AtomicU8::from_ptr(from).load(Ordering::Relaxed)),
                2 => bytemuck::cast(AtomicU16::from_ptr(from.cast()).load(Ordering::Relaxed)),
                4 => bytemuck::cast(AtomicU32::from_ptr(from.cast()).load(Ordering::Relaxed)),
                _ => bytemuck::cast(AtomicU64::from_ptr(from.cast()).load(Ordering::Relaxed)),
            }
        }
    }

    /// The bytes of the elements and 64 more, for vector loads.
    #[inline]
    pub fn padded(self) -> Padded<'i> {
        Padded { start: self.start.as_ptr(), len: self.len * size_of::<T>() + 64, memory: PhantomData }
    }
}

/// Bytes that vectors load from, some of which may be written meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Padded<'i> {
    start: *const u8,
    len: usize,
    memory: PhantomData<&'i [u8]>,
}

impl Padded<'_> {
    /// The first byte.
    #[inline(always)]
    pub fn start(self) -> *const u8 {
        self.start
    }

    /// The number of bytes.
    #[inline(always)]
    #[allow(clippy::len_without_is_empty)] // there are 64 at least
    pub fn len(self) -> usize {
        self.len
    }
}

impl<'i> From<&'i [u8]> for Padded<'i> {
    #[inline(always)]
    fn from(bytes: &'i [u8]) -> Self {
        Self { start: bytes.as_ptr(), len: bytes.len(), memory: PhantomData }
    }
}
