//! Finding other places for states that are in each other's way (section 2.5.2).
//!
//! A state that gets a transition whose slot another state has is placed anew, or that other one is: whichever has fewer transitions,
//! where that finds vacant slots for all of them. In arrays that are nine tenths full a state of more than a handful of transitions
//! does not. Then a base is taken where only smaller states are in the way, mostly those with a single transition, which fit
//! anywhere, and these are placed anew themselves. A state too large for that goes to one of the short arrays that were kept empty;
//! when there are no more, it is halved.
//!
//! What can't be expected to be found is not searched: vacant slots for all transitions of a large state in a long array that is nearly
//! full, or a base there that only small states would have to leave. Searching all the same, and in each array from the last one on
//! that took a state, however full, took 0.16 M/s new names into 3.6 M where now it is 0.44.

use super::arrays::{NONE, Owner, TOP};
use super::build::Aligned;
use super::form::Form;
use super::layout::ACCEPTING;
use crate::lookup::Outgrown;

/// States that may be in the way of each other, one after the other.
const DEPTH: usize = 4;
/// Bases to try in an array for a place that others have to leave.
const BASES: u32 = 1 << 8;
/// More transitions are not placed where others have to leave: nearly every base has another large state in its way.
const LARGE: usize = 64;
/// More transitions are not moved: that would take longer than building.
const MOST: usize = 1 << 14;
/// What says that there is no place.
const FULL: Outgrown = Outgrown("vacant slots");

/// Where a state finds another place.
#[derive(Clone, Copy)]
enum How {
    /// In vacant slots.
    Vacant,
    /// Where smaller states leave it.
    ByForce,
    /// In an array that was kept empty.
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
    /// Sees to it that a state's slot for a new input is vacant. The state as it is then; `None` where it isn't moved, and the slot
    /// is as it was.
    pub(super) fn make_way(&mut self, state: u32, input: u32, slot: u32) -> Result<Option<u32>, Outgrown> {
        let other = self.space.owner(slot, self.arrays.cell(slot).input);
        let mut candidates = [(state, Some(input)), (other, None)];
        if other != state && !self.is_smaller(state, other) {
            candidates.reverse();
        }
        let count = if other == state { 1 } else { 2 };
        let candidates = &candidates[..count];
        // The one that stays must stay where it is.
        self.moving.push(self.space.place_of(state));
        let way = self.first_way(candidates)?.map(|(one, to)| if one == state { to } else { state });
        self.moving.pop();
        Ok(way)
    }

    /// Places the first of some states anew that finds a place, each with room for an input where one is given; which it was, and the
    /// new state.
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
        for moved in &tried {
            if let Some(to) = self.relocate(moved, How::Kept)? {
                return Ok(Some((moved.state, to)));
            }
        }
        Ok(None)
    }

    /// Whether a state has fewer transitions than another. O(fewer).
    fn is_smaller(&self, one: u32, other: u32) -> bool {
        let ring = |state| self.arrays.ring(self.space.place_of(state));
        let (mut one, mut other) = (ring(one), ring(other));
        loop {
            match (one.next(), other.next()) {
                (_, None) => return false,
                (None, _) => return true,
                _ => {}
            }
        }
    }

    /// A state's transitions, and one more input where it is to have room for it; `None` where they are too many to move.
    fn transitions(&self, state: u32, more: Option<u32>) -> Option<Moved> {
        let slots: Vec<_> = self.arrays.ring(self.space.place_of(state)).take(MOST).collect();
        if slots.len() == MOST {
            return None;
        }
        let inputs = slots.iter().map(|&slot| self.arrays.cell(slot).input).chain(more).collect();
        Some(Moved { state, slots, inputs, more })
    }

    /// Places a state anew, with room for one more input where one is given, which stays vacant but is kept apart. The new state;
    /// `None`, and nothing is changed, where there is no place.
    fn relocate(&mut self, moved: &Moved, how: How) -> Result<Option<u32>, Outgrown> {
        let Moved { state, slots, inputs, more } = moved;
        let (halved, place) = (self.space.shape_of(*state).halved, self.space.place_of(*state));
        let to = match how {
            How::Vacant => self.space.place_likely(inputs, halved),
            How::Kept => self.space.place_kept(inputs, halved),
            How::ByForce => {
                self.moving.push(place);
                let to = self.place_by_force(inputs, halved)?;
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

    /// A place for some inputs, where smaller states leave it. `None`, and nothing is changed, where there is none.
    fn place_by_force(&mut self, inputs: &[u32], halved: bool) -> Result<Option<u32>, Outgrown> {
        if self.moving.len() > DEPTH || inputs.len() > LARGE {
            return Ok(None);
        }
        // States with a single transition find another place at once; those with several may not, and then it is too late.
        let mut mosts = vec![1, 2.min(inputs.len()), (inputs.len() * 3).div_ceil(4)];
        mosts.dedup();
        let arrays: Vec<_> = self.space.in_use(halved).collect();
        for (most, array) in mosts.into_iter().flat_map(|most| arrays.iter().map(move |&array| (most, array)))
        {
            let (arrays, moving) = (&self.arrays, &self.moving);
            let found = self.space.base_for_slots(array, inputs, BASES, |space, slot| {
                let cell = arrays.cell(slot);
                // A slot that is taken and holds nothing is kept for a state that is being moved.
                cell.link != 0
                    && arrays.fellows(slot, most + 1) <= most
                    && !moving.contains(&space.place_of(space.owner(slot, cell.input)))
            });
            if let Some(base) = found {
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
                if self.relocate(&moved, How::Vacant)?.is_none() {
                    self.relocate(&moved, How::ByForce)?.ok_or(FULL)?;
                }
            }
            self.space.take(slot);
        }
        Ok(())
    }

    /// Makes a state take numbers in halves from now on. The new state; `None` where there is no place, or these are halves already.
    /// After that the table has to be built anew.
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
            self.arrays.owners[between_place] = Owner { head: NONE, incoming: low };
            self.lead(low, between);
            group.iter().for_each(|&(_, high, slot)| self.move_transition(slot, between, high));
        }
        self.leave(state, to);
        Some(to)
    }

    /// A new state has no transitions yet, and is led to as the one in a place is.
    fn take_over(&mut self, to: u32, place: usize) {
        let to = self.space.place_of(to);
        self.arrays.owners[to] = Owner { head: NONE, incoming: self.arrays.owners[place].incoming };
    }

    /// A state whose transitions have gone to another is no more, and what led to it leads there.
    fn leave(&mut self, state: u32, to: u32) {
        let place = self.space.place_of(state);
        self.arrays.owners[place] = Owner { head: NONE, incoming: NONE };
        self.space.forget(state);
        let incoming = self.arrays.owners[self.space.place_of(to)].incoming;
        self.lead(incoming, to);
    }

    /// A transition goes to the slot that its state's new place has for it, by the same input or a half of it.
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
