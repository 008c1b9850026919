//! Keys that are not done, until there are enough of them for a round.

use std::mem::MaybeUninit;

use wirespeed_fib::vector::{Cpu, Mask, Vector};
use wirespeed_fib::{Address, NextHop};

use super::keys::{Keys, MOST_ROUND};
use crate::hash::halves;
use crate::layout::WaldvogelTable;
use crate::probe::{BLOCK, Wide};
use crate::value::{NUMBER_BITS, OPEN, Says, Value, WIDE};

/// Keys that a column has place for.
const PLACES: usize = 5 * MOST_ROUND;

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

/// Both piles. Neither grows past three rounds of the widest vectors: there are fewer than two before keys
/// come, one round at a time, and what leaves one pile may go on the other.
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
            #[allow(unsafe_code)]
            // SAFETY: keys up to the count are there.
            let place = unsafe { key.assume_init() };
            results[place as usize] = NextHop::NONE;
        }
        (narrow.count, wide.count) = (0, 0);
    }

    /// One more try of [`BLOCK`] of the keys whose next length no word holds, or of fewer where there are no
    /// more.
    pub(super) fn again_wide<A: Address>(
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
            #[allow(unsafe_code)]
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
    #[inline(always)]
    pub(super) fn leave<V: Vector>(&mut self, cpu: Cpu<V>, keys: &mut Keys<V>) {
        self.wide.set_aside(cpu, keys);
        let pile = &mut self.narrow;
        V::put_longs(keys.high, keys.open, &mut pile.high[pile.count..]);
        keys.value.put(keys.open, &mut pile.value[pile.count..]);
        keys.place.put(keys.open, &mut pile.key[pile.count..]);
        pile.count += keys.open.bits().count_ones() as usize;
    }
}

impl Pile {
    /// Takes so many vectors of keys, or fewer where there are no more. All are open.
    #[inline(always)]
    pub(super) fn take<V: Vector, const VECTORS: usize>(&mut self, cpu: Cpu<V>) -> [Keys<V>; VECTORS] {
        let mut keys = [Keys::none(cpu); VECTORS];
        let from = self.count.saturating_sub(V::LANES * VECTORS);
        for (at, keys) in (from..).step_by(V::LANES).zip(&mut keys) {
            #[allow(unsafe_code)]
            // SAFETY: keys past the end of the pile are not open.
            unsafe {
                keys.high = V::load_some_longs(cpu, &self.high[at..]);
                keys.value = V::load_some(cpu, &self.value[at..]);
                keys.place = V::load_some(cpu, &self.key[at..]);
            }
            keys.open = V::first(cpu, self.count.saturating_sub(at));
        }
        self.count = from;
        keys
    }
}

impl WidePile {
    /// Puts the keys whose next length no word holds on their own pile. They are open no longer.
    #[inline(always)]
    pub(super) fn set_aside<V: Vector>(&mut self, cpu: Cpu<V>, keys: &mut Keys<V>) {
        let wide = keys.open & keys.value.at_least(V::splat(cpu, OPEN | WIDE << NUMBER_BITS));
        if !wide.any() {
            return;
        }
        keys.value.put(wide, &mut self.value[self.count..]);
        keys.place.put(wide, &mut self.key[self.count..]);
        self.count += wide.bits().count_ones() as usize;
        keys.open = keys.open & !wide;
    }
}
