//! Rules on GPUs: what these are started with, and a table brought there. All else is as in
//! [`crate::device`].

use wirespeed_classify::{Lookup, RuleSet, generate};
use wirespeed_gpu::GpuError;
use wirespeed_gpu::classify::{Offload, Remote, Use};
use wirespeed_gpu::runtime::{Fleet, GpuOptions};

use crate::device::{MEASURED, measured};
use crate::engine::{OnDevice, RuleTuple};

/// Options that GPUs are started with for tuples of a type by default.
pub fn options<T: RuleTuple>() -> GpuOptions {
    GpuOptions { key_bytes: T::PACKED, result_bytes: size_of::<u32>(), ..GpuOptions::default() }
}

/// Brings a table to GPUs, and measures what lookups cost there and on the CPU, for so many threads, with
/// tuples like those that will be looked up. Takes about a second. To keep the copy in step with a live
/// table, let [`Remote::follower`] follow that.
pub fn beside<T: RuleTuple, X: OnDevice + Lookup<T>>(
    fleet: &Fleet,
    table: &X,
    sample: &[T],
    by: Use,
    threads: usize,
) -> Result<Offload<T>, GpuError> {
    let remote = Remote::upload(fleet, table, sample)?;
    let tuples = &sample[..sample.len().min(MEASURED)];
    let mut numbers = vec![0; tuples.len()];
    Ok(Offload::new(remote, by, measured(threads, tuples.len(), || table.lookup_batch(tuples, &mut numbers))))
}

/// Tuples like those that may be looked up in a set; as many as the GPUs take at a time.
pub(super) fn sample<T: RuleTuple>(rules: &RuleSet<T>, fleet: &Fleet) -> Vec<T> {
    let count = fleet.largest_batch().clamp(MEASURED, 1 << 18);
    generate::tuples(rules, count, 1.0, 1)
}
