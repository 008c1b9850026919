//! [`HopShape`]: the next hops of prefixes, by the next hops around them.
//!
//! The holder of a block announces much of it alike: a prefix tends to have the next hop of the prefix that
//! covers it, of the sibling before it, or of a prefix shortly before. The shape counts these four outcomes
//! (cover, previous, recent, any) by situation. "Any" is drawn by popularity, in octaves of rank. If there
//! are more holders than next hops, holders share the next hops evenly, as many origins share few exits.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use wirespeed_rng::Rng;

use crate::address::Address;
use crate::next_hop::NextHop;
use crate::prefix::Prefix;

/// Situations: covered or not, three states of the previous sibling, next to it or not, as long or not, and
/// the number of siblings before it with one next hop (none, up to 3, more). Some holders announce all
/// prefixes alike and others all differently; this number tells them apart.
pub(super) const SITUATIONS: usize = 2 * 3 * 2 * 2 * 3;

/// The number of routes that count as recent.
const WINDOW: usize = 16;

/// Cover, previous, recent, any.
pub(super) const OUTCOMES: usize = 4;

/// Counts from which next hops are drawn.
#[derive(Clone, Debug)]
pub(super) struct HopShape {
    pub(super) outcomes: [[u32; OUTCOMES]; SITUATIONS],
    /// The number of distinct next hops of the measured table.
    pub(super) holders: u32,
    /// The number of times that a next hop of rank 1, 2-3, 4-7 and so on was drawn as "any".
    pub(super) popularity: Vec<u32>,
}

impl HopShape {
    /// Measures routes in table order.
    pub(super) fn of<A: Address>(routes: &[(Prefix<A>, NextHop)]) -> Self {
        let mut shape = Self { outcomes: [[0; OUTCOMES]; SITUATIONS], holders: 0, popularity: Vec::new() };
        let mut walk = Walk::default();
        let (mut fresh, mut users) = (FxHashMap::<NextHop, u32>::default(), FxHashMap::default());
        for &(prefix, next_hop) in routes {
            let near = walk.at(prefix);
            let outcome = if near.cover == Some(next_hop) {
                0
            } else if near.previous == Some(next_hop) {
                1
            } else if walk.recent.contains(&next_hop) {
                2
            } else {
                *fresh.entry(next_hop).or_default() += 1;
                3
            };
            shape.outcomes[near.situation()][outcome] += 1;
            *users.entry(next_hop).or_insert(0u32) += 1;
            walk.push(prefix, next_hop);
        }
        shape.holders = u32::try_from(users.len()).unwrap_or(u32::MAX);
        let mut counts: Vec<u32> = fresh.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let mut rest = &counts[..];
        let mut width = 1;
        while !rest.is_empty() {
            let (octave, after) = rest.split_at(width.min(rest.len()));
            shape.popularity.push(octave.iter().sum());
            (rest, width) = (after, width * 2);
        }
        shape
    }

    /// Gives each prefix, in table order, one of `next_hops` next hops, numbered from 1. O(prefixes).
    pub(super) fn draw<A: Address>(
        &self,
        rng: &mut Rng,
        prefixes: &[Prefix<A>],
        next_hops: u32,
    ) -> Vec<NextHop> {
        let any = Popularity::new(self, rng, next_hops);
        let mut walk = Walk::default();
        prefixes
            .iter()
            .map(|&prefix| {
                let near = walk.at(prefix);
                let is_near = |hop| near.cover == Some(hop) || near.previous == Some(hop);
                let outcome = rng.weighted(&self.outcomes[near.situation()]);
                let next_hop = match outcome {
                    0 => near.cover,
                    1 => near.previous,
                    2 => walk.draw_recent(rng, is_near),
                    _ => None,
                };
                let next_hop = next_hop.unwrap_or_else(|| {
                    // Any next hop except those with an outcome of their own; if there are few next hops,
                    // any.
                    let is_other = |hop: &NextHop| !is_near(*hop) && !walk.recent.contains(hop);
                    let first = any.draw(rng);
                    let tries = std::iter::once(first).chain((0..4).map(|_| any.draw(rng)));
                    tries.into_iter().find(is_other).unwrap_or(first)
                });
                walk.push(prefix, next_hop);
                next_hop
            })
            .collect()
    }
}

/// The next hops near a prefix.
struct Near {
    cover: Option<NextHop>,
    previous: Option<NextHop>,
    adjacent: bool,
    same_length: bool,
    streak: u32,
}

impl Near {
    fn situation(&self) -> usize {
        let previous = match self.previous {
            None => 0,
            same if same == self.cover => 1,
            Some(_) => 2,
        };
        let streak = match self.streak {
            0 => 0,
            1..=3 => 1,
            _ => 2,
        };
        let mut situation = usize::from(self.cover.is_some()) * 3 + previous;
        situation = situation * 2 + usize::from(self.adjacent);
        situation = situation * 2 + usize::from(self.same_length);
        situation * 3 + streak
    }
}

/// The walk in table order, for measuring and for drawing.
struct Walk<A: Address> {
    /// The covering prefixes, each with its next hop and the last route right below it.
    stack: Vec<Open<A>>,
    /// The last route that nothing covers.
    top: Option<Last<A>>,
    recent: VecDeque<NextHop>,
}

struct Open<A: Address> {
    prefix: Prefix<A>,
    next_hop: NextHop,
    below: Option<Last<A>>,
}

/// The last of some siblings.
#[derive(Clone, Copy)]
struct Last<A: Address> {
    prefix: Prefix<A>,
    next_hop: NextHop,
    /// The number of siblings right before it with this next hop.
    streak: u32,
}

impl<A: Address> Default for Walk<A> {
    fn default() -> Self {
        Self { stack: Vec::new(), top: None, recent: VecDeque::with_capacity(WINDOW + 1) }
    }
}

impl<A: Address> Walk<A> {
    fn at(&mut self, prefix: Prefix<A>) -> Near {
        while self.stack.last().is_some_and(|open| !open.prefix.covers(prefix)) {
            self.stack.pop();
        }
        let (cover, previous) = match self.stack.last() {
            Some(open) => (Some(open.next_hop), open.below),
            None => (None, self.top),
        };
        Near {
            cover,
            previous: previous.map(|last| last.next_hop),
            adjacent: previous.is_some_and(|last| last.prefix.last().next() == Some(prefix.address())),
            same_length: previous.is_some_and(|last| last.prefix.len() == prefix.len()),
            streak: previous.map_or(0, |last| last.streak),
        }
    }

    /// One of the recent next hops for which `is_near` is false, in proportion to its frequency.
    fn draw_recent(&self, rng: &mut Rng, is_near: impl Fn(NextHop) -> bool) -> Option<NextHop> {
        let others = || self.recent.iter().copied().filter(|&hop| !is_near(hop));
        others().nth(rng.index(others().count()))
    }

    fn push(&mut self, prefix: Prefix<A>, next_hop: NextHop) {
        let last = self.stack.last_mut().map_or(&mut self.top, |open| &mut open.below);
        let streak = last.filter(|last| last.next_hop == next_hop).map_or(0, |last| last.streak + 1);
        *last = Some(Last { prefix, next_hop, streak });
        self.stack.push(Open { prefix, next_hop, below: None });
        self.recent.push_back(next_hop);
        if self.recent.len() > WINDOW {
            self.recent.pop_front();
        }
    }
}

/// Next hops by rank, in octaves.
struct Popularity {
    weights: Vec<u32>,
    /// The end of each octave: one past its last rank, ranks from 0.
    ends: Vec<u32>,
    /// The next hop of each rank.
    hops: Vec<u32>,
}

impl Popularity {
    fn new(shape: &HopShape, rng: &mut Rng, next_hops: u32) -> Self {
        let holders = shape.holders.max(next_hops).max(1);
        // Ranks get all next hops in rounds, each round in its own order, so that all are used.
        let mut hops: Vec<u32> = (0..holders).map(|rank| rank % next_hops.max(1) + 1).collect();
        for round in hops.chunks_mut(next_hops.max(1) as usize) {
            rng.shuffle(round);
        }
        let octaves = shape.popularity.len().max(1);
        let ends = (1..=octaves)
            .map(|o| if o == octaves { holders } else { ((1u64 << o) - 1).try_into().unwrap_or(holders) })
            .map(|end: u32| end.min(holders))
            .collect();
        let weights = if shape.popularity.is_empty() { vec![1] } else { shape.popularity.clone() };
        Self { weights, ends, hops }
    }

    fn draw(&self, rng: &mut Rng) -> NextHop {
        let octave = rng.weighted(&self.weights);
        let start = if octave == 0 { 0 } else { self.ends[octave - 1] };
        let width = (self.ends[octave] - start).max(1);
        let rank = start as usize + rng.index(width as usize);
        NextHop(self.hops[rank.min(self.hops.len() - 1)])
    }
}
