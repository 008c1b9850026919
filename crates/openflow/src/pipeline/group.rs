//! [`Group`]: a group of buckets, as workers see it.

use super::counts::Counts;
use super::set::ActionSet;
use crate::wire::{Bucket, GroupKind};

/// A group.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) kind: GroupKind,
    /// The buckets as they were given.
    pub(crate) buckets: Vec<Bucket>,
    /// The actions of each bucket in the order of action sets.
    pub(crate) sets: Vec<ActionSet>,
    /// The sum of the weights of each bucket and of those before it.
    ends: Vec<u64>,
    pub(crate) counts: Counts,
    pub(crate) of_bucket: Vec<Counts>,
    /// The time when it was added, in milliseconds.
    pub(crate) since: u64,
}

impl Group {
    pub(crate) fn new(kind: GroupKind, buckets: Vec<Bucket>, now: u64, workers: usize) -> Self {
        let weights = buckets.iter().scan(0, |end, bucket| {
            *end += u64::from(bucket.weight);
            Some(*end)
        });
        Self {
            kind,
            ends: weights.collect(),
            sets: buckets.iter().map(|bucket| ActionSet::of(&bucket.actions)).collect(),
            counts: Counts::new(workers),
            of_bucket: buckets.iter().map(|_| Counts::new(workers)).collect(),
            buckets,
            since: now,
        }
    }

    /// The group with another type and other buckets. Its packets and bytes and its time go on; those of
    /// buckets begin anew.
    pub(crate) fn changed(&self, kind: GroupKind, buckets: Vec<Bucket>, workers: usize) -> Self {
        Self { counts: self.counts.clone(), ..Self::new(kind, buckets, self.since, workers) }
    }

    /// The bucket of a flow in a group that selects: each has a share of all hashes by its weight.
    pub(crate) fn select(&self, hash: u32) -> Option<usize> {
        let at = (u64::from(hash) * self.ends.last()?) >> 32;
        let bucket = self.ends.partition_point(|&end| end <= at);
        (bucket < self.ends.len()).then_some(bucket)
    }
}
