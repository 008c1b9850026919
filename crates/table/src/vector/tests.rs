//! Each operation of vectors against the plain one, at every level that this CPU has.

use std::mem::MaybeUninit;

use wirespeed_image::Element;

use super::ops::{count_ones, product};
use super::{Cpu, Gains, InVectors, Long, MOST_LANES, MOST_VECTORS, Mask, Places, Vector, VectorLevel};

type Numbers = [u32; MOST_LANES];

/// Numbers at the edges, and some between them: other ones for each `from`.
fn numbers(from: usize) -> Numbers {
    const EDGES: [u32; 13] =
        [0, 1, 2, 31, 32, 255, 256, 65_535, 65_536, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, u32::MAX];
    std::array::from_fn(|lane| {
        let at = from.wrapping_mul(7) + lane * (1 + from % 5);
        match at % 3 {
            0 => 0x9e37_79b9u32.wrapping_mul(u32::try_from(at).expect("small")),
            _ => EDGES[at % EDGES.len()],
        }
    })
}

/// Runs at every level, 200 times with other numbers.
fn at_every_level<C: InVectors<Output = ()>>(code: impl Fn(usize) -> C) {
    for level in VectorLevel::ALL {
        let ran = (0..200).filter(|&round| level.run(code(round)).is_some()).count();
        let expected = if level.is_here() && level != VectorLevel::Portable { 200 } else { 0 };
        assert_eq!(ran, expected, "{level:?}");
        if ran == 0 {
            println!("skipped: {level:?}");
        }
    }
}

fn plain<V: Vector>(vector: V) -> Vec<u32> {
    let mut lanes = vec![0; V::LANES];
    vector.store(&mut lanes);
    lanes
}

#[track_caller]
fn assert_lanes<V: Vector>(vector: V, expected: impl Fn(usize) -> u32) {
    assert_eq!(plain(vector), (0..V::LANES).map(expected).collect::<Vec<_>>());
}

#[track_caller]
fn assert_mask<V: Vector>(mask: V::Mask, expected: impl Fn(usize) -> bool) {
    let expected = (0..V::LANES).map(|lane| u32::from(expected(lane)) << lane).sum();
    assert_eq!(mask.bits(), expected);
    assert_eq!(mask.any(), expected != 0);
}

struct Arithmetic<const COUNTING: bool>(usize);

impl<const COUNTING: bool> InVectors for Arithmetic<COUNTING> {
    type Output = ();

    const GAINS: Gains = if COUNTING { Gains::Counting } else { Gains::Nothing };

    fn run<V: Vector>(self, cpu: Cpu<V>) {
        let (a, b) = (numbers(self.0), numbers(self.0 + 1));
        let (x, y) = (V::load(cpu, &a), V::load(cpu, &b));
        assert_lanes(V::splat(cpu, a[0]), |_| a[0]);
        assert_lanes(V::lanes(cpu), |at| u32::try_from(at).expect("small"));
        assert_lanes(x, |at| a[at]);
        assert_lanes(x + y, |at| a[at].wrapping_add(b[at]));
        assert_lanes(x - y, |at| a[at].wrapping_sub(b[at]));
        assert_lanes(x * y, |at| a[at].wrapping_mul(b[at]));
        assert_lanes(x & y, |at| a[at] & b[at]);
        assert_lanes(x | y, |at| a[at] | b[at]);
        for by in [0, 1, 8, 31, 32, 33, 64] {
            assert_lanes(x << by, |at| a[at].checked_shl(by).unwrap_or(0));
            assert_lanes(x >> by, |at| a[at].checked_shr(by).unwrap_or(0));
        }
        assert_lanes(x.shifted_left(y), |at| a[at].checked_shl(b[at]).unwrap_or(0));
        assert_lanes(x.shifted_right(y), |at| a[at].checked_shr(b[at]).unwrap_or(0));
        assert_lanes(x.ones(cpu), |at| a[at].count_ones());
        assert_lanes(count_ones(cpu, x), |at| a[at].count_ones());
    }
}

#[test]
fn arithmetic_is_that_of_numbers() {
    at_every_level(Arithmetic::<false>);
    at_every_level(Arithmetic::<true>);
}

struct Masks(usize);

impl InVectors for Masks {
    type Output = ();

    fn run<V: Vector>(self, cpu: Cpu<V>) {
        let (a, b) = (numbers(self.0), numbers(self.0 + 1));
        let (x, y) = (V::load(cpu, &a), V::load(cpu, &b));
        let (equal, over, some) = (x.equals(y), x.at_least(y), x.has_any(y));
        assert_mask::<V>(equal, |at| a[at] == b[at]);
        assert_mask::<V>(over, |at| a[at] >= b[at]);
        assert_mask::<V>(some, |at| a[at] & b[at] != 0);
        assert_mask::<V>(V::all(cpu), |_| true);
        assert_mask::<V>(!V::all(cpu), |_| false);
        assert_mask::<V>(over & some, |at| a[at] >= b[at] && a[at] & b[at] != 0);
        assert_mask::<V>(!over | equal, |at| a[at] <= b[at]);
        assert_lanes(V::select(over, x, y), |at| a[at].max(b[at]));
        assert_lanes(x.xor_where(over, y), |at| if a[at] >= b[at] { a[at] ^ b[at] } else { a[at] });
        for count in 0..=MOST_LANES + 1 {
            assert_mask::<V>(V::first(cpu, count), |at| at < count);
        }
        let mut stored = [7; MOST_LANES + 1];
        x.store_where(cpu, over, &mut stored);
        let expected: [_; MOST_LANES + 1] = std::array::from_fn(|at| match at < V::LANES && a[at] >= b[at] {
            true => a[at],
            false => 7,
        });
        assert_eq!(stored, expected);
    }
}

#[test]
fn masks_are_those_of_comparisons() {
    at_every_level(Masks);
}

/// Numbers of 64 bits, with those of `numbers` as halves.
fn longs(from: usize) -> [u64; MOST_LANES] {
    let (low, high) = (numbers(from), numbers(from + 1));
    std::array::from_fn(|at| u64::from(high[at]) << 32 | u64::from(low[at]))
}

struct Longs<const PRODUCTS: bool>(usize);

impl<const PRODUCTS: bool> InVectors for Longs<PRODUCTS> {
    type Output = ();

    const GAINS: Gains = if PRODUCTS { Gains::Products } else { Gains::Nothing };

    fn run<V: Vector>(self, cpu: Cpu<V>) {
        let (a, b) = (longs(self.0), longs(self.0 + 2));
        let [x, y] = [a, b].map(|all| V::load_longs(cpu, &all));
        let check = |found: [V::Long; 2], expected: &dyn Fn(usize) -> u64| {
            #[allow(clippy::cast_possible_truncation)] // the half
            let low = |number: u64| number as u32;
            assert_lanes(V::lower(cpu, found), |at| low(expected(at)));
            assert_lanes(V::upper(cpu, found), |at| low(expected(at) >> 32));
        };
        let both = |of: &dyn Fn(V::Long, V::Long) -> V::Long| [of(x[0], y[0]), of(x[1], y[1])];
        check(x, &|at| a[at]);
        check([V::splat_long(cpu, b[0]); 2], &|_| b[0]);
        check(both(&|x, y| x + y), &|at| a[at].wrapping_add(b[at]));
        check(both(&|x, y| x - y), &|at| a[at].wrapping_sub(b[at]));
        check(both(&|x, y| x * y), &|at| a[at].wrapping_mul(b[at]));
        check(both(&|x, y| product(x, y)), &|at| a[at].wrapping_mul(b[at]));
        check(both(&|x, y| x & y), &|at| a[at] & b[at]);
        check(both(&|x, y| x | y), &|at| a[at] | b[at]);
        check(both(&|x, y| x ^ y), &|at| a[at] ^ b[at]);
        check(both(&|x, y| x.without(y)), &|at| a[at] & !b[at]);
        check(both(&|x, y| x.times_low(y)), &|at| (a[at] & 0xffff_ffff) * (b[at] & 0xffff_ffff));
        for by in [0, 1, 31, 32, 63, 64] {
            check(x.map(|x| x << by), &|at| a[at].checked_shl(by).unwrap_or(0));
            check(x.map(|x| x >> by), &|at| a[at].checked_shr(by).unwrap_or(0));
            let shift = V::splat_long(cpu, by.into());
            check(x.map(|x| x.shifted_right(shift)), &|at| a[at].checked_shr(by).unwrap_or(0));
        }
        let narrow = numbers(self.0);
        check(V::load(cpu, &narrow).widened(), &|at| narrow[at].into());
        let keys: [u128; MOST_LANES] = std::array::from_fn(|at| u128::from(a[at]) << 64 | u128::from(b[at]));
        check(V::load_first_longs(cpu, &keys), &|at| a[at]);
    }
}

#[test]
fn long_numbers_are_those_of_64_bits() {
    at_every_level(Longs::<false>);
    at_every_level(Longs::<true>);
}

struct Moved(usize);

impl InVectors for Moved {
    type Output = ();

    #[allow(unsafe_code)]
    fn run<V: Vector>(self, cpu: Cpu<V>) {
        let (a, b, long) = (numbers(self.0), numbers(self.0 + 1), longs(self.0));
        let mask = V::load(cpu, &a).at_least(V::load(cpu, &b));
        let is_in = |at: usize| a[at] >= b[at];
        // SAFETY: all numbers are there.
        let x = unsafe { V::load_some(cpu, &a.map(MaybeUninit::new)) };
        let longs = V::load_longs(cpu, &long);
        let mut put = [MaybeUninit::new(7); MOST_LANES];
        x.put(mask, &mut put);
        let mut put_long = [MaybeUninit::new(7); MOST_LANES];
        V::put_longs(longs, mask, &mut put_long);
        let wanted = || (0..V::LANES).filter(|&at| is_in(at));
        // SAFETY: all numbers are there.
        let (put, put_long) =
            unsafe { (put.map(|number| number.assume_init()), put_long.map(|number| number.assume_init())) };
        assert!(wanted().map(|at| a[at]).eq(put[..wanted().count()].iter().copied()));
        assert!(wanted().map(|at| long[at]).eq(put_long[..wanted().count()].iter().copied()));
        assert!(put[V::LANES..].iter().all(|&number| number == 7), "no more than a vector is written");
        assert!(put_long[V::LANES..].iter().all(|&number| number == 7), "no more than a vector is written");

        // Two lanes have the last element, the later one wins; where the mask is not set the index is past
        // all of them.
        let place = |at: usize| if at == 1 { MOST_LANES - 1 } else { MOST_LANES - 1 - at };
        let index: Numbers = std::array::from_fn(|at| match is_in(at) {
            true => u32::try_from(place(at)).expect("small"),
            false => u32::MAX,
        });
        let mut scattered = numbers(self.0 + 3);
        let mut expected = scattered;
        wanted().for_each(|at| expected[place(at)] = a[at]);
        // SAFETY: the indexes in the mask are those of elements.
        let found = unsafe {
            x.scatter_where(mask, V::load(cpu, &index), &mut scattered);
            V::gather_longs_where(cpu, mask, V::load(cpu, &index), &long)
        };
        assert_eq!(scattered, expected);
        let of = |at: usize| if is_in(at) { long[place(at)] } else { 0 };
        #[allow(clippy::cast_possible_truncation)] // the halves
        let halves = [|number: u64| number as u32, |number: u64| (number >> 32) as u32];
        assert_lanes(V::lower(cpu, found), |at| halves[0](of(at)));
        assert_lanes(V::upper(cpu, found), |at| halves[1](of(at)));
    }
}

#[test]
fn numbers_go_where_masks_and_indexes_say() {
    at_every_level(Moved);
}

struct LanePlaces(usize);

impl InVectors for LanePlaces {
    type Output = ();

    fn run<V: Vector>(self, cpu: Cpu<V>) {
        let (a, b) = (numbers(self.0), numbers(self.0 + 1));
        let mask = V::load(cpu, &a).at_least(V::load(cpu, &b));
        let mut places = [u32::MAX; MOST_LANES + 1];
        let count = V::put_places(cpu, mask, 40, &mut places);
        let expected: Vec<u32> = (40..)
            .zip(&a)
            .zip(&b)
            .take(V::LANES)
            .filter(|((_, a), b)| a >= b)
            .map(|((at, _), _)| at)
            .collect();
        assert_eq!(places[..count], expected);
        assert_eq!(places[V::LANES], u32::MAX, "no more than a vector is written");
    }
}

struct RoundPlaces<'a>(&'a [u32], u32);

impl InVectors for RoundPlaces<'_> {
    type Output = ();

    fn run<V: Vector>(self, cpu: Cpu<V>) {
        let found: Vec<_> = Places::new().of(cpu, V::splat(cpu, self.1), self.0).collect();
        let expected: Vec<_> = (0..self.0.len()).filter(|&at| self.0[at] == self.1).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn places_of_a_number_are_those_that_have_it() {
    let most = numbers(1).repeat(MOST_VECTORS);
    at_every_level(|round| RoundPlaces(&most, numbers(1)[round % MOST_LANES]));
    at_every_level(|_| RoundPlaces(&[7; MOST_VECTORS * MOST_LANES / 2], 7));
}

#[test]
fn places_are_those_of_the_lanes() {
    at_every_level(LanePlaces);
}

struct FirstWords(usize);

impl InVectors for FirstWords {
    type Output = ();

    fn run<V: Vector>(self, cpu: Cpu<V>) {
        let words: [Numbers; 4] = std::array::from_fn(|word| numbers(self.0 + word));
        let keys: [u128; MOST_LANES] =
            std::array::from_fn(|at| words.iter().fold(0, |key, word| key << 32 | u128::from(word[at])));
        let [first, second] = V::load_first_words(cpu, &keys);
        assert_lanes(first, |at| words[0][at]);
        assert_lanes(second, |at| words[1][at]);
    }
}

#[test]
fn first_words_are_the_highest() {
    at_every_level(FirstWords);
}

/// So many elements of each width, and 3 bytes.
struct Gathers<'a>(usize, &'a [u8]);

const ELEMENTS: usize = 1_000;

impl Gathers<'_> {
    fn gather<V: Vector, T: Element>(&self, cpu: Cpu<V>) {
        let (a, b) = (numbers(self.0), numbers(self.0 + 1));
        let bytes = &self.1[..ELEMENTS * size_of::<T>() + 4 - size_of::<T>()];
        let count = u32::try_from(ELEMENTS).expect("small");
        // The last element too, and where the mask is not set an index past all of them.
        let index: Numbers = std::array::from_fn(|at| if at == 3 { count - 1 } else { a[at] % count });
        let element = |at: usize| {
            let from = index[at] as usize * size_of::<T>();
            let mut wide = [0; 4];
            wide[..size_of::<T>()].copy_from_slice(&bytes[from..from + size_of::<T>()]);
            u32::from_le_bytes(wide)
        };
        let (x, y) = (V::load(cpu, &a), V::load(cpu, &b));
        let mask = x.at_least(y);
        let inside = V::load(cpu, &index);
        let outside = V::select(mask, inside, V::splat(cpu, u32::MAX));
        #[allow(unsafe_code)]
        // SAFETY: the indexes are those of elements, and there are 4 bytes from each on.
        let (found, found_where) = unsafe {
            (V::gather::<T>(cpu, inside, bytes), V::gather_where::<T>(cpu, mask, outside, bytes, y))
        };
        assert_lanes(found, element);
        let low = u32::MAX >> (32 - 8 * size_of::<T>());
        assert_lanes(found_where, |at| if a[at] >= b[at] { element(at) } else { b[at] & low });
    }
}

impl InVectors for Gathers<'_> {
    type Output = ();

    fn run<V: Vector>(self, cpu: Cpu<V>) {
        self.gather::<V, u8>(cpu);
        self.gather::<V, u16>(cpu);
        self.gather::<V, u32>(cpu);
    }
}

#[test]
fn gathers_find_the_elements() {
    let bytes: Vec<u8> = (0..ELEMENTS).flat_map(|from| numbers(from)[0].to_le_bytes()).collect();
    at_every_level(|round| Gathers(round, &bytes));
}

struct Short;

impl InVectors for Short {
    type Output = [bool; 9];

    #[allow(unsafe_code)]
    fn run<V: Vector>(self, cpu: Cpu<V>) -> [bool; 9] {
        let mut short = vec![0u32; V::LANES - 1];
        let few = MaybeUninit::new(0);
        let panics =
            |code: &mut dyn FnMut()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(code)).is_err();
        [
            panics(&mut || drop(plain(V::load(cpu, &short)))),
            panics(&mut || drop(plain(V::load_first_words(cpu, &vec![0u128; V::LANES - 1])[0]))),
            panics(&mut || V::splat(cpu, 1).store(&mut short)),
            panics(&mut || {
                V::put_places(cpu, V::all(cpu), 0, &mut short);
            }),
            panics(&mut || {
                let _ = V::load_first_longs(cpu, &vec![0u128; V::LANES - 1]);
            }),
            panics(&mut || V::splat(cpu, 1).store_where(cpu, V::first(cpu, 0), &mut short)),
            panics(&mut || V::splat(cpu, 1).put(V::first(cpu, 0), &mut vec![few; V::LANES - 1])),
            panics(&mut || {
                // SAFETY: all numbers are there.
                let _ = unsafe { V::load_some(cpu, &vec![few; V::LANES - 1]) };
            }),
            panics(&mut || {
                let longs = V::splat(cpu, 1).widened();
                V::put_longs(longs, V::first(cpu, 0), &mut vec![MaybeUninit::new(0); V::LANES - 1]);
            }),
        ]
    }
}

#[test]
fn slices_that_are_too_short_are_refused() {
    for level in VectorLevel::ALL {
        assert_eq!(level.run(Short).unwrap_or([true; 9]), [true; 9], "{level:?}");
    }
}
