//! [`Window`]: the sequence numbers that came, so that none is taken twice (RFC 4303, 3.4.3; RFC 6479).
//!
//! ```text
//! numbers   … ──┬── size ──┬ top       a bit for each number, in a ring of words of 64
//!   too old     │ seen or not │ new
//! ```
//!
//! The ring has a word more than the window needs. So the window moves by whole words, and no bit is ever
//! shifted (RFC 6479, 2).

use crate::narrow::halves;

/// The largest window, in packets.
pub const MOST_WINDOW: u32 = 4096;

/// The sequence numbers of a security association that came.
#[derive(Debug)]
pub(crate) struct Window {
    /// The highest number that came; 0 before the first.
    top: u64,
    /// The numbers up to the top that are told apart: a multiple of 64. 0 takes any number.
    size: u64,
    words: Box<[u64]>,
    is_extended: bool,
}

impl Window {
    /// A window over so many packets, rounded up to a multiple of 64, that has seen `top` and nothing since.
    /// An extended one has numbers of 64 bits.
    pub(crate) fn new(packets: u32, is_extended: bool, top: u64) -> Self {
        let size = Self::size(packets);
        let count = if size == 0 { 0 } else { packets.min(MOST_WINDOW).div_ceil(64) as usize + 1 };
        // Everything up to the top counts as seen: it was, before a restart.
        Self { top, size, words: vec![u64::MAX; count].into(), is_extended }.without_next()
    }

    /// The numbers that a window over so many packets tells apart.
    fn size(packets: u32) -> u64 {
        u64::from(packets.min(MOST_WINDOW)).next_multiple_of(64)
    }

    /// Makes it a window over so many packets, which has seen `top`. What it has seen it takes no more; where
    /// it does not stay as it is, all up to the top counts as seen.
    pub(crate) fn resize(&mut self, packets: u32, is_extended: bool, top: u64) {
        if (self.size, self.is_extended) != (Self::size(packets), is_extended) || top > self.top {
            *self = Self::new(packets, is_extended, self.top.max(top));
        }
    }

    /// Clears the bits above the top in its word.
    fn without_next(mut self) -> Self {
        if !self.words.is_empty() {
            let at = self.at(self.top);
            self.words[at] = (1_u64 << (self.top % 64)) | ((1_u64 << (self.top % 64)) - 1);
        }
        self
    }

    /// The whole number of a packet that carries the lower half (RFC 4303, A2.2). `None` for one that is too
    /// old to be of any.
    pub(crate) fn whole(&self, low: u32) -> Option<u64> {
        if !self.is_extended {
            return Some(low.into());
        }
        let (top_low, top_high) = halves(self.top);
        // The window has at most 4,096 packets.
        let size = u32::try_from(self.size).unwrap_or(MOST_WINDOW);
        let bottom = top_low.wrapping_sub(size - 1);
        let high = if top_low >= size - 1 {
            // The window lies in one range of the upper half.
            if low >= bottom { Some(top_high) } else { top_high.checked_add(1) }
        } else if low >= bottom {
            top_high.checked_sub(1)
        } else {
            Some(top_high)
        }?;
        Some(u64::from(high) << 32 | u64::from(low))
    }

    /// Whether a number is new.
    pub(crate) fn is_new(&self, number: u64) -> bool {
        if number == 0 {
            return false;
        }
        if number > self.top || self.size == 0 {
            return true;
        }
        self.top - number < self.size && self.words[self.at(number)] >> (number % 64) & 1 == 0
    }

    /// Notes a number of a packet that is authentic. Returns whether it was new.
    pub(crate) fn note(&mut self, number: u64) -> bool {
        if !self.is_new(number) {
            return false;
        }
        if self.size == 0 {
            self.top = self.top.max(number);
            return true;
        }
        if number > self.top {
            let (from, to) = (self.top / 64, number / 64);
            let count = (to - from).min(self.words.len() as u64);
            for word in to - count..to {
                let at = self.at((word + 1) * 64);
                self.words[at] = 0;
            }
            self.top = number;
        }
        let at = self.at(number);
        self.words[at] |= 1 << (number % 64);
        true
    }

    /// The highest number that came.
    pub(crate) const fn top(&self) -> u64 {
        self.top
    }

    /// The place of a number's word.
    #[allow(clippy::cast_possible_truncation)] // less than the number of words
    fn at(&self, number: u64) -> usize {
        (number / 64 % self.words.len() as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use wirespeed_rng::Rng;

    /// The definition: all numbers that came are kept.
    struct Oracle {
        seen: HashSet<u64>,
        top: u64,
        size: u64,
    }

    impl Oracle {
        fn note(&mut self, number: u64) -> bool {
            let is_new = number != 0
                && (number > self.top || self.top - number < self.size)
                && self.seen.insert(number);
            self.top = self.top.max(if is_new { number } else { 0 });
            is_new
        }
    }

    #[test]
    fn each_number_is_taken_once_as_the_oracle_says() {
        let mut rng = Rng::new(9);
        for size in [64_u32, 192, 4096] {
            let start = rng.bits() >> 20;
            let mut window = Window::new(size, true, start);
            let mut oracle = Oracle {
                seen: (start.saturating_sub(5000)..=start).collect(),
                top: start,
                size: size.into(),
            };
            for _ in 0..50_000 {
                let number =
                    (oracle.top + rng.bits() % 90).saturating_sub(rng.bits() % (u64::from(size) + 100));
                assert_eq!(window.note(number), oracle.note(number), "{number} of {}", oracle.top);
            }
        }
    }

    #[test]
    fn upper_halves_are_found() {
        for size in [64, 1024] {
            for top in [
                1_u64,
                40,
                1 << 31,
                (1 << 32) - 1,
                1 << 32,
                (1 << 32) + 5,
                7 << 32 | 0x8000_0000,
                u64::MAX - 3,
            ] {
                let window = Window::new(size, true, top);
                let size = u64::from(size);
                for number in [
                    top.saturating_sub(size - 1),
                    top.saturating_sub(3),
                    top,
                    top.saturating_add(1),
                    top.saturating_add(1 << 20),
                ] {
                    let (low, _) = halves(number);
                    assert_eq!(window.whole(low), Some(number), "{number:#x} at {top:#x}");
                }
            }
        }
        // Behind the first window there is nothing: the number is of no packet.
        assert_eq!(Window::new(64, true, 3).whole(u32::MAX), None);
        assert_eq!(Window::new(64, false, 3).whole(u32::MAX), Some(u32::MAX.into()));
    }
}
