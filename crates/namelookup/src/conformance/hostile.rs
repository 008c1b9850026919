//! Names chosen to do harm: alike in all but a byte, colliding as far as that can be done without the seed,
//! very many under one node, and queries far deeper than the table. Answers stay right, images stay in
//! proportion, and time stays linear.

use std::time::{Duration, Instant};

use wirespeed_fib::synth::rng::Rng;
use wirespeed_image::{Table, rounds};
use wirespeed_table::Lookup;
use wirespeed_table::{Engine, conformance as suite};

use super::history::Patched;
use super::{Right, Tally, check, check_all, check_counts, probes, tables};
use crate::domain::NameDomain;
use crate::name::NameBuf;
use crate::names::NameBatch;
use crate::oracle::Oracle;
use crate::table::NameTable;
use crate::update::NameUpdate;

/// Tables of hostile names, built and patched together, then hostile queries.
pub fn hostile_names<E: Engine<NameDomain>>() {
    if !E::STANDING.is_recommended() && rounds::leaves_to_ci() {
        return;
    }
    let tally = Tally::<E>::new("hostile_names");
    deep_queries(&tally);
    // Children of one node are where most of the time goes.
    let children = if suite::table_step::<_, E>() == 1 { 40_000 } else { 5_000 };
    for (what, names) in hostile_tables(children) {
        let names = tables::number(names);
        if let Some((_, table)) = tally.build(&names, what) {
            check_all(&table, &names, &[], what);
            check_counts::<E>(&table, &names, what);
            in_proportion(&tally, &table, &names, what);
        }
        patched_together(&tally, &names, what);
    }
    tally.finish();
}

fn hostile_tables(children: u32) -> Vec<(&'static str, Vec<NameBuf>)> {
    let component = |bytes: &[u8]| NameBuf::from_components([&b"com"[..], bytes]).ok();
    let one_byte = (0..120usize).flat_map(|at| {
        [0u8, 1, b'.', b'0', 0x7f, 0x80, 0xff].map(|byte| {
            let mut bytes = [b'q'; 120];
            bytes[at] = byte;
            bytes
        })
    });
    let beginnings = (0..2_000u32).map(|n| [&[b'b'; 490][..], n.to_string().as_bytes()].concat());
    // Words in another order: alike for a sum or an exclusive or over words.
    let words = (0..720usize).map(|n| {
        let mut left: Vec<u8> = (b'a'..=b'f').collect();
        let mut rest = n;
        (1..=6usize)
            .rev()
            .flat_map(|among| {
                let word = left.remove(rest % among);
                rest /= among;
                [word; 8]
            })
            .collect::<Vec<u8>>()
    });
    // A zero at the end of a last word, and zeros alone: alike where padding is hashed and the length is not.
    let padded = (0..300usize).map(|n| [&[b'p'; 5][..n % 6], &vec![0; n / 6 + 1]].concat());
    // Every pair of bytes twice the same: alike for a hash that a byte pair cancels in.
    let pairs = (0..=255u8).flat_map(|a| (0..8).map(move |n| [a, a ^ 1 << n, a, a ^ 1 << n]));
    let children = (0..children).map(|n| format!("child{n}").into_bytes());
    let make = |components: &mut dyn Iterator<Item = Vec<u8>>| -> Vec<NameBuf> {
        let mut names: Vec<_> = components.filter_map(|c| component(&c)).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    let fans = (0..30).flat_map(|p| (0..30).map(move |c| tables::name(&format!("/f{p}/f{c}/f{p}/f{c}"))));
    vec![
        ("words in every order", make(&mut words.into_iter())),
        ("zeros where padding is", make(&mut padded.into_iter())),
        ("children that differ in one byte", make(&mut one_byte.map(|bytes| bytes.to_vec()))),
        ("long equal beginnings", make(&mut beginnings.into_iter())),
        ("pairs that cancel", make(&mut pairs.map(|bytes| bytes.to_vec()))),
        ("very many children of one node", make(&mut children.into_iter())),
        ("the same components at every depth", fans.collect()),
    ]
}

/// An image of hostile names takes at most so many times that of as many random names of the same lengths.
fn in_proportion<E: Engine<NameDomain>>(tally: &Tally<E>, table: &E::Table, names: &NameTable, what: &str) {
    const TIMES: u64 = 4;
    let mut rng = Rng::new(9);
    let random = |name: &NameBuf| {
        let byte = |b: &u8| if *b == b'/' { b'/' } else { b'a' + rng.bits().to_le_bytes()[0] % 26 };
        NameBuf::new(&name.as_bytes().iter().map(byte).collect::<Vec<_>>()).expect("the same slashes")
    };
    let others: Vec<_> = names.iter().map(|(name, _)| name).collect();
    let others = tables::number(others.iter().map(random));
    let Some((_, ordinary)) = tally.build(&others, "random names") else { return };
    let (bytes, ordinary) = (table.image().bytes(), ordinary.image().bytes());
    assert!(bytes <= TIMES * ordinary + (1 << 20), "{what}: {bytes} bytes, {ordinary} for random names");
}

/// All names in one update, each with another result in the next, half of them gone in the last.
fn patched_together<E: Engine<NameDomain>>(tally: &Tally<E>, names: &NameTable, what: &str) {
    let entries: Vec<_> = names.iter().collect();
    let Some(mut patched) = Patched::new(tally, NameTable::new().into(), what) else { return };
    let insert = |more: u32| {
        let update = move |(name, n): &(NameBuf, u32)| NameUpdate::Insert(name.clone(), n + more);
        entries.iter().map(update).collect::<Vec<_>>()
    };
    let half: Vec<_> = entries.iter().step_by(2).map(|(name, _)| NameUpdate::Remove(name.clone())).collect();
    for updates in [insert(0), insert(3), half] {
        if patched.apply(&updates, what).is_none() {
            return;
        }
        check_counts::<E>(&patched.table, patched.model.names(), what);
    }
    check_all(&patched.table, patched.model.names(), &[], what);
}

/// Names of hundreds of thousands of components and of components of megabytes, against a shallow table and
/// along a deep one.
fn deep_queries<E: Engine<NameDomain>>(tally: &Tally<E>) {
    // Quadratic work would take hours, and that of a broken engine takes seconds.
    let soon = Duration::from_millis(if rounds::is_broken() { 1_500 } else { 20_000 });
    let shallow: NameTable = [("/", 1), ("/a", 2), ("/a/a", 3), ("/b/b/b/b", 4)]
        .map(|(text, result)| (tables::name(text), result))
        .into_iter()
        .collect();
    let along = vec![&b"a"[..]; 400];
    let depths = [1, 20, 63, 64, 65, 130, 255, 256, 257, 300, 400];
    let deep =
        depths.map(|depth| NameBuf::from_components(along[..depth].iter().copied()).expect("components"));
    for (what, names) in [("a shallow table", shallow), ("a deep table", tables::number(deep))] {
        let Some((_, table)) = tally.build(&names, what) else { continue };
        let oracle: Oracle = names.iter().collect();
        let short = NameBatch::from_iter(
            (0..500)
                .map(|depth| "/a".repeat(depth) + "/b")
                .collect::<Vec<_>>()
                .iter()
                .map(|text| crate::Name::new(text).expect("a name")),
        );
        check(&table, &oracle, short.names(), what);
        let mut batch = NameBatch::new();
        let mut right = Vec::new();
        let queries = ["/a".repeat(300_000), "/b".repeat(300_000), "/a/".to_owned() + &"a".repeat(4 << 20)]
            .into_iter()
            .chain(["/b/b/b".to_owned() + &"/bb".repeat(200_000), "/".to_owned() + &"x".repeat(9 << 20)]);
        for query in queries {
            let name = tables::name(&query);
            probes::add(&mut batch, &name);
            // What matches lies within the first 400 components.
            let first = NameBuf::from_components(name.components().take(401)).expect("components");
            right.push(oracle.right(&first));
        }
        let start = Instant::now();
        super::check_batch(&table, &right, batch.names(), what);
        for (name, &right) in batch.names().iter().zip(&right) {
            assert!(table.lookup(name) == right, "{what}: {} alone", super::short(name));
        }
        assert!(start.elapsed() < soon, "{what}: deep names take {:?}", start.elapsed());
    }
}
