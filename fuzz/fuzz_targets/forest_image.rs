//! Images of forests: a valid one with edits, sealed anew, is refused or answers every lookup in every table
//! without a wrong read, alone and in a batch alike.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use wirespeed_fib::{Address, BuildOptions, Engine, Lookup, NextHop, Prefix, Rib, V4};
use wirespeed_forest::{FibId, FibKeys, Fibs, Forest, ForestTable, InFibs};
use wirespeed_image::{Image, Table};

static BASE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut fibs = Fibs::<V4>::new();
    for id in [0, 3, 4] {
        let rib: Rib<V4> = (0..=V4::BITS)
            .flat_map(|len| [V4::MIN, V4::MAX, V4::MAX.keep(len / 2)].map(|a| Prefix::around(a, len)))
            .zip((1 + id..).map(NextHop))
            .collect();
        fibs.set(FibId(id), &rib).expect("a small number");
    }
    let (_, table) =
        <Forest as Engine<InFibs<V4>>>::build(&fibs, &BuildOptions::default()).expect("a valid table");
    let mut bytes = Vec::new();
    table.image().write(&mut bytes).expect("a Vec takes what is written");
    bytes
});

// Edits of 4 bytes each: where (2 bytes, little-endian), a byte to put there, and what to flip in the byte
// after it.
fuzz_target!(|edits: &[u8]| {
    let mut bytes = BASE.clone();
    for edit in edits.chunks_exact(4) {
        let at = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % bytes.len();
        bytes[at] = edit[2];
        if at + 1 < bytes.len() {
            bytes[at + 1] ^= edit[3];
        }
    }
    wirespeed_fuzz::seal(&mut bytes);
    let Ok(table) = Image::from_bytes(&bytes).and_then(ForestTable::<V4>::from_image) else { return };
    let keys = (0..=V4::BITS)
        .flat_map(|len| [V4::MIN.fill(len), V4::MAX.keep(len), V4(0x0a0b_0000 | u32::from(len) << 4)])
        .flat_map(|key| [0, 1, 3, 4, 99, u32::MAX].map(|id| (FibId(id), key)));
    let (ids, keys): (Vec<_>, Vec<_>) = keys.unzip();
    let mut found = vec![NextHop::NONE; keys.len()];
    Lookup::<InFibs<V4>>::lookup_batch(&table, FibKeys::new(&ids, &keys), &mut found);
    for ((&id, &key), &found) in ids.iter().zip(&keys).zip(&found) {
        assert_eq!(table.lookup_in(id, key), found);
        assert!(u64::from(found.0) <= table.image().results(), "a result past the stated largest");
    }
});
