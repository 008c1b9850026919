//! Figures 11 and 15: rate and bytes a prefix by the number of levels.
//!
//! Each number of levels has the strides of the paper's Algorithm 3, for transactions of 128 bytes as on the
//! paper's GPU. The last line is the choice that is made where nothing is asked for: least expected cost of a
//! lookup.

use anyhow::Result;
use wirespeed_fib::trace::TraceKind;
use wirespeed_fib::{Address, BuildOptions, Family, InFib, Rib, Strides};
use wirespeed_gamt::GamtT;
use wirespeed_gamt::strides::{Description, Objective, Profile, Units, choose};

use super::{check, lanes, lookup, millions};
use crate::contest;
use crate::data::Source;
use crate::report::{Row, Sheet, median};
use crate::session::{self, Options, setting_on};
use crate::table::Lane;
use crate::trace::Trace;

/// Bytes of a transaction of the paper's GPU (footnote 6).
const TRANSACTION: u32 = 128;

/// The numbers of levels that the paper sweeps.
pub fn sweep(family: Family) -> std::ops::RangeInclusive<u8> {
    match family {
        Family::V4 => 4..=20,
        Family::V6 => 8..=30,
    }
}

/// What is asked for and how a lane that has it is called.
fn asked(family: Family) -> impl Iterator<Item = (String, Strides)> {
    let by_levels = sweep(family)
        .map(|levels| (levels.to_string(), Strides::Levels { levels, transaction: TRANSACTION }));
    by_levels.chain([("fastest".to_owned(), Strides::Fastest)])
}

/// Rates of tables of all numbers of levels, by one core and by all, in batches of one size: rows, and the
/// figure.
pub fn measure<A: InFib>(options: &Options, batch: usize, source: &Source) -> Result<(Vec<Row>, Sheet)> {
    let (rib, next_hops) = source.rib::<A>()?;
    let setting = session::setting(source, &rib, &next_hops);
    let mut all: Vec<Box<dyn Lane<A>>> = Vec::new();
    for (name, strides) in asked(A::FAMILY) {
        all.extend(lanes::<A, GamtT<A>>(&name, &rib, &BuildOptions { strides, ..BuildOptions::default() })?);
    }
    let mut rows = Vec::new();
    for kind in [TraceKind::Random, TraceKind::Prefix] {
        let trace = Trace::draw(&rib, kind, options.keys, options.seed)?;
        let expected = contest::expected(&rib, &trace);
        check(&mut all, batch, &trace, &expected)?;
        let setting = setting_on(&setting, &trace, &expected);
        rows.extend(lookup::race(&setting, &mut all, batch, &trace, options.plan()));
    }
    let sheet = figure(&source.name, &rib, &rows)?;
    Ok((rows, sheet))
}

/// The figure of a table from its rows.
fn figure<A: Address>(table: &str, rib: &Rib<A>, rows: &[Row]) -> Result<Sheet> {
    let title = match A::FAMILY {
        Family::V4 => {
            "Figure 11: million lookups a second and bytes a prefix by levels (paper: GAMT best at 6 levels, MAMT the fewer the \
             better; 22 B a prefix at 6)"
        }
        Family::V6 => {
            "Figure 15: IPv6, million lookups a second and bytes a prefix by levels (paper: GAMT best at 20, 658)"
        }
    };
    let mut sheet = Sheet {
        title: title.into(),
        columns: &[
            "table",
            "levels",
            "strides",
            "random",
            "prefix",
            "random_all",
            "prefix_all",
            "bytes_per_prefix",
            "with_head_room",
            "as_the_paper_counts",
            "transactions",
            "expected_ns",
            "random_ns",
            "prefix_ns",
        ],
        rows: Vec::new(),
    };
    let (profile, objective) = (Profile::of(rib), Objective::default());
    for (name, strides) in asked(A::FAMILY) {
        let largest = rib.max_next_hop().0;
        let chosen = choose(&profile, &strides, largest, &objective)?;
        let chosen =
            Description::of(&profile, &chosen, Units::of(&strides), largest, TRANSACTION, &objective);
        let row = |trace: TraceKind, all: &str| {
            rows.iter()
                .find(|row| row.engine == format!("{name}{all}") && row.setting.trace == trace.to_string())
        };
        let rate = |trace, all| row(trace, all).map_or_else(String::new, |row| millions(&row.rounds));
        let nanoseconds = |trace| {
            row(trace, "").map_or_else(String::new, |row| format!("{:.2}", 1e9 / median(&row.rounds)))
        };
        let memory = row(TraceKind::Random, "").map_or(0, |row| row.memory);
        let strides: Vec<_> = chosen.strides.iter().map(u8::to_string).collect();
        sheet.rows.push(vec![
            table.to_owned(),
            name.clone(),
            strides.join("-"),
            rate(TraceKind::Random, ""),
            rate(TraceKind::Prefix, ""),
            rate(TraceKind::Random, super::ALL),
            rate(TraceKind::Prefix, super::ALL),
            format!("{:.1}", chosen.bytes_per_prefix),
            format!("{:.1}", memory as f64 / rib.len().max(1) as f64),
            format!("{:.1}", chosen.paper_bytes_per_prefix),
            chosen.transactions.to_string(),
            format!("{:.2}", chosen.nanoseconds),
            nanoseconds(TraceKind::Random),
            nanoseconds(TraceKind::Prefix),
        ]);
    }
    Ok(sheet)
}
