//! The chart of the front page: IPv4 and IPv6 lookups beside the fastest of the rivals, a bar each.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

use super::block::show;
use super::record::{Record, conditions};

const RECORD: &str = "amd-epyc-25-17-2-cores/2026-11-21.csv";
const TITLE: &str = "Million lookups per second on one core, real tables, addresses drawn by prefix";

/// A group's title, its table, and its bars: what they are called, the engine, whether it is ours.
type Group = (&'static str, &'static str, &'static [(&'static str, &'static str, bool)]);

const GROUPS: [Group; 2] = [
    (
        "IPv4, 1,042,325 prefixes",
        "ris-20260511-v4",
        &[
            ("fold (auto)", "fold", true),
            ("DPDK rte_fib, AVX-512", "rte_fib-2B-avx512", false),
            ("treebitmap", "treebitmap", false),
            ("prefix-trie", "prefix-trie", false),
            ("poptrie", "poptrie", false),
        ],
    ),
    (
        "IPv6, 246,175 prefixes",
        "ris-20260511-v6",
        &[
            ("fold (auto)", "fold", true),
            ("DPDK rte_fib6, AVX-512", "rte_fib6-4B-avx512", false),
            ("treebitmap", "treebitmap", false),
            ("prefix-trie", "prefix-trie", false),
            ("poptrie", "poptrie", false),
        ],
    ),
];

/// Draws it, as SVG.
pub(super) fn draw(records: &Path) -> Result<String> {
    const WIDTH: f64 = 760.0;
    const LEFT: f64 = 190.0;
    const LINE: f64 = 22.0;
    let record = Record::read(records, RECORD)?;
    let mut bars = Vec::new();
    for (title, table, engines) in GROUPS {
        let mut group = Vec::new();
        for &(name, engine, is_ours) in engines {
            let wanted = format!("table={table} trace=prefix what=batch batch=1024 engine={engine}");
            let value = record.value(&conditions(&wanted)?, "median / 1000000")?;
            group.push((name, value.with_context(|| format!("no figure of {engine} for {table}"))?, is_ours));
        }
        bars.push((title, group));
    }
    let most = bars.iter().flat_map(|(_, group)| group).map(|bar| bar.1).fold(1.0, f64::max);
    let (mut body, mut y) = (String::new(), 48.0);
    for (title, group) in bars {
        writeln!(body, r#"<text x="8" y="{y}" font-weight="bold">{title}</text>"#)?;
        for (name, value, is_ours) in group {
            y += LINE;
            let (length, color) =
                ((WIDTH - LEFT - 60.0) * value / most, if is_ours { "#1b7f5c" } else { "#9aa5ad" });
            let (text, top, end) = (LEFT - 8.0, y - 13.0, LEFT + length + 6.0);
            writeln!(body, r#"<text x="{text}" y="{y}" text-anchor="end">{name}</text>"#)?;
            writeln!(body, r#"<rect x="{LEFT}" y="{top}" width="{length:.1}" height="16" fill="{color}"/>"#)?;
            writeln!(body, r#"<text x="{end:.1}" y="{y}">{}</text>"#, show(value))?;
        }
        y += LINE + 14.0;
    }
    let height = y;
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"8\" y=\"20\" font-size=\"15\">{TITLE}</text>\n{body}</svg>\n"
    ))
}
