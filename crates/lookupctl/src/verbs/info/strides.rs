//! `info --strides`: the choices of strides that a table has, and what each comes to.

use std::fmt;

use anyhow::Result;
use serde::Serialize;
use wirespeed_fib::{Address, Family, Rib, Strides};
use wirespeed_gamt::strides::{Description, Level, Objective, Profile, Units, choose};

use crate::family::number_of;
use crate::number::{Bytes, Grouped, counted_u64};
use crate::output::Output;

/// Every choice for one family of a table.
pub(super) struct Choices {
    file: String,
    family: Family,
    prefixes: u64,
    transaction_bytes: u32,
    /// A choice for each number of levels that the paper sweeps, as far as the table has bits for them.
    by_levels: Vec<Description>,
    fastest: Description,
}

impl Choices {
    pub(super) fn of<A: Address>(file: &str, rib: &Rib<A>, transaction_bytes: u32) -> Result<Self> {
        let (profile, objective) = (Profile::of(rib), Objective::default());
        let largest = rib.max_next_hop().0;
        let describe = |asked: &Strides| {
            let strides = choose(&profile, asked, largest, &objective)?;
            let units = Units::of(asked);
            Ok(Description::of(&profile, &strides, units, largest, transaction_bytes, &objective))
        };
        let by_levels = sweep(A::FAMILY)
            .filter(|&levels| levels <= profile.deepest())
            .map(|levels| describe(&Strides::Levels { levels, transaction: transaction_bytes }))
            .collect::<Result<_>>()?;
        Ok(Self {
            file: file.to_owned(),
            family: A::FAMILY,
            prefixes: profile.prefixes(),
            transaction_bytes,
            by_levels,
            fastest: describe(&Strides::Fastest)?,
        })
    }

    /// One object for each choice, the fastest last.
    pub(super) fn json(&self, output: &mut Output) -> Result<()> {
        let by_levels = self.by_levels.iter().map(|choice| ("levels", choice));
        by_levels.chain([("fastest", &self.fastest)]).try_for_each(|(choice, description)| {
            output.json(&Object::of(&self.file, number_of(self.family), choice, description))
        })
    }

    /// A table of them, the fastest last.
    pub(super) fn print(&self, output: &mut Output) -> Result<()> {
        output.line(format_args!(
            "\n{}: {}; strides by number of levels, the widest as narrow as can be, then with the fewest \
             transactions of {} bytes",
            self.family,
            counted_u64(self.prefixes, "prefix"),
            self.transaction_bytes
        ))?;
        output.line(HEADING)?;
        self.by_levels.iter().try_for_each(|choice| output.line(Line(choice)))?;
        output.line(
            "fastest, by what reads of levels cost in batches, half of the keys random, half by prefix:",
        )?;
        output.line(Line(&self.fastest))?;
        output.line(NOTE)
    }
}

/// The numbers of levels in figures 11 and 15 of the paper.
fn sweep(family: Family) -> std::ops::RangeInclusive<u8> {
    match family {
        Family::V4 => 4..=20,
        Family::V6 => 8..=30,
    }
}

const HEADING: &str =
    "levels  B a prefix  (paper's)         width  transactions  reads     ns  strides: sizes";
const NOTE: &str = "B a prefix is of all levels; the paper counts levels × width (the units of the widest). Head room for \
                    updates comes on top.";

/// A choice as a line of the table.
struct Line<'a>(&'a Description);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let choice = self.0;
        write!(
            f,
            "{:>6} {:>11.1} {:>10.1} {:>14} {:>13} {:>6.2} {:>6.2}  ",
            choice.strides.len(),
            choice.bytes_per_prefix,
            choice.paper_bytes_per_prefix,
            Grouped(choice.array_width),
            Grouped(choice.transactions),
            choice.reads,
            choice.nanoseconds,
        )?;
        let strides: Vec<_> = choice.strides.iter().map(u8::to_string).collect();
        let sizes: Vec<_> = choice.levels.iter().map(|level| Bytes(level.bytes).to_string()).collect();
        write!(f, "{}: {}", strides.join(","), sizes.join(" + "))
    }
}

/// A choice as an object.
#[derive(Debug, Serialize)]
struct Object<'a> {
    file: &'a str,
    family: u8,
    /// `levels`: by their number; `fastest`.
    choice: &'static str,
    prefixes: u64,
    strides: &'a [u8],
    levels: Vec<LevelObject>,
    units: u64,
    bytes: u64,
    array_width: u64,
    bytes_per_prefix: f64,
    paper_bytes_per_prefix: f64,
    transaction_bytes: u32,
    transactions: u64,
    reads: f64,
    nanoseconds: f64,
}

#[derive(Debug, Serialize)]
struct LevelObject {
    start: u8,
    stride: u8,
    nodes: u64,
    units: u64,
    unit_bytes: u32,
    bytes: u64,
    reach_random: f64,
    reach_prefix: f64,
}

impl<'a> Object<'a> {
    fn of(file: &'a str, family: u8, choice: &'static str, described: &'a Description) -> Self {
        let level =
            |&Level {
                 start, stride, nodes, units, unit_bytes, bytes, reach_random, reach_prefix, ..
             }: &Level| {
                LevelObject { start, stride, nodes, units, unit_bytes, bytes, reach_random, reach_prefix }
            };
        Self {
            file,
            family,
            choice,
            prefixes: described.prefixes,
            strides: &described.strides,
            levels: described.levels.iter().map(level).collect(),
            units: described.units,
            bytes: described.bytes,
            array_width: described.array_width,
            bytes_per_prefix: described.bytes_per_prefix,
            paper_bytes_per_prefix: described.paper_bytes_per_prefix,
            transaction_bytes: described.transaction_bytes,
            transactions: described.transactions,
            reads: described.reads,
            nanoseconds: described.nanoseconds,
        }
    }
}
