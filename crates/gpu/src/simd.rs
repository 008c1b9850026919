//! Keys made narrow and results made wide with AVX-512, at the speed of memory.
//!
//! Memory that is larger than a core's caches is written past them (streaming stores): a usual store first
//! reads the line that it overwrites. Smaller memory stays in the caches, where the bus or the caller reads
//! it next. On a host with an H200, widening bytes into 256 MiB took 0.2 ns a result instead of 0.6.
//!
//! Each function handles the first elements, as many as fill whole vectors, and returns their number. Without
//! AVX-512 it is 0, but for `stream`, which every x86-64 CPU has. The caller handles the rest. `copy` handles
//! all.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use x86::stream;

#[cfg(all(target_arch = "x86_64", feature = "names"))]
pub(crate) use x86::short_ends;

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{first_6, first_8, first_24_bits, widen_1, widen_2};

#[cfg(not(target_arch = "x86_64"))]
use portable::stream;

#[cfg(all(not(target_arch = "x86_64"), feature = "names"))]
pub(crate) use portable::short_ends;

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use portable::{first_6, first_8, first_24_bits, widen_1, widen_2};

/// The fewest bytes that are written past the caches: half of the second-level cache of servers.
const STREAMED: usize = 1 << 20;

/// Bytes of a line of the caches.
const LINE: usize = 64;

/// Copies bytes, past the caches if it is said so. Lines that the copy shares with other memory are written
/// to the caches.
pub(crate) fn copy(from: &[u8], to: &mut [u8], is_streamed: bool) {
    assert_eq!(from.len(), to.len(), "a place for each byte");
    let before = if is_streamed { to.as_ptr().align_offset(LINE).min(to.len()) } else { 0 };
    let ((head, from), (to_head, to)) = (from.split_at(before), to.split_at_mut(before));
    to_head.copy_from_slice(head);
    let done = if is_streamed { stream(from, to) } else { 0 };
    to[done..].copy_from_slice(&from[done..]);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, __m256i, __m512i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128, _mm256_loadu_si256,
        _mm512_castsi128_si512, _mm512_castsi256_si512, _mm512_cvtepi32_epi8, _mm512_cvtepi32_epi16,
        _mm512_cvtepu8_epi32, _mm512_cvtepu16_epi32, _mm512_inserti32x4, _mm512_inserti64x4,
        _mm512_loadu_si512, _mm512_permutex2var_epi32, _mm512_permutex2var_epi64, _mm512_setr_epi32,
        _mm512_setr_epi64, _mm512_srli_epi32, _mm512_storeu_si512, _mm512_stream_si512,
    };

    use super::{LINE, STREAMED};

    /// The first 16 bits and the next 8 bits of numbers of 32 bits, each as a plane.
    pub(crate) fn first_24_bits(
        from: &[u32],
        first: &mut [u8],
        second: &mut [u8],
        is_streamed: bool,
    ) -> usize {
        let (keys, _) = from.as_chunks::<64>();
        let (first, _) = first.as_chunks_mut::<128>();
        let (second, _) = second.as_chunks_mut::<64>();
        let rounds = keys.len().min(first.len()).min(second.len());
        if !is_here() {
            return 0;
        }
        let is_streamed = streams(first, is_streamed) && is_aligned(second);
        // SAFETY: the CPU has AVX-512F.
        unsafe {
            match is_streamed {
                true => first_24_bits_in::<true>(keys, first, second),
                false => first_24_bits_in::<false>(keys, first, second),
            }
        }
        rounds * 64
    }

    #[target_feature(enable = "avx512f")]
    fn first_24_bits_in<const STREAM: bool>(
        keys: &[[u32; 64]],
        first: &mut [[u8; 128]],
        second: &mut [[u8; 64]],
    ) {
        for ((keys, first), second) in keys.iter().zip(first).zip(second) {
            let (keys, _) = keys.as_chunks::<16>();
            let keys = [&keys[0], &keys[1], &keys[2], &keys[3]].map(|keys| load(keys));
            let [a, b, c, d] = keys.map(|keys| _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(keys)));
            let (lines, _) = first.as_chunks_mut::<LINE>();
            store::<STREAM>(of_halves(a, b), &mut lines[0]);
            store::<STREAM>(of_halves(c, d), &mut lines[1]);
            let [a, b, c, d] = keys.map(|keys| _mm512_cvtepi32_epi8(_mm512_srli_epi32::<8>(keys)));
            let bytes = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(a), b);
            let bytes = _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(bytes, c), d);
            store::<STREAM>(bytes, second);
        }
        fence::<STREAM>();
    }

    /// The first 32 bits and the next 16 bits of numbers of 128 bits, each as a plane.
    pub(crate) fn first_6(from: &[u128], first: &mut [u8], second: &mut [u8], is_streamed: bool) -> usize {
        let (keys, _) = from.as_chunks::<32>();
        let (first, _) = first.as_chunks_mut::<128>();
        let (second, _) = second.as_chunks_mut::<64>();
        let rounds = keys.len().min(first.len()).min(second.len());
        if !is_here() {
            return 0;
        }
        let is_streamed = streams(first, is_streamed) && is_aligned(second);
        // SAFETY: the CPU has AVX-512F.
        unsafe {
            match is_streamed {
                true => first_6_in::<true>(keys, first, second),
                false => first_6_in::<false>(keys, first, second),
            }
        }
        rounds * 32
    }

    #[target_feature(enable = "avx512f")]
    fn first_6_in<const STREAM: bool>(keys: &[[u128; 32]], first: &mut [[u8; 128]], second: &mut [[u8; 64]]) {
        let upper = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
        let lower = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        for ((keys, first), second) in keys.iter().zip(first).zip(second) {
            let (keys, _) = keys.as_chunks::<8>();
            let [a, b, c, d] = [&keys[0], &keys[1], &keys[2], &keys[3]].map(|keys| upper_64_bits(keys));
            let (lines, _) = first.as_chunks_mut::<LINE>();
            store::<STREAM>(_mm512_permutex2var_epi32(a, upper, b), &mut lines[0]);
            store::<STREAM>(_mm512_permutex2var_epi32(c, upper, d), &mut lines[1]);
            let [a, b] = [(a, b), (c, d)].map(|(a, b)| {
                _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(_mm512_permutex2var_epi32(a, lower, b)))
            });
            store::<STREAM>(of_halves(a, b), second);
        }
        fence::<STREAM>();
    }

    /// The first 64 bits of numbers of 128 bits.
    pub(crate) fn first_8(from: &[u128], to: &mut [u8], is_streamed: bool) -> usize {
        let (keys, _) = from.as_chunks::<8>();
        let (to, _) = to.as_chunks_mut::<LINE>();
        let rounds = keys.len().min(to.len());
        if !is_here() {
            return 0;
        }
        // SAFETY: the CPU has AVX-512F.
        unsafe {
            match streams(to, is_streamed) {
                true => first_8_in::<true>(keys, to),
                false => first_8_in::<false>(keys, to),
            }
        }
        rounds * 8
    }

    #[target_feature(enable = "avx512f")]
    fn first_8_in<const STREAM: bool>(keys: &[[u128; 8]], to: &mut [[u8; LINE]]) {
        for (keys, to) in keys.iter().zip(to) {
            store::<STREAM>(upper_64_bits(keys), to);
        }
        fence::<STREAM>();
    }

    /// The ends of groups of 32 names, each relative to the end of the group before, which is `start` for the
    /// first one: `write` gets the index of a group, its start, and its ends. It stops at a group whose last
    /// end needs more than 16 bits.
    #[cfg(feature = "names")]
    pub(crate) fn short_ends(
        groups: &[[u32; 32]],
        start: u32,
        write: impl FnMut(usize, u32, &[u8; 64]),
    ) -> usize {
        if !is_here() {
            return 0;
        }
        // SAFETY: the CPU has AVX-512F.
        unsafe { short_ends_in(groups, start, write) }
    }

    #[cfg(feature = "names")]
    #[target_feature(enable = "avx512f")]
    fn short_ends_in(
        groups: &[[u32; 32]],
        start: u32,
        mut write: impl FnMut(usize, u32, &[u8; 64]),
    ) -> usize {
        use std::arch::x86_64::{_mm512_set1_epi32, _mm512_sub_epi32};

        let mut start = start;
        for (at, ends) in groups.iter().enumerate() {
            if ends[31] - start > u16::MAX.into() {
                return at;
            }
            let (halves, _) = ends.as_chunks::<16>();
            let [low, high] = [&halves[0], &halves[1]].map(|ends| {
                let ends = _mm512_sub_epi32(load(ends), _mm512_set1_epi32(start.cast_signed()));
                _mm512_cvtepi32_epi16(ends)
            });
            let mut line = [0; LINE];
            store::<false>(of_halves(low, high), &mut line);
            write(at, start, &line);
            start = ends[31];
        }
        groups.len()
    }

    /// Bytes, past the caches. None unless the place of the first one starts a line.
    pub(super) fn stream(from: &[u8], to: &mut [u8]) -> usize {
        if !is_aligned(to) {
            return 0;
        }
        let (from, _) = from.as_chunks::<16>();
        let (to, _) = to.as_chunks_mut::<16>();
        let whole = from.len().min(to.len()) / 4 * 4;
        for (from, to) in from[..whole].iter().zip(&mut to[..whole]) {
            // SAFETY: 16 bytes are read, unaligned, and written, aligned, as the first place is; every x86-64
            // CPU has the instructions.
            unsafe {
                let bytes = _mm_loadu_si128(from.as_ptr().cast::<__m128i>());
                _mm_stream_si128(to.as_mut_ptr().cast::<__m128i>(), bytes);
            }
        }
        fence::<true>();
        16 * whole
    }

    /// Bytes as numbers of 32 bits.
    pub(crate) fn widen_1(from: &[u8], to: &mut [u32]) -> usize {
        widen::<16>(from, to, |from, to, is_streamed| {
            // SAFETY: `widen` calls it on a CPU with AVX-512F.
            unsafe {
                match is_streamed {
                    true => widen_1_in::<true>(from, to),
                    false => widen_1_in::<false>(from, to),
                }
            }
        })
    }

    /// Numbers of 16 bits, little-endian, as numbers of 32 bits.
    pub(crate) fn widen_2(from: &[u8], to: &mut [u32]) -> usize {
        widen::<32>(from, to, |from, to, is_streamed| {
            // SAFETY: `widen` calls it on a CPU with AVX-512F.
            unsafe {
                match is_streamed {
                    true => widen_2_in::<true>(from, to),
                    false => widen_2_in::<false>(from, to),
                }
            }
        })
    }

    /// Widens as many whole vectors as there are. Results that are streamed must start at a line.
    fn widen<const BYTES: usize>(
        from: &[u8],
        to: &mut [u32],
        widen: impl Fn(&[[u8; BYTES]], &mut [[u32; 16]], bool),
    ) -> usize {
        let (from, _) = from.as_chunks::<BYTES>();
        let (to, _) = to.as_chunks_mut::<16>();
        let rounds = from.len().min(to.len());
        if !is_here() {
            return 0;
        }
        let is_streamed = streams(to, false);
        widen(from, to, is_streamed);
        rounds * 16
    }

    #[target_feature(enable = "avx512f")]
    fn widen_1_in<const STREAM: bool>(from: &[[u8; 16]], to: &mut [[u32; 16]]) {
        for (from, to) in from.iter().zip(to) {
            // SAFETY: 16 bytes are read, unaligned.
            let bytes = unsafe { _mm_loadu_si128(from.as_ptr().cast::<__m128i>()) };
            store::<STREAM>(_mm512_cvtepu8_epi32(bytes), bytemuck::cast_mut(to));
        }
        fence::<STREAM>();
    }

    #[target_feature(enable = "avx512f")]
    fn widen_2_in<const STREAM: bool>(from: &[[u8; 32]], to: &mut [[u32; 16]]) {
        for (from, to) in from.iter().zip(to) {
            // SAFETY: 32 bytes are read, unaligned.
            let numbers = unsafe { _mm256_loadu_si256(from.as_ptr().cast::<__m256i>()) };
            store::<STREAM>(_mm512_cvtepu16_epi32(numbers), bytemuck::cast_mut(to));
        }
        fence::<STREAM>();
    }

    fn is_here() -> bool {
        is_x86_feature_detected!("avx512f")
    }

    /// Whether memory is to be written past the caches, as the caller says or because it is large, and can
    /// be.
    fn streams<T>(to: &[T], is_asked: bool) -> bool {
        (is_asked || size_of_val(to) >= STREAMED) && is_aligned(to)
    }

    fn is_aligned<T>(to: &[T]) -> bool {
        to.as_ptr().addr().is_multiple_of(LINE)
    }

    #[target_feature(enable = "avx512f")]
    fn of_halves(low: __m256i, high: __m256i) -> __m512i {
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
    }

    #[target_feature(enable = "avx512f")]
    fn load(from: &[u32; 16]) -> __m512i {
        // SAFETY: 64 bytes are read, unaligned.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast::<__m512i>()) }
    }

    #[target_feature(enable = "avx512f")]
    fn upper_64_bits(keys: &[u128; 8]) -> __m512i {
        let odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
        let from = keys.as_ptr().cast::<__m512i>();
        // SAFETY: 128 bytes are read, unaligned.
        unsafe { _mm512_permutex2var_epi64(_mm512_loadu_si512(from), odd, _mm512_loadu_si512(from.add(1))) }
    }

    /// Writes a line. If it is streamed, it must be aligned: [`streams`] and [`is_aligned`] saw to it.
    #[target_feature(enable = "avx512f")]
    fn store<const STREAM: bool>(vector: __m512i, to: &mut [u8; LINE]) {
        let to = to.as_mut_ptr().cast::<__m512i>();
        debug_assert!(!STREAM || to.addr().is_multiple_of(LINE));
        // SAFETY: 64 bytes are written, aligned if they are streamed.
        unsafe {
            match STREAM {
                true => _mm512_stream_si512(to, vector),
                false => _mm512_storeu_si512(to, vector),
            }
        }
    }

    /// Makes streamed bytes visible before everything that follows, such as the command that sends them.
    fn fence<const STREAM: bool>() {
        if STREAM {
            #[allow(unused_unsafe)] // safe from Rust 1.91 on
            // SAFETY: every x86-64 CPU has the instruction.
            unsafe {
                _mm_sfence();
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod portable {
    pub(crate) fn first_24_bits(_: &[u32], _: &mut [u8], _: &mut [u8], _: bool) -> usize {
        0
    }

    pub(crate) fn first_6(_: &[u128], _: &mut [u8], _: &mut [u8], _: bool) -> usize {
        0
    }

    pub(crate) fn first_8(_: &[u128], _: &mut [u8], _: bool) -> usize {
        0
    }

    #[cfg(feature = "names")]
    pub(crate) fn short_ends(_: &[[u32; 32]], _: u32, _: impl FnMut(usize, u32, &[u8; 64])) -> usize {
        0
    }

    pub(super) fn stream(_: &[u8], _: &mut [u8]) -> usize {
        0
    }

    pub(crate) fn widen_1(_: &[u8], _: &mut [u32]) -> usize {
        0
    }

    pub(crate) fn widen_2(_: &[u8], _: &mut [u32]) -> usize {
        0
    }
}
