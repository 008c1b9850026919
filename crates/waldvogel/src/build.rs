//! [`Waldvogel`]: build, on top of the [`Form`].

use wirespeed_fib::{Address, BuildError, BuildOptions, Engine, NextHop, Outgrown, Prefix, Rib, Standing};
use wirespeed_image::{Changes, Image, Patch, Table};

use crate::buckets::{Buckets, Edit, Words};
use crate::form::{Form, STEPS, misses};
use crate::hash::Seed;
use crate::layout::{CHUNKS, MISSES, PILOTS, ROOT, ROPES, SLOTS, Sizes, WIDE, WaldvogelTable, allocate};
use crate::rope::Rope;
use crate::slots::Slots;
use crate::tree::Tree;
use crate::value::WIDE_FROM;
use crate::value::{MAX_NEXT_HOP, MOST};

/// Seeds to try; each fourth one with room for half as many keys more. With one that nobody knows the first
/// will do.
const ATTEMPTS: u32 = 16;
/// Most pieces, of [`STEPS`] records each.
const MOST_PIECES: u32 = MOST / STEPS;

/// The control plane of binary search on prefix lengths: build, and keep up to date, a [`WaldvogelTable`].
///
/// Memory: the hash table of the keys of up to 48 bits once and a half more, and about 80 bytes for each key
/// that leads to longer ones.
#[derive(Clone, Debug)]
pub struct Waldvogel<A: Address> {
    pub(crate) form: Form<A>,
    /// The largest next hop that has been in the table.
    pub(crate) results: u32,
}

impl<A: Address> Engine<A> for Waldvogel<A> {
    const NAME: &'static str = "waldvogel";
    const STANDING: Standing = Standing::Niche("scattered routes, such as hosts all over the address space");
    type Table = WaldvogelTable<A>;

    fn build(rib: &Rib<A>, options: &BuildOptions) -> Result<(Self, WaldvogelTable<A>), BuildError> {
        let results = rib.max_next_hop().0;
        let widest = results.max(options.results);
        if widest > MAX_NEXT_HOP {
            return Err(limit("next hops", MAX_NEXT_HOP, u64::from(widest)));
        }
        let (mut form, mut sizes, seed, wide) = filled(rib, options)?;
        let used = form.records.in_use();
        sizes.pieces = (used + options.head_room_of(used, 1, 256)).min(MOST_PIECES);
        form.records.set_capacity(sizes.pieces);
        let mut image = compile(&form, &wide, sizes, seed, options.memory_cap)?;
        image.set_counts(rib.len() as u64, u64::from(results));
        let table = WaldvogelTable::of_shape(image)?;
        Ok((Self { form, results }, table))
    }

    fn patch(
        &mut self,
        table: &WaldvogelTable<A>,
        rib: &Rib<A>,
        changed: &[Prefix<A>],
    ) -> Result<Patch, Outgrown> {
        self.patch_beside(table.image(), rib, changed)
    }

    fn memory_usage(&self) -> u64 {
        self.form.memory_usage()
    }
}

/// A form with what it was made by, and the words of its longer keys.
type Filled<A> = (Form<A>, Sizes, Seed, Vec<u64>);

/// The form of a whole Rib, with the first seed for which each key finds room.
fn filled<A: Address>(rib: &Rib<A>, options: &BuildOptions) -> Result<Filled<A>, BuildError> {
    let (tree, chunked) = Tree::of(rib);
    let longer = usize::from(WIDE_FROM).min(rib.by_length().len());
    let (narrow, wide) = rib.by_length().split_at(longer);
    let wide_markers = tree.markers().iter().filter(|marker| marker.len() >= WIDE_FROM).count();
    let narrow = narrow.iter().sum::<usize>() + tree.markers().len() - wide_markers;
    let wide = wide.iter().sum::<usize>() + wide_markers;
    for attempt in 0..ATTEMPTS {
        let roomy = |keys: usize| keys + keys / 2 * (attempt / 4) as usize;
        let sizes = Sizes {
            chunks: u32::try_from(chunked.len()).expect("at most one for each element of the root"),
            pieces: MOST_PIECES,
            slot_bits: Slots::bits_for(roomy(narrow), options.tight).ok_or(limit(
                "keys of 48 bits",
                3 << 25,
                narrow as u64,
            ))?,
            wide: u32::try_from(if A::BITS < WIDE_FROM {
                1
            } else {
                Buckets::count_for(roomy(wide), options.tight)
            })
            .map_err(|_| limit("longer keys", u32::MAX, wide as u64))?,
        };
        let seed = Seed::new(options.seed, attempt);
        let mut form = Form::new(tree.clone(), &chunked, sizes, seed);
        let mut edit = Edit { changes: Changes::none(), wide: Words::built(sizes.wide) };
        if form.fill(rib, &mut edit).is_ok()
            && let Words::Built(wide) = edit.wide
        {
            return Ok((form, sizes, seed, wide));
        }
    }
    Err(limit("seeds to place all keys by", ATTEMPTS, u64::from(ATTEMPTS) + 1))
}

/// The image of a form.
fn compile<A: Address>(
    form: &Form<A>,
    wide: &[u64],
    sizes: Sizes,
    seed: Seed,
    cap: Option<u64>,
) -> Result<Image, BuildError> {
    let mut image = allocate::<A>(sizes, seed, cap)?;
    for (section, values) in [(ROOT, &form.root), (CHUNKS, &form.chunks)] {
        for (element, value) in image.section_mut::<u32>(section)?.iter_mut().zip(values) {
            *element = value.0;
        }
    }
    let pieces = form.records.built().chunks_exact(2);
    for (element, piece) in image.section_mut::<u64>(ROPES)?.iter_mut().zip(pieces.clone()) {
        *element = piece[1];
    }
    let records = image.section_mut::<u32>(MISSES)?.chunks_exact_mut(STEPS as usize);
    for ((elements, piece), number) in records.zip(pieces).zip(0..) {
        let best = NextHop(u32::try_from(piece[0]).expect("a next hop"));
        for (element, miss) in elements.iter_mut().zip(misses(number, best, Rope(piece[1]))) {
            *element = miss.0;
        }
    }
    image.section_mut::<u8>(PILOTS)?.copy_from_slice(form.keys.narrow.pilots());
    image.section_mut::<u64>(SLOTS)?.copy_from_slice(form.keys.narrow.words());
    image.section_mut::<u64>(WIDE)?.copy_from_slice(wide);
    Ok(image)
}

fn limit(what: &'static str, limit: u32, found: u64) -> BuildError {
    BuildError::Limit { engine: "waldvogel", what, limit: limit.into(), found }
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::conformance::{Expected, check};
    use wirespeed_fib::{V6, oracle};
    use wirespeed_image::Table;

    use super::*;
    use crate::hash::{group, word};
    use crate::layout::SEED;

    /// Prefixes that are all of one group under a seed: no pilot takes them to slots of their own, with the
    /// next seed there is nothing special about them.
    #[test]
    fn keys_made_to_collide_find_room_by_another_seed() {
        const KEYS: usize = 3_000;
        let options = BuildOptions { seed: Some(5), ..BuildOptions::default() };
        let bits = Slots::bits_for(KEYS, false).expect("a small number");
        let first = Seed::new(options.seed, 0);
        let colliding = |high: &u64| group(first.of_word(word(*high, 48)), bits) == 0;
        // All of one length in one region, so that they are all the keys that there are.
        let made = (0..1u64 << 32).map(|at| 0x2001 << 48 | at << 16).filter(colliding).take(KEYS);
        let rib: Rib<V6> = made
            .zip((1..).map(NextHop))
            .map(|(high, n)| (Prefix::around(V6(u128::from(high) << 64), 48), n))
            .collect();
        let (_, table) = Waldvogel::build(&rib, &options).expect("another seed has room");
        assert_eq!(rib.len(), KEYS);
        assert_eq!(table.sizes.slot_bits, bits, "not by more slots");
        assert_ne!(table.image().section::<u64>(SEED), first.0);
        check(
            &table,
            &Expected::of(&rib),
            &oracle::boundaries(rib.iter().map(|(prefix, _)| prefix)),
            "made to collide",
        );
    }
}
