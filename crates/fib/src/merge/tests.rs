use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::next_hop::NextHop;
use crate::read::label_text;

type Source = Vec<(IpNet, Vec<(String, String)>)>;
type Table = BTreeMap<IpNet, BTreeMap<String, String>>;

fn merged(sources: &[Source]) -> Merged {
    let mut merge = Merge::new();
    for source in sources {
        let routes = source.iter().map(|(prefix, fields)| {
            (*prefix, fields.iter().map(|(name, value)| (&**name, &**value)).collect::<Vec<_>>())
        });
        merge.add(routes).unwrap();
    }
    merge.build().unwrap()
}

fn table(merged: &Merged) -> Table {
    let fields = |next_hop| {
        let record = merged.records.get(next_hop).unwrap();
        let text: Vec<_> = record.fields().map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        assert_eq!(merged.fib.next_hops.text(next_hop), Some(&*label_text(false, &text)));
        text.into_iter().collect()
    };
    let v4 = merged.fib.v4.iter().map(|(prefix, next_hop)| (prefix.into(), fields(next_hop)));
    let v6 = merged.fib.v6.iter().map(|(prefix, next_hop)| (prefix.into(), fields(next_hop)));
    v4.chain(v6).collect()
}

/// The definition: each prefix asks every prefix that covers it, longest first, of every source, first first.
fn oracle(sources: &[Source]) -> Table {
    let told = |source: &Source, prefix: IpNet| {
        source.iter().rev().find(|(known, _)| *known == prefix).map(|(_, fields)| fields.clone())
    };
    let mut table = Table::new();
    for (prefix, _) in sources.iter().flatten() {
        let mut record = BTreeMap::new();
        for len in (0..=prefix.prefix_len()).rev() {
            let around = IpNet::new(prefix.addr(), len).unwrap().trunc();
            for source in sources {
                let own: BTreeMap<String, String> = told(source, around).into_iter().flatten().collect();
                for (name, value) in own.into_iter().filter(|(_, value)| !value.is_empty()) {
                    record.entry(name).or_insert(value);
                }
            }
        }
        if !record.is_empty() {
            table.insert(*prefix, record);
        }
    }
    table
}

fn prefix() -> impl Strategy<Value = IpNet> {
    (any::<bool>(), 0u8..=5, 0u8..32).prop_map(|(is_v4, len, bits)| {
        let address: std::net::IpAddr = match is_v4 {
            true => std::net::Ipv4Addr::from(u32::from(bits) << 27).into(),
            false => std::net::Ipv6Addr::from(u128::from(bits) << 123).into(),
        };
        IpNet::new(address, len).unwrap().trunc()
    })
}

fn source() -> impl Strategy<Value = Source> {
    let field = ("[abc]", "[xyz, ]{0,1}");
    proptest::collection::vec((prefix(), proptest::collection::vec(field, 0..3)), 0..12)
}

proptest! {
    #[test]
    fn every_prefix_has_what_the_definition_says(sources in proptest::collection::vec(source(), 1..4)) {
        prop_assert_eq!(table(&merged(&sources)), oracle(&sources));
    }
}

fn of_text(text: &str) -> Fib {
    crate::read::read_fib_from(text.as_bytes(), "test", &crate::read::ReadOptions::default()).unwrap().0
}

#[test]
fn tables_of_fields_values_and_members() {
    let mut merge = Merge::new();
    merge.add_table(&of_text("10.0.0.0/8 country=DE,org=A%2CB\n10.1.0.0/16 org=C\n"), "").unwrap();
    merge.add_table(&of_text("10.0.0.0/9 United%20States\n2001:db8::/32 x=y\n"), "place").unwrap();
    merge.add_members(&of_text("10.1.2.0/24\n10.0.0.0/9\n"), "blocked").unwrap();
    assert_eq!((merge.len(), merge.is_empty()), (6, false));
    assert!(merge.memory_usage() > 6 * 16);
    let merged = merge.build().unwrap();
    assert_eq!(
        crate::read::tests::text_of(&merged.fib),
        "10.0.0.0/8 country=DE,org=A%2CB\n\
         10.0.0.0/9 country=DE,org=A%2CB,place=United%20States,blocked=true\n\
         10.1.0.0/16 country=DE,org=C,place=United%20States,blocked=true\n\
         10.1.2.0/24 country=DE,org=C,place=United%20States,blocked=true\n\
         2001:db8::/32 place=x%3Dy\n"
    );
    assert_eq!(merged.records.names().collect::<Vec<_>>(), ["country", "org", "place", "blocked"]);
    assert_eq!((merged.records.len(), merged.records.is_empty(), merged.empty), (4, false, 0));
    assert!(merged.records.get(NextHop::NONE).is_none() && merged.records.get(NextHop(5)).is_none());
}

#[test]
fn what_has_no_record_is_refused_or_counted() {
    let mut merge = Merge::new();
    let message = merge.add_fields(&of_text("10.0.0.0/8 a=b\n10.1.0.0/16 gate\n")).unwrap_err().to_string();
    assert_eq!(message, "10.1.0.0/16: no fields (name=value,…): \"gate\"");
    let mut holed = of_text("10.0.0.0/8 a=b\n");
    holed.v4.insert("10.1.0.0/16".parse().unwrap(), NextHop::NONE);
    let message = Merge::new().add_fields(&holed).unwrap_err().to_string();
    assert_eq!(message, "10.1.0.0/16: a route without a next hop has no record");
    let bits = Merge::new().add([("10.0.0.1/8".parse().unwrap(), [("a", "b")])]).unwrap_err();
    assert!(matches!(bits, MergeError::HostBits(_)));
    let empty = merged(&[vec![("10.0.0.0/8".parse().unwrap(), vec![("a".into(), String::new())])]]);
    assert_eq!((empty.fib.is_empty(), empty.empty), (true, 1));
}

/// A million prefixes and half a million: the time and memory of a real merge.
#[test]
fn large_sources_merge_in_seconds() {
    let long = std::env::var("WIRESPEED_TESTS").is_ok_and(|tests| tests == "long");
    let scale = if long { 1 } else { 50 };
    let geo = |at: u32| {
        let prefix = Prefix::<V4>::around(V4(at.wrapping_mul(2_654_435_761)), 16 + (at % 9) as u8);
        (IpNet::from(prefix), format!("C{}", at % 250), format!("city-{}", at % 20_000))
    };
    let own = |at: u32| {
        let prefix = Prefix::<V4>::around(V4(at.wrapping_mul(2_246_822_519)), 20 + (at % 9) as u8);
        (IpNet::from(prefix), format!("{}", at % 70_000))
    };
    let first: Vec<_> = (0..1_000_000 / scale).map(geo).collect();
    let second: Vec<_> = (0..500_000 / scale).map(own).collect();
    let began = std::time::Instant::now();
    let mut merge = Merge::new();
    merge
        .add(
            first
                .iter()
                .map(|(prefix, country, city)| (*prefix, [("country", &**country), ("city", &**city)])),
        )
        .unwrap();
    merge.add(second.iter().map(|(prefix, asn)| (*prefix, [("asn", &**asn)]))).unwrap();
    let (prefixes, bytes) = (merge.len(), merge.memory_usage());
    let merged = merge.build().unwrap();
    let took = began.elapsed();
    println!(
        "{prefixes} prefixes, {bytes} bytes, {} routes, {} records, {took:?}",
        merged.fib.v4.len(),
        merged.records.len()
    );
    assert!(merged.fib.v4.len() <= prefixes && merged.records.len() > 1_000);
    // Every hundredth address has the fields of the longest prefix of each source.
    let longest = |nets: &mut dyn Iterator<Item = IpNet>, address: std::net::IpAddr| {
        nets.filter(|net| net.contains(&address)).map(|net| net.prefix_len()).max()
    };
    for at in (0..20u32).map(|at| at * 97) {
        let address = V4(at.wrapping_mul(2_246_822_519));
        let (_, label) = merged.fib.v4.longest_match(address).unwrap();
        let record = merged.records.get(label).unwrap();
        let is_in = |nets: &mut dyn Iterator<Item = IpNet>| {
            longest(nets, std::net::Ipv4Addr::from(address.0).into()).is_some()
        };
        assert_eq!(record.value("asn").is_some(), is_in(&mut second.iter().map(|(net, _)| *net)));
        assert_eq!(record.value("city").is_some(), is_in(&mut first.iter().map(|(net, ..)| *net)));
    }
}
