//! Figure 19 and section 5.4.5: what a table takes, and how it grows over a day of updates.
//!
//! Deletion is lazy: nodes of withdrawn prefixes stay until their place is wanted. So the used units grow
//! beyond those that the routes need. Both are shown here: the units in use, the units of a table built anew
//! at that moment with the same strides, and the capacity. Memory is that of the table twice over, as the
//! paper keeps a backup on the device and a live table has two copies.

use anyhow::Result;
use wirespeed_fib::{Address, BuildOptions, Engine, Family, Rib, Strides, Update};
use wirespeed_gamt::strides::Profile;
use wirespeed_gamt::{GamtS, GamtT, LevelUsage};
use wirespeed_image::Table;

use super::update::{Offline, Played};
use crate::report::Sheet;

/// Updates a call.
const CALL: usize = 4_096;
/// Points of the curve past the first.
const POINTS: usize = 24;

/// An engine that says how full its levels are.
pub trait Levelled<A: Address>: Engine<A> {
    /// The use of each level.
    fn usage(&self) -> Vec<LevelUsage>;
}

impl<A: Address> Levelled<A> for GamtT<A> {
    fn usage(&self) -> Vec<LevelUsage> {
        self.usage()
    }
}

impl<A: Address> Levelled<A> for GamtS<A> {
    fn usage(&self) -> Vec<LevelUsage> {
        self.usage()
    }
}

/// An empty sheet of memory.
pub fn sizes() -> Sheet {
    Sheet {
        title: "Section 5.4.5: memory (paper, 450,752 prefixes at 6 levels: 22 B a prefix; with head room and backup 19.1 MB, 29.8 % of \
                GALE's 64 MB)"
            .into(),
        columns: &[
            "table",
            "engine",
            "strides",
            "prefixes",
            "used_units",
            "room_units",
            "bytes_per_prefix_used",
            "image_bytes",
            "bytes_per_prefix",
            "with_backup",
            "percent_of_gale",
        ],
        rows: Vec::new(),
    }
}

/// An empty sheet of growth.
pub fn growth() -> Sheet {
    Sheet {
        title: "Figure 19: units in use over a day of updates, deleted lazily (paper: array width grows under 8 % in a week)"
            .into(),
        columns: &[
            "table",
            "engine",
            "strides",
            "updates",
            "prefixes",
            "used_units",
            "growth_percent",
            "needed_units",
            "kept_lazily_percent",
            "array_width",
            "width_growth_percent",
            "room_units",
            "fullest_level_percent",
            "rebuilds",
        ],
        rows: Vec::new(),
    }
}

/// Bytes of DIR-24-8 with entries of 4 bytes, without chunks: what the paper says of GALE.
const GALE: f64 = 4.0 * 16_777_216.0;

/// The sizes of a table.
pub fn sizes_row<A: Address, E: Levelled<A>>(
    table: &str,
    rib: &Rib<A>,
    options: &BuildOptions,
) -> Result<Vec<String>> {
    let (engine, built) = E::build(rib, options)?;
    let usage = engine.usage();
    let (used, room) = (used(&usage), room(&usage));
    let used_bytes = usage.iter().map(|level| level.used_units * u64::from(level.unit_bytes)).sum();
    let bytes = built.image().bytes();
    let per_prefix = |bytes: u64| format!("{:.1}", bytes as f64 / rib.len().max(1) as f64);
    Ok(vec![
        table.to_owned(),
        E::NAME.to_owned(),
        strides(&usage),
        rib.len().to_string(),
        used.to_string(),
        room.to_string(),
        per_prefix(used_bytes),
        bytes.to_string(),
        per_prefix(bytes),
        (2 * bytes).to_string(),
        // Twice each: with a backup, or a second live copy.
        format!("{:.1}", 100.0 * bytes as f64 / GALE),
    ])
}

/// The curve of a day: a row at the start and after each part of the updates.
pub fn growth_rows<A: Address, E: Levelled<A>>(
    table: &str,
    rib: &Rib<A>,
    updates: &[Update<A>],
    options: &BuildOptions,
) -> Result<Vec<Vec<String>>> {
    let mut offline = Offline::<A, E>::new(rib, options)?;
    let mut played = Played::default();
    let start = offline.engine().usage();
    let mut rows = vec![growth_row(table, &offline, &played, &start)];
    for part in updates.chunks(updates.len().div_ceil(POINTS).max(1)) {
        for call in part.chunks(CALL) {
            offline.call(call, &mut played)?;
        }
        rows.push(growth_row(table, &offline, &played, &start));
    }
    Ok(rows)
}

fn growth_row<A: Address, E: Levelled<A>>(
    table: &str,
    offline: &Offline<A, E>,
    played: &Played,
    start: &[LevelUsage],
) -> Vec<String> {
    let usage = offline.engine().usage();
    let needed = needed(offline.rib(), &usage);
    let percent = |of: u64, by: u64| format!("{:.2}", 100.0 * (of as f64 / by.max(1) as f64 - 1.0));
    let fullest = usage.iter().skip(1).map(|level| level.used_units as f64 / level.room_units as f64);
    vec![
        table.to_owned(),
        E::NAME.to_owned(),
        strides(&usage),
        played.updates.to_string(),
        offline.rib().len().to_string(),
        used(&usage).to_string(),
        percent(used(&usage), used(start)),
        needed.to_string(),
        percent(used(&usage), needed),
        width(&usage).to_string(),
        percent(width(&usage), width(start)),
        room(&usage).to_string(),
        format!("{:.1}", 100.0 * fullest.fold(0.0, f64::max)),
        played.rebuilds.to_string(),
    ]
}

/// The strides that the paper chose (section 5.2.1), and those that are chosen where nothing is asked.
pub fn asked(family: Family) -> [Strides; 2] {
    let levels = match family {
        Family::V4 => 6,
        Family::V6 => 20,
    };
    [Strides::Levels { levels, transaction: 128 }, Strides::Fastest]
}

fn strides(usage: &[LevelUsage]) -> String {
    usage.iter().map(|level| level.stride.to_string()).collect::<Vec<_>>().join("-")
}

fn used(usage: &[LevelUsage]) -> u64 {
    usage.iter().map(|level| level.used_units).sum()
}

fn room(usage: &[LevelUsage]) -> u64 {
    usage.iter().map(|level| level.room_units).sum()
}

/// The paper's array width.
fn width(usage: &[LevelUsage]) -> u64 {
    usage.iter().map(|level| level.used_units).max().unwrap_or(0)
}

/// Units of a table that was built for the routes as they are, of the same strides.
fn needed<A: Address>(rib: &Rib<A>, usage: &[LevelUsage]) -> u64 {
    let profile = Profile::of(rib);
    let mut start = 0;
    let mut units = 0;
    for level in usage {
        units += profile.units(start, level.stride);
        start += level.stride;
    }
    units
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::{NextHop, V4};

    use super::*;

    #[test]
    fn what_is_withdrawn_stays_in_use_and_is_not_needed() {
        let route = |text: &str| (text.parse().unwrap(), NextHop(1));
        let rib: Rib<V4> = [route("10.0.0.0/8"), route("10.1.2.0/24")].into_iter().collect();
        let withdraw = Update::Withdraw { prefix: "10.1.2.0/24".parse().unwrap() };
        let announce =
            |text: &str| Update::Announce { prefix: text.parse().unwrap(), next_hop: Some(NextHop(2)) };
        let updates = [withdraw, announce("11.0.0.0/8"), announce("10.2.0.0/24")];
        let options = BuildOptions { strides: Strides::Given(vec![8, 8, 8]), ..BuildOptions::default() };
        let sheet = growth();
        for rows in [
            growth_rows::<V4, GamtT<V4>>("t", &rib, &updates, &options).unwrap(),
            growth_rows::<V4, GamtS<V4>>("t", &rib, &updates, &options).unwrap(),
        ] {
            let column = |name: &str| {
                let at = sheet.columns.iter().position(|column| *column == name).unwrap();
                rows.iter().map(|row| row[at].as_str()).collect::<Vec<_>>()
            };
            assert_eq!(column("updates"), ["0", "1", "2", "3"]);
            assert_eq!(column("prefixes"), ["2", "1", "2", "3"]);
            // Root, 10/8, 10.1/16; then 10.2/16 as well.
            assert_eq!(column("used_units"), ["768", "768", "768", "1024"]);
            assert_eq!(column("needed_units"), ["768", "256", "256", "768"]);
            assert_eq!(column("kept_lazily_percent"), ["0.00", "200.00", "200.00", "33.33"]);
            assert_eq!(column("array_width"), ["256", "256", "256", "512"]);
            assert_eq!(column("growth_percent")[3], "33.33");
            assert_eq!(column("rebuilds"), ["0"; 4]);
        }
    }
}
