//! Synthetic tables held against the real ones, and the printer of the shapes in code.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};

use super::*;
use crate::address::{V4, V6};
use crate::next_hop::NextHops;
use crate::rib::Cursor;
use crate::stats::Stats;

/// A real table, or `None` with a word of why.
fn real<A: Address>(name: &str) -> Option<Rib<A>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/fib").join(name);
    let path = if path.exists() { path } else { Path::new("/").join("work/shared/data/fib").join(name) };
    let Ok(file) = std::fs::File::open(&path) else {
        eprintln!("skipped: no {}", path.display());
        return None;
    };
    let mut text = String::new();
    zstd::Decoder::new(file).unwrap().read_to_string(&mut text).unwrap();
    let mut hops = NextHops::new();
    Some(
        text.lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(prefix, hop)| (prefix.parse().unwrap(), hops.intern(hop).unwrap()))
            .collect(),
    )
}

/// What a table is judged by.
#[derive(Debug)]
struct Looks {
    covered_prefixes: f64,
    under_1: f64,
    under_2: f64,
    covered_share: f64,
    blocks: usize,
    busy_blocks: f64,
    /// Blocks (/16s of IPv4, /32s of IPv6) with longer prefixes in them.
    long_blocks: usize,
    /// Distinct 256-entry chunks of leaf-pushed next hops over whole octets, all levels past the second.
    chunks: usize,
    /// Share of prefixes right after a sibling of the same length.
    adjacent: f64,
    same_as_cover: f64,
    same_as_previous: f64,
    top_hop: f64,
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
    Looks {
        covered_prefixes: share(stats.covered_prefixes),
        under_1: share(*stats.by_nesting.get(1).unwrap_or(&0)),
        under_2: share(*stats.by_nesting.get(2).unwrap_or(&0)),
        covered_share: stats.covered_share_of_global_unicast.unwrap_or(stats.covered_share),
        blocks: blocks.len(),
        busy_blocks: share(busy),
        long_blocks: long.len(),
        chunks: chunks.len(),
        adjacent: share(adjacent),
        same_as_cover: of_cover as f64 / covered.max(1) as f64,
        same_as_previous: share(of_previous),
        top_hop: share(stats.top_next_hops.first().map_or(0, |top| top.1)),
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

#[test]
#[ignore = "prints; run with --nocapture to compare by eye"]
fn compare() {
    let spec4 = TableSpec::full(Family::V4);
    let start = std::time::Instant::now();
    let made: Rib<V4> = table(&spec4).unwrap();
    eprintln!("v4 {:?}", start.elapsed());
    let d: String = made.iter().map(|(p, n)| format!("{p} {n}\n")).collect();
    std::fs::write("/tmp/syn/s4.txt", d).unwrap();
    eprintln!("{:?}", looks(&made));
    real::<V4>("ris-20260511-v4.txt.zst").map(|r| eprintln!("{:?}", looks(&r)));
    let start = std::time::Instant::now();
    let made: Rib<V6> = table(&TableSpec::full(Family::V6)).unwrap();
    eprintln!("v6 {:?}", start.elapsed());
    let d: String = made.iter().map(|(p, n)| format!("{p} {n}\n")).collect();
    std::fs::write("/tmp/syn/s6.txt", d).unwrap();
    eprintln!("{:?}", looks(&made));
    real::<V6>("ris-20260511-v6.txt.zst").map(|r| eprintln!("{:?}", looks(&r)));
}

#[test]
#[ignore = "seeds"]
fn seeds() {
    for seed in 1..5 {
        eprintln!("{:?}", looks(&table::<V4>(&TableSpec { seed, ..TableSpec::full(Family::V4) }).unwrap()));
    }
    for seed in 1..7 {
        eprintln!("{:?}", looks(&table::<V6>(&TableSpec { seed, ..TableSpec::full(Family::V6) }).unwrap()));
    }
}

#[test]
#[ignore = "rewrites the shapes in code from the real tables"]
fn print_shapes() {
    write_shape::<V4>("ris-20260511-v4", "shape_v4.rs");
    write_shape::<V6>("ris-20260511-v6", "shape_v6.rs");
}

fn write_shape<A: Address>(table: &str, file: &str) {
    // Who goes with whom from the next hops, of which one is much like another; how many there are and how unequal
    // from the origins.
    let Some(rib) = real::<A>(&format!("{table}.txt.zst")) else { return };
    let Some(origins) = real::<A>(&format!("{table}-asn.txt.zst")) else { return };
    let mut shape = Shape::of(&rib);
    let origins = Shape::of(&origins).hops;
    (shape.hops.holders, shape.hops.popularity) = (origins.holders, origins.popularity);
    let mut out = format!(
        "//! The {} table of May 2026 as a [`Shape`]: {} prefixes of one peer, counted by the ignored test\n\
         //! `print_shapes`. Only these sums are kept; no prefix of the table can be told from them.\n\n\
         use super::codec;\nuse super::hops::HopShape;\nuse super::shape::Shape;\nuse crate::address::Family;\n\n\
         /// The shape.\npub(super) fn shape() -> Shape {{\n    Shape {{\n        family: Family::{:?},\n\
         \x20       by_length: BY_LENGTH.to_vec(),\n        region_bits: {},\n        regions: REGIONS.to_vec(),\n\
         \x20       own: codec::own(OWN),\n        splits: codec::splits(SPLITS),\n        runs: RUNS.to_vec(),\n        hops: HopShape {{\n\
         \x20           outcomes: OUTCOMES,\n            holders: {},\n            popularity: POPULARITY.to_vec(),\n\
         \x20       }},\n    }}\n}}\n",
        A::FAMILY,
        rib.len(),
        A::FAMILY,
        shape.region_bits,
        shape.hops.holders,
    );
    let by_length: Vec<String> = shape.by_length.iter().map(u32::to_string).collect();
    list(&mut out, "Prefixes by length, from 0.", "BY_LENGTH: [u32; _]", &by_length);
    let regions: Vec<String> = shape.regions.iter().map(|(r, n)| format!("({r}, {n})")).collect();
    list(&mut out, "Leading bits of a region, prefixes in it.", "REGIONS: [(u32, u32); _]", &regions);
    let outcomes: Vec<String> = shape.hops.outcomes.iter().map(|o| format!("{o:?}")).collect();
    list(
        &mut out,
        "Next hops by situation: as the cover, the previous, a recent, any.",
        "OUTCOMES: [[u32; 4]; _]",
        &outcomes,
    );
    let popularity: Vec<String> = shape.hops.popularity.iter().map(u32::to_string).collect();
    list(&mut out, "Fresh next hops by octave of rank.", "POPULARITY: [u32; _]", &popularity);
    let runs: Vec<String> = shape.runs.iter().map(|run| format!("{run:?}")).collect();
    list(&mut out, "Kind of a run, length of its prefixes, how many such.", "RUNS: [(u16, u8, u32); _]", &runs);
    text(&mut out, "Which nodes are prefixes, as [`codec`] has it.", "OWN", &codec::write_own(&shape.own));
    text(&mut out, "How nodes split, as [`codec`] has it.", "SPLITS", &codec::write_splits(&shape.splits));
    std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/synth").join(file), out).unwrap();
}

fn list(out: &mut String, doc: &str, declaration: &str, items: &[String]) {
    let declaration = declaration.replace("; _]", &format!("; {}]", items.len()));
    write!(out, "\n/// {doc}\n#[rustfmt::skip]\nstatic {declaration} = [").unwrap();
    let mut column = usize::MAX;
    for item in items {
        if column + item.len() + 2 > 108 {
            out.push_str("\n   ");
            column = 3;
        }
        write!(out, " {item},").unwrap();
        column += item.len() + 2;
    }
    out.push_str("\n];\n");
}

/// A long text in lines.
fn text(out: &mut String, doc: &str, name: &str, text: &str) {
    write!(out, "\n/// {doc}\n#[rustfmt::skip]\nstatic {name}: &str = \"\\\n").unwrap();
    for line in text.as_bytes().chunks(104) {
        writeln!(out, "    {}\\", std::str::from_utf8(line).unwrap()).unwrap();
    }
    out.push_str("\";\n");
}
