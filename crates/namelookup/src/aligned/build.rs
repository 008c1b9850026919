//! [`Aligned`]: the control plane of aligned transition arrays, and the compilation of a table.
//!
//! States with many transitions are placed first, those with a single one last, in the order of the machine,
//! so that the end of a name lies in consecutive slots. Arrays are added when states don't fit any more, with
//! three prime lengths in turn. A state that no length keeps apart, or that finds no place within the limit
//! of slots, is halved.

use std::marker::PhantomData;

use rayon::prelude::*;
use wirespeed_image::{Image, Patch, width_for};
use wirespeed_table::{BuildError, BuildOptions, Engine, Outgrown, Standing};

use super::arrays::{Arrays, TOP};
use super::form::{Form, Lengths};
use super::layout::{
    ACCEPTING, AlignedTable, HEAD, MAX_SLOTS, RESULTS, ROOT, ROOT_RESULT, Shape, TRANSITIONS, allocate,
};
use super::place::Space;
use super::prime;
use crate::domain::NameDomain;
use crate::fsm::{Fsm, number};
use crate::table::{NameTable, NodeId};

/// The prime past all halves of numbers.
const PAST: u32 = 65_537;
/// Bytes that an image of one array has beside its slots, at most: header, directory and alignment.
const BESIDE: u64 = 1 << 10;
/// The fewest arrays with which those of halves are made for several states: there are only so many numbers
/// for arrays.
const MANY: usize = 96;

/// Builds, and keeps up to date, a table of aligned transition arrays.
#[derive(Clone, Debug)]
pub struct Aligned<F> {
    pub(super) space: Space<F>,
    pub(super) arrays: Arrays,
    /// The state that names start in, 0 for none.
    pub(super) root: u32,
    pub(super) root_result: u32,
    /// The largest result that there has been.
    pub(super) results: u32,
    /// Slots that an update changed.
    pub(super) dirty: Vec<u32>,
    /// Slots whose results it changed.
    pub(super) dirty_results: Vec<u32>,
    /// Places of the states that are being moved.
    pub(super) moving: Vec<usize>,
}

impl<F: Form> Engine<NameDomain> for Aligned<F> {
    const NAME: &'static str = F::NAME;
    const STANDING: Standing = F::STANDING;
    type Table = AlignedTable<F>;

    fn build(names: &NameTable, options: &BuildOptions) -> Result<(Self, AlignedTable<F>), BuildError> {
        let fsm = Fsm::of(names, F::STRIDE)?;
        Self::of_machine(fsm, names, options)
    }

    fn patch(&mut self, _: &Self::Table, names: &NameTable, changed: &[NodeId]) -> Result<Patch, Outgrown> {
        self.patch_of(names, changed)
    }

    fn memory_usage(&self) -> u64 {
        self.space.memory_usage() + self.arrays.memory_usage()
    }
}

impl<F: Form> Aligned<F> {
    /// Whether each slot says how large the state is that has it, for tests.
    #[cfg(feature = "conformance")]
    #[doc(hidden)]
    pub fn knows_sizes(&self) -> bool {
        self.arrays.know_sizes()
    }

    #[inline(never)] // one copy for all crates
    fn of_machine(
        mut fsm: Fsm,
        names: &NameTable,
        options: &BuildOptions,
    ) -> Result<(Self, AlignedTable<F>), BuildError> {
        let most = largest(names).max(options.results);
        let width = width_for(u64::from(most));
        let placed = Placed::of(&mut fsm, width, options)?;
        let image = allocate::<F>(&placed.space.shapes, width, options.memory_cap)?;
        let mut engine = Self {
            arrays: Arrays::new(placed.space.slots(), width),
            space: placed.space,
            root: fsm.root().map_or(0, |root| placed.states[root as usize]),
            root_result: fsm.root_result(),
            results: largest(names),
            dirty: Vec::new(),
            dirty_results: Vec::new(),
            moving: Vec::new(),
        };
        engine.fill(&fsm, &placed.states);
        debug_assert!(engine.leads_as(&fsm, &placed.states), "each transition leads where the machine says");
        let image = engine.compile(image, names)?;
        Ok((engine, AlignedTable::new(image)))
    }

    /// Writes the machine's transitions to the slots that its states were given.
    fn fill(&mut self, fsm: &Fsm, states: &[u32]) {
        for (from, &state) in (0..).zip(states) {
            let place = self.space.place_of(state);
            for transition in fsm.transitions(from) {
                let slot = self.space.slot(state, transition.input);
                let next = transition.state.map_or(0, |next| states[next as usize]);
                if next != 0 {
                    let place = self.space.place_of(next);
                    self.arrays.owners[place].incoming = slot;
                }
                let accepting = if transition.result == 0 { 0 } else { ACCEPTING };
                self.arrays.put(place, slot, transition.input, accepting | next);
                self.arrays.results.set(slot, transition.result);
            }
        }
        if self.root != 0 {
            let place = self.space.place_of(self.root);
            self.arrays.owners[place].incoming = TOP;
        }
    }

    /// Whether each transition of the machine is where lookups search it, and leads where it should, and no
    /// slot has any other.
    pub(super) fn leads_as(&self, fsm: &Fsm, states: &[u32]) -> bool {
        let taken = self.arrays.cells.iter().filter(|cell| cell.link != 0).count();
        let mut transitions = 0;
        let all = (0..).zip(states).all(|(from, &state)| {
            fsm.transitions(from).all(|transition| {
                transitions += 1;
                let slot = self.space.slot(state, transition.input);
                let cell = self.arrays.cell(slot);
                let next = transition.state.map_or(0, |next| states[next as usize]);
                let accepting = if transition.result == 0 { 0 } else { ACCEPTING };
                (cell.input, cell.link) == (transition.input, accepting | next)
                    && self.space.owner(slot, cell.input) == state
                    && self.arrays.results.of(slot) == transition.result
            })
        });
        all && taken == transitions
    }

    fn compile(&self, mut image: Image, names: &NameTable) -> Result<Image, BuildError> {
        let head = image.section_mut::<u64>(HEAD)?;
        head[ROOT] = self.root.into();
        head[ROOT_RESULT] = self.root_result.into();
        let slots = image.section_mut::<u64>(TRANSITIONS)?;
        let cells = self.arrays.cells.par_iter();
        slots.par_iter_mut().zip(cells).with_min_len(1 << 16).for_each(|(slot, cell)| {
            *slot = u64::from(cell.link) << 32 | u64::from(cell.input);
        });
        let results = &self.arrays.results.bytes;
        match self.arrays.results.width {
            1 => image.section_mut::<u8>(RESULTS)?.copy_from_slice(results),
            2 => bytemuck::cast_slice_mut(image.section_mut::<u16>(RESULTS)?).copy_from_slice(results),
            _ => bytemuck::cast_slice_mut(image.section_mut::<u32>(RESULTS)?).copy_from_slice(results),
        }
        image.set_counts(names.len() as u64, u64::from(largest(names)));
        Ok(image)
    }
}

/// The largest result: none in a table that was emptied.
fn largest(names: &NameTable) -> u32 {
    if names.is_empty() { 0 } else { names.results() }
}

/// A machine whose states have their places.
struct Placed<F> {
    space: Space<F>,
    /// The state in the arrays of each of the machine's.
    states: Vec<u32>,
    lengths: Lengths,
    /// Arrays that were added, to go through the lengths in turn.
    added: u64,
    /// So many arrays more for states that take numbers in halves may be so long that they keep any halves
    /// apart.
    past: u64,
    form: PhantomData<F>,
}

impl<F: Form> Placed<F> {
    /// Places all states, for results of so many bytes.
    fn of(fsm: &mut Fsm, width: usize, options: &BuildOptions) -> Result<Self, BuildError> {
        let mut lengths = Lengths::of::<F>(fsm.transition_count() as u64, options);
        let cap = options.memory_cap.unwrap_or(u64::MAX);
        let longest = cap.saturating_sub(BESIDE) / (8 + width as u64);
        loop {
            // Fails here before memory is asked for that the image can't have.
            if lengths.slots >= MAX_SLOTS {
                let (limit, found) = (MAX_SLOTS, lengths.slots);
                return Err(BuildError::Limit { engine: F::NAME, what: "slots", limit, found });
            }
            if lengths.slots.saturating_mul(8) > cap {
                let needed = lengths.slots.saturating_mul(9);
                return Err(wirespeed_image::ImageError::OverCap { needed, cap }.into());
            }
            let mut placed = Self {
                space: Space::new(),
                states: Vec::new(),
                lengths,
                added: 0,
                past: 0,
                form: PhantomData,
            };
            match placed.place_all(fsm, options.head_room) {
                Some(()) => return Ok(placed),
                // Only where there may not be another array: all of it anew in a longer one. The longest
                // under the cap is tried before it is passed.
                None if !F::MANY_ARRAYS => {
                    let more = lengths.slots / if options.tight { 16 } else { 4 };
                    let most = if lengths.slots < longest { longest } else { u64::MAX };
                    lengths.slots = (lengths.slots + more).min(most);
                    lengths.unit = lengths.slots;
                }
                None => {
                    let (limit, found) = (MAX_SLOTS, u64::from(placed.space.slots()));
                    return Err(BuildError::Limit { engine: F::NAME, what: "slots", limit, found });
                }
            }
        }
    }

    /// Places every state; `None` where arrays end.
    fn place_all(&mut self, fsm: &mut Fsm, head_room: u32) -> Option<()> {
        self.states = vec![0; fsm.state_count()];
        // A state that grows is in its own way in a shorter one, and where it is the only one there is
        // nothing else to move.
        if head_room > 0 && self.lengths.slots >= u64::from(PAST) {
            self.past = (self.lengths.slots / 4 / u64::from(PAST)).clamp(2, MANY as u64);
        }
        let mut many: Vec<_> =
            (0..number(fsm.state_count())).filter(|&state| fsm.inputs(state).len() > 1).collect();
        many.par_sort_by_key(|&state| std::cmp::Reverse(fsm.inputs(state).len()));
        for state in many {
            self.place(fsm, state)?;
        }
        for state in 0..number(fsm.state_count()) {
            if self.states[state as usize] == 0 {
                self.place(fsm, state)?;
            }
        }
        while u64::from(self.space.slots()) < self.lengths.slots {
            self.add(self.next_length(), false)?;
        }
        // For states that updates let grow; not in tables so small that they are built anew at once.
        let may_grow = F::MANY_ARRAYS && self.lengths.slots >= 1 << 13;
        if may_grow && !self.space.shapes.iter().any(|array| array.halved) {
            let length = prime::at_least(self.lengths.unit.clamp(1 << 12, 1 << 16));
            self.add(u32::try_from(length).ok()?, true)?;
        }
        if may_grow {
            self.keep_arrays(head_room)?;
        }
        Some(())
    }

    /// Adds arrays for large states that come to be in each other's way. There are some hundred of several
    /// lengths: a fortieth of all slots or less, and as much for each five hundredths of head room. Long ones
    /// for halves of numbers, which keep any apart, take another fortieth. The smallest tables have one at
    /// least.
    fn keep_arrays(&mut self, head_room: u32) -> Option<()> {
        let mut left = self.lengths.slots / 40 * (1 + u64::from(head_room) / 5);
        // Of the numbers that arrays can have some are left for those that updates need.
        let most = (1 << (31 - F::BASE_BITS)) / 4 * 3;
        // The longer, the more states find a place in one: of an array of L slots with states of k about
        // ln(L) / k can be taken.
        let unit = (left / 128).clamp(4_000, (1 << F::BASE_BITS) / 4);
        'all: loop {
            let mut length = unit;
            for _ in 0..64 {
                length = prime::at_least(length + 1 + length / 64);
                left = left.saturating_sub(length);
                if left == 0 || self.space.shapes.len() >= most {
                    break 'all;
                }
                self.add(u32::try_from(length).ok()?, false)?;
                self.space.keep();
            }
        }
        let long = match self.lengths.slots / 40 / u64::from(PAST) {
            0 if self.lengths.slots < 1 << 19 => 0,
            many => many.clamp(1, 8),
        };
        for _ in 0..long {
            self.add(PAST, true)?;
            self.space.keep();
        }
        Some(())
    }

    /// Places a state of the machine.
    fn place(&mut self, fsm: &mut Fsm, state: u32) -> Option<()> {
        let inputs = fsm.inputs(state);
        let found = if self.is_wide(inputs.len()) { None } else { self.space.place(inputs, false) };
        let found = match found {
            Some(found) => found,
            None => match self.place_in_new(inputs) {
                Some(found) => found,
                None if F::MANY_ARRAYS && inputs.len() > 1 => return self.halve(fsm, state),
                None => return None,
            },
        };
        self.states[state as usize] = found;
        Some(())
    }

    /// Whether so many inputs are rarely kept apart by a length, as birthdays: by one in 20,000 of the
    /// longest.
    fn is_wide(&self, inputs: usize) -> bool {
        F::MANY_ARRAYS && (inputs as u64).saturating_pow(2) / 2 > 10 * self.longest()
    }

    /// The longest array for a state that others don't keep apart.
    fn longest(&self) -> u64 {
        (2 * self.lengths.unit).max(4_096)
    }

    /// Places a state in a new array, of a length that keeps it apart: one of those in turn, or another
    /// ("more primes"). Not where there are as many slots as there are to be, but for a state of few
    /// transitions.
    fn place_in_new(&mut self, inputs: &[u32]) -> Option<u32> {
        let is_full = u64::from(self.space.slots()) >= self.lengths.slots;
        if is_full && (!F::MANY_ARRAYS || inputs.len() > 16) || self.is_wide(inputs.len()) {
            return None;
        }
        let length = self.length_apart(inputs, self.next_length(), self.longest())?;
        self.add(length, false)?;
        self.space.place(inputs, false)
    }

    /// A prime from one on that keeps inputs apart, none past the longest.
    fn length_apart(&mut self, inputs: &[u32], first: u32, longest: u64) -> Option<u32> {
        let mut length = first;
        while !self.space.keeps_apart(Shape::new(0, length, false), inputs) {
            length = u32::try_from(prime::at_least(u64::from(length + length / 4 + 1))).ok()?;
            if u64::from(length) > longest {
                return None;
            }
        }
        Some(length)
    }

    /// The length of the next array: of three primes in turn.
    fn next_length(&self) -> u32 {
        if !F::MANY_ARRAYS {
            return u32::try_from(self.lengths.slots).expect("held against the limit");
        }
        let mut length = prime::at_least(self.lengths.unit);
        for _ in 0..self.added % 3 {
            length = prime::at_least(length + 1);
        }
        u32::try_from(length).expect("within the bits of a base")
    }

    fn add(&mut self, length: u32, halved: bool) -> Option<()> {
        let slots = u64::from(self.space.slots()) + u64::from(length);
        let is_named = self.space.shapes.len() < 1 << (31 - F::BASE_BITS);
        if slots >= MAX_SLOTS || !is_named {
            return None;
        }
        self.space.add(length, halved);
        self.added += u64::from(!halved);
        Some(())
    }

    /// Makes a state take numbers in halves, and places it and those between.
    fn halve(&mut self, fsm: &mut Fsm, state: u32) -> Option<()> {
        let between = fsm.halve(state);
        self.states.resize(fsm.state_count(), 0);
        self.states[state as usize] = self.place_half(fsm.inputs(state), true)?;
        // Those with a single transition wait, as all of these do.
        for state in between {
            if fsm.inputs(state).len() > 1 {
                self.states[state as usize] = self.place_half(fsm.inputs(state), false)?;
            }
        }
        Some(())
    }

    /// Places a state whose inputs are halves of numbers, if need be in an array past all of them, which
    /// keeps any apart.
    fn place_half(&mut self, inputs: &[u32], halved: bool) -> Option<u32> {
        self.space.place(inputs, halved).or_else(|| {
            let length = if halved && self.past > 0 {
                self.past -= 1;
                PAST
            } else if !halved && u64::from(self.space.slots()) < self.lengths.slots {
                self.next_length()
            } else {
                // States of a thousand transitions share an array badly: a short one each.
                let least =
                    if self.space.shapes.len() < MANY { 2 * inputs.len() as u64 } else { PAST.into() };
                u32::try_from(prime::at_least(least)).ok()?
            };
            let length = self.length_apart(inputs, length, self.longest()).unwrap_or(PAST);
            self.add(length, halved)?;
            self.space.place(inputs, halved)
        })
    }
}
