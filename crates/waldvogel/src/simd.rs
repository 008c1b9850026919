//! Batches with AVX-512: the only unsafe code of this crate.
//!
//! Keys stay in vectors, sixteen each, from the first array to the last try. A try masks the keys to their
//! lengths, hashes them in lanes of 64 bits, gathers their pilots and gathers their slots.
//!
//! A value is all there is to know of how far a search has come, however many tries it took. So the keys that
//! are not done go on a pile whatever their next length is, and whenever there are enough for a round they
//! are taken from it: vectors are full until the batch ends. What to do after a try in vain is read only
//! then, for those that need it. A round is four vectors, so that many reads are under way at a time.
//!
//! Keys whose next length no word holds go on a second pile, and a round of these is looked for in buckets
//! with their lines on the way together.

use wirespeed_fib::{Address, NextHop, VectorLevel};

use crate::layout::WaldvogelTable;

/// Looks up as many of the keys, from the front, as a vector level does, where the CPU has it; how many
/// that were.
pub(crate) fn batch<A: Address>(
    level: VectorLevel,
    table: &WaldvogelTable<A>,
    addresses: &[A],
    next_hops: &mut [NextHop],
) -> usize {
    #[cfg(target_arch = "x86_64")]
    if level == VectorLevel::Avx512 && avx512::is_here() {
        #[allow(unsafe_code)]
        // SAFETY: the CPU has what is asked for.
        return unsafe { avx512::batch(table, addresses, next_hops) };
    }
    let _ = (level, table, addresses, next_hops);
    0
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512 {
    use std::arch::x86_64::{
        __m128i, __m512i, __mmask16, _MM_HINT_NTA, _mm_cvtsi32_si128, _mm_prefetch, _mm512_add_epi32,
        _mm512_and_si512, _mm512_castsi512_si256, _mm512_cmpge_epu32_mask, _mm512_cmplt_epu32_mask,
        _mm512_cvtepu32_epi64, _mm512_extracti64x4_epi64, _mm512_i32gather_epi32, _mm512_loadu_si512,
        _mm512_mask_cmpeq_epi32_mask, _mm512_mask_cmpge_epu32_mask, _mm512_mask_cmplt_epu32_mask,
        _mm512_mask_i32gather_epi32, _mm512_mask_i32gather_epi64, _mm512_mask_i32scatter_epi32,
        _mm512_mask_mov_epi32, _mm512_mask_storeu_epi32, _mm512_mask_xor_epi32, _mm512_maskz_compress_epi32,
        _mm512_maskz_compress_epi64, _mm512_mullo_epi32, _mm512_mullo_epi64, _mm512_or_si512,
        _mm512_permutex2var_epi32, _mm512_permutex2var_epi64, _mm512_set1_epi32, _mm512_set1_epi64,
        _mm512_setr_epi32, _mm512_setr_epi64, _mm512_setzero_si512, _mm512_sll_epi32, _mm512_slli_epi32,
        _mm512_slli_epi64, _mm512_srl_epi32, _mm512_srli_epi32, _mm512_srli_epi64, _mm512_srlv_epi64,
        _mm512_storeu_si512, _mm512_sub_epi64, _mm512_ternarylogic_epi64,
    };
    use std::mem::MaybeUninit;

    use wirespeed_fib::{Address, Family, NextHop, VectorLevel};
    use wirespeed_image::Table;

    use crate::hash::{FOLD, HASH_BITS, HASH_MASK, halves};
    use crate::layout::{CHUNK_BITS, CHUNKS, MISSES, MOST_TRIES, PILOTS, ROOT, SLOTS, WaldvogelTable};
    use crate::lookup::{BLOCK, Wide};
    use crate::value::{MOST, NUMBER_BITS, OPEN, Says, Value, WIDE};

    /// Keys in a vector.
    const LANES: usize = 16;
    /// Vectors of a round.
    const VECTORS: usize = 4;
    /// Keys of a round.
    const ROUND: usize = LANES * VECTORS;
    /// Keys that a scatter's index reaches, and more than are worth while.
    const PART: usize = 1 << 20;
    /// How far ahead keys are prefetched, in bytes: past the reads that are under way.
    const AHEAD: usize = 2_048;

    /// Whether the CPU has all that is used here; every one with AVX-512 for servers has.
    #[inline]
    pub(super) fn is_here() -> bool {
        VectorLevel::Avx512.is_here() && is_x86_feature_detected!("avx512dq")
    }

    /// Where to read.
    struct Sections<'a> {
        root: &'a [u32],
        chunks: &'a [u32],
        misses: &'a [u32],
        slots: &'a [u64],
        /// Three bytes more than there are pilots, at least.
        pilots: &'a [u8],
        /// The multipliers of the hash.
        odd: [__m512i; 2],
        /// How much to shift 32 bits for the home of a hash, and its rest for the group, to the left and then
        /// to the right.
        home: __m128i,
        group: [__m128i; 2],
        /// The bits of the number of a slot.
        mask: __m512i,
    }

    impl<'a> Sections<'a> {
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq")]
        fn of<A: Address>(table: &'a WaldvogelTable<A>) -> Self {
            let image = table.image();
            let bits = table.sizes.slot_bits;
            let shift = |by: u32| _mm_cvtsi32_si128(by.cast_signed());
            let [one, other, ..] = table.seed.0.map(|odd| _mm512_set1_epi64(odd.cast_signed()));
            Self {
                root: image.section(ROOT),
                chunks: image.section(CHUNKS),
                misses: image.section(MISSES),
                slots: image.section(SLOTS),
                pilots: image.padded(PILOTS),
                odd: [one, other],
                home: shift(32 - bits),
                group: [shift(bits + 31 - HASH_BITS), shift(34 - bits)],
                mask: _mm512_set1_epi32((1 << bits) - 1),
            }
        }
    }

    /// The keys that are not done, in columns. Nothing is there past the end.
    #[repr(align(64))]
    struct Pile {
        /// The first 64 bits.
        high: [MaybeUninit<u64>; 5 * ROUND],
        /// What to do next: to try a length that a word holds. Without [`OPEN`], which is the mark of a try
        /// in vain: what the record says.
        value: [MaybeUninit<u32>; 5 * ROUND],
        /// The place in the part.
        key: [MaybeUninit<u32>; 5 * ROUND],
        count: usize,
    }

    /// The keys whose next length no word holds, in columns.
    #[repr(align(64))]
    struct WidePile {
        value: [MaybeUninit<u32>; 5 * ROUND],
        /// The place in the part.
        key: [MaybeUninit<u32>; 5 * ROUND],
        count: usize,
    }

    /// Both piles. Neither grows past three rounds: there are fewer than two before keys come, one round at a
    /// time, and what leaves one pile may go on the other.
    struct Piles {
        narrow: Pile,
        wide: WidePile,
    }

    /// Keys on their way.
    #[derive(Clone, Copy)]
    struct Keys {
        high: [__m512i; 2],
        value: __m512i,
        place: __m512i,
        /// Keys that are to be tried.
        open: __mmask16,
    }

    /// # Safety
    /// The CPU must have AVX-512F and DQ.
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) unsafe fn batch<A: Address>(
        table: &WaldvogelTable<A>,
        addresses: &[A],
        results: &mut [NextHop],
    ) -> usize {
        let whole = addresses.len() - addresses.len() % LANES;
        let sections = Sections::of(table);
        let parts = addresses[..whole].chunks(PART).zip(results[..whole].chunks_mut(PART));
        for (addresses, results) in parts {
            // SAFETY: the CPU has what is needed; a part is whole vectors.
            unsafe { part(table, &sections, addresses, results) };
        }
        whole
    }

    /// # Safety
    /// The CPU must have AVX-512F and DQ; there must be as many results as keys, whole vectors of them,
    /// [`PART`] at most.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn part<A: Address>(
        table: &WaldvogelTable<A>,
        sections: &Sections<'_>,
        addresses: &[A],
        results: &mut [NextHop],
    ) {
        let mut piles = Piles {
            narrow: Pile {
                high: [const { MaybeUninit::uninit() }; 5 * ROUND],
                value: [const { MaybeUninit::uninit() }; 5 * ROUND],
                key: [const { MaybeUninit::uninit() }; 5 * ROUND],
                count: 0,
            },
            wide: WidePile {
                value: [const { MaybeUninit::uninit() }; 5 * ROUND],
                key: [const { MaybeUninit::uninit() }; 5 * ROUND],
                count: 0,
            },
        };
        // Tables that we made end before.
        let mut tries_left = addresses.len() * (MOST_TRIES as usize + 1);
        let mut done = 0;
        // SAFETY: as our caller promises; see each.
        unsafe {
            while addresses.len() - done >= ROUND {
                first::<A, VECTORS>(sections, &mut piles, addresses, done, results);
                done += ROUND;
                while tries_left > 0 {
                    if piles.narrow.count >= ROUND {
                        again::<VECTORS>(sections, &mut piles, results);
                    } else if piles.wide.count >= ROUND {
                        again_wide(table, &mut piles, addresses, results);
                    } else {
                        break;
                    }
                    tries_left = tries_left.saturating_sub(ROUND);
                }
                if tries_left == 0 {
                    give_up(&mut piles, results);
                }
            }
            while done < addresses.len() {
                first::<A, 1>(sections, &mut piles, addresses, done, results);
                done += LANES;
            }
            while tries_left > 0 {
                let count = piles.narrow.count;
                if count > LANES {
                    again::<VECTORS>(sections, &mut piles, results);
                } else if piles.wide.count > 0 {
                    again_wide(table, &mut piles, addresses, results);
                } else if count > 0 {
                    again::<1>(sections, &mut piles, results);
                } else {
                    break;
                }
                tries_left = tries_left.saturating_sub(count.clamp(1, ROUND));
            }
        }
        give_up(&mut piles, results);
    }

    /// Forgets what is on the piles.
    #[inline]
    fn give_up(piles: &mut Piles, results: &mut [NextHop]) {
        let (narrow, wide) = (&mut piles.narrow, &mut piles.wide);
        for key in narrow.key[..narrow.count].iter().chain(&wide.key[..wide.count]) {
            // SAFETY: keys up to the count are there.
            results[unsafe { key.assume_init() } as usize] = NextHop::NONE;
        }
        (narrow.count, wide.count) = (0, 0);
    }

    /// One more try of a round of the keys whose next length no word holds, or of fewer where there are no
    /// more.
    ///
    /// # Safety
    /// The places on the pile must be those of keys and of results.
    unsafe fn again_wide<A: Address>(
        table: &WaldvogelTable<A>,
        piles: &mut Piles,
        addresses: &[A],
        results: &mut [NextHop],
    ) {
        let Piles { narrow, wide } = piles;
        let from = wide.count.saturating_sub(BLOCK);
        let mut round = [Wide::default(); BLOCK];
        let count = wide.count - from;
        for (at, key) in (from..).zip(&mut round[..count]) {
            // SAFETY: keys up to the count are there.
            let (place, value) = unsafe { (wide.key[at].assume_init(), wide.value[at].assume_init()) };
            *key = Wide { place, value: Value(value) };
        }
        wide.count = from;
        table.probe_all_wide(addresses, &mut round[..count]);
        for key in &round[..count] {
            let at = key.place as usize;
            results[at] = NextHop(key.value.0);
            match key.value.says() {
                Says::Try(Some(_), _) => {
                    narrow.high[narrow.count] = MaybeUninit::new(halves(addresses[at]).0);
                    narrow.value[narrow.count] = MaybeUninit::new(key.value.0);
                    narrow.key[narrow.count] = MaybeUninit::new(key.place);
                    narrow.count += 1;
                }
                Says::Try(None, _) => {
                    wide.value[wide.count] = MaybeUninit::new(key.value.0);
                    wide.key[wide.count] = MaybeUninit::new(key.place);
                    wide.count += 1;
                }
                Says::NextHop(_) | Says::Chunk(_) => {}
            }
        }
    }

    /// The arrays and the first try of so many vectors of keys from `from` on.
    ///
    /// # Safety
    /// As [`part`]; there must be so many keys.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn first<A: Address, const VECTORS: usize>(
        sections: &Sections<'_>,
        piles: &mut Piles,
        addresses: &[A],
        from: usize,
        results: &mut [NextHop],
    ) {
        let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        let open = _mm512_set1_epi32(OPEN.cast_signed());
        let tries = _mm512_set1_epi32((OPEN | MOST).cast_signed());
        let octets = _mm512_set1_epi32((1 << CHUNK_BITS) - 1);
        let numbers = _mm512_set1_epi32((MOST - 1).cast_signed());
        let zero = _mm512_setzero_si512();
        let mut keys = [Keys { high: [zero; 2], value: zero, place: zero, open: 0 }; VECTORS];
        let mut any = 0;
        for (at, keys) in (from..).step_by(LANES).zip(&mut keys) {
            // SAFETY: there are 16 keys and 16 results; the root has an element for any 16 bits, the numbers
            // of chunks in elements are those of some, which every image and patch is checked for.
            unsafe {
                keys.high = highs(&addresses[at..at + LANES]);
                let bits = upper(keys.high);
                let element = _mm512_srli_epi32::<16>(bits);
                let mut value = _mm512_i32gather_epi32::<4>(element, sections.root.as_ptr().cast());
                let chunked = _mm512_cmpge_epu32_mask(value, open) & _mm512_cmplt_epu32_mask(value, tries);
                if chunked != 0 {
                    let octet =
                        _mm512_and_si512(_mm512_srli_epi32::<{ 16 - CHUNK_BITS as u32 }>(bits), octets);
                    let chunk = _mm512_slli_epi32::<{ CHUNK_BITS as u32 }>(_mm512_and_si512(value, numbers));
                    let element = _mm512_or_si512(chunk, octet);
                    value = _mm512_mask_i32gather_epi32::<4>(
                        value,
                        chunked,
                        element,
                        sections.chunks.as_ptr().cast(),
                    );
                }
                keys.value = value;
                keys.place = _mm512_add_epi32(lanes, _mm512_set1_epi32(i32::try_from(at).unwrap_or(0)));
                _mm512_storeu_si512(results[at..at + LANES].as_mut_ptr().cast(), value);
                keys.open = _mm512_cmpge_epu32_mask(value, open);
                any |= keys.open;
            }
        }
        if any == 0 {
            return;
        }
        // SAFETY: the values come from a table.
        unsafe {
            for keys in &mut keys {
                set_aside(&mut piles.wide, keys);
            }
            let here = keys.map(|keys| keys.open);
            find(sections, &mut keys);
            let to = results[from..from + LANES * VECTORS].as_mut_ptr();
            for (at, (keys, here)) in keys.iter_mut().zip(here).enumerate() {
                // What is not a next hop yet is overwritten later.
                _mm512_mask_storeu_epi32(to.add(at * LANES).cast(), here, keys.value);
                leave(piles, keys);
            }
        }
    }

    /// One more try of so many vectors of keys of the pile, or of fewer where there are no more.
    ///
    /// # Safety
    /// As [`part`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn again<const VECTORS: usize>(
        sections: &Sections<'_>,
        piles: &mut Piles,
        results: &mut [NextHop],
    ) {
        let pile = &mut piles.narrow;
        let zero = _mm512_setzero_si512();
        let mut keys = [Keys { high: [zero; 2], value: zero, place: zero, open: 0 }; VECTORS];
        let from = pile.count.saturating_sub(LANES * VECTORS);
        for (at, keys) in (from..).step_by(LANES).zip(&mut keys) {
            let here = pile.count.saturating_sub(at).min(LANES);
            // SAFETY: the columns are longer than that. What is past the end is not looked at.
            unsafe {
                let high = pile.high.as_ptr().add(at).cast::<__m512i>();
                keys.high = [_mm512_loadu_si512(high), _mm512_loadu_si512(high.add(1))];
                keys.value = _mm512_loadu_si512(pile.value.as_ptr().add(at).cast());
                keys.place = _mm512_loadu_si512(pile.key.as_ptr().add(at).cast());
                keys.open = u16::try_from((1u32 << here) - 1).unwrap_or(u16::MAX);
            }
        }
        pile.count = from;
        let open = _mm512_set1_epi32(OPEN.cast_signed());
        let numbers = _mm512_set1_epi32((MOST - 1).cast_signed());
        let mut here = [0; VECTORS];
        // SAFETY: the values come from a table, and the records in them are those of some, which every image
        // and patch is checked for; the places are those of results.
        unsafe {
            for (keys, here) in keys.iter_mut().zip(&mut here) {
                *here = keys.open;
                let missed = _mm512_mask_cmplt_epu32_mask(keys.open, keys.value, open);
                let record = _mm512_and_si512(keys.value, numbers);
                let misses = sections.misses.as_ptr().cast();
                keys.value = _mm512_mask_i32gather_epi32::<4>(keys.value, missed, record, misses);
                keys.open = _mm512_mask_cmpge_epu32_mask(keys.open, keys.value, open);
                set_aside(&mut piles.wide, keys);
            }
            find(sections, &mut keys);
            for (keys, &here) in keys.iter_mut().zip(&here) {
                // Those that are not done too: they are written again.
                _mm512_mask_i32scatter_epi32::<4>(results.as_mut_ptr().cast(), here, keys.place, keys.value);
                leave(piles, keys);
            }
        }
    }

    /// Looks for the open keys where they belong, with the length that their value says. Those that are found
    /// have the value that is there, those that are not have a [mark](Pile::value); open are those that are
    /// not done.
    ///
    /// # Safety
    /// The CPU must have AVX-512F and DQ. The values of open keys must come from a table and say to try a
    /// length that a word holds.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn find<const VECTORS: usize>(sections: &Sections<'_>, keys: &mut [Keys; VECTORS]) {
        let zero = _mm512_setzero_si512();
        let one = _mm512_set1_epi32(1);
        let octet = _mm512_set1_epi32(0xff);
        let open = _mm512_set1_epi32(OPEN.cast_signed());
        let mut rest = [zero; VECTORS];
        let mut slot = [zero; VECTORS];
        for (v, keys) in keys.iter().enumerate() {
            let hash = hashes(sections, keys);
            let from_bit = [
                _mm512_srli_epi64::<{ 63 - HASH_BITS }>(hash[0]),
                _mm512_srli_epi64::<{ 63 - HASH_BITS }>(hash[1]),
            ];
            rest[v] = _mm512_or_si512(lower(from_bit), one);
            let home = _mm512_srl_epi32(upper(hash), sections.home);
            let [left, right] = sections.group;
            let group = _mm512_srl_epi32(_mm512_sll_epi32(rest[v], left), right);
            // SAFETY: there is a pilot for each group, and three bytes more.
            let pilot = unsafe {
                _mm512_mask_i32gather_epi32::<1>(zero, keys.open, group, sections.pilots.as_ptr().cast())
            };
            let way = _mm512_mullo_epi32(_mm512_and_si512(pilot, octet), rest[v]);
            slot[v] = _mm512_and_si512(_mm512_add_epi32(home, way), sections.mask);
        }
        for (v, keys) in keys.iter_mut().enumerate() {
            let [here, more_here] = keys.open.to_le_bytes();
            // SAFETY: a slot is one of 2^bits.
            unsafe {
                let from = sections.slots.as_ptr().cast();
                let words = [
                    _mm512_mask_i32gather_epi64::<8>(zero, here, _mm512_castsi512_si256(slot[v]), from),
                    _mm512_mask_i32gather_epi64::<8>(
                        zero,
                        more_here,
                        _mm512_extracti64x4_epi64::<1>(slot[v]),
                        from,
                    ),
                ];
                let value = lower(words);
                // A free slot is zero, and a rest is odd.
                let found = _mm512_mask_cmpeq_epi32_mask(keys.open, upper(words), rest[v]);
                let missed = keys.open & !found;
                keys.value = _mm512_mask_mov_epi32(
                    _mm512_mask_xor_epi32(keys.value, missed, keys.value, open),
                    found,
                    value,
                );
                keys.open = missed | _mm512_mask_cmpge_epu32_mask(found, value, open);
            }
        }
    }

    /// The hashes of keys with the lengths that their values say.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn hashes(sections: &Sections<'_>, keys: &Keys) -> [__m512i; 2] {
        let len = _mm512_srli_epi32::<{ NUMBER_BITS + 1 }>(_mm512_slli_epi32::<1>(keys.value));
        let lens = [
            _mm512_cvtepu32_epi64(_mm512_castsi512_si256(len)),
            _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64::<1>(len)),
        ];
        let [one, other] = sections.odd;
        let mut hashes = keys.high;
        for (hash, len) in hashes.iter_mut().zip(lens) {
            let end = _mm512_srlv_epi64(_mm512_set1_epi64(i64::MIN), len);
            let below = _mm512_sub_epi64(end, _mm512_set1_epi64(1));
            // The bits above the end, and the end.
            let word = _mm512_ternarylogic_epi64::<0b1011_1010>(*hash, below, end);
            let product = _mm512_mullo_epi64(word, one);
            let mask = _mm512_set1_epi64(HASH_MASK.cast_signed());
            // Product xor (folded and mask).
            let folded =
                _mm512_ternarylogic_epi64::<0b0111_1000>(product, _mm512_srli_epi64::<FOLD>(product), mask);
            *hash = _mm512_mullo_epi64(folded, other);
        }
        hashes
    }

    /// Writes the results of keys that are done now, and puts the others on the pile.
    ///
    /// # Safety
    /// As [`part`]; the values must come from a table and the places be those of results. The pile must have
    /// room.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn leave(piles: &mut Piles, keys: &mut Keys) {
        // SAFETY: as our caller promises.
        unsafe { set_aside(&mut piles.wide, keys) };
        let pile = &mut piles.narrow;
        let [open, more_open] = keys.open.to_le_bytes();
        let at = pile.count;
        let middle = at + open.count_ones() as usize;
        debug_assert!(at + 2 * LANES <= 5 * ROUND);
        // SAFETY: there is room for sixteen from `middle` on too.
        unsafe {
            let high = pile.high.as_mut_ptr();
            _mm512_storeu_si512(high.add(at).cast(), _mm512_maskz_compress_epi64(open, keys.high[0]));
            _mm512_storeu_si512(
                high.add(middle).cast(),
                _mm512_maskz_compress_epi64(more_open, keys.high[1]),
            );
            let value = _mm512_maskz_compress_epi32(keys.open, keys.value);
            _mm512_storeu_si512(pile.value.as_mut_ptr().add(at).cast(), value);
            let place = _mm512_maskz_compress_epi32(keys.open, keys.place);
            _mm512_storeu_si512(pile.key.as_mut_ptr().add(at).cast(), place);
        }
        pile.count = middle + more_open.count_ones() as usize;
    }

    /// Puts the keys whose next length no word holds on their own pile. They are open no longer.
    ///
    /// # Safety
    /// As [`leave`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn set_aside(pile: &mut WidePile, keys: &mut Keys) {
        let wide = _mm512_set1_epi32((OPEN | WIDE << NUMBER_BITS).cast_signed());
        let wide = _mm512_mask_cmpge_epu32_mask(keys.open, keys.value, wide);
        if wide == 0 {
            return;
        }
        let at = pile.count;
        debug_assert!(at + LANES <= 5 * ROUND);
        // SAFETY: there is room for sixteen.
        unsafe {
            let value = _mm512_maskz_compress_epi32(wide, keys.value);
            _mm512_storeu_si512(pile.value.as_mut_ptr().add(at).cast(), value);
            let place = _mm512_maskz_compress_epi32(wide, keys.place);
            _mm512_storeu_si512(pile.key.as_mut_ptr().add(at).cast(), place);
        }
        pile.count += wide.count_ones() as usize;
        keys.open &= !wide;
    }

    /// The upper halves of sixteen numbers of 64 bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn upper([one, other]: [__m512i; 2]) -> __m512i {
        let which = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
        _mm512_permutex2var_epi32(one, which, other)
    }

    /// The lower halves of sixteen numbers of 64 bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn lower([one, other]: [__m512i; 2]) -> __m512i {
        let which = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        _mm512_permutex2var_epi32(one, which, other)
    }

    /// The first 64 bits of sixteen keys.
    ///
    /// # Safety
    /// There must be 16 keys.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn highs<A: Address>(keys: &[A]) -> [__m512i; 2] {
        debug_assert_eq!(keys.len(), LANES);
        // SAFETY: the keys are 16 of 4 or of 16 bytes; a prefetch may be of any address.
        unsafe {
            let from = keys.as_ptr().cast::<__m512i>();
            let part = |at: usize| {
                _mm_prefetch::<_MM_HINT_NTA>(from.wrapping_add(at).cast::<i8>().wrapping_add(AHEAD));
                _mm512_loadu_si512(from.add(at))
            };
            match A::FAMILY {
                Family::V4 => {
                    let keys = part(0);
                    let wide = |keys| _mm512_slli_epi64::<32>(_mm512_cvtepu32_epi64(keys));
                    [wide(_mm512_castsi512_si256(keys)), wide(_mm512_extracti64x4_epi64::<1>(keys))]
                }
                Family::V6 => {
                    // A key is in host order: its upper half is the second.
                    let which = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
                    [
                        _mm512_permutex2var_epi64(part(0), which, part(1)),
                        _mm512_permutex2var_epi64(part(2), which, part(3)),
                    ]
                }
            }
        }
    }
}
