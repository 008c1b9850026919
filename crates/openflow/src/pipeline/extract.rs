//! [`Extract`]: a mask as the words of a row that it looks at, to read and to hash only these.
//!
//! ```text
//! words    | 0 | 1 | 3 | 4 |         the first five words of the mask that are not 0
//! masks    | m | m | m | m |
//! later    (10, m), (11, m), …       the others, which few masks have
//! ```
//!
//! The number of words is a constant of each loop over frames, so the loop has neither a branch nor a bound
//! for a word, and keeps the masks in registers.

use super::row::{Row, SHORT};
use crate::wire::Key;

/// Words that entries hold beside what a frame needs of their flow, so that both fill a cache line.
pub(crate) const HEAD: usize = 5;

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
/// Odd constants with as many ones as zeroes, one for each word.
const SALT: [u64; 6] = [
    0xd6e8_feb8_6659_fd93,
    0xa076_1d64_78bd_642f,
    0xe703_7ed1_a0b4_28db,
    0x8ebc_6af0_9c88_c6e3,
    0x5899_65cc_7537_4cc3,
    0x1d8e_4e27_c47d_124f,
];

/// The words of a mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extract {
    /// The number of words up to [`HEAD`].
    width: u8,
    words: [u8; HEAD],
    masks: [u64; HEAD],
    later: Box<[(u8, u64)]>,
}

/// Calls a function with the number of words before the later ones, and whether there are later ones, as
/// constants.
macro_rules! by_width {
    ($extract:expr, $call:ident $arguments:tt) => {
        match ($extract.width(), $extract.has_later()) {
            (0, _) => by_width!(@ $call, 0, false, $arguments),
            (1, _) => by_width!(@ $call, 1, false, $arguments),
            (2, _) => by_width!(@ $call, 2, false, $arguments),
            (3, _) => by_width!(@ $call, 3, false, $arguments),
            (4, _) => by_width!(@ $call, 4, false, $arguments),
            (_, false) => by_width!(@ $call, 5, false, $arguments),
            (_, true) => by_width!(@ $call, 5, true, $arguments),
        }
    };
    (@ $call:ident, $width:literal, $later:literal, ($this:expr, $($argument:expr),*)) => {
        $this.$call::<_, $width, $later>($($argument),*)
    };
}
pub(crate) use by_width;

/// Mixes two words: the halves of their product of 128 bits.
#[inline]
#[allow(clippy::cast_possible_truncation)] // the halves
const fn fold(one: u64, other: u64) -> u64 {
    let product = one as u128 * other as u128;
    (product >> 64) as u64 ^ product as u64
}

/// The hash of words. Pairs are mixed independently of each other, so that a core multiplies them at once.
#[inline]
fn hash_words<const W: usize>(words: &[u64; W]) -> u64 {
    let mut sum = SEED;
    for (pair, salt) in words.chunks(2).zip(SALT.chunks_exact(2)) {
        let second = pair.get(1).copied().unwrap_or(0);
        sum ^= fold(pair[0] ^ salt[0], second ^ salt[1]);
    }
    fold(sum, SALT[0])
}

/// Adds a later word to a hash.
#[inline]
const fn add(hash: u64, word: u64) -> u64 {
    fold(hash ^ word, SALT[0]) ^ SEED
}

impl Extract {
    pub(crate) fn new(mask: &Key) -> Self {
        let mut steps = (0_u8..).zip(mask.0).filter(|&(_, bits)| bits != 0);
        let (mut width, mut words, mut masks) = (0, [0; HEAD], [0; HEAD]);
        for (at, (word, bits)) in steps.by_ref().take(HEAD).enumerate() {
            (width, words[at], masks[at]) = (width + 1, word, bits);
        }
        Self { width, words, masks, later: steps.collect() }
    }

    #[inline]
    pub(crate) fn width(&self) -> usize {
        usize::from(self.width)
    }

    #[inline]
    pub(crate) fn has_later(&self) -> bool {
        !self.later.is_empty()
    }

    /// The number of words.
    pub(crate) fn len(&self) -> usize {
        self.width() + self.later.len()
    }

    /// Whether all its words are in short rows.
    pub(crate) fn is_short(&self) -> bool {
        let words = self.words[..self.width()].iter().chain(self.later.iter().map(|(word, _)| word));
        words.into_iter().all(|&word| usize::from(word) < SHORT)
    }

    /// The numbers of the words, in order.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = usize> {
        let later = self.later.iter().map(|&(word, _)| word);
        self.words[..self.width()].iter().copied().chain(later).map(usize::from)
    }

    /// The words of a row, masked.
    pub(crate) fn all<R: Row>(&self, row: &R) -> impl Iterator<Item = u64> {
        let first = self.words.iter().zip(&self.masks).take(self.width());
        let first = first.map(|(&word, &mask)| row.word(word) & mask);
        first.chain(self.later(row))
    }

    /// The first words of a row, masked.
    #[inline]
    pub(crate) fn head<R: Row, const W: usize>(&self, row: &R) -> [u64; W] {
        std::array::from_fn(|at| row.word(self.words[at]) & self.masks[at])
    }

    /// The later words of a row, masked.
    #[inline]
    pub(crate) fn later<R: Row>(&self, row: &R) -> impl Iterator<Item = u64> {
        self.later.iter().map(|&(word, mask)| row.word(word) & mask)
    }

    /// The hash of a row's words, of which there are `W`, or with `L` more than that.
    #[inline]
    pub(crate) fn hash<R: Row, const W: usize, const L: bool>(&self, row: &R) -> u64 {
        let hash = hash_words(&self.head::<R, W>(row));
        if L { self.later(row).fold(hash, add) } else { hash }
    }

    /// The hash of a flow's value: its words, as [`all`](Self::all) gives them.
    pub(crate) fn hash_value(&self, value: &[u64]) -> u64 {
        let head = |at: usize| value.get(at).copied().unwrap_or(0);
        let hash = match self.width {
            0 => hash_words(&[]),
            1 => hash_words(&[head(0)]),
            2 => hash_words(&[0, 1].map(head)),
            3 => hash_words(&[0, 1, 2].map(head)),
            4 => hash_words(&[0, 1, 2, 3].map(head)),
            _ => hash_words(&[0, 1, 2, 3, 4].map(head)),
        };
        value.iter().skip(HEAD).fold(hash, |hash, &word| add(hash, word))
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_rng::Rng;

    use super::*;
    use crate::pipeline::row::Short;

    /// A mask with bits in some of the first words.
    fn mask(rng: &mut Rng, words: usize) -> Key {
        let mut mask = Key::default();
        for word in &mut mask.0[..words] {
            if rng.chance(0.4) {
                *word = if rng.chance(0.5) { u64::MAX } else { 1 << rng.below(64) | rng.below(1 << 20) };
            }
        }
        mask
    }

    struct Hashed(Extract);

    impl Hashed {
        fn hash_by<R: Row, const W: usize, const L: bool>(&self, row: &R) -> (u64, Vec<u64>) {
            let head = self.0.head::<R, W>(row).into_iter();
            let words = if L { head.chain(self.0.later(row)).collect() } else { head.collect() };
            (self.0.hash::<R, W, L>(row), words)
        }

        fn hash<R: Row>(&self, row: &R) -> (u64, Vec<u64>) {
            by_width!(self.0, hash_by(self, row))
        }
    }

    #[test]
    fn words_and_hashes_are_those_of_the_masked_key() {
        let mut rng = Rng::new(7);
        for round in 0..2000 {
            let words = if round % 2 == 0 { SHORT } else { crate::wire::WORDS };
            let mask = mask(&mut rng, words);
            let key = Key(std::array::from_fn(|_| rng.below(u64::MAX)));
            let plain: Vec<u64> = key
                .and(&mask)
                .0
                .into_iter()
                .zip(mask.0)
                .filter(|(_, mask)| *mask != 0)
                .map(|(word, _)| word)
                .collect();
            let hashed = Hashed(Extract::new(&mask));
            let value = hashed.0.hash_value(&plain);
            assert_eq!(hashed.0.all(&key).collect::<Vec<_>>(), plain);
            assert_eq!(hashed.hash(&key), (value, plain.clone()));
            let is_short = mask.0[SHORT..].iter().all(|&bits| bits == 0);
            assert_eq!(hashed.0.is_short(), is_short);
            if is_short {
                let short = Short(std::array::from_fn(|at| key.0[at]));
                assert_eq!(hashed.hash(&short), (value, plain));
            }
        }
    }

    #[test]
    fn each_bit_under_a_mask_changes_the_hash() {
        let mut rng = Rng::new(8);
        for _ in 0..200 {
            let (mask, key) = (mask(&mut rng, SHORT), Key(std::array::from_fn(|_| rng.below(u64::MAX))));
            let hashed = Hashed(Extract::new(&mask));
            let before = hashed.hash(&key).0;
            for bit in 0..SHORT * 64 {
                let mut other = key;
                other.0[bit / 64] ^= 1 << (bit % 64);
                let counts = mask.0[bit / 64] >> (bit % 64) & 1 == 1;
                assert_eq!(hashed.hash(&other).0 != before, counts, "bit {bit} of {mask:?}");
            }
        }
    }
}
