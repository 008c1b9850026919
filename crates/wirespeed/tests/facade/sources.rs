//! Where routes come from, which engine is taken, and what is said when it doesn't work.

use wirespeed::engine::{EngineName, Engines};
use wirespeed::prelude::*;
use wirespeed::{Error, Family, Rib};

use crate::common::{check, rib};

fn net(text: &str) -> Ipv4Net {
    text.parse().unwrap()
}

#[test]
fn sources_add_up_and_the_last_route_of_a_prefix_stays() {
    let first: Rib<V4> = [("10.0.0.0/8", 1), ("10.1.0.0/16", 2)]
        .map(|(prefix, next_hop)| (prefix.parse().unwrap(), NextHop(next_hop)))
        .into_iter()
        .collect();
    let table = Ipv4Table::builder()
        .rib(first.clone())
        .routes([(net("10.0.0.0/8"), NextHop(3)), (net("192.0.2.0/24"), NextHop(4))])
        .rib(first.iter().skip(1).map(|(prefix, _)| (prefix, NextHop(5))).collect())
        .build()
        .unwrap();
    let routes: Vec<_> = table.routes().iter().map(|(prefix, n)| format!("{prefix} {n}")).collect();
    assert_eq!(routes, ["10.0.0.0/8 3", "10.1.0.0/16 5", "192.0.2.0/24 4"]);
    check(&table.reader(), &table.routes().to_rib(), "several sources");
}

#[test]
fn engines_by_name_by_type_and_by_themselves() {
    let rib = rib::<V4>(1);
    let of = |engine: &str| Ipv4Table::builder().rib(rib.clone()).engine(engine).build().unwrap().engine();
    assert_eq!(of("sail-l"), EngineName::SailL);
    assert_eq!(of("auto"), V4::best(&rib));
    assert_eq!(Ipv4Table::builder().engine(EngineName::SailL).build().unwrap().engine(), EngineName::SailL);
    assert_eq!(Ipv6Table::builder().build().unwrap().engine(), V6::best(&Rib::new()));
}

#[test]
fn an_unknown_engine_is_refused_with_the_names_that_there_are() {
    let errors = [
        Ipv4Table::builder().engine("sail-z").build().unwrap_err(),
        IpTable::builder().engine("sail-z").build().unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(&error, Error::UnknownEngine(unknown) if unknown.name == "sail-z"));
        let message = error.to_string();
        assert!(
            message.contains("\"sail-z\"") && message.contains("auto") && message.contains("sail-l"),
            "{message}"
        );
    }
}

#[test]
fn files_of_both_families_with_labels_of_any_type() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("table");
    std::fs::write(&path, "10.0.0.0/8 65001\n10.1.0.0/16 65002\n2001:db8::/32 65001\n").unwrap();

    let numbers = Labels::<u32>::new();
    // An index that was given out before: the file's own don't agree with the labels'.
    numbers.intern(65002).unwrap();
    let table = IpTable::builder().file(&path, &numbers).build().unwrap();
    let reader = table.reader();
    let label = |address: &str| numbers.get(reader.lookup(address.parse().unwrap())).as_deref().copied();
    assert_eq!(
        ["10.0.0.1", "10.1.0.1", "2001:db8::1", "11.0.0.0", "::"].map(label),
        [Some(65001), Some(65002), Some(65001), None, None]
    );

    let texts = Labels::<String>::new();
    let mut bogons = IpTable::builder().file("builtin:bogons", &texts).build().unwrap();
    let found = bogons.reader().lookup("192.168.7.7".parse().unwrap());
    assert_eq!(texts.get(found).as_deref().map(String::as_str), Some("name=Private-Use,rfc=RFC%201918"));
    assert_eq!(bogons.load("builtin:bogons", &texts).unwrap().changes, 0);
    assert!(bogons.load("builtin:martians", &texts).unwrap_err().to_string().contains("builtin:bogons"));

    let texts = Labels::<String>::new();
    let six = Ipv6Table::builder().file(&path, &texts).build().unwrap();
    assert_eq!(six.len(), 1);
    let found = six.reader().lookup("2001:db8::1".parse::<Ipv6Addr>().unwrap());
    assert_eq!(texts.get(found).as_deref().map(String::as_str), Some("65001"));
}

#[test]
fn what_is_wrong_with_a_file_is_told_by_build() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("table");
    let refused = |text: &str| {
        std::fs::write(&path, text).unwrap();
        Ipv4Table::builder().file(&path, &Labels::<u32>::new()).build().unwrap_err()
    };
    let error = refused("10.0.0.0/8 1\n10.0.0.1/8 2\n");
    assert!(matches!(error, Error::Read(_)) && error.to_string().contains("table:2"), "{error}");
    let error = refused("10.0.0.0/8 192.0.2.1\n");
    assert!(matches!(&error, Error::Label { text, .. } if text == "192.0.2.1"), "{error}");
    assert!(error.to_string().starts_with(&format!("{}: \"192.0.2.1\" is no label: ", path.display())));
    let mut table = Ipv4Table::builder().build().unwrap();
    assert_eq!(table.load(&path, &Labels::<u32>::new()).unwrap_err().to_string(), error.to_string());
    let error = refused("2001:db8::/32 1\n");
    assert!(matches!(error, Error::NoRoutesOfFamily { wanted: Family::V4, .. }), "{error}");
    std::fs::remove_file(&path).unwrap();
    let error = IpTable::builder().file(&path, &Labels::<String>::new()).build().unwrap_err();
    assert!(matches!(error, Error::Read(_)), "{error}");
}

#[test]
fn the_first_of_several_errors_is_told() {
    let labels = Labels::<u32>::new();
    let error =
        Ipv4Table::builder().file("/no/such", &labels).file("/nor/this", &labels).build().unwrap_err();
    assert!(error.to_string().starts_with("/no/such"), "{error}");
}
