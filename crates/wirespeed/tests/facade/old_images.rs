//! Images that an earlier version wrote, one of each engine and kind of key, and one of each kind of file
//! that holds more than a table: both families, VRFs, lists of domains. They open, and answer what they did.
//! They are in `tests/images`, with the tables that they were made of, and stay there for good. A new layout
//! of an engine brings another image beside its old one.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use wirespeed::classify::OpenFlow13Tuple;
use wirespeed::classify::oracle;
use wirespeed::engine::{EngineName, Engines, RuleTuple, of_domain};
use wirespeed::names::{NameDomain, NameList};
use wirespeed::prelude::*;
use wirespeed::{Reader, Rib, Table, VrfReader, VrfRoutes, Vrfs};

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

#[test]
fn rules_of_openflow_1_3() {
    let packets = [
        "in_port=1 eth_type=0x86dd dst=2001:db8::7 proto=tcp dport=443",
        "in_port=2 eth_type=0x86dd",
        "in_port=3 eth_dst=02:00:00:00:00:01",
        "in_port=3 eth_type=0x8847 label=0x00064100",
        "in_port=3 eth_vlan=0x1007",
        "in_port=3 eth_vlan=0x1008",
    ];
    rules::<OpenFlow13Tuple>("of13.rules", &packets);
}

/// The routes of both families, as their files have them.
fn both(labels: &Labels<String>) -> IpTable {
    let files = ["v4.txt", "v6.txt"].map(|name| folder().join(name));
    files.iter().fold(IpTable::builder(), |builder, file| builder.file(file, labels)).build().unwrap()
}

#[test]
fn both_families_in_one_file() {
    let made = both(&Labels::new());
    let (v4, v6) = (made.v4().routes().to_rib(), made.v6().routes().to_rib());
    let dir = tempfile::tempdir().unwrap();
    for (name, gives_prefixes) in [("both", false), ("both-prefixes", true)] {
        let path = unpacked(name, dir.path());
        let (reader, mut table) = (IpReader::open(&path).unwrap(), IpTable::open(&path).unwrap());
        check(reader.v4(), &v4, name);
        check(reader.v6(), &v6, name);
        assert!(table.routes().eq(made.routes()), "{name}");
        let labels = Labels::<String>::open(&path).unwrap();
        for (address, label, prefix) in [
            ("10.1.2.130", "half", "10.1.2.128/25"),
            ("2001:db8:1:2:3:4:5:6", "deep", "2001:db8:1:2:3:4:5:0/112"),
        ] {
            let address: IpAddr = address.parse().unwrap();
            let found = reader.lookup(address);
            assert_eq!(labels.get(found).as_deref().map(String::as_str), Some(label), "{name}");
            let prefix = gives_prefixes.then(|| (prefix.parse::<IpNet>().unwrap(), found));
            assert_eq!(reader.lookup_prefix(address).ok().flatten(), prefix, "{name}");
        }
        let host: IpNet = "2001:db8::7/128".parse().unwrap();
        table.insert(host, NextHop(1)).unwrap();
        assert_eq!(table.reader().lookup(host.addr()), NextHop(1), "{name}");
    }
}

/// A VRF with all routes of the files, and one with those of IPv4 alone.
fn vrfs() -> [(VrfId, VrfRoutes); 2] {
    let made = both(&Labels::new());
    let of_v4 = made.routes().filter(|(prefix, _)| matches!(prefix, IpNet::V4(_)));
    [(VrfId(7), made.routes().collect::<Vec<_>>()), (VrfId(900), of_v4.collect())]
        .map(|(vrf, routes)| (vrf, VrfRoutes::new(routes).unwrap()))
}

#[test]
fn vrfs_in_one_file() {
    let dir = tempfile::tempdir().unwrap();
    for (name, gives_prefixes) in [("vrfs", false), ("vrfs-prefixes", true)] {
        let path = unpacked(name, dir.path());
        let (mut model, mut vrfs) = (BTreeMap::from(vrfs()), Vrfs::open(&path).unwrap());
        crate::vrfs::check(&VrfReader::open(&path).unwrap(), &model, gives_prefixes);
        crate::vrfs::check(&vrfs.reader(), &model, gives_prefixes);
        let (vrf, host) = (VrfId(900), crate::vrfs::net("192.0.2.1/32"));
        vrfs.insert(vrf, host, NextHop(7)).unwrap();
        crate::vrfs::insert(model.get_mut(&vrf).unwrap(), host, Some(NextHop(7)));
        crate::vrfs::check(&vrfs.reader(), &model, gives_prefixes);
        let labels = Labels::<String>::open(&path).unwrap();
        let found = vrfs.reader().lookup(VrfId(7), crate::vrfs::ip("2001:db8:1:2::81"));
        assert_eq!(labels.get(found).as_deref().map(String::as_str), Some("host"), "{name}");
    }
}

#[test]
fn lists_of_domains() {
    let dir = tempfile::tempdir().unwrap();
    let open = |name: &str| NameList::open(unpacked(name, dir.path())).unwrap();
    let name = |domain: &str| NameBuf::from_domain(domain.as_bytes()).unwrap();

    let filter = open("list-filter");
    assert_eq!((filter.len(), filter.is_of_suffixes()), (3, false));
    for (domain, found) in [
        ("ads.example", Some(Some("blocked"))),
        ("www.ads.example", Some(Some("blocked"))),
        ("www.good.ads.example", Some(None)),
        ("tracker.example", Some(Some("blocked"))),
        ("www.example", None),
    ] {
        let answer = filter.lookup(name(domain));
        assert_eq!(answer.map(|answer| filter.value(answer)), found, "{domain}");
    }

    let suffixes = open("list-suffixes");
    assert_eq!((suffixes.len(), suffixes.is_of_suffixes()), (4, true));
    for (domain, suffix, registrable) in [
        ("www.example.co.uk", "/uk/co", Some("/uk/co/example")),
        ("a.b.shop.ck", "/ck/shop", Some("/ck/shop/b")),
        ("www.ck", "/ck", Some("/ck/www")),
        ("co.uk", "/uk/co", None),
    ] {
        let domain = name(domain);
        let found = suffixes.suffix(&domain).unwrap();
        let registrable = registrable.map(ToOwned::to_owned);
        assert_eq!(
            (found.suffix.to_string(), found.registrable.map(ToString::to_string)),
            (suffix.to_owned(), registrable),
            "{domain}"
        );
    }
}
