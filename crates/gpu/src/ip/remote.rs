//! [`Remote`]: an IP table on GPUs, kept in step with a live one.
//!
//! ```text
//! LiveTable ──patch, replace──► Follower ──► FleetTable: a replica on each GPU
//! addresses ──pack──► batch of the least loaded GPU ──► results ──unpack──► next hops
//! ```
//!
//! Keys have as few bytes as the longest prefix allows ([`KeyBytes`]). Before a longer prefix is added, the
//! table is told to refuse narrower keys, in the same order as patches. A batch of narrow keys that was sent
//! too early comes back as [`GpuError::NarrowKeys`] and is packed again from the addresses. So no lookup uses
//! keys that are too narrow.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use bytemuck::cast_slice_mut;
use wirespeed_fib::{Address, Family, NextHop};

use super::in_place::InPlace;
use super::keys::{KeyBytes, pack_to};
use crate::copies::Copies;
use crate::error::GpuError;
use crate::numbers::unpack;
use crate::remote::{Answers, RemoteTable};
use crate::runtime::{Batch, Fleet, FleetBatch, Form};
use crate::source::Source;
use crate::trip::look_up;

/// A table on GPUs. Clones are the same table.
pub struct Remote<A> {
    inner: Arc<Inner>,
    address: PhantomData<fn(A)>,
}

struct Inner {
    copies: Copies,
    /// The number of leading bits of a key that a lookup may depend on.
    bits: AtomicU8,
    /// Whether that number stays for good.
    is_fixed: AtomicBool,
}

impl<A> fmt::Debug for Remote<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").finish_non_exhaustive()
    }
}

impl<A> Clone for Remote<A> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), address: PhantomData }
    }
}

impl<A: Address> Remote<A> {
    /// The kind of keys that the table takes now.
    pub fn key_bytes(&self) -> KeyBytes {
        KeyBytes::for_bits(A::FAMILY, self.inner.bits.load(Ordering::Acquire))
    }

    /// The kind of keys that addresses are written as when they come. `None` if that is known only when they
    /// are sent, because a longer prefix may need more of their bytes. Then those of IPv4 are whole: a byte
    /// less on the bus is worth less than to write them once.
    pub fn in_place(&self) -> Option<KeyBytes> {
        let (whole, kind) = (KeyBytes::whole(A::FAMILY), self.key_bytes());
        let is_known = kind == whole || self.inner.is_fixed.load(Ordering::Acquire);
        match A::FAMILY {
            _ if is_known => Some(kind),
            Family::V4 => Some(whole),
            Family::V6 => None,
        }
    }

    /// Looks up addresses, and writes each next hop to the same index of `next_hops`. Large batches go in
    /// parts. After an error some next hops are written and some are not.
    ///
    /// Panics when the slices differ in length.
    pub fn lookup_batch(&self, addresses: &[A], next_hops: &mut [NextHop]) -> Result<(), GpuError> {
        look_up(self, addresses, next_hops)
    }
}

impl<A: Address> RemoteTable for Remote<A> {
    type Domain = A;

    /// The number of leading bits of an address that lookups in the table depend on, and addresses like those
    /// of future lookups: launches are measured with them on each GPU, and with random ones if there are
    /// none.
    type KeyHint<'k> = (u8, &'k [A]);

    type Written = InPlace<A>;

    const PARTS: usize = 4;

    const LEAST_PART: usize = 1 << 17;

    fn upload(fleet: &Fleet, table: &dyn Source, (bits, sample): (u8, &[A])) -> Result<Self, GpuError> {
        let kind = KeyBytes::for_bits(A::FAMILY, bits);
        let copies = Copies::upload(fleet, table, &mut |at, gpu, replica| {
            for &each in KeyBytes::kinds(A::FAMILY) {
                if at == 0 || each == kind {
                    match sample {
                        [] => gpu.tune(replica, each.count())?,
                        _ => gpu.tune_keys(replica, each.count(), |batch| pack_all(sample, each, batch))?,
                    };
                }
            }
            gpu.calibrate(replica, kind.count()).map(Some)
        })?;
        // Our own batches have as many; a caller with keys on the device may not know.
        copies.require(kind.count());
        let (bits, is_fixed) = (AtomicU8::new(bits), AtomicBool::new(false));
        Ok(Self { inner: Arc::new(Inner { copies, bits, is_fixed }), address: PhantomData })
    }

    fn copies(&self) -> &Copies {
        &self.inner.copies
    }

    fn slot_keys(&self, addresses: &[A]) -> usize {
        addresses.len()
    }

    fn write_to(&self, slot: impl FnOnce() -> Option<FleetBatch>, addresses: usize) -> Option<InPlace<A>> {
        let kind = self.in_place()?;
        InPlace::new(slot()?, kind, addresses).ok()
    }

    fn reach(&self, bits: u8) {
        let narrow = KeyBytes::for_bits(A::FAMILY, self.inner.bits.fetch_max(bits, Ordering::AcqRel));
        let wide = KeyBytes::for_bits(A::FAMILY, bits);
        if wide > narrow {
            self.inner.copies.require(wide.count());
        }
    }

    fn fix_reach(&self) {
        self.inner.is_fixed.store(true, Ordering::Release);
    }
}

impl<A: Address> Answers<NextHop> for Remote<A> {
    fn pack(&self, addresses: &[A], to: &mut Batch) -> Option<Form> {
        let kind = self.key_bytes();
        let is_streamed = to.is_streamed_when_packed(kind.count(), addresses.len());
        pack_to(addresses, kind, to.keys_mut(), is_streamed)
    }

    fn unpack(results: &[u8], bytes: usize, to: &mut [NextHop]) {
        unpack(results, bytes, cast_slice_mut(to));
    }
}

/// Fills a batch with addresses of a sample, again and again.
fn pack_all<A: Address>(sample: &[A], kind: KeyBytes, batch: &mut Batch) -> Option<Form> {
    let addresses: Vec<A> = sample.iter().copied().cycle().take(batch.capacity()).collect();
    pack_to(&addresses, kind, batch.keys_mut(), false)
}
