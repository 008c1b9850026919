//! [`Way`]: the path of a change through the trie, walked ahead of the change.
//!
//! The data that changes read is prefetched some changes ahead, in three steps. The steps are a few changes
//! apart, so that the reads of one step have arrived, and the prefetches of a step finish while other changes
//! work:
//!
//! ```text
//! changes   … n          n + 8              n + 16         n + 24
//!             applied    long components    nodes          lines of the index
//! ```
//!
//! A node's hash depends on its name only, so all lines of a name are prefetched at once. The nodes that are
//! found are hints for the change: other changes may have added or removed nodes before its turn, so the
//! change checks each node. Hints save the change the hashes and most of the index.
//!
//! Before, hashes used a parent's id and a component. Then paths were walked level by level, 32 together, and
//! nodes beneath a new node were not prefetched at all.

use std::iter::Fuse;

use super::node::NONE;
use super::nodes::{INLINE, KINDS, kind};
use super::{NameTable, ROOT_HASH};
use crate::name::Name;
use crate::update::NameUpdate;

/// The number of components of a name that are walked ahead.
const LEVELS: usize = 6;
/// The distance between the steps, in changes.
const APART: usize = 8;
/// The number of paths at once: those that are being walked, and the current one.
const WAYS: usize = 4 * APART;

/// A step from a node to a child.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// The hash of all components up to here.
    pub(super) hash: u32,
    /// The probable node, or [`NONE`].
    pub(super) child: u32,
    /// Where its component is in the name.
    start: u32,
    len: u32,
}

impl Step {
    const NONE: Self = Self::to(0);

    /// A step without a hint.
    pub(super) const fn to(hash: u32) -> Self {
        Self { hash, child: NONE, start: 0, len: 0 }
    }
}

/// The steps of a name, those that were walked ahead first.
pub(super) struct Walk<'n> {
    steps: std::slice::Iter<'n, Step>,
    name: &'n [u8],
    /// Where the next step starts that was not walked ahead.
    rest: usize,
}

impl<'n> Walk<'n> {
    #[inline]
    pub(super) fn new(steps: &'n [Step], name: &'n Name) -> Self {
        let rest = steps.last().map_or(0, |step| (step.start + step.len) as usize);
        Self { steps: steps.iter(), name: name.as_bytes(), rest }
    }

    /// The next step and its component, after a step of this hash.
    #[inline(always)]
    pub(super) fn next(&mut self, names: &NameTable, hash: u32) -> Option<(Step, &'n [u8])> {
        if let Some(&step) = self.steps.next() {
            return Some((step, &self.name[step.start as usize..][..step.len as usize]));
        }
        if self.rest == self.name.len() {
            return None;
        }
        let component = Name::new_unchecked(&self.name[self.rest..]).components().next()?;
        self.rest += 1 + component.len();
        Some((Step::to(names.hash(hash, component)), component))
    }
}

/// A change and its steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way<'u> {
    /// `None` for an unused element.
    update: Option<&'u NameUpdate>,
    steps: [Step; LEVELS],
    len: usize,
}

impl<'u> Way<'u> {
    const NONE: Self = Self { update: None, steps: [Step::NONE; LEVELS], len: 0 };

    /// The first step, for another change: prefetches the lines of the index.
    #[inline]
    fn start(&mut self, update: &'u NameUpdate, names: &NameTable) {
        (self.update, self.len) = (Some(update), 0);
        let (mut hash, mut start) = (ROOT_HASH, 1);
        for (step, component) in self.steps.iter_mut().zip(update.name().components()) {
            hash = names.hash(hash, component);
            names.index.fetch(hash);
            // A name's length takes 24 bits.
            #[allow(clippy::cast_possible_truncation)]
            let len = component.len() as u32;
            *step = Step { hash, child: NONE, start, len };
            start += 1 + len;
            self.len += 1;
        }
    }

    /// The second step: prefetches the nodes, and those that will be taken for missing nodes. Trusts the tags
    /// of the index.
    #[inline]
    fn go(&mut self, names: &NameTable, coming: &mut Coming, firsts: &mut Firsts) {
        let comes = self.inserts();
        let mut is_there = true;
        for (level, step) in self.steps[..self.len].iter_mut().enumerate() {
            if is_there {
                step.child =
                    if level == 0 { firsts.of(step.hash, names) } else { probable(step.hash, names) };
                // Nodes beneath a missing node are missing, too.
                is_there = step.child != NONE;
            }
            if comes && !is_there {
                coming.fetch(step, names);
            }
        }
    }

    /// Whether missing nodes will be added.
    #[inline]
    const fn inserts(&self) -> bool {
        matches!(self.update, Some(NameUpdate::Insert(..)))
    }

    /// The third step: prefetches long components.
    #[inline]
    fn look_around(&self, names: &NameTable) {
        for step in &self.steps[..self.len] {
            if step.len as usize > INLINE && step.child != NONE {
                names.nodes.fetch_text(step.child);
            }
        }
    }

    /// The steps that were walked.
    #[inline]
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps[..self.len]
    }

    /// Walks some paths without making the changes.
    pub(super) fn walk_all(updates: &[&'u NameUpdate], names: &NameTable) {
        let mut ways = vec![Self::NONE; updates.len()];
        ways.iter_mut().zip(updates).for_each(|(way, update)| way.start(update, names));
        let mut coming = Coming::NONE;
        let mut firsts = Firsts::NONE;
        ways.iter_mut().for_each(|way| way.go(names, &mut coming, &mut firsts));
        ways.iter().for_each(|way| way.look_around(names));
    }
}

/// The probable node of a name with this hash, prefetched, or [`NONE`].
#[inline]
fn probable(hash: u32, names: &NameTable) -> u32 {
    let Some(id) = names.index.find(hash, |_| true) else { return NONE };
    names.nodes.fetch(id);
    id
}

/// Probable nodes of the last first components, which many names share.
struct Firsts([(u32, u32); Self::MOST]);

impl Firsts {
    const MOST: usize = 64;
    const NONE: Self = Self([(0, NONE); Self::MOST]);

    /// The probable node of a first component with this hash, prefetched, or [`NONE`].
    #[inline]
    fn of(&mut self, hash: u32, names: &NameTable) -> u32 {
        let first = &mut self.0[hash as usize % Self::MOST];
        if first.0 != hash || first.1 == NONE {
            *first = (hash, probable(hash, names));
        }
        first.1
    }
}

/// The number of nodes that will be added, by kinds of components.
struct Coming([u8; KINDS]);

impl Coming {
    const NONE: Self = Self([0; KINDS]);

    /// Counts the node of a step, and prefetches it.
    #[inline]
    fn fetch(&mut self, step: &Step, names: &NameTable) {
        let kind = kind(step.len as usize);
        names.nodes.fetch_free(kind, self.0[kind]);
        self.0[kind] = self.0[kind].saturating_add(1);
    }

    /// Uncounts the nodes of a change that is made now.
    #[inline]
    fn leave(&mut self, steps: &[Step]) {
        for step in steps.iter().filter(|step| step.child == NONE) {
            let count = &mut self.0[kind(step.len as usize)];
            *count = count.saturating_sub(1);
        }
    }
}

/// Changes that are walked ahead.
pub(super) struct Ahead<'u, U> {
    updates: Fuse<U>,
    /// Paths by the number of the change, as a ring.
    ways: [Way<'u>; WAYS],
    coming: Coming,
    firsts: Firsts,
    /// The number of changes with a path.
    begun: usize,
    /// The path of the change that starts next, if there is one.
    turn: usize,
}

impl<'u, U: Iterator<Item = &'u NameUpdate>> Ahead<'u, U> {
    pub(super) fn new(updates: U) -> Self {
        Self {
            updates: updates.fuse(),
            ways: [Way::NONE; WAYS],
            coming: Coming::NONE,
            firsts: Firsts::NONE,
            begun: 0,
            turn: 0,
        }
    }

    /// The next change with its steps. `None` after the last.
    #[inline]
    pub(super) fn next(&mut self, names: &NameTable) -> Option<(&'u NameUpdate, &[Step])> {
        let now = loop {
            if let Some(update) = self.updates.next() {
                self.ways[self.turn % WAYS].start(update, names);
                self.begun += 1;
            }
            if let Some(way) = self.place(1) {
                self.ways[way].go(names, &mut self.coming, &mut self.firsts);
            }
            if let Some(way) = self.place(2) {
                self.ways[way].look_around(names);
            }
            let now = self.place(3);
            self.turn += 1;
            if now.is_some() || self.turn > self.begun + 3 * APART {
                break now;
            }
        };
        let way = &self.ways[now?];
        if way.inserts() {
            self.coming.leave(way.steps());
        }
        Some((way.update?, way.steps()))
    }

    /// The index of the path that is `steps` behind, if there is one.
    #[inline]
    fn place(&self, steps: usize) -> Option<usize> {
        let change = self.turn.checked_sub(steps * APART)?;
        (change < self.begun).then_some(change % WAYS)
    }
}
