//! [`Plan`]: the shape of a table before it is built: strides, room in each level, and how its units are written.
//!
//! Head room (section 4.3) is an eighth of a level, and at least some thousand units. Strides that are left to us go on past
//! the longest prefix to the end of the address, eight bits a level, with head room only: a longer prefix that an update brings
//! then finds a level to be in, and lookups don't go there before.

use wirespeed_fib::{Address, BuildError, BuildOptions, Rib, Strides};

use crate::layout::Code;
use crate::strides::{Objective, Profile, Units, choose, room};

/// Units that a level may have.
const MOST_UNITS: u64 = 1 << 32;
/// Bits of a level past the longest prefix.
const PAST: u8 = 8;

/// What a table will be like.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) levels: Vec<PlannedLevel>,
}

/// What a level will be like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedLevel {
    /// The first bit that it reads.
    pub(crate) from: u8,
    /// How many bits it reads.
    pub(crate) stride: u8,
    /// Nodes that there is room for.
    pub(crate) nodes: u32,
    /// How its units are written.
    pub(crate) code: Code,
}

impl PlannedLevel {
    /// Number of its units.
    pub(crate) fn units(&self) -> usize {
        (self.nodes as usize) << self.stride
    }
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
        let units = Units::of(&options.strides);
        if options.strides == Strides::Fastest {
            strides.extend(past(A::BITS - profile.deepest()));
        }
        let mut levels = Vec::with_capacity(strides.len());
        let mut from = 0;
        for (level, &stride) in strides.iter().enumerate() {
            let nodes = match from {
                0 => 1,
                _ => room(profile.nodes(from), stride),
            };
            // What a place in a level is counted with.
            if nodes << stride > MOST_UNITS {
                let (limit, found) = (MOST_UNITS, nodes << stride);
                return Err(BuildError::Limit { engine, what: "units a level", limit, found });
            }
            let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
            // How they are written is up to the next level.
            levels.push(PlannedLevel { from, stride, nodes, code: Code::new(8, level, 0) });
            from += stride;
        }
        for level in 0..levels.len() {
            let below = levels.get(level + 1).map_or((0, 0), |below| (below.nodes, below.stride));
            levels[level].code = narrowest_code(level, widest, below, units);
        }
        Ok(Self { levels })
    }

    /// Bits that each level reads.
    pub(crate) fn strides(&self) -> Vec<u8> {
        self.levels.iter().map(|level| level.stride).collect()
    }

    /// The number of units of each level, and their width in bytes.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (u64, usize)> + '_ {
        self.levels.iter().map(|level| (level.units() as u64, level.code.width as usize))
    }

    /// The largest leaf that every level can hold.
    pub(crate) fn widest(&self) -> u32 {
        let most = self.levels.iter().map(|level| level.code.most()).min().unwrap_or(0);
        u32::try_from(most).unwrap_or(u32::MAX)
    }
}

/// The code with the narrowest units that hold leaves up to `widest` and lead to all nodes of the level `below`, of so
/// many nodes and such a stride; none narrower than the paper's where `units` are.
fn narrowest_code(level: usize, widest: u32, below: (u32, u8), units: Units) -> Code {
    let (nodes, stride) = below;
    let code = |width| Code::new(width, level, stride);
    let last = u64::from(nodes.saturating_sub(1)) << stride;
    [1, 2, 4, 8]
        .into_iter()
        .filter(|&width| units == Units::Narrow || width >= 4)
        .map(code)
        .find(|code| u64::from(widest).max(last >> code.scale) <= code.most())
        .unwrap_or(code(8))
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
        let bits = |plan: Plan| plan.strides().iter().map(|&stride| u32::from(stride)).sum::<u32>();
        for lens in [&[][..], &[0], &[1], &[17], &[24, 8], &[32]] {
            assert_eq!(bits(plan::<V4>(lens, Strides::Fastest, 1).unwrap()), 32);
            assert_eq!(bits(plan::<V6>(lens, Strides::Fastest, 1).unwrap()), 128);
        }
        let given = plan::<V4>(&[24], Strides::Given(vec![16, 8]), 1).unwrap();
        assert_eq!(given.strides(), [16, 8]);
        assert_eq!(given.levels[1].nodes, 1 + 1 + 16);
    }

    fn widths(plan: &Plan) -> Vec<u32> {
        plan.levels.iter().map(|level| level.code.width).collect()
    }

    #[test]
    fn given_units_are_wide_where_they_must_be() {
        let widths = |lens: &[u8], strides: &[u8], widest| {
            widths(&plan::<V6>(lens, Strides::Given(strides.to_vec()), widest).unwrap())
        };
        assert_eq!(widths(&[24], &[12, 12], 1), [4, 4]);
        assert_eq!(widths(&[24], &[12, 12], 1 << 24), [8, 8]);
        // Three nodes of 2^24 units, two of them head room: the third is past what 24 bits count.
        assert_eq!(widths(&[25, 26], &[2, 24], 1), [8, 4]);
        assert_eq!(widths(&[24], &[24], 1), [4]);
    }

    #[test]
    fn ours_are_as_narrow_as_they_can_be() {
        let plan = |widest| plan::<V4>(&[24], Strides::Fastest, widest).unwrap();
        assert!(widths(&plan(127)).iter().all(|&width| width <= 2));
        assert_eq!(*widths(&plan(127)).last().unwrap(), 1);
        assert_eq!(*widths(&plan(128)).last().unwrap(), 2);
        assert_eq!(*widths(&plan(1 << 15)).last().unwrap(), 4);
        assert_eq!([plan(127).widest(), plan(128).widest(), plan(1 << 24).widest()], [127, 0x7fff, u32::MAX]);
    }
}
