//! SAIL_L images: a valid one with edits, sealed anew, is refused or answers every lookup without a wrong read, alone
//! and in a batch alike.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use wirespeed_fib::{Address, BuildOptions, Engine, Lpm, NextHop, Prefix, Rib, V4, V6};
use wirespeed_image::{Image, Table};
use wirespeed_sail::{SailL, SailLTable};

static BASE_V4: LazyLock<Vec<u8>> = LazyLock::new(base::<V4>);
static BASE_V6: LazyLock<Vec<u8>> = LazyLock::new(base::<V6>);

fn base<A: Address>() -> Vec<u8>
where
    SailL: Engine<A, Table = SailLTable<A>>,
{
    let rib: Rib<A> = (0..=A::BITS)
        .flat_map(|len| [A::MIN, A::MAX, A::MAX.keep(len / 2)].map(|a| Prefix::around(a, len)))
        .zip((1..).map(NextHop))
        .collect();
    let (_, table) = SailL::build(&rib, &BuildOptions::default()).expect("a valid table is built");
    let mut bytes = Vec::new();
    table.image().write(&mut bytes).expect("a Vec takes what is written");
    bytes
}

fuzz_target!(|input: &[u8]| {
    let Some((&family, edits)) = input.split_first() else { return };
    match family % 2 {
        0 => edited::<V4>(&BASE_V4, edits),
        _ => edited::<V6>(&BASE_V6, edits),
    }
});

/// Edits of 5 bytes each: where (3 bytes, little-endian; with the top bit set, in the header and directory), a byte to
/// put there, and what to flip in the byte after it.
fn edited<A: Address>(base: &[u8], edits: &[u8]) {
    let mut bytes = base.to_vec();
    for edit in edits.chunks_exact(5) {
        let at = u32::from_le_bytes([edit[0], edit[1], edit[2], 0]) as usize;
        let at = if at & 0x80_0000 == 0 { at % bytes.len() } else { at % 2048 };
        bytes[at] = edit[3];
        if at + 1 < bytes.len() {
            bytes[at + 1] ^= edit[4];
        }
    }
    wirespeed_fuzz::seal(&mut bytes);
    let Ok(table) = Image::from_bytes(&bytes).and_then(SailLTable::<A>::from_image) else { return };
    let keys: Vec<A> = (0..=A::BITS)
        .flat_map(|len| [A::MIN.fill(len), A::MAX.keep(len), A::from_u128_low(u128::from(len) << 24 | 0x0a0b << 96)])
        .collect();
    let mut found = vec![NextHop::NONE; keys.len()];
    table.lookup_batch(&keys, &mut found);
    for (&key, &found) in keys.iter().zip(&found) {
        assert_eq!(table.lookup(key), found);
        assert!(u64::from(found.0) <= table.image().results(), "a result past the stated largest");
    }
}
