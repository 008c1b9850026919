//! Moves states that are in each other's way (section 2.5.2).
//!
//! If a state gets a transition whose slot belongs to another state, one of the two states is moved: the one
//! with fewer transitions, to the first possible place of these:
//!
//! 1. a base where all its slots are vacant, in an array where that is to be expected;
//! 2. a base where only small states are in the way, mostly those with a single transition, which fit
//!    anywhere: these are placed anew themselves, each where only smaller ones are in its way;
//! 3. one of the arrays that were kept for large states;
//! 4. as 2, but with any smaller states in the way;
//! 5. it is halved.
//!
//! In 3.6 M real names a slot is vacant in 4 of 10 cases, and has a state of one transition in 4, of up to 15
//! in 1, of more in 1. So a state of 8 finds a place of the first kind once in 1,500 bases, of the second
//! once in 6; one of 40 of the second once in 100, one of 200 hardly ever, as each large state has more in
//! its way the more there are: all that have k transitions or more fill about 8 / k of an array at most. Of
//! 10,000 made names that are new to them 7,500 are in another state's way, 40 of these in a large one's that
//! finds neither.
//!
//! (Counted with an eighth of the slots to spare. Tables that will have updates have 40 in 100 more of them.)
//!
//! What its rate rests on (of made names that come to those while others go, `cargo xtask record names`: 0.07
//! to 0.19 M/s in rounds of 52,000):
//! - Bases all over an array: near the last one that was found there is none of the first kind. 3 us a name
//!   instead of 18.
//! - Places of the second kind for large states, instead of short arrays, of which there are none left after
//!   80 of these.
//! - A byte of each slot that says how large its state is, instead of a walk around that: 0.1 ms instead of
//!   0.6 for a state of 40.
//! - Head room in all arrays, not in kept ones alone, and kept ones that are longer and take several large
//!   states: of 400,000 updates of 3.6 M names, as many that came as went, the last ran at 0.14 to 0.16 M/s,
//!   without at 0.045. 10 M names took 33,000 more at 0.16 M/s (figure 24 of the paper); without they were
//!   built anew meanwhile, which made it 0.003.
//! - Arrays of 65,537 slots for states that take halves: 30,000 names take 2,000 more and 100,000 take
//!   20,000, without them less than 1,000.

use wirespeed_table::Outgrown;

use super::arrays::{Class, Owner, TOP};
use super::build::Aligned;
use super::form::Form;
use super::layout::ACCEPTING;
use super::place::Space;

/// Bases to try in an array for a place that small states have to leave, or any.
const BASES: [u32; 2] = [1 << 8, 1 << 13];
/// Arrays to try for a place that small states have to leave, or any.
const ARRAYS: [usize; 2] = [4, 16];
/// Arrays that are shorter have no place for what large states put to flight, and then it is too late: such a
/// state is rather halved.
const LONG: u32 = 1 << 16;
/// What states have to leave, in turn: those of one transition, of up to 3, of up to 15.
const SMALL: [Class; 3] = [Class(1), Class(2), Class(4)];
/// What states have to leave where no other way is left: those of up to 63 transitions, and any.
const ANY: [Class; 2] = [Class(6), Class(u8::MAX)];
/// More transitions are not moved: that would take longer than building.
const MOST: usize = 1 << 14;
/// What says that there is no place.
const FULL: Outgrown = Outgrown("vacant slots");

/// Where a state finds another place.
#[derive(Clone, Copy)]
enum How {
    /// Vacant slots.
    Vacant,
    /// Where small states leave it.
    ByForce,
    /// Where any smaller states leave it.
    ByAnyForce,
    /// An array that was kept empty.
    Kept,
}

/// A state that is to be placed anew.
struct Moved {
    state: u32,
    /// The slots of its transitions.
    slots: Vec<u32>,
    /// Their inputs, and the one more.
    inputs: Vec<u32>,
    more: Option<u32>,
}

impl<F: Form> Aligned<F> {
    /// Sees to it that a state's slot for a new input is vacant. The state as it is then; `None` where it
    /// isn't moved, and the slot is as it was.
    pub(super) fn make_way(&mut self, state: u32, input: u32, slot: u32) -> Result<Option<u32>, Outgrown> {
        let other = self.space.owner(slot, self.arrays.cell(slot).input);
        let mut candidates = [(state, Some(input)), (other, None)];
        let count = |state| self.arrays.owners[self.space.place_of(state)].count;
        if other != state && count(other) <= count(state) {
            candidates.reverse();
        }
        let candidates = &candidates[..if other == state { 1 } else { 2 }];
        // The one that stays must stay where it is.
        self.moving.push(self.space.place_of(state));
        let way = self.first_way(candidates)?.map(|(one, to)| if one == state { to } else { state });
        self.moving.pop();
        Ok(way)
    }

    /// Places the first of some states anew that finds a place, each with room for an input where one is
    /// given; which it was, and the new state.
    fn first_way(&mut self, candidates: &[(u32, Option<u32>)]) -> Result<Option<(u32, u32)>, Outgrown> {
        let mut tried = Vec::new();
        for &(state, more) in candidates {
            let Some(moved) = self.transitions(state, more) else { continue };
            for how in [How::Vacant, How::ByForce] {
                if let Some(to) = self.relocate(&moved, how)? {
                    return Ok(Some((state, to)));
                }
            }
            tried.push(moved);
        }
        for how in [How::Kept, How::ByAnyForce] {
            for moved in &tried {
                if let Some(to) = self.relocate(moved, how)? {
                    return Ok(Some((moved.state, to)));
                }
            }
        }
        Ok(None)
    }

    /// A state's transitions, and one more input where it is to have room for it; `None` where they are too
    /// many to move.
    fn transitions(&self, state: u32, more: Option<u32>) -> Option<Moved> {
        let slots: Vec<_> = self.arrays.ring(self.space.place_of(state)).take(MOST).collect();
        if slots.len() == MOST {
            return None;
        }
        let inputs = slots.iter().map(|&slot| self.arrays.cell(slot).input).chain(more).collect();
        Some(Moved { state, slots, inputs, more })
    }

    /// Places a state anew, with room for one more input where one is given, which stays vacant but is kept
    /// apart. The new state; `None`, and nothing is changed, where there is no place.
    fn relocate(&mut self, moved: &Moved, how: How) -> Result<Option<u32>, Outgrown> {
        let Moved { state, slots, inputs, more } = moved;
        let (halved, place) = (self.space.shape_of(*state).halved, self.space.place_of(*state));
        let to = match how {
            How::Vacant => self.space.place_likely(inputs, halved),
            How::Kept => self.space.place_kept(inputs, halved),
            How::ByForce | How::ByAnyForce => {
                self.moving.push(place);
                let to = self.place_by_force(inputs, halved, matches!(how, How::ByAnyForce))?;
                self.moving.pop();
                to
            }
        };
        let Some(to) = to else { return Ok(None) };
        self.take_over(to, place);
        for &slot in slots {
            self.move_transition(slot, to, self.arrays.cell(slot).input);
        }
        if let Some(input) = more {
            // Whoever asked takes it.
            self.space.give_back(self.space.slot(to, *input));
        }
        self.leave(*state, to);
        Ok(Some(to))
    }

    /// A place for some inputs, where smaller states leave it, small ones or any. `None`, and nothing is
    /// changed, where there is none.
    fn place_by_force(&mut self, inputs: &[u32], halved: bool, any: bool) -> Result<Option<u32>, Outgrown> {
        // Each is half as large as the one before, so this ends.
        let own = Class::of(inputs.len());
        let below = match (any, own) {
            (true, _) => &ANY[..],
            (_, Class(..4)) => &SMALL[..],
            // Of so many slots more than those of single ones are in the way, nearly always.
            (_, Class(4)) => &SMALL[1..],
            _ => &SMALL[2..],
        };
        let mut below: Vec<_> = below.iter().map(|&class| class.min(own)).collect();
        below.dedup();
        below.retain(|&class| class > Class(0));
        let mut arrays = self.space.roomiest_in_use(halved, ARRAYS[usize::from(any)]);
        if any && own >= Class(6) {
            arrays.retain(|&array| self.space.shapes[array].length >= LONG);
        }
        for (class, array) in
            below.into_iter().flat_map(|class| arrays.iter().map(move |&array| (class, array)))
        {
            let (arrays, moving) = (&self.arrays, &self.moving);
            let is_small = |_: &Space<F>, slot| arrays.class(slot) < class;
            let may_go = |space: &Space<F>, slot| {
                let cell = arrays.cell(slot);
                // A slot that is taken and holds nothing is kept for a state that is being moved.
                cell.link != 0 && !moving.contains(&space.place_of(space.owner(slot, cell.input)))
            };
            if let Some(base) =
                self.space.base_for_slots(array, inputs, BASES[usize::from(any)], is_small, may_go)
            {
                let to = self.space.use_base(array, base);
                self.clear(to, inputs)?;
                return Ok(Some(to));
            }
        }
        Ok(None)
    }

    /// Takes the slots of a state that is to be, those that others have after placing these anew.
    fn clear(&mut self, to: u32, inputs: &[u32]) -> Result<(), Outgrown> {
        let slots: Vec<_> = inputs.iter().map(|&input| self.space.slot(to, input)).collect();
        let (vacant, taken): (Vec<_>, Vec<_>) = slots.iter().partition(|&&slot| self.space.is_vacant(slot));
        vacant.into_iter().for_each(|slot| self.space.take(slot));
        for slot in taken {
            let cell = self.arrays.cell(slot);
            // One state may have been in the way twice, or have been moved for another.
            if cell.link != 0 {
                let owner = self.space.owner(slot, cell.input);
                let moved = self.transitions(owner, None).ok_or(FULL)?;
                let hows = [How::Vacant, How::ByForce, How::Kept, How::ByAnyForce];
                let mut to = None;
                for how in hows {
                    if to.is_none() {
                        to = self.relocate(&moved, how)?;
                    }
                }
                to.ok_or(FULL)?;
            }
            self.space.take(slot);
        }
        Ok(())
    }

    /// Makes a state take numbers in halves from now on. The new state; `None` where there is no place, or
    /// these are halves already. After that the table has to be built anew.
    pub(super) fn halve(&mut self, state: u32) -> Option<u32> {
        let place = self.space.place_of(state);
        let incoming = self.arrays.owners[place].incoming;
        let is_between = incoming != TOP && self.space.shapes[self.space.array_of(incoming)].halved;
        if !F::MANY_ARRAYS || is_between {
            return None;
        }
        let slots = self.arrays.ring(place).map(|slot| (self.arrays.cell(slot).input, slot));
        let mut whole: Vec<_> = slots.map(|(input, slot)| (input & 0xffff, input >> 16, slot)).collect();
        whole.sort_unstable();
        let groups = || whole.chunk_by(|(a, ..), (b, ..)| a == b);
        let lows: Vec<_> = groups().map(|group| group[0].0).collect();
        let to = self.space.place(&lows, true)?;
        self.take_over(to, place);
        for group in groups() {
            let highs: Vec<_> = group.iter().map(|&(_, high, _)| high).collect();
            let between = self.space.place(&highs, false)?;
            let low = self.space.slot(to, group[0].0);
            self.put(to, low, group[0].0);
            let between_place = self.space.place_of(between);
            self.arrays.owners[between_place] = Owner::led_to_by(low);
            self.lead(low, between);
            group.iter().for_each(|&(_, high, slot)| self.move_transition(slot, between, high));
        }
        self.leave(state, to);
        Some(to)
    }

    /// A new state has no transitions yet, and is led to as the one in a place is.
    fn take_over(&mut self, to: u32, place: usize) {
        let to = self.space.place_of(to);
        self.arrays.owners[to] = Owner::led_to_by(self.arrays.owners[place].incoming);
    }

    /// A state whose transitions have gone to another is no more, and what led to it leads there.
    fn leave(&mut self, state: u32, to: u32) {
        let place = self.space.place_of(state);
        self.arrays.owners[place] = Owner::NONE;
        self.space.forget(state);
        let incoming = self.arrays.owners[self.space.place_of(to)].incoming;
        self.lead(incoming, to);
    }

    /// A transition goes to the slot that its state's new place has for it, by the same input or a half of
    /// it.
    fn move_transition(&mut self, slot: u32, to: u32, input: u32) {
        let cell = self.arrays.cell(slot);
        let new = self.space.slot(to, input);
        let place = self.space.place_of(to);
        self.arrays.put(place, new, input, cell.link);
        self.set_result(new, self.arrays.results.of(slot));
        let next = cell.link & !ACCEPTING;
        if next != 0 {
            let next = self.space.place_of(next);
            self.arrays.owners[next].incoming = new;
        }
        self.vacate(slot);
        self.dirty.push(new);
    }
}
