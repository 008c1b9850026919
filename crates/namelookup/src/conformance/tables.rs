//! The tables that the suite is run on.

use std::ops::Range;

use proptest::prelude::*;
use wirespeed_fib::synth::rng::Rng;

use super::probes::component as random_component;
use crate::name::NameBuf;
use crate::table::NameTable;
use crate::update::NameUpdate;

/// Small tables, each with something that engines get wrong.
pub fn hand_picked() -> Vec<(&'static str, NameTable)> {
    let widths: [u32; 5] = [0xff, 0xffff, 0xff_ffff, 0xff_ffff + 1, u32::MAX];
    let [w1, w2, w3, w4, w5] = widths.map(|most| (most - 3..=most).map(|n| (texts(["/n", "/x"], n), n)));
    vec![
        ("empty", NameTable::new()),
        ("only a root entry", number([NameBuf::root()])),
        ("a root entry and one name", number([NameBuf::root(), name("/com/parc/www")])),
        ("one name", number([name("/com/parc/www")])),
        ("binary bytes", number(binary())),
        ("components of one byte inside each other", number(inside(&[b"a"; 40]))),
        ("components of every length to 300", number((1..=300).filter_map(|len| of(&[&vec![b'l'; len]])))),
        ("300 components, each an entry", number(inside(&numbered(300)))),
        ("300 components, the last an entry", number(inside(&numbered(300)).into_iter().last())),
        ("prefixes by bytes and not by components", number(bytewise())),
        ("shared tails", number(shared_tails())),
        ("every component of one byte", number((0..=255).filter_map(|b| of(&[&[b]])))),
        (
            "percent-encoding",
            number(["/a%2Fb", "/a%2fb", "/a/b", "/a%", "/a%2", "/%00", "/a%2Fb/c"].map(name)),
        ),
        ("zeros at the end", number((1..=40).filter_map(|len| of(&[b"z", &vec![0; len]])))),
        ("many children of one node", number((0..3_000).map(|n| name(&format!("/com/child{n}"))))),
        ("children that lead on", number((0..600).map(|n| name(&format!("/com/{n}/www"))))),
        ("equal components under different parents", number(equal_components())),
        ("one name in the other many times", number(inside(&[b"com"; 100]))),
        ("results of one byte", w1.collect()),
        ("results of two bytes", w2.collect()),
        ("results of three bytes", w3.collect()),
        ("results of just four bytes", w4.collect()),
        ("results up to u32::MAX", w5.collect()),
        ("one result for all", equal_components().into_iter().map(|name| (name, 7)).collect()),
        ("entries with and without entries above", number(gaps())),
        ("names around multiples of the word", number(around_words())),
        ("a domain list", number(domains())),
        ("components of 8,000 bytes", number(huge())),
        ("a component of 70,000 bytes", number(of(&[b"com", &vec![0x80; 70_000]]))),
        ("a chain of 5,000 components", number(long_chain())),
    ]
}

/// A name of its text.
pub(super) fn name(text: &str) -> NameBuf {
    NameBuf::new(text).expect("a name")
}

/// A name of its components; `None` where they make none, as a slash.
fn of(components: &[&[u8]]) -> Option<NameBuf> {
    NameBuf::from_components(components.iter().copied()).ok()
}

/// Names with results from 1 on.
pub(super) fn number(names: impl IntoIterator<Item = NameBuf>) -> NameTable {
    names.into_iter().zip(1..).collect()
}

fn texts(parts: [&str; 2], n: u32) -> NameBuf {
    name(&format!("{}{n}{}{}", parts[0], parts[1], n % 3))
}

/// All prefixes of a name but the root.
fn inside<C: AsRef<[u8]>>(components: &[C]) -> Vec<NameBuf> {
    let whole = NameBuf::from_components(components.iter().map(AsRef::as_ref)).expect("components");
    let mut all: Vec<_> = whole.prefixes().map(ToOwned::to_owned).collect();
    all.reverse();
    all.split_off(1)
}

fn numbered(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|n| format!("c{n}").into_bytes()).collect()
}

fn huge() -> Vec<NameBuf> {
    let component = |first: u8, last: u8| {
        let mut bytes: Vec<u8> = (0..8_000u32).map(|at| b'a' + (at % 23).to_le_bytes()[0]).collect();
        (bytes[0], bytes[7_999]) = (first, last);
        bytes
    };
    let [a, b, c] = [component(b'A', b'A'), component(b'A', b'B'), component(b'B', b'A')];
    let names: [&[&[u8]]; 7] =
        [&[&a], &[&b], &[&c], &[&a, &a], &[&a, &b, b"www"], &[b"com", &c], &[b"com", &a[..7_999]]];
    names.into_iter().filter_map(of).collect()
}

fn long_chain() -> Vec<NameBuf> {
    let components: Vec<_> = (0..5_000).map(|n| format!("{}", n % 97).into_bytes()).collect();
    let depths = [1, 2, 3, 7, 8, 9, 63, 64, 65, 255, 256, 257, 999, 1_000, 4_095, 4_096, 4_998, 4_999, 5_000];
    depths
        .iter()
        .filter_map(|&depth| of(&components[..depth].iter().map(Vec::as_slice).collect::<Vec<_>>()))
        .collect()
}

fn bytewise() -> Vec<NameBuf> {
    let texts = [
        "/com/a",
        "/com/ab",
        "/com/abc/d",
        "/com/abcd",
        "/c",
        "/co",
        "/comm",
        "/com/a-b",
        "/com/a.b",
        "/com/a0",
        "/com/a!/x",
    ];
    texts.map(name).to_vec()
}

fn shared_tails() -> Vec<NameBuf> {
    let tails = ["/www/index/html", "/www/index", "/mail/in/box"];
    (0..60).flat_map(|n| tails.map(|tail| name(&format!("/com/site{n}{tail}")))).collect()
}

fn binary() -> Vec<NameBuf> {
    let parts: [&[u8]; 11] = [
        b"\0",
        b"\0\0",
        b"\0\0\0\0",
        b"\xff",
        b"\xff\xff\xff\xff",
        b"\0\xff",
        b"\xff\0",
        b"\n",
        b" ",
        b".",
        b"..",
    ];
    let pairs = parts.iter().flat_map(|&a| parts.iter().filter_map(move |&b| of(&[a, b])));
    parts.iter().filter_map(|&a| of(&[a])).chain(pairs).collect()
}

fn equal_components() -> Vec<NameBuf> {
    (0..40).flat_map(|p| (0..40).map(move |c| name(&format!("/p{p}/same{c}/end")))).collect()
}

fn gaps() -> Vec<NameBuf> {
    let texts = ["/a", "/a/b/c", "/a/b/c/d/e", "/b/c/d", "/c/d", "/c/d/e", "/c/d/e/f/g/h", "/d", "/d/e/f/g"];
    texts.map(name).to_vec()
}

fn around_words() -> Vec<NameBuf> {
    let lengths =
        [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 61, 62, 63, 64, 65, 127, 128, 129, 255, 256, 257];
    let of_length = |len: usize| {
        // Differ in the last byte alone, and in whether there is one more.
        [vec![b'w'; len], [vec![b'w'; len - 1], vec![b'v']].concat()]
    };
    let flat: Vec<_> = lengths.into_iter().flat_map(of_length).collect();
    let beneath = flat.iter().filter_map(|component| of(&[component, b"x", component]));
    flat.iter().filter_map(|component| of(&[component])).chain(beneath).collect()
}

fn domains() -> Vec<NameBuf> {
    let tops: [&str; 6] = ["com", "org", "net", "de", "co.uk", "xn--p1ai"];
    let domain = |n: usize| {
        let under = ["", "www.", "mail.", "a.b.c.", "cdn-7.eu."][n % 5];
        format!("{under}site-{}.{}", n / 7, tops[n % 6])
    };
    (0..800).filter_map(|n| NameBuf::from_domain(domain(n).as_bytes()).ok()).collect()
}

/// Components of few kinds, now and then any: so names nest, meet and repeat.
fn component() -> impl Strategy<Value = Vec<u8>> {
    let kinds: Vec<Vec<u8>> =
        [&b"a"[..], b"ab", b"abc", b"b", b"com", b"\0", b"\0\0", b"\xff\0", b"www", b"%2F"]
            .into_iter()
            .map(<[u8]>::to_vec)
            .chain([7, 8, 9, 16, 62, 63, 64, 300].map(|len| vec![b'x'; len]))
            .collect();
    let free = proptest::collection::vec(any::<u8>().prop_map(|b| if b == b'/' { b'.' } else { b }), 1..24);
    prop_oneof![12 => prop::sample::select(kinds), 2 => (0..40u8).prop_map(|n| vec![b'k', n]), 1 => free]
        .prop_map(|component| component.iter().map(|&b| if b == b'/' { b'.' } else { b }).collect())
}

fn names() -> impl Strategy<Value = NameBuf> {
    let depth = prop_oneof![8 => 0..5usize, 2 => 5..12usize, 1 => 12..40usize];
    depth
        .prop_flat_map(|depth| proptest::collection::vec(component(), depth))
        .prop_map(|parts| NameBuf::from_components(parts.iter().map(Vec::as_slice)).expect("components"))
}

/// Results of few values and of all widths.
fn result() -> impl Strategy<Value = u32> {
    prop_oneof![
        40 => 1..6u32,
        20 => 1..256u32,
        1 => 250..300u32,
        1 => 65_000..66_000u32,
        1 => (1u32 << 24) - 2..(1 << 24) + 3,
        1 => u32::MAX - 2..=u32::MAX,
    ]
}

/// Random tables.
pub fn random(entries: Range<usize>) -> impl Strategy<Value = NameTable> {
    proptest::collection::vec((names(), result()), entries).prop_map(|entries| entries.into_iter().collect())
}

/// A random table and updates of it. Every other removal is of a name that is there.
pub fn random_history(
    entries: Range<usize>,
    updates: Range<usize>,
) -> impl Strategy<Value = (NameTable, Vec<NameUpdate>)> {
    let update = (names(), result(), 0..10u8, any::<prop::sample::Index>());
    (random(entries), proptest::collection::vec(update, updates)).prop_map(|(table, updates)| {
        let mut there: Vec<_> = table.iter().map(|(name, _)| name).collect();
        let update = |(name, result, kind, which): (NameBuf, u32, u8, prop::sample::Index)| match kind {
            0 | 1 if !there.is_empty() => NameUpdate::Remove(there.swap_remove(which.index(there.len()))),
            0..=3 => NameUpdate::Remove(name),
            _ => {
                there.push(name.clone());
                NameUpdate::Insert(name, result)
            }
        };
        let updates = updates.into_iter().map(update).collect();
        (table, updates)
    })
}

/// Names of all depths in a few corners, the same in every run, each once: they nest, and each corner has
/// many.
pub fn scattered_names(count: usize) -> Vec<NameBuf> {
    let mut rng = Rng::new(3);
    let mut seen = std::collections::BTreeSet::new();
    let mut names: Vec<NameBuf> = Vec::with_capacity(count);
    while names.len() < count {
        let mut next = match names.len() {
            0 => NameBuf::root(),
            // Beneath an earlier one, or beside it.
            len => {
                let from = &names[rng.index(len)];
                let keep = rng.index(from.components().count() + 2);
                NameBuf::from_components(from.components().take(keep)).expect("components")
            }
        };
        for _ in 0..=rng.index(3) {
            let part = match rng.index(4) {
                0 => random_component(&mut rng),
                1 => format!("host-{}", rng.index(500)).into_bytes(),
                2 => vec![b'y'; 1 + rng.index(90)],
                _ => ["com", "org", "www", "a", "b", "static"][rng.index(6)].into(),
            };
            next.push(&part).expect("a component");
        }
        if next.components().count() <= 24 && seen.insert(next.clone()) {
            names.push(next);
        }
    }
    names
}
