//! Figures 6 and 7: on-chip memory of SAIL_B, SAIL_U, SAIL_L and PBF; section 7: of SAIL_L for IPv6, and what
//! the paper's step from 48 to 64 would take off the chip.
//!
//! The paper has tables of six years. Here a growing table is the first part of a shuffle of a real one:
//! prefixes of all lengths and places in proportion. It spreads wider than a real table of its size did, and
//! so flatters SAIL_L less.

use wirespeed_fib::synth::rng::Rng;
use wirespeed_fib::{Address, NextHop, Prefix, Rib, V4, V6};
use wirespeed_image::width_for;
use wirespeed_sail::on_chip;

use crate::report::Sheet;

/// Prefixes from one size to the next.
const STEP: usize = 100_000;

/// An empty sheet of IPv4 tables.
pub fn growth() -> Sheet {
    Sheet {
        title:
            "Figures 6 and 7: on-chip bytes (paper: SAIL_L under 2.13 MB, and under PBF, which grows with the table)"
                .into(),
        columns: &["table", "prefixes", "chunks_24", "sail_b", "sail_u", "sail_l", "pbf"],
        rows: Vec::new(),
    }
}

/// The row of a whole table.
pub fn growth_row(table: &str, rib: &Rib<V4>) -> Vec<String> {
    let chunks_24 = on_chip::chunks(rib)[0];
    let prefixes = rib.len() as u64;
    let sizes = [
        prefixes,
        chunks_24,
        on_chip::sail_b(),
        on_chip::sail_u(),
        on_chip::sail_l(chunks_24),
        on_chip::pbf(prefixes),
    ];
    std::iter::once(table.to_owned()).chain(sizes.map(|size| size.to_string())).collect()
}

/// A row for each part of a table of 100,000, 200,000 and so on prefixes, each within the next.
pub fn growth_rows(table: &str, rib: &Rib<V4>, seed: u64) -> Vec<Vec<String>> {
    let mut routes: Vec<(Prefix<V4>, NextHop)> = rib.iter().collect();
    Rng::new(seed).shuffle(&mut routes);
    let mut part = Rib::new();
    let whole_steps = routes.chunks_exact(STEP);
    whole_steps
        .map(|step| {
            part.extend(step.iter().copied());
            growth_row(&format!("part of {table}"), &part)
        })
        .collect()
}

/// An empty sheet of IPv6 tables. The last columns are what the levels between 48 and 64 take, as elements
/// and as bytes.
pub fn ipv6() -> Sheet {
    Sheet {
        title: "Section 7: IPv6, on-chip bytes split at 48 (paper: 2.2 MB for 14,000 prefixes); off the chip, 48 to 64 in \
                one step of 16 bits (the paper) and in two of 8 (ours)"
            .into(),
        columns: &[
            "table",
            "prefixes",
            "longer_than_64",
            "chunks_24",
            "chunks_32",
            "chunks_40",
            "chunks_48",
            "on_chip",
            "longer_than_48_under",
            "one_step_elements",
            "one_step_bytes",
            "two_steps_elements",
            "two_steps_bytes",
            "times",
        ],
        rows: Vec::new(),
    }
}

/// The row of an IPv6 table.
pub fn ipv6_row(table: &str, rib: &Rib<V6>) -> Vec<String> {
    let chunks = on_chip::chunks(rib);
    let split = [chunks[0], chunks[1], chunks[2], chunks[3]];
    let steps = Steps::of(rib, &chunks);
    let longer: usize = rib.by_length()[65..].iter().sum();
    let mut row = vec![table.to_owned(), rib.len().to_string(), longer.to_string()];
    row.extend(split.iter().map(u64::to_string));
    row.extend([on_chip::sail_l_v6(split), steps.prefixes].map(|number| number.to_string()));
    row.extend(
        [steps.one.elements, steps.one.bytes, steps.two.elements, steps.two.bytes].map(|n| n.to_string()),
    );
    // Without longer prefixes neither takes anything.
    let times = || format!("{:.2}", steps.one.bytes as f64 / steps.two.bytes as f64);
    row.push(if steps.prefixes == 0 { String::new() } else { times() });
    row
}

/// What the way from level 48 to 64 takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    elements: u64,
    bytes: u64,
}

/// The ways from level 48 to 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Steps {
    /// The /48s with longer prefixes under them.
    prefixes: u64,
    /// 2^16 elements for each of them.
    one: Size,
    /// 2^8 elements for each of them, and for each /56 with longer ones.
    two: Size,
}

impl Steps {
    /// Elements hold a next hop and, where there is a level beneath, a chunk id, both as narrow as the table
    /// allows.
    fn of<A: Address>(rib: &Rib<A>, chunks: &[u64]) -> Self {
        let next_hop = width_for(u64::from(rib.max_next_hop().0) + 1) as u64;
        let id = |beneath: u64| if beneath == 0 { 0 } else { width_for(beneath) as u64 };
        // Of levels 56, 64 and 72.
        let [in_56, in_64, in_72] = [chunks[4], chunks[5], chunks[6]];
        let one = in_56 << 16;
        let (at_56, at_64) = (in_56 << 8, in_64 << 8);
        Self {
            prefixes: in_56,
            one: Size { elements: one, bytes: one * (next_hop + id(in_72)) },
            two: Size {
                elements: at_56 + at_64,
                bytes: at_56 * (next_hop + id(in_64)) + at_64 * (next_hop + id(in_72)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_grow_within_each_other() {
        let scattered = |i: u32| Prefix::around(V4(i.wrapping_mul(0x9e37_79b1)), 24);
        let rib: Rib<V4> = (0..250_000).map(|i| (scattered(i), NextHop(1))).collect();
        let rows = growth_rows("t", &rib, 1);
        let number = |row: &[String], at: usize| row[at].parse::<u64>().unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0][0], "part of t");
        assert_eq!([number(&rows[0], 1), number(&rows[1], 1)], [100_000, 200_000]);
        assert!(number(&rows[0], 2) <= number(&rows[1], 2));
        // Scattered this wide, every /16 has a chunk: SAIL_L's bound.
        let whole = growth_row("t", &rib);
        assert_eq!(
            whole[2..],
            ["65536", "4194304", "2130440", "2236416", &on_chip::pbf(rib.len() as u64).to_string()]
        );
    }

    #[test]
    fn from_48_to_64_by_hand() {
        let table = |prefixes: &[&str]| -> Rib<V6> {
            prefixes.iter().map(|prefix| (prefix.parse().unwrap(), NextHop(7))).collect()
        };
        // Two /48s with longer prefixes; under one of them a /56 with longer ones; next hops of one byte.
        let rib = table(&["2001:db8::/48", "2001:db8:1::/56", "2001:db8:2:300::/60"]);
        let steps = Steps::of(&rib, &on_chip::chunks(&rib));
        assert_eq!(steps.prefixes, 2);
        assert_eq!(steps.one, Size { elements: 2 << 16, bytes: 2 << 16 });
        assert_eq!(steps.two, Size { elements: 3 << 8, bytes: 2 * 256 * 2 + 256 });
        // And a host route: a level beneath 64.
        let rib = table(&["2001:db8:1::/56", "2001:db8:2:300::1/128"]);
        let steps = Steps::of(&rib, &on_chip::chunks(&rib));
        assert_eq!(steps.one, Size { elements: 2 << 16, bytes: 2 * (2 << 16) });
        assert_eq!(steps.two, Size { elements: 3 << 8, bytes: 3 * 256 * 2 });
        let row = ipv6_row("t", &rib);
        assert_eq!((row.len(), &row[..3]), (ipv6().columns.len(), &["t", "2", "1"].map(str::to_owned)[..]));
        assert_eq!(row.last().unwrap(), "170.67");
        assert_eq!(ipv6_row("t", &Rib::new()).last().unwrap(), "");
    }
}
