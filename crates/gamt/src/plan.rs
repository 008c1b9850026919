//! [`Plan`]: the shape of a table before it is built: strides, capacity of each level, and how its units are
//! written.
//!
//! Head room (section 4.3) is an eighth of a level, and at least some thousand units. Strides that are left
//! to us go on past the longest prefix to the end of the address, eight bits a level, with head room only: a
//! longer prefix that an update brings then finds a level to be in, and lookups don't go there before.

use wirespeed_fib::{Address, BuildError, BuildOptions, Rib};

use crate::code::{Below, Code};
use crate::strides::{Objective, Profile, Units, choose, room};

/// Units that a level may have.
const MOST_UNITS: u64 = 1 << 32;
/// Bits of a level past the longest prefix.
const PAST: u8 = 8;

/// The plan of a table.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) levels: Vec<PlannedLevel>,
}

/// The plan of a level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedLevel {
    /// The first bit that it reads.
    pub(crate) from: u8,
    /// The number of bits that it reads.
    pub(crate) stride: u8,
    /// Nodes that there is room for.
    pub(crate) nodes: u32,
    /// The code of its units.
    pub(crate) code: Code,
}

impl PlannedLevel {
    /// Number of its units.
    pub(crate) fn units(&self) -> usize {
        (self.nodes as usize) << self.stride
    }

    fn as_below(&self) -> Below {
        Below { stride: self.stride, nodes: self.nodes.into() }
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
        let mut strides = choose(&profile, &options.strides, widest, &objective(options))?;
        let units = Units::of(&options.strides);
        if options.strides.is_open() {
            strides.extend(past(A::BITS - profile.deepest()));
        }
        let mut levels = Vec::with_capacity(strides.len());
        let mut from = 0;
        for (level, &stride) in strides.iter().enumerate() {
            let nodes = match from {
                0 => 1,
                _ if options.tight => profile.nodes(from) + 1,
                _ => room(profile.nodes(from), stride),
            };
            // What a place in a level is counted with.
            if nodes << stride > MOST_UNITS {
                let (limit, found) = (MOST_UNITS, nodes << stride);
                return Err(BuildError::Limit { engine, what: "units a level", limit, found });
            }
            let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
            // How they are written is up to the next level.
            levels.push(PlannedLevel { from, stride, nodes, code: Code::paper(8, level) });
            from += stride;
        }
        for level in 0..levels.len() {
            let below = levels.get(level + 1).map_or_else(Below::default, PlannedLevel::as_below);
            levels[level].code = narrowest_code(level, widest, below, units);
        }
        Ok(Self { levels })
    }

    /// The largest leaf that every level can hold.
    pub(crate) fn widest(&self) -> u32 {
        let most = self.levels.iter().map(|level| level.code.widest()).min().unwrap_or(0);
        u32::try_from(most).unwrap_or(u32::MAX)
    }
}

/// The objective of the choice of strides. For a table that would otherwise be over its cap, memory comes
/// before time.
fn objective(options: &BuildOptions) -> Objective {
    match options.memory_cap.filter(|_| options.tight) {
        // Not all of it is for levels, and these are counted before they have their room.
        Some(cap) => Objective { cap: cap - cap / 8, ..Objective::default() },
        None => Objective::default(),
    }
}

/// The code with the narrowest units that hold leaves up to `widest` and all that is `below`; none narrower
/// than the paper's where `units` are.
fn narrowest_code(level: usize, widest: u32, below: Below, units: Units) -> Code {
    let narrow = [1, 2].into_iter().filter(|_| units == Units::Narrow);
    narrow
        .filter_map(|width| Code::narrow(width, below))
        .chain([Code::paper(4, level)])
        .find(|code| code.holds(widest, below))
        .unwrap_or(Code::paper(8, level))
}

/// Strides for so many bits.
fn past(bits: u8) -> impl Iterator<Item = u8> {
    (0..bits).step_by(PAST.into()).map(move |at| PAST.min(bits - at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirespeed_fib::{NextHop, Prefix, Strides, V4, V6};

    fn plan<A: Address>(lens: &[u8], strides: Strides, widest: u32) -> Result<Plan, BuildError> {
        let rib: Rib<A> = lens.iter().map(|&len| (Prefix::around(A::MAX, len), NextHop(1))).collect();
        Plan::of("gamt", &rib, &BuildOptions { strides, ..BuildOptions::default() }, widest)
    }

    #[test]
    fn ours_reach_the_end_of_the_address_and_others_do_as_they_are_told() {
        let bits = |plan: Plan| plan.levels.iter().map(|level| u32::from(level.stride)).sum::<u32>();
        for lens in [&[][..], &[0], &[1], &[17], &[24, 8], &[32]] {
            assert_eq!(bits(plan::<V4>(lens, Strides::Fastest, 1).unwrap()), 32);
            assert_eq!(bits(plan::<V6>(lens, Strides::Fastest, 1).unwrap()), 128);
        }
        let given = plan::<V4>(&[24], Strides::Given(vec![16, 8]), 1).unwrap();
        let shape = |level: &PlannedLevel| (level.from, level.stride, level.nodes);
        assert_eq!(given.levels.iter().map(shape).collect::<Vec<_>>(), [(0, 16, 1), (16, 8, 1 + 1 + 16)]);
    }

    fn widths(plan: &Plan) -> Vec<u32> {
        plan.levels.iter().map(|level| level.code.width()).collect()
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
        let last = |widest| *widths(&plan(widest)).last().unwrap();
        assert!(widths(&plan(100)).iter().all(|&width| width <= 2));
        assert_eq!([0xff, 0x100, 0xffff, 0x1_0000].map(last), [1, 2, 2, 4]);
        assert!((100..256).contains(&plan(100).widest()), "{}", plan(100).widest());
        assert_eq!(plan(1 << 24).widest(), u32::MAX);
        // Units that lead on leave less to leaves.
        let inner = plan(1).levels[plan(1).levels.len() - 2];
        assert_eq!(
            u64::from(inner.code.base()) + plan(1).levels.last().map_or(0, |l| u64::from(l.nodes)),
            256
        );
    }
}
