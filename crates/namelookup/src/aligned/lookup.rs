//! Lookups in aligned transition arrays, single and with many names under way.
//!
//! A batch keeps 32 names under way, each with its next slot prefetched. They are visited in turn: the slot
//! is read, and the next slot is computed and prefetched. A finished name is replaced by the next one at
//! once, so long names hold nobody up. Results are read at the end of a block, once for each name.

use wirespeed_image::{Image, Table, number};
use wirespeed_table::{Load, Lookup, Step};

use super::form::Form;
use super::layout::{
    ACCEPTING, AlignedTable, ArrayInfo, HEAD, RESULTS, ROOT, ROOT_RESULT, Shape, TRANSITIONS,
};
use crate::domain::NameDomain;
use crate::fetch::prefetch;
use crate::found::Match;
use crate::fsm::{Stride, chunk, chunks, cut};
use crate::name::{Name, SLASH};
use crate::names::Names;

/// Names in flight.
const LANES: usize = 32;
/// Names whose results are read together.
const BLOCK: usize = 1_024;
/// No slot: only the root entry matches.
const NO_SLOT: u32 = u32::MAX;

impl<F: Form> Lookup<NameDomain> for AlignedTable<F> {
    fn lookup(&self, name: &Name) -> Match {
        let view = View::of(self);
        let mut found = (NO_SLOT, 0);
        let mut state = view.root;
        for step in chunks(name, F::STRIDE) {
            let Some(link) = view.follow(&mut state, step.input) else { break };
            if link.accepting {
                found = (link.slot, step.end);
            }
            if state == 0 {
                break;
            }
        }
        view.result(found.0, found.1)
    }

    fn lookup_batch(&self, names: Names<'_>, results: &mut [u32]) {
        assert_eq!(names.len(), results.len(), "a result for each name");
        let mut matches = [Match::NONE; BLOCK];
        for (block, results) in results.chunks_mut(BLOCK).enumerate() {
            let from = block * BLOCK;
            let matches = &mut matches[..results.len()];
            View::of(self).block(names.part(from..from + results.len()), matches);
            results.iter_mut().zip(matches).for_each(|(result, found)| *result = found.result);
        }
    }

    fn match_batch(&self, names: Names<'_>, matches: &mut [Match]) {
        assert_eq!(names.len(), matches.len(), "a match for each name");
        for (block, matches) in matches.chunks_mut(BLOCK).enumerate() {
            let from = block * BLOCK;
            View::of(self).block(names.part(from..from + matches.len()), matches);
        }
    }

    fn shape(&self) -> Option<String> {
        let arrays = self.arrays();
        let sum = |of: fn(&ArrayInfo) -> u32| arrays.iter().map(|array| u64::from(of(array))).sum::<u64>();
        let (transitions, slots) = (sum(|array| array.transitions), sum(|array| array.length));
        let halved = arrays.iter().filter(|array| array.halved).count();
        let count = arrays.len();
        Some(format!("{transitions} transitions in {slots} slots of {count} arrays, {halved} of them halved"))
    }

    fn loads(&self) -> Vec<Load> {
        let load = |array: ArrayInfo| Load {
            what: "slots",
            places: array.length.into(),
            taken: array.transitions.into(),
        };
        self.arrays().into_iter().map(load).collect()
    }

    fn explain(&self, name: &Name) -> Vec<Step> {
        self.steps(name)
    }
}

/// The sections of a table, found once a batch.
pub(super) struct View<'t, F> {
    table: &'t AlignedTable<F>,
    slots: &'t [u64],
    pub(super) root: u32,
    root_result: u32,
    results: Width<'t>,
}

/// The results, of whichever width.
enum Width<'t> {
    One(&'t [u8]),
    Two(&'t [u16]),
    Four(&'t [u32]),
}

/// A transition that was found.
pub(super) struct Link {
    pub(super) slot: u32,
    pub(super) accepting: bool,
}

/// A name in flight.
#[derive(Clone, Copy)]
struct Lane {
    /// Which name of the block.
    name: u32,
    /// The slot that it waits for, and the input that it wants there.
    slot: u32,
    input: u32,
    /// What follows once that is found, of a step that is taken in halves; [`WHOLE`] otherwise.
    second: u32,
    /// Where the text starts and ends, and how far it is read, the step under way included.
    start: u32,
    end: u32,
    at: u32,
    /// The last accepting slot, and how long the name is up to it.
    found: u32,
    length: u32,
}

/// The step is not a first half. A second half has 16 bits.
const WHOLE: u32 = u32::MAX;

impl<'t, F: Form> View<'t, F> {
    #[allow(clippy::cast_possible_truncation)] // checked: a state has 31 bits, a result 32
    pub(super) fn of(table: &'t AlignedTable<F>) -> Self {
        let image: &Image = table.image();
        let head = image.section::<u64>(HEAD);
        let results = match image.width(RESULTS) {
            Some(1) => Width::One(image.section(RESULTS)),
            Some(2) => Width::Two(image.section(RESULTS)),
            _ => Width::Four(image.section(RESULTS)),
        };
        let slots = image.section(TRANSITIONS);
        Self { table, slots, root: head[ROOT] as u32, root_result: head[ROOT_RESULT] as u32, results }
    }

    #[inline]
    fn shape(&self, state: u32) -> Shape {
        self.table.arrays[(state >> F::BASE_BITS) as usize]
    }

    /// The slot of a state's transition.
    #[inline]
    fn slot(&self, shape: Shape, state: u32, input: u32) -> u32 {
        shape.slot(state & ((1 << F::BASE_BITS) - 1), shape.residue(input))
    }

    /// What a slot leads to, where it is for this input: never 0.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the halves of the slot
    fn link(&self, slot: u32, input: u32) -> Option<u32> {
        let slot = self.slots[slot as usize];
        let link = (slot >> 32) as u32;
        (slot as u32 == input && link != 0).then_some(link)
    }

    /// A step from a state by a number, which is where the state is then.
    #[inline]
    pub(super) fn follow(&self, state: &mut u32, input: u32) -> Option<Link> {
        if *state == 0 {
            return None;
        }
        let (mut shape, mut input) = (self.shape(*state), input);
        if shape.halved {
            let low = self.link(self.slot(shape, *state, input & 0xffff), input & 0xffff)?;
            *state = low & !ACCEPTING;
            if *state == 0 {
                return None;
            }
            shape = self.shape(*state);
            input >>= 16;
        }
        let slot = self.slot(shape, *state, input);
        let link = self.link(slot, input)?;
        *state = link & !ACCEPTING;
        Some(Link { slot, accepting: link & ACCEPTING != 0 })
    }

    /// Asks for the first slot that a step from a state reads.
    #[inline]
    pub(super) fn prefetch(&self, state: u32, input: u32) {
        if state != 0 {
            let shape = self.shape(state);
            let input = if shape.halved { input & 0xffff } else { input };
            prefetch(self.slots, self.slot(shape, state, input) as usize);
        }
    }

    /// Asks for the result of a slot.
    #[inline]
    pub(super) fn prefetch_result(&self, slot: u32) {
        match self.results {
            Width::One(results) => prefetch(results, slot as usize),
            Width::Two(results) => prefetch(results, slot as usize),
            Width::Four(results) => prefetch(results, slot as usize),
        }
    }

    /// The match that ends in a slot, after so many bytes.
    #[inline]
    pub(super) fn result(&self, slot: u32, length: usize) -> Match {
        let result = match (slot, &self.results) {
            (NO_SLOT, _) => self.root_result,
            (slot, Width::One(results)) => number(results[slot as usize]),
            (slot, Width::Two(results)) => number(results[slot as usize]),
            (slot, Width::Four(results)) => results[slot as usize],
        };
        if result == 0 { Match::NONE } else { Match::new(result, length) }
    }

    /// Looks up a block of names.
    fn block(&self, names: Names<'_>, matches: &mut [Match]) {
        let mut next = 0;
        let mut lanes = [Lane::EMPTY; LANES];
        let mut live = 0;
        while live < LANES && self.start(names, &mut next, matches, &mut lanes[live]) {
            live += 1;
        }
        while live > 0 {
            let mut at = 0;
            while at < live {
                let lane = &mut lanes[at];
                if self.advance(names.bytes(), lane) {
                    at += 1;
                    continue;
                }
                self.done(lane.name, lane.found, lane.length, matches);
                if self.start(names, &mut next, matches, lane) {
                    at += 1;
                } else {
                    live -= 1;
                    lanes[at] = lanes[live];
                }
            }
        }
        for found in matches {
            // Until here its result is the slot.
            *found = self.result(found.result, found.length as usize);
        }
    }

    /// Notes the slot that a name's match ends in.
    #[inline]
    fn done(&self, name: u32, slot: u32, length: u32, matches: &mut [Match]) {
        self.prefetch_result(slot);
        matches[name as usize] = Match { result: slot, length };
    }

    /// Puts the next name that has a step to take in a lane; whether there was one.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // a block's names, and the ends of a batch
    fn start(&self, names: Names<'_>, next: &mut usize, matches: &mut [Match], lane: &mut Lane) -> bool {
        while *next < names.len() {
            let name = *next;
            *next += 1;
            let end = names.ends()[name];
            let before = if name == 0 { names.start() } else { names.ends()[name - 1] };
            if self.root == 0 || before == end {
                self.done(name as u32, NO_SLOT, 0, matches);
                continue;
            }
            let start = before + 1;
            *lane = Lane { name: name as u32, start, end, at: start, ..Lane::EMPTY };
            self.aim(names.bytes(), lane, self.root);
            return true;
        }
        false
    }

    /// Takes the next step of a name's text from a state, up to asking for its slot.
    #[inline]
    fn aim(&self, bytes: &[u8], lane: &mut Lane, state: u32) {
        let (input, len) = cut(four(bytes, lane.at, lane.end), F::STRIDE);
        lane.at += len;
        let shape = self.shape(state);
        (lane.input, lane.second) = if shape.halved { (input & 0xffff, input >> 16) } else { (input, WHOLE) };
        self.wait(shape, state, lane);
    }

    #[inline]
    fn wait(&self, shape: Shape, state: u32, lane: &mut Lane) {
        lane.slot = self.slot(shape, state, lane.input);
        prefetch(self.slots, lane.slot as usize);
    }

    /// Reads the slot that a name waits for; whether it goes on from there.
    #[inline]
    fn advance(&self, bytes: &[u8], lane: &mut Lane) -> bool {
        let Some(link) = self.link(lane.slot, lane.input) else { return false };
        let state = link & !ACCEPTING;
        if lane.second != WHOLE {
            if state != 0 {
                (lane.input, lane.second) = (lane.second, WHOLE);
                self.wait(self.shape(state), state, lane);
            }
            return state != 0;
        }
        if link & ACCEPTING != 0 {
            (lane.found, lane.length) = (lane.slot, lane.at - lane.start);
        }
        // The slash after the last byte is read too.
        let goes_on = state != 0 && lane.at <= lane.end;
        if goes_on {
            self.aim(bytes, lane, state);
        }
        goes_on
    }
}

impl Lane {
    const EMPTY: Self = Self {
        name: 0,
        slot: 0,
        input: 0,
        second: WHOLE,
        start: 0,
        end: 0,
        at: 0,
        found: NO_SLOT,
        length: 0,
    };
}

/// Four bytes of a text that ends before `end`, where a slash follows.
#[inline]
fn four(bytes: &[u8], at: u32, end: u32) -> u32 {
    let (at, left) = (at as usize, end - at);
    match bytes.get(at..at + 4) {
        Some(found) => {
            let raw = u32::from_le_bytes(found.try_into().expect("four bytes"));
            if left < 4 { raw & !(u32::MAX << (8 * left)) | u32::from(SLASH) << (8 * left) } else { raw }
        }
        // The last bytes of the last name.
        None => chunk(&bytes[at..end as usize], 0, Stride::FOUR).0,
    }
}

impl<F: Form> AlignedTable<F> {
    /// The slots that a lookup reads.
    fn steps(&self, name: &Name) -> Vec<Step> {
        let view = View::of(self);
        let says = |found: Match| match found.result {
            0 => "no match".to_owned(),
            result => format!("result {result}"),
        };
        let (mut steps, mut state, mut found) = (Vec::new(), view.root, (NO_SLOT, 0));
        let root = u64::from(view.root);
        let meaning = format!("names start in {}", Self::say_state(view.root));
        steps.push(Step { section: "head", index: ROOT as u64, value: root, meaning });
        for step in chunks(name, F::STRIDE) {
            if state == 0 {
                break;
            }
            let halves = [step.input & 0xffff, step.input >> 16];
            let inputs = if view.shape(state).halved { &halves[..] } else { &[step.input] };
            let mut last = None;
            for (at, &input) in inputs.iter().enumerate() {
                if at > 0 && state == 0 {
                    break;
                }
                let slot = view.slot(view.shape(state), state, input);
                let link = view.link(slot, input);
                state = link.map_or(0, |link| link & !ACCEPTING);
                last = (at + 1 == inputs.len()).then_some(link).flatten().map(|link| (slot, link));
                let meaning = match link {
                    None => format!("not the transition by {input:#x}"),
                    Some(_) => format!("by {input:#x} to {}", Self::say_state(state)),
                };
                let value = view.slots[slot as usize];
                steps.push(Step { section: "transitions", index: slot.into(), value, meaning });
            }
            if let Some((slot, _)) = last.filter(|(_, link)| link & ACCEPTING != 0) {
                found = (slot, step.end);
            }
            if last.is_none() {
                break;
            }
        }
        let result = view.result(found.0, found.1);
        let (section, index) = match found.0 {
            NO_SLOT => ("head", ROOT_RESULT as u64),
            slot => ("results", slot.into()),
        };
        steps.push(Step { section, index, value: result.result.into(), meaning: says(result) });
        steps
    }

    fn say_state(state: u32) -> String {
        match state {
            0 => "no state".to_owned(),
            _ => format!(
                "base {} of array {}",
                state & ((1 << F::BASE_BITS) - 1),
                if F::MANY_ARRAYS { state >> F::BASE_BITS } else { 0 }
            ),
        }
    }
}
