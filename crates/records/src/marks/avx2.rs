//! Marks by AVX2: 32 bytes are compared at once; and ends with the instructions for bits that came with it.
#![allow(unsafe_code)] // the call of functions for these instructions

use std::arch::x86_64::{
    __m256i, _mm256_cmpeq_epi8, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set_epi64x,
    _mm256_set1_epi8, _mm256_xor_si256,
};

use super::{Ends, Marks, TOGETHER, WINDOW};

/// Reads the marks of windows. Returns whether the CPU can.
#[inline]
pub(super) fn read(windows: &[[u8; WINDOW]], separator: u8, into: &mut [Marks; TOGETHER]) -> bool {
    let can = is_x86_feature_detected!("avx2");
    if can {
        // SAFETY: the function needs AVX2 alone, which the CPU has.
        unsafe { with_avx2(windows, separator, into) };
    }
    can
}

/// Reads the bytes of windows that end strings of JSON, and those that end numbers. Returns whether all bytes
/// are ASCII, if the CPU can.
#[inline]
pub(crate) fn stops(
    windows: &[[u8; WINDOW]],
    of_strings: &mut [u64],
    of_numbers: &mut [u64],
) -> Option<bool> {
    // SAFETY: the function needs AVX2 alone, which the CPU has.
    is_x86_feature_detected!("avx2").then(|| unsafe { stops_with_avx2(windows, of_strings, of_numbers) })
}

/// Adds the ends of windows, for which there is room. Returns whether the CPU can.
pub(super) fn push(ends: &mut Ends, at: u32, windows: &[Marks]) -> bool {
    let can = is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("popcnt");
    if can {
        // SAFETY: the CPU has the instructions that the function needs.
        unsafe { with_bits(ends, at, windows) };
    }
    can
}

#[target_feature(enable = "bmi1,popcnt")]
fn with_bits(ends: &mut Ends, at: u32, windows: &[Marks]) {
    ends.push_each(at, windows);
}

#[target_feature(enable = "avx2")]
fn with_avx2(windows: &[[u8; WINDOW]], separator: u8, into: &mut [Marks; TOGETHER]) {
    let all = |byte: u8| _mm256_set1_epi8(byte.cast_signed());
    let (separator, line, quote, ret) = (all(separator), all(b'\n'), all(b'"'), all(b'\r'));
    for (window, into) in windows.iter().zip(into) {
        let (low, high) = window.split_at(WINDOW / 2);
        let halves = [vector(low), vector(high)];
        let lines = halves.map(|half| _mm256_cmpeq_epi8(half, line));
        let separators = halves.map(|half| _mm256_cmpeq_epi8(half, separator));
        *into = Marks {
            ends: bits([_mm256_or_si256(lines[0], separators[0]), _mm256_or_si256(lines[1], separators[1])]),
            lines: bits(lines),
            quotes: bits(halves.map(|half| _mm256_cmpeq_epi8(half, quote))),
            returns: bits(halves.map(|half| _mm256_cmpeq_epi8(half, ret))),
        };
    }
}

#[target_feature(enable = "avx2")]
fn stops_with_avx2(windows: &[[u8; WINDOW]], of_strings: &mut [u64], of_numbers: &mut [u64]) -> bool {
    let all = |byte: u8| _mm256_set1_epi8(byte.cast_signed());
    let (quote, backslash, control, zero, nine) = (all(b'"'), all(b'\\'), all(0x1f), all(b'0'), all(9));
    let mut any = all(0);
    for ((window, of_strings), of_numbers) in windows.iter().zip(of_strings).zip(of_numbers) {
        let (low, high) = window.split_at(WINDOW / 2);
        let halves = [vector(low), vector(high)];
        any = _mm256_or_si256(any, _mm256_or_si256(halves[0], halves[1]));
        *of_strings = bits(halves.map(|half| {
            let marks = _mm256_or_si256(_mm256_cmpeq_epi8(half, quote), _mm256_cmpeq_epi8(half, backslash));
            _mm256_or_si256(marks, _mm256_cmpeq_epi8(_mm256_min_epu8(half, control), half))
        }));
        *of_numbers = !bits(halves.map(|half| {
            let number = _mm256_xor_si256(half, zero);
            _mm256_cmpeq_epi8(_mm256_min_epu8(number, nine), number)
        }));
    }
    // Bytes of ASCII lack the highest bit.
    _mm256_movemask_epi8(any) == 0
}

#[target_feature(enable = "avx2")]
#[inline]
fn bits(halves: [__m256i; 2]) -> u64 {
    let [low, high] = halves.map(|half| u64::from(_mm256_movemask_epi8(half).cast_unsigned()));
    low | high << 32
}

/// The first 32 bytes.
#[target_feature(enable = "avx2")]
#[inline]
fn vector(bytes: &[u8]) -> __m256i {
    // Compiled to one read of 32 bytes.
    let words = bytes.as_chunks::<8>().0;
    let word = |at: usize| words.get(at).map_or(0, |word| u64::from_le_bytes(*word)).cast_signed();
    _mm256_set_epi64x(word(3), word(2), word(1), word(0))
}
