//! The routes of a forest's tables as a file has them: bytes with edits are refused, or describe routes that
//! are visited, written, read and compiled like any others.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use wirespeed_fib::{Address, BuildOptions, NextHop, Prefix, Rib, V4};
use wirespeed_forest::{FibId, Fibs, LiveFibs};

static BASE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut fibs = Fibs::<V4>::new();
    for id in [0, 3, 4] {
        let rib: Rib<V4> = (0..=V4::BITS)
            .flat_map(|len| [V4::MIN, V4::MAX, V4::MAX.keep(len / 2)].map(|a| Prefix::around(a, len)))
            .zip((1 + id..).map(NextHop))
            .collect();
        fibs.set(FibId(id), &rib).expect("a small number");
    }
    fibs.to_bytes()
});

/// Many equal parts can stand for more routes than anybody can visit.
const MOST: usize = 100_000;

// The bytes themselves, and edits of 3 bytes each: where (2 bytes, little-endian), and a byte to put there.
fuzz_target!(|data: &[u8]| {
    try_routes(data);
    let mut bytes = BASE.clone();
    for edit in data.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % bytes.len();
        bytes[at] = edit[2];
    }
    try_routes(&bytes);
});

fn try_routes(bytes: &[u8]) {
    let is_route = |next_hop: NextHop, len| {
        assert!(len <= V4::BITS, "a route longer than an address");
        next_hop.is_some()
    };
    let Some(fibs) = Fibs::<V4>::from_bytes(bytes, is_route) else { return };
    let again = Fibs::<V4>::from_bytes(&fibs.to_bytes(), |_, _| true).expect("routes that were written");
    let few: Vec<_> =
        fibs.ids().filter(|&id| fibs.routes_of(id).is_some_and(|n| n <= MOST)).take(8).collect();
    assert!(fibs.ids().eq(again.ids()));
    let ribs = few.into_iter().map(|id| {
        let mut rib = Rib::<V4>::new();
        fibs.visit(id, |prefix, next_hop| assert!(rib.insert(prefix, next_hop).is_none(), "a route twice"));
        again.visit(id, |prefix, next_hop| assert_eq!(rib.get(prefix), Some(next_hop)));
        assert_eq!(fibs.routes_of(id), Some(rib.len()));
        (id, rib)
    });
    let ribs: Vec<_> = ribs.collect();
    let live = LiveFibs::new(fibs, BuildOptions::default()).expect("valid tables");
    let table = live.reader();
    for (id, rib) in &ribs {
        for (prefix, _) in rib.iter().take(100) {
            let right = rib.longest_match(prefix.last()).map_or(NextHop::NONE, |(_, next_hop)| next_hop);
            assert_eq!(table.enter().lookup_in(*id, prefix.last()), right);
        }
    }
}
