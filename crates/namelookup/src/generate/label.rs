//! Generated labels: lengths by share, each character by the previous one.

use wirespeed_fib::synth::rng::Rng;

use super::shape::{CHARACTERS, FOLLOWERS};

/// An index drawn by weight: a table with an index for each of 2^16 draws.
#[derive(Clone, Debug)]
pub(super) struct Shares(Vec<u8>);

impl Shares {
    const DRAWS: u64 = 1 << 16;

    /// Makes it of at most 256 weights, not all 0.
    pub(super) fn new(weights: impl IntoIterator<Item = u32>) -> Self {
        let weights: Vec<u64> = weights.into_iter().map(u64::from).collect();
        let total: u64 = weights.iter().sum();
        let (mut draws, mut sum) = (Vec::new(), 0);
        for (index, weight) in (0..=u8::MAX).zip(weights) {
            sum += weight;
            let end = usize::try_from(sum * Self::DRAWS / total.max(1)).expect("at most 2^16");
            draws.resize(end.max(draws.len()), index);
        }
        Self(draws)
    }

    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> usize {
        usize::from(self.0[rng.index(self.0.len())])
    }
}

/// Draws labels.
#[derive(Clone, Debug)]
pub(super) struct Labels {
    /// The next character after each character, by a random byte. The last row is for the start.
    next: Vec<[u8; 256]>,
}

impl Labels {
    const START: u8 = 37;

    pub(super) fn new() -> Self {
        let row = |weights: &[u16; 37]| {
            let characters = (0u8..).zip(weights);
            let drawn = characters.flat_map(|(at, &weight)| std::iter::repeat_n(at, usize::from(weight)));
            let mut row = [0; 256];
            row.iter_mut().zip(drawn).for_each(|(to, at)| *to = at);
            row
        };
        Self { next: FOLLOWERS.iter().map(row).collect() }
    }

    /// Appends a label of `len` characters, without a hyphen at its end.
    #[inline]
    pub(super) fn append(&self, rng: &mut Rng, len: usize, out: &mut Vec<u8>) {
        let (mut at, mut bits, mut left) = (Self::START, 0, 0);
        for done in 1..=len {
            if left == 0 {
                (bits, left) = (rng.bits(), 8);
            }
            at = self.next[usize::from(at)][usize::from(bits.to_le_bytes()[0])];
            (bits, left) = (bits >> 8, left - 1);
            let character = CHARACTERS[usize::from(at)];
            out.push(if done == len && character == b'-' { b'e' } else { character });
        }
    }
}
