//! Gathers with AVX-512 and AVX2: several vectors of keys under way at once.
//!
//! x86 gathers read 32 bits per lane. A narrower element is read with the bytes that follow it, which are
//! then masked off: that is what the padding of a [`Padded`] table is for.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use wirespeed_fib::V4;

use super::Padded;

pub(super) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
}

pub(super) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
}

macro_rules! gather {
    (
        $name:ident, $inner:ident, $int:ty, $feature:tt, $lanes:literal,
        $load:ident, $store:ident, $set1:ident, $and:ident, |$base:ident, $index:ident| $gather:expr
    ) => {
        /// Panics where the CPU lacks the instructions.
        pub(super) fn $name(table: Padded<'_, $int>, keys: &[V4], out: &mut [u32]) {
            assert!(is_x86_feature_detected!($feature));
            // SAFETY: the CPU has the instructions.
            unsafe { $inner(table, keys, out) }
        }

        #[target_feature(enable = $feature)]
        fn $inner(table: Padded<'_, $int>, keys: &[V4], out: &mut [u32]) {
            // Vectors under way at once.
            const VECTORS: usize = 4;
            assert_eq!(keys.len(), out.len());
            let mask = $set1(i32::try_from(table.mask()).expect("at most 2^31 elements"));
            let value = $set1(i32::from_ne_bytes((u32::MAX >> (32 - <$int>::BITS)).to_ne_bytes()));
            let whole = keys.len() / ($lanes * VECTORS) * ($lanes * VECTORS);
            for block in (0..whole).step_by($lanes * VECTORS) {
                for at in (block..).step_by($lanes).take(VECTORS) {
                    // SAFETY: 1. at + lanes <= whole <= the length of keys and of out, and V4 is a
                    // transparent u32, so both unaligned accesses stay inside. 2. An index is at most the
                    // mask, and the padding is 4 elements, so that the 4 bytes read from an element on lie in
                    // the table.
                    unsafe {
                        let $index = $and($load(keys.as_ptr().add(at).cast()), mask);
                        let $base = table.0.as_ptr();
                        $store(out.as_mut_ptr().add(at).cast(), $and($gather, value));
                    }
                }
            }
            super::portable(table, &keys[whole..], &mut out[whole..]);
        }
    };
}

macro_rules! avx512 {
    ($name:ident, $inner:ident, $int:ty, $scale:literal) => {
        gather!(
            $name,
            $inner,
            $int,
            "avx512f",
            16,
            _mm512_loadu_si512,
            _mm512_storeu_si512,
            _mm512_set1_epi32,
            _mm512_and_si512,
            |base, index| _mm512_i32gather_epi32::<$scale>(index, base.cast())
        );
    };
}

macro_rules! avx2 {
    ($name:ident, $inner:ident, $int:ty, $scale:literal) => {
        gather!(
            $name,
            $inner,
            $int,
            "avx2",
            8,
            _mm256_loadu_si256,
            _mm256_storeu_si256,
            _mm256_set1_epi32,
            _mm256_and_si256,
            |base, index| _mm256_i32gather_epi32::<$scale>(base.cast(), index)
        );
    };
}

avx512!(avx512_u8, gather_avx512_u8, u8, 1);
avx512!(avx512_u16, gather_avx512_u16, u16, 2);
avx512!(avx512_u32, gather_avx512_u32, u32, 4);
avx2!(avx2_u8, gather_avx2_u8, u8, 1);
avx2!(avx2_u16, gather_avx2_u16, u16, 2);
avx2!(avx2_u32, gather_avx2_u32, u32, 4);
