//! `classify` and `classify_action`.

use std::sync::Arc;

use arrow::array::{ArrayRef, DictionaryArray, StringArray, UInt8Array, UInt16Array};
use arrow::datatypes::Int32Type;
use wirespeed::classify::oracle::Oracle;
use wirespeed::prelude::*;
use wirespeed_datafusion::{RuleTable, Table, Tables};

use super::{Random, answer, error, register, session};

const V4: [(&str, &str); 4] = [
    ("dport=443 proto=tcp", "web"),
    ("src=10.0.0.0/30 proto=udp", "local"),
    ("dst=10.0.0.4/30 dport=50-60", "range"),
    ("src=10.0.0.2 priority=1", "banned"),
];
const V6: [(&str, &str); 2] = [("src=2001:db8::/126", "six"), ("dport=53", "dns")];

type Packet = (IpAddr, IpAddr, u8, u16, u16);

fn packets() -> Vec<Option<Packet>> {
    let mut random = Random(11);
    let address = |random: &mut Random, six: bool| -> IpAddr {
        let low = u32::try_from(random.below(8)).unwrap();
        match six {
            false => Ipv4Addr::from(0x0a00_0000 | low).into(),
            true => Ipv6Addr::from((0x2001_0db8_u128 << 96) | u128::from(low)).into(),
        }
    };
    (0..200)
        .map(|n| {
            let six = n % 3 == 0;
            let (src, dst) = (address(&mut random, six), address(&mut random, six));
            let proto = [6, 17, 1][usize::try_from(random.below(3)).unwrap()];
            let dport = [443, 53, 55, 61][usize::try_from(random.below(4)).unwrap()];
            (n % 13 != 6).then_some((src, dst, proto, 40_000, dport))
        })
        .collect()
}

/// The number and the action of the best rule, rule by rule.
fn expected(packet: Packet) -> Option<(u32, &'static str)> {
    let (src, dst, proto, sport, dport) = packet;
    match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => best(&V4, &Ipv4Tuple::new(src, dst, sport, dport, proto)),
        (IpAddr::V6(src), IpAddr::V6(dst)) => best(&V6, &Ipv6Tuple::new(src, dst, sport, dport, proto)),
        _ => None,
    }
}

fn best<T: Tuple>(rules: &[(&str, &'static str)], tuple: &T) -> Option<(u32, &'static str)>
where
    Rule<T>: std::str::FromStr<Err: std::fmt::Debug>,
{
    let set: RuleSet<T> = rules.iter().map(|(rule, _)| rule.parse::<Rule<T>>().unwrap()).collect();
    let number = Oracle::of(&set).lookup(tuple);
    let at = usize::try_from(number).unwrap().checked_sub(1)?;
    Some((number, rules[at].1))
}

fn table() -> Table {
    let actions = Labels::new();
    let v4 = V4.map(|(rule, action)| (rule.parse::<Rule<Ipv4Tuple>>().unwrap(), action));
    let v6 = V6.map(|(rule, action)| (rule.parse::<Rule<Ipv6Tuple>>().unwrap(), action));
    let v4 = Classifier::builder().labelled_rules(&actions, v4).build().unwrap();
    let v6 = Classifier::builder().labelled_rules(&actions, v6).build().unwrap();
    Table::Rules(RuleTable::new(Some(v4), Some(v6), &actions))
}

#[tokio::test]
async fn agrees_with_the_rules_one_by_one() {
    let packets = packets();
    let texts = |pick: fn(&Packet) -> IpAddr| {
        packets
            .iter()
            .map(move |packet| packet.as_ref().map(|packet| pick(packet).to_string()))
            .collect::<Vec<_>>()
    };
    let (src, dst) = (texts(|packet| packet.0), texts(|packet| packet.1));
    let columns: [(&str, ArrayRef); 5] = [
        ("src", Arc::new(src.iter().map(Option::as_deref).collect::<StringArray>())),
        ("dst", Arc::new(dst.iter().map(Option::as_deref).collect::<DictionaryArray<Int32Type>>())),
        (
            "proto",
            Arc::new(UInt8Array::from_iter(
                packets.iter().map(|packet| packet.map_or(Some(6), |p| Some(p.2))),
            )),
        ),
        ("sport", Arc::new(UInt16Array::from_iter(packets.iter().map(|packet| packet.map(|p| p.3))))),
        ("dport", Arc::new(UInt16Array::from_iter(packets.iter().map(|packet| packet.map(|p| p.4))))),
    ];
    let tables = Tables::new();
    tables.insert("acl", table());
    let context = session(&tables);
    register(&context, "packets", &columns);
    let found: Vec<_> = packets.iter().map(|packet| packet.and_then(expected)).collect();
    for action in ["web", "local", "range", "banned", "six", "dns"] {
        assert!(found.iter().flatten().any(|(_, found)| *found == action), "{action}");
    }
    assert!(found.iter().any(Option::is_none));
    for arguments in [
        "src, dst, proto, sport, dport",
        "'acl', src, dst, CAST(proto AS BIGINT), CAST(sport AS INT), CAST(dport AS INT)",
    ] {
        let sql = format!("SELECT classify({arguments}) FROM packets ORDER BY n");
        let numbers: Vec<_> = found.iter().map(|found| found.map(|(number, _)| number.to_string())).collect();
        assert_eq!(answer(&context, &sql).await.unwrap(), numbers, "{sql}");
        let sql = format!("SELECT classify_action({arguments}) FROM packets ORDER BY n");
        let actions: Vec<_> = found.iter().map(|found| found.map(|(_, action)| action.to_owned())).collect();
        assert_eq!(answer(&context, &sql).await.unwrap(), actions, "{sql}");
    }
}

#[tokio::test]
async fn packets_that_are_none() {
    let tables = Tables::new();
    tables.insert("acl", table());
    let context = session(&tables);
    for (call, found) in [
        ("classify_action('10.0.0.2', '10.0.0.9', 1, 0, 0)", Some("banned")),
        ("classify_action('::ffff:10.0.0.2', '10.0.0.9', 1, 0, 0)", Some("banned")),
        ("classify('11.0.0.2', '10.0.0.9', 1, 0, 0)", None),
        ("classify('10.0.0.2', '10.0.0.9', NULL, 0, 0)", None),
        ("classify(NULL, '10.0.0.9', 1, 0, 0)", None),
    ] {
        let found = [found.map(str::to_owned)];
        assert_eq!(answer(&context, &format!("SELECT {call}")).await.unwrap(), found, "{call}");
    }
    let mixed = error(&context, "SELECT classify('10.0.0.2', '2001:db8::1', 6, 1, 2)").await;
    assert!(mixed.contains("10.0.0.2 and 2001:db8::1 are of different families"), "{mixed}");
    for arguments in ["256, 1, 2", "6, -1, 2", "6, 1, 65536"] {
        let range = error(&context, &format!("SELECT classify('10.0.0.2', '10.0.0.9', {arguments})")).await;
        assert!(range.contains("cast"), "{range}");
    }
    context.sql("SET wirespeed.invalid = 'null'").await.unwrap();
    let sql = "SELECT classify('10.0.0.2', '2001:db8::1', 6, 1, 2)";
    assert_eq!(answer(&context, sql).await.unwrap(), [None]);
}

#[tokio::test]
async fn answers_that_left_out_rules_could_change_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let saved = dir.path().join("rules.v4");
    std::fs::write(
        &saved,
        "*filter\n:INPUT DROP [0:0]\n-A INPUT -p tcp --dport 443 -j ACCEPT\n\
         -A INPUT -m owner --uid-owner 7 -j ACCEPT\nCOMMIT\n",
    )
    .unwrap();
    let labels = Labels::<String>::new();
    let rules = Classifier::<Ipv4Tuple>::builder().file(&saved, &labels).leave_out(true).build().unwrap();
    let tables = Tables::new();
    tables.insert("acl", Table::Rules(RuleTable::new(Some(rules), None, &labels)));
    let context = session(&tables);
    let sql = "SELECT classify_action('10.0.0.2', '10.0.0.9', 6, 1, 443)";
    assert_eq!(answer(&context, sql).await.unwrap(), [Some("ACCEPT".to_owned())]);
    let doubt = error(&context, "SELECT classify_action('10.0.0.2', '10.0.0.9', 6, 1, 22)").await;
    assert!(doubt.contains("a rule that was left out of the table could change the answer"), "{doubt}");
    // There are no rules of IPv6.
    let sql = "SELECT classify('2001:db8::1', '2001:db8::2', 6, 1, 443)";
    assert_eq!(answer(&context, sql).await.unwrap(), [None]);
}
