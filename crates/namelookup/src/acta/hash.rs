//! The hash of a component: folded multiplications over blocks of 16 bytes, so that most components take one
//! and a last.
//!
//! ```text
//! fold(a, b) = high half of a·b ^ low half           64 × 64 → 128 bits
//! acc = seed0;  for each block (a, b) of two words, the last zero-padded:  acc = fold(acc ^ a, b ^ (K ^ seed1))
//! h = fold(acc ^ length, K2 ^ seed0)
//!
//! 63        35 34  32 31      16 15       0
//! └─ first choice ──┘ └─ second choice ───┘           h·B, of the halves: the choices
//!              └tag┘            └ filter ─┘
//! ```

/// Bits of a bucket's head that count its entries; its filter is above.
pub const COUNT_BITS: u32 = 4;
/// Bits of the filter.
pub const FILTER_BITS: u32 = 12;

/// Makes every seed a good one.
pub const K: u64 = 0x9e37_79b9_7f4a_7c15;
/// The last multiplication's.
pub const K2: u64 = 0xd134_2543_de82_ef95;
/// Bytes of a block.
pub const BLOCK: usize = 16;

/// The seeds of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds(pub [u64; 2]);

impl Seeds {
    /// The seeds of the attempt of this number to place all.
    pub fn of(seed: u64, attempt: u64) -> Self {
        let first = seed.wrapping_add(attempt.wrapping_mul(K2));
        Self([first, first.wrapping_add(K)].map(mix))
    }

    /// The hash of a component.
    #[inline]
    pub fn hash(self, component: &[u8]) -> Hash {
        let mut acc = self.start();
        let (blocks, rest) = component.as_chunks::<BLOCK>();
        for block in blocks {
            acc = self.block(acc, words(block));
        }
        if !rest.is_empty() {
            acc = self.block(acc, padded(rest));
        }
        self.end(acc, component.len())
    }

    /// The hash of a component of so many bytes that starts somewhere in a buffer: whole blocks are loaded
    /// and masked, whatever lies behind it, as no jump foresees its length. The buffer goes on for a block
    /// behind the component at least.
    #[inline]
    pub(super) fn hash_within(self, buffer: &[u8], start: usize, len: usize) -> Hash {
        let mut acc = self.start();
        for at in (0..len).step_by(BLOCK) {
            let block = u128::from_le_bytes(*buffer[start + at..].first_chunk().expect("a block behind"));
            let bytes = (len - at).min(BLOCK);
            let block = block & (u128::MAX >> (8 * (BLOCK - bytes)));
            #[allow(clippy::cast_possible_truncation)] // both halves are wanted
            let words = [block as u64, (block >> 64) as u64];
            acc = self.block(acc, words);
        }
        self.end(acc, len)
    }

    /// The sum before the first block.
    #[inline(always)]
    pub(super) const fn start(self) -> u64 {
        self.0[0]
    }

    /// Takes in a block.
    #[inline(always)]
    pub(super) fn block(self, acc: u64, [a, b]: [u64; 2]) -> u64 {
        fold(acc ^ a, b ^ K ^ self.0[1])
    }

    /// The hash after the last block.
    #[inline(always)]
    pub(super) fn end(self, acc: u64, len: usize) -> Hash {
        Hash(fold(acc ^ len as u64, K2 ^ self.0[0]))
    }
}

/// A component's hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash(pub u64);

impl Hash {
    /// The distances of the two choices from the state's base, among so many buckets.
    #[inline]
    pub fn choices(self, buckets: u32) -> [u32; 2] {
        [self.first(buckets), self.second(buckets)]
    }

    #[inline]
    pub(super) fn first(self, buckets: u32) -> u32 {
        scaled(self.0 >> 32, buckets)
    }

    #[inline]
    pub(super) fn second(self, buckets: u32) -> u32 {
        scaled(self.0 & u64::from(u32::MAX), buckets)
    }

    /// Three bits for the header.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // three bits
    pub const fn tag(self) -> u16 {
        (self.0 >> 32) as u16 & 7
    }

    /// The bit of the filter, from 0.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // below 12
    pub const fn filter(self) -> u32 {
        ((self.0 & 0xffff) as u32 * FILTER_BITS) >> 16
    }

    /// The bit of the bucket's head.
    #[inline]
    pub const fn filter_bit(self) -> u16 {
        1 << (COUNT_BITS + self.filter())
    }
}

/// The bucket that lies `choice` after a base.
#[inline]
pub const fn bucket(base: u32, choice: u32, buckets: u32) -> u32 {
    let at = base + choice;
    if at >= buckets { at - buckets } else { at }
}

/// The base of which a bucket lies `choice` after.
#[inline]
pub(super) const fn base(bucket: u32, choice: u32, buckets: u32) -> u32 {
    if bucket >= choice { bucket - choice } else { bucket + buckets - choice }
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // below the number of buckets
fn scaled(half: u64, buckets: u32) -> u32 {
    ((half * u64::from(buckets)) >> 32) as u32
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // both halves are wanted
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

fn mix(seed: u64) -> u64 {
    let z = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[inline]
fn words(block: &[u8; BLOCK]) -> [u64; 2] {
    [word(block, 0), word(block, 8)]
}

/// The words of the last block, of 1 to 15 bytes, without a copy: its parts are read so that they overlap.
#[inline]
fn padded(rest: &[u8]) -> [u64; 2] {
    let len = rest.len();
    match len {
        8.. => [word(rest, 0), if len == 8 { 0 } else { word(rest, len - 8) >> (8 * (BLOCK - len)) }],
        4.. => [half(rest, 0) | half(rest, len - 4) << (8 * (len - 4)), 0],
        _ => {
            let byte = |at: usize| u64::from(rest[at]) << (8 * at);
            [byte(0) | byte(len / 2) | byte(len - 1), 0]
        }
    }
}

#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[inline]
fn half(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the hash word by word, as the head of the file has it.
    fn plainly(seeds: Seeds, component: &[u8]) -> Hash {
        let mut acc = seeds.0[0];
        for block in component.chunks(BLOCK) {
            let mut padded = [0; BLOCK];
            padded[..block.len()].copy_from_slice(block);
            acc = fold(acc ^ word(&padded, 0), word(&padded, 8) ^ (K ^ seeds.0[1]));
        }
        Hash(fold(acc ^ component.len() as u64, K2 ^ seeds.0[0]))
    }

    #[test]
    fn it_is_what_kernels_compute() {
        let seeds = Seeds::of(7, 0);
        let bytes: Vec<u8> = (0..200u8).map(|at| at.wrapping_mul(37).wrapping_add(1)).collect();
        for len in 1..bytes.len() {
            for start in 0..bytes.len() - len {
                let component = &bytes[start..start + len];
                assert_eq!(seeds.hash(component), plainly(seeds, component));
                if start + len + BLOCK <= bytes.len() {
                    assert_eq!(seeds.hash_within(&bytes, start, len), plainly(seeds, component));
                }
            }
        }
        assert_ne!(seeds.hash(b"a"), seeds.hash(b"a\0"));
        assert_ne!(seeds.hash(b"a"), Seeds::of(7, 1).hash(b"a"));
    }

    #[test]
    fn choices_are_spread() {
        let seeds = Seeds::of(1, 0);
        let mut counts = [[0u32; 64]; 2];
        let (mut tags, mut filters) = ([0u32; 8], [0u32; 12]);
        for n in 0..64_000 {
            let hash = seeds.hash(format!("host{n}").as_bytes());
            let [first, second] = hash.choices(64);
            counts[0][first as usize] += 1;
            counts[1][second as usize] += 1;
            tags[usize::from(hash.tag())] += 1;
            filters[hash.filter() as usize] += 1;
        }
        assert!(counts.as_flattened().iter().all(|count| (800..1200).contains(count)), "{counts:?}");
        assert!(tags.iter().all(|count| (7500..8500).contains(count)), "{tags:?}");
        assert!(filters.iter().all(|count| (5000..5700).contains(count)), "{filters:?}");
    }

    #[test]
    fn a_base_comes_back_from_its_bucket() {
        for base_at in 0..7 {
            for choice in 0..7 {
                assert_eq!(base(bucket(base_at, choice, 7), choice, 7), base_at);
            }
        }
    }
}
