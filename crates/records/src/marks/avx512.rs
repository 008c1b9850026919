//! Ends by AVX-512: the places of 64 bytes are compressed to those of ends at once.
#![allow(unsafe_code)] // the call of a function for these instructions, and stores of vectors

use std::arch::x86_64::{
    __m128i, __m512i, _mm512_add_epi32, _mm512_castsi512_si128, _mm512_cvtepu8_epi32,
    _mm512_extracti32x4_epi32, _mm512_loadu_si512, _mm512_maskz_compress_epi8, _mm512_set1_epi32,
    _mm512_storeu_si512,
};

use super::{Ends, Marks, WINDOW};

/// Adds the ends of windows, for which there is room. Returns whether the CPU can.
pub(super) fn push(ends: &mut Ends, at: u32, windows: &[Marks]) -> bool {
    let can = is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("popcnt");
    if can {
        // SAFETY: the CPU has the instructions that the function needs.
        unsafe { with_avx512(ends, at, windows) };
    }
    can
}

/// The place of each byte of a window.
static PLACES: [u8; WINDOW] = {
    let (mut places, mut at) = ([0; WINDOW], 0);
    while at < WINDOW {
        // Less than 64.
        #[allow(clippy::cast_possible_truncation)]
        let place = at as u8;
        places[at] = place;
        at += 1;
    }
    places
};

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi1,popcnt")]
fn with_avx512(ends: &mut Ends, mut at: u32, windows: &[Marks]) {
    // SAFETY: the array has 64 bytes.
    let places = unsafe { _mm512_loadu_si512(PLACES.as_ptr().cast()) };
    for marks in windows {
        ends.push_lines(marks);
        let (found, count) = (_mm512_maskz_compress_epi8(marks.ends, places), marks.ends.count_ones());
        let from = _mm512_set1_epi32(at.cast_signed());
        let [first, others @ ..] = ends.at[ends.len..].as_chunks_mut().0 else { return };
        write(first, from, _mm512_castsi512_si128(found));
        if let [second, third, fourth, ..] = others
            && count > 16
        {
            write(second, from, _mm512_extracti32x4_epi32::<1>(found));
            write(third, from, _mm512_extracti32x4_epi32::<2>(found));
            write(fourth, from, _mm512_extracti32x4_epi32::<3>(found));
        }
        ends.len += count as usize;
        at = at.wrapping_add(u64::BITS);
    }
}

/// Writes sixteen places, which count from the start of a window.
#[target_feature(enable = "avx512f")]
#[inline]
fn write(into: &mut [u32; 16], from: __m512i, places: __m128i) {
    let places = _mm512_add_epi32(from, _mm512_cvtepu8_epi32(places));
    // SAFETY: the array has 64 bytes.
    unsafe { _mm512_storeu_si512(into.as_mut_ptr().cast(), places) };
}
