//! Images of every engine of rules: a valid one with edits, sealed anew, is refused or answers every lookup
//! without a wrong read, alone and in a batch alike, and never past the numbers that it states.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use wirespeed_classify::bloom::BloomSearch;
use wirespeed_classify::linear::Linear;
use wirespeed_classify::quilt::Quilt;
use wirespeed_classify::tuple_search::TupleSearch;
use wirespeed_classify::{
    BuildOptions, Engine, Ipv4Tuple, Ipv6Tuple, Lookup, OpenFlowTuple, RuleSet, Tuple, generate,
};
use wirespeed_image::{Image, Table};

/// Tries an image of one engine.
type Try = fn(&[u8]);

static BASES: LazyLock<Vec<(Vec<u8>, Try)>> = LazyLock::new(|| {
    let mut bases = of_tuple::<Ipv4Tuple>();
    bases.extend(of_tuple::<Ipv6Tuple>());
    bases.extend(of_tuple::<OpenFlowTuple>());
    bases
});

fn of_tuple<T: Tuple>() -> Vec<(Vec<u8>, Try)> {
    vec![
        base::<T, Linear<T>>(),
        base::<T, TupleSearch<T>>(),
        base::<T, BloomSearch<T>>(),
        base::<T, Quilt<T>>(),
    ]
}

/// Rules of many masks, some of them with ranges and holes, of a few priorities.
fn rules<T: Tuple>() -> RuleSet<T> {
    let mut rules = generate::classbench::<T>(generate::Kind::Firewall, 24, 3);
    let by_hand =
        ["priority=1", "sport=3-900 proto=udp priority=3", "dport=0x5/0xf0f priority=3", "proto=tcp"];
    for text in by_hand {
        rules.insert(text.parse().expect("a rule")).expect("a number");
    }
    rules
}

fn base<T: Tuple, E: Engine<T>>() -> (Vec<u8>, Try) {
    let options = BuildOptions { seed: Some(1), ..BuildOptions::default() };
    let (_, table) = E::build(&rules::<T>(), &options).expect("a valid table is built");
    let mut bytes = Vec::new();
    table.image().write(&mut bytes).expect("a Vec takes what is written");
    (bytes, look_up::<T, E>)
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

fn look_up<T: Tuple, E: Engine<T>>(bytes: &[u8]) {
    let Ok(table) = Image::from_bytes(bytes).and_then(E::Table::from_image) else { return };
    let mut tuples = generate::tuples::<T>(&rules(), 60, 1.0, 5);
    tuples.extend([T::default(), T::USED]);
    let mut numbers = vec![u32::MAX; tuples.len()];
    table.lookup_batch(&tuples, &mut numbers);
    for (tuple, number) in tuples.iter().zip(numbers) {
        assert_eq!(table.lookup(tuple), number, "{}: {tuple}", E::NAME);
        let stated = table.image().results();
        assert!(u64::from(number) <= stated, "{}: a number past the stated largest", E::NAME);
        for step in table.explain(tuple) {
            // An engine may go by the places of sections and not by their names.
            let Some(id) = table.image().find(step.section) else { continue };
            let len = table.image().memory_usage()[usize::from(id.0)].len;
            assert!(step.index < len, "{}: {step:?} is past the {len} elements", E::NAME);
        }
    }
    let _shown = (table.shape(), table.loads());
}
