//! Each operation of vectors against the plain one, at every level that this CPU has.

use wirespeed_image::Element;

use super::{Cpu, InVectors, MOST_LANES, MOST_VECTORS, Mask, Places, Vector, VectorLevel};

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

struct Arithmetic(usize);

impl InVectors for Arithmetic {
    type Output = ();

    fn run<V: Vector>(self, cpu: Cpu<V>) {
        let (a, b) = (numbers(self.0), numbers(self.0 + 1));
        let (x, y) = (V::load(cpu, &a), V::load(cpu, &b));
        assert_lanes(V::splat(cpu, a[0]), |_| a[0]);
        assert_lanes(x, |at| a[at]);
        assert_lanes(x + y, |at| a[at].wrapping_add(b[at]));
        assert_lanes(x - y, |at| a[at].wrapping_sub(b[at]));
        assert_lanes(x & y, |at| a[at] & b[at]);
        assert_lanes(x | y, |at| a[at] | b[at]);
        for by in [0, 1, 8, 31, 32, 33, 64] {
            assert_lanes(x << by, |at| a[at].checked_shl(by).unwrap_or(0));
            assert_lanes(x >> by, |at| a[at].checked_shr(by).unwrap_or(0));
        }
    }
}

#[test]
fn arithmetic_is_that_of_numbers() {
    at_every_level(Arithmetic);
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
    }
}

#[test]
fn masks_are_those_of_comparisons() {
    at_every_level(Masks);
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
    type Output = [bool; 4];

    fn run<V: Vector>(self, cpu: Cpu<V>) -> [bool; 4] {
        let mut short = vec![0u32; V::LANES - 1];
        let panics =
            |code: &mut dyn FnMut()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(code)).is_err();
        [
            panics(&mut || drop(plain(V::load(cpu, &short)))),
            panics(&mut || drop(plain(V::load_first_words(cpu, &vec![0u128; V::LANES - 1])[0]))),
            panics(&mut || V::splat(cpu, 1).store(&mut short)),
            panics(&mut || {
                V::put_places(cpu, V::all(cpu), 0, &mut short);
            }),
        ]
    }
}

#[test]
fn slices_that_are_too_short_are_refused() {
    for level in VectorLevel::ALL {
        assert_eq!(level.run(Short).unwrap_or([true; 4]), [true; 4], "{level:?}");
    }
}
