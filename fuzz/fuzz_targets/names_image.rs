//! Images of every engine of names: a valid one with edits, sealed anew, is refused or answers every lookup
//! without a wrong read, alone and in a batch alike, and never past the results that it states.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use wirespeed_image::{Image, Table};
use wirespeed_namelookup::ata::Ata;
use wirespeed_namelookup::mata::{Mata, MataNw};
use wirespeed_namelookup::stt::Stt;
use wirespeed_namelookup::{
    Acta, BuildOptions, Engine, Lookup, Match, Name, NameBatch, NameBuf, NameDomain, NameTable,
};

/// Tries an image of one engine.
type Try = fn(&[u8]);

static BASES: LazyLock<Vec<(Vec<u8>, Try)>> = LazyLock::new(|| {
    vec![base::<Acta>(), base::<Stt>(), base::<Ata>(), base::<Ata<2>>(), base::<Mata>(), base::<MataNw>()]
});

/// Names of all lengths, inside each other and beside each other.
static NAMES: LazyLock<Vec<NameBuf>> = LazyLock::new(|| {
    let long = |len: usize| format!("/long/{}/end", "l".repeat(len));
    let texts = ["/", "/com", "/com/parc", "/com/parc/www", "/com/parcel", "/org/\u{1}", "/a/a/a/a/a/a/a"];
    let texts = texts.map(str::to_owned).into_iter().chain([7, 8, 9, 61, 62, 63, 64, 200].map(long));
    texts.map(|text| NameBuf::new(&text).expect("a name")).collect()
});

/// What is asked: the names, and names around them.
static PROBES: LazyLock<NameBatch> = LazyLock::new(|| {
    let mut batch = NameBatch::new();
    for name in NAMES.iter() {
        for tail in [&b""[..], b"/x", b"x", b"\0", b"/com/parc"] {
            let bytes = [name.as_bytes(), tail].concat();
            let probe = if bytes.is_empty() { Ok(Name::ROOT) } else { Name::new(&bytes) };
            probe.into_iter().for_each(|probe| batch.push(probe).expect("room"));
        }
    }
    batch
});

fn base<E: Engine<NameDomain>>() -> (Vec<u8>, Try) {
    let names: NameTable = NAMES.iter().zip([1, 2, 3, 250, 5].into_iter().cycle()).collect();
    let options = BuildOptions { seed: Some(1), ..BuildOptions::default() };
    let (_, table) = E::build(&names, &options).expect("a valid table is built");
    let mut bytes = Vec::new();
    table.image().write(&mut bytes).expect("a Vec takes what is written");
    (bytes, look_up::<E>)
}

// A byte for the engine, then edits of 5 bytes each: where (3 bytes, little-endian; with the top bit set, in
// the header, the directory and the first section), a byte to put there, and what to flip in the byte after
// it.
fuzz_target!(|input: &[u8]| {
    let Some((&which, edits)) = input.split_first() else { return };
    let (base, look_up) = &BASES[usize::from(which) % BASES.len()];
    let mut bytes = base.clone();
    for edit in edits.chunks_exact(5) {
        let at = u32::from_le_bytes([edit[0], edit[1], edit[2], 0]) as usize;
        let at = if at & 0x80_0000 == 0 { at % bytes.len() } else { at % bytes.len().min(1_024) };
        bytes[at] = edit[3];
        if at + 1 < bytes.len() {
            bytes[at + 1] ^= edit[4];
        }
    }
    wirespeed_fuzz::seal(&mut bytes);
    look_up(&bytes);
});

fn look_up<E: Engine<NameDomain>>(bytes: &[u8]) {
    let Ok(table) = Image::from_bytes(bytes).and_then(E::Table::from_image) else { return };
    let names = PROBES.names();
    let mut results = vec![u32::MAX; names.len()];
    let mut matches = vec![Match::NONE; names.len()];
    table.lookup_batch(names, &mut results);
    table.match_batch(names, &mut matches);
    for (at, name) in names.iter().enumerate() {
        let alone = table.lookup(name);
        assert_eq!((alone, alone.result), (matches[at], results[at]), "{}: {name}", E::NAME);
        let stated = table.image().results();
        assert!(u64::from(alone.result) <= stated, "{}: a result past the stated largest", E::NAME);
        assert!(alone.length as usize <= name.len(), "{}: more than the name matches", E::NAME);
        for step in table.explain(name) {
            // An engine may go by the places of sections and not by their names.
            let Some(id) = table.image().find(step.section) else { continue };
            let len = table.image().memory_usage()[usize::from(id.0)].len;
            assert!(step.index < len, "{}: {step:?} is past the {len} elements", E::NAME);
        }
    }
}
