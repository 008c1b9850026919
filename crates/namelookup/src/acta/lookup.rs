//! Lookups: component by component from the root's state on, until a component is not found or a transition
//! leads to no state.

use wirespeed_table::{Lookup, Step};

use super::hash::bucket;
use super::layout::{
    ActaTable, BUCKET_WORDS, Bucket, Header, NO_STATE, ROOT_RESULT_AT, ROOT_STATE_AT, SECOND, Slot, State,
    View,
};
use super::simd;
use crate::domain::NameDomain;
use crate::found::Match;
use crate::name::Name;
use crate::names::Names;

impl Lookup<NameDomain> for ActaTable {
    fn lookup(&self, name: &Name) -> Match {
        let view = self.view();
        let mut found = Match { result: view.root_result, length: 0 };
        let (mut state, mut length) = (view.root, 0);
        for component in name.components() {
            let Some(from) = state else { break };
            let Some((bucket, slot)) = view.find(from, component) else { break };
            length += 1 + component.len();
            if slot.header.ends() {
                found = Match::new(bucket.result(slot, view.width), length);
            }
            state = slot.header.leads().then(|| bucket.state(slot, view.width));
        }
        found
    }

    fn lookup_batch(&self, names: Names<'_>, results: &mut [u32]) {
        simd::batch(self.view(), names, results);
    }

    fn match_batch(&self, names: Names<'_>, matches: &mut [Match]) {
        simd::batch(self.view(), names, matches);
    }

    fn shape(&self) -> Option<String> {
        let view = self.view();
        let (mut entries, mut second, mut bytes) = (0usize, 0usize, 0usize);
        for bucket in view.buckets.iter().map(Bucket::of) {
            for slot in bucket.slots(view.width) {
                entries += 1;
                second += usize::from(slot.header.is_second());
                bytes += 2 + slot.end - slot.start;
            }
        }
        let percent = |part: usize, of: usize| 100.0 * part as f64 / of.max(1) as f64;
        Some(format!(
            "{} buckets, {:.1} % full; {entries} transitions, {:.1} % in their second bucket",
            view.buckets.len(),
            percent(bytes, 62 * view.buckets.len()),
            percent(second, entries),
        ))
    }

    fn explain(&self, name: &Name) -> Vec<Step> {
        Explained { view: self.view(), steps: Vec::new() }.of(name)
    }
}

/// A lookup that records its reads.
struct Explained<'t> {
    view: View<'t>,
    steps: Vec<Step>,
}

impl<'t> Explained<'t> {
    fn of(mut self, name: &Name) -> Vec<Step> {
        let view = self.view;
        let state = view.root.map_or(NO_STATE, |state| u64::from(state.0));
        let mut result = view.root_result;
        self.step("head", ROOT_RESULT_AT as u64, u64::from(result), "the root's own".to_owned());
        let meaning = match view.root {
            None => "the root has no children".to_owned(),
            Some(state) => format!("the root's state: base {}, turn {}", state.base(), state.turn()),
        };
        self.step("head", ROOT_STATE_AT as u64, state, meaning);
        let mut state = view.root;
        for component in name.components() {
            let Some(from) = state else { break };
            let Some((bucket, slot)) = self.probe(from, component) else { break };
            if slot.header.ends() {
                result = bucket.result(slot, view.width);
            }
            state = slot.header.leads().then(|| bucket.state(slot, view.width));
        }
        let last = if result == 0 { "no match".to_owned() } else { format!("result {result}") };
        if let Some(step) = self.steps.last_mut() {
            step.meaning = format!("{}; {last}", step.meaning);
        }
        self.steps
    }

    fn step(&mut self, section: &'static str, index: u64, value: u64, meaning: String) {
        self.steps.push(Step { section, index, value, meaning });
    }

    /// The transition of a state by a component, with the buckets read for it.
    fn probe(&mut self, state: State, component: &[u8]) -> Option<(Bucket<'t>, Slot)> {
        let view = self.view;
        let hash = view.seeds.hash(component);
        let wanted = Header::wanted(component.len(), state.turn(), hash.tag());
        let [first, second] = hash.choices(view.count).map(|choice| bucket(state.base(), choice, view.count));
        let at = u64::from(first) * BUCKET_WORDS as u64;
        let bucket = view.bucket(first);
        let count = bucket.len();
        if let Some(slot) = view.find_in(bucket, wanted, component) {
            self.word(at, 0, format!("bucket {first}, the first choice, has {count} transitions"));
            self.found(at, bucket, slot);
            return Some((bucket, slot));
        }
        if bucket.head() & hash.filter_bit() == 0 {
            let meaning = format!(
                "bucket {first}, the first choice, has {count} transitions, not this one; nor has the second"
            );
            self.word(at, 0, meaning);
            return None;
        }
        self.word(
            at,
            0,
            format!(
                "bucket {first}, the first choice, has {count} transitions; this one may be in the second"
            ),
        );
        let at = u64::from(second) * BUCKET_WORDS as u64;
        let bucket = view.bucket(second);
        let slot = view.find_in(bucket, Header(wanted.0 | SECOND), component);
        let not = if slot.is_some() { "" } else { ", not this one" };
        self.word(
            at,
            0,
            format!("bucket {second}, the second choice, has {} transitions{not}", bucket.len()),
        );
        self.found(at, bucket, slot?);
        Some((bucket, slot?))
    }

    fn found(&mut self, at: u64, bucket: Bucket<'_>, slot: Slot) {
        if slot.header.is_long() {
            let (word, len) = bucket.long(slot);
            let value = self.view.long[8 * word as usize..][..8].try_into().map_or(0, u64::from_le_bytes);
            self.step("long", word.into(), value, format!("a component of {len} bytes"));
        }
        let gives = match (slot.header.leads(), slot.header.ends()) {
            (true, true) => "an entry that leads on",
            (true, false) => "leads on",
            _ => "an entry",
        };
        self.word(at, (slot.start / 8) as u64, format!("transition {} is it: {gives}", slot.number));
    }

    /// A word of a bucket.
    fn word(&mut self, bucket: u64, word: u64, meaning: String) {
        let index = bucket + word;
        let words = self.view.buckets.as_flattened();
        let value = usize::try_from(index).ok().and_then(|index| words.get(index)).copied().unwrap_or(0);
        self.step("buckets", index, value, meaning);
    }
}
