//! [`Avx2`]: vectors of eight numbers.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, _mm_cvtsi32_si128, _mm_loadl_epi64, _mm256_add_epi32, _mm256_and_si256, _mm256_blendv_epi8,
    _mm256_castps_si256, _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_cvtepu8_epi32, _mm256_loadu_si256,
    _mm256_mask_i32gather_epi32, _mm256_max_epu32, _mm256_movemask_ps, _mm256_or_si256,
    _mm256_permutevar8x32_epi32, _mm256_set1_epi32, _mm256_setr_epi32, _mm256_setzero_si256,
    _mm256_shuffle_ps, _mm256_sll_epi32, _mm256_srl_epi32, _mm256_srlv_epi32, _mm256_storeu_si256,
    _mm256_sub_epi32, _mm256_unpackhi_epi64, _mm256_xor_si256,
};
use std::ops::{Add, BitAnd, BitOr, Not, Shl, Shr, Sub};

use bytemuck::Pod;

use super::ops::{Cpu, Mask, Vector, operators, sealed};

/// Eight numbers of 32 bits.
#[derive(Clone, Copy, Debug)]
pub struct Avx2(__m256i);

/// Some of the lanes of an [`Avx2`]: all ones in those, zero in the others.
#[derive(Clone, Copy, Debug)]
pub struct Avx2Mask(__m256i);

/// The lanes of every mask, a byte each, those that there are first.
const PLACES: [[u8; 8]; 256] = {
    let mut all = [[0; 8]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut count) = (0, 0);
        while lane < 8 {
            if mask >> lane & 1 == 1 {
                all[mask][count] = lane;
                count += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    all
};

impl sealed::Sealed for Avx2 {}

// The CPU has AVX2 wherever there is a `Cpu<Avx2>` or a vector, which takes one to make.
impl Vector for Avx2 {
    type Mask = Avx2Mask;

    const LANES: usize = 8;

    #[inline(always)]
    fn splat(_: Cpu<Self>, number: u32) -> Self {
        // SAFETY: the CPU has AVX2.
        Self(unsafe { _mm256_set1_epi32(number.cast_signed()) })
    }

    #[inline(always)]
    fn load<T: Pod>(_: Cpu<Self>, from: &[T]) -> Self {
        assert!(size_of_val(from) >= 32, "a number for each lane");
        // SAFETY: the CPU has AVX2, and there are 32 bytes without padding.
        Self(unsafe { _mm256_loadu_si256(from.as_ptr().cast()) })
    }

    #[inline(always)]
    fn load_first_words<T: Pod>(_: Cpu<Self>, keys: &[T]) -> [Self; 2] {
        assert!(size_of_val(keys) >= 4 * 32, "a key for each lane");
        // SAFETY: the CPU has AVX2, and there are 128 bytes without padding.
        unsafe {
            let part = |at: usize| _mm256_loadu_si256(keys.as_ptr().cast::<__m256i>().add(at));
            // The upper halves of keys 0, 2, 1 and 3, and of 4, 6, 5 and 7.
            let front = _mm256_castsi256_ps(_mm256_unpackhi_epi64(part(0), part(1)));
            let back = _mm256_castsi256_ps(_mm256_unpackhi_epi64(part(2), part(3)));
            // Of them the odd words and the even ones, for keys 0, 2, 4, 6, 1, 3, 5 and 7.
            let first = _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(front, back));
            let second = _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(front, back));
            let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
            [
                Self(_mm256_permutevar8x32_epi32(first, order)),
                Self(_mm256_permutevar8x32_epi32(second, order)),
            ]
        }
    }

    #[inline(always)]
    fn store<T: Pod>(self, to: &mut [T]) {
        assert!(size_of_val(to) >= 32, "a number for each lane");
        // SAFETY: the CPU has AVX2, there are 32 bytes, and any are good for `T`.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn shifted_right(self, by: Self) -> Self {
        // SAFETY: the CPU has the instructions, as there is a vector.
        Self(unsafe { _mm256_srlv_epi32(self.0, by.0) })
    }

    #[inline(always)]
    fn equals(self, other: Self) -> Avx2Mask {
        // SAFETY: the CPU has AVX2.
        Avx2Mask(unsafe { _mm256_cmpeq_epi32(self.0, other.0) })
    }

    #[inline(always)]
    fn at_least(self, other: Self) -> Avx2Mask {
        // SAFETY: the CPU has AVX2.
        Self(unsafe { _mm256_max_epu32(self.0, other.0) }).equals(self)
    }

    #[inline(always)]
    fn has_any(self, bits: Self) -> Avx2Mask {
        // SAFETY: the CPU has AVX2.
        !(self & bits).equals(Self(unsafe { _mm256_setzero_si256() }))
    }

    #[inline(always)]
    fn select(mask: Avx2Mask, yes: Self, no: Self) -> Self {
        // SAFETY: the CPU has AVX2.
        Self(unsafe { _mm256_blendv_epi8(no.0, yes.0, mask.0) })
    }

    #[inline(always)]
    fn all(cpu: Cpu<Self>) -> Avx2Mask {
        Avx2Mask(Self::splat(cpu, u32::MAX).0)
    }

    #[inline(always)]
    fn put_places(cpu: Cpu<Self>, mask: Avx2Mask, first: u32, to: &mut [u32]) -> usize {
        let bits = mask.bits();
        let places = PLACES[bits as usize % PLACES.len()].as_ptr();
        // SAFETY: the CPU has AVX2, and there are 8 bytes.
        let places = Self(unsafe { _mm256_cvtepu8_epi32(_mm_loadl_epi64(places.cast())) });
        (places + Self::splat(cpu, first)).store(to);
        bits.count_ones() as usize
    }

    #[inline(always)]
    unsafe fn gather_scaled<const SCALE: i32>(
        mask: Avx2Mask,
        index: Self,
        from: *const u8,
        elsewhere: Self,
    ) -> Self {
        // SAFETY: the CPU has AVX2; the rest as our caller promises.
        Self(unsafe { _mm256_mask_i32gather_epi32::<SCALE>(elsewhere.0, from.cast(), index.0, mask.0) })
    }
}

impl Mask for Avx2Mask {
    #[inline(always)]
    fn bits(self) -> u32 {
        // SAFETY: the CPU has AVX2.
        unsafe { _mm256_movemask_ps(_mm256_castsi256_ps(self.0)) }.cast_unsigned()
    }
}

impl BitAnd for Avx2Mask {
    type Output = Self;

    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        Self((Avx2(self.0) & Avx2(other.0)).0)
    }
}

impl BitOr for Avx2Mask {
    type Output = Self;

    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        Self((Avx2(self.0) | Avx2(other.0)).0)
    }
}

impl Not for Avx2Mask {
    type Output = Self;

    #[inline(always)]
    fn not(self) -> Self {
        // SAFETY: the CPU has AVX2.
        Self(unsafe { _mm256_xor_si256(self.0, _mm256_set1_epi32(-1)) })
    }
}

operators! {
    Avx2;
    Add add _mm256_add_epi32
    Sub sub _mm256_sub_epi32
    BitAnd bitand _mm256_and_si256
    BitOr bitor _mm256_or_si256;
    Shl shl _mm256_sll_epi32
    Shr shr _mm256_srl_epi32
}
