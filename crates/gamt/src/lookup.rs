//! Lookups, alone and in batches: Algorithm 1 of the paper, unit to unit until one is a leaf.
//!
//! The paper's thread carries what is left of the address, and which level its unit leads to. A child always lies in the next
//! level, so a batch here goes level by level, with shifts that are the same for all of its keys.

use wirespeed_fib::{Address, Lpm, NextHop, Step, Way};
use wirespeed_image::{Element, Table, number};

use crate::layout::{GamtTable, JUMP_BITS, Level, Placement, next_hops, units};
use crate::simd;

/// Keys of a block, a number that fits in a byte.
const BLOCK: usize = 64;
/// The bits of a unit that say that it leads on.
const JUMP: u64 = (1 << JUMP_BITS) - 1;

impl<A: Address, P: Placement> Lpm<A> for GamtTable<A, P> {
    #[inline]
    fn lookup(&self, address: A) -> NextHop {
        match self.unit {
            4 => self.rest_of_lookup::<u32>(address, 0, 0),
            _ => self.rest_of_lookup::<u64>(address, 0, 0),
        }
    }

    fn lookup_batch(&self, addresses: &[A], next_hops: &mut [NextHop]) {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each key");
        self.batch(Way::best(), addresses, next_hops);
    }

    fn shape(&self) -> Option<String> {
        let strides: Vec<_> = self.strides().map(|stride| stride.to_string()).collect();
        Some(format!("strides {}, units of {} bytes", strides.join("-"), self.unit))
    }

    fn explain(&self, address: A) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut inf = 0;
        for (at, level) in self.levels.iter().enumerate() {
            let index = inf + u64::from(address.bits(level.from, level.stride));
            let unit = match self.unit {
                4 => self.unit::<u32>(level, index),
                _ => self.unit::<u64>(level, index),
            };
            inf = unit >> JUMP_BITS;
            let leads_on = unit & JUMP != 0;
            let to = level.from + level.stride;
            let meaning = match (leads_on, P::SEPARATE) {
                (true, _) => format!("after {to} bits go on at unit {inf} of level {}", unit & JUMP),
                (false, true) => format!("a prefix that ends here; its next hop is in slot {inf}"),
                (false, false) => meaning(inf),
            };
            let section = self.name(usize::from(units(at).0));
            steps.push(Step { section, index, value: unit, meaning });
            if !leads_on {
                break;
            }
        }
        if P::SEPARATE {
            let value = u64::from(self.next_hop(inf).0);
            let section = self.name(usize::from(next_hops(self.levels.len()).0));
            steps.push(Step { section, index: inf, value, meaning: meaning(value) });
        }
        steps
    }
}

fn meaning(next_hop: u64) -> String {
    match next_hop {
        0 => "no route".to_owned(),
        n => format!("next hop {n}"),
    }
}

impl<A: Address, P: Placement> GamtTable<A, P> {
    /// A batch in vectors, as far as a way has them, and the rest block by block.
    fn batch(&self, way: Way, addresses: &[A], next_hops: &mut [NextHop]) {
        let done = simd::batch(way, self, addresses, next_hops);
        let (addresses, next_hops) = (&addresses[done..], &mut next_hops[done..]);
        match self.unit {
            4 => self.portable::<u32>(addresses, next_hops),
            _ => self.portable::<u64>(addresses, next_hops),
        }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // of an element of an image, which is in memory
    fn unit<U: Element>(&self, level: &Level, index: u64) -> u64 {
        self.image().at::<U>(level.units, index as usize).into()
    }

    /// The rest of a lookup, from a node of a level on.
    #[inline]
    pub(crate) fn rest_of_lookup<U: Element>(&self, address: A, first: usize, mut inf: u64) -> NextHop {
        for level in &self.levels[first..] {
            let unit = self.unit::<U>(level, inf + u64::from(address.bits(level.from, level.stride)));
            inf = unit >> JUMP_BITS;
            if unit & JUMP == 0 {
                break;
            }
        }
        self.next_hop(inf)
    }

    /// What a leaf comes to.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // a leaf holds 32 bits at most
    fn next_hop(&self, leaf: u64) -> NextHop {
        let slot = leaf as usize;
        NextHop(match self.next_hops {
            None => leaf as u32,
            Some((column, 1)) => number(self.image().at::<u8>(column, slot)),
            Some((column, 2)) => number(self.image().at::<u16>(column, slot)),
            Some((column, _)) => self.image().at::<u32>(column, slot),
        })
    }

    /// A batch block by block, each level for all keys of a block that are not done before the next.
    #[allow(clippy::cast_possible_truncation)] // infs are of elements in memory, or leaves of 32 bits
    fn portable<U: Element>(&self, addresses: &[A], next_hops: &mut [NextHop]) {
        for (addresses, next_hops) in addresses.chunks(BLOCK).zip(next_hops.chunks_mut(BLOCK)) {
            let mut open: [u8; BLOCK] = std::array::from_fn(|key| key.to_le_bytes()[0]);
            let mut infs = [0u64; BLOCK];
            let mut count = addresses.len();
            for level in &self.levels {
                let mut still = 0;
                for which in 0..count {
                    let key = usize::from(open[which % BLOCK]) % BLOCK;
                    let index = infs[key] + u64::from(addresses[key].bits(level.from, level.stride));
                    let unit = self.unit::<U>(level, index);
                    infs[key] = unit >> JUMP_BITS;
                    // Moving the end of the list or not takes the place of a branch.
                    open[still % BLOCK] = open[which % BLOCK];
                    still += usize::from(unit & JUMP != 0);
                }
                count = still;
                if count == 0 {
                    break;
                }
            }
            for (next_hop, &inf) in next_hops.iter_mut().zip(&infs) {
                *next_hop = self.next_hop(inf);
            }
        }
    }

    /// The name of a section, for good.
    fn name(&self, section: usize) -> &'static str {
        NAMES.get(section).copied().filter(|_| section <= self.levels.len()).unwrap_or("next_hops")
    }
}

/// The names of sections, as steps want them for good: at most one level for each bit of an address.
const NAMES: [&str; 129] = [
    "strides", "level1", "level2", "level3", "level4", "level5", "level6", "level7", "level8", "level9",
    "level10", "level11", "level12", "level13", "level14", "level15", "level16", "level17", "level18",
    "level19", "level20", "level21", "level22", "level23", "level24", "level25", "level26", "level27",
    "level28", "level29", "level30", "level31", "level32", "level33", "level34", "level35", "level36",
    "level37", "level38", "level39", "level40", "level41", "level42", "level43", "level44", "level45",
    "level46", "level47", "level48", "level49", "level50", "level51", "level52", "level53", "level54",
    "level55", "level56", "level57", "level58", "level59", "level60", "level61", "level62", "level63",
    "level64", "level65", "level66", "level67", "level68", "level69", "level70", "level71", "level72",
    "level73", "level74", "level75", "level76", "level77", "level78", "level79", "level80", "level81",
    "level82", "level83", "level84", "level85", "level86", "level87", "level88", "level89", "level90",
    "level91", "level92", "level93", "level94", "level95", "level96", "level97", "level98", "level99",
    "level100", "level101", "level102", "level103", "level104", "level105", "level106", "level107",
    "level108", "level109", "level110", "level111", "level112", "level113", "level114", "level115",
    "level116", "level117", "level118", "level119", "level120", "level121", "level122", "level123",
    "level124", "level125", "level126", "level127", "level128",
];
