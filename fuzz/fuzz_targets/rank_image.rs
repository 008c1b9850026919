//! Images of ranked chunks: a valid one with edits, sealed anew, is refused or answers every lookup without a
//! wrong read, alone and in a batch alike.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use wirespeed_fib::{Address, BuildOptions, Engine, Lookup, NextHop, Prefix, Rib, V4};
use wirespeed_image::{Image, Table};
use wirespeed_rank::{Rank, RankTable};

static BASE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let rib: Rib<V4> = (0..=V4::BITS)
        .flat_map(|len| [V4::MIN, V4::MAX, V4::MAX.keep(len / 2)].map(|a| Prefix::around(a, len)))
        .zip((1..).map(NextHop))
        .collect();
    let (_, table) = Rank::build(&rib, &BuildOptions::default()).expect("a valid table is built");
    let mut bytes = Vec::new();
    table.image().write(&mut bytes).expect("a Vec takes what is written");
    bytes
});

/// The byte past the 2^16 chunk ids of level 16, where everything else is.
const AFTER_LEVEL16: usize = 1 << 17;

// Edits of 5 bytes each: where (3 bytes, little-endian; with the top bit set, in the header and directory;
// with the next, past level 16), a byte to put there, and what to flip in the byte after it.
fuzz_target!(|edits: &[u8]| {
    let mut bytes = BASE.clone();
    for edit in edits.chunks_exact(5) {
        let at = u32::from_le_bytes([edit[0], edit[1], edit[2], 0]) as usize;
        let at = match at >> 22 {
            0 => at % bytes.len(),
            1 => AFTER_LEVEL16 + at % (bytes.len() - AFTER_LEVEL16),
            _ => at % 2048,
        };
        bytes[at] = edit[3];
        if at + 1 < bytes.len() {
            bytes[at + 1] ^= edit[4];
        }
    }
    wirespeed_fuzz::seal(&mut bytes);
    let Ok(table) = Image::from_bytes(&bytes).and_then(RankTable::from_image) else { return };
    let keys: Vec<V4> = (0..=V4::BITS)
        .flat_map(|len| [V4::MIN.fill(len), V4::MAX.keep(len), V4(0x0a0b_0000 | u32::from(len) << 4)])
        .collect();
    let mut found = vec![NextHop::NONE; keys.len()];
    table.lookup_batch(&keys, &mut found);
    for (&key, &found) in keys.iter().zip(&found) {
        assert_eq!(table.lookup(key), found);
        assert!(u64::from(found.0) <= table.image().results(), "a result past the stated largest");
    }
});
