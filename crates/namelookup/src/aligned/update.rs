//! Updates of aligned transition arrays (section 2.5) as patches.
//!
//! A name is walked from the root by the steps of the machine, in the control plane's own slots. An insertion
//! adds the missing transitions, each in the slot that its state has for it. If another state's transition is
//! in that slot, the state with fewer transitions of the two is moved, and the transition that leads to it is
//! set to its new state; see `relocate.rs`. (The paper always moves the state that gets the transition;
//! `/com` would take 100,000 writes.) A deletion removes the last transition, and goes up while a state has
//! lost its only transition and no entry ends there. Slots and bases become vacant at once.
//!
//! All removed names are taken out first, then new names are put in: a name may have been removed and
//! inserted again as another node.

use wirespeed_image::{Patch, PatchBuilder};
use wirespeed_table::Outgrown;

use super::arrays::{NONE, Owner, TOP};
use super::build::Aligned;
use super::form::Form;
use super::layout::{ACCEPTING, HEAD, RESULTS, ROOT, ROOT_RESULT, TRANSITIONS};
use crate::fetch::prefetch;
use crate::fsm::{chunk, write_text};
use crate::table::{NameTable, Node, NodeId};

/// Names that are walked together.
const GROUP: usize = 32;

/// What an update is to do, in order: the texts of names, and the result of each, 0 to remove it.
struct Work {
    text: Vec<u8>,
    ends: Vec<End>,
}

/// A name of some work.
#[derive(Clone, Copy, Default)]
struct End {
    start: usize,
    end: usize,
    result: u32,
}

/// A walk that goes ahead of an update.
#[derive(Clone, Copy, Default)]
struct Walk {
    end: End,
    at: usize,
    state: u32,
    slot: u32,
    input: u32,
    /// What follows, where the step is by half a number.
    second: Option<u32>,
}

impl Work {
    fn of(names: &NameTable, changed: &[NodeId]) -> Self {
        let mut work = Self { text: Vec::new(), ends: Vec::with_capacity(changed.len()) };
        let nodes = || changed.iter().filter(|&&id| id != NodeId::ROOT).map(|&id| names.node(id));
        let stays = || nodes().filter(|node| !node.is_gone());
        nodes().filter(Node::is_gone).for_each(|node| work.push(node, 0));
        stays().filter(|node| node.result() != 0).for_each(|node| work.push(node, node.result()));
        // Now what is beneath these is there, so that they lose their result only.
        stays().filter(|node| node.result() == 0).for_each(|node| work.push(node, 0));
        work
    }

    fn push(&mut self, node: Node<'_>, result: u32) {
        let start = self.text.len();
        write_text(node, &mut self.text);
        self.ends.push(End { start, end: self.text.len(), result });
    }

    fn text(&self, end: End) -> &[u8] {
        &self.text[end.start..end.end]
    }
}

impl<F: Form> Aligned<F> {
    #[inline(never)] // one copy for all crates
    pub(super) fn patch_of(&mut self, names: &NameTable, changed: &[NodeId]) -> Result<Patch, Outgrown> {
        if names.results() > self.arrays.results.most() {
            return Err(Outgrown("results' width"));
        }
        self.results = self.results.max(names.results());
        self.root_result = names.root().result();
        self.dirty.clear();
        self.dirty_results.clear();
        let work = Work::of(names, changed);
        for group in work.ends.chunks(GROUP) {
            self.warm(&work, group);
            for &end in group {
                match end.result {
                    0 => self.remove(work.text(end)),
                    result => self.insert(work.text(end), result)?,
                }
            }
        }
        Ok(self.written((names.len() as u64, u64::from(self.results))))
    }

    /// The patch of all slots that changed.
    fn written(&mut self, counts: (u64, u64)) -> Patch {
        let mut patch = PatchBuilder::new();
        patch.set(HEAD, ROOT as u64, self.root.into());
        patch.set(HEAD, ROOT_RESULT as u64, self.root_result.into());
        for slots in [&mut self.dirty, &mut self.dirty_results] {
            slots.sort_unstable();
            slots.dedup();
        }
        for &slot in &self.dirty {
            let cell = self.arrays.cell(slot);
            patch.set(TRANSITIONS, slot.into(), u64::from(cell.link) << 32 | u64::from(cell.input));
        }
        for &slot in &self.dirty_results {
            patch.set(RESULTS, slot.into(), self.arrays.results.of(slot).into());
        }
        patch.finish(Some(counts))
    }

    /// Walks a group of names together, a step of each in turn, so that what their walks read one by one is
    /// in the cache then. It changes nothing, and where it goes wrong, as names change on the way, nothing
    /// comes of it.
    fn warm(&self, work: &Work, group: &[End]) {
        let mut walks = [Walk::default(); GROUP];
        let mut live = 0;
        for &end in group.iter().filter(|_| self.root != 0) {
            walks[live] = Walk { end, state: self.root, ..Walk::default() };
            live += usize::from(self.aim(work, &mut walks[live]));
        }
        while live > 0 {
            let mut still = 0;
            for at in 0..live {
                let mut walk = walks[at];
                let cell = self.arrays.cell(walk.slot);
                walk.state = cell.link & !ACCEPTING;
                if cell.input == walk.input && walk.state != 0 && self.aim(work, &mut walk) {
                    walks[still] = walk;
                    still += 1;
                }
            }
            live = still;
        }
    }

    /// Asks for what a walk's next step reads; whether there is one.
    fn aim(&self, work: &Work, walk: &mut Walk) -> bool {
        let text = work.text(walk.end);
        if walk.second.is_none() && walk.at >= text.len() {
            return false;
        }
        let input = walk.second.take().unwrap_or_else(|| {
            let (input, next) = chunk(text, walk.at, F::STRIDE);
            walk.at = next;
            input
        });
        let shape = self.space.shape_of(walk.state);
        walk.input = input;
        if shape.halved {
            (walk.input, walk.second) = (input & 0xffff, Some(input >> 16));
        }
        walk.slot = self.space.slot(walk.state, walk.input);
        prefetch(&self.arrays.cells, walk.slot as usize);
        prefetch(&self.arrays.owners, self.space.place_of(walk.state));
        true
    }

    /// A name has a result, whether it is new or not.
    fn insert(&mut self, text: &[u8], result: u32) -> Result<(), Outgrown> {
        let (mut at, mut slot) = (0, TOP);
        while at < text.len() {
            let (input, next) = chunk(text, at, F::STRIDE);
            slot = self.whole_step(slot, input)?;
            at = next;
        }
        self.arrays.cells[slot as usize].link |= ACCEPTING;
        self.set_result(slot, result);
        self.dirty.push(slot);
        Ok(())
    }

    /// The slot of the transition by a number from the state that a slot leads to, made where there is none.
    fn whole_step(&mut self, from: u32, input: u32) -> Result<u32, Outgrown> {
        const FULL: Outgrown = Outgrown("vacant slots");
        let mut state = self.next_state(from);
        if state == 0 || !self.space.shape_of(state).halved {
            if let Some(slot) = self.step(from, input)? {
                return Ok(slot);
            }
            state = self.halve(state).ok_or(FULL)?;
        }
        debug_assert!(self.space.shape_of(state).halved);
        let low = self.step(from, input & 0xffff)?.ok_or(FULL)?;
        self.step(low, input >> 16)?.ok_or(FULL)
    }

    /// The slot of the transition by an input of the state's own, made where there is none. `None` where
    /// neither the state nor what is in its way finds another place.
    fn step(&mut self, from: u32, input: u32) -> Result<Option<u32>, Outgrown> {
        let state = self.next_state(from);
        if state == 0 {
            return self.first_transition(from, input).map(Some);
        }
        let slot = self.space.slot(state, input);
        let cell = self.arrays.cell(slot);
        if cell.link != 0 && cell.input == input {
            return Ok(Some(slot));
        }
        let state = if cell.link == 0 { Some(state) } else { self.make_way(state, input, slot)? };
        let Some(state) = state else { return Ok(None) };
        let slot = self.space.slot(state, input);
        self.space.take(slot);
        self.put(state, slot, input);
        Ok(Some(slot))
    }

    /// A new state for one transition.
    fn first_transition(&mut self, from: u32, input: u32) -> Result<u32, Outgrown> {
        let state = self.space.place_likely(&[input], false).ok_or(Outgrown("vacant slots"))?;
        let place = self.space.place_of(state);
        self.arrays.owners[place] = Owner::led_to_by(from);
        self.lead(from, state);
        let slot = self.space.slot(state, input);
        self.put(state, slot, input);
        Ok(slot)
    }

    /// A transition that leads nowhere yet, and ends nothing: whoever asked for it sees to that.
    pub(super) fn put(&mut self, state: u32, slot: u32, input: u32) {
        let place = self.space.place_of(state);
        // For now it ends an entry, as a link of 0 would be vacant.
        self.arrays.put(place, slot, input, ACCEPTING);
        self.set_result(slot, 0);
        self.dirty.push(slot);
    }

    pub(super) fn set_result(&mut self, slot: u32, result: u32) {
        if self.arrays.results.of(slot) != result {
            self.arrays.results.set(slot, result);
            self.dirty_results.push(slot);
        }
    }

    /// A slot holds nothing any more.
    pub(super) fn vacate(&mut self, slot: u32) {
        self.arrays.cells[slot as usize] = Default::default();
        self.set_result(slot, 0);
        self.space.give_back(slot);
        self.dirty.push(slot);
    }

    /// A name is no entry any more, where it is one.
    fn remove(&mut self, text: &[u8]) {
        let Some(slot) = self.find(text) else { return };
        self.arrays.cells[slot as usize].link &= !ACCEPTING;
        self.set_result(slot, 0);
        self.dirty.push(slot);
        self.prune(slot);
    }

    /// The slot of a name's last transition.
    fn find(&self, text: &[u8]) -> Option<u32> {
        let (mut at, mut slot) = (0, TOP);
        while at < text.len() {
            let (input, next) = chunk(text, at, F::STRIDE);
            let state = self.next_state(slot);
            slot = match state {
                0 => return None,
                _ if self.space.shape_of(state).halved => {
                    let low = self.transition(state, input & 0xffff)?;
                    self.transition(self.next_state(low), input >> 16)?
                }
                _ => self.transition(state, input)?,
            };
            at = next;
        }
        Some(slot)
    }

    fn transition(&self, state: u32, input: u32) -> Option<u32> {
        let slot = self.space.slot(state, input);
        let cell = self.arrays.cell(slot);
        (cell.link != 0 && cell.input == input).then_some(slot)
    }

    /// Takes a transition out that leads nowhere and ends nothing, and those above that then do neither.
    fn prune(&mut self, mut slot: u32) {
        while slot != TOP && self.arrays.cell(slot).link == 0 {
            let state = self.space.owner(slot, self.arrays.cell(slot).input);
            let place = self.space.place_of(state);
            let was_last = self.arrays.take(place, slot);
            self.vacate(slot);
            if !was_last {
                return;
            }
            let incoming = self.arrays.owners[place].incoming;
            self.arrays.owners[place].incoming = NONE;
            self.space.forget(state);
            self.lead_nowhere(incoming);
            slot = incoming;
        }
    }

    /// The state that a slot leads to, 0 for none.
    fn next_state(&self, slot: u32) -> u32 {
        if slot == TOP { self.root } else { self.arrays.cell(slot).link & !ACCEPTING }
    }

    /// A slot leads to a state. What was put there for the sake of that ends no entry.
    pub(super) fn lead(&mut self, slot: u32, state: u32) {
        if slot == TOP {
            self.root = state;
            return;
        }
        let ends = self.arrays.results.of(slot) != 0;
        self.arrays.cells[slot as usize].link = state | if ends { ACCEPTING } else { 0 };
        self.dirty.push(slot);
    }

    /// A slot leads to no state any more.
    fn lead_nowhere(&mut self, slot: u32) {
        if slot == TOP {
            self.root = 0;
            return;
        }
        self.arrays.cells[slot as usize].link &= ACCEPTING;
        self.dirty.push(slot);
    }
}
