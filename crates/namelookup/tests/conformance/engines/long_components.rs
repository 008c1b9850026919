//! Components that are longer than 16 bits count: every engine is right about them.

use wirespeed_namelookup::{
    Acta, BuildOptions, Engine, LiveNames, Lookup, Match, NameBatch, NameBuf, NameDomain, NameTable,
    NameUpdate,
};

/// Looks names up alone and in a batch, and holds the answers against the table of names.
fn check<E: Engine<NameDomain>>(live: &LiveNames<E>, asked: &[NameBuf]) {
    let reader = live.reader();
    let batch: NameBatch = asked.iter().map(|name| &**name).collect();
    let mut found = vec![Match::NONE; asked.len()];
    reader.enter().match_batch(batch.names(), &mut found);
    for (name, found) in asked.iter().zip(found) {
        let right = live.model().names().lookup(name);
        assert_eq!(found, right, "{}: {} bytes in a batch", E::NAME, name.as_bytes().len());
        assert_eq!(reader.enter().lookup(name), right, "{}: {} bytes alone", E::NAME, name.as_bytes().len());
    }
}

/// Components around the lengths at which 16 bits end, alike but for their last byte.
fn long_components<E: Engine<NameDomain>>() {
    let lengths = [65_534, 65_535, 65_536, 65_537, 131_072];
    let component = |len: usize, last: u8| {
        let mut bytes = vec![b'a'; len];
        bytes[len - 1] = last;
        bytes
    };
    let name =
        |len, last| NameBuf::from_components([&b"com"[..], &component(len, last)[..], &b"x"[..]]).unwrap();
    let kept: Vec<_> = lengths.iter().map(|&len| name(len, b'a')).collect();
    let table: NameTable = kept.iter().zip(1..).collect();
    let options = BuildOptions { seed: Some(1), ..BuildOptions::default() };
    let mut live = LiveNames::<E>::new(table.into(), options).unwrap();
    let asked: Vec<_> =
        lengths.iter().flat_map(|&len| [name(len, b'a'), name(len, b'b'), name(len - 1, b'a')]).collect();
    check(&live, &asked);
    // The last byte tells them apart in updates, too.
    let others: Vec<_> = lengths.iter().map(|&len| NameUpdate::Insert(name(len, b'b'), 9)).collect();
    live.apply(&others).unwrap();
    check(&live, &asked);
    let gone: Vec<_> = kept.iter().map(|name| NameUpdate::Remove(name.clone())).collect();
    live.apply(&gone).unwrap();
    check(&live, &asked);
}

#[test]
fn components_longer_than_16_bits_count_acta() {
    long_components::<Acta>();
}

#[test]
fn components_longer_than_16_bits_count_stt() {
    long_components::<wirespeed_namelookup::stt::Stt>();
}

#[test]
fn components_longer_than_16_bits_count_ata() {
    long_components::<wirespeed_namelookup::ata::Ata>();
}

#[test]
fn components_longer_than_16_bits_count_mata() {
    long_components::<wirespeed_namelookup::mata::Mata>();
}

#[test]
fn components_longer_than_16_bits_count_mata_nw() {
    long_components::<wirespeed_namelookup::mata::MataNw>();
}
