//! `lpm` and the functions whose names start so.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BinaryViewArray, DictionaryArray, FixedSizeBinaryArray, Int64Array,
    LargeBinaryArray, LargeStringArray, StringArray, StringViewArray, UInt32Array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int8Type, Int32Type};
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::prelude::ParquetReadOptions;
use wirespeed::prelude::*;
use wirespeed_datafusion::{AddressTable, Table, Tables};

use super::{Random, answer, error, planning_error, register, session};

/// Routes, nested, in few parts of the space, each with the AS of its label.
fn routes(seed: u64) -> Vec<(IpNet, u32)> {
    let mut random = Random(seed);
    let mut routes =
        vec![("10.0.0.0/8".parse().unwrap(), 64_496), ("2001:db8::/32".parse().unwrap(), 64_497)];
    for _ in 0..120 {
        let address = address(&mut random);
        let len = match address {
            IpAddr::V4(_) => 6 + random.below(27),
            IpAddr::V6(_) => 30 + random.below(99),
        };
        let net = IpNet::new(address, u8::try_from(len).unwrap()).unwrap().trunc();
        if routes.iter().all(|(known, _)| *known != net) {
            routes.push((net, 64_500 + u32::try_from(random.below(9)).unwrap()));
        }
    }
    routes
}

fn address(random: &mut Random) -> IpAddr {
    let low = u32::try_from(random.below(1 << 12)).unwrap();
    match random.below(5) {
        0 | 1 => IpAddr::V4(Ipv4Addr::from(0x0a01_0000 | low)),
        2 => IpAddr::V4(Ipv4Addr::from(0x0b00_0000 | (low << 12))),
        _ => IpAddr::V6(Ipv6Addr::from((0x2001_0db8_u128 << 96) | (u128::from(low) << 60))),
    }
}

/// Addresses; each seventh is null.
fn addresses() -> Vec<Option<IpAddr>> {
    let mut random = Random(7);
    (0..300).map(|n| (n % 7 != 3).then(|| address(&mut random))).collect()
}

fn table(routes: &[(IpNet, u32)]) -> Table {
    let labels = Labels::new();
    let builder = IpTable::builder().labelled_routes(&labels, routes.iter().copied()).prefix_lookups();
    Table::Addresses(AddressTable::new(builder.build().unwrap(), &labels))
}

/// The routes that contain an address, shortest first.
fn covering(routes: &[(IpNet, u32)], address: IpAddr) -> Vec<(IpNet, u32)> {
    let mut found: Vec<_> = routes.iter().copied().filter(|(net, _)| net.contains(&address)).collect();
    found.sort_by_key(|(net, _)| net.prefix_len());
    found
}

/// The index of a label: in the order in which they come.
fn index(routes: &[(IpNet, u32)], label: u32) -> usize {
    let mut labels = Vec::new();
    for (_, label) in routes {
        if !labels.contains(label) {
            labels.push(*label);
        }
    }
    labels.iter().position(|known| *known == label).unwrap() + 1
}

/// What a function has to give for an address.
fn expected(function: &str, routes: &[(IpNet, u32)], address: Option<IpAddr>) -> Option<String> {
    let covering = covering(routes, address?);
    let (net, label) = *covering.last()?;
    Some(match function {
        "lpm" => index(routes, label).to_string(),
        "lpm_label" | "lpm_asn" => label.to_string(),
        "lpm_prefix" => net.to_string(),
        "lpm_len" => net.prefix_len().to_string(),
        _ => {
            let all: Vec<_> = covering.iter().map(|(_, label)| index(routes, *label).to_string()).collect();
            format!("[{}]", all.join(", "))
        }
    })
}

const FUNCTIONS: [&str; 6] = ["lpm", "lpm_label", "lpm_asn", "lpm_prefix", "lpm_len", "lpm_all"];

fn v4(address: &Option<IpAddr>) -> Option<Ipv4Addr> {
    match address {
        Some(IpAddr::V4(address)) => Some(*address),
        _ => None,
    }
}

fn octets(address: &Option<IpAddr>) -> Option<Vec<u8>> {
    address.map(|address| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    })
}

fn mapped(address: &Option<IpAddr>) -> Option<[u8; 16]> {
    address.map(|address| match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    })
}

type Columns = Vec<(&'static str, ArrayRef)>;

/// Columns of IPv4 addresses, with null for the others, and columns of all addresses.
fn columns(addresses: &[Option<IpAddr>]) -> (Columns, Columns) {
    let fours = || addresses.iter().map(v4);
    let texts: Vec<Option<String>> = addresses.iter().map(|address| address.map(|a| a.to_string())).collect();
    let texts = || texts.iter().map(Option::as_deref);
    let octets: Vec<_> = addresses.iter().map(octets).collect();
    let octets = || octets.iter().map(Option::as_deref);
    let of_4 =
        FixedSizeBinaryArray::try_from_sparse_iter_with_size(fours().map(|a| a.map(|a| a.octets())), 4);
    let of_16 =
        FixedSizeBinaryArray::try_from_sparse_iter_with_size(addresses.iter().map(mapped), 16).unwrap();
    let numbers: UInt32Array = fours().map(|address| address.map(u32::from)).collect();
    let longs: Int64Array = fours().map(|address| address.map(|a| i64::from(u32::from(a)))).collect();
    let dictionary: DictionaryArray<Int32Type> = texts().collect();
    // As few values as keys of this type have.
    let by_octets = cast(&of_16.clone(), &DataType::Binary).unwrap();
    let few = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Binary));
    (
        vec![("uint32", Arc::new(numbers)), ("int64", Arc::new(longs)), ("binary4", Arc::new(of_4.unwrap()))],
        vec![
            ("binary16", Arc::new(of_16)),
            ("binary", Arc::new(octets().collect::<BinaryArray>())),
            ("large_binary", Arc::new(octets().collect::<LargeBinaryArray>())),
            ("binary_view", Arc::new(octets().collect::<BinaryViewArray>())),
            ("utf8", Arc::new(texts().collect::<StringArray>())),
            ("large_utf8", Arc::new(texts().collect::<LargeStringArray>())),
            ("utf8_view", Arc::new(texts().collect::<StringViewArray>())),
            ("dictionary", Arc::new(dictionary)),
            ("dictionary_of_binary", cast(&by_octets, &few).unwrap()),
        ],
    )
}

#[tokio::test]
async fn every_type_of_column_in_memory_and_in_parquet() {
    let (routes, addresses) = (routes(1), addresses());
    let tables = Tables::new();
    tables.insert("t", table(&routes));
    let context = session(&tables);
    let (fours, all) = columns(&addresses);
    register(&context, "memory", &[fours.as_slice(), all.as_slice()].concat());

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flows.parquet");
    let path = path.to_str().unwrap();
    let memory = context.sql("SELECT * FROM memory ORDER BY n").await.unwrap();
    memory.write_parquet(path, DataFrameWriteOptions::new(), None).await.unwrap();
    context.register_parquet("parquet", path, ParquetReadOptions::default()).await.unwrap();

    let of_v4: Vec<_> = addresses.iter().map(|address| v4(address).map(IpAddr::V4)).collect();
    for function in FUNCTIONS {
        for (columns, addresses) in [(&fours, &of_v4), (&all, &addresses)] {
            let expected: Vec<_> =
                addresses.iter().map(|address| expected(function, &routes, *address)).collect();
            assert!(expected.iter().filter(|found| found.is_some()).count() > 50, "{function}");
            for (column, _) in columns {
                for (from, name) in [("memory", "'t', "), ("parquet", "")] {
                    let sql = format!("SELECT {function}({name}{column}) FROM {from} ORDER BY n");
                    assert_eq!(answer(&context, &sql).await.unwrap(), expected, "{sql}");
                }
            }
        }
    }
    // Both functions of a query share a state, and results group.
    let sql = "SELECT count(*) FROM parquet WHERE lpm(utf8) IS NOT NULL AND lpm_asn(utf8) = 64497";
    let of_asn = addresses.iter().filter(|a| expected("lpm_asn", &routes, **a).as_deref() == Some("64497"));
    assert_eq!(answer(&context, sql).await.unwrap(), [Some(of_asn.count().to_string())]);
}

#[tokio::test]
async fn literals_and_batches_without_rows() {
    let tables = Tables::new();
    tables.insert("t", table(&[("10.0.0.0/8".parse().unwrap(), 7), ("2001:db8::/32".parse().unwrap(), 8)]));
    let context = session(&tables);
    for (call, found) in [
        ("lpm('10.1.2.3')", Some("1")),
        ("lpm('::ffff:10.1.2.3')", Some("1")),
        ("lpm('2001:db8::1')", Some("2")),
        ("lpm('11.0.0.1')", None),
        ("lpm(167772161)", Some("1")),
        ("lpm(NULL)", None),
        ("lpm(x'0a000001')", Some("1")),
        ("lpm('t', '10.1.2.3')", Some("1")),
        ("lpm_label('10.1.2.3')", Some("7")),
        ("lpm_asn('2001:db8::1')", Some("8")),
        ("lpm_prefix('10.1.2.3')", Some("10.0.0.0/8")),
        ("lpm_len('::ffff:10.1.2.3')", Some("8")),
        ("lpm_all('10.1.2.3')", Some("[1]")),
        ("lpm_all('11.1.2.3')", None),
    ] {
        let found = [found.map(str::to_owned)];
        assert_eq!(answer(&context, &format!("SELECT {call}")).await.unwrap(), found, "{call}");
    }
    let none: ArrayRef = Arc::new(UInt32Array::from(Vec::<u32>::new()));
    register(&context, "none", &[("a", none)]);
    for function in FUNCTIONS {
        assert_eq!(answer(&context, &format!("SELECT {function}(a) FROM none")).await.unwrap(), []);
    }
}

#[tokio::test]
async fn two_tables_by_name() {
    let (one, other, addresses) = (routes(1), routes(2), addresses());
    let tables = Tables::new();
    tables.insert("one", table(&one));
    tables.insert("other", table(&other));
    let context = session(&tables);
    register(&context, "flows", &columns(&addresses).1);
    let mut answers = Vec::new();
    for (name, routes) in [("one", &one), ("other", &other)] {
        let sql = format!("SELECT lpm_prefix('{name}', utf8) FROM flows ORDER BY n");
        let expected: Vec<_> = addresses.iter().map(|a| expected("lpm_prefix", routes, *a)).collect();
        answers.push(answer(&context, &sql).await.unwrap());
        assert_eq!(answers.last(), Some(&expected));
    }
    assert_ne!(answers[0], answers[1]);

    let missing = error(&context, "SELECT lpm('third', utf8) FROM flows").await;
    assert!(missing.contains("there is no table \"third\"; there are: one, other"), "{missing}");
    let which = error(&context, "SELECT lpm(utf8) FROM flows").await;
    assert!(which.contains("name a table of addresses") && which.contains("one, other"), "{which}");
    let kind = error(&context, "SELECT name_lookup('one', utf8) FROM flows").await;
    assert!(
        kind.contains("the table \"one\" holds addresses; the function needs a table of names"),
        "{kind}"
    );
}

#[tokio::test]
async fn wrong_calls_are_refused_when_planned() {
    let tables = Tables::new();
    tables.insert("t", table(&routes(1)));
    let context = session(&tables);
    let floats: ArrayRef = Arc::new(arrow::array::Float64Array::from(vec![1.5]));
    let wide: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter([[0_u8; 5]].into_iter()).unwrap());
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["t"]));
    register(&context, "flows", &[("float", floats), ("five", wide), ("name", texts)]);
    for (call, reason) in [
        ("lpm(float)", "argument 1 is Float64, and has to be an address: UInt32"),
        ("lpm(five)", "has to be an address"),
        ("lpm('t', float)", "argument 2 is Float64"),
        ("lpm(name, name)", "argument 1 has to be a text in quotes"),
        ("lpm(1, name)", "argument 1 is Int64, and has to be a text in quotes"),
        ("lpm('t', name, name)", "3 arguments: it is lpm([table,] address)"),
        ("lpm()", "lpm"),
        ("rov(float, 1)", "argument 1 is Float64, and has to be text"),
        ("rov(name, float)", "has to be an AS number"),
        ("classify(name, name, 'tcp', 1, 2)", "has to be an integer from 0 to 255"),
        ("classify(name, name)", "classify([table,] src, dst, proto, sport, dport)"),
        ("name_lookup(float)", "has to be text"),
    ] {
        let error = planning_error(&context, &format!("SELECT {call} FROM flows")).await;
        assert!(error.contains(reason), "{call}: {error}");
    }
}

#[tokio::test]
async fn what_is_no_address_is_an_error_or_null() {
    let tables = Tables::new();
    tables.insert("t", table(&routes(1)));
    let context = session(&tables);
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("10.1.2.3"), Some("10.1.2"), None]));
    let octets: ArrayRef =
        Arc::new(BinaryArray::from(vec![Some(&[10, 1, 2, 3][..]), Some(&[10, 1, 2]), None]));
    register(&context, "flows", &[("text", texts), ("octets", octets)]);
    for (column, reason) in
        [("text", "\"10.1.2\" is no address"), ("octets", "3 octets are no address: 4 or 16 are")]
    {
        let sql = format!("SELECT lpm_asn({column}) FROM flows ORDER BY n");
        let error = error(&context, &sql).await;
        assert!(error.contains(reason) && error.contains("the table \"t\""), "{error}");
        context.sql("SET wirespeed.invalid = 'null'").await.unwrap();
        let found = expected("lpm_asn", &routes(1), Some("10.1.2.3".parse().unwrap()));
        assert!(found.is_some());
        assert_eq!(answer(&context, &sql).await.unwrap(), [found, None, None]);
        context.sql("SET wirespeed.invalid = 'error'").await.unwrap();
    }
    let negative = error(&context, "SELECT lpm(-1)").await;
    assert!(negative.contains("-1"), "{negative}");
}

#[tokio::test]
async fn values_of_a_dictionary_that_no_row_has_are_not_looked_at() {
    let tables = Tables::new();
    tables.insert("t", table(&[("10.0.0.0/8".parse().unwrap(), 7)]));
    let context = session(&tables);
    let values = StringArray::from(vec!["no address", "10.0.0.1", "11.0.0.1"]);
    let keys = arrow::array::Int8Array::from(vec![Some(1), None, Some(2), Some(1), Some(1), Some(2)]);
    let column: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::try_new(keys, Arc::new(values)).unwrap());
    register(&context, "flows", &[("a", column)]);
    for (function, found) in
        [("lpm", "1"), ("lpm_label", "7"), ("lpm_prefix", "10.0.0.0/8"), ("lpm_all", "[1]")]
    {
        let expected =
            [Some(found), None, None, Some(found), Some(found), None].map(|f| f.map(str::to_owned));
        let sql = format!("SELECT {function}(a) FROM flows ORDER BY n");
        assert_eq!(answer(&context, &sql).await.unwrap(), expected, "{sql}");
    }
}

#[tokio::test]
async fn labels_that_are_no_numbers() {
    let labels = Labels::new();
    let routes = [("10.0.0.0/8", "AS64496"), ("11.0.0.0/8", "64497_64498"), ("12.0.0.0/8", "cloud")];
    let routes = routes.map(|(net, label)| (net.parse::<IpNet>().unwrap(), label));
    let built = IpTable::builder().labelled_routes(&labels, routes).build().unwrap();
    let tables = Tables::new();
    tables.insert("t", Table::Addresses(AddressTable::new(built, &labels)));
    let unlabelled = IpTable::builder().routes([("10.0.0.0/8".parse::<IpNet>().unwrap(), NextHop(1))]);
    let unlabelled = AddressTable::new(unlabelled.build().unwrap(), &Labels::<String>::new());
    tables.insert("bare", Table::Addresses(unlabelled));
    let context = session(&tables);
    let asn = async |address: &str| answer(&context, &format!("SELECT lpm_asn('t', '{address}')")).await;
    assert_eq!(asn("10.0.0.1").await.unwrap(), [Some("64496".to_owned())]);
    assert_eq!(asn("11.0.0.1").await.unwrap(), [None]);
    let error_of = asn("12.0.0.1").await.unwrap_err().to_string();
    assert!(error_of.contains("the label \"cloud\" is no AS number"), "{error_of}");
    for call in ["lpm_label('bare', '10.0.0.1')", "lpm_asn('bare', '10.0.0.1')"] {
        let error = error(&context, &format!("SELECT {call}")).await;
        assert!(error.contains("no label for index 1"), "{error}");
    }
    assert_eq!(answer(&context, "SELECT lpm('bare', '10.0.0.1')").await.unwrap(), [Some("1".to_owned())]);
    let error = error(&context, "SELECT lpm_prefix('bare', '10.0.0.1')").await;
    assert!(error.contains("the table gives no prefixes"), "{error}");
}
