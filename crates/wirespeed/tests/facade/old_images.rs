//! Images that an earlier version wrote, one of each engine and kind of key: they open, and answer what they
//! did. They are in `tests/images`, with the tables that they were made of, and stay there for good. A new
//! layout of an engine brings another image beside its old one.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use wirespeed::classify::oracle;
use wirespeed::engine::{EngineName, Engines, RuleTuple, of_domain};
use wirespeed::names::NameDomain;
use wirespeed::prelude::*;
use wirespeed::{Reader, Rib, Table};

use crate::common::{Native, check};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/images")
}

/// Unpacks the image of an engine, and gives its path.
fn unpacked(name: &str, into: &Path) -> PathBuf {
    let packed = std::fs::File::open(folder().join(format!("{name}.img.gz"))).expect(name);
    let (mut bytes, path) = (Vec::new(), into.join(format!("{name}.img")));
    GzDecoder::new(packed).read_to_end(&mut bytes).expect(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Does something with the image of each engine of a domain that there was.
fn each<D: Engines>(kind: &str, act: impl Fn(EngineName, &Path)) {
    let (dir, mut count) = (tempfile::tempdir().unwrap(), 0);
    for engine in of_domain::<D>() {
        let name = format!("{engine}{kind}");
        if folder().join(format!("{name}.img.gz")).exists() {
            act(engine, &unpacked(&name, dir.path()));
            count += 1;
        }
    }
    assert_eq!(count, of_domain::<D>().count(), "an image of each engine");
}

fn routes<A: Native>(kind: &str, file: &str, known: &[(&str, &str)]) {
    let mut labels = Labels::<String>::new();
    let made = Table::<A>::builder().file(folder().join(file), &labels).build().unwrap();
    let rib: Rib<A> = made.routes().to_rib();
    each::<A>(kind, |engine, path| {
        let reader = Reader::<A>::open(path).unwrap();
        assert_eq!(reader.engine(), engine);
        check(&reader, &rib, engine.as_str());
        let mut table = Table::<A>::open(path).unwrap();
        assert!(table.routes().iter().eq(rib.iter()), "{engine}");
        let (mut rib, host) = (rib.clone(), wirespeed::Prefix::host(A::MAX));
        table.insert(host, NextHop(7)).unwrap();
        rib.insert(host, NextHop(7));
        check(&table.reader(), &rib, engine.as_str());
    });
    let dir = tempfile::tempdir().unwrap();
    let path = unpacked(&format!("sail-l{kind}"), dir.path());
    labels = Labels::open(&path).unwrap();
    let reader = Reader::<A>::open(&path).unwrap();
    for &(address, label) in known {
        let found = reader.lookup(address.parse::<A>().unwrap());
        assert_eq!(labels.get(found).as_deref().map(String::as_str), Some(label), "{address}");
    }
}

#[test]
fn routes_of_ipv4() {
    let known = [
        ("9.255.255.255", "default"),
        ("10.1.2.129", "host"),
        ("10.1.2.130", "half"),
        ("10.1.3.1", "twentythree"),
        ("198.51.100.127", "quarter"),
        ("255.255.255.255", "broadcast"),
    ];
    routes::<V4>("-v4", "v4.txt", &known);
}

#[test]
fn routes_of_ipv6() {
    let known = [
        ("1::", "default"),
        ("2001:db8:1:2::81", "host"),
        ("2001:db8:1:2::82", "half"),
        ("2001:db8:1:2:3:4:5:6", "deep"),
        ("2001:db8:1:3::", "site"),
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "last"),
    ];
    routes::<V6>("-v6", "v6.txt", &known);
}

/// Names, and what each leads to.
const NAMES: [(&str, &str); 10] = [
    ("/", "root"),
    ("/org", "root"),
    ("/com/parc/www/a", "web"),
    ("/com/parc/www/index.html/x", "page"),
    ("/com/parc", "library"),
    ("/com/parcels", "top"),
    ("/com/parcel/x", "other"),
    ("/org/example/a/b/c/d/e/f", "deep"),
    ("/org/example/a/b/c/d", "library"),
    ("/net/same/x", "same"),
];

fn names_are_right(path: &Path, what: &str) {
    let (reader, labels) = (NameReader::open(path).unwrap(), Labels::<String>::open(path).unwrap());
    let batch: NameBatch = NAMES.iter().map(|(name, _)| Name::new(name).unwrap()).collect();
    let mut found = vec![NextHop::NONE; batch.len()];
    reader.lookup_batch(&batch, &mut found);
    for (&(name, label), found) in NAMES.iter().zip(found) {
        assert_eq!(labels.get(found).as_deref().map(String::as_str), Some(label), "{what}: {name}");
        assert_eq!(reader.lookup(Name::new(name).unwrap()), found, "{what}: {name}");
    }
    let mut table = NameTable::open(path).unwrap();
    assert_eq!((table.len(), table.is_aggregated()), (10, reader.is_aggregated()), "{what}");
    table.remove(Name::new("/com/parc/www").unwrap()).unwrap();
    let found = table.reader().lookup(Name::new("/com/parc/www/a").unwrap());
    assert_eq!(labels.get(found).as_deref().map(String::as_str), Some("library"), "{what}");
}

#[test]
fn names() {
    if wirespeed_image::rounds::leaves_to_ci() {
        return;
    }
    each::<NameDomain>("", |engine, path| {
        names_are_right(path, engine.as_str());
        assert_eq!(NameReader::open(path).unwrap().engine(), engine);
    });
    let dir = tempfile::tempdir().unwrap();
    let path = unpacked("acta-aggregated", dir.path());
    assert!(NameReader::open(&path).unwrap().is_aggregated());
    names_are_right(&path, "aggregated");
}

fn rules<T: RuleTuple>(file: &str, packets: &[&str]) {
    let labels = Labels::<u32>::new();
    let made = Classifier::<T>::builder().file(folder().join(file), &labels).build().unwrap();
    let oracle = oracle::Oracle::of(made.rules());
    each::<T>(&format!("-{}", T::NAME), |engine, path| {
        let (reader, mut classifier) =
            (RuleReader::<T>::open(path).unwrap(), Classifier::open(path).unwrap());
        assert_eq!((reader.engine(), classifier.len()), (engine, made.len()));
        let mut matched = 0;
        for packet in packets {
            let tuple: T = packet.parse().map_err(|_| *packet).unwrap();
            let right = oracle::Right::right(&oracle, &tuple);
            assert_eq!(reader.lookup(&tuple).map_or(0, RuleNumber::get), right, "{engine}: {packet}");
            let rule = made.rules().rule(right);
            let action = rule.map(|rule| NextHop(*labels.get(NextHop(rule.action())).as_deref().unwrap()));
            assert_eq!(reader.find(&tuple).map(|found| found.action), action, "{engine}: {packet}");
            matched += u32::from(right > 0);
        }
        assert!(matched as usize + 1 == packets.len(), "all but the last match");
        let tuple: T = packets[0].parse().map_err(|_| packets[0]).unwrap();
        let found = reader.lookup(&tuple).unwrap();
        classifier.remove(found).unwrap();
        assert_ne!(classifier.reader().lookup(&tuple), Some(found), "{engine}");
    });
}

#[test]
fn rules_of_ipv4() {
    let packets = [
        "src=10.1.2.3 dport=443 proto=tcp",
        "src=10.1.2.3 dport=1500 proto=udp",
        "src=11.0.0.1 dst=192.0.2.7 proto=tcp",
        "src=11.0.0.1 proto=icmp",
        "src=10.1.2.3 proto=tcp",
        "src=11.0.0.1 sport=53 proto=udp",
        "src=11.0.0.1 proto=tcp",
    ];
    rules::<Ipv4Tuple>("v4.rules", &packets);
}

#[test]
fn rules_of_ipv6() {
    let packets = [
        "src=2001:db8::1 dport=443 proto=tcp",
        "src=2001:db8:1::1 dport=1500 proto=udp",
        "src=2001:db9::1 dst=2001:db8::7 proto=tcp",
        "src=2001:db8::1 proto=tcp",
        "src=2001:db9::1 sport=53 proto=udp",
        "src=2001:db9::1 proto=tcp",
    ];
    rules::<Ipv6Tuple>("v6.rules", &packets);
}

#[test]
fn rules_of_openflow() {
    let packets = [
        "in_port=1 dl_type=0x0800 dst=192.0.2.7 proto=6 dport=443",
        "in_port=2 dl_type=0x0800",
        "in_port=3 dl_dst=02:00:00:00:00:01",
        "in_port=3 dl_type=0x0806",
        "in_port=3 dl_vlan=7",
        "in_port=3 dl_vlan=8",
    ];
    rules::<OpenFlowTuple>("of.rules", &packets);
}
