//! Figures 9 and 10: lookup rates beside SAIL_L's, and what PBF reads off the chip (section 6.2).

use anyhow::{Result, ensure};
use wirespeed_fib::trace::TraceKind;
use wirespeed_fib::{Rib, V4};

use crate::contest;
use crate::data::Source;
use crate::lineup::Lineup;
use crate::report::{Row, Sheet, median};
use crate::rivals::Pbf;
use crate::session::{self, Options, Session, build, setting_on};
use crate::table::Mode;
use crate::trace::Trace;

/// Who is compared, as the lineup has them: SAIL_L first, then the paper's four.
const ENGINES: [&str; 5] = ["sail-l", "lulea", "treebitmap", "iptrie-lc", "pbf"];

/// Whether a lane is SAIL_L's, which ratios are to.
pub fn is_sail_l(name: &str) -> bool {
    name == ENGINES[0]
}

/// Races all over random and prefix-based traffic, one by one as the paper does, and batched: a loop, for who
/// has nothing better. Rows go to the session, PBF's reads into the sheet.
pub fn measure(
    session: &mut Session,
    options: &Options,
    batch: usize,
    source: &Source,
    reads: &mut Sheet,
) -> Result<()> {
    let (rib, next_hops) = source.rib::<V4>()?;
    let setting = session::setting(source, &rib, &next_hops);
    let mut lanes =
        build(&rib, V4::lookups(false).into_iter().filter(|entry| ENGINES.contains(&&*entry.name)));
    for kind in [TraceKind::Random, TraceKind::Prefix] {
        let trace = Trace::draw(&rib, kind, options.keys, options.seed)?;
        let expected = contest::expected(&rib, &trace);
        session::keep_right(&mut lanes, batch, &trace, &expected);
        ensure!(lanes.iter().any(|lane| is_sail_l(lane.costs().name)), "SAIL_L is not there to compare with");
        let setting = setting_on(&setting, &trace, &expected);
        session.race(&setting, &mut lanes, Mode::Single, trace.all(), "keys/s");
        session.race(&setting, &mut lanes, Mode::Batch(batch), trace.all(), "keys/s");
        reads.rows.push(reads_of(&source.name, &rib, &trace)?);
    }
    Ok(())
}

/// Compares the rate of SAIL_L with that of each other, beside what the paper says of it.
pub fn ratios(rows: &[Row]) -> Sheet {
    let mut cells = Vec::new();
    for row in rows {
        // Rows that were measured together have the setting, mode and batch in common.
        let same = |other: &&Row| {
            is_sail_l(&other.engine)
                && (other.what, other.batch) == (row.what, row.batch)
                && (&other.setting.table, &other.setting.trace) == (&row.setting.table, &row.setting.trace)
        };
        let Some(sail_l) = rows.iter().find(same) else { continue };
        cells.push(vec![
            row.setting.table.clone(),
            row.setting.trace.clone(),
            row.what.to_owned(),
            row.engine.clone(),
            format!("{:.2}", median(&row.rounds) / 1e6),
            format!("{:.2}", crate::report::ratio(&sail_l.rounds, &row.rounds)),
            paper(row).to_owned(),
        ]);
    }
    Sheet {
        title: "Figures 9 and 10: lookups, and how many times as fast SAIL_L is".into(),
        columns: &["table", "traffic", "lookups", "engine", "mlookups_per_s", "sail_l_times", "paper_times"],
        rows: cells,
    }
}

/// The range that the paper gives for SAIL_L by this rival (section 6.3); empty where it gives none.
fn paper(row: &Row) -> &'static str {
    match (row.what, row.setting.trace.as_str(), row.engine.as_str()) {
        ("single", "random", "lulea-2B" | "lulea-4B") => "4.24-4.81",
        ("single", "random", "treebitmap") => "6.73-6.95",
        ("single", "random", "iptrie-lc") => "46.22-54.86",
        ("single", "prefix", "lulea-2B" | "lulea-4B") => "7.27-7.61",
        ("single", "prefix", "treebitmap") => "23.79-26.68",
        ("single", "prefix", "iptrie-lc") => "56.58-68.46",
        _ => "",
    }
}

/// An empty sheet for PBF's reads off the chip.
pub fn reads() -> Sheet {
    Sheet {
        title: "Section 6.2: PBF's memories, and hash tables asked a lookup (paper: 1.003)".into(),
        columns: &["table", "traffic", "filters", "on_chip_bytes", "off_chip_bytes", "asked_per_lookup"],
        rows: Vec::new(),
    }
}

fn reads_of(table: &str, rib: &Rib<V4>, trace: &Trace<V4>) -> Result<Vec<String>> {
    let pbf = Pbf::build(rib)?;
    let asked: u64 = trace.keys().iter().map(|&key| u64::from(pbf.look_up(key).1)).sum();
    Ok(vec![
        table.to_owned(),
        trace.name.clone(),
        pbf.filters().to_string(),
        pbf.on_chip().to_string(),
        pbf.off_chip().to_string(),
        format!("{:.4}", asked as f64 / trace.len().max(1) as f64),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Setting;

    #[test]
    fn ratios_are_of_rows_measured_together() {
        let row = |trace: &str, engine: &str, what, rounds: [f64; 3]| Row {
            setting: Setting {
                table: "t".into(),
                prefixes: 1,
                next_hops: 1,
                trace: trace.into(),
                items: 1,
                seed: 1,
                checksum: None,
            },
            engine: engine.into(),
            what,
            batch: 1,
            rounds: rounds.to_vec(),
            unit: "keys/s",
            memory: 0,
            build_seconds: 0.0,
            ratio: None,
        };
        let rows = [
            row("random", "sail-l", "single", [4e6, 8e6, 6e6]),
            row("random", "lulea-4B", "single", [1e6, 2e6, 2e6]),
            row("prefix", "sail-l", "single", [9e6, 9e6, 9e6]),
            row("prefix", "pbf", "single", [3e6, 3e6, 3e6]),
        ];
        let sheet = ratios(&rows);
        let last = |at: usize| sheet.rows[at][3..].join(" ");
        assert_eq!(last(0), "sail-l 6.00 1.00 ");
        assert_eq!(last(1), "lulea-4B 2.00 4.00 4.24-4.81");
        assert_eq!(last(3), "pbf 3.00 3.00 ");
    }
}
