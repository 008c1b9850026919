//! What the fuzz targets share. Of the readers they check that nothing panics, and that whatever is read,
//! written in plain, reads back equal.

#[path = "../../crates/router/tests/forwarding/any_frames/mod.rs"]
mod any_frames;
#[path = "../../crates/classify/tests/readers/beside_sets/mod.rs"]
mod beside_sets;
mod content;
mod feeds;
#[path = "../../crates/openflow/tests/channel/flow_texts/mod.rs"]
mod flow_texts;
#[path = "../../crates/classify/tests/readers/hostile/mod.rs"]
mod hostile;
#[path = "../../crates/router/tests/forwarding/list.rs"]
mod list;
mod lists;
#[path = "../../crates/fib/tests/mmdb_written/mod.rs"]
mod mmdb_written;
pub mod openflow;
#[path = "../../crates/records/tests/pieces/mod.rs"]
mod pieces;
mod rules;
mod written;

pub use content::{content, names_csv};
pub use feeds::feed;
pub use lists::list;
pub use rules::{policies, rule_updates, rules};
pub use written::{lists_written, tables_written};

use wirespeed_fib::read::{
    Format, PeerChoice, ReadOptions, TimedUpdate, collect_updates_from, read_fib_from, read_vrps_from,
};
use wirespeed_fib::rpki::{Origin, Validity};
use wirespeed_fib::write::{write_fib, write_updates};
use wirespeed_fib::{Fib, NextHops};

/// Makes a hostile file of rules by choices that the bytes give, and holds what is read of it against what it
/// means.
pub fn hostile_rules(bytes: &[u8]) {
    let mut bytes = bytes.iter();
    hostile::check(&mut |bound| {
        let mut next = || usize::from(bytes.next().copied().unwrap_or_default());
        let choice = if bound > 256 { next() << 8 | next() } else { next() };
        choice % bound
    });
}

/// Writes the routes of lines as a MaxMind DB, and reads them back by the crate `maxminddb`.
pub fn mmdb_written(bytes: &[u8]) {
    mmdb_written::check(bytes);
}

/// Reads sets of `ipset save` beside rules of `iptables-save`, which are behind a line `--`.
pub fn rules_beside_sets(bytes: &[u8]) {
    beside_sets::check(bytes);
}

/// Reads a text as flows, groups and meters of OpenFlow.
pub fn flow_text(bytes: &[u8]) {
    flow_texts::check(&String::from_utf8_lossy(bytes));
}

/// Routes any bytes as frames, and gives them to a switch.
pub fn frames(bytes: &[u8]) {
    let frames = any_frames::cut(bytes);
    any_frames::check(&frames);
    openflow::frames(&frames);
}

/// Cuts bytes as records of every format, in pieces and all at once.
pub fn records(bytes: &[u8]) {
    pieces::check(bytes);
}

/// Reads bytes as a table, strictly and leniently; `None` leaves the format to be recognised.
pub fn table(format: Option<Format>, bytes: &[u8]) {
    let strict = ReadOptions { format, ..ReadOptions::default() };
    let lenient = ReadOptions { lenient: true, ..strict.clone() };
    let strictly = read_fib_from(bytes, "fuzz", &strict);
    match read_fib_from(bytes, "fuzz", &lenient) {
        Ok((fib, report)) => {
            let _shown = report.to_string();
            assert!(report.routes - report.repeated == (fib.v4.len() + fib.v6.len()) as u64);
            reads_back(&fib);
            if let Ok((strictly, report)) = strictly {
                assert!(report.faults() == 0 && report.truncated.is_none());
                assert_eq!(plain(&strictly), plain(&fib));
            }
        }
        Err(error) => {
            let _shown = error.to_string();
            assert!(strictly.is_err(), "strict reading took what lenient reading refused: {error}");
        }
    }
    table_by_choice(format, bytes);
}

/// Reads bytes as a table with what changes which routes are taken: host bits masked, a VRF, each peer's.
fn table_by_choice(format: Option<Format>, bytes: &[u8]) {
    let lenient = ReadOptions { format, lenient: true, ..ReadOptions::default() };
    let masked = ReadOptions { mask_host_bits: true, ..lenient.clone() };
    let of_vrf = ReadOptions { vrf: Some("red".into()), ..lenient.clone() };
    let of_all = ReadOptions { peer: Some(PeerChoice::All), ..lenient };
    for options in [masked, of_vrf, of_all] {
        if let Ok((fib, report)) = read_fib_from(bytes, "fuzz", &options) {
            assert!(report.routes - report.repeated == (fib.v4.len() + fib.v6.len()) as u64);
            // An entry of JSON may have several prefixes.
            assert!(report.masked <= report.records.max(report.routes));
            reads_back(&fib);
        }
    }
}

/// Reads bytes as RPKI payloads, strictly and leniently. Every payload allows its own prefix, unless it is of
/// AS 0.
pub fn vrps(format: Format, bytes: &[u8]) {
    let strict = ReadOptions { format: Some(format), ..ReadOptions::default() };
    let lenient = ReadOptions { lenient: true, ..strict.clone() };
    let strictly = read_vrps_from(bytes, "fuzz", &strict);
    match read_vrps_from(bytes, "fuzz", &lenient) {
        Ok((vrps, report)) => {
            let _shown = report.to_string();
            assert_eq!(report.routes - report.repeated, vrps.len() as u64);
            for vrp in vrps.v4.iter() {
                let state = vrps.v4.validate(vrp.prefix(), Origin::As(vrp.asn()));
                assert!(vrp.asn() == 0 || state == Validity::Valid);
            }
            for vrp in vrps.v6.iter() {
                let state = vrps.v6.validate(vrp.prefix(), Origin::As(vrp.asn()));
                assert!(vrp.asn() == 0 || state == Validity::Valid);
            }
            if let Ok((strictly, report)) = strictly {
                assert!(report.faults() == 0 && report.truncated.is_none());
                assert_eq!(strictly.len(), vrps.len());
            }
        }
        Err(error) => {
            let _shown = error.to_string();
            assert!(strictly.is_err(), "strict reading took what lenient reading refused: {error}");
        }
    }
}

/// Reads bytes as updates, strictly and leniently.
pub fn updates(format: Option<Format>, bytes: &[u8]) {
    for (lenient, peer) in [(false, None), (true, None), (true, Some(PeerChoice::All))] {
        let options = ReadOptions { format, lenient, peer, ..ReadOptions::default() };
        let mut hops = NextHops::new();
        if let Ok((updates, report)) = collect_updates_from(bytes, "fuzz", &options, &mut hops) {
            assert_eq!(report.routes, updates.len() as u64);
            let text = text(&updates, &hops);
            let mut again_hops = NextHops::new();
            let options = ReadOptions { format: Some(Format::Updates), lenient, ..ReadOptions::default() };
            let (again, _) = collect_updates_from(&text[..], "again", &options, &mut again_hops)
                .expect("what was written reads back");
            assert!(again == updates && again_hops.iter().eq(hops.iter().take(again_hops.len())));
        }
    }
}

fn plain(fib: &Fib) -> Vec<u8> {
    let mut text = Vec::new();
    write_fib(fib, Format::Plain, &mut text).expect("what was read can be written");
    text
}

fn text(updates: &[TimedUpdate], hops: &NextHops) -> Vec<u8> {
    let mut text = Vec::new();
    write_updates(updates, hops, Format::Updates, &mut text).expect("what was read can be written");
    text
}

fn reads_back(fib: &Fib) {
    if fib.is_empty() {
        return;
    }
    let text = plain(fib);
    let options = ReadOptions { format: Some(Format::Plain), ..ReadOptions::default() };
    let (again, report) = read_fib_from(&text[..], "again", &options).expect("what was written reads back");
    assert_eq!(report.repeated, 0);
    assert_eq!(plain(&again), text);
    // What another format can hold reads back from it, too.
    for format in
        [Format::Pfx2as, Format::Bgpdump, Format::IpRoute, Format::IpRouteJson, Format::FrrJson, Format::Mrt]
    {
        let mut bytes = Vec::new();
        if write_fib(fib, format, &mut bytes).is_ok() {
            let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
            let (again, _) = read_fib_from(&bytes[..], "again", &options)
                .unwrap_or_else(|error| panic!("{format}: {error}"));
            if format != Format::Mrt {
                assert_eq!(plain(&again), text, "{format}");
            }
        }
    }
}

/// Makes the checksum of an image right again, so that what lies behind it is reached.
pub fn seal(image: &mut [u8]) {
    const CHECKSUM: std::ops::Range<usize> = 64..72;
    image[CHECKSUM].fill(0);
    let sum = xxhash_rust::xxh3::xxh3_64(image);
    image[CHECKSUM].copy_from_slice(&sum.to_le_bytes());
}
