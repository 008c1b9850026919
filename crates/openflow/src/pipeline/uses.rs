//! [`Uses`]: the numbers of flows that use each group and each meter, and the memory of actions.

use rustc_hash::FxHashMap;

use super::counts::Counts;
use super::group::Group;
use crate::wire::{Action, Bucket, Instructions};

/// What flows use, counted as they come and go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uses {
    groups: FxHashMap<u32, usize>,
    meters: FxHashMap<u32, usize>,
    /// Bytes of the actions of all flows, and of the buckets of all groups. Flows with equal actions may
    /// share them, and count as if they did not.
    bytes: usize,
}

impl Uses {
    /// The number of flows that use a group.
    pub(crate) fn of_group(&self, number: u32) -> usize {
        self.groups.get(&number).copied().unwrap_or_default()
    }

    /// The number of flows that use a meter.
    pub(crate) fn of_meter(&self, number: u32) -> usize {
        self.meters.get(&number).copied().unwrap_or_default()
    }

    /// The bytes with something new in the place of something old.
    pub(crate) const fn bytes_with(&self, new: usize, old: usize) -> usize {
        self.bytes.saturating_sub(old).saturating_add(new)
    }

    /// Counts a group in the place of another one, by the bytes of both.
    pub(crate) fn change_group(&mut self, new: usize, old: usize) {
        self.bytes = self.bytes_with(new, old);
    }

    pub(crate) fn add(&mut self, instructions: &Instructions) {
        self.bytes += of_flow(instructions);
        self.each(instructions, |counts, number| *counts.entry(number).or_default() += 1);
    }

    pub(crate) fn remove(&mut self, instructions: &Instructions) {
        self.bytes -= of_flow(instructions);
        self.each(instructions, |counts, number| match counts.get_mut(&number) {
            Some(count) if *count > 1 => *count -= 1,
            _ => _ = counts.remove(&number),
        });
    }

    fn each(&mut self, instructions: &Instructions, step: impl Fn(&mut FxHashMap<u32, usize>, u32)) {
        Action::groups(instructions.actions()).into_iter().for_each(|number| step(&mut self.groups, number));
        instructions.meter.into_iter().for_each(|number| step(&mut self.meters, number));
    }
}

/// Bytes of the actions of a flow.
pub(crate) fn of_flow(instructions: &Instructions) -> usize {
    instructions.actions().count() * size_of::<Action>()
}

/// Bytes of a group with these buckets, in a switch of so many workers.
pub(crate) fn of_group(buckets: &[Bucket], workers: usize) -> usize {
    /// A bucket beside its actions: as it was given, its action set, the end of its weight, and its place
    /// among those that are live, in both copies of the state.
    const BUCKET: usize = size_of::<Bucket>() + size_of::<Vec<Action>>() + 3 * size_of::<u64>();
    let actions: usize = buckets.iter().map(|bucket| bucket.actions.len()).sum();
    // Actions are there as they were given, and in the order of action sets.
    let of_buckets = buckets.len() * (BUCKET + Counts::bytes(workers));
    size_of::<Group>() + Counts::bytes(workers) + of_buckets + 2 * actions * size_of::<Action>()
}
