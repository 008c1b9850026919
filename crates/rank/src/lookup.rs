//! Lookups in ranked chunks, alone and in batches.

use wirespeed_fib::{Address, Lookup, NextHop, Step, V4, VectorLevel};
use wirespeed_image::{Element, Image, SectionId, Table, number};

use crate::layout::{LEVEL16, LEVEL24, LEVEL32, RUNS, RankTable, Word, flag_of};
use crate::portable::{View, word_index};
use crate::simd;

/// Calls a function generic over the types of chunk ids and runs with those of a table.
macro_rules! typed {
    ($table:expr, $function:ident($($argument:expr),*)) => {
        match ($table.shape().ids, $table.shape().runs) {
            (2, 2) => $function::<u16, u16>($($argument),*),
            (2, _) => $function::<u16, u32>($($argument),*),
            (_, 2) => $function::<u32, u16>($($argument),*),
            _ => $function::<u32, u32>($($argument),*),
        }
    };
}

impl Lookup<V4> for RankTable {
    #[inline]
    fn lookup(&self, address: V4) -> NextHop {
        typed!(self, lookup(self.image(), address))
    }

    fn lookup_batch(&self, addresses: &[V4], next_hops: &mut [NextHop]) {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each key");
        typed!(self, batch(self.image(), addresses, next_hops));
    }

    fn explain(&self, address: V4) -> Vec<Step> {
        typed!(self, explain(self.image(), address))
    }
}

#[inline]
fn lookup<I: Element, W: Element>(image: &Image, address: V4) -> NextHop {
    // Section by section: finding the one that few need costs more than a read.
    let chunk = number(image.section::<I>(LEVEL16)[usize::from(address.first_16())]);
    let octet = address.octet(2);
    let word = Word(image.section::<u64>(LEVEL24)[word_index(chunk, octet)]);
    let value = number(image.section::<W>(RUNS)[word.run_of(octet)]);
    if value & flag_of::<W>() == 0 {
        return NextHop(value);
    }
    View::<I, W>::of(image).lookup_long(value, address)
}

/// A batch by the fastest means that this CPU has.
fn batch<I: Element, W: Element>(image: &Image, addresses: &[V4], next_hops: &mut [NextHop]) {
    let view = View::<I, W>::of(image);
    let done = simd::batch(VectorLevel::best(), &view, image, addresses, next_hops);
    simd::blocks(&view, &addresses[done..], &mut next_hops[done..]);
}

fn explain<I: Element, W: Element>(image: &Image, address: V4) -> Vec<Step> {
    let view = View::<I, W>::of(image);
    let slot = usize::from(address.first_16());
    let chunk = number(view.level16[slot]);
    let mut steps = vec![Step {
        section: "level16",
        index: slot as u64,
        value: chunk.into(),
        meaning: format!("go on in chunk {chunk} of level 24"),
    }];
    if let Some(chunk) = view.explain_chunk(LEVEL24, chunk, address.octet(2), &mut steps) {
        view.explain_chunk(LEVEL32, chunk, address.octet(3), &mut steps);
    }
    steps
}

impl<I: Element, W: Element> View<'_, I, W> {
    /// The steps through one chunk; the chunk that comes after it.
    fn explain_chunk(&self, level: SectionId, chunk: u32, octet: u8, steps: &mut Vec<Step>) -> Option<u32> {
        let (section, words) = match level {
            LEVEL24 => ("level24", self.level24),
            _ => ("level32", self.level32),
        };
        let index = word_index(chunk, octet);
        let run = Word(words[index]).run_of(octet);
        let meaning = format!("element {octet} is in run {run}");
        steps.push(Step { section, index: index as u64, value: words[index], meaning });
        let value = number(self.runs[run]);
        let next = (value & flag_of::<W>() != 0).then_some(value & !flag_of::<W>());
        let meaning = match (next, value) {
            (Some(chunk), _) if level == LEVEL24 => {
                format!("a longer prefix may match: go on in chunk {chunk} of level 32")
            }
            (Some(_), _) | (None, 0) => "no route".to_owned(),
            (None, next_hop) => format!("next hop {next_hop}"),
        };
        steps.push(Step { section: "runs", index: run as u64, value: value.into(), meaning });
        next
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::conformance::{scattered, tables};
    use wirespeed_fib::oracle::boundaries;
    use wirespeed_fib::{BuildOptions, Engine};

    use super::*;
    use crate::form::Rank;

    /// Whole blocks, which on a CPU with vectors no batch has.
    #[test]
    fn blocks_answer_as_single_lookups() {
        fn blocks<I: Element, W: Element>(image: &Image, addresses: &[V4]) -> Vec<NextHop> {
            let mut found = vec![NextHop::NONE; addresses.len()];
            View::<I, W>::of(image).blocks(addresses, &mut found);
            found
        }
        for (name, rib) in tables::hand_picked::<V4>() {
            let (_, table) = Rank::build(&rib, &BuildOptions::default()).unwrap();
            let mut addresses = boundaries(rib.iter().map(|(prefix, _)| prefix));
            addresses.extend(scattered::<V4>(1_000));
            let found = typed!(table, blocks(table.image(), &addresses));
            for (&address, found) in addresses.iter().zip(found) {
                assert_eq!(found, table.lookup(address), "{name}: {address}");
            }
        }
    }
}
