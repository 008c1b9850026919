//! [`Plan`]: the shape of a table before it is built: strides, room in each level, width of a unit.
//!
//! Head room (section 4.3) is an eighth of a level, and at least some thousand units. Strides that are left to us go on past
//! the longest prefix to the end of the address, eight bits a level, with head room only: a longer prefix that an update brings
//! then finds a level to be in, and lookups don't go there before.

use wirespeed_fib::{Address, BuildError, BuildOptions, Rib, Strides};

use crate::layout::MAX_NARROW;
use crate::strides::{Objective, Profile, choose};

/// Units of head room in every level past the first, at least, and one node.
const LEAST_ROOM: u64 = 1 << 12;
/// Bits of a level past the longest prefix.
const PAST: u8 = 8;

/// What a table will be like.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Bits that each level reads.
    pub(crate) strides: Vec<u8>,
    /// Nodes that each level has room for.
    pub(crate) nodes: Vec<u32>,
    /// Bytes of a unit.
    pub(crate) unit: usize,
}

impl Plan {
    /// The plan of a table whose leaves may hold up to `widest`.
    pub(crate) fn of<A: Address>(
        engine: &'static str,
        rib: &Rib<A>,
        options: &BuildOptions,
        widest: u32,
    ) -> Result<Self, BuildError> {
        let profile = Profile::of(rib);
        let mut strides = choose(&profile, &options.strides, widest, &Objective::default())?;
        if options.strides == Strides::Fastest {
            strides.extend(past(A::BITS - profile.deepest()));
        }
        let mut nodes = Vec::with_capacity(strides.len());
        let mut most_units = 0;
        let mut from = 0;
        for &stride in &strides {
            let room = match from {
                0 => 1,
                _ => with_room(profile.nodes(from), stride),
            };
            let units = room << stride;
            // What a place in a level is counted with.
            if units > 1 << 32 {
                return Err(BuildError::Limit {
                    engine,
                    what: "units a level",
                    limit: 1 << 32,
                    found: units,
                });
            }
            most_units = units.max(most_units);
            nodes.push(u32::try_from(room).unwrap_or(u32::MAX));
            from += stride;
        }
        let narrow = most_units <= MAX_NARROW + 1 && u64::from(widest) <= MAX_NARROW;
        Ok(Self { strides, nodes, unit: if narrow { 4 } else { 8 } })
    }

    /// Number of units of each level, room included.
    pub(crate) fn lens(&self) -> Vec<u64> {
        self.nodes.iter().zip(&self.strides).map(|(&nodes, &stride)| u64::from(nodes) << stride).collect()
    }
}

/// Nodes and head room for more.
fn with_room(nodes: u64, stride: u8) -> u64 {
    nodes + nodes / 8 + 1 + (LEAST_ROOM >> stride)
}

/// Strides for so many bits.
fn past(bits: u8) -> impl Iterator<Item = u8> {
    (0..bits).step_by(PAST.into()).map(move |at| PAST.min(bits - at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirespeed_fib::{NextHop, Prefix, V4, V6};

    fn plan<A: Address>(lens: &[u8], strides: Strides, widest: u32) -> Result<Plan, BuildError> {
        let rib: Rib<A> = lens.iter().map(|&len| (Prefix::around(A::MAX, len), NextHop(1))).collect();
        Plan::of("gamt", &rib, &BuildOptions { strides, ..BuildOptions::default() }, widest)
    }

    #[test]
    fn ours_reach_the_end_of_the_address_and_others_do_as_they_are_told() {
        let bits = |plan: Plan| plan.strides.iter().map(|&stride| u32::from(stride)).sum::<u32>();
        for lens in [&[][..], &[0], &[1], &[17], &[24, 8], &[32]] {
            assert_eq!(bits(plan::<V4>(lens, Strides::Fastest, 1).unwrap()), 32);
            assert_eq!(bits(plan::<V6>(lens, Strides::Fastest, 1).unwrap()), 128);
        }
        let given = plan::<V4>(&[24], Strides::Given(vec![16, 8]), 1).unwrap();
        assert_eq!((given.strides, given.nodes), (vec![16, 8], vec![1, 1 + 1 + 16]));
    }

    #[test]
    fn units_are_wide_where_they_must_be() {
        let unit = |lens: &[u8], strides: &[u8], widest| {
            plan::<V6>(lens, Strides::Given(strides.to_vec()), widest).unwrap().unit
        };
        assert_eq!(unit(&[24], &[12, 12], 1), 4);
        assert_eq!(unit(&[24], &[12, 12], 1 << 24), 8);
        // Two nodes of 2^24 units, one of them head room.
        assert_eq!(unit(&[24], &[1, 24], 1), 8);
        assert_eq!(unit(&[24], &[24], 1), 4);
    }
}
