//! [`Avx2`]: vectors of eight numbers.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, _mm_cvtsi32_si128, _mm_loadl_epi64, _mm256_add_epi32, _mm256_add_epi64, _mm256_and_si256,
    _mm256_andnot_si256, _mm256_blendv_epi8, _mm256_castps_si256, _mm256_castsi256_ps,
    _mm256_castsi256_si128, _mm256_cmpeq_epi32, _mm256_cvtepi32_epi64, _mm256_cvtepu8_epi32,
    _mm256_cvtepu32_epi64, _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_madd_epi16,
    _mm256_maddubs_epi16, _mm256_mask_i32gather_epi32, _mm256_mask_i32gather_epi64, _mm256_max_epu32,
    _mm256_movemask_ps, _mm256_mul_epu32, _mm256_mullo_epi32, _mm256_or_si256, _mm256_permute4x64_epi64,
    _mm256_permutevar8x32_epi32, _mm256_set1_epi8, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_epi64x,
    _mm256_setr_epi8, _mm256_setr_epi32, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_shuffle_ps,
    _mm256_sll_epi32, _mm256_sll_epi64, _mm256_sllv_epi32, _mm256_srl_epi32, _mm256_srl_epi64,
    _mm256_srlv_epi32, _mm256_srlv_epi64, _mm256_storeu_si256, _mm256_sub_epi32, _mm256_sub_epi64,
    _mm256_unpackhi_epi64, _mm256_xor_si256,
};
use std::mem::MaybeUninit;
use std::ops::{Add, BitAnd, BitOr, BitXor, Mul, Not, Shl, Shr, Sub};

use bytemuck::Pod;

use super::ops::{Cpu, Long, Mask, Vector, operators, product, sealed};

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

impl Avx2 {
    #[inline(always)]
    fn new(register: __m256i) -> Self {
        Self(register)
    }

    /// The vector of a register.
    #[inline(always)]
    pub fn of(_: Cpu<Self>, register: __m256i) -> Self {
        Self(register)
    }

    /// The numbers at the positions in each lane of `order`.
    #[inline(always)]
    fn permuted(self, order: Self) -> Self {
        // SAFETY: the CPU has AVX2.
        Self(unsafe { _mm256_permutevar8x32_epi32(self.0, order.0) })
    }

    /// The lanes of a mask of 8 bits, those that there are first.
    #[inline(always)]
    fn places(bits: u32) -> Self {
        let places = PLACES[bits as usize % PLACES.len()].as_ptr();
        // SAFETY: the CPU has AVX2, as there is a mask, and there are 8 bytes.
        Self(unsafe { _mm256_cvtepu8_epi32(_mm_loadl_epi64(places.cast())) })
    }
}

/// Four numbers of 64 bits.
#[derive(Clone, Copy, Debug)]
pub struct Avx2Long(__m256i);

impl Avx2Long {
    #[inline(always)]
    fn new(register: __m256i) -> Self {
        Self(register)
    }
}

impl Long for Avx2Long {
    #[inline(always)]
    fn without(self, other: Self) -> Self {
        // SAFETY: the CPU has AVX2.
        Self(unsafe { _mm256_andnot_si256(other.0, self.0) })
    }

    #[inline(always)]
    fn shifted_right(self, by: Self) -> Self {
        // SAFETY: the CPU has AVX2.
        Self(unsafe { _mm256_srlv_epi64(self.0, by.0) })
    }

    #[inline(always)]
    fn times_low(self, other: Self) -> Self {
        // SAFETY: the CPU has AVX2.
        Self(unsafe { _mm256_mul_epu32(self.0, other.0) })
    }
}

impl Mul for Avx2Long {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        product(self, other)
    }
}

/// The mask of 8 bits that has each bit of a mask of 4 twice.
const DOUBLED: [u32; 16] = {
    let mut all = [0; 16];
    let mut mask = 0u32;
    while mask < 16 {
        let mut lane = 0;
        while lane < 4 {
            if mask >> lane & 1 == 1 {
                all[mask as usize] |= 3 << (2 * lane);
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

    type Long = Avx2Long;

    const LANES: usize = 8;

    #[inline(always)]
    fn splat(_: Cpu<Self>, number: u32) -> Self {
        // SAFETY: the CPU has AVX2.
        Self(unsafe { _mm256_set1_epi32(number.cast_signed()) })
    }

    #[inline(always)]
    fn lanes(_: Cpu<Self>) -> Self {
        // SAFETY: the CPU has AVX2.
        Self(unsafe { _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7) })
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
    fn load_first_longs<T: Pod>(_: Cpu<Self>, keys: &[T]) -> [Avx2Long; 2] {
        assert!(size_of_val(keys) >= 4 * 32, "a key for each lane");
        // SAFETY: the CPU has AVX2, and there are 128 bytes without padding.
        unsafe {
            let part = |at: usize| _mm256_loadu_si256(keys.as_ptr().cast::<__m256i>().add(at));
            // The upper halves of keys 0, 2, 1 and 3.
            let of = |at: usize| _mm256_unpackhi_epi64(part(at), part(at + 1));
            let two = |at: usize| _mm256_permute4x64_epi64::<0b11_01_10_00>(of(at));
            [Avx2Long(two(0)), Avx2Long(two(2))]
        }
    }

    #[inline(always)]
    unsafe fn load_some(_: Cpu<Self>, from: &[MaybeUninit<u32>]) -> Self {
        assert!(from.len() >= 8, "a number for each lane");
        // SAFETY: the CPU has AVX2, and there are 32 bytes; the rest as our caller promises.
        Self(unsafe { _mm256_loadu_si256(from.as_ptr().cast()) })
    }

    #[inline(always)]
    unsafe fn load_some_longs(_: Cpu<Self>, from: &[MaybeUninit<u64>]) -> [Avx2Long; 2] {
        assert!(from.len() >= 8, "a number for each lane");
        let from = from.as_ptr().cast::<__m256i>();
        // SAFETY: the CPU has AVX2, and there are 64 bytes; the rest as our caller promises.
        unsafe { [Avx2Long(_mm256_loadu_si256(from)), Avx2Long(_mm256_loadu_si256(from.add(1)))] }
    }

    #[inline(always)]
    fn store<T: Pod>(self, to: &mut [T]) {
        assert!(size_of_val(to) >= 32, "a number for each lane");
        // SAFETY: the CPU has AVX2, there are 32 bytes, and any are good for `T`.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn store_where<T: Pod>(self, cpu: Cpu<Self>, mask: Avx2Mask, to: &mut [T]) {
        // AMD's CPUs take long for a store under a mask.
        Self::select(mask, self, Self::load(cpu, to)).store(to);
    }

    #[inline(always)]
    fn splat_long(_: Cpu<Self>, number: u64) -> Avx2Long {
        // SAFETY: the CPU has AVX2.
        Avx2Long(unsafe { _mm256_set1_epi64x(number.cast_signed()) })
    }

    #[inline(always)]
    fn widened(self) -> [Avx2Long; 2] {
        // SAFETY: the CPU has AVX2.
        unsafe {
            [
                Avx2Long(_mm256_cvtepu32_epi64(_mm256_castsi256_si128(self.0))),
                Avx2Long(_mm256_cvtepu32_epi64(_mm256_extracti128_si256::<1>(self.0))),
            ]
        }
    }

    #[inline(always)]
    fn lower(_: Cpu<Self>, [one, other]: [Avx2Long; 2]) -> Self {
        // SAFETY: the CPU has AVX2.
        Self(unsafe {
            let (one, other) = (_mm256_castsi256_ps(one.0), _mm256_castsi256_ps(other.0));
            let mixed = _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(one, other));
            _mm256_permute4x64_epi64::<0b11_01_10_00>(mixed)
        })
    }

    #[inline(always)]
    fn upper(_: Cpu<Self>, [one, other]: [Avx2Long; 2]) -> Self {
        // SAFETY: the CPU has AVX2.
        Self(unsafe {
            let (one, other) = (_mm256_castsi256_ps(one.0), _mm256_castsi256_ps(other.0));
            let mixed = _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(one, other));
            _mm256_permute4x64_epi64::<0b11_01_10_00>(mixed)
        })
    }

    #[inline(always)]
    fn shifted_right(self, by: Self) -> Self {
        // SAFETY: the CPU has the instructions, as there is a vector.
        Self(unsafe { _mm256_srlv_epi32(self.0, by.0) })
    }

    #[inline(always)]
    fn shifted_left(self, by: Self) -> Self {
        // SAFETY: the CPU has the instructions, as there is a vector.
        Self(unsafe { _mm256_sllv_epi32(self.0, by.0) })
    }

    #[inline(always)]
    fn ones(self, cpu: Cpu<Self>) -> Self {
        let nibbles = Self::splat(cpu, 0x0f0f_0f0f);
        let (low, high) = (self & nibbles, self >> 4 & nibbles);
        // SAFETY: the CPU has AVX2.
        Self(unsafe {
            let ones = _mm256_setr_epi8(
                0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, //
                0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
            );
            let bytes = Self(_mm256_shuffle_epi8(ones, low.0)) + Self(_mm256_shuffle_epi8(ones, high.0));
            let pairs = _mm256_maddubs_epi16(bytes.0, _mm256_set1_epi8(1));
            _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))
        })
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
    fn xor_where(self, mask: Avx2Mask, other: Self) -> Self {
        let bits = other & Self(mask.0);
        // SAFETY: the CPU has AVX2.
        Self(unsafe { _mm256_xor_si256(self.0, bits.0) })
    }

    #[inline(always)]
    fn all(cpu: Cpu<Self>) -> Avx2Mask {
        Avx2Mask(Self::splat(cpu, u32::MAX).0)
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // 8 at most
    fn first(cpu: Cpu<Self>, count: usize) -> Avx2Mask {
        !Self::lanes(cpu).at_least(Self::splat(cpu, count.min(8) as u32))
    }

    #[inline(always)]
    fn put(self, mask: Avx2Mask, to: &mut [MaybeUninit<u32>]) {
        assert!(to.len() >= 8, "a number for each lane");
        let numbers = self.permuted(Self::places(mask.bits()));
        // SAFETY: the CPU has AVX2, and there are 32 bytes.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), numbers.0) }
    }

    #[inline(always)]
    fn put_longs([one, other]: [Avx2Long; 2], mask: Avx2Mask, to: &mut [MaybeUninit<u64>]) {
        assert!(to.len() >= 8, "a number for each lane");
        let bits = mask.bits();
        let (first, last) = (bits & 15, bits >> 4);
        let packed = |long: Avx2Long, bits| Avx2(long.0).permuted(Self::places(DOUBLED[bits as usize % 16]));
        let to = to.as_mut_ptr();
        // SAFETY: the CPU has AVX2, and there are 64 bytes; the second part starts 32 bytes from the first at
        // most.
        unsafe {
            _mm256_storeu_si256(to.cast(), packed(one, first).0);
            _mm256_storeu_si256(to.add(first.count_ones() as usize).cast(), packed(other, last).0);
        }
    }

    #[inline(always)]
    fn put_places(cpu: Cpu<Self>, mask: Avx2Mask, first: u32, to: &mut [u32]) -> usize {
        let bits = mask.bits();
        (Self::places(bits) + Self::splat(cpu, first)).store(to);
        bits.count_ones() as usize
    }

    #[inline(always)]
    unsafe fn gather_longs_where(_: Cpu<Self>, mask: Avx2Mask, index: Self, from: &[u64]) -> [Avx2Long; 2] {
        let from = from.as_ptr().cast();
        // SAFETY: the CPU has AVX2; the rest as our caller promises.
        unsafe {
            let none = _mm256_setzero_si256();
            let half = |index, mask| {
                Avx2Long(_mm256_mask_i32gather_epi64::<8>(none, from, index, _mm256_cvtepi32_epi64(mask)))
            };
            [
                half(_mm256_castsi256_si128(index.0), _mm256_castsi256_si128(mask.0)),
                half(_mm256_extracti128_si256::<1>(index.0), _mm256_extracti128_si256::<1>(mask.0)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn scatter_where<T: Pod>(self, mask: Avx2Mask, index: Self, to: &mut [T]) {
        const { assert!(size_of::<T>() == 4) };
        let (mut numbers, mut places) = ([0u32; 8], [0u32; 8]);
        self.store(&mut numbers);
        index.store(&mut places);
        let to = to.as_mut_ptr().cast::<u32>();
        let mut left = mask.bits();
        while left != 0 {
            let lane = left.trailing_zeros() as usize % 8;
            // SAFETY: as our caller promises; any 4 bytes are good for `T`.
            unsafe { to.add(places[lane] as usize).write(numbers[lane]) };
            left &= left - 1;
        }
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
    (Avx2);
    Add add _mm256_add_epi32
    Sub sub _mm256_sub_epi32
    Mul mul _mm256_mullo_epi32
    BitAnd bitand _mm256_and_si256
    BitOr bitor _mm256_or_si256;
    Shl shl _mm256_sll_epi32
    Shr shr _mm256_srl_epi32
}

operators! {
    (Avx2Long);
    Add add _mm256_add_epi64
    Sub sub _mm256_sub_epi64
    BitAnd bitand _mm256_and_si256
    BitOr bitor _mm256_or_si256
    BitXor bitxor _mm256_xor_si256;
    Shl shl _mm256_sll_epi64
    Shr shr _mm256_srl_epi64
}
