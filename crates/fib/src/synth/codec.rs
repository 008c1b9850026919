//! The rows of a [`super::Shape`] as text, short enough to keep in code.
//!
//! Base 64 without padding. A place is depth (two characters), size class (two), and one for cover and kind; then
//! probabilities of two characters each, and weights of one on a logarithmic scale, six steps an octave. (A linear
//! scale of one character was tried: what it makes of the rare splits doubles the number of full blocks.)

use super::shape::{BINS, Place, Row, Split};

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The number of each digit.
static NUMBERS: [u8; 256] = {
    let mut numbers = [0; 256];
    let mut digit = 0u8;
    while digit < 64 {
        numbers[DIGITS[digit as usize] as usize] = digit;
        digit += 1;
    }
    numbers
};

/// The weight of each number: 0, then a sixth of an octave a step.
static WEIGHTS: [u16; 64] = {
    let mut weights = [0u16; 64];
    let mut number = 63;
    // The sixth root of a half, of 2^32.
    let mut weight: u64 = 65_535 << 32;
    while number > 0 {
        weights[number] = top_half(weight);
        weight = (weight >> 32) * 3_826_381_963 + (((weight & 0xffff_ffff) * 3_826_381_963) >> 32);
        number -= 1;
    }
    weights
};

#[allow(clippy::cast_possible_truncation)] // at most 65,535 times 2^32
const fn top_half(weight: u64) -> u16 {
    (weight >> 32) as u16
}

/// Characters of a place.
const PLACE: usize = 5;

/// Rows of what is a prefix.
pub(super) fn own(text: &str) -> Vec<Row<u16>> {
    rows(text, 2, pair)
}

/// Rows of splits.
pub(super) fn splits(text: &str) -> Vec<Row<Split>> {
    rows(text, 6 + BINS, |numbers| Split {
        copy: pair(numbers),
        runs: [pair(&numbers[2..]), pair(&numbers[4..])],
        bins: std::array::from_fn(|bin| WEIGHTS[usize::from(numbers[6 + bin])]),
    })
}

fn rows<T>(text: &str, values: usize, value: impl Fn(&[u8]) -> T) -> Vec<Row<T>> {
    let numbers: Vec<u8> = text.bytes().map(|c| NUMBERS[usize::from(c)]).collect();
    let row = |row: &[u8]| {
        let place = Place {
            depth: row[0] << 6 | row[1],
            class: row[2] << 6 | row[3],
            covered: row[4] >= 16,
            kind: row[4] % 16,
        };
        Row { place, value: value(&row[PLACE..]) }
    };
    numbers.chunks_exact(PLACE + values).map(row).collect()
}

fn pair(numbers: &[u8]) -> u16 {
    u16::from(numbers[0]) << 6 | u16::from(numbers[1])
}

#[cfg(test)]
pub(super) use write::{write_own, write_splits};

#[cfg(test)]
mod write {
    use super::*;

    /// [`own`] undone.
    pub(in super::super) fn write_own(rows: &[Row<u16>]) -> String {
        write(rows, |own| split_pair(own).to_vec())
    }

    /// [`splits`] undone.
    pub(in super::super) fn write_splits(rows: &[Row<Split>]) -> String {
        write(rows, |split| {
            let largest = u32::from(*split.bins.iter().max().unwrap()).max(1);
            let number = |w: u16| nearest(u32::from(w) * 65_535 / largest);
            let pairs = [split.copy, split.runs[0], split.runs[1]].into_iter().flat_map(split_pair);
            pairs.chain(split.bins.map(number)).collect()
        })
    }

    fn write<T: Copy>(rows: &[Row<T>], values: impl Fn(T) -> Vec<u8>) -> String {
        let mut text = String::new();
        for &Row { place, value } in rows {
            let Place { depth, class, covered, kind } = place;
            let place = [depth >> 6, depth & 63, class >> 6, class & 63, u8::from(covered) * 16 + kind];
            let numbers = place.into_iter().chain(values(value));
            text.extend(numbers.map(|n| char::from(DIGITS[usize::from(n)])));
        }
        text
    }

    fn split_pair(number: u16) -> [u8; 2] {
        [number >> 6, number & 63].map(|n| u8::try_from(n).unwrap())
    }

    fn nearest(weight: u32) -> u8 {
        (0..64u8).min_by_key(|&n| u32::from(WEIGHTS[usize::from(n)]).abs_diff(weight)).unwrap()
    }

    #[test]
    fn rows_survive_but_for_their_low_bits() {
        let place = Place { depth: 127, class: 118, covered: true, kind: 10 };
        let mut bins = [0; BINS];
        (bins[0], bins[3], bins[10]) = (4000, 2000, 10);
        let back = splits(&write_splits(&[Row { place, value: Split { runs: [5, 4000], bins, copy: 77 } }]));
        assert_eq!((back.len(), back[0].place, back[0].value.copy), (1, place, 77));
        assert_eq!(back[0].value.runs, [5, 4000]);
        let bins = back[0].value.bins.map(|weight| u32::from(weight) * 4000 / 65_535);
        assert_eq!((bins[0], bins[1]), (4000, 0));
        assert!(bins[3].abs_diff(2000) < 120 && bins[10].abs_diff(10) <= 1, "{bins:?}");
        assert_eq!(own(&write_own(&[Row { place, value: 4095 }])), [Row { place, value: 4095 }]);
    }
}
