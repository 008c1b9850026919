//! The ceiling: what the memory system gives a program that does nothing but read one element of a table per
//! key.
//!
//! Every lookup scheme reads at least once; one that reads from a table of this width and size can't be
//! faster than this. The keys are those of the random IPv4 trace, cut to the table's length, so that the
//! ceiling runs in the same rounds as the tables that are held against it. The elements are noise: there is
//! nothing to look up.

#[cfg(target_arch = "x86_64")]
mod vector;

use anyhow::Result;
use wirespeed_fib::{NextHop, V4};
use wirespeed_image::{Element, Image, ImageBuilder, SectionId};

use crate::lineup::Entry;
use crate::table::{Contestant, lane};
use crate::trace::Keys;

/// Bytes of the tables: within a large L2, within an L3, at its edge.
const SIZES: [u64; 3] = [2 << 20, 8 << 20, 32 << 20];

/// Every width at every size, read one by one and with the widest gathers that this CPU has.
pub fn lookups() -> Vec<Entry<V4>> {
    let mut entries = Vec::new();
    for bytes in SIZES {
        add::<u8>(&mut entries, bytes);
        add::<u16>(&mut entries, bytes);
        add::<u32>(&mut entries, bytes);
    }
    entries
}

fn add<T: Width>(entries: &mut Vec<Entry<V4>>, bytes: u64) {
    let ways = T::ways();
    // The narrower vectors only where there are no wider ones.
    let ends = [0, ways.len() - 1].map(|at| ways[at]);
    for &(way, gather) in &ends[usize::from(ways.len() == 1)..] {
        let name = format!("gather-u{}-{}MB-{way}", 8 * size_of::<T>(), bytes >> 20);
        entries.push(Entry::new(name.clone(), move |rib| {
            lane(name.clone(), rib, |_| Ok(Gather { image: table::<T>(bytes)?, gather }))
        }));
    }
}

/// A table of a power of two of elements, and [`PADDING`](Self::PADDING) more that no key leads to.
#[derive(Clone, Copy)]
struct Padded<'a, T>(&'a [T]);

impl<'a, T> Padded<'a, T> {
    const PADDING: usize = 4;

    fn new(elements: &'a [T]) -> Self {
        assert!(elements.len().checked_sub(Self::PADDING).is_some_and(usize::is_power_of_two));
        Self(elements)
    }

    /// What cuts a key to an index.
    fn mask(self) -> usize {
        self.0.len() - Self::PADDING - 1
    }
}

/// A way to read `table[key & mask]` for every key.
type GatherFn<T> = fn(table: Padded<'_, T>, keys: &[V4], out: &mut [u32]);

/// A width of elements.
trait Width: Element {
    /// Widens it to an answer.
    fn widen(self) -> u32;
    /// The ways that this CPU has of gathering it, the widest vectors last.
    fn ways() -> Vec<(&'static str, GatherFn<Self>)>;
}

macro_rules! width {
    ($int:ty, $avx512:ident, $avx2:ident) => {
        impl Width for $int {
            #[inline]
            fn widen(self) -> u32 {
                self.into()
            }

            fn ways() -> Vec<(&'static str, GatherFn<Self>)> {
                #[allow(unused_mut)] // without vectors there is one way
                let mut ways: Vec<(&'static str, GatherFn<Self>)> = vec![("portable", portable::<Self>)];
                #[cfg(target_arch = "x86_64")]
                {
                    if vector::has_avx2() {
                        ways.push(("avx2", vector::$avx2));
                    }
                    if vector::has_avx512() {
                        ways.push(("avx512", vector::$avx512));
                    }
                }
                ways
            }
        }
    };
}

width!(u8, avx512_u8, avx2_u8);
width!(u16, avx512_u16, avx2_u16);
width!(u32, avx512_u32, avx2_u32);

/// One read after the other: the processor finds the parallelism.
#[allow(unsafe_code)]
fn portable<T: Width>(table: Padded<'_, T>, keys: &[V4], out: &mut [u32]) {
    let mask = table.mask();
    for (out, key) in out.iter_mut().zip(keys) {
        // SAFETY: an index is at most the mask, which is below the length.
        let element = unsafe { *table.0.get_unchecked(key.0 as usize & mask) };
        *out = element.widen();
    }
}

struct Gather<T: Width> {
    /// Holds the table, for its huge pages.
    image: Image,
    gather: GatherFn<T>,
}

const TABLE: SectionId = SectionId(0);

fn table<T: Width>(bytes: u64) -> Result<Image> {
    let len = bytes / size_of::<T>() as u64;
    let mut image = ImageBuilder::new("gather", 1)
        .section::<T>("table", len + Padded::<T>::PADDING as u64)
        .build(None)?;
    for (index, element) in (0u64..).zip(image.section_mut::<T>(TABLE)?) {
        // The top byte of a multiplicative hash fits in every width.
        let noise = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        *element = T::try_from(noise).unwrap_or_else(|_| unreachable!("a byte fits"));
    }
    Ok(image)
}

impl<T: Width> Gather<T> {
    fn table(&self) -> Padded<'_, T> {
        Padded::new(self.image.section(TABLE))
    }
}

impl<T: Width> Contestant<V4> for Gather<T> {
    type Answer = u32;

    fn result(answer: u32) -> NextHop {
        NextHop(answer)
    }

    fn many(&self, keys: Keys<'_, V4>, answers: &mut [u32]) {
        (self.gather)(self.table(), keys.host, answers);
    }

    fn one(&self, key: V4) -> NextHop {
        let mut answer = [0];
        (self.gather)(self.table(), &[key], &mut answer);
        NextHop(answer[0])
    }

    fn memory(&self) -> Option<u64> {
        Some(self.image.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agree<T: Width>() {
        let image = table::<T>(1 << 12).unwrap();
        let table = Padded::new(image.section::<T>(TABLE));
        // An odd number, so that what is left over after whole vectors is read too; high bits, to be cut off;
        // the last element, whose neighbours are padding.
        let mut keys: Vec<V4> = (0..1003u32).map(|i| V4(i.wrapping_mul(0x9e37_79b9))).collect();
        keys[7] = V4(u32::MAX);
        let expected: Vec<u32> =
            keys.iter().map(|key| table.0[key.0 as usize & table.mask()].widen()).collect();
        for (way, gather) in T::ways() {
            let mut out = vec![u32::MAX; keys.len()];
            gather(table, &keys, &mut out);
            assert_eq!(out, expected, "{way} u{}", 8 * size_of::<T>());
        }
    }

    #[test]
    fn every_way_reads_the_same() {
        agree::<u8>();
        agree::<u16>();
        agree::<u32>();
    }
}
