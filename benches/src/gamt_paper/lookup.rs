//! Figures 9 and 10: lookup rates by the size of a batch, and by table and traffic.
//!
//! Rates are of calls one after another, each with a batch; nothing is moved anywhere, as keys and results of
//! a CPU's lookups lie where they are wanted. That is why small batches, which a GPU can't use, lose little
//! here.

use anyhow::Result;
use wirespeed_dir24::Dir24;
use wirespeed_fib::trace::TraceKind;
use wirespeed_fib::{BuildOptions, InFib, Rib, V4, V6};
use wirespeed_gamt::{GamtS, GamtT};

use super::{check, lanes, millions};
use crate::contest::{self, Plan};
use crate::data::Source;
use crate::report::{Row, Setting, Sheet, ratio};
use crate::session::{self, Options, setting_on};
use crate::table::Lane;
use crate::table::Mode;
use crate::trace::Trace;

/// Powers of two of the batches of figure 9.
pub const EXPONENTS: std::ops::RangeInclusive<u32> = 0..=22;

/// A family that the paper's engines are built for.
pub trait Compared: InFib {
    /// GAMT_T and GAMT_S by one core and by all, and GALE's layout where there is one.
    fn compared(rib: &Rib<Self>) -> Result<Vec<Box<dyn Lane<Self>>>>;
}

impl Compared for V4 {
    fn compared(rib: &Rib<Self>) -> Result<Vec<Box<dyn Lane<Self>>>> {
        let mut all = gamt(rib)?;
        all.extend(lanes::<V4, Dir24>("dir24", rib, &BuildOptions::default())?);
        Ok(all)
    }
}

impl Compared for V6 {
    fn compared(rib: &Rib<Self>) -> Result<Vec<Box<dyn Lane<Self>>>> {
        gamt(rib)
    }
}

fn gamt<A: InFib>(rib: &Rib<A>) -> Result<Vec<Box<dyn Lane<A>>>> {
    let options = BuildOptions::default();
    let [one, all] = lanes::<A, GamtT<A>>("gamt", rib, &options)?;
    let [separate, _] = lanes::<A, GamtS<A>>("gamt-s", rib, &options)?;
    Ok(vec![one, all, separate])
}

/// Rates of all lanes on a table, with random traffic and traffic by prefix, in batches of each of these
/// sizes. Every lane's answers are checked first.
pub fn measure<A: Compared>(options: &Options, source: &Source, batches: &[usize]) -> Result<Vec<Row>> {
    let (rib, next_hops) = source.rib::<A>()?;
    let setting = session::setting(source, &rib, &next_hops);
    let mut lanes = A::compared(&rib)?;
    let mut rows = Vec::new();
    for kind in [TraceKind::Random, TraceKind::Prefix] {
        let trace = Trace::draw(&rib, kind, options.keys, options.seed)?;
        let expected = contest::expected(&rib, &trace);
        check(&mut lanes, 1 << 16, &trace, &expected)?;
        let setting = setting_on(&setting, &trace, &expected);
        for &batch in batches {
            rows.extend(race(&setting, &mut lanes, batch, &trace, options.plan()));
        }
    }
    Ok(rows)
}

/// A row for each lane, with ratios to the first.
pub(super) fn race<A: InFib>(
    setting: &Setting,
    lanes: &mut [Box<dyn Lane<A>>],
    batch: usize,
    trace: &Trace<A>,
    plan: Plan,
) -> Vec<Row> {
    let rates = contest::race(lanes, Mode::Batch(batch), trace.all(), plan);
    let first = rates.first().cloned().unwrap_or_default();
    let measured = lanes.iter().zip(rates);
    measured
        .map(|(lane, rates)| {
            let ratio = Some(ratio(&rates, &first));
            Row { ratio, ..Row::of(setting, lane.costs(), "batch", batch, rates, "keys/s") }
        })
        .collect()
}

/// Figure 9: rates by the size of a batch.
pub fn by_batch(rows: &[Row]) -> Sheet {
    let mut sheet = Sheet {
        title: "Figure 9: million lookups a second by batch (paper, IPv4: GAMT passes MAMT from 8K on and reaches 1100 at 16M, GALE \
                580, MAMT about 50 on 12 threads; IPv6: GAMT 680)"
            .into(),
        columns: &["table", "traffic", "batch", "gamt", "gamt_all", "gamt_s", "dir24", "dir24_all"],
        rows: Vec::new(),
    };
    for together in together(rows) {
        let first = &together[0];
        let mut cells =
            vec![first.setting.table.clone(), first.setting.trace.clone(), first.batch.to_string()];
        cells.extend(["gamt", "gamt-all", "gamt-s", "dir24", "dir24-all"].map(|engine| {
            let row = together.iter().find(|row| row.engine == engine);
            row.map_or_else(String::new, |row| millions(&row.rounds))
        }));
        sheet.rows.push(cells);
    }
    sheet
}

/// Figure 10: rates by table and traffic, and how they compare.
pub fn by_table(rows: &[Row]) -> Sheet {
    let mut sheet = Sheet {
        title: "Figure 10: million lookups a second by table and traffic (paper: GAMT up to 2.0 times GALE with random traffic, 1.2 by \
                prefix; from prefix to random GAMT loses 11-14 %, GALE 50 %)"
            .into(),
        columns: &["table", "traffic", "engine", "mlookups_per_s", "times_dir24", "lost_to_random_percent"],
        rows: Vec::new(),
    };
    for together in together(rows) {
        for row in together {
            let all = row.engine.ends_with(super::ALL);
            let gale = if all { "dir24-all" } else { "dir24" };
            let gale = together.iter().find(|other| other.engine == gale);
            sheet.rows.push(vec![
                row.setting.table.clone(),
                row.setting.trace.clone(),
                row.engine.clone(),
                millions(&row.rounds),
                gale.map_or_else(String::new, |gale| format!("{:.2}", ratio(&row.rounds, &gale.rounds))),
                lost(row, rows).map_or_else(String::new, |part| format!("{:.0}", 100.0 * part)),
            ]);
        }
    }
    sheet
}

/// Rows that were measured in the same rounds.
fn together(rows: &[Row]) -> impl Iterator<Item = &[Row]> {
    rows.chunk_by(|a, b| {
        (&a.setting.table, &a.setting.trace, a.batch) == (&b.setting.table, &b.setting.trace, b.batch)
    })
}

/// The part of its rate by prefix that an engine loses with random traffic; of a row of random traffic.
fn lost(random: &Row, rows: &[Row]) -> Option<f64> {
    let by_prefix = rows.iter().find(|row| {
        row.setting.trace == TraceKind::Prefix.to_string()
            && (&row.setting.table, &row.engine, row.batch)
                == (&random.setting.table, &random.engine, random.batch)
    })?;
    let is_random = random.setting.trace == TraceKind::Random.to_string();
    is_random.then(|| 1.0 - crate::report::median(&random.rounds) / crate::report::median(&by_prefix.rounds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(trace: &str, engine: &str, batch: usize, rounds: [f64; 3]) -> Row {
        Row {
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
            what: "batch",
            batch,
            rounds: rounds.to_vec(),
            unit: "keys/s",
            memory: 0,
            build_seconds: 0.0,
            ratio: None,
        }
    }

    #[test]
    fn a_line_for_each_batch_with_a_column_for_each_engine() {
        let rows = [
            row("random", "gamt", 1, [1e6, 2e6, 3e6]),
            row("random", "gamt-s", 1, [1e6; 3]),
            row("random", "gamt", 2, [4e6; 3]),
            row("random", "dir24", 2, [5e6; 3]),
            row("prefix", "gamt", 2, [6e6; 3]),
        ];
        let sheet = by_batch(&rows);
        let lines: Vec<_> = sheet.rows.iter().map(|cells| cells[1..].join("|")).collect();
        assert_eq!(lines, ["random|1|2.00||1.00||", "random|2|4.00|||5.00|", "prefix|2|6.00||||"]);
    }

    #[test]
    fn engines_are_held_against_gale_walked_by_as_many() {
        let rows = [
            row("random", "gamt", 8, [1e6, 2e6, 3e6]),
            row("random", "gamt-all", 8, [8e6; 3]),
            row("random", "dir24", 8, [1e6; 3]),
            row("random", "dir24-all", 8, [2e6; 3]),
            row("prefix", "gamt", 8, [4e6; 3]),
        ];
        let sheet = by_table(&rows);
        let line = |at: usize| sheet.rows[at][2..].join("|");
        assert_eq!(line(0), "gamt|2.00|2.00|50");
        assert_eq!(line(1), "gamt-all|8.00|4.00|");
        assert_eq!(line(4), "gamt|4.00||");
    }
}
