//! Batches with AVX-512: the only unsafe code of this crate.
//!
//! Keys go in blocks, try by try. A block begins with sixteen keys a vector: the root, the chunks and the ropes are
//! gathers. From then on there is a list of the keys that are not done, eight a vector: which bits are the key of
//! the next try, and in which bucket these are. All buckets of a list are prefetched, then each is compared with its
//! key at once, and what is found goes back into vectors; the keys that are still not done move to the front of the
//! list.
//!
//! A next hop is only known when the search ends: until then the results hold values, whose records are read at the
//! end.

use wirespeed_fib::{Address, NextHop, Way};

use crate::layout::WaldvogelTable;

/// Looks up as many of the keys, from the front, as a way does in vectors, where the CPU has it; how many that were.
pub(crate) fn batch<A: Address>(
    way: Way,
    table: &WaldvogelTable<A>,
    addresses: &[A],
    next_hops: &mut [NextHop],
) -> usize {
    #[cfg(target_arch = "x86_64")]
    if way == Way::Avx512 && avx512::is_here() {
        #[allow(unsafe_code)]
        // SAFETY: the CPU has what is asked for.
        return unsafe { avx512::batch(table, addresses, next_hops) };
    }
    let _ = (way, table, addresses, next_hops);
    0
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512 {
    use std::arch::x86_64::{
        __m256i, __m512i, __mmask8, _MM_HINT_NTA, _MM_HINT_T0, _mm_prefetch, _mm256_andnot_si256,
        _mm256_loadu_si256, _mm256_mask_cmpeq_epi32_mask, _mm256_mask_cmpge_epu32_mask, _mm256_mask_or_epi32,
        _mm256_mask_test_epi32_mask, _mm256_mask_testn_epi32_mask, _mm256_maskz_compress_epi32,
        _mm256_movepi32_mask, _mm256_set1_epi32, _mm256_storeu_si256, _mm256_sub_epi32, _mm512_add_epi32,
        _mm512_and_si512, _mm512_andnot_si512, _mm512_castsi256_si512, _mm512_castsi512_si256,
        _mm512_cmpeq_epi64_mask, _mm512_cmpge_epu32_mask, _mm512_cvtepi64_epi32, _mm512_cvtepu32_epi64,
        _mm512_extracti64x4_epi64, _mm512_i32gather_epi32, _mm512_inserti64x4, _mm512_loadu_si512,
        _mm512_mask_cmpge_epu64_mask, _mm512_mask_i32gather_epi32, _mm512_mask_i32gather_epi64,
        _mm512_mask_mov_epi64, _mm512_mask_srli_epi64, _mm512_maskz_compress_epi64, _mm512_maskz_srli_epi64,
        _mm512_mul_epu32, _mm512_mullo_epi64, _mm512_or_si512, _mm512_permutex2var_epi64, _mm512_set1_epi32,
        _mm512_set1_epi64, _mm512_setr_epi32, _mm512_setr_epi64, _mm512_setzero_si512, _mm512_slli_epi32,
        _mm512_slli_epi64, _mm512_srli_epi32, _mm512_srli_epi64, _mm512_srlv_epi64, _mm512_storeu_si512,
        _mm512_sub_epi32, _mm512_sub_epi64, _mm512_test_epi64_mask, _mm512_xor_si512,
    };
    use std::hint::select_unpredictable;

    use wirespeed_fib::{Address, Family, NextHop, Way};
    use wirespeed_image::Table;

    use crate::buckets::{WORDS, index};
    use crate::hash::{Seed, WIDE_FROM, halves};
    use crate::layout::{BESTS, BUCKETS, CHUNK_BITS, CHUNKS, MOST_READS, ROOT, ROPES, WaldvogelTable};
    use crate::rope::Rope;
    use crate::value::{CHUNK, RECORD, Value};

    /// Keys in a vector of the first steps.
    const LANES: usize = 16;
    /// Keys in a vector of the tries.
    const HALF: usize = 8;
    /// Most keys of a block.
    const BLOCK: usize = 256;
    /// How far ahead keys are prefetched, in bytes: past the reads that are under way.
    const AHEAD: usize = 2_048;
    /// Beside the place of a key: it is looked for in its second bucket.
    const SECOND: u32 = 1 << 31;

    /// Whether the CPU has all that is used here; every one with AVX-512 for servers has.
    #[inline]
    pub(super) fn is_here() -> bool {
        Way::Avx512.is_here() && is_x86_feature_detected!("avx512dq") && is_x86_feature_detected!("avx512vl")
    }

    /// The keys that are not done, in columns. What is past the end is left over.
    #[repr(align(64))]
    struct Open {
        /// The first 64 bits.
        high: [u64; BLOCK + HALF],
        /// What to try, from this try on.
        rope: [u64; BLOCK + HALF],
        /// The word to look for in this try.
        word: [u64; BLOCK + HALF],
        /// The bucket to look in.
        bucket: [u32; BLOCK + HALF],
        /// The place in the block, and [`SECOND`] where it is the second bucket.
        key: [u32; BLOCK + HALF],
        /// In which slot it was found.
        slot: [u32; BLOCK + HALF],
        /// The value there.
        found: [u32; BLOCK + HALF],
        count: usize,
        /// Keys whose next try is of a length that no word holds: place in the block and rope.
        wide: [(u32, u64); BLOCK],
        wide_count: usize,
    }

    /// What all blocks need.
    struct Pointers<'t> {
        root: &'t [u32],
        chunks: &'t [u32],
        ropes: &'t [u64],
        bests: &'t [u32],
        buckets: &'t [u64],
        seed: &'t Seed,
        count: u32,
    }

    /// Looks up whole vectors of keys; how many keys that were.
    ///
    /// # Safety
    /// The CPU must have what [`is_here`] asks for.
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    pub(super) unsafe fn batch<A: Address>(
        table: &WaldvogelTable<A>,
        addresses: &[A],
        results: &mut [NextHop],
    ) -> usize {
        let image = table.image();
        let pointers = Pointers {
            root: image.section(ROOT),
            chunks: image.section(CHUNKS),
            ropes: image.section(ROPES),
            bests: image.section(BESTS),
            buckets: image.section(BUCKETS),
            seed: &table.seed,
            count: table.sizes.buckets,
        };
        let whole = addresses.len() - addresses.len() % LANES;
        let mut open = Open {
            high: [0; BLOCK + HALF],
            rope: [0; BLOCK + HALF],
            word: [0; BLOCK + HALF],
            bucket: [0; BLOCK + HALF],
            key: [0; BLOCK + HALF],
            slot: [0; BLOCK + HALF],
            found: [0; BLOCK + HALF],
            count: 0,
            wide: [(0, 0); BLOCK],
            wide_count: 0,
        };
        let blocks = addresses[..whole].chunks(BLOCK).zip(results[..whole].chunks_mut(BLOCK));
        for (addresses, results) in blocks {
            // SAFETY: the CPU has what is needed.
            unsafe { block(table, &pointers, &mut open, addresses, results) };
        }
        whole
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    unsafe fn block<A: Address>(
        table: &WaldvogelTable<A>,
        pointers: &Pointers<'_>,
        open: &mut Open,
        addresses: &[A],
        results: &mut [NextHop],
    ) {
        // SAFETY: see each; the CPU has what is needed.
        unsafe {
            open.count = 0;
            open.wide_count = 0;
            start(pointers, open, addresses, results);
            for reads in 0..MOST_READS {
                // Keys that left the words are finished at once.
                for &(key, rope) in &open.wide[..open.wide_count] {
                    let at = key as usize;
                    let (high, low) = halves(addresses[at]);
                    results[at] = NextHop(table.search(high, low, Value(results[at].0), Rope(rope), reads).0);
                }
                open.wide_count = 0;
                if open.count == 0 {
                    break;
                }
                find(pointers, open, results);
                next(pointers, open);
            }
            resolve(pointers, results);
        }
    }

    /// Reads the arrays and lists the keys that have a rope.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    unsafe fn start<A: Address>(
        pointers: &Pointers<'_>,
        open: &mut Open,
        addresses: &[A],
        results: &mut [NextHop],
    ) {
        let record = _mm512_set1_epi32(RECORD.cast_signed());
        let chunk = _mm512_set1_epi32(CHUNK.cast_signed());
        let octets = _mm512_set1_epi32((1 << CHUNK_BITS) - 1);
        let mut places = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        for (keys, results) in addresses.chunks_exact(LANES).zip(results.chunks_exact_mut(LANES)) {
            // SAFETY: there are 16 keys and 16 results; the root has an element for any 16 bits, the numbers of
            // chunks and records in elements are those of some, which every image and patch is checked for, and both
            // are below 2^30.
            unsafe {
                let [upper, lower] = highs(keys);
                let first = join(_mm512_srli_epi64::<32>(upper), _mm512_srli_epi64::<32>(lower));
                let at = _mm512_srli_epi32::<16>(first);
                let mut value = _mm512_i32gather_epi32::<4>(at, pointers.root.as_ptr().cast());
                let chunked = _mm512_cmpge_epu32_mask(value, chunk);
                if chunked != 0 {
                    let octet = _mm512_and_si512(_mm512_srli_epi32::<8>(first), octets);
                    let at = _mm512_or_si512(_mm512_slli_epi32::<8>(_mm512_sub_epi32(value, chunk)), octet);
                    value =
                        _mm512_mask_i32gather_epi32::<4>(value, chunked, at, pointers.chunks.as_ptr().cast());
                }
                _mm512_storeu_si512(results.as_mut_ptr().cast(), value);
                let more = _mm512_cmpge_epu32_mask(value, record);
                if more != 0 {
                    let [more_upper, more_lower] = more.to_le_bytes();
                    let at = _mm512_sub_epi32(value, record);
                    let ropes = |at: __m256i, more: u8| {
                        let none = _mm512_setzero_si512();
                        _mm512_mask_i32gather_epi64::<8>(none, more, at, pointers.ropes.as_ptr().cast())
                    };
                    let at_lower = _mm512_extracti64x4_epi64::<1>(at);
                    push(
                        pointers,
                        open,
                        upper,
                        ropes(_mm512_castsi512_si256(at), more_upper),
                        _mm512_castsi512_si256(places),
                        more_upper,
                    );
                    push(
                        pointers,
                        open,
                        lower,
                        ropes(at_lower, more_lower),
                        _mm512_extracti64x4_epi64::<1>(places),
                        more_lower,
                    );
                }
            }
            places = _mm512_add_epi32(places, _mm512_set1_epi32(16));
        }
    }

    /// The first 64 bits of sixteen keys.
    ///
    /// # Safety
    /// There must be 16 keys.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
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

    /// Sixteen numbers of 32 bits, from twice eight of 64.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    fn join(upper: __m512i, lower: __m512i) -> __m512i {
        let upper = _mm512_castsi256_si512(_mm512_cvtepi64_epi32(upper));
        _mm512_inserti64x4::<1>(upper, _mm512_cvtepi64_epi32(lower))
    }

    /// Appends those of eight keys in the mask to the list, with the next try worked out and its bucket on the way.
    ///
    /// # Safety
    /// The list must have room for eight more.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    unsafe fn push(
        pointers: &Pointers<'_>,
        open: &mut Open,
        high: __m512i,
        rope: __m512i,
        key: __m256i,
        more: __mmask8,
    ) {
        let length = _mm512_and_si512(rope, _mm512_set1_epi64(0xff));
        let wide = _mm512_mask_cmpge_epu64_mask(more, length, _mm512_set1_epi64(WIDE_FROM.into()));
        if wide != 0 {
            // SAFETY: eight integers of 64 and of 32 bits each.
            let (ropes, keys) = unsafe {
                let (mut ropes, mut keys) = ([0u64; HALF], [0u32; HALF]);
                _mm512_storeu_si512(ropes.as_mut_ptr().cast(), rope);
                _mm256_storeu_si256(keys.as_mut_ptr().cast(), key);
                (ropes, keys)
            };
            for lane in (0..HALF).filter(|lane| wide >> lane & 1 == 1) {
                open.wide[open.wide_count] = (keys[lane], ropes[lane]);
                open.wide_count += 1;
            }
        }
        let narrow = more & !wide;
        let high = _mm512_maskz_compress_epi64(narrow, high);
        let rope = _mm512_maskz_compress_epi64(narrow, rope);
        let key = _mm256_maskz_compress_epi32(narrow, key);
        // Lanes past the last are of length 0, which is a word like any other.
        let length = _mm512_and_si512(rope, _mm512_set1_epi64(0xff));
        let end = _mm512_srlv_epi64(_mm512_set1_epi64(i64::MIN), length);
        let past = _mm512_or_si512(end, _mm512_sub_epi64(end, _mm512_set1_epi64(1)));
        let word = _mm512_or_si512(_mm512_andnot_si512(past, high), end);
        let bucket = buckets(pointers, word, _mm256_movepi32_mask(key));
        let at = open.count;
        let count = narrow.count_ones() as usize;
        // SAFETY: the columns are eight longer than a block.
        unsafe {
            debug_assert!(at + HALF <= BLOCK + HALF);
            _mm512_storeu_si512(open.high.as_mut_ptr().add(at).cast(), high);
            _mm512_storeu_si512(open.rope.as_mut_ptr().add(at).cast(), rope);
            _mm512_storeu_si512(open.word.as_mut_ptr().add(at).cast(), word);
            _mm256_storeu_si256(open.bucket.as_mut_ptr().add(at).cast(), bucket);
            _mm256_storeu_si256(open.key.as_mut_ptr().add(at).cast(), key);
            // All eight, as their number can't be predicted: those past the last are one and the same.
            for &bucket in open.bucket.as_ptr().add(at).cast::<[u32; HALF]>().as_ref().unwrap_unchecked() {
                _mm_prefetch::<_MM_HINT_T0>(pointers.buckets.as_ptr().wrapping_add(index(bucket, 0)).cast());
            }
        }
        open.count = at + count;
    }

    /// The buckets of eight words: their second ones in the mask, their first ones else.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    fn buckets(pointers: &Pointers<'_>, word: __m512i, second: __mmask8) -> __m256i {
        let [one, other, ..] = pointers.seed.0.map(|odd| _mm512_set1_epi64(odd.cast_signed()));
        let product = _mm512_mullo_epi64(word, one);
        let hash = _mm512_mullo_epi64(_mm512_xor_si512(product, _mm512_srli_epi64::<32>(product)), other);
        let half = _mm512_mask_srli_epi64::<32>(hash, !second, hash);
        let scaled = _mm512_mul_epu32(half, _mm512_set1_epi64(pointers.count.into()));
        _mm512_cvtepi64_epi32(_mm512_srli_epi64::<32>(scaled))
    }

    /// Looks for each key of the list in its bucket.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    unsafe fn find(pointers: &Pointers<'_>, open: &mut Open, results: &mut [NextHop]) {
        let list = open.word.iter().zip(&open.bucket).zip(&open.key);
        let found = open.slot.iter_mut().zip(&mut open.found);
        for (((&word, &bucket), &key), (slot, value)) in list.zip(found).take(open.count) {
            // SAFETY: a scaled hash is the number of a bucket.
            (*slot, *value) = unsafe { in_bucket(pointers, bucket, word) };
            let result = &mut results[(key & !SECOND) as usize].0;
            *result = select_unpredictable(*slot == NONE, *result, *value);
        }
    }

    /// The slot of a bucket that no key has: its value is the number of keys that are elsewhere.
    const NONE: u32 = 5;

    /// The slot of a word in a bucket and the value there.
    ///
    /// # Safety
    /// There must be such a bucket.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    unsafe fn in_bucket(pointers: &Pointers<'_>, bucket: u32, word: u64) -> (u32, u32) {
        debug_assert!(index(bucket, WORDS) <= pointers.buckets.len());
        // SAFETY: a bucket is eight words; a slot up to the fifth has its value, and the one after it the number of
        // others, from the sixth word on.
        unsafe {
            let words = pointers.buckets.as_ptr().add(index(bucket, 0));
            let line = _mm512_loadu_si512(words.cast());
            let same = _mm512_cmpeq_epi64_mask(line, _mm512_set1_epi64(word.cast_signed()));
            let slot = (u32::from(same) & 0x1f | 1 << NONE).trailing_zeros();
            (slot, *words.add(5).cast::<u32>().add(slot as usize))
        }
    }

    /// Works out the next try of each key of the list, and leaves those in it that have one.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    unsafe fn next(pointers: &Pointers<'_>, open: &mut Open) {
        let count = std::mem::take(&mut open.count);
        for at in (0..count).step_by(HALF) {
            // SAFETY: the columns are eight longer than a block. What is found is a next hop or the number of a
            // record, and those are checked. The list grows no further than what was read of it.
            unsafe {
                let high = _mm512_loadu_si512(open.high.as_ptr().add(at).cast());
                let rope = _mm512_loadu_si512(open.rope.as_ptr().add(at).cast());
                let key = _mm256_loadu_si256(open.key.as_ptr().add(at).cast());
                let found = _mm256_loadu_si256(open.found.as_ptr().add(at).cast());
                let here: __mmask8 = if count - at >= HALF { 0xff } else { (1 << (count - at)) - 1 };
                let slot = _mm256_loadu_si256(open.slot.as_ptr().add(at).cast());
                let record = _mm256_set1_epi32(RECORD.cast_signed());
                let second = _mm256_set1_epi32(SECOND.cast_signed());
                let missed = _mm256_mask_cmpeq_epi32_mask(here, slot, _mm256_set1_epi32(NONE.cast_signed()));
                // Not found, but keys of this bucket are elsewhere, and this was not there.
                let elsewhere = _mm256_mask_test_epi32_mask(missed, found, found);
                let elsewhere = _mm256_mask_testn_epi32_mask(elsewhere, key, second);
                let records = _mm256_mask_cmpge_epu32_mask(here & !missed, found, record);
                let rest = _mm512_maskz_srli_epi64::<8>(missed, rope);
                let rope = _mm512_mask_mov_epi64(rest, elsewhere, rope);
                let at = _mm256_sub_epi32(found, record);
                let rope =
                    _mm512_mask_i32gather_epi64::<8>(rope, records, at, pointers.ropes.as_ptr().cast());
                let more = _mm512_test_epi64_mask(rope, rope);
                let first = _mm256_andnot_si256(second, key);
                let key = _mm256_mask_or_epi32(first, elsewhere, first, second);
                push(pointers, open, high, rope, key, more);
            }
        }
    }

    /// Puts the next hops of records in their place.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    unsafe fn resolve(pointers: &Pointers<'_>, results: &mut [NextHop]) {
        let record = _mm512_set1_epi32(RECORD.cast_signed());
        for results in results.chunks_exact_mut(LANES) {
            // SAFETY: there are 16 results. Numbers of records are checked.
            unsafe {
                let value = _mm512_loadu_si512(results.as_ptr().cast());
                let records = _mm512_cmpge_epu32_mask(value, record);
                if records != 0 {
                    let at = _mm512_sub_epi32(value, record);
                    let best =
                        _mm512_mask_i32gather_epi32::<4>(value, records, at, pointers.bests.as_ptr().cast());
                    _mm512_storeu_si512(results.as_mut_ptr().cast(), best);
                }
            }
        }
    }
}
