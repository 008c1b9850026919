//! [`Trie`]: the multi-bit trie that updates are made in (GAMT, sections 3.2 and 4.3).
//!
//! A mirror of the table's units, and beside each leaf the length of the prefix that owns it, so that an
//! update looks at its own prefix's range and at nothing else:
//!
//! ```text
//! announce P/l → v    in the range of P, a leaf of a prefix no longer than l becomes v, l
//! withdraw P/l        in the range of P, a leaf of length l becomes that of the prefix that now decides
//! ```
//!
//! A range of length l has one owner of that length. Hence what an update does to a leaf depends on nothing
//! that another update of the same set changes, and the order within a set does not matter.
//!
//! Deletion is lazy, as in the paper: withdrawing leaves the nodes of a prefix in place, and announcing it
//! again finds them. The paper goes on until a level is full, and then rebuilds. Here the nodes that
//! withdrawn prefixes have left empty are first [collapsed](Trie::collapse); only when a level is full of
//! nodes in use is the table built anew.
//!
//! Each changed unit is noted in the [`Bubbles`].

use wirespeed_fib::{Address, Outgrown, Prefix};
use wirespeed_image::{Element, Image, ImageError, PatchBuilder, Pool};

use crate::bubbles::Bubbles;
use crate::layout::{Code, units};
use crate::plan::{Plan, PlannedLevel};

/// Stands in place of an owner's length where the unit leads to a child.
const CHILD: u8 = u8::MAX;

/// What the leaves under a prefix hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// A next hop or a slot; 0 for none.
    pub(crate) value: u32,
    /// The length of the prefix that owns it; 0 where there is none.
    pub(crate) len: u8,
}

impl Leaf {
    /// No route.
    pub(crate) const NONE: Self = Self { value: 0, len: 0 };
}

/// The form of a state-jump table.
#[derive(Clone, Debug)]
pub(crate) struct Trie {
    levels: Vec<Level>,
    bubbles: Bubbles,
}

/// The units of a level.
#[derive(Clone, Debug)]
struct Level {
    from: u8,
    stride: u8,
    /// What leaves hold, and where children begin.
    infs: Vec<u32>,
    /// The lengths of the leaves' owners, or [`CHILD`].
    lens: Vec<u8>,
    /// Its nodes, numbered from 1.
    nodes: Pool,
    /// How the table writes its units.
    code: Code,
}

/// The use of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelUsage {
    /// Bits that it reads.
    pub stride: u8,
    /// Bytes of a unit in the table.
    pub unit_bytes: u32,
    /// Units of nodes in use.
    pub used_units: u64,
    /// Units that there is room for: the threshold at which a table is rebuilt.
    pub room_units: u64,
}

impl Level {
    fn units(&self) -> usize {
        1 << self.stride
    }

    /// The first bit after those that it reads.
    fn end(&self) -> u8 {
        self.from + self.stride
    }

    /// The units of one of its nodes that a prefix covers, or the one on the way to it.
    #[inline]
    fn range<A: Address>(&self, node: u32, prefix: Prefix<A>) -> std::ops::Range<usize> {
        let first = node as usize + prefix.address().bits(self.from, self.stride) as usize;
        let len = prefix.len().clamp(self.from, self.end());
        first..first + (1 << (self.end() - len))
    }

    /// What the table holds at a unit.
    #[inline]
    fn unit(&self, unit: usize) -> u64 {
        match self.lens[unit] {
            CHILD => self.code.link(self.infs[unit]),
            _ => self.code.leaf(self.infs[unit]),
        }
    }

    fn take(&mut self) -> Result<u32, Outgrown> {
        let id = self.nodes.take().ok_or(Outgrown("room in a level"))?;
        Ok((id - 1) << self.stride)
    }

    fn give_back(&mut self, node: u32) {
        self.nodes.give_back((node >> self.stride) + 1);
    }
}

impl Trie {
    /// A trie of a plan, without a route.
    pub(crate) fn new(plan: &Plan) -> Self {
        let level = |level: &PlannedLevel| Level {
            from: level.from,
            stride: level.stride,
            infs: vec![0; level.units()],
            lens: vec![0; level.units()],
            nodes: Pool::new(level.nodes + 1),
            code: level.code,
        };
        let mut levels: Vec<_> = plan.levels.iter().map(level).collect();
        let _root = levels[0].take();
        Self { bubbles: Bubbles::new(levels.len()), levels }
    }

    /// Fills an empty trie with routes in table order, for which there is room.
    pub(crate) fn fill<A: Address>(&mut self, routes: &[(Prefix<A>, u32)]) -> Result<(), Outgrown> {
        self.fill_node(0, 0, routes)
    }

    /// Fills a node, whose units hold what is inherited, with the routes under it that are longer than it is
    /// deep.
    fn fill_node<A: Address>(
        &mut self,
        at: usize,
        node: u32,
        mut routes: &[(Prefix<A>, u32)],
    ) -> Result<(), Outgrown> {
        while let Some((&(prefix, value), rest)) = routes.split_first() {
            let level = &mut self.levels[at];
            let range = level.range(node, prefix);
            if prefix.len() <= level.end() {
                // What is longer comes later, and paints over.
                level.infs[range.clone()].fill(value);
                level.lens[range].fill(prefix.len());
                routes = rest;
                continue;
            }
            let (from, stride, unit) = (level.from, level.stride, range.start);
            let index = prefix.address().bits(from, stride);
            let run = routes.partition_point(|(p, _)| p.address().bits(from, stride) <= index);
            let child = self.grow(at, unit)?;
            self.fill_node(at + 1, child, &routes[..run])?;
            routes = &routes[run..];
        }
        Ok(())
    }

    /// Replaces a leaf by a child whose units hold the same; notes nothing.
    fn grow(&mut self, at: usize, unit: usize) -> Result<u32, Outgrown> {
        let below = self.levels.get_mut(at + 1).ok_or(Outgrown("levels"))?;
        let child = below.take()?;
        let units = child as usize..child as usize + below.units();
        let level = &mut self.levels[at];
        let (value, len) = (level.infs[unit], level.lens[unit]);
        (level.infs[unit], level.lens[unit]) = (child, CHILD);
        let below = &mut self.levels[at + 1];
        below.infs[units.clone()].fill(value);
        below.lens[units].fill(len);
        Ok(child)
    }

    /// What the leaves of a prefix hold, if it has one in the nodes that its length ends in. One that has
    /// none there may be in the trie all the same, with longer ones over all of it.
    #[inline]
    pub(crate) fn find<A: Address>(&self, prefix: Prefix<A>) -> Option<u32> {
        let (at, range) = self.descend(prefix)?;
        let level = &self.levels[at];
        let owned = level.lens[range.clone()].iter().position(|&len| len == prefix.len())?;
        // Of length 0 are the default route's leaves, and those of no route, which hold 0.
        Some(level.infs[range.start + owned]).filter(|&value| value > 0)
    }

    /// The level that a prefix ends in, and its units there; `None` where no node is there for it.
    #[inline]
    fn descend<A: Address>(&self, prefix: Prefix<A>) -> Option<(usize, std::ops::Range<usize>)> {
        let mut node = 0;
        for (at, level) in self.levels.iter().enumerate() {
            let range = level.range(node, prefix);
            if prefix.len() <= level.end() {
                return Some((at, range));
            }
            if level.lens[range.start] != CHILD {
                return None;
            }
            node = level.infs[range.start];
        }
        None
    }

    /// Tells of each leaf under a prefix that a prefix longer than it owns: that one, and the value.
    pub(crate) fn each_beneath<A: Address>(&self, prefix: Prefix<A>, mut tell: impl FnMut(Prefix<A>, u32)) {
        let Some((at, range)) = self.descend(prefix) else { return };
        let (first, last) = (prefix.address().to_u128(), prefix.last().to_u128());
        self.each_in(at, range, (first, last), prefix.len(), &mut tell);
    }

    /// Tells of such leaves in a range of units of a level, which are of the addresses from the first to the
    /// last.
    fn each_in<A: Address>(
        &self,
        at: usize,
        range: std::ops::Range<usize>,
        (first, last): (u128, u128),
        longer_than: u8,
        tell: &mut impl FnMut(Prefix<A>, u32),
    ) {
        let level = &self.levels[at];
        let each = (last - first) / range.len() as u128;
        let mut from = first;
        for unit in range {
            let inf = level.infs[unit];
            match level.lens[unit] {
                CHILD => {
                    let units = inf as usize..inf as usize + self.levels[at + 1].units();
                    self.each_in(at + 1, units, (from, from + each), longer_than, tell);
                }
                len if len > longer_than => tell(Prefix::around(A::from_u128_low(from), len), inf),
                _ => {}
            }
            from = from.wrapping_add(each).wrapping_add(1);
        }
    }

    /// The prefix is there, or has another value. After an error it may be there in part, and may be
    /// announced again.
    pub(crate) fn announce<A: Address>(&mut self, prefix: Prefix<A>, value: u32) -> Result<(), Outgrown> {
        let (mut at, mut node) = (0, 0);
        while self.levels[at].end() < prefix.len() {
            let unit = self.levels[at].range(node, prefix).start;
            node = match self.levels[at].lens[unit] {
                CHILD => self.levels[at].infs[unit],
                _ => self.link(at, unit)?,
            };
            at += 1;
        }
        let range = self.levels[at].range(node, prefix);
        self.paint(at, range, Leaf { value, len: prefix.len() }, |len| len <= prefix.len());
        Ok(())
    }

    /// The prefix is not there any more; `cover` decides where it did.
    pub(crate) fn withdraw<A: Address>(&mut self, prefix: Prefix<A>, cover: Leaf) {
        // Without a node it came and went within one set of updates, and was never here.
        let Some((at, range)) = self.descend(prefix) else { return };
        self.paint(at, range, cover, |len| len == prefix.len());
    }

    /// Frees the nodes on the way to a withdrawn prefix in which nothing is left that is longer than they are
    /// deep.
    pub(crate) fn collapse<A: Address>(&mut self, prefix: Prefix<A>) {
        let mut path = Vec::new();
        let (mut at, mut node) = (0, 0);
        while self.levels[at].end() < prefix.len() {
            let unit = self.levels[at].range(node, prefix).start;
            if self.levels[at].lens[unit] != CHILD {
                break;
            }
            node = self.levels[at].infs[unit];
            path.push((at, unit));
            at += 1;
        }
        for (at, unit) in path.into_iter().rev() {
            let child = self.levels[at].infs[unit];
            let below = &mut self.levels[at + 1];
            let first = child as usize;
            if below.lens[first..first + below.units()].iter().any(|&len| len > below.from) {
                return;
            }
            // Prefixes this short cover the whole node: one owns it all.
            let (value, len) = (below.infs[first], below.lens[first]);
            below.give_back(child);
            let level = &mut self.levels[at];
            (level.infs[unit], level.lens[unit]) = (value, len);
            self.bubbles.note(at, unit);
        }
    }

    /// Replaces a leaf by a child whose units hold the same.
    fn link(&mut self, at: usize, unit: usize) -> Result<u32, Outgrown> {
        let child = self.grow(at, unit)?;
        self.bubbles.note(at, unit);
        let first = child as usize;
        self.bubbles.note_all(at + 1, first..first + self.levels[at + 1].units());
        Ok(child)
    }

    /// Sets the leaves of a range, and of the nodes beneath it, whose owners' lengths are `open` to it.
    fn paint(
        &mut self,
        at: usize,
        range: std::ops::Range<usize>,
        leaf: Leaf,
        open: impl Fn(u8) -> bool + Copy,
    ) {
        for unit in range {
            let level = &mut self.levels[at];
            match level.lens[unit] {
                CHILD => {
                    let first = level.infs[unit] as usize;
                    self.paint(at + 1, first..first + self.levels[at + 1].units(), leaf, open);
                }
                len if open(len) => {
                    level.lens[unit] = leaf.len;
                    if level.infs[unit] != leaf.value {
                        level.infs[unit] = leaf.value;
                        self.bubbles.note(at, unit);
                    }
                }
                _ => {}
            }
        }
    }

    /// Takes the bubbles, level by level, with the values that their units have now.
    pub(crate) fn fetch(&mut self, patch: &mut PatchBuilder) {
        let Self { levels, bubbles } = self;
        for (at, level) in levels.iter().enumerate() {
            bubbles.fetch(at, units(at), patch, |unit| level.unit(unit));
        }
    }

    /// Writes all units.
    pub(crate) fn write(&self, image: &mut Image) -> Result<(), ImageError> {
        (0..self.levels.len()).try_for_each(|at| match self.levels[at].code.width() {
            1 => self.write_level::<u8>(at, image),
            2 => self.write_level::<u16>(at, image),
            4 => self.write_level::<u32>(at, image),
            _ => self.write_level::<u64>(at, image),
        })
    }

    fn write_level<U: Element>(&self, at: usize, image: &mut Image) -> Result<(), ImageError> {
        for (unit, to) in image.section_mut::<U>(units(at))?.iter_mut().enumerate() {
            *to = U::try_from(self.levels[at].unit(unit)).ok().expect("units were planned for all there is");
        }
        Ok(())
    }

    /// Number of levels.
    pub(crate) fn levels(&self) -> usize {
        self.levels.len()
    }

    /// How full each level is.
    pub(crate) fn usage(&self) -> Vec<LevelUsage> {
        let usage = |level: &Level| LevelUsage {
            stride: level.stride,
            unit_bytes: level.code.width(),
            used_units: u64::from(level.nodes.in_use()) << level.stride,
            room_units: level.infs.len() as u64,
        };
        self.levels.iter().map(usage).collect()
    }

    /// Bytes held.
    pub(crate) fn memory_usage(&self) -> u64 {
        let level = |level: &Level| {
            let unit = size_of::<u32>() + size_of::<u8>();
            (level.infs.len() * unit) as u64 + level.nodes.memory_usage()
        };
        self.levels.iter().map(level).sum::<u64>() + self.bubbles.memory_usage()
    }
}
