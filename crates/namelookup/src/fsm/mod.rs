//! The finite state machine of a table of names (sections 2.2 and 2.3): a trie of up to `d` bytes a step, in
//! which a component's end ends a step.
//!
//! ```text
//! /com/amazon/books, /com/amazon/www, /com/yahoo/www by d = 3, as the paper's figure 3:
//!
//!  s0 ─com─► s1 ─/─► s2 ─ama─► s3 ─zon─► s4 ─/─► s5 ─boo─► s6 ─ks/─► (accepted)
//!                     │                           └─www─► s7 ─/─► (accepted)
//!                     └─yah─► s8 ─oo/─► s9 ─www─► s10 ─/─► (accepted)
//! ```
//!
//! States with transitions are numbered, and the transitions of a state are consecutive. A state without
//! transitions, a leaf, has no number. The transitions beneath each node of the component trie are found
//! independently, on all threads. A transition takes 12 bytes and a state 4.
//!
//! Counted for 3,646,918 real domains, in millions:
//!
//! ```text
//! d   states   of these leaves   with one transition   most transitions of a state
//! 1    32.72              3.58                 27.71                            38
//! 2    18.20              3.58                 13.73                         1,337
//! 3    13.42              3.58                  9.15                        33,388
//! 4    10.99              3.58                  6.83                       208,364
//! ```

mod link;
mod part;
#[cfg(test)]
mod tests;
mod text;

use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use wirespeed_table::BuildError;

use crate::table::{NameTable, NodeId};

pub(crate) use link::number;
pub use link::{ACCEPTING, LEAF};
use part::Part;
pub use text::{Chunk, Stride, chunks};
pub(crate) use text::{bytes_of, chunk, cut, write_text};

/// The machine.
#[derive(Clone, Debug)]
pub struct Fsm {
    stride: Stride,
    root: Option<u32>,
    root_result: u32,
    /// The first transition of each state, and the end.
    first: Vec<u32>,
    /// States whose transitions are elsewhere because they were split.
    moved: FxHashMap<u32, Range<usize>>,
    inputs: Vec<u32>,
    /// The state, with [`ACCEPTING`] if an entry ends.
    targets: Vec<u32>,
    /// The result of the entry that ends, or 0.
    results: Vec<u32>,
}

/// A transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Up to `d` bytes as a number.
    pub input: u32,
    /// The state that it leads to. `None` for a leaf.
    pub state: Option<u32>,
    /// The result of the entry that ends with it, or 0.
    pub result: u32,
}

/// Numbers of states by kind. Section 2.2 counts states with one transition and states without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// All states, leaves included.
    pub states: u64,
    /// All transitions.
    pub transitions: u64,
    /// States with no transition.
    pub leaves: u64,
    /// States with a single transition.
    pub single: u64,
    /// The most transitions of a state.
    pub widest: u64,
}

impl Census {
    /// Bytes of a two-dimensional table with 256 four-byte elements for each state, as counted in section
    /// 6.1.
    pub const fn stt_bytes(&self) -> u64 {
        self.states * 1_024
    }
}

impl Fsm {
    /// Makes the machine of a table. Uses all threads of the caller's `rayon` pool. O(bytes of all
    /// components, sorted).
    pub fn of(names: &NameTable, stride: Stride) -> Result<Self, BuildError> {
        /// Nodes of a piece of work.
        const PIECE: usize = 1 << 14;
        let children = names.children();
        let parts: Vec<Part> = (0..names.id_bound().div_ceil(PIECE))
            .into_par_iter()
            .map(|piece| {
                let mut part = Part::default();
                for at in piece * PIECE..names.id_bound().min((piece + 1) * PIECE) {
                    let node = names.node(NodeId::from_index(at));
                    if node.has_children() && !node.is_gone() {
                        part.expand(node, &children, stride);
                    }
                }
                part
            })
            .collect();
        let found: usize = parts.iter().map(|part| part.inputs.len()).sum();
        if found >= LEAF as usize {
            let (limit, found) = (u64::from(LEAF), found as u64);
            return Err(BuildError::Limit { engine: "a state machine", what: "transitions", limit, found });
        }
        Ok(Self::joined(names, stride, parts))
    }

    fn joined(names: &NameTable, stride: Stride, parts: Vec<Part>) -> Self {
        let count = |of: fn(&Part) -> usize| parts.iter().map(of).sum::<usize>();
        let (states, transitions) = (count(|part| part.first.len()), count(|part| part.inputs.len()));
        let mut fsm = Self {
            stride,
            root: None,
            root_result: names.root().result(),
            first: Vec::with_capacity(states + 1),
            moved: FxHashMap::default(),
            inputs: Vec::with_capacity(transitions),
            targets: Vec::with_capacity(transitions),
            results: Vec::with_capacity(transitions),
        };
        let mut state_of = vec![LEAF; names.id_bound()];
        let mut open = Vec::new();
        for part in parts {
            let (state, transition) = (number(fsm.first.len()), number(fsm.inputs.len()));
            part.nodes.iter().for_each(|&(node, at)| state_of[node.index()] = state + at);
            open.extend(part.open.iter().map(|&(at, node)| (transition + at, node)));
            fsm.first.extend(part.first.iter().map(|&first| transition + first));
            let moved = |&to: &u32| if to & LEAF == LEAF { to } else { to + state };
            fsm.targets.extend(part.targets.iter().map(moved));
            fsm.inputs.extend_from_slice(&part.inputs);
            fsm.results.extend_from_slice(&part.results);
        }
        for (transition, node) in open {
            let target = &mut fsm.targets[transition as usize];
            *target = *target & ACCEPTING | state_of[node.index()];
        }
        fsm.first.push(number(fsm.inputs.len()));
        fsm.root = Some(state_of[NodeId::ROOT.index()]).filter(|&state| state != LEAF);
        fsm
    }

    /// The most bytes a step.
    pub const fn stride(&self) -> Stride {
        self.stride
    }

    /// The first state of every name. `None` if no entry exists except the root's.
    pub const fn root(&self) -> Option<u32> {
        self.root
    }

    /// The root entry's result, or 0 if there is none.
    pub const fn root_result(&self) -> u32 {
        self.root_result
    }

    /// Number of states with transitions. Their numbers are below it.
    pub fn state_count(&self) -> usize {
        self.first.len() - 1
    }

    /// Number of transitions.
    pub fn transition_count(&self) -> usize {
        self.inputs.len()
    }

    /// The transitions of a state, as a range for [`transition`](Self::transition).
    pub fn range(&self, state: u32) -> Range<usize> {
        if !self.moved.is_empty()
            && let Some(range) = self.moved.get(&state)
        {
            return range.clone();
        }
        self.first[state as usize] as usize..self.first[state as usize + 1] as usize
    }

    /// The inputs of a state's transitions.
    pub fn inputs(&self, state: u32) -> &[u32] {
        &self.inputs[self.range(state)]
    }

    /// A transition.
    pub fn transition(&self, at: usize) -> Transition {
        let state = self.targets[at] & LEAF;
        let result = self.results[at];
        Transition { input: self.inputs[at], state: (state != LEAF).then_some(state), result }
    }

    /// The transitions of a state.
    pub fn transitions(&self, state: u32) -> impl Iterator<Item = Transition> {
        self.range(state).map(|at| self.transition(at))
    }

    /// Counts. O(states).
    pub fn census(&self) -> Census {
        let leaves = self.targets.iter().filter(|&&target| target & LEAF == LEAF).count() as u64;
        let alone = u64::from(self.root.is_none());
        let sizes = || (0..number(self.state_count())).map(|state| self.range(state).len() as u64);
        Census {
            states: self.state_count() as u64 + leaves + alone,
            transitions: self.transition_count() as u64,
            leaves: leaves + alone,
            single: sizes().filter(|&size| size == 1).count() as u64,
            widest: sizes().max().unwrap_or(0),
        }
    }

    /// Makes a state read a number in two halves: the low 16 bits lead to new states, and the high 16 bits
    /// lead from these to the old targets. Returns the new states.
    pub(crate) fn halve(&mut self, state: u32) -> Range<u32> {
        let mut whole: Vec<_> = self.range(state).map(|at| (self.inputs[at] & 0xffff, at)).collect();
        whole.sort_unstable();
        let new = number(self.state_count());
        self.first.pop();
        let mut lows = Vec::new();
        for group in whole.chunk_by(|(a, _), (b, _)| a == b) {
            lows.push((group[0].0, number(self.first.len())));
            self.first.push(number(self.inputs.len()));
            for &(_, at) in group {
                let (input, target, result) = (self.inputs[at] >> 16, self.targets[at], self.results[at]);
                self.push(input, target, result);
            }
        }
        let end = self.inputs.len();
        lows.iter().for_each(|&(input, target)| self.push(input, target, 0));
        let past = number(self.first.len());
        // The last of the new states ends where the halved state starts, not where the next one does.
        self.moved.insert(past - 1, self.first[past as usize - 1] as usize..end);
        self.moved.insert(state, end..self.inputs.len());
        self.first.push(number(self.inputs.len()));
        new..past
    }

    fn push(&mut self, input: u32, target: u32, result: u32) {
        self.inputs.push(input);
        self.targets.push(target);
        self.results.push(result);
    }
}
