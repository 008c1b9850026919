//! Synthetic routing tables and update streams that behave like real ones. They depend on a seed only, and
//! are equal on every platform.
//!
//! A table is drawn in three steps: `cascade` places the prefixes by a [`Shape`], `lengths` makes the number
//! of each length exact, `hops` gives next hops that fit their surroundings.
//!
//! ```
//! use wirespeed_fib::synth::{self, TableSpec};
//! use wirespeed_fib::{Rib, V4};
//!
//! let table: Rib<V4> = synth::table(&TableSpec { prefixes: 1000, next_hops: 8, seed: 1 })?;
//! assert_eq!(table.len(), 1000);
//! # Ok::<(), synth::SynthError>(())
//! ```

mod cascade;
mod fib;
mod file;
mod hops;
mod lengths;
pub(crate) mod power;
mod shape;
#[cfg(test)]
pub(crate) mod tests;
pub mod updates;

pub use fib::{fib, next_hop_texts};
pub use shape::Shape;
pub use updates::{Timed, UpdateSpec, Updates};
pub use wirespeed_rng as rng;

use crate::address::{Address, Family};
use crate::next_hop::NextHop;
use crate::prefix::Prefix;
use crate::rib::Rib;
use cascade::Cascade;
use rng::Rng;

/// The specification of a table. Equal specifications give equal tables on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableSpec {
    /// Number of prefixes, exactly.
    pub prefixes: usize,
    /// The number of next hops, with indexes from 1; at least 1 unless there are no prefixes. A table with
    /// many more prefixes than next hops uses all next hops.
    pub next_hops: u32,
    /// The seed.
    pub seed: u64,
}

impl TableSpec {
    /// Today's full table of a family: 1,042,325 IPv4 or 246,175 IPv6 prefixes, 62 next hops, seed 1.
    pub fn full(family: Family) -> Self {
        let prefixes = match family {
            Family::V4 => 1_042_325,
            Family::V6 => 246_175,
        };
        Self { prefixes, next_hops: 62, seed: 1 }
    }
}

/// The reason why a table can't be generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SynthError {
    /// A table of this size needs more prefixes of a length than exist.
    #[error("{prefixes} {family} prefixes need {wanted} of length {len}, and there are {exist}")]
    TooManyPrefixes {
        /// The given number.
        prefixes: usize,
        /// The family.
        family: Family,
        /// The length with too few prefixes.
        len: u8,
        /// The number that the table needs.
        wanted: usize,
        /// The number that exists.
        exist: u128,
    },
    /// There are prefixes, but no next hops.
    #[error("{prefixes} prefixes need at least 1 next hop, not 0")]
    NoNextHops {
        /// The given number of prefixes.
        prefixes: usize,
    },
    /// There are more next hops than names.
    #[error("{count} next hops are more than there are names")]
    NextHopNames {
        /// The given number.
        count: u32,
    },
    /// The shape was measured on an empty table.
    #[error("a shape of an empty table can't give {prefixes} prefixes")]
    EmptyShape {
        /// The given number of prefixes.
        prefixes: usize,
    },
    /// The shape has the other family.
    #[error("a shape of {shape} prefixes, {wanted} is wanted")]
    WrongFamily {
        /// The family of the shape.
        shape: Family,
        /// The family of the table.
        wanted: Family,
    },
}

/// A table that looks like today's real one of the family. A full IPv4 table takes a few tenths of a second.
pub fn table<A: Address>(spec: &TableSpec) -> Result<Rib<A>, SynthError> {
    table_of(&Shape::today(A::FAMILY), spec)
}

/// Generates a table like the one that a shape was measured on. O(prefixes * bits).
///
/// Lengths are in exact proportion. A smaller table consists of whole blocks of a full table and is as dense
/// where it has prefixes. A larger table is denser.
pub fn table_of<A: Address>(shape: &Shape, spec: &TableSpec) -> Result<Rib<A>, SynthError> {
    let routes = routes(shape, spec)?;
    Ok(routes.into_iter().collect())
}

fn routes<A: Address>(shape: &Shape, spec: &TableSpec) -> Result<Vec<(Prefix<A>, NextHop)>, SynthError> {
    if shape.family() != A::FAMILY {
        return Err(SynthError::WrongFamily { shape: shape.family(), wanted: A::FAMILY });
    }
    if spec.prefixes > 0 && spec.next_hops == 0 {
        return Err(SynthError::NoNextHops { prefixes: spec.prefixes });
    }
    let wanted = lengths::apportion(spec.prefixes, &shape.by_length)
        .ok_or(SynthError::EmptyShape { prefixes: spec.prefixes })?;
    for (len, &wanted) in (0u8..).zip(&wanted) {
        let exist = 1u128.checked_shl(u32::from(len)).unwrap_or(u128::MAX);
        if wanted as u128 > exist {
            let prefixes = spec.prefixes;
            return Err(SynthError::TooManyPrefixes { prefixes, family: A::FAMILY, len, wanted, exist });
        }
    }
    let mut prefixes = place(&mut Rng::stream(spec.seed, 1), shape, spec.prefixes);
    lengths::fit(&mut Rng::stream(spec.seed, 2), &mut prefixes, &wanted);
    let next_hops = shape.hops.draw(&mut Rng::stream(spec.seed, 3), &prefixes, spec.next_hops);
    Ok(prefixes.into_iter().zip(next_hops).collect())
}

/// Draws about `count` prefixes in table order, by region.
#[allow(clippy::cast_precision_loss)] // counts of prefixes
fn place<A: Address>(rng: &mut Rng, shape: &Shape, count: usize) -> Vec<Prefix<A>> {
    let cascade = Cascade::new(shape);
    let measured = shape.prefixes().max(1);
    let full = count.max(measured);
    let dense = full as f64 / measured as f64;
    let weights: Vec<u32> = shape.regions.iter().map(|&(_, n)| n).collect();
    let shares = lengths::apportion(full, &weights).unwrap_or_default();
    let mut table = Vec::with_capacity(full);
    for (&(region, _), n) in shape.regions.iter().zip(shares) {
        let bits = shape.region_bits;
        let base = A::from_u128_low(u128::from(region) << (A::BITS - bits));
        cascade.draw(rng, Prefix::around(base, bits), n as u64, dense, &mut table);
    }
    if count < full {
        table = thin(rng, &table, count, 2 * shape.region_bits);
    }
    table
}

/// Takes `count` prefixes of a table: random whole blocks of `bits` bits, and a fair share of the shorter
/// prefixes.
fn thin<A: Address>(rng: &mut Rng, table: &[Prefix<A>], count: usize, bits: u8) -> Vec<Prefix<A>> {
    let mut blocks: Vec<&[Prefix<A>]> = table
        .chunk_by(|a, b| {
            a.len() >= bits && b.len() >= bits && a.address().keep(bits) == b.address().keep(bits)
        })
        .collect();
    rng.shuffle(&mut blocks);
    let mut chosen: Vec<Prefix<A>> = blocks.into_iter().flatten().copied().take(count).collect();
    chosen.sort();
    chosen
}
