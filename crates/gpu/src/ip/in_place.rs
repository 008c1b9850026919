//! [`InPlace`]: addresses that are written to a slot of a GPU as they come.

#![allow(unsafe_code)] // a push into pinned memory without a check of the slot

use std::fmt;
use std::ptr::NonNull;

use wirespeed_fib::Address;

use crate::runtime::{Done, FleetBatch, Form};

/// Addresses in a slot, each in all its bytes. They lie nowhere else, and are read there, too.
pub struct InPlace<A> {
    slot: FleetBatch,
    at: NonNull<A>,
    len: usize,
    capacity: usize,
}

// SAFETY: it is the slot, which may be sent and shared, and addresses in the slot's memory, which are plain
// data.
unsafe impl<A: Send> Send for InPlace<A> {}
// SAFETY: as above. A shared `InPlace` only reads.
unsafe impl<A: Sync> Sync for InPlace<A> {}

impl<A: Address> InPlace<A> {
    /// Takes a slot for at most `keys` addresses. Returns it if it holds fewer.
    pub fn new(mut slot: FleetBatch, keys: usize) -> Result<Self, FleetBatch> {
        let bytes = slot.batch().keys_mut();
        let is_aligned = bytes.as_ptr().cast::<A>().is_aligned();
        if !is_aligned || bytes.len() / size_of::<A>() < keys {
            return Err(slot);
        }
        // The provenance is of the whole slot. The memory stays at its place as long as the slot is held.
        let at = NonNull::from(bytes).cast::<A>();
        Ok(Self { slot, at, len: 0, capacity: keys })
    }

    /// Adds an address. Panics if there is no room.
    #[inline]
    pub fn push(&mut self, address: A) {
        assert!(self.len < self.capacity, "there is room");
        // SAFETY: `new` saw that `capacity` addresses fit and are aligned. The slot is held, and nobody else
        // has a reference to its memory: they are lent by methods of `self` alone.
        unsafe { self.at.add(self.len).write(address) };
        self.len += 1;
    }

    /// Adds at most `most` addresses. Returns how many. Panics if there is no room for `most`.
    #[inline]
    pub fn extend(&mut self, addresses: impl Iterator<Item = A>, most: usize) -> usize {
        let room = &mut self.room()[..most];
        let mut count = 0;
        room.iter_mut().zip(addresses).for_each(|(to, address)| {
            *to = address;
            count += 1;
        });
        self.len += count;
        count
    }

    /// Adds addresses. Panics if there is no room.
    pub fn extend_from(&mut self, addresses: &[A]) {
        self.room()[..addresses.len()].copy_from_slice(addresses);
        self.len += addresses.len();
    }

    /// The addresses.
    pub fn keys(&self) -> &[A] {
        // SAFETY: as in `push`. All of the slot's memory holds values, and any bytes are an address.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }

    /// The number of addresses.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no addresses.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The slot, and the form of its keys.
    pub fn into_slot(self) -> (FleetBatch, Form) {
        let form = Form::keys(size_of::<A>(), self.len).expect("they are in a slot");
        (self.slot, form)
    }

    /// The addresses of a slot that has come back, of which there are `len`.
    pub fn keys_of(done: &Done, len: usize) -> &[A] {
        bytemuck::cast_slice(&done.keys()[..len * size_of::<A>()])
    }

    fn room(&mut self) -> &mut [A] {
        // SAFETY: as in `keys`, and the slot is borrowed for as long as the room is.
        unsafe { std::slice::from_raw_parts_mut(self.at.add(self.len).as_ptr(), self.capacity - self.len) }
    }
}

impl<A> fmt::Debug for InPlace<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InPlace")
            .field("len", &self.len)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}
