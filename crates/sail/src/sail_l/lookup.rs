//! Lookups of SAIL_L (Algorithm 2), alone and in batches.

use wirespeed_fib::{Address, Family, Lookup, NextHop, Step, VectorLevel};
use wirespeed_image::{Element, Image, Table, number};

use super::layout::{BCN16, LEAF, SailLTable, chunk_ids, levels, next_hops};
use super::portable::{DEEPEST, Ids, View, first_index, index_in, lookup};
use super::simd;

impl<A: Address> Lookup<A> for SailLTable<A> {
    #[inline]
    fn lookup(&self, address: A) -> NextHop {
        match self.entry_width() {
            1 => lookup::<A, u8>(self, address),
            2 => lookup::<A, u16>(self, address),
            _ => lookup::<A, u32>(self, address),
        }
    }

    fn lookup_batch(&self, addresses: &[A], next_hops: &mut [NextHop]) {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each key");
        match self.entry_width() {
            1 => batch::<A, u8>(self, VectorLevel::best(), addresses, next_hops),
            2 => batch::<A, u16>(self, VectorLevel::best(), addresses, next_hops),
            _ => batch::<A, u32>(self, VectorLevel::best(), addresses, next_hops),
        }
    }

    fn explain(&self, address: A) -> Vec<Step> {
        match self.entry_width() {
            1 => explain::<A, u8>(self.image(), address),
            2 => explain::<A, u16>(self.image(), address),
            _ => explain::<A, u32>(self.image(), address),
        }
    }
}

/// A batch in vectors, as far as the vector level has them for the family, and the rest block by block.
fn batch<A: Address, W: Element>(
    table: &SailLTable<A>,
    level: VectorLevel,
    addresses: &[A],
    next_hops: &mut [NextHop],
) {
    let done =
        if A::FAMILY == Family::V4 { simd::batch::<A, W>(level, table, addresses, next_hops) } else { 0 };
    View::<W>::of::<A>(table.image()).batch(&addresses[done..], &mut next_hops[done..]);
}

fn explain<A: Address, W: Element>(image: &Image, address: A) -> Vec<Step> {
    const NEXT_HOPS: [&str; DEEPEST] = [
        "bn24", "bn32", "bn40", "bn48", "bn56", "bn64", "bn72", "bn80", "bn88", "bn96", "bn104", "bn112",
        "bn120", "n128",
    ];
    const IDS: [&str; DEEPEST - 1] =
        ["c24", "c32", "c40", "c48", "c56", "c64", "c72", "c80", "c88", "c96", "c104", "c112", "c120"];
    let result = |next_hop: u32| match next_hop {
        0 => "no route".to_owned(),
        n => format!("next hop {n}"),
    };
    let step = |section, index: usize, value: u32, meaning| Step {
        section,
        index: index as u64,
        value: value.into(),
        meaning,
    };
    let index = first_index(address);
    let first = image.section::<u32>(BCN16)[index];
    if first & LEAF != 0 {
        return vec![step("bcn16", index, first, result(first & !LEAF))];
    }
    let mut steps = vec![step("bcn16", index, first, format!("go on in chunk {first} of level 24"))];
    let mut chunk = first;
    let last = levels::<A>() - 1;
    for level in 1..last {
        let index = index_in(chunk, address, level);
        let value = number(image.section::<W>(next_hops(level))[index]);
        if value != 0 {
            steps.push(step(NEXT_HOPS[level - 1], index, value, result(value - 1)));
            return steps;
        }
        steps.push(step(NEXT_HOPS[level - 1], index, value, "a longer prefix may match".into()));
        chunk = Ids::of(image, chunk_ids(level)).at(index);
        let meaning = format!("go on in chunk {chunk} of level {}", 8 * (level + 3));
        steps.push(step(IDS[level - 1], index, chunk, meaning));
    }
    let index = index_in(chunk, address, last);
    let value = number(image.section::<W>(next_hops(last))[index]);
    let section = if A::OCTETS == 4 { "n32" } else { NEXT_HOPS[last - 1] };
    steps.push(step(section, index, value, result(value)));
    steps
}
