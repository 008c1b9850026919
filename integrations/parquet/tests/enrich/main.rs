//! `enrich` of Parquet, as a program.

#![allow(clippy::unwrap_used)] // every function here is a test or helps one

mod columns;
mod copied;
mod damage;
mod followed;
mod from_lookupctl;
mod refused;
mod rules;
mod running;

use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Command;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use ipnet::IpNet;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
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
