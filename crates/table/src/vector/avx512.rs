//! [`Avx512`]: vectors of sixteen numbers.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, __mmask16, _mm_cvtsi32_si128, _mm512_add_epi32, _mm512_and_si512, _mm512_castsi512_si256,
    _mm512_cmpeq_epi32_mask, _mm512_cmpge_epu32_mask, _mm512_inserti64x4, _mm512_loadu_si512,
    _mm512_mask_blend_epi32, _mm512_mask_i32gather_epi32, _mm512_maskz_compress_epi32, _mm512_or_si512,
    _mm512_permutex2var_epi32, _mm512_set1_epi32, _mm512_setr_epi32, _mm512_sll_epi32, _mm512_srl_epi32,
    _mm512_srlv_epi32, _mm512_storeu_si512, _mm512_sub_epi32, _mm512_test_epi32_mask,
};
use std::ops::{Add, BitAnd, BitOr, Not, Shl, Shr, Sub};

use bytemuck::Pod;

use super::ops::{Cpu, Mask, Vector, operators, sealed};

/// Sixteen numbers of 32 bits. Of AVX-512 it takes the foundation only.
#[derive(Clone, Copy, Debug)]
pub struct Avx512(__m512i);

impl Avx512 {
    /// The vector of a register.
    #[inline(always)]
    pub fn of(_: Cpu<Self>, register: __m512i) -> Self {
        Self(register)
    }

    /// The register, for instructions that no other level has.
    #[inline(always)]
    pub fn register(self) -> __m512i {
        self.0
    }
}

/// Some of the lanes of an [`Avx512`]: a bit each.
///
/// They are in a number of 32 bits, whose upper half says nothing. Four masks of 16 bits, kept from one level
/// of a table to the next, were put together in one register by the compiler, and taking them apart cost GAMT
/// a tenth of its rate for IPv6.
#[derive(Clone, Copy, Debug)]
pub struct Avx512Mask(u32);

impl Avx512Mask {
    /// The mask of a register.
    #[inline(always)]
    pub fn of(register: __mmask16) -> Self {
        Self(register.into())
    }

    /// The register, for instructions that no other level has.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // what says nothing is dropped
    pub fn register(self) -> __mmask16 {
        self.0 as __mmask16
    }
}

/// The words of sixteen keys at the places that `which` has for eight.
#[inline(always)]
fn pick(_: Cpu<Avx512>, [a, b, c, d]: [__m512i; 4], which: __m512i) -> Avx512 {
    // SAFETY: the CPU has AVX-512F.
    unsafe {
        let front = _mm512_permutex2var_epi32(a, which, b);
        let back = _mm512_permutex2var_epi32(c, which, d);
        Avx512(_mm512_inserti64x4::<1>(front, _mm512_castsi512_si256(back)))
    }
}

impl sealed::Sealed for Avx512 {}

// The CPU has AVX-512F wherever there is a `Cpu<Avx512>` or a vector, which takes one to make.
impl Vector for Avx512 {
    type Mask = Avx512Mask;

    const LANES: usize = 16;

    #[inline(always)]
    fn splat(_: Cpu<Self>, number: u32) -> Self {
        // SAFETY: the CPU has AVX-512F.
        Self(unsafe { _mm512_set1_epi32(number.cast_signed()) })
    }

    #[inline(always)]
    fn load<T: Pod>(_: Cpu<Self>, from: &[T]) -> Self {
        assert!(size_of_val(from) >= 64, "a number for each lane");
        // SAFETY: the CPU has AVX-512F, and there are 64 bytes without padding.
        Self(unsafe { _mm512_loadu_si512(from.as_ptr().cast()) })
    }

    #[inline(always)]
    fn load_first_words<T: Pod>(cpu: Cpu<Self>, keys: &[T]) -> [Self; 2] {
        assert!(size_of_val(keys) >= 4 * 64, "a key for each lane");
        // SAFETY: the CPU has AVX-512F, and there are 256 bytes without padding.
        let (first, second, parts) = unsafe {
            let part = |at: usize| _mm512_loadu_si512(keys.as_ptr().cast::<__m512i>().add(at));
            (
                _mm512_setr_epi32(3, 7, 11, 15, 19, 23, 27, 31, 0, 0, 0, 0, 0, 0, 0, 0),
                _mm512_setr_epi32(2, 6, 10, 14, 18, 22, 26, 30, 0, 0, 0, 0, 0, 0, 0, 0),
                [part(0), part(1), part(2), part(3)],
            )
        };
        [pick(cpu, parts, first), pick(cpu, parts, second)]
    }

    #[inline(always)]
    fn store<T: Pod>(self, to: &mut [T]) {
        assert!(size_of_val(to) >= 64, "a number for each lane");
        // SAFETY: the CPU has AVX-512F, there are 64 bytes, and any are good for `T`.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn shifted_right(self, by: Self) -> Self {
        // SAFETY: the CPU has the instructions, as there is a vector.
        Self(unsafe { _mm512_srlv_epi32(self.0, by.0) })
    }

    #[inline(always)]
    fn equals(self, other: Self) -> Avx512Mask {
        // SAFETY: the CPU has AVX-512F.
        Avx512Mask::of(unsafe { _mm512_cmpeq_epi32_mask(self.0, other.0) })
    }

    #[inline(always)]
    fn at_least(self, other: Self) -> Avx512Mask {
        // SAFETY: the CPU has AVX-512F.
        Avx512Mask::of(unsafe { _mm512_cmpge_epu32_mask(self.0, other.0) })
    }

    #[inline(always)]
    fn has_any(self, bits: Self) -> Avx512Mask {
        // SAFETY: the CPU has AVX-512F.
        Avx512Mask::of(unsafe { _mm512_test_epi32_mask(self.0, bits.0) })
    }

    #[inline(always)]
    fn select(mask: Avx512Mask, yes: Self, no: Self) -> Self {
        // SAFETY: the CPU has AVX-512F.
        Self(unsafe { _mm512_mask_blend_epi32(mask.register(), no.0, yes.0) })
    }

    #[inline(always)]
    fn all(_: Cpu<Self>) -> Avx512Mask {
        Avx512Mask(u32::MAX)
    }

    #[inline(always)]
    fn put_places(cpu: Cpu<Self>, mask: Avx512Mask, first: u32, to: &mut [u32]) -> usize {
        // SAFETY: the CPU has AVX-512F.
        let lanes = Self(unsafe { _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) });
        let places = lanes + Self::splat(cpu, first);
        // SAFETY: the CPU has AVX-512F.
        Self(unsafe { _mm512_maskz_compress_epi32(mask.register(), places.0) }).store(to);
        mask.bits().count_ones() as usize
    }

    #[inline(always)]
    unsafe fn gather_scaled<const SCALE: i32>(
        mask: Avx512Mask,
        index: Self,
        from: *const u8,
        elsewhere: Self,
    ) -> Self {
        // SAFETY: the CPU has AVX-512F; the rest as our caller promises.
        Self(unsafe {
            _mm512_mask_i32gather_epi32::<SCALE>(elsewhere.0, mask.register(), index.0, from.cast())
        })
    }
}

impl Mask for Avx512Mask {
    #[inline(always)]
    fn bits(self) -> u32 {
        self.register().into()
    }
}

impl BitAnd for Avx512Mask {
    type Output = Self;

    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitOr for Avx512Mask {
    type Output = Self;

    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Not for Avx512Mask {
    type Output = Self;

    #[inline(always)]
    fn not(self) -> Self {
        Self(!self.0)
    }
}

operators! {
    Avx512;
    Add add _mm512_add_epi32
    Sub sub _mm512_sub_epi32
    BitAnd bitand _mm512_and_si512
    BitOr bitor _mm512_or_si512;
    Shl shl _mm512_sll_epi32
    Shr shr _mm512_srl_epi32
}
