//! Every kernel of names against the suite that every engine of names passes, and against the oracle on
//! tables of the kernels' own edges: components around a word and a block, names around a group's 64 KiB,
//! results of every width.

use wirespeed_namelookup::oracle::Oracle;
use wirespeed_namelookup::{
    BuildOptions, Engine, Lookup, Match, Name, NameBatch, NameBuf, NameDomain, NameTable,
};

use super::device::OfNames;
use crate::mirror::Mirrored;

/// Holds a table's answers against the oracle's.
fn hold(table: &impl Lookup<NameDomain>, oracle: &Oracle, probes: &[NameBuf], what: &str) {
    let batch: NameBatch = probes.iter().map(|name| &**name as &Name).collect();
    let mut found = vec![Match { result: u32::MAX, length: u32::MAX }; probes.len()];
    table.match_batch(batch.names(), &mut found);
    for (name, found) in probes.iter().zip(found) {
        assert_eq!(found, oracle.lookup(name), "{what}: {:?}", &name.as_bytes()[..name.len().min(80)]);
    }
}

fn name(components: &[&[u8]]) -> NameBuf {
    NameBuf::from_components(components.iter().copied()).expect("components are names")
}

/// Names around those of a table: themselves, shorter, longer, with another byte.
fn around(names: &[NameBuf]) -> Vec<NameBuf> {
    let mut all = vec![NameBuf::root(), name(&[b"nowhere"])];
    for of in names {
        all.extend(of.prefixes().map(ToOwned::to_owned));
        let mut longer = of.clone();
        longer.push(b"x").expect("it is short");
        all.push(longer);
        let mut bytes = of.as_bytes().to_vec();
        let Some(last) = bytes.last_mut() else { continue };
        *last = if *last == b'b' { b'c' } else { b'b' };
        all.extend(NameBuf::new(&bytes));
        bytes.push(b'0');
        all.extend(NameBuf::new(&bytes));
    }
    all
}

/// Tables that each have something of their own.
fn hand_picked() -> Vec<(&'static str, Vec<(NameBuf, u32)>)> {
    let long = |byte: u8, len: usize| vec![byte; len];
    let lengths: Vec<_> = (1..80).chain([127, 128, 255, 1000, 8000]).collect();
    let binary = |n: u8| [0, n, 0xff, n, 0, 0, 0, 0];
    vec![
        ("empty", vec![]),
        ("root", vec![(NameBuf::root(), 7)]),
        ("root and more", vec![(NameBuf::root(), 7), (name(&[b"com"]), 300), (name(&[b"com", b"a"]), 1)]),
        ("one byte", (1..=255u8).filter(|&b| b != b'/').map(|b| (name(&[&[b]]), b.into())).collect()),
        (
            "prefixes",
            vec![
                (name(&[b"com", b"a"]), 1),
                (name(&[b"com", b"ab"]), 2),
                (name(&[b"com", b"ab", b"c"]), 70_000),
            ],
        ),
        (
            "all lengths",
            lengths.iter().zip(1..).map(|(&len, n)| (name(&[b"x", &long(b'a', len), b"y"]), n)).collect(),
        ),
        (
            "long ones alike",
            (0..40u8)
                .zip(1..)
                .map(|(n, result)| {
                    let mut component = long(b'a', 100);
                    component[usize::from(n) * 2] = b'z';
                    (name(&[&component]), result)
                })
                .collect(),
        ),
        ("deep", vec![(name(&vec![&b"a"[..]; 300]), 9), (name(&vec![&b"a"[..]; 150]), 8)]),
        (
            "binary",
            (1..60)
                .filter(|&n| n != b'/')
                .map(|n| (name(&[&binary(n), b"\0\0\0\0", &[n, 0]]), u32::from(n)))
                .collect(),
        ),
        (
            "wide results",
            vec![(name(&[b"a"]), 1 << 17), (name(&[b"b"]), (1 << 24) + 5), (name(&[b"a", b"c"]), 3)],
        ),
    ]
}

pub(super) fn edges<E: Engine<NameDomain>>()
where
    Mirrored<E, OfNames>: Engine<NameDomain>,
{
    for (what, entries) in hand_picked() {
        let oracle: Oracle = entries.iter().cloned().collect();
        let table: NameTable = entries.iter().cloned().collect();
        let names: Vec<_> = entries.iter().map(|(name, _)| name.clone()).collect();
        let built =
            Mirrored::<E, OfNames>::build(&table, &BuildOptions { seed: Some(1), ..BuildOptions::default() });
        let (_, built) = built.expect("a valid table is built");
        let probes = around(&names);
        // All, a few, one, and none: groups that are full and such that aren't.
        for probes in [&probes[..], &probes[..probes.len().min(33)], &probes[..1], &[]] {
            hold(&built, &oracle, probes, what);
        }
    }
}

/// Whether a part of the suite runs here. On the host build, under sanitizers, the whole takes most of an
/// hour: there it is updates made up at random for one engine, tables for another, and the kernels' own edges
/// for all, or everything with `WIRESPEED_TEST_WHOLE`.
fn runs(module: &str, test: &str) -> bool {
    let is_whole = crate::device::is_whole();
    let is_short = matches!((module, test), ("acta", "random_updates") | ("mata", "random_tables"));
    if !is_whole && !is_short {
        println!("skipped: minutes on the host build; WIRESPEED_TEST_WHOLE=1 runs it");
    }
    (is_whole || is_short) && crate::device::device().is_some()
}

/// The suite that every engine of names passes, without what is of building alone, and tables of the kernels'
/// own edges.
macro_rules! on_device_names {
    ($($module:ident, $engine:ty;)+) => {
        $(on_device_names! { @ $module, $engine,
            hand_picked_tables random_tables random_updates images live_readers hostile_names })+
    };
    (@ $module:ident, $engine:ty, $($test:ident)+) => {
        mod $module {
            $(#[test]
            fn $test() {
                if super::runs(stringify!($module), stringify!($test)) {
                    wirespeed_namelookup::conformance::$test::<crate::mirror::Mirrored<$engine, crate::names::device::OfNames>>();
                }
            })+
            #[test]
            fn edges() {
                if crate::device::device().is_some() {
                    super::edges::<$engine>();
                }
            }
        }
    };
}

on_device_names! {
    acta, wirespeed_namelookup::Acta;
    mata, wirespeed_namelookup::mata::Mata;
    ata, wirespeed_namelookup::ata::Ata;
    ata_2, wirespeed_namelookup::ata::Ata<2>;
    stt, wirespeed_namelookup::stt::Stt;
}
