//! `lookupctl enrich` of a Parquet file, with the real program beside this one.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray, UInt32Array};
use arrow::compute::cast;
use arrow::datatypes::DataType;

use super::rules::{UFW, dictionary};
use super::{Dice, Folder, read, texts, write};

/// A `lookupctl` that was built: `LOOKUPCTL`, or one in the root's own target directory.
fn lookupctl() -> Option<PathBuf> {
    if let Some(path) = env::var_os("LOOKUPCTL") {
        let path = PathBuf::from(path);
        assert!(path.is_file(), "LOOKUPCTL is no file: {}", path.display());
        return Some(path);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    ["release", "debug"]
        .into_iter()
        .map(|profile| root.join(profile).join("lookupctl"))
        .find(|path| path.is_file())
}

/// Columns as the lines of CSV.
fn csv(batch: &RecordBatch) -> String {
    let columns: Vec<_> =
        batch.columns().iter().map(|column| cast(column, &DataType::Utf8).unwrap()).collect();
    let names: Vec<_> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
    let quoted = |cell: &str| match cell.contains([',', '"']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    };
    let row = |row: usize| {
        let cell = |column: &ArrayRef| {
            let texts = column.as_string::<i32>();
            if texts.is_null(row) { String::new() } else { quoted(texts.value(row)) }
        };
        columns.iter().map(cell).collect::<Vec<_>>().join(",")
    };
    let rows = (0..batch.num_rows()).map(row);
    std::iter::once(names.join(",")).chain(rows).map(|line| line + "\n").collect()
}

#[test]
fn both_programs_answer_alike() {
    let Some(lookupctl) = lookupctl() else {
        eprintln!("skipped: no lookupctl is built; LOOKUPCTL names one");
        return;
    };
    let folder = Folder::new();
    let file = |name: &str, text: &str| fs::write(folder.path(name), text).unwrap();
    file("fw", UFW);
    file("sets", "create a hash:net\nadd a 10.1.0.0/16\ncreate b hash:net\nadd b 203.0.112.0/20\n");
    file(
        "geo.csv",
        "from,to,country,city\n10.0.0.0,10.1.255.255,DE,Kiel\n203.0.113.0,203.0.113.9,\"A, B\",\n",
    );
    file("names.csv", "site,kind,risk\nexample.com,ads,3\na.example.com,news,\n");
    file("hosts", "0.0.0.0 a.example.com\n0.0.0.0 b.example.com\n");
    let mut dice = Dice(23);
    let rows = 500;
    let mut some = |of: &mut dyn FnMut(&mut Dice) -> String| -> Vec<Option<String>> {
        (0..rows).map(|_| (dice.below(9) > 0).then(|| of(&mut dice))).collect()
    };
    let one_of = |of: &[&str], dice: &mut Dice| of[dice.index(of.len())].to_owned();
    let addresses =
        [some(&mut |dice| dice.address().to_string()), some(&mut |dice| dice.address().to_string())];
    let proto = some(&mut |dice| one_of(&["tcp", "6", "UDP", "icmp", "gre", "unknown_transport"], dice));
    let dport = some(&mut |dice| one_of(&["443", "22", "0"], dice));
    let icmp_type = some(&mut |dice| one_of(&["8", "0"], dice));
    let query = some(&mut |dice| one_of(&["a.example.com", "x.b.example.com", "example.com", "org"], dice));
    let [src, dst] = addresses.map(|texts| Arc::new(StringArray::from(texts)) as ArrayRef);
    let number = |texts: Vec<Option<String>>| {
        let numbers = texts.into_iter().map(|text| text.map(|text| text.parse::<u32>().unwrap()));
        Arc::new(numbers.collect::<UInt32Array>()) as ArrayRef
    };
    write(
        &folder.path("in"),
        vec![
            ("src", src),
            ("dst", dictionary(&dst)),
            ("proto", dictionary(&(Arc::new(StringArray::from(proto)) as ArrayRef))),
            ("dport", number(dport)),
            ("icmp_type", number(icmp_type)),
            ("query", Arc::new(StringArray::from(query))),
        ],
    );
    file("in.csv", &csv(&read(&folder.path("in"))));
    for arguments in [
        "--table asn=routes --prefix",
        "--table net=sets --table o=routes --set net=b",
        "--table geo=geo.csv --range-columns geo=from,to --fields geo=city,country --dst dst",
        "--merge net=asn=routes --merge net=set=sets --set a --fields net=asn,set",
        "--names n=names.csv --names-column n=site --fields n=risk,kind --prefix",
        "--names l=hosts --names-format hosts --prefix",
        "--merge-names d=own=names.csv --names-column site --merge-names d=routes=names.csv",
        "--rules fw=fw --assume ct=new",
        "--rules fw=fw --rules out=fw --chain out=OUTPUT --lenient --table asn=routes --names l=hosts",
    ] {
        let out = folder.enrich(arguments);
        let line = format!("enrich in.csv {arguments}");
        let ran =
            Command::new(&lookupctl).current_dir(folder.path("")).args(line.split(' ')).output().unwrap();
        let stderr = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(0), "{arguments}: {stderr}");
        assert_eq!(csv(&out), String::from_utf8(ran.stdout).unwrap(), "{arguments}");
        // The counts are the same, too.
        let counts = |stderr: &str| {
            let lines = stderr.lines().filter(|line| line.contains(" looked up, "));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let of_parquet = folder.run(&format!("enrich in -o out {arguments}")).stderr;
        assert_eq!(counts(&of_parquet), counts(&stderr), "{arguments}");
    }
    for wrong in [
        "--table asn=routes --set x",
        "--table asn=routes --chain INPUT",
        "--rules fw=fw",
        "--rules fw=fw --assume ct=new --proto nosuch",
        "--names n=names.csv --vrf x",
        "--table fw=fw",
        "--table net=sets",
        "",
    ] {
        let of_parquet = folder.error(&format!("enrich in -o other {wrong}"));
        let line = format!("enrich in.csv {wrong}");
        let ran =
            Command::new(&lookupctl).current_dir(folder.path("")).args(line.split_whitespace()).output();
        let ran = ran.unwrap();
        let stderr = String::from_utf8(ran.stderr).unwrap();
        let last = stderr.lines().last().unwrap();
        assert_eq!(ran.status.code(), Some(2), "{wrong}: {stderr}");
        // A column that is missing is found when the header is read, in CSV at its line.
        match wrong.contains("nosuch") {
            true => assert!(last.contains("nosuch") && of_parquet.contains("nosuch"), "{last}, {of_parquet}"),
            false => assert_eq!(last.strip_prefix("lookupctl: "), Some(&*of_parquet), "{wrong}"),
        }
    }
}

#[test]
fn lookupctl_hands_a_file_over() {
    let Some(lookupctl) = lookupctl() else {
        eprintln!("skipped: no lookupctl is built; LOOKUPCTL names one");
        return;
    };
    let folder = Folder::new();
    let src: ArrayRef = Arc::new(StringArray::from(vec![Some("10.1.2.3"), None, Some("192.0.2.1")]));
    write(&folder.path("in"), vec![("src", src)]);
    fs::create_dir(folder.path("bin")).unwrap();
    let beside = folder.path("bin/lookupctl");
    fs::copy(lookupctl, &beside).unwrap();
    let run = |arguments: &str| {
        let mut command = Command::new(&beside);
        command.current_dir(folder.0.path()).env("PATH", "").args(arguments.split_whitespace());
        let output = command.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, stderr) = run("enrich in -o out --table asn=routes --prefix");
    assert!(code == 2 && stderr.contains("Parquet is for another program"), "{stderr}");
    fs::copy(env!("CARGO_BIN_EXE_wirespeed-parquet"), folder.path("bin/wirespeed-parquet")).unwrap();
    let (code, stderr) = run("enrich in -o out --table asn=routes --prefix");
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("3 rows in") && stderr.contains("src: 2 looked up, 1 of them matched"),
        "{stderr}"
    );
    let out = read(&folder.path("out"));
    assert_eq!(texts(&out, "src_asn"), [Some("64498"), None, None]);
    assert_eq!(texts(&out, "src_asn_prefix"), [Some("10.1.2.0/24"), None, None]);
    let (code, stderr) = run("enrich in -o out --table asn=missing");
    assert!(code == 2 && stderr.contains("missing"), "{stderr}");
}
