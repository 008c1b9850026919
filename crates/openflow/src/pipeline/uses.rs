//! [`Uses`]: the numbers of flows that use each group and each meter.

use rustc_hash::FxHashMap;

use crate::wire::{Action, Instructions};

/// What flows use, counted as they come and go.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    groups: FxHashMap<u32, usize>,
    meters: FxHashMap<u32, usize>,
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

    pub(crate) fn add(&mut self, instructions: &Instructions) {
        self.each(instructions, |counts, number| *counts.entry(number).or_default() += 1);
    }

    pub(crate) fn remove(&mut self, instructions: &Instructions) {
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
