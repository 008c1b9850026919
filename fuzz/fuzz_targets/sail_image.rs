//! Images of SAIL's engines and those after it, which is every engine with small images: a valid one with
//! edits, sealed anew, is refused or answers every lookup without a wrong read, alone and in a batch alike.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use wirespeed::engine::{Addresses, EngineName, OnDevice, Visitor, of_domain, visit};
use wirespeed_fib::{Address, BuildOptions, Engine, Lookup, NextHop, Prefix, Rib, V4, V6};
use wirespeed_image::{Image, Table};

/// Larger ones, such as those with a bit map of a fixed size, take too long to copy and check for each input.
const SMALL: usize = 4 << 20;

/// Engines with an image of each.
type Bases = LazyLock<Vec<(EngineName, Vec<u8>)>>;

static BASES_V4: Bases = LazyLock::new(bases::<V4>);
static BASES_V6: Bases = LazyLock::new(bases::<V6>);

fn bases<A: Addresses>() -> Vec<(EngineName, Vec<u8>)> {
    let rib: Rib<A> = (0..=A::BITS)
        .flat_map(|len| [A::MIN, A::MAX, A::MAX.keep(len / 2)].map(|a| Prefix::around(a, len)))
        .zip((1..).map(NextHop))
        .collect();
    of_domain::<A>()
        .map(|engine| (engine, visit(engine, Compile(&rib)).expect("the engine takes the family")))
        .filter(|(_, image)| image.len() <= SMALL)
        .collect()
}

/// Makes the image of a table.
struct Compile<'a, A: Address>(&'a Rib<A>);

impl<A: Address> Visitor<A> for Compile<'_, A> {
    type Output = Vec<u8>;

    fn visit<E: Engine<A, Table: OnDevice>>(self) -> Vec<u8> {
        let (_, table) = E::build(self.0, &BuildOptions::default()).expect("a valid table is built");
        let mut bytes = Vec::new();
        table.image().write(&mut bytes).expect("a Vec takes what is written");
        bytes
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&which, edits)) = input.split_first() else { return };
    match which % 2 {
        0 => edited::<V4>(&BASES_V4, which / 2, edits),
        _ => edited::<V6>(&BASES_V6, which / 2, edits),
    }
});

/// Edits of 5 bytes each: where (3 bytes, little-endian; with the top bit set, in the header and directory),
/// a byte to put there, and what to flip in the byte after it.
fn edited<A: Addresses>(bases: &[(EngineName, Vec<u8>)], which: u8, edits: &[u8]) {
    let (engine, base) = &bases[usize::from(which) % bases.len()];
    let mut bytes = base.clone();
    for edit in edits.chunks_exact(5) {
        let at = u32::from_le_bytes([edit[0], edit[1], edit[2], 0]) as usize;
        let at = if at & 0x80_0000 == 0 { at % bytes.len() } else { at % 2048 };
        bytes[at] = edit[3];
        if at + 1 < bytes.len() {
            bytes[at + 1] ^= edit[4];
        }
    }
    wirespeed_fuzz::seal(&mut bytes);
    visit::<A, _>(*engine, LookUp(&bytes)).expect("the engine takes the family");
}

/// Looks up in an image, if it is taken.
struct LookUp<'a>(&'a [u8]);

impl<A: Address> Visitor<A> for LookUp<'_> {
    type Output = ();

    fn visit<E: Engine<A, Table: OnDevice>>(self) {
        let Ok(table) = Image::from_bytes(self.0).and_then(E::Table::from_image) else { return };
        let keys: Vec<A> = (0..=A::BITS)
            .flat_map(|len| {
                [A::MIN.fill(len), A::MAX.keep(len), A::from_u128_low(u128::from(len) << 24 | 0x0a0b << 96)]
            })
            .collect();
        let mut found = vec![NextHop::NONE; keys.len()];
        table.lookup_batch(&keys, &mut found);
        for (&key, &found) in keys.iter().zip(&found) {
            assert_eq!(table.lookup(key), found, "{}", E::NAME);
            assert!(
                u64::from(found.0) <= table.image().results(),
                "{}: a result past the stated largest",
                E::NAME
            );
        }
    }
}
