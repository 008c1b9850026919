//! [`Counting`]: an allocator that counts, for tests of code that is to allocate nothing.

#![allow(unsafe_code)] // an allocator

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's allocator, with counts of the calls that ask for memory. A test makes it its
/// `#[global_allocator]`.
#[derive(Clone, Copy, Debug)]
pub struct Counting;

static ALL: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static OWN: Cell<u64> = const { Cell::new(0) };
}

impl Counting {
    /// The calls of all threads.
    pub fn of_all(self) -> u64 {
        ALL.load(Ordering::Relaxed)
    }

    /// The calls of this thread.
    pub fn of_this_thread(self) -> u64 {
        OWN.get()
    }

    fn count() {
        ALL.fetch_add(1, Ordering::Relaxed);
        // A thread that ends may allocate after its values are gone.
        let _ = OWN.try_with(|own| own.set(own.get() + 1));
    }
}

// SAFETY: each call is the system allocator's, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count();
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::count();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::count();
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}
