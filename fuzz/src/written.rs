//! Files that are written in the formats of people's files read back as they were meant.

use wirespeed_fib::read::{Format, ReadOptions, read_fib_from, read_vrps_from};
use wirespeed_fib::write::{write_fib, write_vrps};
use wirespeed_fib::{Address, Rib};
use wirespeed_namelookup::list::{Resolved, Scope};
use wirespeed_namelookup::read::Labels;
use wirespeed_namelookup::read::lists::{ListFormat, ListOptions, read_list_from};
use wirespeed_namelookup::write::write_list;
use wirespeed_namelookup::{Name, NameBuf};

use super::plain;

/// Reads routes of any format and payloads of CSV, and writes them as CSV, sets and payloads.
pub fn tables_written(bytes: &[u8]) {
    let options = |format, lenient| ReadOptions { format, lenient, ..ReadOptions::default() };
    if let Ok((fib, _)) = read_fib_from(bytes, "fuzz", &options(None, true)) {
        for format in [Format::Csv, Format::Ipset, Format::NftSets] {
            let mut written = Vec::new();
            if fib.is_empty() || write_fib(&fib, format, &mut written).is_err() {
                continue;
            }
            let again = read_fib_from(&written[..], "again", &options(Some(format), false));
            let (again, _) = again.unwrap_or_else(|error| panic!("{format}: {error}"));
            if format == Format::NftSets {
                // Prefixes within others are left out.
                outermost(&fib.v4, &again.v4);
                outermost(&fib.v6, &again.v6);
                continue;
            }
            // A table without records has one column, whose values are the texts that next hops had.
            assert_eq!(plain(&again), plain(&fib), "{format}");
        }
    }
    for of in [Format::VrpCsv, Format::VrpJson] {
        let Ok((vrps, _)) = read_vrps_from(bytes, "fuzz", &options(Some(of), true)) else { continue };
        for format in [Format::VrpCsv, Format::VrpJson] {
            let mut written = Vec::new();
            write_vrps(&vrps, format, &mut written).expect("memory takes it");
            let (again, _) = read_vrps_from(&written[..], "again", &options(Some(format), vrps.is_empty()))
                .expect("what was written reads back");
            assert!(again.v4.iter().eq(vrps.v4.iter()) && again.v6.iter().eq(vrps.v6.iter()));
            for vrp in vrps.v4.iter() {
                assert!(again.anchors.of_v4(vrp).eq(vrps.anchors.of_v4(vrp)));
            }
            for vrp in vrps.v6.iter() {
                assert!(again.anchors.of_v6(vrp).eq(vrps.anchors.of_v6(vrp)));
            }
        }
    }
}

/// Checks that what was written are the prefixes that lie within no other.
fn outermost<A: Address>(all: &Rib<A>, written: &Rib<A>) {
    let outermost = all.iter().filter(|&(prefix, _)| all.covering(prefix).count() == 1);
    assert!(outermost.map(|(prefix, _)| prefix).eq(written.iter().map(|(prefix, _)| prefix)));
}

/// Reads a list of each format, and writes it in each.
pub fn lists_written(bytes: &[u8]) {
    for of in ListFormat::ALL {
        let options = |format| ListOptions { format: Some(format), lenient: true, ..ListOptions::default() };
        let Ok((read, _)) = read_list_from(bytes, "fuzz", &options(of)) else { continue };
        let meant = read.list.clone().resolve();
        for format in ListFormat::ALL {
            let mut written = Vec::new();
            if write_list(&read.list, &read.labels, format, &mut written).is_err() {
                continue;
            }
            let (again, report) = read_list_from(&written[..], "again", &options(format)).expect("a list");
            assert_eq!(report.faults(), 0);
            let labels = again.labels;
            let again = again.list.resolve();
            for (name, ..) in read.list.iter() {
                let mut beneath: NameBuf = name.clone();
                beneath.push(b"x").expect("names of lines are far from the limit");
                for asked in [name.parent().unwrap_or(Name::ROOT), &name, &beneath] {
                    let found = answer(&meant, &read.labels, asked);
                    assert_eq!(answer(&again, &labels, asked), found, "{of} as {format}: {asked}");
                }
            }
        }
    }
}

/// The value of a name, which is `None` in an exception.
fn answer(list: &Resolved, labels: &Labels, name: &Name) -> Option<Option<String>> {
    let found = list.lookup(name)?;
    assert!(Scope::ALL.contains(&found.scope));
    Some(labels.label(found.verdict.result()).map(|label| label.to_string()))
}
