//! Draws the prefixes of a table from a [`Shape`]: a number of prefixes at the top, split from node to node.

use wirespeed_rng::Rng;

use super::shape::{
    ANY_KIND, Above, BINS, CLASSES, KINDS, MAGNITUDES, Place, Row, SURE, Shape, Sibling, Split, class_of,
    kind, past, run_kind, smallest,
};
use crate::address::Address;
use crate::prefix::Prefix;

/// A node of the trie yet to be drawn.
#[derive(Clone, Copy)]
enum Task<A> {
    Draw(Node<A>),
    /// A right half that repeats its parent's left half, which was drawn from `from` on. `bit` is the bit in
    /// which they differ.
    Copy {
        bit: u128,
        from: usize,
    },
}

#[derive(Clone, Copy)]
struct Node<A> {
    base: A,
    depth: u8,
    /// Prefixes in the subtree, at least 1.
    n: u64,
    /// Whether the node is a prefix.
    own: bool,
    above: Above,
}

/// The rows of a shape by (depth, class, cover, kind), with gaps filled by the nearest row.
pub(super) struct Cascade {
    own: Vec<u16>,
    splits: Vec<Split>,
    /// Lengths of prefixes with weights, by kind of run.
    runs: Vec<Vec<(u8, u32)>>,
    /// The longest length with many prefixes of the table: subtrees are full when they are full down to it.
    full_len: u8,
    bits: u8,
    region_bits: u8,
}

impl Cascade {
    pub(super) fn new(shape: &Shape) -> Self {
        let bits = shape.family.bits();
        let total: u64 = shape.by_length.iter().map(|&n| u64::from(n)).sum();
        let full_len = (0..=bits)
            .rev()
            .find(|&len| u64::from(shape.by_length[usize::from(len)]) * 100 >= total.max(1))
            .unwrap_or(bits);
        let kinds = usize::from(run_kind(bits, u64::MAX, true)) + 1;
        let mut runs = vec![Vec::new(); kinds];
        for &(kind, len, count) in &shape.runs {
            runs[usize::from(kind)].push((len, count));
        }
        Self {
            // Both tables have at least the entries of depth 0.
            own: fill(&shape.own, SURE / 2),
            splits: fill(&shape.splits, Split { runs: [0; 2], bins: [1; BINS], copy: 0 }),
            runs,
            full_len,
            bits,
            region_bits: shape.region_bits,
        }
    }

    /// The most prefixes that a subtree at `depth` can hold.
    pub(super) fn room(&self, depth: u8) -> u64 {
        let to = if depth <= self.full_len { self.full_len } else { self.bits };
        let twice = 1u128.checked_shl(u32::from(to - depth) + 1);
        twice.and_then(|twice| u64::try_from(twice - 1).ok()).unwrap_or(u64::MAX)
    }

    /// The most prefixes that a subtree at `depth` usually holds: a full block, its aggregate, and an eighth
    /// more. Otherwise the splits on the way down would blur full blocks.
    fn usual_room(&self, depth: u8) -> u64 {
        match 1u64.checked_shl(u32::from(self.full_len.saturating_sub(depth))) {
            Some(full) if depth <= self.full_len => full.saturating_add((full / 8).max(1)),
            _ => u64::MAX,
        }
    }

    /// Draws `n` prefixes below a region, in table order. `dense` is the factor by which there are more
    /// prefixes than in the measured table, 1 or more: far from the bottom a node looks up its choices as if
    /// it had fewer prefixes by that factor.
    pub(super) fn draw<A: Address>(
        &self,
        rng: &mut Rng,
        region: Prefix<A>,
        n: u64,
        dense: f64,
        out: &mut Vec<Prefix<A>>,
    ) {
        let n = n.min(self.room(region.len()));
        if n == 0 {
            return;
        }
        let (depth, above) = (region.len(), Above::REGION);
        let own = self.own(rng, depth, n, dense, above);
        let mut tasks = Vec::with_capacity(130);
        tasks.push(Task::Draw(Node { base: region.address(), depth, n, own, above }));
        while let Some(task) = tasks.pop() {
            match task {
                Task::Draw(node) => self.step(rng, node, dense, &mut tasks, out),
                Task::Copy { bit, from } => {
                    for index in from..out.len() {
                        let left = out[index];
                        let address = A::from_u128_low(left.address().to_u128() | bit);
                        out.push(Prefix::around(address, left.len()));
                    }
                }
            }
        }
    }

    /// Draws one node. Leaves its halves in `tasks`, the left one on top.
    #[inline]
    fn step<A: Address>(
        &self,
        rng: &mut Rng,
        node: Node<A>,
        dense: f64,
        tasks: &mut Vec<Task<A>>,
        out: &mut Vec<Prefix<A>>,
    ) {
        let Node { base, depth, n, own, above } = node;
        let Above { covered, kind: of_kind, zeros } = above;
        let n = n - u64::from(own);
        if own {
            out.push(Prefix::around(base, depth));
        }
        if n == 0 {
            return;
        }
        let covered = covered || own;
        let half = self.room(depth + 1);
        let place = Place { depth, class: self.class(depth, n, dense), covered, kind: of_kind };
        let split = of(&self.splits, place);
        if n > 1 && self.run(rng, node, n, split, out) {
            return;
        }
        let half = half.min(self.usual_room(depth + 1).max(n.div_ceil(2)));
        let left = draw_left(&split.bins, rng, n).clamp(n.saturating_sub(half), n.min(half));
        let right = n - left;
        let depth = depth + 1;
        let even = left == right;
        let copied = even && rng.below(SURE.into()) < u64::from(split.copy);
        let mut draw = |n: u64, base: A, kind: u8, zeros: u8| {
            let above = Above { covered, kind, zeros };
            let own = n > 0 && self.own(rng, depth, n, dense, above);
            Node { base, depth, n, own, above }
        };
        let bit = 1 << (self.bits - depth);
        let left = draw(left, base, kind(Sibling::of_left(right == 0, copied, zeros + 1), even), zeros + 1);
        if copied {
            tasks.push(Task::Copy { bit, from: out.len() });
        } else if right > 0 {
            let sibling = match left.n {
                0 => Sibling::Alone { zeros: 0 },
                _ => Sibling::Right { left_is_prefix: left.own },
            };
            let base = A::from_u128_low(base.to_u128() | bit);
            tasks.push(Task::Draw(draw(right, base, kind(sibling, even), 0)));
        }
        if left.n > 0 {
            tasks.push(Task::Draw(left));
        }
    }

    /// Draws whether the `n` prefixes below a node are one run, and if so the run.
    #[inline]
    fn run<A: Address>(
        &self,
        rng: &mut Rng,
        node: Node<A>,
        n: u64,
        split: &Split,
        out: &mut Vec<Prefix<A>>,
    ) -> bool {
        let (base, depth, covered) = (node.base, node.depth, node.above.covered || node.own);
        let chance = rng.below(SURE.into());
        let (at_start, at_end) = (u64::from(split.runs[0]), u64::from(split.runs[1]));
        if chance >= at_start + at_end {
            return false;
        }
        let lens = &self.runs[usize::from(run_kind(depth, n, covered))];
        let total: u32 = lens.iter().map(|&(_, weight)| weight).sum();
        let mut at = rng.below(total.into());
        let drawn = lens.iter().find(|&&(_, weight)| {
            let here = at < u64::from(weight);
            at = at.wrapping_sub(u64::from(weight));
            here
        });
        let Some(&(len, _)) = drawn else { return false };
        let step = 1u128 << (self.bits - len);
        let slots = 1u128.checked_shl(u32::from(len - depth)).unwrap_or(u128::MAX);
        let skip = if chance < at_start { 0 } else { slots - u128::from(n) };
        for index in skip..skip + u128::from(n) {
            out.push(Prefix::around(A::from_u128_low(base.to_u128() | (index * step)), len));
        }
        true
    }

    /// Draws whether a node over `n` prefixes is a prefix itself. It must be one if they don't fit below.
    #[inline]
    fn own(&self, rng: &mut Rng, depth: u8, n: u64, dense: f64, above: Above) -> bool {
        let Above { covered, kind, .. } = above;
        let below = if depth == self.bits { 0 } else { self.room(depth + 1).saturating_mul(2) };
        let weight = *of(&self.own, Place { depth, class: self.class(depth, n, dense), covered, kind });
        n > below || weight == SURE || weight > 0 && rng.below(SURE.into()) < u64::from(weight)
    }

    #[inline]
    fn class(&self, depth: u8, n: u64, dense: f64) -> u8 {
        class_of(if depth < 2 * self.region_bits { descale(n, dense) } else { n })
    }
}

#[inline]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // counts of prefixes
fn descale(n: u64, dense: f64) -> u64 {
    if dense == 1.0 { n } else { ((n as f64 / dense) as u64).max(1) }
}

#[inline]
fn at(Place { depth, class, covered, kind }: Place) -> usize {
    ((usize::from(depth) * CLASSES + usize::from(class)) * 2 + usize::from(covered)) * KINDS
        + usize::from(kind)
}

/// The entry of a place. Past the last depth, the entry of the last depth.
#[inline]
fn of<T>(table: &[T], place: Place) -> &T {
    let a_depth = CLASSES * 2 * KINDS;
    let index = at(place);
    &table[index.min(table.len() - a_depth + index % a_depth)]
}

/// The number of the `n` prefixes that go left, by the weights of the bins. A bin that `n` doesn't have,
/// which can come only from a borrowed row, counts as half.
#[inline]
fn draw_left(weights: &[u16; BINS], rng: &mut Rng, n: u64) -> u64 {
    if n == 1 {
        let (right, left) = (u64::from(weights[0]), u64::from(weights[1]));
        return u64::from(right == 0 || left != 0 && rng.below(right + left) >= right);
    }
    let total: u64 = weights.iter().map(|&w| u64::from(w)).sum();
    let mut at = rng.below(total);
    let bin = weights.iter().position(|&weight| {
        let here = at < u64::from(weight);
        at = at.wrapping_sub(u64::from(weight));
        here
    });
    match bin {
        Some(0) => 0,
        Some(1) => n,
        None | Some(2) => n / 2,
        Some(bin) => {
            let magnitude = (bin - 3) % MAGNITUDES;
            let (first, past) = (smallest(magnitude, n), past(magnitude, n));
            let smaller = if first < past { first + rng.below(past - first) } else { n / 2 };
            if bin - 3 < MAGNITUDES { smaller } else { n - smaller }
        }
    }
}

/// A table over every (depth, class, cover, kind), down to the last depth that has rows. A gap takes the row
/// for all kinds; if that is missing, too, the nearest such row, of the same depth and cover first.
fn fill<T: Copy>(rows: &[Row<T>], none: T) -> Vec<T> {
    let depths = rows.iter().map(|row| row.place.depth).max().unwrap_or(0) + 1;
    let mut known: Vec<Option<T>> = vec![None; usize::from(depths) * CLASSES * 2 * KINDS];
    for row in rows {
        known[at(row.place)] = Some(row.value);
    }
    let classes = || 0u8..CLASSES.try_into().unwrap_or(u8::MAX);
    // By depth and cover: the rows for all kinds by class, with gaps filled from the nearest class. `None` if
    // there is no row. The class two steps away has the same parity.
    let by_class = |depth: u8, covered: bool| -> Option<Vec<T>> {
        let common = |class| known[at(Place { depth, class, covered, kind: ANY_KIND })];
        let nearest = |class: u8| {
            [0, 2, 4].into_iter().chain(classes()).find_map(|away| {
                let up = Some(class + away).filter(|&c| usize::from(c) < CLASSES);
                [class.checked_sub(away), up].into_iter().flatten().find_map(common)
            })
        };
        classes().any(|class| common(class).is_some()).then(|| classes().filter_map(nearest).collect())
    };
    let common: Vec<[Option<Vec<T>>; 2]> =
        (0..depths).map(|depth| [by_class(depth, false), by_class(depth, true)]).collect();
    let mut filled = Vec::with_capacity(known.len());
    for depth in 0..depths {
        for class in classes() {
            for covered in [false, true] {
                let mut covers = [covered, !covered].into_iter();
                let nearest = covers.find_map(|covered| {
                    let of = |depth: u8| common.get(usize::from(depth))?[usize::from(covered)].as_ref();
                    (0..depths).find_map(|away| {
                        depth.checked_sub(away).and_then(of).or_else(|| depth.checked_add(away).and_then(of))
                    })
                });
                let any = nearest.map_or(none, |row| row[usize::from(class)]);
                let place = |kind| at(Place { depth, class, covered, kind });
                filled.extend(known[place(0)..=place(ANY_KIND)].iter().map(|value| value.unwrap_or(any)));
            }
        }
    }
    filled
}
