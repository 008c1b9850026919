//! `enrich`: columns for files of every type, beside a slow enricher; and what is refused.

#![allow(clippy::unwrap_used)] // every function here is a test or helps one

mod damage;
mod followed;
mod from_lookupctl;
mod rules;

use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, DictionaryArray, FixedSizeBinaryArray, Float64Array, Int32Array,
    Int64Array, LargeBinaryArray, LargeStringArray, ListBuilder, RecordBatch, StringArray, StringBuilder,
    StringViewArray, StringViewBuilder, StructArray, UInt32Array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int16Type, Schema};
use ipnet::IpNet;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::{
    KeyValue, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, SortingColumn,
};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};
use tempfile::TempDir;

const ROUTES: &str = "10.0.0.0/8 64496\n10.1.0.0/16 64497\n10.1.2.0/24 64498\n203.0.112.0/20 64499\n\
                      2001:db8::/32 64500\n2001:db8:1::/48 64501\n";

struct Folder(TempDir);

struct Ran {
    code: i32,
    stderr: String,
}

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::write(folder.path("routes"), ROUTES).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, arguments: &str) -> Ran {
        let output = Command::new(env!("CARGO_BIN_EXE_wirespeed-parquet"))
            .current_dir(self.0.path())
            .args(arguments.split_whitespace())
            .output()
            .unwrap();
        assert!(output.stdout.is_empty());
        Ran { code: output.status.code().unwrap(), stderr: String::from_utf8(output.stderr).unwrap() }
    }

    /// Runs with so many MiB of memory.
    fn run_within(&self, mib: usize, arguments: &str) -> Ran {
        let limited = format!("ulimit -v {} && exec \"$0\" {arguments}", mib << 10);
        let output = Command::new("sh")
            .current_dir(self.0.path())
            .args(["-c", &limited, env!("CARGO_BIN_EXE_wirespeed-parquet")])
            .output()
            .unwrap();
        Ran { code: output.status.code().unwrap(), stderr: String::from_utf8(output.stderr).unwrap() }
    }

    fn enrich(&self, arguments: &str) -> RecordBatch {
        let ran = self.run(&format!("enrich in -o out {arguments}"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        read(&self.path("out"))
    }

    fn refused(&self, arguments: &str, says: &str) {
        let last = self.error(arguments);
        assert!(last.contains(says), "{last}");
    }

    /// Runs, and fails with these words alone.
    fn refused_with(&self, arguments: &str, says: &str) {
        assert_eq!(self.error(arguments), says);
    }

    /// The error that a run ends with.
    fn error(&self, arguments: &str) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        let last = ran.stderr.lines().last().unwrap().strip_prefix("wirespeed-parquet: ");
        let names = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(names.into_iter().all(|name| !name.to_string_lossy().contains("part-")));
        last.unwrap_or_else(|| panic!("{}", ran.stderr)).to_owned()
    }
}

fn write_with(path: &Path, batch: &RecordBatch, rows: usize, properties: WriterPropertiesBuilder) {
    let properties = properties.set_max_row_group_row_count(Some(rows)).build();
    let mut writer =
        ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn write(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    );
    write_with(path, &batch.unwrap(), 1000, WriterProperties::builder());
}

fn read(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let schema = reader.schema().clone();
    let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
    arrow::compute::concat_batches(&schema, &batches).unwrap()
}

fn metadata(path: &Path) -> ParquetMetaData {
    let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional);
    reader.parse_and_finish(&File::open(path).unwrap()).unwrap()
}

fn texts<'b>(batch: &'b RecordBatch, name: &str) -> Vec<Option<&'b str>> {
    let column = batch.column_by_name(name).unwrap_or_else(|| panic!("a column {name}"));
    column.as_string::<i32>().iter().collect()
}

/// A generator of numbers that is the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).unwrap()
    }

    fn v4(&mut self) -> Ipv4Addr {
        let [a, b, c] = [self.below(4), self.below(4), self.below(256)].map(|n| u8::try_from(n).unwrap());
        if self.below(4) == 0 { Ipv4Addr::new(203, 0, c, a) } else { Ipv4Addr::new(10, a, b, c) }
    }

    fn address(&mut self) -> IpAddr {
        match self.below(4) {
            0 => ["2001:db8::1", "2001:db8:1:2:3::9", "fe80::1"][usize::try_from(self.0 % 3).unwrap()]
                .parse()
                .unwrap(),
            1 => self.v4().to_ipv6_mapped().into(),
            _ => self.v4().into(),
        }
    }
}

/// The slow enricher: goes through all routes for each address.
fn slow(address: IpAddr) -> Option<(IpNet, &'static str)> {
    let routes = ROUTES.lines().filter_map(|line| line.split_once(' '));
    let routes = routes.map(|(net, to)| (net.parse::<IpNet>().unwrap(), to));
    let matching = routes.filter(|(net, _)| net.contains(&address.to_canonical()));
    matching.max_by_key(|(net, _)| net.prefix_len())
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

#[test]
fn standard_input_and_output() {
    let folder = Folder::new();
    let src: ArrayRef = Arc::new(StringArray::from(vec![Some("10.1.2.3"), None, Some("192.0.2.1")]));
    write(&folder.path("in"), vec![("src", src)]);
    let expected = folder.enrich("--table asn=routes");
    let piped = |arguments: &str| {
        let line = format!("cat in | \"$0\" enrich - {arguments} > piped");
        let output = Command::new("sh")
            .current_dir(folder.0.path())
            .args(["-c", &line, env!("CARGO_BIN_EXE_wirespeed-parquet")])
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, stderr) = piped("-o - --table asn=routes");
    assert!(code == 0 && stderr.contains("3 rows in"), "{stderr}");
    assert_eq!(read(&folder.path("piped")), expected);
    assert_eq!(piped("-o other --table asn=routes").0, 0);
    assert_eq!(read(&folder.path("other")), expected);
    let (code, stderr) = piped("-o - --table asn=-");
    assert!(
        code == 2 && stderr.contains("a table and the Parquet file can't both come from standard input"),
        "{stderr}"
    );
    fs::write(folder.path("in"), "src\n10.1.2.3\n").unwrap();
    let (code, stderr) = piped("-o - --table asn=routes");
    assert!(code == 2 && stderr.contains("standard input: no Parquet file"), "{stderr}");
    assert_eq!(fs::read(folder.path("piped")).unwrap(), b"");
}

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

/// A file with columns of many kinds, of which two are addresses.
fn flows(rows: usize) -> RecordBatch {
    let mut dice = Dice(5);
    let addresses = |dice: &mut Dice| -> ArrayRef {
        let texts = (0..rows).map(|_| (dice.below(7) > 0).then(|| dice.address().to_string()));
        Arc::new(texts.collect::<StringArray>())
    };
    let (src, dst) = (addresses(&mut dice), addresses(&mut dice));
    let mut tags = ListBuilder::new(StringBuilder::new());
    for row in 0..rows {
        (0..row % 3).for_each(|tag| tags.values().append_value(format!("tag {tag}")));
        tags.append(row % 5 > 0);
    }
    let bytes: ArrayRef =
        Arc::new((0..rows).map(|_| Some(dice.below(1 << 40).cast_signed())).collect::<Int64Array>());
    let names: DictionaryArray<Int16Type> = (0..rows).map(|row| Some(["a", "b", "c"][row % 3])).collect();
    let nested =
        StructArray::from(vec![(Arc::new(Field::new("ip", DataType::Utf8, true)), Arc::clone(&src))]);
    let field =
        |name: &str, array: &ArrayRef, nullable| Field::new(name, array.data_type().clone(), nullable);
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("bytes", bytes, false),
        ("src_ip", src, true),
        ("tags", Arc::new(tags.finish()), true),
        ("dst_ip", dst, true),
        ("name", Arc::new(names), true),
        ("peer", Arc::new(nested), true),
    ];
    let fields: Vec<_> =
        columns.iter().map(|(name, array, nullable)| field(name, array, *nullable)).collect();
    let schema = Schema::new(fields).with_metadata([("made by".to_owned(), "us".to_owned())].into());
    RecordBatch::try_new(schema.into(), columns.into_iter().map(|(_, array, _)| array).collect()).unwrap()
}

/// The bytes of each column of each row group.
fn chunks(path: &Path) -> Vec<Vec<Vec<u8>>> {
    let file = fs::read(path).unwrap();
    let of = |range: (u64, u64)| {
        let [start, len] = [range.0, range.1].map(|at| usize::try_from(at).unwrap());
        file[start..start + len].to_vec()
    };
    let groups = metadata(path);
    let groups = groups.row_groups().iter();
    groups.map(|group| group.columns().iter().map(|chunk| of(chunk.byte_range())).collect()).collect()
}

#[test]
fn all_that_was_there_stays_byte_for_byte() {
    let batch = flows(2500);
    let zstd = Compression::ZSTD(ZstdLevel::try_new(3).unwrap());
    let pair = KeyValue { key: "origin".into(), value: Some("test".into()) };
    let sorted = SortingColumn { column_idx: 0, descending: true, nulls_first: false };
    for properties in [
        WriterProperties::builder(),
        WriterProperties::builder()
            .set_compression(zstd)
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .set_bloom_filter_enabled(true)
            .set_sorting_columns(Some(vec![sorted]))
            .set_key_value_metadata(Some(vec![pair.clone()])),
        WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(true)
            .set_dictionary_enabled(false),
    ] {
        let folder = Folder::new();
        write_with(&folder.path("in"), &batch, 700, properties);
        let out = folder.enrich("--table asn=routes");
        let (before, after) = (metadata(&folder.path("in")), metadata(&folder.path("out")));
        assert_eq!(before.num_row_groups(), 4);
        for (was, is) in before.row_groups().iter().zip(after.row_groups()) {
            assert_eq!(was.num_rows(), is.num_rows());
            assert_eq!(was.sorting_columns(), is.sorting_columns());
            assert_eq!(was.num_columns() + 2, is.num_columns());
            for (was, is) in was.columns().iter().zip(is.columns()) {
                assert_eq!(was.statistics(), is.statistics());
                assert_eq!(was.compression(), is.compression());
                assert_eq!(was.bloom_filter_length(), is.bloom_filter_length());
                assert_eq!(was.column_index_length(), is.column_index_length());
            }
            assert_eq!(is.columns().last().unwrap().compression(), was.column(0).compression());
            let has = |of: &parquet::file::metadata::RowGroupMetaData| {
                of.columns().iter().map(|chunk| chunk.offset_index_offset().is_some()).collect::<Vec<_>>()
            };
            assert!(has(is).iter().all(|is| *is == has(was)[0]));
        }
        for (was, is) in chunks(&folder.path("in")).iter().zip(chunks(&folder.path("out"))) {
            assert_eq!(was[..], is[..was.len()]);
        }
        let pairs = |of: &ParquetMetaData| of.file_metadata().key_value_metadata().unwrap().len();
        assert_eq!(pairs(&before), pairs(&after));
        assert_eq!(before.file_metadata().version(), after.file_metadata().version());
        // The types of Arrow, too.
        let names: Vec<_> = out.schema().fields().iter().map(|field| field.name().clone()).collect();
        let all = ["bytes", "src_ip", "tags", "dst_ip", "name", "peer", "src_asn", "dst_asn"];
        assert_eq!(names, all);
        assert_eq!(out.schema().metadata()["made by"], "us");
        assert_eq!(out.project(&[0, 1, 2, 3, 4, 5]).unwrap().columns(), batch.columns());
        for (column, added) in [("src_ip", "src_asn"), ("dst_ip", "dst_asn")] {
            let addresses = texts(&batch, column).into_iter();
            let right: Vec<_> = addresses.map(|text| Some(slow(text?.parse().unwrap())?.1)).collect();
            assert_eq!(texts(&out, added), right);
        }
        // A file can take the place of the one that was read, and gets more columns.
        let ran = folder.run("enrich out -o out --table other=routes --src peer.ip");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(texts(&read(&folder.path("out")), "src_other"), texts(&out, "src_asn"));
    }
}

#[test]
fn threads_write_the_same_file() {
    let folder = Folder::new();
    write_with(&folder.path("in"), &flows(20_000), 700, WriterProperties::builder());
    let mut files = Vec::new();
    for threads in [1, 2, 5, 64] {
        let ran = folder.run(&format!("enrich in -o out --table asn=routes --prefix --threads {threads}"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let counts: Vec<_> =
            ran.stderr.lines().filter(|line| line.contains("looked up")).map(str::to_owned).collect();
        assert_eq!(counts.len(), 2, "{}", ran.stderr);
        files.push((fs::read(folder.path("out")).unwrap(), counts));
    }
    assert_eq!(metadata(&folder.path("out")).num_row_groups(), 29);
    assert!(files.iter().all(|file| *file == files[0]));
    let ran = folder.run("enrich in -o out --table asn=routes --threads 0");
    assert!(ran.code == 2 && ran.stderr.contains("invalid value '0' for '--threads <N>'"), "{}", ran.stderr);
}

#[test]
fn a_signal_leaves_what_was_there() {
    let folder = Folder::new();
    let rows =
        (0..800_000).map(|row: u32| Some(Ipv4Addr::from_bits(row.wrapping_mul(2_654_435_761)).to_string()));
    let src: ArrayRef = Arc::new(rows.collect::<StringArray>());
    write(&folder.path("in"), vec![("src", src)]);
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        fs::write(folder.path("out"), "what was there").unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_wirespeed-parquet"))
            .current_dir(folder.0.path())
            .args(["enrich", "in", "-o", "out", "--table", "asn=routes", "--prefix"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let part = folder.path(&format!("out.part-{}", child.id()));
        let began = Instant::now();
        while !part.exists() {
            assert!(began.elapsed() < Duration::from_secs(60), "the work begins");
            std::thread::sleep(Duration::from_millis(1));
        }
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{stderr}");
        assert!(stderr.ends_with("wirespeed-parquet: out: interrupted\n"), "{stderr}");
        assert!(!part.exists());
        assert_eq!(fs::read(folder.path("out")).unwrap(), b"what was there");
    }
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
fn files_without_rows() {
    let folder = Folder::new();
    let none: ArrayRef = Arc::new(StringArray::from(Vec::<&str>::new()));
    write(&folder.path("in"), vec![("src", none)]);
    assert_eq!(metadata(&folder.path("in")).num_row_groups(), 0);
    let out = folder.enrich("--table asn=routes");
    assert_eq!((out.num_rows(), out.num_columns()), (0, 2));
    let nulls: ArrayRef = Arc::new(StringArray::from(vec![None::<&str>; 3]));
    write(&folder.path("in"), vec![("src", nulls)]);
    assert_eq!(texts(&folder.enrich("--table asn=routes"), "src_asn"), [None; 3]);
}

/// The memory that files of little content take, at most.
const LITTLE: usize = 256;

/// Rows that are all the same long text.
fn long_rows(length: usize, rows: usize) -> ArrayRef {
    let text = "a".repeat(length);
    let mut column = StringViewBuilder::new().with_deduplicate_strings();
    (0..rows).for_each(|_| column.append_value(&text));
    Arc::new(column.finish())
}

#[test]
fn small_files_that_unpack_to_much_take_little_memory() {
    let folder = Folder::new();
    fs::write(folder.path("names"), "example.com 1\n").unwrap();
    let zstd = || {
        WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_statistics_enabled(EnabledStatistics::None)
            .set_dictionary_enabled(false)
    };
    let write = |column: ArrayRef, properties| {
        let batch = RecordBatch::try_from_iter([("key", column)]).unwrap();
        write_with(&folder.path("in"), &batch, 1 << 20, properties);
        assert!(folder.path("in").metadata().unwrap().len() < 1 << 20);
    };
    let by_address = "enrich in -o out --table asn=routes --address key --threads 1";
    let by_name = "enrich in -o out --names list=names --name-column key --threads 1";
    let ran = |by: &str, code: i32, says: &str| {
        let ran = folder.run_within(LITTLE, by);
        assert_eq!(ran.code, code, "{by}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
    };

    // One page.
    write(long_rows(400 << 20, 1), zstd());
    let limit = "that unpacks to 419430404: the limit is 64 MiB, or 100 times its size";
    for by in [by_address, by_name] {
        ran(by, 2, "in: row group 1: column \"key\" has a page of ");
        ran(by, 2, limit);
    }

    // Many pages for a batch, a dictionary of one value, and values that are as long as those before them.
    let pages = || zstd().set_data_page_row_count_limit(1).set_write_batch_size(1);
    let many = [
        (long_rows(8 << 20, 32), pages()),
        (
            long_rows(1 << 20, 1 << 9),
            zstd().set_dictionary_enabled(true).set_dictionary_page_size_limit(4 << 20),
        ),
        (long_rows(256 << 10, 1024), zstd().set_encoding(Encoding::DELTA_BYTE_ARRAY)),
    ];
    for (column, properties) in many {
        let rows = column.len();
        write(column, properties);
        ran(by_name, 2, "in: row 1: key \"aaaa");
        for by in [by_address, by_name] {
            ran(&format!("{by} --lenient"), 0, &format!("key: {rows} wrong values passed through"));
        }
    }
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
