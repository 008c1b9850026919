//! [`Shape`]: the structure of a table's prefixes, in numbers small enough to ship with the code.
//!
//! The idea: walk the binary trie of a table from the top. At each node write down, by *the number of
//! prefixes below it*, whether the node itself is a prefix, and what part of the others lies in its left
//! half. `cascade` does the reverse: it starts with a number of prefixes and draws the same choices, so that
//! dense blocks become as dense, runs of siblings as long, and nests as deep as they were.
//!
//! ```text
//!            n = 40, not covered              by (depth, about 40, covered or not, kind of sibling):
//!             /          \                      the node is a prefix            probability
//!         k = 31        n-k = 9                 all below is one run of a length  probability, lengths
//!                                               k, in 19 bins                   weights: none, all, half, others
//!                                               the halves are copies           probability, where k = n-k
//! ```
//!
//! The number of prefixes in a large part of the address space follows from history, not from chance: for the
//! first 8 bits of IPv4 and 16 of IPv6 the shape lists these numbers ([`Shape::regions`]).
//!
//! The purpose of each part, by its effect on the full IPv4 table: without kinds, copies and runs, 42 % of
//! the prefixes came right after one of equal length instead of the real 56 % (with them: 53 %). With sizes
//! classed by octave only, or splits by eighths, there were twice as many completely full blocks. Letting a
//! lone prefix follow the one before it changed nothing and was dropped.

use std::collections::BTreeMap;

use super::hops::HopShape;
use crate::address::{Address, Family};
use crate::next_hop::NextHop;
use crate::prefix::Prefix;
use crate::rib::Rib;

/// The number of outcomes of a split: none left, all left, half, or one of the [`MAGNITUDES`] with the
/// smaller part on the left, then on the right.
pub(super) const BINS: usize = 3 + 2 * MAGNITUDES;

/// The number of ranges for the smaller part of `n`, closest together near nothing and near half: from n/4
/// down by halves, and from n/4 up closer and closer to half. Full blocks and blocks of one prefix are exact;
/// eighths would blur them.
pub(super) const MAGNITUDES: usize = 8;

/// Size classes of a number of prefixes by [`class_of`].
pub(super) const CLASSES: usize = 119;

/// The fewest observations for a row of its own. Rarer ones borrow a neighbour's row.
const WORTH_A_ROW: u32 = 24;

/// The fewest observations for a row for all kinds.
const WORTH_A_COMMON_ROW: u32 = 4;

/// The number that means a probability of 1.
pub(super) const SURE: u16 = 4095;

/// The least distance, in units of [`SURE`], between the row of a kind and the row for all kinds, for the
/// former to be kept.
const WORTH_A_KIND: u32 = 160;

/// The number of kinds of nodes by [`kind`], with the one for all kinds.
pub(super) const KINDS: usize = 11;

/// The kind of rows for all kinds of nodes.
pub(super) const ANY_KIND: u8 = 10;

/// The relation of a node to its sibling: alone, left or right; whether both share the prefixes evenly; for a
/// right node whether the left one is a prefix itself. Siblings are alike, which makes runs.
#[inline]
pub(super) fn kind(sibling: Sibling, even: bool) -> u8 {
    let even = u8::from(even);
    match sibling {
        Sibling::Alone { zeros: 0 } => 0,
        Sibling::Alone { zeros: 1..=3 } => 8,
        Sibling::Alone { .. } => 9,
        Sibling::Left => 1 + even,
        Sibling::Right { left_is_prefix } => 3 + even + 2 * u8::from(left_is_prefix),
        Sibling::Model => 7,
    }
}

/// The sibling of a node, and the side that the node is on.
#[derive(Clone, Copy)]
pub(super) enum Sibling {
    /// No prefix lies in the other half.
    Alone {
        /// The number of zero bits at the end of the node's prefix: round numbers are assigned first.
        zeros: u8,
    },
    /// There is a right sibling.
    Left,
    /// There is a right sibling, and it is a copy of this node.
    Model,
    /// There is a left sibling.
    Right {
        /// Whether it is a prefix itself.
        left_is_prefix: bool,
    },
}

impl Sibling {
    /// The sibling of a left half.
    #[inline]
    pub(super) fn of_left(is_right_empty: bool, copied: bool, zeros: u8) -> Self {
        match (is_right_empty, copied) {
            (true, _) => Self::Alone { zeros },
            (_, true) => Self::Model,
            _ => Self::Left,
        }
    }
}

/// The structure of a table of one family: lengths, density by region, nesting, runs, and next hops.
///
/// [`Shape::ipv4`] and [`Shape::ipv6`] are today's full tables. [`Shape::of`] measures any other table.
/// [`super::table_of`] then generates similar tables of any size.
#[derive(Clone, Debug)]
pub struct Shape {
    pub(super) family: Family,
    /// Number of prefixes of each length. Only ratios matter.
    pub(super) by_length: Vec<u32>,
    /// Bits of a region.
    pub(super) region_bits: u8,
    /// Leading bits of a region, number of prefixes in it.
    pub(super) regions: Vec<(u32, u32)>,
    /// The probability, of [`SURE`], that a node is a prefix.
    pub(super) own: Vec<Row<u16>>,
    pub(super) splits: Vec<Row<Split>>,
    /// Kind of a run by [`run_kind`], length of its prefixes, how many such.
    pub(super) runs: Vec<(u16, u8, u32)>,
    pub(super) hops: HopShape,
}

/// Nodes that are drawn by the same row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// Length of the node's prefix.
    pub(super) depth: u8,
    /// Size class of the number of prefixes in its subtree.
    pub(super) class: u8,
    /// Whether a prefix covers it.
    pub(super) covered: bool,
    /// Its relation to its sibling.
    pub(super) kind: u8,
}

/// The values that a node draws from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row<T> {
    pub(super) place: Place,
    pub(super) value: T,
}

/// The split of the prefixes below a node. Its place counts the node's own prefix as cover, and not in the
/// class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split {
    /// The probabilities, in units of [`SURE`], that all prefixes are one run of one length: from the start
    /// of the node on, and up to its end.
    pub(super) runs: [u16; 2],
    /// Weights of the bins, for prefixes that are not one run.
    pub(super) bins: [u16; BINS],
    /// The probability, in units of [`SURE`], that of two halves with equally many prefixes the right one
    /// repeats the left one.
    pub(super) copy: u16,
}

impl Place {
    fn any_kind(self) -> Self {
        Self { kind: ANY_KIND, ..self }
    }
}

impl Shape {
    /// Measures a table. O(prefixes * bits).
    pub fn of<A: Address>(rib: &Rib<A>) -> Self {
        let routes: Vec<(Prefix<A>, NextHop)> = rib.iter().collect();
        let region_bits = Self::region_bits_of(A::FAMILY);
        let mut tally = Tally::default();
        let mut regions = Vec::new();
        let long = |route: &(Prefix<A>, NextHop)| route.0.len() >= region_bits;
        let inside: Vec<Prefix<A>> = routes.iter().filter(|r| long(r)).map(|r| r.0).collect();
        for block in inside.chunk_by(|a, b| a.address().common_bits(b.address()) >= region_bits) {
            let number = leading(block[0].address(), region_bits);
            regions.push((number, saturate(block.len())));
            tally.walk(region_bits, block, Above::REGION);
        }
        Self {
            family: A::FAMILY,
            by_length: rib.by_length().iter().map(|&count| saturate(count)).collect(),
            region_bits,
            regions,
            own: rows(&tally.own),
            splits: rows(&tally.splits),
            runs: tally.runs.iter().map(|(&(kind, len), &count)| (kind, len, count)).collect(),
            hops: HopShape::of(&routes),
        }
    }

    /// The family of the tables it makes.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Number of prefixes of the table that was measured.
    pub fn prefixes(&self) -> usize {
        self.by_length.iter().map(|&count| count as usize).sum()
    }

    /// Number of prefixes of each length in the table that was measured, from 0.
    pub fn by_length(&self) -> &[u32] {
        &self.by_length
    }

    /// The parts of the address space that hold prefixes: leading bits and number of prefixes.
    pub fn regions(&self) -> &[(u32, u32)] {
        &self.regions
    }

    pub(super) fn region_bits_of(family: Family) -> u8 {
        match family {
            Family::V4 => 8,
            Family::V6 => 16,
        }
    }
}

/// The first `bits` bits of an address as a number; `bits` is 1 to 32.
#[allow(clippy::cast_possible_truncation)] // at most 32 bits are left
fn leading<A: Address>(address: A, bits: u8) -> u32 {
    (address.to_u128() >> (A::BITS - bits)) as u32
}

fn saturate(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The size class of a number. Each number up to 16 has its own class. Above that there are six classes an
/// octave: a power of two, a power of two plus one (a full block, without and with its aggregate), and the
/// other even and odd numbers in either half of the octave.
#[inline]
#[allow(clippy::cast_possible_truncation)] // under CLASSES
pub(super) fn class_of(n: u64) -> u8 {
    match n {
        0..=16 => n as u8,
        _ => {
            let octave = n.ilog2();
            let odd = (n & 1) as u32;
            let within = if n >> 1 << 1 == 1 << octave { 0 } else { 2 + 2 * (n >> (octave - 1) & 1) as u32 };
            (17 + (octave - 4) * 6 + within + odd).min(CLASSES as u32 - 1) as u8
        }
    }
}

/// Orders of runs.
pub(super) const ORDERS: u16 = 32;

/// The class of runs that are drawn alike: below nodes of a depth, covered or not, of a number of prefixes up
/// to a power of two.
#[inline]
#[allow(clippy::cast_possible_truncation)] // under 64
pub(super) fn run_kind(depth: u8, n: u64, covered: bool) -> u16 {
    let order = (64 - n.saturating_sub(1).leading_zeros()) as u16;
    (u16::from(depth) * ORDERS + order.min(ORDERS - 1)) * 2 + u16::from(covered)
}

/// The bin of a split of `n` prefixes of which `left` lie left.
pub(super) fn bin_of(left: u64, n: u64) -> usize {
    let smaller = left.min(n - left);
    let right_is_smaller = usize::from(left > smaller);
    match smaller {
        0 => usize::from(left > 0),
        _ if left * 2 == n => 2,
        _ => 3 + right_is_smaller * MAGNITUDES + magnitude_of(smaller, n),
    }
}

/// The magnitude of the smaller part of `n`, which is over 0 and under half.
fn magnitude_of(smaller: u64, n: u64) -> usize {
    (0..MAGNITUDES - 1).find(|&m| smallest(m, n) <= smaller && smaller < past(m, n)).unwrap_or(MAGNITUDES - 1)
}

/// The smallest part of `n` in a magnitude.
#[inline]
pub(super) fn smallest(magnitude: usize, n: u64) -> u64 {
    match magnitude {
        // n/8..n/4, n/16..n/8, n/32..n/16, 0..n/32
        0..3 => (n >> (magnitude + 3)) + 1,
        3 => 1,
        // Half less n/4..n/8, n/8..n/16, n/16..n/32, n/32..0
        4 => (n >> 2) + 1,
        _ => n.div_ceil(2).saturating_sub(n >> (magnitude - 2)),
    }
}

/// One past the largest part of `n` in a magnitude.
#[inline]
pub(super) fn past(magnitude: usize, n: u64) -> u64 {
    match magnitude {
        0..4 => (n >> (magnitude + 2)) + 1,
        4..7 => n.div_ceil(2).saturating_sub(n >> (magnitude - 1)),
        _ => n.div_ceil(2),
    }
}

/// Whether the prefixes of two halves at `depth` are equal but for the half.
fn is_copy<A: Address>(depth: u8, left: &[Prefix<A>], right: &[Prefix<A>]) -> bool {
    let low = |p: &Prefix<A>| (p.address().to_u128() & !A::MAX.keep(depth).to_u128(), p.len());
    left.len() == right.len() && left.iter().map(low).eq(right.iter().map(low))
}

/// Part of so many.
#[derive(Clone, Copy, Default)]
struct Share {
    part: u32,
    whole: u32,
}

impl Share {
    fn take(&mut self, is_part: bool) {
        self.whole += 1;
        self.part += u32::from(is_part);
    }
}

/// Whether two or more prefixes below a node are one run: of one length, without a gap, from the start of the
/// node on (`Some(false)`), or up to its end (`Some(true)`).
fn run_of<A: Address>(depth: u8, prefixes: &[Prefix<A>]) -> Option<bool> {
    let (first, last) = (prefixes.first()?, prefixes.last()?);
    let step = |pair: &[Prefix<A>]| {
        pair[0].len() == pair[1].len() && pair[0].last().next() == Some(pair[1].address())
    };
    let at_start = first.address().keep(depth) == first.address();
    let at_end = first.address().fill(depth) == last.last();
    (prefixes.len() > 1 && (at_start || at_end) && prefixes.windows(2).all(step)).then_some(!at_start)
}

/// The properties of a node that depend on the nodes above it.
#[derive(Clone, Copy)]
pub(super) struct Above {
    pub(super) covered: bool,
    pub(super) kind: u8,
    /// Zero bits at the end of its prefix, within its region.
    pub(super) zeros: u8,
}

impl Above {
    /// The top of a region.
    pub(super) const REGION: Self = Self { covered: false, kind: 0, zeros: 0 };
}

#[derive(Default)]
struct Tally {
    /// Nodes, and how many of them are prefixes.
    own: BTreeMap<Place, Share>,
    splits: BTreeMap<Place, Splits>,
    /// Runs by [`run_kind`] and length of their prefixes.
    runs: BTreeMap<(u16, u8), u32>,
}

/// Runs at the start and the end; the other splits by bin; even splits, and how many of them are copies.
#[derive(Clone, Copy, Default)]
struct Splits {
    runs: [u32; 2],
    bins: [u32; BINS],
    copies: Share,
}

impl Tally {
    /// Counts the node at `depth` over all of `prefixes`, which is not empty, and all nodes below it.
    fn walk<A: Address>(&mut self, depth: u8, prefixes: &[Prefix<A>], at: Above) {
        let Above { covered, kind: of_kind, zeros } = at;
        let own = prefixes[0].len() == depth;
        let place = Place { depth, class: class_of(prefixes.len() as u64), covered, kind: of_kind };
        self.own.entry(place).or_default().take(own);
        let below = &prefixes[usize::from(own)..];
        let covered = covered || own;
        if below.is_empty() {
            return;
        }
        let place = Place { depth, class: class_of(below.len() as u64), covered, kind: of_kind };
        if let Some(end) = run_of(depth, below) {
            self.splits.entry(place).or_default().runs[usize::from(end)] += 1;
            *self.runs.entry((run_kind(depth, below.len() as u64, covered), below[0].len())).or_default() +=
                1;
            return;
        }
        let middle = below.partition_point(|p| p.address().to_u128() >> (A::BITS - 1 - depth) & 1 == 0);
        let (left, right) = below.split_at(middle);
        let even = left.len() == right.len();
        let copied = even && is_copy(depth + 1, left, right);
        let splits = self.splits.entry(place).or_default();
        splits.bins[bin_of(left.len() as u64, below.len() as u64)] += 1;
        if even {
            splits.copies.take(copied);
        }
        if !left.is_empty() {
            let sibling = Sibling::of_left(right.is_empty(), copied, zeros + 1);
            self.walk(depth + 1, left, Above { covered, kind: kind(sibling, even), zeros: zeros + 1 });
        }
        if !right.is_empty() && !copied {
            let sibling = match left.first() {
                None => Sibling::Alone { zeros: 0 },
                Some(first) => Sibling::Right { left_is_prefix: first.len() == depth + 1 },
            };
            self.walk(depth + 1, right, Above { covered, kind: kind(sibling, even), zeros: 0 });
        }
    }
}

/// Observations that can be added.
trait Seen: Clone + Default {
    type Value: Copy;
    fn count(&self) -> u32;
    fn add(&mut self, other: &Self);
    fn value(&self) -> Self::Value;
    /// The distance of two values, in units of [`SURE`].
    fn apart(a: Self::Value, b: Self::Value) -> u32;
}

impl Seen for Share {
    type Value = u16;

    fn count(&self) -> u32 {
        self.whole
    }

    fn add(&mut self, other: &Self) {
        self.part += other.part;
        self.whole += other.whole;
    }

    fn value(&self) -> u16 {
        scale(self.part, self.whole)
    }

    fn apart(a: u16, b: u16) -> u32 {
        u32::from(a.abs_diff(b))
    }
}

impl Seen for Splits {
    type Value = Split;

    fn count(&self) -> u32 {
        self.bins.iter().chain(&self.runs).sum()
    }

    fn add(&mut self, other: &Self) {
        for (sum, bin) in self.bins.iter_mut().zip(other.bins) {
            *sum += bin;
        }
        self.copies.add(&other.copies);
        self.runs = [self.runs[0] + other.runs[0], self.runs[1] + other.runs[1]];
    }

    fn value(&self) -> Split {
        let (seen, split) = (self.count(), self.bins.iter().sum());
        let runs = self.runs.map(|n| scale(n, seen));
        Split { runs, bins: self.bins.map(|n| scale(n, split)), copy: self.copies.value() }
    }

    fn apart(a: Split, b: Split) -> u32 {
        let bins: u32 = a.bins.iter().zip(b.bins).map(|(a, b)| u32::from(a.abs_diff(b))).sum();
        let runs: u32 = a.runs.iter().zip(b.runs).map(|(a, b)| u32::from(a.abs_diff(b))).sum();
        bins / 2 + runs + u32::from(a.copy.abs_diff(b.copy)) * u32::from(a.bins[2]) / u32::from(SURE)
    }
}

/// The rows of places with enough observations: one for each kind that differs, and one for all other kinds
/// together.
fn rows<S: Seen>(seen: &BTreeMap<Place, S>) -> Vec<Row<S::Value>> {
    let mut kinds: BTreeMap<Place, Vec<(Place, &S)>> = BTreeMap::new();
    for (&place, one) in seen {
        kinds.entry(place.any_kind()).or_default().push((place, one));
    }
    let sum = |parts: &[(Place, &S)]| {
        let mut sum = S::default();
        parts.iter().for_each(|(_, part)| sum.add(part));
        sum
    };
    let mut rows = Vec::new();
    for (place, parts) in kinds {
        let all = sum(&parts);
        let differs = |&(_, one): &(Place, &S)| {
            one.count() >= WORTH_A_ROW && S::apart(one.value(), all.value()) >= WORTH_A_KIND
        };
        let (own, others): (Vec<_>, Vec<_>) = parts.into_iter().partition(differs);
        rows.extend(own.into_iter().map(|(place, one)| Row { place, value: one.value() }));
        let others = sum(&others);
        let common = if others.count() >= WORTH_A_ROW { others } else { all };
        if common.count() >= WORTH_A_COMMON_ROW {
            rows.push(Row { place, value: common.value() });
        }
    }
    rows
}

/// `part / whole` in units of [`SURE`], rounded; 0 if `whole` is 0.
fn scale(part: u32, whole: u32) -> u16 {
    let whole = u64::from(whole.max(1));
    u16::try_from((u64::from(part) * u64::from(SURE) + whole / 2) / whole).unwrap_or(SURE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::V4;

    #[test]
    fn classes_ascend_and_tell_full_blocks_apart() {
        for octave in 5..21 {
            let full = 1u64 << octave;
            assert_ne!(class_of(full), class_of(full + 1));
            assert_ne!(class_of(full), class_of(full + 2));
            assert!(class_of(2 * full - 1) > class_of(full));
        }
        assert!((0..100_000).all(|n| usize::from(class_of(n)) < CLASSES));
        assert!((17..100_000).all(|n| u64::from(class_of(n)) % 2 != n % 2), "from 17 on, parity alternates");
        assert_eq!(usize::from(class_of(u64::MAX)), CLASSES - 1);
    }

    #[test]
    fn every_split_has_a_bin_that_leads_back() {
        for n in 1..600 {
            for left in 0..=n {
                let bin = bin_of(left, n);
                let smaller = left.min(n - left);
                match bin {
                    0 => assert_eq!(left, 0),
                    1 => assert_eq!(left, n),
                    2 => assert_eq!(2 * left, n),
                    _ => {
                        let magnitude = (bin - 3) % MAGNITUDES;
                        let range = smallest(magnitude, n)..past(magnitude, n);
                        assert!(range.contains(&smaller), "{left} of {n}: {magnitude} {range:?}");
                        assert_eq!(bin - 3 < MAGNITUDES, left == smaller);
                    }
                }
            }
        }
    }

    #[test]
    fn runs_are_whole_and_at_an_end() {
        let prefixes = |numbers: &[u32]| -> Vec<Prefix<V4>> {
            numbers.iter().map(|&n| Prefix::around(V4(10 << 24 | n << 8), 24)).collect()
        };
        assert_eq!(run_of(20, &prefixes(&[0, 1, 2])), Some(false));
        assert_eq!(run_of(20, &prefixes(&[14, 15])), Some(true));
        assert_eq!(run_of(20, &prefixes(&[1, 2])), None);
        assert_eq!(run_of(20, &prefixes(&[0, 2])), None);
        assert_eq!(run_of(20, &prefixes(&[0])), None);
    }
}
