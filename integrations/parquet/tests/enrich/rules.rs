//! Rules of 5-tuples, whose fields come from columns.

use std::fs;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, FixedSizeBinaryArray, Int32Array, StringArray, StructArray, UInt8Array, UInt16Array,
    UInt32Array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int8Type};

use super::{Folder, texts, write};

pub(crate) const UFW: &str = "*filter\n:INPUT DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n\
    -A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
    -A INPUT -p tcp -m tcp --dport 443 -j ACCEPT\n\
    -A INPUT -s 10.1.0.0/16 -p icmp -m icmp --icmp-type 8 -j ACCEPT\n\
    -A OUTPUT -d 10.0.0.0/8 -p tcp -m tcp --dport 22 -j DROP\nCOMMIT\n";

/// A column as a dictionary of its values.
pub(crate) fn dictionary(column: &ArrayRef) -> ArrayRef {
    let of = DataType::Dictionary(Box::new(DataType::Int32), Box::new(column.data_type().clone()));
    cast(column, &of).unwrap()
}

#[test]
fn fields_of_every_type() {
    let folder = Folder::new();
    fs::write(folder.path("fw"), UFW).unwrap();
    let src = [[10, 1, 0, 1]; 6];
    let texts_of = |texts: [Option<&str>; 6]| Arc::new(StringArray::from(texts.to_vec())) as ArrayRef;
    let proto = [Some("tcp"), Some("TCP"), Some("17"), Some("icmp"), None, Some("tcp")];
    let dport = [Some(443), Some(22), Some(443), None, Some(443), None];
    let icmp = [None, None, None, Some(8), None, None];
    let src_texts = texts_of([Some("10.1.0.1"); 6]);
    let dst_texts = texts_of([Some("192.0.2.1"); 6]);
    let numbers: ArrayRef = Arc::new(UInt32Array::from(vec![u32::from_be_bytes(src[0]); 6]));
    let octets: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter(src.iter()).unwrap());
    let ports = |of: &DataType| {
        let ports: ArrayRef = Arc::new(Int32Array::from(dport.to_vec()));
        cast(&ports, of).unwrap()
    };
    let types: ArrayRef = Arc::new(UInt8Array::from(icmp.to_vec()));
    let protocols: ArrayRef =
        Arc::new(UInt8Array::from(vec![Some(6), Some(6), Some(17), Some(1), None, Some(6)]));
    let protos = texts_of(proto);
    for (src, dst, proto, port) in [
        (&src_texts, &dst_texts, &protos, ports(&DataType::Utf8)),
        (&numbers, &dictionary(&dst_texts), &dictionary(&protos), ports(&DataType::UInt16)),
        (&octets, &dst_texts, &protocols, dictionary(&ports(&DataType::Int64))),
        (&dictionary(&src_texts), &dictionary(&dst_texts), &dictionary(&protocols), ports(&DataType::Int32)),
    ] {
        let columns = vec![
            ("src_ip", Arc::clone(src)),
            ("dst_ip", Arc::clone(dst)),
            ("proto", Arc::clone(proto)),
            ("dst_port", port),
            ("icmp_type", Arc::clone(&types)),
        ];
        write(&folder.path("in"), columns);
        let out = folder.enrich("--rules fw=fw --assume ct=new --rules out=fw --chain out=OUTPUT");
        let [accept, drop] = ["ACCEPT", "DROP"].map(Some);
        assert_eq!(texts(&out, "fw"), [accept, drop, drop, accept, None, drop]);
        assert_eq!(texts(&out, "fw_rule"), [Some("1"), Some("3"), Some("3"), Some("2"), None, Some("3")]);
        let because = "the record has no ports, which rule 1 tests";
        let because: Vec<_> = [None; 5].into_iter().chain([Some(because)]).collect();
        assert_eq!(texts(&out, "fw_uncertain_because"), because);
        assert_eq!(texts(&out, "out"), [accept, accept, accept, accept, None, accept]);
    }
}

#[test]
fn fields_within_structs_and_null_structs() {
    let folder = Folder::new();
    fs::write(folder.path("fw"), UFW).unwrap();
    let of = |texts: Vec<&str>, port: Option<Vec<u16>>| {
        let ip = Arc::new(Field::new("ip", DataType::Utf8, true));
        let mut columns = vec![(ip, Arc::new(StringArray::from(texts)) as ArrayRef)];
        let port = port.map(|port| Arc::new(UInt16Array::from(port)) as ArrayRef);
        columns.extend(port.map(|port| (Arc::new(Field::new("port", DataType::UInt16, true)), port)));
        StructArray::from(columns)
    };
    let source = of(vec!["10.1.0.1"; 3], None);
    let target = of(vec!["192.0.2.1"; 3], Some(vec![443, 22, 443]));
    let (fields, columns, _) = target.into_parts();
    let target = StructArray::new(fields, columns, Some(vec![true, true, false].into()));
    let proto: ArrayRef = Arc::new(StringArray::from(vec!["tcp"; 3]));
    let columns: Vec<(&str, ArrayRef)> =
        vec![("source", Arc::new(source)), ("destination", Arc::new(target)), ("network", proto)];
    write(&folder.path("in"), columns);
    let out = folder.enrich("--rules fw=fw --assume ct=new --proto network");
    assert_eq!(texts(&out, "fw"), [Some("ACCEPT"), Some("DROP"), None]);
}

#[test]
fn wrong_values_name_their_row_and_column() {
    let folder = Folder::new();
    fs::write(folder.path("fw"), UFW).unwrap();
    let values: ArrayRef = Arc::new(StringArray::from(vec!["tcp", "udp", "tpc"]));
    let proto = cast(&values, &DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)));
    let proto = proto.unwrap();
    assert!(proto.as_dictionary_opt::<Int8Type>().is_some());
    let ip: ArrayRef = Arc::new(StringArray::from(vec!["10.0.0.1"; 3]));
    let six: ArrayRef = Arc::new(StringArray::from(vec!["2001:db8::1"; 3]));
    let with = |src: &ArrayRef, port: i32| {
        let port: ArrayRef = Arc::new(Int32Array::from(vec![1, port, 3]));
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("src", Arc::clone(src)),
            ("dst", Arc::clone(src)),
            ("proto", Arc::clone(&proto)),
            ("dport", port),
        ];
        write(&folder.path("in"), columns);
    };
    let line = "enrich in -o out --rules fw=fw --assume ct=new";
    with(&ip, 2);
    folder.refused_with(line, "in: row 3: proto \"tpc\" is no protocol (--lenient passes such rows)");
    for port in [-1, 65536] {
        with(&ip, port);
        let says = format!("in: row 2: dport \"{port}\" is no port (--lenient passes such rows)");
        folder.refused_with(line, &says);
    }
    let ran = folder.run(&format!("{line} --lenient"));
    let says = "5-tuples: 1 looked up, 1 of them matched\n  5-tuples: 2 wrong values passed through";
    assert!(ran.code == 0 && ran.stderr.contains(says), "{}", ran.stderr);
    with(&six, 2);
    let ran = folder.run(&format!("{line} --lenient"));
    assert!(ran.stderr.contains("5-tuples: 0 looked up, 0 of them matched; 2 of IPv6"), "{}", ran.stderr);
    folder.refused(&format!("{line} --sport src --dport proto"), "row 1: ");
    folder.refused("enrich in -o out --rules fw=fw", "rule");
    folder.refused(
        &format!("{line} --proto nosuch"),
        "there is no column \"nosuch\"; the columns are src, dst",
    );
    folder.refused("enrich in -o out --rules fw=nosuch", "nosuch: No such file");
    folder.refused("enrich in -o out --table fw=fw", "rules are named with --rules NAME=FILE");
}
