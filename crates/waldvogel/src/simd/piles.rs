//! Keys that are not done, until there are enough of them for a round.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm512_loadu_si512, _mm512_maskz_compress_epi32, _mm512_maskz_compress_epi64,
    _mm512_storeu_si512,
};
use std::mem::MaybeUninit;

use wirespeed_fib::vector::{Avx512, Cpu, Vector};
use wirespeed_fib::{Address, NextHop};

use super::keys::{Keys, LANES, ROUND};
use crate::hash::halves;
use crate::layout::WaldvogelTable;
use crate::probe::{BLOCK, Wide};
use crate::value::{NUMBER_BITS, OPEN, Says, Value, WIDE};

/// Keys that a column has place for.
const PLACES: usize = 5 * ROUND;

/// A column. Nothing is there past the end.
type Column<T> = [MaybeUninit<T>; PLACES];

/// The keys that are not done, in columns.
#[repr(align(64))]
pub(super) struct Pile {
    /// The first 64 bits.
    high: Column<u64>,
    /// What to do next: to try a length that a word holds. Without [`OPEN`], which is the mark of a try in
    /// vain: what the record says.
    value: Column<u32>,
    /// The place in the part.
    key: Column<u32>,
    pub(super) count: usize,
}

/// The keys whose next length no word holds, in columns.
#[repr(align(64))]
pub(super) struct WidePile {
    value: Column<u32>,
    /// The place in the part.
    key: Column<u32>,
    pub(super) count: usize,
}

/// Both piles. Neither grows past three rounds: there are fewer than two before keys come, one round at a
/// time, and what leaves one pile may go on the other.
pub(super) struct Piles {
    pub(super) narrow: Pile,
    pub(super) wide: WidePile,
}

impl Piles {
    #[inline]
    pub(super) fn new() -> Self {
        let high = [const { MaybeUninit::uninit() }; PLACES];
        let numbers = [const { MaybeUninit::uninit() }; PLACES];
        Self {
            narrow: Pile { high, value: numbers, key: numbers, count: 0 },
            wide: WidePile { value: numbers, key: numbers, count: 0 },
        }
    }

    /// Forgets what is on the piles.
    #[inline]
    pub(super) fn give_up(&mut self, results: &mut [NextHop]) {
        let (narrow, wide) = (&mut self.narrow, &mut self.wide);
        for key in narrow.key[..narrow.count].iter().chain(&wide.key[..wide.count]) {
            // SAFETY: keys up to the count are there.
            results[unsafe { key.assume_init() } as usize] = NextHop::NONE;
        }
        (narrow.count, wide.count) = (0, 0);
    }

    /// One more try of a round of the keys whose next length no word holds, or of fewer where there are no
    /// more.
    ///
    /// # Safety
    /// The places on the pile must be those of keys and of results.
    pub(super) unsafe fn again_wide<A: Address>(
        &mut self,
        table: &WaldvogelTable<A>,
        addresses: &[A],
        results: &mut [NextHop],
    ) {
        let Self { narrow, wide } = self;
        let from = wide.count.saturating_sub(BLOCK);
        let mut round = [Wide::default(); BLOCK];
        let count = wide.count - from;
        for (at, key) in (from..).zip(&mut round[..count]) {
            // SAFETY: keys up to the count are there.
            let (place, value) = unsafe { (wide.key[at].assume_init(), wide.value[at].assume_init()) };
            *key = Wide { place, value: Value(value) };
        }
        wide.count = from;
        table.probe_all_wide(addresses, &mut round[..count]);
        for key in &round[..count] {
            let at = key.place as usize;
            results[at] = NextHop(key.value.0);
            match key.value.says() {
                Says::Try(Some(_), _) => {
                    narrow.high[narrow.count] = MaybeUninit::new(halves(addresses[at]).0);
                    narrow.value[narrow.count] = MaybeUninit::new(key.value.0);
                    narrow.key[narrow.count] = MaybeUninit::new(key.place);
                    narrow.count += 1;
                }
                Says::Try(None, _) => {
                    wide.value[wide.count] = MaybeUninit::new(key.value.0);
                    wide.key[wide.count] = MaybeUninit::new(key.place);
                    wide.count += 1;
                }
                Says::NextHop(_) | Says::Chunk(_) => {}
            }
        }
    }

    /// Puts the keys that are not done on their pile.
    ///
    /// # Safety
    /// The values must come from a table and the places be those of results. Neither pile may have more than
    /// three rounds.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) unsafe fn leave(&mut self, cpu: Cpu<Avx512>, keys: &mut Keys) {
        // SAFETY: as our caller promises.
        unsafe { self.wide.set_aside(cpu, keys) };
        let pile = &mut self.narrow;
        let [open, more_open] = keys.open.to_le_bytes();
        let at = pile.count;
        let middle = at + open.count_ones() as usize;
        debug_assert!(at + 2 * LANES <= PLACES);
        // SAFETY: there is room for sixteen from `middle` on too.
        unsafe {
            let high = pile.high.as_mut_ptr();
            _mm512_storeu_si512(high.add(at).cast(), _mm512_maskz_compress_epi64(open, keys.high[0]));
            _mm512_storeu_si512(
                high.add(middle).cast(),
                _mm512_maskz_compress_epi64(more_open, keys.high[1]),
            );
            let value = _mm512_maskz_compress_epi32(keys.open, keys.value.register());
            _mm512_storeu_si512(pile.value.as_mut_ptr().add(at).cast(), value);
            let place = _mm512_maskz_compress_epi32(keys.open, keys.place.register());
            _mm512_storeu_si512(pile.key.as_mut_ptr().add(at).cast(), place);
        }
        pile.count = middle + more_open.count_ones() as usize;
    }
}

impl Pile {
    /// Takes so many vectors of keys, or fewer where there are no more. All are open.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) fn take<const VECTORS: usize>(&mut self, cpu: Cpu<Avx512>) -> [Keys; VECTORS] {
        let mut keys = [Keys::none(cpu); VECTORS];
        let from = self.count.saturating_sub(LANES * VECTORS);
        for (at, keys) in (from..).step_by(LANES).zip(&mut keys) {
            let here = self.count.saturating_sub(at).min(LANES);
            // SAFETY: the columns are longer than that. What is past the end is not looked at.
            unsafe {
                let high = self.high.as_ptr().add(at).cast::<__m512i>();
                keys.high = [_mm512_loadu_si512(high), _mm512_loadu_si512(high.add(1))];
                keys.value = Avx512::of(cpu, _mm512_loadu_si512(self.value.as_ptr().add(at).cast()));
                keys.place = Avx512::of(cpu, _mm512_loadu_si512(self.key.as_ptr().add(at).cast()));
            }
            keys.open = u16::try_from((1u32 << here) - 1).unwrap_or(u16::MAX);
        }
        self.count = from;
        keys
    }
}

impl WidePile {
    /// Puts the keys whose next length no word holds on their own pile. They are open no longer.
    ///
    /// # Safety
    /// The values must come from a table and the places be those of results. The pile may not have more than
    /// three rounds.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) unsafe fn set_aside(&mut self, cpu: Cpu<Avx512>, keys: &mut Keys) {
        let least = Avx512::splat(cpu, OPEN | WIDE << NUMBER_BITS);
        let wide = keys.open & keys.value.at_least(least).register();
        if wide == 0 {
            return;
        }
        let at = self.count;
        debug_assert!(at + LANES <= PLACES);
        // SAFETY: there is room for sixteen.
        unsafe {
            let value = _mm512_maskz_compress_epi32(wide, keys.value.register());
            _mm512_storeu_si512(self.value.as_mut_ptr().add(at).cast(), value);
            let place = _mm512_maskz_compress_epi32(wide, keys.place.register());
            _mm512_storeu_si512(self.key.as_mut_ptr().add(at).cast(), place);
        }
        self.count += wide.count_ones() as usize;
        keys.open &= !wide;
    }
}
