//! Names on GPUs: what these are started with, and a table brought there. In all else as [`crate::device`]
//! has it.

use wirespeed_gpu::GpuError;
use wirespeed_gpu::names::{Offload, Remote, Use};
use wirespeed_gpu::runtime::{Fleet, GpuOptions, SlotSize};
use wirespeed_namelookup::generate::{self, Domains, Load, Paths, TraceSpec};
use wirespeed_namelookup::{Lookup, Match, NameBatch, NameDomain};

use super::NameRib;
use crate::device::{MEASURED, measured};
use crate::engine::OnDevice;

/// Bytes that a slot has for a name: more than most take on average, their places included. Longer names go
/// in smaller parts.
pub const NAME_BYTES: usize = 64;

/// Options that GPUs are started with for names by default.
pub fn options() -> GpuOptions {
    GpuOptions {
        slots: vec![SlotSize { slots: 16, keys: 1 << 16 }, SlotSize { slots: 4, keys: 1 << 18 }],
        key_bytes: NAME_BYTES,
        result_bytes: size_of::<Match>(),
        ..GpuOptions::default()
    }
}

/// Brings a table to GPUs, and measures the cost of lookups there and on the CPU, for so many threads, with
/// names like those that will be looked up. About a second. To keep it in step with a live table, let
/// [`Remote::follower`] follow that.
pub fn beside<T: OnDevice + Lookup<NameDomain>>(
    fleet: &Fleet,
    table: &T,
    sample: &NameBatch,
    by: Use,
    threads: usize,
) -> Result<Offload, GpuError> {
    let names = sample.names();
    let remote = Remote::upload(fleet, table, names)?;
    let names = names.part(0..names.len().min(MEASURED));
    let mut results = vec![0; names.len()];
    Ok(Offload::new(remote, by, measured(threads, names.len(), || table.lookup_batch(names, &mut results))))
}

/// Names like those that may be looked up in a table, its own with paths after them; as many as the GPUs take
/// at a time.
pub(super) fn sample(names: &NameRib, fleet: &Fleet) -> NameBatch {
    let count = fleet.largest_batch().clamp(MEASURED, 1 << 18);
    let spec = TraceSpec { load: Load::Average, misses: 0.0, seed: 1 };
    generate::trace(names, Paths::made(), &spec, count).unwrap_or_else(|_| {
        // An empty table.
        let mut domains = Domains::new(1);
        let mut batch = NameBatch::new();
        while batch.len() < count && batch.push(domains.draw()).is_ok() {}
        batch
    })
}
