//! Tables whose files change while a file is written.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use super::{Folder, read, texts, write_with};

/// Waits for a line that says something.
fn until(lines: &mut impl Iterator<Item = std::io::Result<String>>, says: &str) -> String {
    let mut seen = String::new();
    for line in lines {
        let line = line.unwrap();
        if line.contains(says) {
            return line;
        }
        seen += &line;
    }
    panic!("{seen}");
}

#[test]
fn a_row_group_has_one_version_of_a_table() {
    let (rows, groups) = (10_000, 16);
    let folder = Folder::new();
    // Rows that fill pipe and buffers, so that most groups are not begun before the output is read.
    let numbers: Vec<usize> = (0..rows * groups).collect();
    let src: ArrayRef = Arc::new(StringArray::from(vec!["10.1.2.3"; numbers.len()]));
    let other = numbers.iter().map(|number| format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let other: ArrayRef = Arc::new(StringArray::from_iter_values(other));
    let batch = RecordBatch::try_from_iter([("src", src), ("other", other)]).unwrap();
    let properties = WriterProperties::builder().set_compression(Compression::UNCOMPRESSED);
    write_with(&folder.path("in"), &batch, rows, properties.set_dictionary_enabled(false));
    let mut child = Command::new(env!("CARGO_BIN_EXE_wirespeed-parquet"))
        .current_dir(folder.0.path())
        .args(["enrich", "in", "-o", "-", "--table", "a=routes", "--threads", "2"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    until(&mut stderr, "a: routes: plain, 6 records");
    let replace = |text: &str| {
        fs::write(folder.path("new"), text).unwrap();
        fs::rename(folder.path("new"), folder.path("routes")).unwrap();
    };
    // A file that can't be read changes nothing.
    replace("10.0.0.0/33 x\n");
    assert!(until(&mut stderr, "a: version 1 stays: ").contains("routes:1"));
    replace("10.0.0.0/8 7\n");
    until(&mut stderr, "a: routes: plain, 1 record,");
    // It is current a moment later, and most groups are not begun.
    let mut stdout = child.stdout.take().unwrap();
    let mut bytes = vec![0; 1 << 20];
    stdout.read_exact(&mut bytes).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    stdout.read_to_end(&mut bytes).unwrap();
    assert!(child.wait().unwrap().success());
    fs::write(folder.path("out"), bytes).unwrap();
    let out = read(&folder.path("out"));
    let values = texts(&out, "src_a");
    let first = values.iter().position(|value| *value == Some("7")).unwrap();
    assert!(first > 0 && first % rows == 0, "row {first}");
    assert!(values[..first].iter().all(|value| *value == Some("64498")));
    assert!(values[first..].iter().all(|value| *value == Some("7")));
    let grouped = |number: usize| {
        let text = number.to_string();
        let (head, tail) = text.split_at(text.len() % 3);
        let rest = tail.as_bytes().chunks(3).map(|chunk| std::str::from_utf8(chunk).unwrap());
        [head].into_iter().filter(|head| !head.is_empty()).chain(rest).collect::<Vec<_>>().join(",")
    };
    let (last, all) = (grouped(first), grouped(values.len()));
    let says = format!(
        "a: version 1 answered rows 1 to {last}, version 2 answered rows {} to {all}",
        grouped(first + 1)
    );
    until(&mut stderr, &says);
}
