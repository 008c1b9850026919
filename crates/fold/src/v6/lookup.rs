//! Lookups, alone and in batches: step by step, until an element is a next hop.

use wirespeed_fib::{Lookup, NextHop, Step, V6, VectorLevel};
use wirespeed_image::{Element, Image, Table, WORD, number};

use super::layout::{FoldTableV6, MOST_STEPS, Rounds, Width, bits, section};
use super::rest::from_step;
use super::simd;

/// Keys of a block, a number that fits in a byte.
const BLOCK: usize = 64;

impl Lookup<V6> for FoldTableV6 {
    #[inline]
    fn lookup(&self, address: V6) -> NextHop {
        match self.width {
            Width::Two => lookup::<u16>(self, address),
            Width::Four => lookup::<u32>(self, address),
        }
    }

    fn lookup_batch(&self, addresses: &[V6], next_hops: &mut [NextHop]) {
        self.lookup_batch_in(self.rounds(VectorLevel::best()), addresses, next_hops);
    }

    fn explain(&self, address: V6) -> Vec<Step> {
        match self.width {
            Width::Two => explain::<u16>(self, address),
            Width::Four => explain::<u32>(self, address),
        }
    }
}

impl FoldTableV6 {
    /// Looks up a batch in rounds of a kind, to measure one against the other.
    #[doc(hidden)]
    pub fn lookup_batch_in(&self, rounds: Rounds, addresses: &[V6], next_hops: &mut [NextHop]) {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each key");
        let how = (VectorLevel::best(), rounds);
        match self.width {
            Width::Two => batch::<u16>(self, how, addresses, next_hops),
            Width::Four => batch::<u32>(self, how, addresses, next_hops),
        }
    }
}

/// The elements of a step.
#[inline]
fn elements<W: Element>(image: &Image, step: usize) -> &[W] {
    bytemuck::cast_slice(image.section::<u64>(section(step)))
}

#[inline]
fn lookup<W: Element>(table: &FoldTableV6, address: V6) -> NextHop {
    from_step::<W>(table, address, 0, 0)
}

/// A batch in vectors, as far as the vector level has them, and the rest block by block.
fn batch<W: Element>(
    table: &FoldTableV6,
    (level, rounds): (VectorLevel, Rounds),
    addresses: &[V6],
    next_hops: &mut [NextHop],
) {
    let done = simd::batch::<W>(level, rounds, table, addresses, next_hops);
    portable::<W>(table, &addresses[done..], &mut next_hops[done..]);
}

/// A batch block by block, each step for all keys of a block that are not done before the next.
fn portable<W: Element>(table: &FoldTableV6, addresses: &[V6], next_hops: &mut [NextHop]) {
    let steps: [&[W]; MOST_STEPS] = std::array::from_fn(|step| match step < table.shape.len() {
        true => elements(table.image(), step),
        false => &[],
    });
    for (addresses, next_hops) in addresses.chunks(BLOCK).zip(next_hops.chunks_mut(BLOCK)) {
        let mut open: [u8; BLOCK] = std::array::from_fn(|key| key.to_le_bytes()[0]);
        let mut chunks = [0; BLOCK];
        let mut count = addresses.len();
        let mut from = 0;
        for (elements, &stride) in steps.iter().zip(table.shape) {
            let mut still = 0;
            for which in 0..count {
                let key = usize::from(open[which % BLOCK]);
                let index = (chunks[which % BLOCK] as usize) << stride | bits(addresses[key], from, stride);
                let found = number(elements[index]);
                next_hops[key] = NextHop(found);
                // Moving the end of the list or not takes the place of a branch.
                open[still % BLOCK] = open[which % BLOCK];
                chunks[still % BLOCK] = found.wrapping_sub(table.base);
                still += usize::from(found >= table.base);
            }
            count = still;
            if count == 0 {
                break;
            }
            from += stride;
        }
    }
}

fn explain<W: Element>(table: &FoldTableV6, address: V6) -> Vec<Step> {
    const NAMES: [&str; MOST_STEPS] = [
        "t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9", "t10", "t11", "t12", "t13", "t14", "t15",
    ];
    let mut steps = Vec::new();
    let (mut from, mut chunk) = (0, 0u32);
    for (step, &stride) in table.shape.iter().enumerate() {
        let index = (chunk as usize) << stride | bits(address, from, stride);
        let found = number(elements::<W>(table.image(), step)[index]);
        from += stride;
        let meaning = match (found.checked_sub(table.base), found) {
            (Some(next), _) => {
                chunk = next;
                format!("after {from} bits go on in chunk {next}")
            }
            (None, 0) => "no route".to_owned(),
            (None, n) => format!("next hop {n}"),
        };
        // An element is part of the word that the section has.
        let (word, within) = (index * size_of::<W>() / WORD, index % (WORD / size_of::<W>()));
        steps.push(Step {
            section: NAMES[step],
            index: word as u64,
            value: table.image().section::<u64>(section(step))[word],
            meaning: format!("element {within} of the word: {meaning}"),
        });
        if found < table.base {
            break;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::conformance::{Expected, scattered, tables};
    use wirespeed_fib::{BuildError, BuildOptions, Engine, Rib, Strides, oracle};

    use super::super::FoldV6;
    use super::*;

    /// The suite sees only the vector level that the CPU at hand prefers.
    #[test]
    fn every_way_finds_the_same() {
        for (name, rib) in tables::hand_picked::<V6>() {
            let (_, table) = FoldV6::build(&rib, &BuildOptions::default()).expect("a valid table is built");
            let expected = Expected::of(&rib);
            let mut keys = oracle::boundaries(rib.iter().map(|(prefix, _)| prefix));
            keys.extend(scattered::<V6>(1_000));
            let levels = VectorLevel::ALL.into_iter().filter(|level| level.is_here());
            for how in levels.flat_map(|level| [(level, Rounds::Near), (level, Rounds::Far)]) {
                let mut found = vec![NextHop(u32::MAX); keys.len()];
                match table.width {
                    Width::Two => batch::<u16>(&table, how, &keys, &mut found),
                    Width::Four => batch::<u32>(&table, how, &keys, &mut found),
                }
                for (&key, &found) in keys.iter().zip(&found) {
                    assert_eq!(found, expected.lookup(key), "{name}: {key} by {how:?}");
                }
            }
        }
    }

    #[test]
    fn a_table_of_each_shape_answers_alike() {
        for (name, rib) in tables::hand_picked::<V6>() {
            let expected = Expected::of(&rib);
            let mut keys = oracle::boundaries(rib.iter().map(|(prefix, _)| prefix));
            keys.extend(scattered::<V6>(300));
            for shape in super::super::layout::SHAPES {
                let options =
                    BuildOptions { strides: Strides::Given(shape.to_vec()), ..BuildOptions::default() };
                let (_, table) = FoldV6::build(&rib, &options).expect("a valid table is built");
                assert_eq!(table.shape, shape);
                let mut found = vec![NextHop::NONE; keys.len()];
                table.lookup_batch(&keys, &mut found);
                for (&key, &found) in keys.iter().zip(&found) {
                    assert_eq!((found, table.lookup(key)), (expected.lookup(key), found), "{name}: {key}");
                }
            }
        }
        let options = BuildOptions { strides: Strides::FastestOnGpu, ..BuildOptions::default() };
        let (_, table) = FoldV6::build(&Rib::new(), &options).expect("a valid table is built");
        assert_eq!(table.shape, super::super::layout::ON_GPU);
        let strides = Strides::Given(vec![64, 64]);
        let other = FoldV6::build(&Rib::new(), &BuildOptions { strides, ..BuildOptions::default() });
        assert!(matches!(other, Err(BuildError::Strides { .. })));
    }

    /// A table scattered over so many /20s that another shape takes less.
    #[test]
    fn scattered_tables_take_the_other_shape() {
        if wirespeed_image::rounds::leaves_to_ci() {
            return;
        }
        let rib = scattered::<V6>(9_000).into_iter().zip((1..).map(NextHop));
        let rib: wirespeed_fib::Rib<V6> =
            rib.map(|(address, n)| (wirespeed_fib::Prefix::host(address), n)).collect();
        let (_, table) = FoldV6::build(&rib, &BuildOptions::default()).expect("a valid table is built");
        assert_eq!(table.shape, super::super::layout::SMALLEST);
        let mut keys = oracle::boundaries(rib.iter().map(|(prefix, _)| prefix));
        keys.extend(scattered::<V6>(1_000));
        let mut found = vec![NextHop::NONE; keys.len()];
        table.lookup_batch(&keys, &mut found);
        let expected = Expected::of(&rib);
        for (&key, &found) in keys.iter().zip(&found) {
            assert_eq!((found, table.lookup(key)), (expected.lookup(key), found), "{key}");
        }
    }
}
