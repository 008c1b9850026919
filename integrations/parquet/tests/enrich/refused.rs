//! Values and command lines that are refused.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, DictionaryArray, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Int16Type;

use super::{Folder, read, texts, write};

#[test]
fn values_that_are_no_keys() {
    let folder = Folder::new();
    let rows = |bad: &str| {
        let row = |row| if row == 1700 { bad.to_owned() } else { format!("10.1.2.{}", row % 256) };
        (0..2500).map(|at| Some(row(at))).collect::<Vec<_>>()
    };
    let texts_of = |bad: &str| -> ArrayRef { Arc::new(StringArray::from(rows(bad))) };
    let dictionary = |bad: &str| -> ArrayRef {
        Arc::new(rows(bad).iter().map(Option::as_deref).collect::<DictionaryArray<Int16Type>>())
    };
    let binary = |_: &str| -> ArrayRef {
        let rows = (0..2500).map(|row| Some(if row == 1700 { vec![1, 2] } else { vec![10, 1, 2, 3] }));
        Arc::new(rows.collect::<BinaryArray>())
    };
    let numbers = |wrong: i64| -> ArrayRef {
        let right = i64::from(Ipv4Addr::new(10, 1, 2, 3).to_bits());
        Arc::new((0..2500).map(|row| if row == 1700 { wrong } else { right }).collect::<Int64Array>())
    };
    for (column, shown) in [
        (texts_of("10.1.2.999"), "\"10.1.2.999\""),
        (dictionary("x"), "\"x\""),
        (binary(""), "\"0102\""),
        (numbers(-1), "\"-1\""),
        (numbers(1 << 32), "\"4294967296\""),
    ] {
        write(&folder.path("in"), vec![("dst", texts_of("10.1.2.3")), ("src", column)]);
        fs::write(folder.path("out"), "what was there").unwrap();
        let says = format!("in: row 1701: src {shown} is no address (--lenient passes such rows)");
        folder.refused_with("enrich in -o out --table asn=routes", &says);
        assert_eq!(fs::read(folder.path("out")).unwrap(), b"what was there");
        let ran = folder.run("enrich in -o out --table asn=routes --lenient");
        assert!(ran.stderr.contains("src: 1 wrong values passed through"), "{}", ran.stderr);
        let out = read(&folder.path("out"));
        let right: Vec<_> = (0..2500).map(|row| (row != 1700).then_some("64498")).collect();
        assert_eq!((texts(&out, "src_asn"), texts(&out, "dst_asn").len()), (right, 2500));
    }
    // A value of a dictionary that no row has is not looked at.
    let values: ArrayRef = Arc::new(StringArray::from(vec!["10.1.2.3", "x"]));
    let unused = DictionaryArray::<Int16Type>::try_new(vec![0, 0, 0].into(), values).unwrap();
    write(&folder.path("in"), vec![("src", Arc::new(unused))]);
    assert_eq!(texts(&folder.enrich("--table asn=routes"), "src_asn"), [Some("64498"); 3]);
}

#[test]
fn what_is_refused() {
    let folder = Folder::new();
    fs::write(folder.path("text"), "src,dst\n").unwrap();
    fs::write(folder.path("empty"), "").unwrap();
    folder.refused("enrich text -o out --table asn=routes", "text: no Parquet file");
    folder.refused("enrich empty -o out --table asn=routes", "empty: no Parquet file");
    folder.refused("enrich missing -o out --table asn=routes", "missing: No such file");
    let numbers: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0]));
    let ips: ArrayRef = Arc::new(StringArray::from(vec!["10.1.2.3", "10.1.2.4"]));
    write(&folder.path("in"), vec![("a", numbers), ("b", Arc::clone(&ips)), ("b_asn", ips)]);
    for (arguments, says) in [
        ("", "no table"),
        (
            "--table asn=routes",
            "no column is known to hold addresses; name some with --src, --dst or --address; the columns are a, b, b_asn",
        ),
        ("--table asn=routes --src a", "column \"a\" is Float64, which holds no addresses"),
        ("--table asn=routes --src c", "there is no column \"c\"; the columns are a, b, b_asn"),
        ("--table asn=routes --address b", "there is a column \"b_asn\" already"),
        ("--table asn=routes --table asn=routes", "two tables have the name \"asn\""),
        ("--table asn=nothing --src b", "nothing: No such file"),
        ("--names n=routes --src b", "--src is for --table and --rules"),
    ] {
        folder.refused(&format!("enrich in -o out {arguments}"), says);
    }
    assert!(!folder.path("out").exists());
    let mut cut = fs::read(folder.path("in")).unwrap();
    cut.truncate(cut.len() - 9);
    fs::write(folder.path("cut"), cut).unwrap();
    folder.refused("enrich cut -o out --table asn=routes --src b", "cut: a damaged Parquet file");
    // Pages that are damaged.
    let mut bytes = fs::read(folder.path("in")).unwrap();
    bytes[4..40].fill(0xff);
    bytes[40..160].fill(0xff);
    fs::write(folder.path("bad"), bytes).unwrap();
    folder.refused("enrich bad -o out --table asn=routes --src b", "bad: ");
    let ran = folder.run("enrich in -o out --table x=routes --src b");
    assert!(
        ran.stderr.contains("2 rows in") && ran.stderr.contains("b: 2 looked up, 2 of them matched"),
        "{}",
        ran.stderr
    );
}

#[test]
fn an_output_that_is_a_table_is_refused() {
    let folder = Folder::new();
    write(&folder.path("in"), vec![("src", Arc::new(StringArray::from(vec!["10.1.2.3"])) as ArrayRef)]);
    fs::write(folder.path("table"), "10.0.0.0/8 1\n").unwrap();
    let error = "table: the output is a table, which would be lost";
    folder.refused_with("enrich in -o table --table asn=table", error);
    assert_eq!(fs::read_to_string(folder.path("table")).unwrap(), "10.0.0.0/8 1\n");
    // The input may be the output.
    assert_eq!(folder.run("enrich in -o in --table asn=table").code, 0);
    assert_eq!(texts(&read(&folder.path("in")), "src_asn"), [Some("1")]);
}

#[test]
fn an_error_of_the_output_names_the_output_alone() {
    let folder = Folder::new();
    write(&folder.path("in"), vec![("src", Arc::new(StringArray::from(vec!["10.1.2.3"; 2500])) as ArrayRef)]);
    let there = |path| Path::new(path).exists();
    if there("/dev/full") {
        let error = "/dev/full: No space left on device (os error 28)";
        folder.refused_with("enrich in -o /dev/full --table asn=routes", error);
    }
    folder.refused_with(
        "enrich in -o missing/out --table asn=routes",
        "missing/out: No such file or directory (os error 2)",
    );
}
