//! The choice of strides: the depths at which a multi-bit trie is cut into levels, before it is built.
//!
//! A level that starts at depth `k` and takes `s` bits has `nodes(k)` tables of `2^s` units, where `nodes(k)`
//! counts the paths of `k` bits with a longer prefix beneath. All that a choice depends on is therefore in a
//! [`Profile`] of the table, which is one pass over its routes.
//!
//! ```text
//! depth    0         s₁              s₁+s₂                deepest
//!          ├── s₁ ──┼────── s₂ ──────┼───────── s₃ ────────┤
//! units    nodes(0)·2^s₁   nodes(s₁)·2^s₂   nodes(s₁+s₂)·2^s₃     the widest is the paper's array width
//! reached  1               reach(s₁)        reach(s₁+s₂)          by a lookup, of this traffic
//! ```
//!
//! There are two ways to choose:
//!
//! * [`narrowest`]: the paper's (section 4.2, Algorithm 3), for a number of levels that the user sets. The
//!   least array width, then the fewest memory transactions.
//! * [`cheapest`]: ours. The least time that a lookup is expected to take, given what a read of a level of
//!   some size costs on this machine ([`Costs`]) and how many lookups read it, with a price on memory and a
//!   cap.
//!
//! Both are exact; tests hold them against all ways to cut small tries. [`choose`] goes by what a user asked
//! for, and [`Description`] tells people what a choice comes to.
//!
//! ```
//! use wirespeed_fib::{NextHop, Rib, V4};
//! use wirespeed_gamt::strides::{Profile, narrowest};
//!
//! let mut rib = Rib::<V4>::new();
//! rib.insert("10.0.0.0/8".parse().unwrap(), NextHop(1));
//! rib.insert("10.64.0.0/10".parse().unwrap(), NextHop(2));
//! let profile = Profile::of(&rib);
//! assert_eq!((profile.deepest(), profile.nodes(8)), (10, 1));
//! // The first level has one table, and so have those beneath: 2^4 and twice 2^3 units.
//! assert_eq!(narrowest(&profile, 3, 128, 4), [4, 3, 3]);
//! ```

mod cheapest;
mod costs;
mod description;
mod narrowest;
mod profile;

pub use cheapest::{Objective, cheapest};
pub use costs::Costs;
pub use description::{Description, Level};
pub use narrowest::narrowest;
pub use profile::Profile;

use wirespeed_fib::{BuildError, Strides};

/// The most bits that a level takes.
pub const MAX_STRIDE: u8 = 24;

/// Units of a level that an offset of 24 bits reaches, and results that fit beside a jump of 8 bits in 4
/// bytes.
const NARROW: u64 = 1 << 24;
/// Units of head room in every level past the first, at least, and one node.
const LEAST_ROOM: u64 = 1 << 12;

/// The width of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// The paper's width: 4 bytes if no level has over 2^24 units and no leaf over 24 bits, otherwise 8.
    Paper,
    /// The narrowest width that each level allows.
    Narrow,
}

impl Units {
    /// The width for the strides of the options: narrow if the engine chooses the strides, otherwise the
    /// paper's.
    pub fn of(asked: &Strides) -> Self {
        if asked.is_open() { Self::Narrow } else { Self::Paper }
    }

    /// Bytes of a unit of each level, before the capacity of levels is known. `largest_leaf` is the largest
    /// next hop, or the largest slot if leaves hold slots.
    pub fn bytes(self, profile: &Profile, strides: &[u8], largest_leaf: u32) -> Vec<u32> {
        let paper = paper_unit(profile, strides, largest_leaf);
        let of_level = |(start, stride): (u8, u8)| match self {
            Self::Narrow if paper == 4 => narrow_unit(profile, start.saturating_add(stride), largest_leaf),
            _ => paper,
        };
        levels(strides).map(of_level).collect()
    }
}

/// Bytes of a unit in the paper's code.
fn paper_unit(profile: &Profile, strides: &[u8], largest_leaf: u32) -> u32 {
    let widest = levels(strides).map(|(start, stride)| profile.units(start, stride)).max().unwrap_or(0);
    if widest <= NARROW && u64::from(largest_leaf) < NARROW { 4 } else { 8 }
}

/// Bytes of a unit in a level that ends at a depth: it has a value for each leaf, and one for each node that
/// there may be with the largest capacity.
fn narrow_unit(profile: &Profile, end: u8, largest_leaf: u32) -> u32 {
    let nodes = match end < profile.deepest() {
        true => room(profile.nodes(end), 1),
        // What lies past the deepest prefix is room alone.
        false => 0,
    };
    match nodes.saturating_add(largest_leaf.into()) {
        0..0x100 => 1,
        0x100..0x1_0000 => 2,
        _ => 4,
    }
}

/// Nodes and head room for more (section 4.3), in a level of a stride: an eighth, and at least some thousand
/// units.
pub(crate) fn room(nodes: u64, stride: u8) -> u64 {
    nodes.saturating_add(nodes / 8 + 1 + (LEAST_ROOM >> stride))
}

/// The strides of the options for this table. An error if they are given and don't fit the table.
pub fn choose(
    profile: &Profile,
    asked: &Strides,
    largest_result: u32,
    objective: &Objective,
) -> Result<Vec<u8>, BuildError> {
    match asked {
        Strides::Fastest | Strides::FastestOnGpu => Ok(cheapest(profile, largest_result, objective)),
        Strides::Levels { levels, transaction } => {
            // The width in units is least whatever a unit takes, so that the bytes of one follow from any
            // such choice.
            let unit = paper_unit(profile, &narrowest(profile, *levels, *transaction, 4), largest_result);
            Ok(narrowest(profile, *levels, *transaction, unit))
        }
        Strides::Given(strides) => check(profile, strides).map(|()| strides.clone()),
    }
}

/// Whether strides cut every prefix of the table, and no more bits than an address has.
fn check(profile: &Profile, strides: &[u8]) -> Result<(), BuildError> {
    let sum: u64 = strides.iter().map(|&stride| u64::from(stride)).sum();
    let why = match strides.iter().find(|&&stride| !(1..=MAX_STRIDE).contains(&stride)) {
        Some(stride) => format!("a level takes 1 to {MAX_STRIDE} bits, not {stride}"),
        None if sum < u64::from(profile.deepest()) => {
            format!("they take {sum} bits, and the table has prefixes of {}", profile.deepest())
        }
        None if sum > u64::from(profile.bits()) => {
            format!("they take {sum} bits, and an address has {}", profile.bits())
        }
        None => return Ok(()),
    };
    Err(BuildError::Strides { engine: "gamt", why })
}

/// The start and the stride of each level.
fn levels(strides: &[u8]) -> impl Iterator<Item = (u8, u8)> + '_ {
    strides.iter().scan(0u8, |depth, &stride| {
        let start = *depth;
        *depth = depth.saturating_add(stride);
        Some((start, stride))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every way to cut so many bits into levels of 1 to `MAX_STRIDE` bits.
    pub(super) fn compositions(bits: u8) -> Vec<Vec<u8>> {
        if bits == 0 {
            return vec![Vec::new()];
        }
        (1..=bits.min(MAX_STRIDE))
            .flat_map(|last| {
                compositions(bits - last).into_iter().map(move |mut strides| {
                    strides.push(last);
                    strides
                })
            })
            .collect()
    }

    /// Profiles of tries of up to 11 bits of every kind, full to sparse; past a depth they may hold so many
    /// nodes as only the deep levels of an IPv6 table could.
    pub(super) fn profiles() -> impl Strategy<Value = Profile> {
        let growth = prop_oneof![2 => 0.5..1.0f64, 2 => 1.0..2.0f64, 1 => Just(2.0), 1 => 2.0..60.0f64];
        let step = (growth, 0.0..1.0f64, 0.0..1.0f64);
        (proptest::collection::vec(step, 0..11), 1u64..100_000).prop_map(|(steps, prefixes)| {
            let (mut nodes, mut random, mut prefix) = (vec![1u64], vec![1.0], vec![1.0]);
            for (at, (growth, to_random, to_prefix)) in steps.into_iter().enumerate() {
                #[allow(clippy::cast_possible_truncation)] // any number of nodes will do
                nodes.push(((nodes[at] as f64 * growth) as u64).max(1));
                random.push(random[at] * to_random);
                prefix.push(prefix[at] * to_prefix);
            }
            Profile::from_parts(prefixes, nodes, random, prefix)
        })
    }

    #[test]
    fn there_are_as_many_ways_to_cut_as_subsets_of_the_places_between_bits() {
        assert_eq!(compositions(9).len(), 1 << 8);
        assert!(compositions(9).iter().all(|strides| strides.iter().sum::<u8>() == 9));
    }

    #[test]
    fn a_unit_is_wide_where_a_level_or_a_leaf_is() {
        let profile = Profile::from_parts(1, vec![1, 1, 1], vec![1.0; 3], vec![1.0; 3]);
        let bytes = |profile: &Profile, strides: &[u8], leaf| Units::Paper.bytes(profile, strides, leaf);
        assert_eq!(bytes(&profile, &[2, 1], (1 << 24) - 1), [4, 4]);
        assert_eq!(bytes(&profile, &[2, 1], 1 << 24), [8, 8]);
        let profile = Profile::from_parts(1, vec![1, 1 << 21], vec![1.0; 2], vec![1.0; 2]);
        assert_eq!(bytes(&profile, &[1, 3], 1), [4, 4]);
        assert_eq!(bytes(&profile, &[1, 4], 1), [8, 8]);
    }

    #[test]
    fn a_narrow_unit_holds_the_nodes_below_with_their_room() {
        let nodes = vec![1, 1, 56_000, 57_000];
        let profile = Profile::from_parts(1, nodes, vec![1.0; 4], vec![1.0; 4]);
        let bytes = |leaf| Units::Narrow.bytes(&profile, &[2, 1, 1], leaf);
        // 56,000 and the most room are under 2^16, with 57,000 they are over.
        assert_eq!(bytes(0xff), [2, 4, 1]);
        assert_eq!(bytes(0x100), [2, 4, 2]);
        assert_eq!(bytes(0x2000), [4, 4, 2]);
        assert_eq!(bytes(0x1_0000), [4, 4, 4]);
        let profile = Profile::from_parts(1, vec![1, 1, 1_000], vec![1.0; 3], vec![1.0; 3]);
        assert_eq!(Units::Narrow.bytes(&profile, &[2, 1], 5), [2, 1]);
    }

    #[test]
    fn given_strides_are_taken_or_refused_with_both_numbers() {
        let profile = Profile::from_parts(1, vec![1; 20], vec![1.0; 20], vec![1.0; 20]);
        let given = |strides: &[u8]| {
            choose(&profile, &Strides::Given(strides.to_vec()), 1, &Objective::default())
                .map_err(|error| error.to_string())
        };
        assert_eq!(given(&[16, 4]), Ok(vec![16, 4]));
        assert_eq!(given(&[16, 8, 8]), Ok(vec![16, 8, 8]));
        let refused = |strides: &[u8]| given(strides).unwrap_err();
        assert!(
            refused(&[16, 3]).contains("19 bits, and the table has prefixes of 20"),
            "{}",
            refused(&[16, 3])
        );
        assert!(refused(&[16, 8, 9]).contains("33 bits, and an address has 32"));
        assert!(refused(&[25]).contains("1 to 24 bits, not 25"));
        assert!(refused(&[16, 0, 16]).contains("not 0"));
        assert!(refused(&[]).contains("0 bits"));
    }

    #[test]
    fn levels_asked_for_follow_the_bytes_of_a_unit() {
        let profile = Profile::from_parts(1, vec![1, 2, 3, 5, 9], vec![1.0; 5], vec![1.0; 5]);
        let asked = Strides::Levels { levels: 3, transaction: 32 };
        for (result, unit) in [(1, 4), (u32::MAX, 8)] {
            let chosen = choose(&profile, &asked, result, &Objective::default()).unwrap();
            assert_eq!(chosen, narrowest(&profile, 3, 32, unit));
        }
    }
}
