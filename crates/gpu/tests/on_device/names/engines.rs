//! Every kernel of names: hand-picked tables, random ones, and updates, against the oracle.

use wirespeed_namelookup::oracle::Oracle;
use wirespeed_namelookup::{
    BuildOptions, LiveNames, Match, Name, NameBatch, NameBuf, NameEngine, NameLpm, NameTable, NameUpdate,
};

use super::device::Mirrored;

/// Holds a table's answers against the oracle's.
fn hold(table: &impl NameLpm, oracle: &Oracle, probes: &[NameBuf], what: &str) {
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
        ("binary", (1..60).filter(|&n| n != b'/').map(|n| (name(&[&binary(n), b"\0\0\0\0", &[n, 0]]), u32::from(n))).collect()),
        (
            "wide results",
            vec![(name(&[b"a"]), 1 << 17), (name(&[b"b"]), (1 << 24) + 5), (name(&[b"a", b"c"]), 3)],
        ),
    ]
}

/// A generator of numbers, the same each time.
fn random(state: &mut u64, below: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % below
}

/// A name of few kinds of components, so that many are prefixes of others.
fn random_name(state: &mut u64) -> NameBuf {
    let kinds: [&[u8]; 7] = [
        b"com",
        b"a",
        b"ab",
        b"\0\0\0\0",
        b"example",
        b"a-component-of-more-than-forty-bytes-in-all",
        b"exactlysixteen..",
    ];
    let mut name = NameBuf::root();
    for _ in 0..random(state, 6) {
        let kind = random(state, 9);
        let number = format!("{}", random(state, 400));
        let component = kinds.get(usize::try_from(kind).expect("few")).copied().unwrap_or(number.as_bytes());
        name.push(component).expect("it is short");
    }
    name
}

pub(super) fn hand_picked_tables<E: NameEngine>()
where
    Mirrored<E>: NameEngine,
{
    for (what, entries) in hand_picked() {
        let oracle: Oracle = entries.iter().cloned().collect();
        let table: NameTable = entries.iter().cloned().collect();
        let names: Vec<_> = entries.iter().map(|(name, _)| name.clone()).collect();
        let built = Mirrored::<E>::build(&table, &BuildOptions { seed: Some(1), ..BuildOptions::default() });
        let (_, built) = built.expect("a valid table is built");
        let probes = around(&names);
        // All, a few, one, and none: groups that are full and such that aren't.
        for probes in [&probes[..], &probes[..probes.len().min(33)], &probes[..1], &[]] {
            hold(&built, &oracle, probes, what);
        }
    }
}

pub(super) fn random_updates<E: NameEngine>()
where
    Mirrored<E>: NameEngine,
{
    let mut state = 0x1234_5678_9abc_def1;
    let mut oracle = Oracle::default();
    let options = BuildOptions { seed: Some(1), results: 60_000, ..BuildOptions::default() };
    let mut live = LiveNames::<Mirrored<E>>::new(NameTable::new(), options).expect("it is built");
    let reader = live.reader();
    for round in 0..40 {
        let updates: Vec<_> = (0..random(&mut state, 60))
            .map(|_| {
                let name = random_name(&mut state);
                match random(&mut state, 3) {
                    0 => NameUpdate::Remove(name),
                    _ => {
                        NameUpdate::Insert(name, 1 + u32::try_from(random(&mut state, 50_000)).expect("few"))
                    }
                }
            })
            .collect();
        live.apply(&updates).expect("it takes them");
        for update in updates {
            match update {
                NameUpdate::Insert(name, result) => drop(oracle.0.insert(name, result)),
                NameUpdate::Remove(name) => drop(oracle.0.remove(&name)),
            }
        }
        let mut probes: Vec<_> = (0..200).map(|_| random_name(&mut state)).collect();
        probes.extend(oracle.0.keys().take(100).cloned());
        hold(&*reader.enter(), &oracle, &probes, &format!("round {round}"));
    }
    // To nothing again.
    let gone: Vec<_> = oracle.0.keys().cloned().map(NameUpdate::Remove).collect();
    live.apply(&gone).expect("it takes them");
    hold(
        &*reader.enter(),
        &Oracle::default(),
        &(0..64).map(|_| random_name(&mut state)).collect::<Vec<_>>(),
        "empty",
    );
}

macro_rules! on_device_names {
    ($($module:ident, $engine:ty;)+) => {
        $(mod $module {
            #[test]
            fn hand_picked_tables() {
                if crate::device::device().is_some() {
                    super::hand_picked_tables::<$engine>();
                }
            }
            #[test]
            fn random_updates() {
                if crate::device::device().is_some() {
                    super::random_updates::<$engine>();
                }
            }
        })+
    };
}

on_device_names! {
    acta, wirespeed_namelookup::Acta;
}
