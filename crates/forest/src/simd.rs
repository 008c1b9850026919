//! Batches by vector gathers: the only unsafe code of the engine.
//!
//! Vectors go to bit 64; lookups of IPv6 that lead on from there are finished one by one.

use std::marker::PhantomData;

use wirespeed_fib::vector::{Cpu, InVectors, Mask, Vector};
use wirespeed_fib::{Address, VectorLevel};

use crate::layout::{Cell, ForestTable};
use crate::rest::UnderWay;

/// Vectors that are looked up in turn, so that several gathers are under way.
const VECTORS: usize = 4;

/// Looks up as many keys from the front of a block as a vector level takes, and returns their number. The
/// table's cells must be of type `C`.
pub(crate) fn block<A: Address, C: Cell>(
    level: VectorLevel,
    table: &ForestTable<A>,
    addresses: &[A],
    state: &mut UnderWay,
) -> usize {
    let cells = PhantomData::<C>;
    // Leaves of 4 bytes are words in any case.
    let in_words = table.may_share && table.leaf_width < 4;
    let done = match (table.width.is_even(), in_words) {
        (true, false) => level.run(Gathers::<A, C, true, false> { table, addresses, state, cells }),
        (true, true) => level.run(Gathers::<A, C, true, true> { table, addresses, state, cells }),
        (false, _) => level.run(Gathers::<A, C, false, true> { table, addresses, state, cells }),
    };
    done.unwrap_or(0)
}

/// The keys of a block. The code for single tables knows that cells have two halves and that nobody writes
/// meanwhile: with a width that it reads from the table, small tables are looked up up to 5 % slower.
struct Gathers<'a, A, C, const IS_EVEN: bool, const IN_WORDS: bool> {
    table: &'a ForestTable<A>,
    addresses: &'a [A],
    state: &'a mut UnderWay,
    cells: PhantomData<C>,
}

impl<A: Address, C: Cell, const IS_EVEN: bool, const IN_WORDS: bool> InVectors
    for Gathers<'_, A, C, IS_EVEN, IN_WORDS>
{
    type Output = usize;

    #[inline(always)]
    fn run<V: Vector>(mut self, cpu: Cpu<V>) -> usize {
        let at = self.rounds::<V, VECTORS>(cpu, 0);
        self.rounds::<V, 1>(cpu, at)
    }
}

impl<A: Address, C: Cell, const IS_EVEN: bool, const IN_WORDS: bool> Gathers<'_, A, C, IS_EVEN, IN_WORDS> {
    /// Looks up keys from `first` on, this number of vectors at a time, while there are enough. Returns the
    /// first key that is left.
    #[inline(always)]
    fn rounds<V: Vector, const COUNT: usize>(&mut self, cpu: Cpu<V>, first: usize) -> usize {
        let (table, stride) = (self.table, u32::from(self.table.stride));
        let width = if IS_EVEN { C::EVEN } else { table.width };
        let (cells, leaves) = (table.cells::<C>().padded(), table.padded_leaves());
        let (zero, leaf_bit) = (V::splat(cpu, 0), V::splat(cpu, width.leaf_bit()));
        // If leaves are shared, words are read whole: elements after a word may be of a leaf that is written
        // meanwhile.
        let in_word = (4 / table.leaf_width).trailing_zeros();
        let leaf_mask = V::splat(cpu, u32::MAX >> (32 - 8 * table.leaf_width));
        let number_bits = V::splat(cpu, width.leaf_bit() - 1);
        let route_bits = V::splat(cpu, width.route_bits());
        let route_mask = V::splat(cpu, width.route_mask());
        let mut at = first;
        while self.addresses.len() - at >= COUNT * V::LANES {
            let keys = &self.addresses[at..at + COUNT * V::LANES];
            let mut words = [[zero; 2]; COUNT];
            let mut found = [zero; COUNT];
            let mut links = [zero; COUNT];
            // The element of a leaf that ends a lookup; 0 for none, as leaf 0 is not used.
            let mut last = [zero; COUNT];
            for v in 0..COUNT {
                let keys = &keys[v * V::LANES..(v + 1) * V::LANES];
                words[v] = match A::BITS {
                    32 => [V::load(cpu, keys), zero],
                    _ => V::load_first_words(cpu, keys),
                };
                found[v] = V::load(cpu, &self.state.routes[at + v * V::LANES..]);
                links[v] = V::load(cpu, &self.state.links[at + v * V::LANES..]);
            }
            let (mut from, vector_bits) = (0, A::BITS.min(64));
            while from < vector_bits {
                if from == 32 {
                    words.iter_mut().for_each(|words| words[0] = words[1]);
                }
                from += table.stride;
                let mut any = !V::all(cpu);
                for v in 0..COUNT {
                    let index = (links[v] & number_bits) << stride | words[v][0] >> (32 - stride);
                    words[v][0] = words[v][0] << stride;
                    let is_leaf = links[v].has_any(leaf_bit);
                    last[v] = V::select(is_leaf, index, last[v]);
                    let open = !(links[v].equals(zero) | is_leaf);
                    any = any | open;
                    let route;
                    #[allow(unsafe_code)]
                    // SAFETY: an open lane has the number of a chunk, which every image and patch is checked
                    // for. Cells are fewer than 2^30, so an index of a half of a cell is below 2^31; a load
                    // from the last one ends in the padding.
                    unsafe {
                        if size_of::<C>() == 4 {
                            let cell = V::gather_shared::<u32>(cpu, open, index, cells, zero);
                            route = cell & route_mask;
                            links[v] = if IS_EVEN { cell >> 16 } else { cell.shifted_right(route_bits) };
                        } else {
                            let half = index << 1;
                            route = V::gather_shared::<u32>(cpu, open, half, cells, zero);
                            let upper = half + V::splat(cpu, 1);
                            links[v] = V::gather_shared::<u32>(cpu, open, upper, cells, zero);
                        }
                    }
                    found[v] = V::select(route.equals(zero), found[v], route);
                }
                if !any.any() {
                    break;
                }
            }
            for v in 0..COUNT {
                let ends = !last[v].equals(zero);
                #[allow(unsafe_code)]
                // SAFETY: a lane that ends has the number of a leaf, which every image and patch is checked
                // for. Routes of leaves are fewer than 2^30, and a load from the last one ends in the
                // padding. A leaf has whole words.
                let route = unsafe {
                    match table.leaf_width {
                        _ if IN_WORDS => {
                            let at = last[v].shifted_right(V::splat(cpu, in_word));
                            let word = V::gather_shared::<u32>(cpu, ends, at, leaves, zero);
                            let place = (last[v] & V::splat(cpu, (1 << in_word) - 1)) << (5 - in_word);
                            word.shifted_right(place) & leaf_mask
                        }
                        1 => V::gather_shared::<u8>(cpu, ends, last[v], leaves, zero),
                        2 => V::gather_shared::<u16>(cpu, ends, last[v], leaves, zero),
                        _ => V::gather_shared::<u32>(cpu, ends, last[v], leaves, zero),
                    }
                };
                found[v] = V::select(route.equals(zero), found[v], route);
                found[v].store(&mut self.state.routes[at + v * V::LANES..]);
                let mut open = (!links[v].equals(zero)).bits();
                if from < A::BITS && open != 0 {
                    links[v].store(&mut self.state.links[at + v * V::LANES..]);
                    while open != 0 {
                        let key = v * V::LANES + open.trailing_zeros() as usize;
                        let (route, link) = (self.state.routes[at + key], self.state.links[at + key]);
                        self.state.routes[at + key] = table.rest::<C>(keys[key], from, route, link);
                        open &= open - 1;
                    }
                }
            }
            at += COUNT * V::LANES;
        }
        at
    }
}
