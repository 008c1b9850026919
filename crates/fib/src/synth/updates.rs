//! [`Updates`]: an endless stream of updates to a table.
//!
//! Real update streams hit few prefixes often: over 24 hours of May 2026 an eighth of the IPv4 table changed
//! at all, and 1,000 prefixes got 28 % of all updates. The stream draws from a ranked *hot set*, by a power
//! law over ranks. It remembers which prefixes are withdrawn, so that each update is possible at its time: a
//! withdrawal of a present prefix, a return of a withdrawn one, a new prefix that was never there.
//!
//! Defaults come from that trace (IPv4 1,393,421, IPv6 1,238,235 updates): 48 % repeat the table's route,
//! 46-48 % change the next hop, 2.1-2.8 % withdraw, as many return, 0.3-0.4 % announce a new prefix.

use std::time::Duration;

use rustc_hash::FxHashSet;

use super::rng::Rng;
use crate::address::{Address, Family};
use crate::next_hop::NextHop;
use crate::prefix::Prefix;
use crate::rib::Rib;
use crate::update::Update;

/// The specification of updates. Shares are relative to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpdateSpec {
    /// Share of announcements that repeat the table's route.
    pub duplicates: f64,
    /// Share of announcements of a present prefix with another next hop.
    pub changes: f64,
    /// Share of withdrawals.
    pub withdrawals: f64,
    /// Share of announcements of withdrawn prefixes, half of them with their old next hop.
    pub returns: f64,
    /// Share of announcements of new prefixes.
    pub new_prefixes: f64,
    /// Share of the table's prefixes that flap, 0 to 1; at least one prefix.
    pub hot: f64,
    /// Skew of the activity of hot prefixes: the n-th most active is drawn in proportion to n^-skew. 0 draws
    /// evenly.
    pub skew: f64,
    /// Updates a second; timestamps count from 0. Arrivals are evenly spaced.
    pub rate: f64,
    /// Number of next hops, with indexes from 1.
    pub next_hops: u32,
    /// The seed.
    pub seed: u64,
}

impl UpdateSpec {
    /// The mix of the real trace of a family, at its average rate (16 updates a second for IPv4, 14 for
    /// IPv6).
    pub fn real(family: Family) -> Self {
        let common = Self {
            duplicates: 0.4848,
            changes: 0.4602,
            withdrawals: 0.0271,
            returns: 0.0251,
            new_prefixes: 0.0028,
            hot: 0.13,
            skew: 0.75,
            rate: 16.1,
            next_hops: 62,
            seed: 1,
        };
        match family {
            Family::V4 => common,
            Family::V6 => Self {
                duplicates: 0.4803,
                changes: 0.4756,
                withdrawals: 0.0225,
                returns: 0.0174,
                new_prefixes: 0.0042,
                hot: 0.165,
                skew: 1.0,
                rate: 14.3,
                ..common
            },
        }
    }
}

/// An update and its time since the start of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed<A: Address> {
    /// Time since the start.
    pub at: Duration,
    /// The update.
    pub update: Update<A>,
}

/// An endless stream of updates, each valid for the table after all earlier ones. A table of 0 prefixes first
/// gets only new prefixes. A step is O(log hot set).
#[derive(Clone, Debug)]
pub struct Updates<A: Address> {
    spec: UpdateSpec,
    weights: [u32; 5],
    rng: Rng,
    /// Prefixes that flap, most active first, with their current or last next hop.
    hot: Vec<Member<A>>,
    /// Indexes into `hot` of withdrawn prefixes.
    gone: Vec<usize>,
    /// Prefixes that a new prefix must differ from.
    taken: Rib<A>,
    added: FxHashSet<Prefix<A>>,
    /// Running sums of the weights of `hot`.
    sums: Vec<f64>,
    made: u64,
}

#[derive(Clone, Copy, Debug)]
struct Member<A: Address> {
    prefix: Prefix<A>,
    next_hop: NextHop,
    present: bool,
}

impl<A: Address> Updates<A> {
    /// Makes a stream for a table, which is copied. O(prefixes).
    pub fn new(table: &Rib<A>, spec: &UpdateSpec) -> Self {
        let mut rng = Rng::stream(spec.seed, 11);
        let mut hot: Vec<Member<A>> = table
            .iter()
            .map(|(prefix, next_hop)| (prefix, next_hop, rng.chance(spec.hot)))
            .filter_map(|(prefix, next_hop, hot)| hot.then_some(Member { prefix, next_hop, present: true }))
            .collect();
        if hot.is_empty() {
            let first = table.iter().next();
            hot.extend(first.map(|(prefix, next_hop)| Member { prefix, next_hop, present: true }));
        }
        rng.shuffle(&mut hot);
        let shares = [spec.duplicates, spec.changes, spec.withdrawals, spec.returns, spec.new_prefixes];
        let mut stream = Self {
            spec: *spec,
            weights: weights(shares),
            rng,
            sums: Vec::with_capacity(hot.len()),
            hot,
            gone: Vec::new(),
            taken: table.clone(),
            added: FxHashSet::default(),
            made: 0,
        };
        (0..stream.hot.len()).for_each(|_| stream.grow_sums());
        stream
    }

    #[allow(clippy::cast_precision_loss)] // a rank
    fn grow_sums(&mut self) {
        let rank = (self.sums.len() + 1) as f64;
        self.sums.push(self.sums.last().unwrap_or(&0.0) + super::power::power(rank, -self.spec.skew));
    }

    /// Draws a present member by activity. A few tries are enough, because few are withdrawn at any time.
    fn present(&mut self) -> Option<usize> {
        let total = *self.sums.last()?;
        for _ in 0..64 {
            let at = self.rng.unit() * total;
            let index = self.sums.partition_point(|&sum| sum <= at).min(self.hot.len() - 1);
            if self.hot[index].present {
                return Some(index);
            }
        }
        self.hot.iter().position(|member| member.present)
    }

    fn other_next_hop(&mut self, than: NextHop) -> NextHop {
        let count = u64::from(self.spec.next_hops.max(1));
        let others = count - u64::from((1..=count).contains(&u64::from(than.0)));
        let drawn = u32::try_from(self.rng.below(others)).unwrap_or(0) + 1;
        NextHop(if others < count && drawn >= than.0 && others > 0 { drawn + 1 } else { drawn })
    }

    fn announce(&mut self, index: usize, next_hop: NextHop) -> Update<A> {
        let member = &mut self.hot[index];
        (member.next_hop, member.present) = (next_hop, true);
        Update::Announce { prefix: member.prefix, next_hop: Some(next_hop) }
    }

    /// Makes a new prefix near a present one, as networks grow.
    fn new_prefix(&mut self) -> Option<Prefix<A>> {
        let near = match self.hot.len() {
            0 => Prefix::around(A::MIN, A::BITS / 2),
            n => self.hot[self.rng.index(n)].prefix,
        };
        for attempt in 0..64u8 {
            let len = near.len().saturating_add(attempt / 16).clamp(1, A::BITS);
            let keep = len.min(near.len()).saturating_sub(1 + attempt / 4);
            let bits = A::from_u128_low(self.rng.bits128()).to_u128() & !A::MAX.keep(keep).to_u128();
            let address = near.address().keep(keep).to_u128() | bits;
            let prefix = Prefix::around(A::from_u128_low(address), len);
            if self.taken.get(prefix).is_none() && self.added.insert(prefix) {
                return Some(prefix);
            }
        }
        None
    }

    fn draw(&mut self) -> Option<Update<A>> {
        match self.rng.weighted(&self.weights) {
            0 => self.present().map(|i| self.announce(i, self.hot[i].next_hop)),
            1 => {
                let index = self.present()?;
                let next_hop = self.other_next_hop(self.hot[index].next_hop);
                Some(self.announce(index, next_hop))
            }
            2 => {
                let index = self.present()?;
                self.hot[index].present = false;
                self.gone.push(index);
                Some(Update::Withdraw { prefix: self.hot[index].prefix })
            }
            3 => {
                let index = match self.gone.len() {
                    0 => return None,
                    n => self.gone.swap_remove(self.rng.index(n)),
                };
                let same = self.hot[index].next_hop;
                let next_hop = if self.rng.chance(0.5) { same } else { self.other_next_hop(same) };
                Some(self.announce(index, next_hop))
            }
            _ => {
                let prefix = self.new_prefix()?;
                let next_hop = self.other_next_hop(NextHop::NONE);
                self.hot.push(Member { prefix, next_hop, present: true });
                self.grow_sums();
                Some(Update::Announce { prefix, next_hop: Some(next_hop) })
            }
        }
    }
}

impl<A: Address> Iterator for Updates<A> {
    type Item = Timed<A>;

    /// Ends only if no update of the mix is possible, such as a mix without new prefixes on an empty table.
    #[allow(clippy::cast_precision_loss)] // a count of updates
    fn next(&mut self) -> Option<Timed<A>> {
        let update = (0..1000).find_map(|_| self.draw())?;
        let seconds = self.made as f64 / self.spec.rate;
        self.made += 1;
        Some(Timed { at: Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO), update })
    }
}

/// Shares as integer weights: parts of a million of the largest. Negative and undefined shares count as 0.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped
fn weights(shares: [f64; 5]) -> [u32; 5] {
    let largest = shares.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    shares.map(|share| (share / largest * 1e6).clamp(0.0, 1e6) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{V4, V6};
    use crate::synth::{TableSpec, table};

    /// Shares of duplicates, changes, withdrawals, returns, new ones in a stream that is checked on the way.
    fn run<A: Address>(prefixes: usize, spec: &UpdateSpec, count: usize) -> [f64; 5] {
        let mut rib: Rib<A> = table(&TableSpec { prefixes, next_hops: 62, seed: 1 }).unwrap();
        let mut seen: FxHashSet<Prefix<A>> = rib.iter().map(|(prefix, _)| prefix).collect();
        let mut kinds = [0; 5];
        let mut before = Duration::ZERO;
        for Timed { at, update } in Updates::new(&rib, spec).take(count) {
            assert!(at >= before);
            before = at;
            let prefix = update.prefix();
            let kind = match (update, rib.get(prefix)) {
                (Update::Withdraw { .. }, had) => {
                    assert!(had.is_some(), "{prefix} is withdrawn and not there");
                    2
                }
                (Update::Announce { next_hop, .. }, Some(had)) => usize::from(next_hop != Some(had)),
                (Update::Announce { .. }, None) => 3 + usize::from(seen.insert(prefix)),
            };
            kinds[kind] += 1;
            assert_eq!(rib.apply(&update), kind != 0);
        }
        assert_eq!(kinds.iter().sum::<usize>(), count);
        kinds.map(|n| f64::from(u32::try_from(n).unwrap()) / f64::from(u32::try_from(count).unwrap()))
    }

    #[test]
    fn the_mix_is_the_real_one() {
        for (made, real) in run::<V4>(20_000, &UpdateSpec::real(Family::V4), 100_000)
            .into_iter()
            .zip([0.485, 0.460, 0.027, 0.025, 0.003])
        {
            assert!((made - real).abs() < 0.01, "{made} {real}");
        }
        for (made, real) in run::<V6>(20_000, &UpdateSpec::real(Family::V6), 100_000)
            .into_iter()
            .zip([0.480, 0.476, 0.022, 0.017, 0.004])
        {
            assert!((made - real).abs() < 0.01, "{made} {real}");
        }
    }

    #[test]
    fn any_mix_is_valid() {
        let real = UpdateSpec::real(Family::V4);
        let flaps =
            UpdateSpec { duplicates: 0.0, changes: 0.0, withdrawals: 1.0, returns: 1.0, hot: 0.01, ..real };
        run::<V4>(5_000, &flaps, 20_000);
        run::<V4>(0, &real, 5_000);
        run::<V4>(1, &UpdateSpec { next_hops: 1, ..real }, 1_000);
        run::<V6>(10, &UpdateSpec { skew: 0.0, hot: 1.0, ..real }, 5_000);
        let only_withdrawals =
            UpdateSpec { duplicates: 0.0, changes: 0.0, returns: 0.0, new_prefixes: 0.0, hot: 1.0, ..real };
        let rib: Rib<V4> = table(&TableSpec { prefixes: 100, next_hops: 2, seed: 1 }).unwrap();
        assert_eq!(Updates::new(&rib, &only_withdrawals).count(), 100);
    }

    #[test]
    fn a_rate_is_kept_and_a_seed_is_a_stream() {
        let rib: Rib<V4> = table(&TableSpec { prefixes: 1000, next_hops: 62, seed: 1 }).unwrap();
        let spec = UpdateSpec { rate: 1000.0, ..UpdateSpec::real(Family::V4) };
        let stream: Vec<_> = Updates::new(&rib, &spec).take(2001).collect();
        assert_eq!(stream[2000].at, Duration::from_secs(2));
        assert!(Updates::new(&rib, &spec).take(2001).eq(stream));
    }

    #[test]
    fn few_prefixes_get_most() {
        let rib: Rib<V4> = table(&TableSpec { prefixes: 100_000, next_hops: 62, seed: 1 }).unwrap();
        let mut counts = rustc_hash::FxHashMap::default();
        for timed in Updates::new(&rib, &UpdateSpec::real(Family::V4)).take(130_000) {
            *counts.entry(timed.update.prefix()).or_insert(0usize) += 1;
        }
        let mut counts: Vec<usize> = counts.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        // The most active 0.1 % of the table have 28 % of all real updates.
        let top: usize = counts.iter().take(100).sum();
        assert!((20_000..50_000).contains(&top), "{top}");
        assert!(counts.len() < 15_000);
    }
}
