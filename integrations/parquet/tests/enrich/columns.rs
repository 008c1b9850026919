//! Columns that are looked up, of every type, beside a slow enricher; and tables of every kind.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, DictionaryArray, FixedSizeBinaryArray, Int32Array, Int64Array, LargeBinaryArray,
    LargeStringArray, StringArray, StringViewArray, StructArray, UInt32Array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int16Type};

use super::{Dice, Folder, octets, slow, texts, write};

#[test]
fn addresses_of_every_type() {
    let (folder, mut dice) = (Folder::new(), Dice(3));
    let any: Vec<Option<IpAddr>> = (0..2500).map(|_| (dice.below(9) > 0).then(|| dice.address())).collect();
    let fours: Vec<Option<Ipv4Addr>> = (0..2500).map(|_| (dice.below(9) > 0).then(|| dice.v4())).collect();
    let of_fours: Vec<Option<IpAddr>> = fours.iter().map(|row| row.map(IpAddr::V4)).collect();
    let plain: Vec<Option<String>> = any.iter().map(|row| row.map(|row| row.to_string())).collect();
    let bytes: Vec<Option<Vec<u8>>> = any.iter().map(|row| row.map(octets)).collect();
    let bytes = || bytes.iter().map(Option::as_deref);
    let sixes = any.iter().map(|row| {
        row.map(|row| match row {
            IpAddr::V4(row) => row.to_ipv6_mapped().octets(),
            IpAddr::V6(row) => row.octets(),
        })
    });
    let utf8: ArrayRef = Arc::new(StringArray::from(plain.clone()));
    let binary: ArrayRef = Arc::new(bytes().collect::<BinaryArray>());
    let dictionary = |of: &ArrayRef| {
        let of_type = DataType::Dictionary(Box::new(DataType::Int32), Box::new(of.data_type().clone()));
        cast(of, &of_type).unwrap()
    };
    let numbers = fours.iter().map(|row| row.map(Ipv4Addr::to_bits));
    let longs: ArrayRef = Arc::new(numbers.clone().map(|row| row.map(i64::from)).collect::<Int64Array>());
    // Those that fit.
    let of_low: Vec<_> =
        of_fours.iter().map(|row| row.filter(|row| *row < IpAddr::V4([128, 0, 0, 0].into()))).collect();
    let low = fours.iter().map(|row| row.and_then(|row| i32::try_from(row.to_bits()).ok()));
    let four_octets = fours.iter().map(|row| row.map(|row| row.octets()));
    let columns: Vec<(&str, ArrayRef, &[Option<IpAddr>])> = vec![
        ("utf8", Arc::clone(&utf8), &any),
        ("large", Arc::new(LargeStringArray::from(plain.clone())), &any),
        ("view", Arc::new(StringViewArray::from_iter(plain.clone())), &any),
        ("dictionary", dictionary(&utf8), &any),
        ("binary", Arc::clone(&binary), &any),
        ("large_binary", Arc::new(bytes().collect::<LargeBinaryArray>()), &any),
        ("binary_view", cast(&binary, &DataType::BinaryView).unwrap(), &any),
        ("binary_dictionary", dictionary(&binary), &any),
        ("six", Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(sixes, 16).unwrap()), &any),
        (
            "four",
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(four_octets, 4).unwrap()),
            &of_fours,
        ),
        ("number", Arc::new(numbers.collect::<UInt32Array>()), &of_fours),
        ("int64", Arc::clone(&longs), &of_fours),
        ("uint64", cast(&longs, &DataType::UInt64).unwrap(), &of_fours),
        ("int32", Arc::new(low.collect::<Int32Array>()), &of_low),
        ("int64_dictionary", dictionary(&longs), &of_fours),
    ];
    write(&folder.path("in"), columns.iter().map(|(name, array, _)| (*name, Arc::clone(array))).collect());
    let options: Vec<_> = columns.iter().map(|(name, ..)| format!("--address {name}")).collect();
    let out = folder.enrich(&format!("--table asn=routes --prefix {}", options.join(" ")));
    for (name, array, rows) in columns {
        assert_eq!(out.column_by_name(name).unwrap(), &array, "{name}");
        let right: Vec<_> = rows.iter().map(|row| row.and_then(slow)).collect();
        let values: Vec<_> = right.iter().map(|row| row.map(|(_, to)| to)).collect();
        assert!(values.contains(&Some("64498")) && values.contains(&None));
        assert_eq!(texts(&out, &format!("{name}_asn")), values, "{name}");
        let prefixes: Vec<_> = right.iter().map(|row| row.map(|(net, _)| net.to_string())).collect();
        let prefixes: Vec<_> = prefixes.iter().map(Option::as_deref).collect();
        assert_eq!(texts(&out, &format!("{name}_asn_prefix")), prefixes, "{name}");
    }
}

#[test]
fn addresses_of_octets_may_be_either_family() {
    let folder = Folder::new();
    let six: Ipv6Addr = "2001:db8:1::7".parse().unwrap();
    let rows = [
        six.octets().to_vec(),
        vec![10, 1, 2, 3],
        Ipv4Addr::new(10, 9, 9, 9).to_ipv6_mapped().octets().to_vec(),
    ];
    write(&folder.path("in"), vec![("ip", Arc::new(BinaryArray::from_iter_values(rows)))]);
    assert_eq!(
        texts(&folder.enrich("--table asn=routes"), "ip_asn"),
        [Some("64501"), Some("64498"), Some("64496")]
    );
}

#[test]
fn addresses_of_a_family_that_no_table_has() {
    let folder = Folder::new();
    fs::write(folder.path("four"), "10.0.0.0/8 1\n").unwrap();
    fs::write(folder.path("six"), "2001:db8::/32 1\n").unwrap();
    let rows = ["10.1.2.3", "192.0.2.1", "2001:db8::1", "fe80::1", "fe80::2", "::ffff:10.1.2.3", "-"];
    let values: DictionaryArray<Int16Type> = rows.into_iter().chain(["fe80::1"]).map(Some).collect();
    let src: ArrayRef = Arc::new(StringArray::from(rows.into_iter().chain(["fe80::1"]).collect::<Vec<_>>()));
    write(&folder.path("in"), vec![("src", src), ("dst", Arc::new(values))]);
    for (tables, says) in [
        ("--table a=four", "3 looked up, 2 of them matched; 4 of IPv6, which no table has"),
        ("--table a=six", "4 looked up, 1 of them matched; 3 of IPv4, which no table has"),
        ("--table a=four --table b=six", "7 looked up, 3 of them matched"),
    ] {
        let ran = folder.run(&format!("enrich in -o out {tables}"));
        assert!(ran.stderr.ends_with(&format!("\n  src: {says}\n  dst: {says}\n")), "{}", ran.stderr);
    }
}

#[test]
fn structs_that_are_null() {
    let folder = Folder::new();
    let ips: ArrayRef =
        Arc::new(StringArray::from(vec![Some("10.1.2.3"), Some("10.1.2.3"), None, Some("10.9.9.9")]));
    let field = Arc::new(Field::new("ip", DataType::Utf8, true));
    let nulls = vec![true, false, true, true].into();
    let nested = StructArray::new(vec![field].into(), vec![ips], Some(nulls));
    write(&folder.path("in"), vec![("source", Arc::new(nested))]);
    let out = folder.enrich("--table asn=routes");
    assert_eq!(texts(&out, "src_asn"), [Some("64498"), None, None, Some("64496")]);
}

#[test]
fn tables_with_fields_and_names() {
    let folder = Folder::new();
    fs::write(
        folder.path("geo.csv"),
        "network,country,city\n10.0.0.0/8,FR,\"Lyon, 3e\"\n2001:db8::/32,DE,\n",
    )
    .unwrap();
    fs::write(folder.path("list"), "*.example.com\nbad.org\n").unwrap();
    fs::write(folder.path("names"), "/com/example 7\n").unwrap();
    let src: ArrayRef =
        Arc::new(StringArray::from(vec![Some("10.1.1.1"), Some("2001:db8::1"), None, Some("")]));
    let query: DictionaryArray<Int16Type> =
        [Some("www.example.com"), Some("-"), Some("BAD.org."), None].into_iter().collect();
    write(&folder.path("in"), vec![("src", src), ("query", Arc::new(query))]);
    let out = folder
        .enrich("--table geo=geo.csv --fields geo=city,country --names list=list --names n=names --prefix");
    assert_eq!(texts(&out, "src_geo_city"), [Some("Lyon, 3e"), None, None, None]);
    assert_eq!(texts(&out, "src_geo_country"), [Some("FR"), Some("DE"), None, None]);
    assert_eq!(texts(&out, "src_geo_prefix"), [Some("10.0.0.0/8"), Some("2001:db8::/32"), None, None]);
    assert_eq!(texts(&out, "query_list"), [Some("member"), None, Some("member"), None]);
    assert_eq!(texts(&out, "query_n"), [Some("7"), None, None, None]);
    assert_eq!(texts(&out, "query_n_prefix"), [Some("/com/example"), None, None, None]);
}

#[test]
fn merged_sources_are_one_table() {
    let folder = Folder::new();
    fs::write(folder.path("own.csv"), "prefix,site\n10.1.0.0/16,Kiel\n").unwrap();
    fs::write(folder.path("asn.txt"), "10.0.0.0/8 64496\n").unwrap();
    let src: ArrayRef = Arc::new(StringArray::from(vec![Some("10.1.1.1"), Some("10.2.0.1"), None]));
    write(&folder.path("in"), vec![("src", src)]);
    let out =
        folder.enrich("--merge net=own:site=own.csv --merge net=asn=asn.txt --fields net=own,asn --src src");
    assert_eq!(texts(&out, "src_net_own"), [Some("Kiel"), None, None]);
    assert_eq!(texts(&out, "src_net_asn"), [Some("64496"), Some("64496"), None]);
}

#[test]
fn numbers_are_addresses_of_the_family_that_is_named() {
    let folder = Folder::new();
    fs::write(folder.path("low"), "::100:0/104 7\n").unwrap();
    let texts_of = |rows: [&str; 4]| -> ArrayRef { Arc::new(StringArray::from(rows.to_vec())) };
    // 10.1.2.3, in text and as a number.
    let four = texts_of(["167838211", "10.1.2.3", "2001:db8::1", "-"]);
    let integers = Int64Array::from(vec![Some(16_777_216), Some(0), None, Some(1 << 33)]);
    let dictionary = |of: &ArrayRef| {
        cast(of, &DataType::Dictionary(Box::new(DataType::Int8), Box::new(of.data_type().clone()))).unwrap()
    };
    write(&folder.path("in"), vec![("src", Arc::clone(&four)), ("dst", dictionary(&four))]);
    let out = folder.enrich("--table asn=routes --address-numbers 4 --prefix");
    for column in ["src", "dst"] {
        let right = [Some("64498"), Some("64498"), Some("64500"), None];
        assert_eq!(texts(&out, &format!("{column}_asn")), right);
        let right = [Some("10.1.2.0/24"), Some("10.1.2.0/24"), Some("2001:db8::/32"), None];
        assert_eq!(texts(&out, &format!("{column}_asn_prefix")), right);
    }
    folder.refused_with(
        "enrich in -o out --table asn=routes",
        "in: row 1: src \"167838211\" is no address (--address-numbers takes numbers as addresses) (--lenient passes such rows)",
    );
    folder.refused(
        "enrich in -o out --names n=routes --address-numbers 4",
        "--address-numbers is for --table and --rules, and there is none",
    );
    let integers: ArrayRef = Arc::new(integers);
    let six = texts_of(["16777217", "42540766411282592856903984951653826561", "::100:1", "33554431"]);
    write(
        &folder.path("in"),
        vec![("src", Arc::clone(&integers)), ("dst", dictionary(&integers)), ("ip", six)],
    );
    let out = folder
        .enrich("--src src --dst dst --address ip --table asn=routes --table low=low --address-numbers 6");
    for column in ["src", "dst"] {
        assert_eq!(texts(&out, &format!("{column}_low")), [Some("7"), None, None, None]);
        assert_eq!(texts(&out, &format!("{column}_asn")), [None; 4]);
    }
    assert_eq!(texts(&out, "ip_low"), [Some("7"), None, Some("7"), Some("7")]);
    assert_eq!(texts(&out, "ip_asn"), [None, Some("64500"), None, None]);
    // Without the option integers are of IPv4, and the last one is out of range.
    folder.refused_with(
        "enrich in -o out --src src --table asn=routes",
        "in: row 4: src \"8589934592\" is no address (--lenient passes such rows)",
    );
}
