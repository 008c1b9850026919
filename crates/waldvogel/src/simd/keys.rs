//! Sixteen keys on their way.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, __mmask16, _mm512_castsi512_si256, _mm512_cvtepu32_epi64, _mm512_extracti64x4_epi64,
    _mm512_loadu_si512, _mm512_permutex2var_epi32, _mm512_permutex2var_epi64, _mm512_setr_epi32,
    _mm512_setr_epi64, _mm512_setzero_si512, _mm512_slli_epi64,
};

use wirespeed_fib::vector::{Avx512, Cpu, Vector};
use wirespeed_fib::{Address, Family};
use wirespeed_image::prefetch_once_at;

/// Keys in a vector.
pub(super) const LANES: usize = Avx512::LANES;
/// Vectors of a round.
pub(super) const VECTORS: usize = 4;
/// Keys of a round.
pub(super) const ROUND: usize = LANES * VECTORS;
/// How far ahead keys are prefetched, in bytes: past the reads that are under way.
const AHEAD: usize = 2_048;

/// Keys on their way.
#[derive(Clone, Copy)]
pub(super) struct Keys {
    /// The first 64 bits.
    pub(super) high: [__m512i; 2],
    /// What to do next, as on the pile.
    pub(super) value: Avx512,
    /// The place in the part.
    pub(super) place: Avx512,
    /// Keys that are to be tried.
    pub(super) open: __mmask16,
}

impl Keys {
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) fn none(cpu: Cpu<Avx512>) -> Self {
        let zero = Avx512::splat(cpu, 0);
        Self { high: [_mm512_setzero_si512(); 2], value: zero, place: zero, open: 0 }
    }
}

/// The upper halves of sixteen numbers of 64 bits.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) fn upper(cpu: Cpu<Avx512>, [one, other]: [__m512i; 2]) -> Avx512 {
    let which = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    Avx512::of(cpu, _mm512_permutex2var_epi32(one, which, other))
}

/// The lower halves of sixteen numbers of 64 bits.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) fn lower(cpu: Cpu<Avx512>, [one, other]: [__m512i; 2]) -> Avx512 {
    let which = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    Avx512::of(cpu, _mm512_permutex2var_epi32(one, which, other))
}

/// Sixteen numbers of 32 bits as ones of 64.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) fn widen(numbers: Avx512) -> [__m512i; 2] {
    let numbers = numbers.register();
    [
        _mm512_cvtepu32_epi64(_mm512_castsi512_si256(numbers)),
        _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64::<1>(numbers)),
    ]
}

/// The first 64 bits of sixteen keys. Panics where there are fewer.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) fn highs<A: Address>(cpu: Cpu<Avx512>, keys: &[A]) -> [__m512i; 2] {
    let from = keys[..LANES].as_ptr().cast::<__m512i>();
    for part in 0..A::OCTETS / 4 {
        prefetch_once_at(from.wrapping_add(part).wrapping_byte_add(AHEAD).cast());
    }
    match A::FAMILY {
        Family::V4 => {
            let [one, other] = widen(Avx512::load(cpu, keys));
            [_mm512_slli_epi64::<32>(one), _mm512_slli_epi64::<32>(other)]
        }
        Family::V6 => {
            // SAFETY: these are 16 keys of 16 bytes.
            let [a, b, c, d] = unsafe {
                [
                    _mm512_loadu_si512(from),
                    _mm512_loadu_si512(from.add(1)),
                    _mm512_loadu_si512(from.add(2)),
                    _mm512_loadu_si512(from.add(3)),
                ]
            };
            // A key is in host order: its upper half is the second.
            let which = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
            [_mm512_permutex2var_epi64(a, which, b), _mm512_permutex2var_epi64(c, which, d)]
        }
    }
}
