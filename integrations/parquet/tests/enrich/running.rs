//! Standard input and output, signals, and files that unpack to much.

use std::fs;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, RecordBatch, StringArray, StringViewBuilder};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::{Folder, read, write, write_with};

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
