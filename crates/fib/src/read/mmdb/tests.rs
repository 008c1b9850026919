//! Files of our own writer, and one of the Python package `mmdb_writer`, whole and damaged.

use super::*;
use crate::fib::Fib;
use crate::read::tests::{read_strict, read_with, text_of};
use crate::read::{Format, ReadOptions, ReadReport};
use crate::write::{MmdbOptions, mmdb_of, write_fib, write_mmdb};

/// `1.0.0.0/24` and `10.0.0.0/8` of Australia, `1.0.4.0/22` of China, `2001:db8::/32` of Germany.
const OTHER: &[u8] = include_bytes!("other_writer.mmdb");

const TABLE: &str = "\
1.0.0.0/24 asn=13335,country.iso_code=AU
1.0.4.0/22 asn=38803
10.0.0.0/8 Ger%20many
2001:db8::/32 asn=1,tags.0=a,tags.1=b
2001:db8:1::/48 core
";

fn fib_of(text: &str) -> Fib {
    read_strict(Format::Plain, text.as_bytes()).unwrap().0
}

fn fields(bytes: &[u8], names: &[&str]) -> Result<(Fib, ReadReport), ReadError> {
    let values = names.iter().map(ToString::to_string).collect();
    read_with(
        bytes,
        &ReadOptions { columns: Columns { values, ..Columns::default() }, ..ReadOptions::default() },
    )
}

#[test]
fn a_file_of_another_writer() {
    let (fib, report) = read_with(OTHER, &ReadOptions::default()).unwrap();
    assert_eq!(
        text_of(&fib),
        "1.0.0.0/24 country.iso_code=AU,country.names.en=Australia,asn=13335\n\
         1.0.4.0/22 country.iso_code=CN,asn=38803,tags.0=a,tags.1=b\n\
         10.0.0.0/8 country.iso_code=AU,country.names.en=Australia,asn=13335\n\
         2001:db8::/32 country.iso_code=DE,country.names.en=Ger%20many\n"
    );
    assert_eq!((report.format, report.routes, report.repeated), (Format::Mmdb, 4, 0));
    let (fib, report) = fields(OTHER, &["asn"]).unwrap();
    assert_eq!(text_of(&fib), "1.0.0.0/24 13335\n1.0.4.0/22 38803\n10.0.0.0/8 13335\n");
    assert_eq!(report.skipped_for(SkipReason::NoField), 1);
    let (fib, _) = fields(OTHER, &["country.names.en", "tags.1"]).unwrap();
    assert!(text_of(&fib).starts_with("1.0.0.0/24 country.names.en=Australia\n1.0.4.0/22 tags.1=b\n"));
    let message = fields(OTHER, &["asn", "city"]).unwrap_err().to_string();
    assert!(
        message.starts_with("test, byte 0: no field city; there are asn, country.iso_code,"),
        "{message}"
    );
    let columns =
        Columns { prefix: Some(crate::read::PrefixColumns::Prefix("a".into())), ..Columns::default() };
    let options = ReadOptions { columns, ..ReadOptions::default() };
    assert!(read_with(OTHER, &options).unwrap_err().to_string().contains("are for CSV"));
}

/// A table with a value of each type, written with the types that are stated.
#[test]
fn types_stay_where_a_file_is_read_and_written_again() {
    use crate::read::FieldType::{
        Boolean, Bytes, Double, Float, Int32, Text, Uint16, Uint32, Uint64, Uint128,
    };
    let label = |a: &str| {
        format!("postal.code={a},location.latitude=52.5,f=0.1,is=true,radius=5,n=6,l=7,i=8,s=-9,b=0aff")
    };
    let fib = fib_of(&format!("1.0.0.0/24 {}\n2.0.0.0/24 {}\n", label("10115"), label("20095")));
    let mut stated = FieldTypes::default();
    let all = [
        ("postal.code", Text),
        ("location.latitude", Double),
        ("f", Float),
        ("is", Boolean),
        ("radius", Uint16),
        ("n", Uint32),
        ("l", Uint64),
        ("i", Uint128),
        ("s", Int32),
        ("b", Bytes),
    ];
    all.iter().for_each(|(field, of)| stated.state(field, *of));
    let options = MmdbOptions {
        stated: stated.clone(),
        database_type: "Own-City".into(),
        description: "our sites".into(),
        ..MmdbOptions::default()
    };
    let mut bytes = Vec::new();
    write_mmdb(&fib, &options, &mut bytes).unwrap();
    let reader = Reader::from_source(&bytes[..]).unwrap();
    assert_eq!(reader.metadata().database_type, "Own-City");
    assert_eq!(reader.metadata().description["en"], "our sites");
    let (again, report) = read_with(&bytes, &ReadOptions::default()).unwrap();
    assert_eq!((text_of(&again), &report.field_types), (text_of(&fib), &stated));
    // Of that file without anything stated, all types stay.
    let read = MmdbOptions { read: report.field_types, ..MmdbOptions::default() };
    let mut third = Vec::new();
    write_mmdb(&again, &read, &mut third).unwrap();
    assert_eq!(read_with(&third, &ReadOptions::default()).unwrap().1.field_types, stated);
    // One field alone has no name.
    let report = fields(&bytes, &["postal.code"]).unwrap().1;
    assert_eq!((report.field_types.of("value"), report.field_types.of("n")), (Ok(Some(Text)), Ok(None)));
}

#[test]
fn values_that_are_not_of_their_type_are_refused() {
    let fib = fib_of("1.0.0.0/24 a=x,b=1\n2.0.0.0/24 a=5,b=2\n");
    let said = |options: &MmdbOptions| write_mmdb(&fib, options, &mut Vec::new()).unwrap_err().to_string();
    let of = |field: &str, of| {
        let mut types = FieldTypes::default();
        types.state(field, of);
        types
    };
    use crate::read::FieldType::{Text, Uint32};
    let stated = |field, kind| MmdbOptions { stated: of(field, kind), ..MmdbOptions::default() };
    assert_eq!(said(&stated("a", Uint32)), "1.0.0.0/24: the field a is uint32, and \"x\" is no such value");
    assert_eq!(said(&stated("c", Uint32)), "no field c; there are a, b");
    let mut several = of("a", Uint32);
    several.note("a", Text);
    let read = MmdbOptions { read: several, ..MmdbOptions::default() };
    assert!(said(&read).starts_with("the field a has values of several types"), "{}", said(&read));
    let both = MmdbOptions { stated: of("a", Text), ..read };
    assert!(write_mmdb(&fib, &both, &mut Vec::new()).is_ok());
}

#[test]
fn what_is_written_is_read_back_with_records_of_every_size() {
    let fib = fib_of(TABLE);
    for bits in [24, 28, 32] {
        let bytes = mmdb_of(&fib, Some(bits)).unwrap();
        let read = read_with(&bytes, &ReadOptions::default()).unwrap().0;
        // The route inside the other cut it to pieces: 32 to 47 bits, and the sibling of the last one.
        assert_eq!((read.v4.len(), read.v6.len()), (3, 17), "{bits}");
        for address in ["2001:db8::1", "2001:db8:1::1", "2001:db8:2::", "2001:db9::"] {
            let text = |fib: &Fib| {
                let (_, found) = fib.v6.longest_match(address.parse().unwrap())?;
                fib.next_hops.text(found).map(str::to_owned)
            };
            assert_eq!(text(&read), text(&fib), "{address}");
        }
        let v4 = |fib: &Fib| text_of(&Fib { v6: crate::Rib::new(), ..fib.clone() });
        assert_eq!(v4(&read), v4(&fib));
    }
    let v4 = fib_of("0.0.0.0/1 a\n128.0.0.0/1 b\n");
    let mut bytes = Vec::new();
    write_fib(&v4, Format::Mmdb, &mut bytes).unwrap();
    assert_eq!(text_of(&read_with(&bytes, &ReadOptions::default()).unwrap().0), text_of(&v4));
    let refused = write_fib(&fib_of("10.0.0.0/8 %41\n"), Format::Mmdb, &mut Vec::new());
    assert!(refused.is_err());
}

#[test]
fn a_record_above_ipv4_is_also_of_ipv4() {
    let mut bytes = mmdb_of(&fib_of("8000::/1 b\n"), None).unwrap();
    // The root's record for the bit 0 leads to the data of the bit 1, too.
    let (left, right) = bytes.split_at_mut(3);
    left.copy_from_slice(&right[..3]);
    let (fib, _) =
        read_with(&bytes, &ReadOptions { format: Some(Format::Mmdb), ..ReadOptions::default() }).unwrap();
    assert_eq!(text_of(&fib), "0.0.0.0/0 b\n::/1 b\n8000::/1 b\n");
}

#[test]
fn aliases_of_ipv4_are_no_routes() {
    let mut bytes = mmdb_of(&fib_of("10.0.0.0/8 a\n8000::/1 b\n"), None).unwrap();
    // The root's record for the bit 1 leads to ::/96, as those of 2002::/16 and the like do.
    let node = 96_u32.to_be_bytes();
    bytes[3..6].copy_from_slice(&node[1..]);
    let (fib, report) = read_with(&bytes, &ReadOptions::default()).unwrap();
    assert_eq!(text_of(&fib), "10.0.0.0/8 a\n");
    assert_eq!(report.skipped_for(SkipReason::Alias), 1);
}

#[test]
fn damaged_files_are_refused_with_a_place() {
    let whole = mmdb_of(&fib_of("10.0.0.0/8 a\n"), None).unwrap();
    let message = |bytes: &[u8]| {
        let options = ReadOptions { format: Some(Format::Mmdb), ..ReadOptions::default() };
        read_with(bytes, &options).unwrap_err().to_string()
    };
    // Both ways of a node to the next one: 2^7 networks, if each way counted.
    let mut shared = whole.clone();
    for node in 0..7 {
        let next = [0, 0, node + 1];
        shared[usize::from(node) * 6..][..6].copy_from_slice(&[next, next].concat());
    }
    assert_eq!(message(&shared), "test, byte 42: a malformed record: \"a node that two others lead to\"");
    let mut cycle = whole.clone();
    cycle[..3].fill(0);
    assert_eq!(message(&cycle), "test, byte 0: a malformed record: \"a node that two others lead to\"");
    let mut outside = whole.clone();
    outside[3..6].copy_from_slice(&[1, 0, 0]);
    assert!(message(&outside).contains("a malformed record"), "{}", message(&outside));
    for lenient in [false, true] {
        let options = ReadOptions { lenient, ..ReadOptions::default() };
        let message = read_with(b"\0\0\x01 no database", &options).unwrap_err().to_string();
        assert!(message.starts_with("test: unknown format; it starts with"), "{message}");
    }
    // No cut and no changed byte makes a panic; `lenient` counts.
    for at in 0..whole.len() {
        for byte in [0, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            for lenient in [false, true] {
                let options = ReadOptions { format: Some(Format::Mmdb), lenient, ..ReadOptions::default() };
                _ = read_with(&bytes, &options);
            }
        }
        assert!(read_strict(Format::Mmdb, &whole[..at]).is_err());
    }
}
