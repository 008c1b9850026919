//! [`InPlace`]: addresses that are written to a slot of a GPU as they come; [`Sent`]: such addresses in a
//! slot that was sent.

#![allow(unsafe_code)] // pinned memory that is written without a check of the slot

use std::fmt;
use std::ptr::NonNull;
use std::sync::OnceLock;

use bytemuck::{cast_slice, cast_slice_mut};
use wirespeed_fib::Address;

use super::keys::{KeyBytes, expand, first_48, first_64, write};
use crate::in_place::{self, InSlot, forget};
use crate::runtime::{Done, FleetBatch, Form, Planes};

/// Addresses in a slot, as keys of a kind. They lie nowhere else, and are read there, too.
///
/// Keys of 3, 6 and 8 bytes hold the first bits of an address. The other bits are not kept: they are read as
/// 0.
pub struct InPlace<A> {
    slot: FleetBatch,
    kind: KeyBytes,
    /// The planes of `capacity` keys. The second is empty if keys of the kind have one.
    planes: (NonNull<u8>, NonNull<u8>),
    /// Whether addresses of slices are written past the caches.
    is_streamed: bool,
    len: usize,
    capacity: usize,
    read: Read<A>,
}

/// The addresses of keys that are not whole, once somebody has read them.
type Read<A> = OnceLock<Vec<A>>;

/// Addresses in a slot that is under way, or has come back.
#[derive(Debug)]
pub struct Sent<A> {
    kind: KeyBytes,
    len: usize,
    read: Read<A>,
}

// SAFETY: it is the slot, which may be sent and shared, and keys in the slot's memory, which are plain data.
unsafe impl<A: Send> Send for InPlace<A> {}
// SAFETY: as above. A shared `InPlace` only reads.
unsafe impl<A: Send + Sync> Sync for InPlace<A> {}

impl<A: Address> InPlace<A> {
    /// Takes a slot for at most `keys` addresses, as keys of a kind. Returns the slot if it holds fewer, and
    /// for a kind of the other family.
    pub fn new(mut slot: FleetBatch, kind: KeyBytes, keys: usize) -> Result<Self, FleetBatch> {
        let bytes = slot.batch().keys_mut();
        let is_aligned = bytes.as_ptr().cast::<A>().is_aligned();
        let form = Form::keys(kind.count(), keys).filter(|form| form.bytes() <= bytes.len());
        let is_own = KeyBytes::kinds(A::FAMILY).contains(&kind);
        let Some(form) = form.filter(|_| is_aligned && is_own) else { return Err(slot) };
        // The provenance is of the whole slot. The memory stays at its place as long as the slot is held.
        let first = NonNull::from(bytes).cast::<u8>();
        // SAFETY: the second plane lies within the form's bytes, and so within the slot.
        let second = unsafe { first.add(form.second().unwrap_or(0)) };
        let is_streamed = slot.batch().is_streamed(form.bytes());
        Ok(Self {
            slot,
            kind,
            planes: (first, second),
            is_streamed,
            len: 0,
            capacity: keys,
            read: Read::new(),
        })
    }

    /// The keys in each plane.
    fn written(&self) -> (&[u8], &[u8]) {
        let ((first, second), (wide, low)) = (self.planes, Planes::of(self.kind.count()).widths());
        // SAFETY: `new` saw that `capacity` keys fit. All of the slot's memory holds values, and it is
        // borrowed as long as `self`.
        unsafe {
            let first = std::slice::from_raw_parts(first.as_ptr(), wide * self.len);
            (first, std::slice::from_raw_parts(second.as_ptr(), low * self.len))
        }
    }

    /// The place of the next `count` keys in each plane. Panics if there is no room.
    #[inline]
    fn room(&mut self, count: usize) -> (&mut [u8], &mut [u8]) {
        assert!(count <= self.capacity - self.len, "there is room");
        let ((first, second), (wide, low)) = (self.planes, Planes::of(self.kind.count()).widths());
        // SAFETY: as in `written`, and the planes don't overlap.
        unsafe {
            let (first, second) = (first.add(wide * self.len), second.add(low * self.len));
            let first = std::slice::from_raw_parts_mut(first.as_ptr(), wide * count);
            (first, std::slice::from_raw_parts_mut(second.as_ptr(), low * count))
        }
    }
}

impl<A: Address> in_place::InPlace for InPlace<A> {
    type Domain = A;
    type Sent = Sent<A>;

    #[inline]
    fn push(&mut self, address: A) -> bool {
        assert!(self.len < self.capacity, "there is room");
        let ((first, second), at) = (self.planes, self.len);
        // SAFETY: `new` saw that `capacity` keys of the kind fit, which is of the family, and that the first
        // plane is aligned for addresses, and so for their parts; the second starts at a multiple of 16 bytes
        // from there. The slot is held, and nobody else has a reference to its memory: they are lent by
        // methods of `self` alone.
        unsafe {
            match self.kind.count() {
                3 => {
                    first.cast::<u16>().add(at).write(address.first_16().to_le());
                    second.add(at).write(address.octet(2));
                }
                6 => {
                    let (upper, lower) = first_48(address);
                    first.cast::<u32>().add(at).write(upper.to_le());
                    second.cast::<u16>().add(at).write(lower.to_le());
                }
                8 => first.cast::<u64>().add(at).write(first_64(address).to_le()),
                _ => first.cast::<A>().add(at).write(address),
            }
        }
        self.len += 1;
        forget(&mut self.read);
        true
    }

    /// Panics if there is no room for `most` addresses.
    #[inline]
    fn extend<'k, I>(&mut self, addresses: I, most: usize) -> (usize, Option<(A::Key<'k>, I)>)
    where
        I: Iterator<Item = A::Key<'k>>,
    {
        let bytes = self.kind.count();
        let count = fill(bytes, self.room(most), addresses);
        self.len += count;
        forget(&mut self.read);
        (count, None)
    }

    fn extend_from(&mut self, addresses: &[A]) -> usize {
        let (kind, is_streamed) = (self.kind, self.is_streamed);
        let (first, second) = self.room(addresses.len());
        write(addresses, kind, (first, second), is_streamed);
        self.len += addresses.len();
        forget(&mut self.read);
        addresses.len()
    }

    fn keys(&self) -> &[A] {
        let (first, second) = self.written();
        addresses(self.kind, (first, second), &self.read)
    }

    #[inline]
    fn len(&self) -> usize {
        self.len
    }

    fn into_slot(mut self) -> (FleetBatch, Form, Sent<A>) {
        let form = Form::keys(self.kind.count(), self.len).expect("they are in a slot");
        // A batch that is not full has its second plane nearer to the first one.
        let low = Planes::of(self.kind.count()).low(self.capacity);
        if let Some((from, to)) = low.zip(form.second()).filter(|(from, to)| from != to) {
            self.slot.batch().keys_mut().copy_within(from..from + form.bytes() - to, to);
        }
        (self.slot, form, Sent { kind: self.kind, len: self.len, read: self.read })
    }
}

impl<A: Address> InSlot for Sent<A> {
    type Domain = A;

    #[inline]
    fn len(&self) -> usize {
        self.len
    }

    fn keys<'k>(&'k self, done: &'k Done) -> &'k [A] {
        let (planes, keys) = (Planes::of(self.kind.count()), done.keys());
        let (wide, narrow) = planes.widths();
        let second = planes.low(self.len).map_or(&keys[..0], |low| &keys[low..][..narrow * self.len]);
        addresses(self.kind, (&keys[..wide * self.len], second), &self.read)
    }
}

/// Writes addresses to planes as keys of so many bytes, until there is no more room or no more address.
/// Returns how many.
#[inline]
fn fill<A: Address>(
    bytes: usize,
    planes: (&mut [u8], &mut [u8]),
    addresses: impl Iterator<Item = A>,
) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has AVX2.
        return unsafe { fill_with_avx2(bytes, planes, addresses) };
    }
    fill_each(bytes, planes, addresses)
}

/// The loop compiled for AVX2: keys of a range that are computed take 0.7 to 0.9 of the time.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn fill_with_avx2<A: Address>(
    bytes: usize,
    planes: (&mut [u8], &mut [u8]),
    addresses: impl Iterator<Item = A>,
) -> usize {
    fill_each(bytes, planes, addresses)
}

#[inline(always)] // into the loop for AVX2, too
fn fill_each<A: Address>(
    bytes: usize,
    (first, second): (&mut [u8], &mut [u8]),
    addresses: impl Iterator<Item = A>,
) -> usize {
    let mut count = 0;
    match bytes {
        3 => cast_slice_mut(first).iter_mut().zip(second).zip(addresses).for_each(
            |((upper, lower), address)| {
                (*upper, *lower) = (address.first_16().to_le(), address.octet(2));
                count += 1;
            },
        ),
        6 => {
            let (first, second) = (cast_slice_mut(first), cast_slice_mut(second));
            first.iter_mut().zip(second).zip(addresses).for_each(|((upper, lower), address)| {
                let parts = first_48(address);
                (*upper, *lower) = (parts.0.to_le(), parts.1.to_le());
                count += 1;
            });
        }
        8 => cast_slice_mut(first).iter_mut().zip(addresses).for_each(|(to, address)| {
            *to = first_64(address).to_le();
            count += 1;
        }),
        _ => cast_slice_mut(first).iter_mut().zip(addresses).for_each(|(to, address)| {
            *to = address;
            count += 1;
        }),
    }
    count
}

/// The addresses of keys in planes.
fn addresses<'k, A: Address>(
    kind: KeyBytes,
    (first, second): (&'k [u8], &'k [u8]),
    read: &'k Read<A>,
) -> &'k [A] {
    if kind == KeyBytes::whole(A::FAMILY) {
        return cast_slice(first);
    }
    read.get_or_init(|| expand(kind, first, second))
}

impl<A> fmt::Debug for InPlace<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InPlace")
            .field("kind", &self.kind)
            .field("len", &self.len)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}
