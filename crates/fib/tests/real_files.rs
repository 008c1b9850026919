//! The readers on real files, where they are at hand. Where they are not, each test says that it skips.

#![allow(clippy::unwrap_used)] // a test's helpers may panic like the test

use std::collections::BTreeMap;

use bgpkit_parser::models::ElemType;
use bgpkit_parser::parser::parse_mrt_record;
use bgpkit_parser::{BgpElem, Elementor};
use wirespeed_fib::read::{
    self, Compression, Format, PeerChoice, Place, ReadError, ReadOptions, Source, TimedUpdate,
};
use wirespeed_fib::{AnyUpdate, Fib, NextHop, NextHops, Update};
use wirespeed_image::real_data;

fn strict() -> ReadOptions {
    ReadOptions::default()
}

/// Updates of all peers, mixed.
fn of_all() -> ReadOptions {
    ReadOptions { peer: Some(PeerChoice::All), ..strict() }
}

fn lenient() -> ReadOptions {
    ReadOptions { lenient: true, ..strict() }
}

/// A file of the real data.
fn file(name: &str) -> Option<Source> {
    real_data(name).map(Source::from)
}

fn table(source: &Source, options: &ReadOptions) -> (Fib, read::ReadReport) {
    read::read_fib(source, options).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn plain_tables_are_read_whole() {
    for (name, v4, v6, hops) in [
        ("fib/ris-20260511-v4.txt.zst", 1_042_325, 0, 62),
        ("fib/ris-20260511-v6.txt.zst", 0, 246_175, 62),
        ("fib/ris-20260511-v4-asn.txt.zst", 1_042_325, 0, 79_563),
        ("fib/ris-20260511-v6-asn.txt.zst", 0, 246_175, 36_111),
        ("fib/ris-20100701-v4-neighbor.txt.zst", 318_457, 0, 255),
        ("fib/orange-v6-asn.txt.zst", 0, 176_388, 0),
    ] {
        let Some(source) = file(name) else { continue };
        let (fib, report) = table(&source, &strict());
        assert_eq!((fib.v4.len(), fib.v6.len()), (v4, v6), "{name}");
        assert_eq!((report.format, report.compression), (Format::Plain, Compression::Zstd));
        assert_eq!(report.repeated, 0);
        if hops > 0 {
            assert_eq!(fib.next_hops.len(), hops, "{name}");
        }
    }
}

#[test]
fn a_table_with_one_bad_line_is_refused_or_read_without_it() {
    let Some(source) = file("fib/orange-v4-asn.txt.zst") else { return };
    let message = read::read_fib(&source, &strict()).unwrap_err().to_string();
    assert!(message.ends_with(":1072525: host bits are set: \"172.20.0.0/12 64501\""), "{message}");
    let (fib, report) = table(&source, &lenient());
    assert_eq!((fib.v4.len(), report.faults()), (1_072_528, 1));
}

#[test]
fn a_real_table_written_in_plain_reads_back_the_same() {
    let Some(source) = file("fib/ris-20260511-v6.txt.zst") else { return };
    let (fib, _) = table(&source, &strict());
    let mut text = Vec::new();
    wirespeed_fib::write::write_fib(&fib, Format::Plain, &mut text).unwrap();
    let (again, _) = read::read_fib_from(&text[..], "again", &strict()).unwrap();
    assert!(again.v6.iter().eq(fib.v6.iter()) && again.next_hops.iter().eq(fib.next_hops.iter()));
}

#[test]
fn plain_updates_are_read_whole_with_the_tables_next_hops() {
    for (family, count) in [("v4", 1_393_421), ("v6", 1_238_235)] {
        let (Some(fib), Some(updates)) = (
            file(&format!("fib/ris-20260511-{family}.txt.zst")),
            file(&format!("updates/ris-20260511-{family}.txt.zst")),
        ) else {
            continue;
        };
        let (mut fib, _) = table(&fib, &strict());
        let known = fib.next_hops.len();
        let (updates, report) = read::collect_updates(&updates, &strict(), &mut fib.next_hops).unwrap();
        assert_eq!((updates.len(), report.routes), (count, count as u64));
        assert_eq!(fib.next_hops.len(), known);
    }
}

#[test]
fn complete_mrt_tables_are_read_strictly() {
    let peer = |address: &str| Some(PeerChoice::Address(address.parse().unwrap()));
    for (name, peer, v4) in [
        ("mrt/bview.20020722.2337.gz", None, 112_986),
        ("mrt/routeviews-rib.20140523.0600.first9072.mrt.bz2", None, 8_944),
        ("mrt/routeviews-rib.20140523.0600.first9072.mrt.bz2", peer("85.114.0.217"), 8_944),
    ] {
        let Some(source) = file(name) else { continue };
        let (fib, report) = table(&source, &ReadOptions { peer, ..strict() });
        assert_eq!((fib.v4.len(), fib.v6.len(), report.faults()), (v4, 0, 0), "{report}");
        assert_eq!(report.chosen_peers().count(), 1);
    }
}

#[test]
fn a_cut_off_mrt_table_is_an_error_or_gives_what_is_whole() {
    let (Some(cut), Some(whole)) =
        (file("mrt/truncated-rib.20140523.bz2"), file("mrt/routeviews-rib.20140523.0600.first9072.mrt.bz2"))
    else {
        return;
    };
    match read::read_fib(&cut, &strict()) {
        Err(ReadError::CutOff { place: Place::Byte(_), records: 9073, .. }) => {}
        other => panic!("{other:?}"),
    }
    let (part, report) = table(&cut, &lenient());
    assert!(report.truncated.is_some());
    assert!(part.v4.iter().eq(table(&whole, &strict()).0.v4.iter()));
}

#[test]
fn small_mrt_files_of_many_kinds_are_read_strictly() {
    let Some(Source::Path(directory)) = file("mrt/small") else { return };
    for entry in directory.read_dir().unwrap() {
        let source = Source::from(entry.unwrap().path());
        let is_updates = source.to_string().ends_with("bgp");
        let taken = match is_updates {
            true => read::collect_updates(&source, &strict(), &mut NextHops::new()).map(|(_, report)| report),
            false => read::read_fib(&source, &strict()).map(|(_, report)| report),
        };
        match taken {
            Ok(report) => assert!(report.routes > 0, "{report}"),
            // Of a kind that RFC 6396 has dropped (BGP4MP_ENTRY).
            Err(ReadError::Nothing { name, .. }) if name.ends_with("openbgpd_rib_table-mp") => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn our_decoding_of_tables_agrees_with_bgpkits() {
    for name in [
        "mrt/bview.20020722.2337.gz",
        "mrt/routeviews-rib.20140523.0600.first9072.mrt.bz2",
        "mrt/small/quagga_rib",
        "mrt/small/openbgpd_rib_table",
        "mrt/small/openbgpd_rib_table-v2",
    ] {
        let Some(source) = file(name) else { continue };
        let (fib, report) = table(&source, &strict());
        let mut ours = BTreeMap::new();
        for (prefix, hop) in &fib.v4 {
            ours.insert(prefix.to_string(), fib.next_hops.text(hop).unwrap().to_owned());
        }
        for (prefix, hop) in &fib.v6 {
            ours.insert(prefix.to_string(), fib.next_hops.text(hop).unwrap().to_owned());
        }
        let mut input = read::open(&source).unwrap();
        let mut elementor = Elementor::new();
        let mut theirs = BTreeMap::new();
        while let Ok(record) = parse_mrt_record(&mut input) {
            for elem in elementor.record_to_elems(record) {
                let family = usize::from(elem.prefix.prefix.addr().is_ipv6());
                let is_chosen = |peer: &read::Peer| {
                    peer.chosen[family] && (peer.address, peer.asn) == (elem.peer_ip, elem.peer_asn.to_u32())
                };
                if report.peers.iter().any(is_chosen) {
                    let hop = elem.next_hop.unwrap_or(elem.peer_ip);
                    let hop = if hop.is_unspecified() { "local".to_owned() } else { hop.to_string() };
                    theirs.entry(elem.prefix.prefix.trunc().to_string()).or_insert(hop);
                }
            }
        }
        assert!(!ours.is_empty() && ours == theirs, "{name}");
    }
}

/// Time in microseconds, what is said of which prefix, next hop, of the updates in a file.
type Said = (u128, String, Option<String>);

fn ours(source: &Source) -> Vec<Said> {
    let mut hops = NextHops::new();
    let (updates, _) = read::collect_updates(source, &of_all(), &mut hops).unwrap();
    let text = |hop: Option<NextHop>| hop.and_then(|hop| hops.text(hop)).map(str::to_owned);
    let said = |TimedUpdate { time, update }: &TimedUpdate| {
        let (prefix, hop) = match *update {
            AnyUpdate::V4(Update::Announce { prefix, next_hop }) => (prefix.to_string(), text(next_hop)),
            AnyUpdate::V6(Update::Announce { prefix, next_hop }) => (prefix.to_string(), text(next_hop)),
            AnyUpdate::V4(Update::Withdraw { prefix }) => (prefix.to_string(), None),
            AnyUpdate::V6(Update::Withdraw { prefix }) => (prefix.to_string(), None),
        };
        (time.unwrap().as_micros(), prefix, hop)
    };
    updates.iter().map(said).collect()
}

fn bgpkits(source: &Source) -> Vec<Said> {
    let mut input = read::open(source).unwrap();
    let mut elementor = Elementor::new();
    let mut said = Vec::new();
    while let Ok(record) = parse_mrt_record(&mut input) {
        for BgpElem { timestamp, elem_type, prefix, next_hop, .. } in elementor.record_to_elems(record) {
            let net = prefix.prefix.trunc();
            let micros = (timestamp * 1e6).round();
            let hop = next_hop.filter(|_| elem_type == ElemType::ANNOUNCE).map(|hop| hop.to_string());
            said.push((format!("{micros}").parse().unwrap(), net.to_string(), hop));
        }
    }
    said
}

#[test]
fn updates_are_those_of_one_peer() {
    let Some(source) = file("mrt/updates.20160811.1600.gz") else { return };
    let of = |options: &ReadOptions| {
        let (updates, report) = read::collect_updates(&source, options, &mut NextHops::new()).unwrap();
        let taken: Vec<_> = report.peer_by_family().into_iter().flatten().map(|peer| peer.address).collect();
        (updates.len(), report.peers, taken)
    };
    let (all, peers, taken) = of(&of_all());
    assert!(peers.len() == 35 && taken.is_empty() && peers.iter().all(|peer| peer.chosen != [false; 2]));
    let (one, again, taken) = of(&strict());
    assert!(one < all / 5 && again.len() == 35 && taken.len() == 2, "{one} of {all}");
    let most = again.iter().map(|peer| peer.prefixes[0]).max().unwrap();
    assert!(again.iter().all(|peer| !peer.chosen[0] || peer.prefixes[0] == most));
    // That of the table, however few its updates are.
    let few = *peers.iter().filter(|peer| peer.prefixes[0] > 0).min_by_key(|peer| peer.prefixes[0]).unwrap();
    let (_, of_table, _) = of(&ReadOptions { peers_of_table: [Some(few), None], ..strict() });
    let chosen: Vec<_> = of_table.iter().filter(|peer| peer.chosen[0]).map(|peer| peer.address).collect();
    assert_eq!(chosen, [few.address]);
}

#[test]
fn our_decoding_of_updates_agrees_with_bgpkits() {
    let mut names = vec!["mrt/updates.20160811.1600.gz".to_owned()];
    names.extend(
        ["bird6_bgp", "bird_bgp", "openbgpd_bgp", "quagga_bgp"].map(|name| format!("mrt/small/{name}")),
    );
    for name in names {
        let Some(source) = file(&name) else { continue };
        // Within a message the two put withdrawals and announcements in different orders.
        let count = |said: Vec<Said>| {
            let mut counts = BTreeMap::<_, u32>::new();
            said.into_iter().for_each(|said| *counts.entry(said).or_default() += 1);
            counts
        };
        let (ours, theirs) = (count(ours(&source)), count(bgpkits(&source)));
        assert!(!ours.is_empty());
        let differences: Vec<_> =
            ours.iter().filter(|(said, n)| theirs.get(said) != Some(n)).take(5).collect();
        let others: Vec<_> = theirs.iter().filter(|(said, n)| ours.get(said) != Some(n)).take(5).collect();
        assert!(differences.is_empty() && others.is_empty(), "{name}: {differences:?} {others:?}");
    }
}
