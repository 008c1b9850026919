//! [`Avx512`]: vectors of sixteen numbers. [`Extension`]: instructions that some CPUs with AVX-512 have.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, __mmask16, _mm_cvtsi32_si128, _mm512_add_epi32, _mm512_add_epi64, _mm512_and_si512,
    _mm512_andnot_si512, _mm512_castsi512_si256, _mm512_cmpeq_epi32_mask, _mm512_cmpge_epu32_mask,
    _mm512_cvtepu32_epi64, _mm512_extracti64x4_epi64, _mm512_inserti64x4, _mm512_loadu_si512,
    _mm512_mask_blend_epi32, _mm512_mask_i32gather_epi32, _mm512_mask_i32gather_epi64,
    _mm512_mask_i32scatter_epi32, _mm512_mask_storeu_epi32, _mm512_mask_xor_epi32,
    _mm512_maskz_compress_epi32, _mm512_maskz_compress_epi64, _mm512_mul_epu32, _mm512_mullo_epi32,
    _mm512_mullo_epi64, _mm512_or_si512, _mm512_permutex2var_epi32, _mm512_permutex2var_epi64,
    _mm512_popcnt_epi32, _mm512_set1_epi32, _mm512_set1_epi64, _mm512_setr_epi32, _mm512_setr_epi64,
    _mm512_setzero_si512, _mm512_sll_epi32, _mm512_sll_epi64, _mm512_sllv_epi32, _mm512_srl_epi32,
    _mm512_srl_epi64, _mm512_srlv_epi32, _mm512_srlv_epi64, _mm512_storeu_si512, _mm512_sub_epi32,
    _mm512_sub_epi64, _mm512_test_epi32_mask, _mm512_xor_si512,
};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Add, BitAnd, BitOr, BitXor, Mul, Not, Shl, Shr, Sub};

use bytemuck::Pod;

use super::ops::{Cpu, Long, Mask, Vector, count_ones, operators, product, sealed};

/// Sixteen numbers of 32 bits. It takes the foundation of AVX-512, and an extension if it is faster with one.
#[derive(Clone, Copy, Debug)]
pub struct Avx512<E = Foundation>(__m512i, PhantomData<E>);

/// Instructions that not all CPUs with AVX-512 have. An operation without its instruction takes several.
pub trait Extension: Copy + Debug + sealed::Sealed {
    /// The operation of [`Vector::ones`].
    #[inline(always)]
    fn ones(cpu: Cpu<Avx512<Self>>, numbers: Avx512<Self>) -> Avx512<Self> {
        count_ones(cpu, numbers)
    }

    /// The product of numbers of 64 bits.
    #[inline(always)]
    fn product(one: Avx512Long<Self>, other: Avx512Long<Self>) -> Avx512Long<Self> {
        product(one, other)
    }
}

/// No extension.
#[derive(Clone, Copy, Debug)]
pub struct Foundation;

/// AVX-512VPOPCNTDQ.
#[derive(Clone, Copy, Debug)]
pub struct CountingOnes;

/// AVX-512DQ, which every CPU with AVX-512 for servers has.
#[derive(Clone, Copy, Debug)]
pub struct LongProducts;

impl sealed::Sealed for Foundation {}
impl sealed::Sealed for CountingOnes {}
impl sealed::Sealed for LongProducts {}

impl Extension for Foundation {}

impl Extension for CountingOnes {
    #[inline(always)]
    fn ones(_: Cpu<Avx512<Self>>, numbers: Avx512<Self>) -> Avx512<Self> {
        // SAFETY: the CPU has AVX-512VPOPCNTDQ, as there is a `Cpu`.
        Avx512::new(unsafe { _mm512_popcnt_epi32(numbers.0) })
    }
}

impl Extension for LongProducts {
    #[inline(always)]
    fn product(one: Avx512Long<Self>, other: Avx512Long<Self>) -> Avx512Long<Self> {
        // SAFETY: the CPU has AVX-512DQ, as there is a vector.
        Avx512Long::new(unsafe { _mm512_mullo_epi64(one.0, other.0) })
    }
}

/// Eight numbers of 64 bits.
#[derive(Clone, Copy, Debug)]
pub struct Avx512Long<E>(__m512i, PhantomData<E>);

impl<E> Avx512Long<E> {
    #[inline(always)]
    fn new(register: __m512i) -> Self {
        Self(register, PhantomData)
    }
}

impl<E: Extension> Long for Avx512Long<E> {
    #[inline(always)]
    fn without(self, other: Self) -> Self {
        // SAFETY: the CPU has AVX-512F.
        Self::new(unsafe { _mm512_andnot_si512(other.0, self.0) })
    }

    #[inline(always)]
    fn shifted_right(self, by: Self) -> Self {
        // SAFETY: the CPU has AVX-512F.
        Self::new(unsafe { _mm512_srlv_epi64(self.0, by.0) })
    }

    #[inline(always)]
    fn times_low(self, other: Self) -> Self {
        // SAFETY: the CPU has AVX-512F.
        Self::new(unsafe { _mm512_mul_epu32(self.0, other.0) })
    }
}

impl<E: Extension> Mul for Avx512Long<E> {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        E::product(self, other)
    }
}

impl<E> Avx512<E> {
    #[inline(always)]
    fn new(register: __m512i) -> Self {
        Self(register, PhantomData)
    }

    /// The vector of a register.
    #[inline(always)]
    pub fn of(_: Cpu<Self>, register: __m512i) -> Self {
        Self::new(register)
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
fn pick<E>(_: Cpu<Avx512<E>>, [a, b, c, d]: [__m512i; 4], which: __m512i) -> Avx512<E> {
    // SAFETY: the CPU has AVX-512F.
    unsafe {
        let front = _mm512_permutex2var_epi32(a, which, b);
        let back = _mm512_permutex2var_epi32(c, which, d);
        Avx512::new(_mm512_inserti64x4::<1>(front, _mm512_castsi512_si256(back)))
    }
}

impl<E> sealed::Sealed for Avx512<E> {}

// The CPU has AVX-512F wherever there is a `Cpu<Avx512<E>>` or a vector, which takes one to make.
impl<E: Extension> Vector for Avx512<E> {
    type Mask = Avx512Mask;

    type Long = Avx512Long<E>;

    const LANES: usize = 16;

    #[inline(always)]
    fn splat(_: Cpu<Self>, number: u32) -> Self {
        // SAFETY: the CPU has AVX-512F.
        Self::new(unsafe { _mm512_set1_epi32(number.cast_signed()) })
    }

    #[inline(always)]
    fn lanes(_: Cpu<Self>) -> Self {
        // SAFETY: the CPU has AVX-512F.
        Self::new(unsafe { _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) })
    }

    #[inline(always)]
    fn load<T: Pod>(_: Cpu<Self>, from: &[T]) -> Self {
        assert!(size_of_val(from) >= 64, "a number for each lane");
        // SAFETY: the CPU has AVX-512F, and there are 64 bytes without padding.
        Self::new(unsafe { _mm512_loadu_si512(from.as_ptr().cast()) })
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
    fn load_first_longs<T: Pod>(_: Cpu<Self>, keys: &[T]) -> [Avx512Long<E>; 2] {
        assert!(size_of_val(keys) >= 4 * 64, "a key for each lane");
        // SAFETY: the CPU has AVX-512F, and there are 256 bytes without padding.
        unsafe {
            let part = |at: usize| _mm512_loadu_si512(keys.as_ptr().cast::<__m512i>().add(at));
            // A key is in host order: its upper half is the second.
            let which = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
            let two = |at: usize| _mm512_permutex2var_epi64(part(at), which, part(at + 1));
            [Avx512Long::new(two(0)), Avx512Long::new(two(2))]
        }
    }

    #[inline(always)]
    unsafe fn load_some(_: Cpu<Self>, from: &[MaybeUninit<u32>]) -> Self {
        assert!(from.len() >= 16, "a number for each lane");
        // SAFETY: the CPU has AVX-512F, and there are 64 bytes; the rest as our caller promises.
        Self::new(unsafe { _mm512_loadu_si512(from.as_ptr().cast()) })
    }

    #[inline(always)]
    unsafe fn load_some_longs(_: Cpu<Self>, from: &[MaybeUninit<u64>]) -> [Avx512Long<E>; 2] {
        assert!(from.len() >= 16, "a number for each lane");
        let from = from.as_ptr().cast::<__m512i>();
        // SAFETY: the CPU has AVX-512F, and there are 128 bytes; the rest as our caller promises.
        unsafe {
            [Avx512Long::new(_mm512_loadu_si512(from)), Avx512Long::new(_mm512_loadu_si512(from.add(1)))]
        }
    }

    #[inline(always)]
    fn store<T: Pod>(self, to: &mut [T]) {
        assert!(size_of_val(to) >= 64, "a number for each lane");
        // SAFETY: the CPU has AVX-512F, there are 64 bytes, and any are good for `T`.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn store_where<T: Pod>(self, _: Cpu<Self>, mask: Avx512Mask, to: &mut [T]) {
        assert!(size_of_val(to) >= 64, "a number for each lane");
        // SAFETY: the CPU has AVX-512F, there are 64 bytes, and any are good for `T`.
        unsafe { _mm512_mask_storeu_epi32(to.as_mut_ptr().cast(), mask.register(), self.0) }
    }

    #[inline(always)]
    fn splat_long(_: Cpu<Self>, number: u64) -> Avx512Long<E> {
        // SAFETY: the CPU has AVX-512F.
        Avx512Long::new(unsafe { _mm512_set1_epi64(number.cast_signed()) })
    }

    #[inline(always)]
    fn widened(self) -> [Avx512Long<E>; 2] {
        // SAFETY: the CPU has AVX-512F.
        unsafe {
            [
                Avx512Long::new(_mm512_cvtepu32_epi64(_mm512_castsi512_si256(self.0))),
                Avx512Long::new(_mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64::<1>(self.0))),
            ]
        }
    }

    #[inline(always)]
    fn lower(_: Cpu<Self>, [one, other]: [Avx512Long<E>; 2]) -> Self {
        // SAFETY: the CPU has AVX-512F.
        Self::new(unsafe {
            let which = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
            _mm512_permutex2var_epi32(one.0, which, other.0)
        })
    }

    #[inline(always)]
    fn upper(_: Cpu<Self>, [one, other]: [Avx512Long<E>; 2]) -> Self {
        // SAFETY: the CPU has AVX-512F.
        Self::new(unsafe {
            let which = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
            _mm512_permutex2var_epi32(one.0, which, other.0)
        })
    }

    #[inline(always)]
    fn shifted_right(self, by: Self) -> Self {
        // SAFETY: the CPU has the instructions, as there is a vector.
        Self::new(unsafe { _mm512_srlv_epi32(self.0, by.0) })
    }

    #[inline(always)]
    fn shifted_left(self, by: Self) -> Self {
        // SAFETY: the CPU has the instructions, as there is a vector.
        Self::new(unsafe { _mm512_sllv_epi32(self.0, by.0) })
    }

    #[inline(always)]
    fn ones(self, cpu: Cpu<Self>) -> Self {
        E::ones(cpu, self)
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
        Self::new(unsafe { _mm512_mask_blend_epi32(mask.register(), no.0, yes.0) })
    }

    #[inline(always)]
    fn xor_where(self, mask: Avx512Mask, other: Self) -> Self {
        // SAFETY: the CPU has AVX-512F.
        Self::new(unsafe { _mm512_mask_xor_epi32(self.0, mask.register(), self.0, other.0) })
    }

    #[inline(always)]
    fn all(_: Cpu<Self>) -> Avx512Mask {
        Avx512Mask(u32::MAX)
    }

    #[inline(always)]
    fn first(_: Cpu<Self>, count: usize) -> Avx512Mask {
        Avx512Mask((1 << count.min(16)) - 1)
    }

    #[inline(always)]
    fn put(self, mask: Avx512Mask, to: &mut [MaybeUninit<u32>]) {
        assert!(to.len() >= 16, "a number for each lane");
        // SAFETY: the CPU has AVX-512F, and there are 64 bytes.
        unsafe {
            let numbers = _mm512_maskz_compress_epi32(mask.register(), self.0);
            _mm512_storeu_si512(to.as_mut_ptr().cast(), numbers);
        }
    }

    #[inline(always)]
    fn put_longs([one, other]: [Avx512Long<E>; 2], mask: Avx512Mask, to: &mut [MaybeUninit<u64>]) {
        assert!(to.len() >= 16, "a number for each lane");
        let [first, last] = mask.register().to_le_bytes();
        let to = to.as_mut_ptr();
        // SAFETY: the CPU has AVX-512F, and there are 128 bytes; the second part starts 64 bytes from the
        // first at most.
        unsafe {
            _mm512_storeu_si512(to.cast(), _mm512_maskz_compress_epi64(first, one.0));
            let to = to.add(first.count_ones() as usize);
            _mm512_storeu_si512(to.cast(), _mm512_maskz_compress_epi64(last, other.0));
        }
    }

    #[inline(always)]
    fn put_places(cpu: Cpu<Self>, mask: Avx512Mask, first: u32, to: &mut [u32]) -> usize {
        // SAFETY: the CPU has AVX-512F.
        let lanes =
            Self::new(unsafe { _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) });
        let places = lanes + Self::splat(cpu, first);
        // SAFETY: the CPU has AVX-512F.
        Self::new(unsafe { _mm512_maskz_compress_epi32(mask.register(), places.0) }).store(to);
        mask.bits().count_ones() as usize
    }

    #[inline(always)]
    unsafe fn gather_longs_where(
        _: Cpu<Self>,
        mask: Avx512Mask,
        index: Self,
        from: &[u64],
    ) -> [Avx512Long<E>; 2] {
        let [first, last] = mask.register().to_le_bytes();
        let from = from.as_ptr().cast();
        // SAFETY: the CPU has AVX-512F; the rest as our caller promises.
        unsafe {
            let none = _mm512_setzero_si512();
            let (low, high) = (_mm512_castsi512_si256(index.0), _mm512_extracti64x4_epi64::<1>(index.0));
            [
                Avx512Long::new(_mm512_mask_i32gather_epi64::<8>(none, first, low, from)),
                Avx512Long::new(_mm512_mask_i32gather_epi64::<8>(none, last, high, from)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn scatter_where<T: Pod>(self, mask: Avx512Mask, index: Self, to: &mut [T]) {
        const { assert!(size_of::<T>() == 4) };
        // SAFETY: the CPU has AVX-512F; the rest as our caller promises.
        unsafe {
            _mm512_mask_i32scatter_epi32::<4>(to.as_mut_ptr().cast(), mask.register(), index.0, self.0);
        }
    }

    #[inline(always)]
    unsafe fn gather_scaled<const SCALE: i32>(
        mask: Avx512Mask,
        index: Self,
        from: *const u8,
        elsewhere: Self,
    ) -> Self {
        // SAFETY: the CPU has AVX-512F; the rest as our caller promises.
        Self::new(unsafe {
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
    (Avx512<E>);
    Add add _mm512_add_epi32
    Sub sub _mm512_sub_epi32
    Mul mul _mm512_mullo_epi32
    BitAnd bitand _mm512_and_si512
    BitOr bitor _mm512_or_si512;
    Shl shl _mm512_sll_epi32
    Shr shr _mm512_srl_epi32
}

operators! {
    (Avx512Long<E>);
    Add add _mm512_add_epi64
    Sub sub _mm512_sub_epi64
    BitAnd bitand _mm512_and_si512
    BitOr bitor _mm512_or_si512
    BitXor bitxor _mm512_xor_si512;
    Shl shl _mm512_sll_epi64
    Shr shr _mm512_srl_epi64
}
