//! Synthetic tables held against the real ones, and the writer of the shapes in `shapes/`.

use std::io::Read as _;
use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};

use super::*;
use crate::address::{V4, V6};
use crate::next_hop::NextHops;
use crate::rib::Cursor;
use crate::stats::Stats;

/// A file of the real data, or `None` with a word of why.
pub(crate) fn real_file(name: &str) -> Option<std::fs::File> {
    wirespeed_image::real_data(name).map(|path| std::fs::File::open(path).unwrap())
}

/// A real table, if it is there.
fn real<A: Address>(name: &str) -> Option<Rib<A>> {
    let file = real_file(&format!("fib/{name}"))?;
    let mut text = String::new();
    zstd::Decoder::new(file).unwrap().read_to_string(&mut text).unwrap();
    let mut hops = NextHops::new();
    let routes = text.lines().filter_map(|line| line.split_once(' '));
    Some(routes.map(|(prefix, hop)| (prefix.parse().unwrap(), hops.intern(hop).unwrap())).collect())
}

#[allow(clippy::cast_precision_loss)]
fn looks<A: Address>(rib: &Rib<A>) -> Looks {
    let stats = Stats::of(rib);
    let share = |n: usize| n as f64 / rib.len() as f64;
    let bits = 2 * Shape::region_bits_of(A::FAMILY);
    let mut blocks: FxHashMap<A, usize> = FxHashMap::default();
    let mut long = FxHashSet::default();
    let (mut adjacent, mut of_cover, mut covered, mut of_previous) = (0, 0, 0, 0);
    let mut before: Option<(Prefix<A>, NextHop)> = None;
    let mut stack: Vec<(Prefix<A>, NextHop)> = Vec::new();
    for (prefix, hop) in rib {
        *blocks.entry(prefix.address().keep(bits)).or_default() += 1;
        if prefix.len() > bits {
            long.insert(prefix.address().keep(bits));
        }
        while stack.last().is_some_and(|(p, _)| !p.covers(prefix)) {
            stack.pop();
        }
        if let Some(&(_, cover)) = stack.last() {
            covered += 1;
            of_cover += usize::from(cover == hop);
        }
        stack.push((prefix, hop));
        if let Some((p, h)) = before {
            adjacent += usize::from(p.len() == prefix.len() && p.last().next() == Some(prefix.address()));
            of_previous += usize::from(h == hop);
        }
        before = Some((prefix, hop));
    }
    let mut chunks = FxHashSet::default();
    chunk(rib.cursor(), NextHop::NONE, &mut chunks);
    let mut sizes: Vec<usize> = blocks.values().copied().collect();
    sizes.sort_unstable();
    // The share of prefixes in the tenth of the blocks with most of them.
    let busy: usize = sizes.iter().rev().take(sizes.len() / 10).sum();
    Looks([
        ("prefixes covered by another", share(stats.covered_prefixes)),
        ("prefixes under 1 other", share(*stats.by_nesting.get(1).unwrap_or(&0))),
        ("prefixes under 2 others", share(*stats.by_nesting.get(2).unwrap_or(&0))),
        ("covered share", stats.covered_share_of_global_unicast.unwrap_or(stats.covered_share)),
        // Blocks are /16s of IPv4, /32s of IPv6.
        ("blocks", blocks.len() as f64),
        ("blocks with longer prefixes", long.len() as f64),
        ("prefixes in the fullest tenth of blocks", share(busy)),
        ("prefixes right after one as long", share(adjacent)),
        ("covered prefixes with the next hop of the cover", of_cover as f64 / covered.max(1) as f64),
        ("prefixes with the next hop of the one before", share(of_previous)),
        ("distinct 256-entry chunks past 16 bits", chunks.len() as f64),
    ])
}

/// What a table is judged by.
#[derive(Clone, Copy)]
struct Looks([(&'static str, f64); 11]);

impl Looks {
    /// Whether all are within so much of those of a real table, relative to them.
    fn assert_like(&self, real: &[f64; 11], tolerances: &[f64; 11]) {
        for ((&(what, made), &real), &tolerance) in self.0.iter().zip(real).zip(tolerances) {
            let off = made / real - 1.0;
            eprintln!("{what:>48} {made:>12.6} {real:>12.6} {:>+6.1} %", off * 100.0);
            assert!(off.abs() <= tolerance, "{what}: {made} made, {real} real, {tolerance} allowed");
        }
    }
}

/// Collects the chunks below the first two octets of IPv4, or every chunk past the second octet of IPv6.
fn chunk<A: Address>(at: Cursor<'_, A>, inherited: NextHop, into: &mut FxHashSet<[NextHop; 256]>) {
    let mut entries = [NextHop::NONE; 256];
    at.expand(inherited, &mut entries);
    for octet in at.octets() {
        if let Some(child) = at.child(octet) {
            chunk(child, entries[usize::from(octet)], into);
        }
    }
    if at.depth() >= 2 {
        into.insert(entries);
    }
}

/// The real tables of May 2026 in the order of [`looks`], and how far from them a made one may be.
const REAL_V4: [f64; 11] = [
    0.504428, 0.350208, 0.113961, 0.722487, 36508.0, 26502.0, 0.491922, 0.563539, 0.759948, 0.696869, 18126.0,
];
const NEAR_V4: [f64; 11] = [0.15, 0.10, 0.35, 0.05, 0.05, 0.08, 0.08, 0.10, 0.10, 0.05, 0.15];
const REAL_V6: [f64; 11] = [
    0.561117, 0.335197, 0.167974, 0.00043069, 42753.0, 16201.0, 0.763745, 0.519703, 0.794466, 0.748724,
    16928.0,
];
const NEAR_V6: [f64; 11] = [0.30, 0.20, 0.35, 0.15, 0.08, 0.25, 0.08, 0.30, 0.10, 0.12, 0.50];

#[test]
fn full_tables_look_like_the_real_ones() {
    looks(&table::<V4>(&TableSpec::full(Family::V4)).unwrap()).assert_like(&REAL_V4, &NEAR_V4);
    looks(&table::<V6>(&TableSpec::full(Family::V6)).unwrap()).assert_like(&REAL_V6, &NEAR_V6);
}

#[test]
fn the_numbers_of_the_real_tables_are_theirs() {
    let close = [0.001; 11];
    if let Some(real) = real::<V4>("ris-20260511-v4.txt.zst") {
        assert_eq!(real.by_length(), by_length(&Shape::ipv4()));
        looks(&real).assert_like(&REAL_V4, &close);
    }
    if let Some(real) = real::<V6>("ris-20260511-v6.txt.zst") {
        assert_eq!(real.by_length(), by_length(&Shape::ipv6()));
        looks(&real).assert_like(&REAL_V6, &close);
    }
}

fn by_length(shape: &Shape) -> Vec<usize> {
    shape.by_length().iter().map(|&count| count as usize).collect()
}

/// A number for a whole table that any change to any route changes.
#[allow(clippy::cast_possible_truncation)] // both halves are taken
fn digest<A: Address>(rib: &Rib<A>) -> u64 {
    let mix = |sum: u64, bits: u128| {
        [bits as u64, (bits >> 64) as u64]
            .iter()
            .fold(sum, |sum, &half| (sum ^ half).wrapping_mul(0x100_0000_01b3).rotate_left(29))
    };
    rib.iter().fold(0xcbf2_9ce4_8422_2325, |sum, (prefix, hop)| {
        mix(mix(sum, prefix.address().to_u128()), u128::from(prefix.len()) << 32 | u128::from(hop.0))
    })
}

#[test]
fn a_seed_is_a_table_on_every_platform() {
    for (prefixes, next_hops, seed, v4, v6) in DIGESTS {
        let spec = TableSpec { prefixes, next_hops, seed };
        let made = (digest(&table::<V4>(&spec).unwrap()), digest(&table::<V6>(&spec).unwrap()));
        assert_eq!(made, (v4, v6), "{spec:?}");
    }
}

/// Prefixes, next hops, seed, and the digests of both families. They change with every change of the
/// generators or the shapes, and with nothing else.
const DIGESTS: [(usize, u32, u64, u64, u64); 4] = [
    (1_000, 5, 7, 6_605_386_050_921_442_362, 13_500_762_792_488_910_917),
    (20_000, 62, 42, 11_324_881_023_918_976_593, 662_289_651_433_449_302),
    (20_000, 62, 43, 8_624_753_646_779_641_430, 3_751_701_364_449_519_970),
    (300_000, 100_000, 1, 14_266_406_135_004_584_031, 8_078_796_842_750_595_278),
];

fn any_size<A: Address>(sizes: &[usize]) {
    for &prefixes in sizes {
        let spec = TableSpec { prefixes, next_hops: 5, seed: 7 };
        let made: Rib<A> = table(&spec).unwrap();
        let wanted = lengths::apportion(prefixes, &Shape::today(A::FAMILY).by_length).unwrap();
        assert_eq!(made.len(), prefixes);
        assert_eq!(made.by_length(), wanted);
        assert!(made.iter().all(|(_, hop)| (1..=5).contains(&hop.0)));
    }
}

#[test]
fn any_size_has_its_share_of_each_length() {
    any_size::<V4>(&[0, 1, 2, 100, 9999, 300_000, 2_500_000]);
    any_size::<V6>(&[0, 1, 2, 100, 9999, 600_000]);
}

#[test]
fn a_small_table_is_nested_too() {
    let made: Rib<V4> = table(&TableSpec { prefixes: 10_000, next_hops: 62, seed: 1 }).unwrap();
    let stats = Stats::of(&made);
    assert!((3_000..7_500).contains(&stats.covered_prefixes), "{}", stats.covered_prefixes);
}

#[test]
fn what_the_address_space_cannot_hold_is_refused() {
    let spec = TableSpec { prefixes: 100_000_000, next_hops: 62, seed: 1 };
    let error = table::<V4>(&spec).unwrap_err();
    assert!(matches!(error, SynthError::TooManyPrefixes { prefixes: 100_000_000, .. }));
    let text = error.to_string();
    assert!(text.contains("100000000") && text.contains("there are"), "{text}");
    let spec = TableSpec { prefixes: 1, next_hops: 0, seed: 1 };
    assert_eq!(table::<V4>(&spec).unwrap_err(), SynthError::NoNextHops { prefixes: 1 });
    let wrong = table_of::<V6>(&Shape::ipv4(), &TableSpec::full(Family::V6)).unwrap_err();
    assert_eq!(wrong, SynthError::WrongFamily { shape: Family::V4, wanted: Family::V6 });
}

#[test]
fn a_shape_of_any_table_can_be_drawn_from() {
    assert_eq!(
        table_of::<V4>(&Shape::of(&Rib::<V4>::new()), &TableSpec::full(Family::V4)).unwrap_err(),
        SynthError::EmptyShape { prefixes: 1_042_325 }
    );
    let chain: Rib<V4> = (0..=32).map(|len| (Prefix::around(V4(0x0a0b_0c0d), len), NextHop(1))).collect();
    let made =
        table_of::<V4>(&Shape::of(&chain), &TableSpec { prefixes: 33, next_hops: 3, seed: 1 }).unwrap();
    assert_eq!(made.by_length(), chain.by_length());
    let hosts: Rib<V6> = (0..500u128).map(|i| (Prefix::host(V6(i << 70 | i)), NextHop(1))).collect();
    let made =
        table_of::<V6>(&Shape::of(&hosts), &TableSpec { prefixes: 5000, next_hops: 3, seed: 1 }).unwrap();
    assert_eq!(made.by_length()[128], 5000);
}

#[test]
fn many_next_hops_are_unequal_and_mostly_used() {
    let made: Rib<V4> = table(&TableSpec { prefixes: 200_000, next_hops: 62, seed: 3 }).unwrap();
    let stats = Stats::of(&made);
    assert_eq!(stats.next_hops, 62);
    let many: Rib<V4> = table(&TableSpec { prefixes: 200_000, next_hops: 100_000, seed: 3 }).unwrap();
    let stats = Stats::of(&many);
    assert!(stats.next_hops > 10_000 && many.max_next_hop().0 <= 100_000, "{}", stats.next_hops);
}

#[test]
#[ignore = "rewrites the files of shapes from the real tables"]
fn write_shapes() {
    write_shape::<V4>("ris-20260511-v4", "v4.bin");
    write_shape::<V6>("ris-20260511-v6", "v6.bin");
}

fn write_shape<A: Address>(table: &str, file: &str) {
    // Who goes with whom from the next hops, of which one is much like another; how many there are and how
    // unequal from the origins.
    let Some(rib) = real::<A>(&format!("{table}.txt.zst")) else { return };
    let Some(origins) = real::<A>(&format!("{table}-asn.txt.zst")) else { return };
    let mut shape = Shape::of(&rib);
    let origins = Shape::of(&origins).hops;
    (shape.hops.holders, shape.hops.popularity) = (origins.holders, origins.popularity);
    let shapes = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/synth/shapes");
    std::fs::write(shapes.join(file), super::file::tests::write(&shape)).unwrap();
}
