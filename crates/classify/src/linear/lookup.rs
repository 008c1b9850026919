//! Lookups by linear search.

use wirespeed_table::{Load, Lookup, Step};

use super::layout::{LANES, LinearTable, group_elements};
use super::portable::first_lane;
use super::simd;
use crate::tuple::Tuple;

impl<T: Tuple> Lookup<T> for LinearTable<T> {
    fn lookup(&self, tuple: &T) -> u32 {
        let mut result = [0];
        simd::batch(self.view(), std::slice::from_ref(tuple), &mut result);
        result[0]
    }

    fn lookup_batch(&self, tuples: &[T], results: &mut [u32]) {
        assert_eq!(tuples.len(), results.len(), "a result for each tuple");
        simd::batch(self.view(), tuples, results);
    }

    fn shape(&self) -> Option<String> {
        let (groups, room) = (self.groups(), self.room());
        Some(format!("{} entries in {groups} groups of {LANES}, with room for {room}", self.entries()))
    }

    fn loads(&self) -> Vec<Load> {
        let (places, taken) = ((self.room() * LANES) as u64, self.entries() as u64);
        vec![Load { what: "entries", places, taken }]
    }

    fn explain(&self, tuple: &T) -> Vec<Step> {
        let view = self.view();
        let mut steps = Vec::new();
        for (group, entries) in view.entries.chunks_exact(group_elements(T::WORDS)).enumerate() {
            let index = (group * group_elements(T::WORDS)) as u64;
            let numbers = &view.numbers[group * LANES..][..LANES];
            let found = first_lane(entries, numbers, tuple);
            let meaning = match found {
                Some(lane) => format!("lane {lane} of group {group} is the first that matches"),
                None => format!("no entry of group {group} matches"),
            };
            steps.push(Step { section: "entries", index, value: entries[0].into(), meaning });
            if let Some(lane) = found {
                let at = group * LANES + lane;
                let (number, priority) = (view.numbers[at], self.priorities()[at]);
                let meaning = format!("result {number}, of priority {priority}");
                steps.push(Step { section: "numbers", index: at as u64, value: number.into(), meaning });
                return steps;
            }
        }
        let groups = self.groups() as u64;
        steps.push(Step {
            section: "head",
            index: 1,
            value: groups,
            meaning: "no match: no more groups".to_owned(),
        });
        steps
    }
}
