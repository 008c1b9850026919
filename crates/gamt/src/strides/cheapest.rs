//! [`cheapest`]: the choice for today's caches.
//!
//! A batch goes through a level together: the step is taken by all its keys as long as one is not done, and
//! only those that are not done read. A level costs a lookup the step, if any of the keys that it goes along
//! with reads the level. To this come what its own read takes in so many bytes, if it reads, and the price of
//! the level's bytes, which take room in the caches from all other levels. That is a sum over levels, so one
//! pass over depths finds its least. Where that choice takes more memory than it may, the pass keeps at each
//! depth not the best way alone but every one that no other beats in cost and bytes both. This is exact as
//! well. The bytes that the rest takes at the least prune what can't end under the cap.
//!
//! On the real IPv6 table of 2026, with 1 MB of L2, these choices ran at, by prefix (M/s, medians of one
//! run): 14-14-4-4-4-4-4 147, 16-16-4-4-4-4 162, 14-14-4-4-4-8 147, 14-14-4-8-8 124; with 1,024 keys over and
//! over, 207, 237, 231 and
//! 264. Fewer levels are faster until they leave the caches, which the price stands for. Counting but the
//!      cache lines that
//! have longer prefixes in them as a level's bytes chose 16-17-7-8, with too many pages.

use super::{Costs, MAX_STRIDE, NARROW, Profile, narrow_unit};

/// The cost that [`cheapest`] minimises.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// The cost of reads.
    pub costs: Costs,
    /// A lookup's share of a step in nanoseconds, without the cost of its reads.
    pub step: f64,
    /// Keys that take a step together.
    pub together: u16,
    /// The part of lookups, from 0 to 1, whose addresses are drawn from prefixes; the others are uniformly
    /// random.
    pub prefix_traffic: f64,
    /// The price of a megabyte (2^20 bytes) of levels in nanoseconds a lookup.
    pub price: f64,
    /// The most bytes of all levels. If no choice keeps to it, the choice with the fewest bytes is taken.
    pub cap: u64,
}

impl Default for Objective {
    /// The default costs, steps of 64 keys that take 0.6 ns a key, half of each traffic, a fifth of a
    /// nanosecond a megabyte, and no cap.
    fn default() -> Self {
        let (step, together) = (0.6, 64);
        Self { costs: Costs::default(), step, together, prefix_traffic: 0.5, price: 0.2, cap: u64::MAX }
    }
}

impl Objective {
    /// Nanoseconds that a level is expected to take of a lookup.
    pub fn nanoseconds(&self, profile: &Profile, start: u8, bytes: u64) -> f64 {
        let of_traffic = |share: f64, reach: f64| {
            let any = 1.0 - (1.0 - reach).powi(self.together.into());
            share * (any * self.step + reach * (self.costs.of(bytes) - self.costs.of(0)))
        };
        of_traffic(self.prefix_traffic, profile.reach_prefix(start))
            + of_traffic(1.0 - self.prefix_traffic, profile.reach_random(start))
    }

    /// What a level counts for: its time and the price of its memory.
    fn cost(&self, profile: &Profile, start: u8, bytes: u64) -> f64 {
        self.nanoseconds(profile, start, bytes) + bytes as f64 / f64::from(1 << 20) * self.price
    }
}

/// Strides, of any number of levels, with the least expected cost of a lookup under the cap. They add up to
/// [`Profile::deepest`]. Equal costs go to fewer bytes, then to shorter last levels.
///
/// Counts with units as narrow as each level allows ([`Units::Narrow`](super::Units::Narrow)). O(bits ×
/// [`MAX_STRIDE`]) unless the cap binds.
pub fn cheapest(profile: &Profile, largest_leaf: u32, objective: &Objective) -> Vec<u8> {
    let by_end = |end| narrow_unit(profile, end, largest_leaf).into();
    let unit_bytes: Vec<u64> = (0..=profile.deepest()).map(by_end).collect();
    let all_wide = vec![8; unit_bytes.len()];
    let narrow = (u64::from(largest_leaf) < NARROW)
        .then(|| Search { profile, objective, unit_bytes, most_units: NARROW }.best())
        .flatten();
    let wide = Search { profile, objective, unit_bytes: all_wide, most_units: u64::MAX }.best();
    // Which of the two is over the cap matters first; then cost; then bytes, the narrow one first.
    let rank = |found: &Found| (found.bytes.max(objective.cap), found.cost, found.bytes);
    [narrow, wide]
        .into_iter()
        .flatten()
        .reduce(|a, b| if rank(&b) < rank(&a) { b } else { a })
        .map(|found| found.strides)
        .expect("without a bound on units there is a way to cut")
}

/// The search with units of some width.
struct Search<'a> {
    profile: &'a Profile,
    objective: &'a Objective,
    /// Bytes of a unit, by the depth at which its level ends.
    unit_bytes: Vec<u64>,
    /// Units that a level may have.
    most_units: u64,
}

/// A choice of strides.
struct Found {
    cost: f64,
    bytes: u64,
    strides: Vec<u8>,
}

/// A way to cut the bits above a depth.
#[derive(Clone, Copy)]
struct Way {
    cost: f64,
    bytes: u64,
    /// The last level, and which of the ways down to its start it follows.
    stride: u8,
    before: usize,
}

impl Search<'_> {
    /// The best choice; `None` where a level would have too many units whatever is chosen.
    fn best(&self) -> Option<Found> {
        let free = self.search(|ways, _| cheapest_of(ways).into_iter().collect())?;
        if free.bytes <= self.objective.cap {
            return Some(free);
        }
        let rest = self.least_bytes();
        let cap = self.objective.cap.max(rest[0]?);
        self.search(|ways, end| {
            let fits =
                |way: &Way| rest[usize::from(end)].is_some_and(|rest| way.bytes.saturating_add(rest) <= cap);
            undominated(ways.into_iter().filter(fits).collect())
        })
    }

    /// Goes down by depths; `keep` says which of the ways to a depth to go on from.
    fn search(&self, keep: impl Fn(Vec<Way>, u8) -> Vec<Way>) -> Option<Found> {
        let mut ways = vec![vec![Way { cost: 0.0, bytes: 0, stride: 0, before: 0 }]];
        for end in 1..=self.profile.deepest() {
            let mut here = Vec::new();
            for stride in 1..=end.min(MAX_STRIDE) {
                let start = end - stride;
                let Some(bytes) = self.bytes(start, stride) else { continue };
                let cost = self.objective.cost(self.profile, start, bytes);
                here.extend(ways[usize::from(start)].iter().enumerate().map(|(before, way)| Way {
                    cost: way.cost + cost,
                    bytes: way.bytes.saturating_add(bytes),
                    stride,
                    before,
                }));
            }
            ways.push(keep(here, end));
        }
        self.follow(&ways)
    }

    /// The cheapest way to the deepest depth, from its end to its beginning.
    fn follow(&self, ways: &[Vec<Way>]) -> Option<Found> {
        let mut end = self.profile.deepest();
        let last = cheapest_of(ways[usize::from(end)].iter().copied())?;
        let (mut way, mut strides) = (last, Vec::new());
        while end > 0 {
            strides.push(way.stride);
            end -= way.stride;
            way = ways[usize::from(end)][way.before];
        }
        strides.reverse();
        Some(Found { cost: last.cost, bytes: last.bytes, strides })
    }

    /// Bytes of a level that may be.
    fn bytes(&self, start: u8, stride: u8) -> Option<u64> {
        let units = self.profile.units(start, stride);
        (units <= self.most_units).then(|| units.saturating_mul(self.unit_bytes[usize::from(start + stride)]))
    }

    /// The fewest bytes that the rest of the bits take, by the depth that it starts at.
    fn least_bytes(&self) -> Vec<Option<u64>> {
        let deepest = self.profile.deepest();
        let mut least = vec![None; usize::from(deepest) + 1];
        least[usize::from(deepest)] = Some(0u64);
        for start in (0..deepest).rev() {
            least[usize::from(start)] = (1..=MAX_STRIDE.min(deepest - start))
                .filter_map(|stride| {
                    Some(self.bytes(start, stride)?.saturating_add(least[usize::from(start + stride)]?))
                })
                .min();
        }
        least
    }
}

/// The cheapest way, of several the one with the fewest bytes, of several the first.
fn cheapest_of(ways: impl IntoIterator<Item = Way>) -> Option<Way> {
    ways.into_iter().reduce(|a, b| if (b.cost, b.bytes) < (a.cost, a.bytes) { b } else { a })
}

/// The ways that no other beats in cost and bytes both.
fn undominated(mut ways: Vec<Way>) -> Vec<Way> {
    ways.sort_by(|a, b| a.bytes.cmp(&b.bytes).then(a.cost.total_cmp(&b.cost)));
    let mut least = f64::INFINITY;
    ways.retain(|way| {
        let better = way.cost < least;
        least = least.min(way.cost);
        better
    });
    ways
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{compositions, profiles};
    use super::super::{Units, levels};
    use super::*;

    /// Cost and bytes, with units of the width that the strides need.
    fn value(profile: &Profile, strides: &[u8], result: u32, objective: &Objective) -> (f64, u64) {
        let units = Units::Narrow.bytes(profile, strides, result);
        levels(strides).zip(units).fold((0.0, 0u64), |(cost, total), ((start, stride), unit)| {
            let bytes = profile.units(start, stride) * u64::from(unit);
            let time = objective.nanoseconds(profile, start, bytes);
            (cost + time + objective.price * bytes as f64 / 1_048_576.0, total + bytes)
        })
    }

    /// The least cost under the cap, or the least at the fewest bytes where none is, of all ways to cut.
    fn least(profile: &Profile, result: u32, objective: &Objective) -> (f64, u64) {
        let all: Vec<(f64, u64)> = compositions(profile.deepest())
            .iter()
            .map(|strides| value(profile, strides, result, objective))
            .collect();
        let fewest = all.iter().map(|&(_, bytes)| bytes).min().unwrap();
        let cap = objective.cap.max(fewest);
        let under = all.into_iter().filter(|&(_, bytes)| bytes <= cap);
        under.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap()
    }

    fn costs() -> impl Strategy<Value = Costs> {
        let point = (0u32..34, 0.0..1.0f64, 0.0..10.0f64);
        proptest::collection::vec(point, 1..6).prop_map(|points| {
            let measured = points.into_iter().map(|(log, part, ns)| {
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // any size will do
                let size = ((1u64 << log) as f64 * (1.0 + part)) as u64;
                (size, ns)
            });
            Costs::new(measured).expect("times are positive")
        })
    }

    fn flat(nodes: &[u64], reach: &[f64]) -> Profile {
        Profile::from_parts(1, nodes.to_vec(), reach.to_vec(), reach.to_vec())
    }

    #[test]
    fn free_memory_takes_one_level_and_dear_memory_the_smallest() {
        let profile = flat(&[1, 1, 1, 1, 1, 1, 1, 1], &[1.0; 8]);
        let objective = |price| Objective { price, ..Objective::default() };
        assert_eq!(cheapest(&profile, 1, &objective(0.0)), [8]);
        // Bits one by one, and two at a time, take as many units, nearly: fewer levels cost less.
        assert_eq!(cheapest(&profile, 1, &objective(1e6)), [2, 2, 2, 2]);
    }

    #[test]
    fn a_step_is_paid_by_all_as_long_as_one_goes_on() {
        let objective =
            Objective { costs: Costs::new([(1, 1.0), (100, 3.0)]).unwrap(), ..Objective::default() };
        let reach = [1.0, 0.5, 0.01];
        let profile = Profile::from_parts(1, vec![1; 3], reach.to_vec(), reach.to_vec());
        let close = |start, bytes, ns: f64| (objective.nanoseconds(&profile, start, bytes) - ns).abs() < 1e-9;
        assert!(close(0, 1, 0.6) && close(0, 100, 0.6 + 2.0));
        assert!(close(1, 100, 0.6 + 1.0));
        assert!(close(2, 100, 0.6 * (1.0 - 0.99f64.powi(64)) + 0.02));
    }

    #[test]
    fn memory_is_kept_small_where_lookups_go() {
        // Full to bit 20, a chain of 8 bits beneath each, reached by all or by next to none.
        let nodes: Vec<u64> = (0..28).map(|depth: u32| 1 << depth.min(20)).collect();
        let bytes = |deep: f64| {
            let profile = flat(&nodes, &[vec![1.0; 20], vec![deep; 8]].concat());
            let objective = Objective { price: 0.01, ..Objective::default() };
            value(&profile, &cheapest(&profile, 1, &objective), 1, &objective).1
        };
        assert!(bytes(1.0) < bytes(1e-3), "{} {}", bytes(1.0), bytes(1e-3));
    }

    #[test]
    fn the_cap_holds_where_it_can() {
        let profile = flat(&[1, 1, 1, 1, 1, 1, 1, 1], &[1.0; 8]);
        let under = |cap| cheapest(&profile, 1, &Objective { cap, price: 0.0, ..Objective::default() });
        // Leaves of one byte in the last level, two bytes in all before it.
        assert_eq!(under(256), [8]);
        assert_eq!(under(255).len(), 2);
        for cap in [0, 28] {
            let bytes = value(&profile, &under(cap), 1, &Objective::default()).1;
            assert_eq!(bytes, 3 * 4 * 2 + 4);
        }
    }

    #[test]
    fn sizes_past_all_bounds_are_cut_all_the_same() {
        let profile = flat(&[u64::MAX; 40], &[1.0; 40]);
        for cap in [0, u64::MAX] {
            let strides = cheapest(&profile, 1, &Objective { cap, ..Objective::default() });
            assert_eq!(strides.iter().sum::<u8>(), 40);
        }
    }

    proptest! {
        #[test]
        fn no_way_to_cut_is_cheaper(
            profile in profiles(),
            costs in costs(),
            prefix_traffic in 0.0..=1.0f64,
            price in prop_oneof![Just(0.0), 0.0..0.1f64, 0.0..1000.0f64],
            // How far the cap is on the way from the fewest bytes to the bytes of the free choice, or below.
            cap in proptest::option::of(-0.1..1.1f64),
            result in prop_oneof![4 => Just(1u32), 1 => Just(1 << 24)],
        ) {
            let free = Objective { costs, prefix_traffic, price, ..Objective::default() };
            let objective = match cap {
                None => free,
                Some(share) => {
                    let fewest = least(&profile, result, &Objective { cap: 0, ..free.clone() }).1 as f64;
                    let most = value(&profile, &cheapest(&profile, result, &free), result, &free).1 as f64;
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // any cap will do
                    let cap = (fewest + share * (most - fewest)) as u64;
                    Objective { cap, ..free }
                }
            };
            let strides = cheapest(&profile, result, &objective);
            prop_assert_eq!(strides.iter().sum::<u8>(), profile.deepest());
            let (cost, bytes) = value(&profile, &strides, result, &objective);
            let (best, its_bytes) = least(&profile, result, &objective);
            prop_assert!(cost <= best + 1e-9 * best.abs().max(1.0), "{strides:?} {cost} {best}");
            prop_assert!(bytes <= objective.cap.max(its_bytes), "{strides:?} {bytes} {its_bytes}");
        }
    }
}
