//! Image files of both families, and readers that take mapped addresses for IPv4.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use wirespeed::classify::{Ipv4Tuple, RuleReader};
use wirespeed::image::Image;
use wirespeed::image_file::ImageFile;
use wirespeed::names::NameReader;
use wirespeed::{
    Address, Error, Family, IpReader, IpTable, Ipv4Reader, Ipv4Table, Ipv6Reader, Ipv6Table, Labels, NextHop,
};

use crate::common::{check, rib};

/// Routes of both families, with their labels.
fn routes() -> Vec<(IpNet, String)> {
    let v4 = rib::<wirespeed::V4>(7).iter().map(|(p, n)| (p.into(), format!("hop {n}"))).collect::<Vec<_>>();
    let v6 = rib::<wirespeed::V6>(7).iter().map(|(p, n)| (p.into(), format!("six {n}"))).collect::<Vec<_>>();
    v4.into_iter().chain(v6).collect()
}

#[test]
fn one_file_holds_both_families() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("both.img");
    for prefix_lookups in [false, true] {
        let labels = Labels::new();
        let builder = IpTable::builder().labelled_routes(&labels, routes());
        let builder = if prefix_lookups { builder.prefix_lookups() } else { builder };
        let table = builder.build().unwrap();
        table.save_labelled(&path, &labels).unwrap();

        let (v4, v6) = (table.v4().routes().to_rib(), table.v6().routes().to_rib());
        let reader = IpReader::open(&path).unwrap();
        check(reader.v4(), &v4, "both, IPv4");
        check(reader.v6(), &v6, "both, IPv6");
        check(&Ipv4Reader::open(&path).unwrap(), &v4, "IPv4 of both");
        check(&Ipv6Reader::open(&path).unwrap(), &v6, "IPv6 of both");
        assert!(Ipv4Table::open(&path).unwrap().routes().iter().eq(v4.iter()));
        assert!(Ipv6Table::open(&path).unwrap().routes().iter().eq(v6.iter()));
        let read = Labels::<String>::open(&path).unwrap();
        assert!(table.routes().all(|(_, n)| labels.get(n).as_deref() == read.get(n).as_deref()));

        let mut opened = IpTable::open(&path).unwrap();
        assert!(opened.routes().eq(table.routes()));
        let host: IpNet = "2001:db8::7/128".parse().unwrap();
        opened.insert(host, NextHop(1)).unwrap();
        let reader = opened.reader();
        assert_eq!(reader.lookup(host.addr()), NextHop(1));
        assert_eq!(
            reader.lookup_prefix(host.addr()).ok().flatten(),
            prefix_lookups.then_some((host, NextHop(1)))
        );
        assert_eq!(opened.lookup_all(host.addr()).last(), Some(&(host, NextHop(1))));

        // Tools that read one family at a time say so, and can ask for one.
        let error = ImageFile::open(&path).unwrap_err();
        assert!(matches!(error, Error::ImageOfBoth { .. }), "{error}");
        for family in [Family::V4, Family::V6] {
            let file = ImageFile::open_family(&path, family).unwrap();
            assert_eq!((file.family(), file.has_prefix_lookups()), (family, prefix_lookups));
        }
    }
}

#[test]
fn a_file_of_one_family_has_nothing_of_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("four.img");
    let rib = rib(3);
    Ipv4Table::builder().rib(rib.clone()).prefix_lookups().build().unwrap().save(&path).unwrap();
    let (reader, table) = (IpReader::open(&path).unwrap(), IpTable::open(&path).unwrap());
    check(reader.v4(), &rib, "one family");
    assert_eq!((table.v6().len(), table.len()), (0, rib.len()));
    let keys = [IpAddr::V6(Ipv6Addr::LOCALHOST), rib.iter().next().unwrap().0.address().to_ip()];
    let mut found = ([NextHop(9); 2], [9; 2]);
    reader.lookup_prefixes(&keys, &mut found.0, &mut found.1).unwrap();
    assert_eq!((found.0[0], found.1[0]), (NextHop::NONE, 0));
    assert_eq!(
        reader.lookup_prefix(keys[1]).unwrap().map(|(net, n)| (net.prefix_len(), n)),
        Some((found.1[1], found.0[1]))
    );
    assert!(matches!(Ipv6Reader::open(&path), Err(Error::ImageFamily { .. })));
}

#[test]
fn damaged_files_of_both_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("both.img");
    let routes =
        [("10.0.0.0/8", 1), ("2001:db8::/32", 2)].map(|(p, n)| (p.parse::<IpNet>().unwrap(), NextHop(n)));
    IpTable::builder().routes(routes).build().unwrap().save(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 97) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        std::fs::write(&path, flipped).unwrap();
        assert!(IpReader::open(&path).is_err(), "byte {at}");
        std::fs::write(&path, &whole[..at]).unwrap();
        assert!(IpReader::open(&path).is_err() && IpTable::open(&path).is_err(), "cut to {at}");
    }

    // Whole containers of the wrong things.
    std::fs::write(&path, &whole).unwrap();
    let image = Image::open(&path).unwrap();
    let (v4, v6) = (image.attachment("ipv4").unwrap(), image.attachment("ipv6").unwrap());
    let empty = image.without_attachments(&["ipv4", "ipv6", "next-hops"]).unwrap();
    let with = |parts: &[(&str, &[u8])]| {
        let with_part =
            |image: Image, &(name, bytes): &(&str, &[u8])| image.with_attachment(name, bytes).unwrap();
        parts.iter().fold(empty.clone(), with_part)
    };
    let cases: [&[(&str, &[u8])]; 6] = [
        &[],
        &[("ipv4", v4)],
        &[("ipv4", v4), ("ipv6", v4)],
        &[("ipv4", v6), ("ipv6", v4)],
        &[("ipv4", v4), ("ipv6", &v6[..v6.len() - 1])],
        &[("ipv4", v4), ("ipv6", &whole)],
    ];
    for (at, parts) in cases.iter().enumerate() {
        with(parts).save(&path).unwrap();
        assert!(matches!(IpReader::open(&path), Err(Error::Image { .. })), "case {at}");
    }
    with(&[("ipv4", v4), ("ipv6", v6)]).save(&path).unwrap();
    assert_eq!(IpReader::open(&path).unwrap().lookup("2001:db8::1".parse().unwrap()), NextHop(2));
}

#[test]
fn readers_of_names_and_rules_say_what_it_holds() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("both.img");
    IpTable::builder().build().unwrap().save(&path).unwrap();
    let names = NameReader::open(&path).unwrap_err();
    assert!(matches!(names, Error::ImageOf { found: "addresses", wanted: "names", .. }), "{names}");
    let rules = RuleReader::<Ipv4Tuple>::open(&path).unwrap_err();
    assert!(matches!(rules, Error::ImageOf { found: "addresses", wanted: "rules", .. }), "{rules}");
}

#[test]
fn mapped_addresses_are_of_either_family_as_asked() {
    let routes =
        [("192.0.2.0/24", 1), ("::ffff:0:0/96", 2)].map(|(p, n)| (p.parse::<IpNet>().unwrap(), NextHop(n)));
    let table = IpTable::builder().routes(routes).prefix_lookups().build().unwrap();
    let four = Ipv4Addr::new(192, 0, 2, 1);
    let keys: Vec<IpAddr> = (0..1100).flat_map(|_| [four.into(), four.to_ipv6_mapped().into()]).collect();
    for (mapped_as_v4, right) in [(false, [(1, 24), (2, 96)]), (true, [(1, 24), (1, 24)])] {
        let reader = table.reader().mapped_as_v4(mapped_as_v4);
        let guard = reader.enter();
        let mut found = (vec![NextHop::NONE; keys.len()], vec![0; keys.len()]);
        reader.lookup_prefixes(&keys, &mut found.0, &mut found.1).unwrap();
        let mut next_hops = vec![NextHop::NONE; keys.len()];
        guard.lookup_batch(&keys, &mut next_hops);
        assert_eq!(next_hops, found.0);
        for (at, key) in keys.iter().enumerate() {
            let (next_hop, len) = right[at % 2];
            assert_eq!((found.0[at].0, found.1[at]), (next_hop, len), "{key}");
            assert_eq!((reader.lookup(*key).0, guard.lookup(*key).0), (next_hop, next_hop));
            let (net, of_guard) = (reader.lookup_prefix(*key).unwrap(), guard.lookup_prefix(*key).unwrap());
            assert_eq!((net.map(|(net, n)| (n.0, net.prefix_len())), of_guard), (Some((next_hop, len)), net));
        }
    }
}
