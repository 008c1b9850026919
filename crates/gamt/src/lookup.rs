//! Lookups, alone and in batches: Algorithm 1 of the paper, unit to unit until one is a leaf.
//!
//! The paper's thread carries what is left of the address, and which level its unit leads to. A child always
//! lies in the next level, so a batch here goes level by level, with shifts that are the same for all of its
//! keys.

use wirespeed_fib::{Address, Lookup, NextHop, Step, VectorLevel};
use wirespeed_image::{Element, Table, number};

use crate::layout::{GamtTable, Level, Placement, next_hops, units};
use crate::simd;

/// Keys of a block, a number that fits in a byte.
const BLOCK: usize = 64;

/// Keys that are looked up together.
struct Block {
    /// Keys that are not done, of which there are `count`.
    open: [u8; BLOCK],
    count: usize,
    /// The leaf of each key that is done, the first unit of the next node of the others.
    to: [u64; BLOCK],
}

impl<A: Address, P: Placement> Lookup<A> for GamtTable<A, P> {
    #[inline]
    fn lookup(&self, address: A) -> NextHop {
        self.rest_of_lookup(address, 0, 0)
    }

    fn lookup_batch(&self, addresses: &[A], next_hops: &mut [NextHop]) {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each key");
        self.batch(VectorLevel::best(), addresses, next_hops);
    }

    fn shape(&self) -> Option<String> {
        let strides: Vec<_> = self.strides().map(|stride| stride.to_string()).collect();
        let units: Vec<_> = self.unit_bytes().map(|bytes| bytes.to_string()).collect();
        Some(format!("strides {}, units of {} bytes", strides.join("-"), units.join("-")))
    }

    fn explain(&self, address: A) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut to = 0;
        for (at, level) in self.levels.iter().enumerate() {
            let index = to + u64::from(address.bits(level.from, level.stride));
            let unit = self.unit(level, index);
            let leads_on;
            (leads_on, to) = level.code.read(unit);
            let end = level.from + level.stride;
            let meaning = match (leads_on, P::SEPARATE) {
                (true, _) => format!("after {end} bits go on at unit {to} of level {}", at + 2),
                (false, true) => format!("a prefix that ends here; its next hop is in slot {to}"),
                (false, false) => meaning(to),
            };
            let section = self.name(usize::from(units(at).0));
            steps.push(Step { section, index, value: unit, meaning });
            if !leads_on {
                break;
            }
        }
        if P::SEPARATE {
            let value = u64::from(self.next_hop(to).0);
            let section = self.name(usize::from(next_hops(self.levels.len()).0));
            steps.push(Step { section, index: to, value, meaning: meaning(value) });
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
    /// A batch in vectors, as far as the vector level has them, and the rest block by block.
    fn batch(&self, level: VectorLevel, addresses: &[A], next_hops: &mut [NextHop]) {
        let done = simd::batch(level, self, addresses, next_hops);
        self.portable(&addresses[done..], &mut next_hops[done..]);
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // of an element of an image, which is in memory
    fn unit(&self, level: &Level, index: u64) -> u64 {
        let (image, index) = (self.image(), index as usize);
        match level.code.width() {
            1 => image.at::<u8>(level.units, index).into(),
            2 => image.at::<u16>(level.units, index).into(),
            4 => image.at::<u32>(level.units, index).into(),
            _ => image.at::<u64>(level.units, index),
        }
    }

    /// The rest of a lookup, from a node of a level on.
    #[inline]
    pub(crate) fn rest_of_lookup(&self, address: A, first: usize, mut to: u64) -> NextHop {
        for level in &self.levels[first..] {
            let unit = self.unit(level, to + u64::from(address.bits(level.from, level.stride)));
            let leads_on;
            (leads_on, to) = level.code.read(unit);
            if !leads_on {
                break;
            }
        }
        self.next_hop(to)
    }

    /// The next hop of a leaf.
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
    fn portable(&self, addresses: &[A], next_hops: &mut [NextHop]) {
        for (addresses, next_hops) in addresses.chunks(BLOCK).zip(next_hops.chunks_mut(BLOCK)) {
            let mut block = Block {
                open: std::array::from_fn(|key| key.to_le_bytes()[0]),
                count: addresses.len(),
                to: [0; BLOCK],
            };
            for (at, level) in self.levels.iter().enumerate() {
                match level.code.width() {
                    1 => self.step::<u8>(at, level, addresses, &mut block),
                    2 => self.step::<u16>(at, level, addresses, &mut block),
                    4 => self.step::<u32>(at, level, addresses, &mut block),
                    _ => self.step::<u64>(at, level, addresses, &mut block),
                }
                if block.count == 0 {
                    break;
                }
            }
            for (next_hop, &to) in next_hops.iter_mut().zip(&block.to) {
                *next_hop = self.next_hop(to);
            }
        }
    }

    /// Takes the keys of a block that are not done through a level.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // of an element of an image, which is in memory
    fn step<U: Element>(&self, at: usize, level: &Level, addresses: &[A], block: &mut Block) {
        let units = self.image().section::<U>(units(at));
        let mut still = 0;
        for which in 0..block.count {
            let key = usize::from(block.open[which % BLOCK]) % BLOCK;
            let index = block.to[key] + u64::from(addresses[key].bits(level.from, level.stride));
            let (leads_on, to) = level.code.read(units[index as usize].into());
            block.to[key] = to;
            // Moving the end of the list or not takes the place of a branch.
            block.open[still % BLOCK] = block.open[which % BLOCK];
            still += usize::from(leads_on);
        }
        block.count = still;
    }

    /// The name of a section, for good.
    fn name(&self, section: usize) -> &'static str {
        NAMES
            .get(section)
            .copied()
            .filter(|_| section < usize::from(next_hops(self.levels.len()).0))
            .unwrap_or("next_hops")
    }
}

/// The names of sections, as steps want them for good: at most one level for each bit of an address.
const NAMES: [&str; 130] = [
    "strides", "bases", "level1", "level2", "level3", "level4", "level5", "level6", "level7", "level8",
    "level9", "level10", "level11", "level12", "level13", "level14", "level15", "level16", "level17",
    "level18", "level19", "level20", "level21", "level22", "level23", "level24", "level25", "level26",
    "level27", "level28", "level29", "level30", "level31", "level32", "level33", "level34", "level35",
    "level36", "level37", "level38", "level39", "level40", "level41", "level42", "level43", "level44",
    "level45", "level46", "level47", "level48", "level49", "level50", "level51", "level52", "level53",
    "level54", "level55", "level56", "level57", "level58", "level59", "level60", "level61", "level62",
    "level63", "level64", "level65", "level66", "level67", "level68", "level69", "level70", "level71",
    "level72", "level73", "level74", "level75", "level76", "level77", "level78", "level79", "level80",
    "level81", "level82", "level83", "level84", "level85", "level86", "level87", "level88", "level89",
    "level90", "level91", "level92", "level93", "level94", "level95", "level96", "level97", "level98",
    "level99", "level100", "level101", "level102", "level103", "level104", "level105", "level106",
    "level107", "level108", "level109", "level110", "level111", "level112", "level113", "level114",
    "level115", "level116", "level117", "level118", "level119", "level120", "level121", "level122",
    "level123", "level124", "level125", "level126", "level127", "level128",
];
