//! Flows in Parquet, and published tables.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, FixedSizeBinaryArray, RecordBatch, StringArray, UInt16Array, UInt32Array, UInt64Array,
};
use datafusion::parquet::arrow::ArrowWriter;
use wirespeed::fib::oracle;
use wirespeed::fib::{Prefix, V4};
use wirespeed::prelude::*;

use super::publish;

/// Four files of flows, and the tables `ris`, `rpki`, `names` and `acl`.
pub(crate) struct Data {
    pub(crate) flows: PathBuf,
    pub(crate) shared: PathBuf,
    rows: Vec<(Option<Ipv4Addr>, u64)>,
    dir: tempfile::TempDir,
}

const NETS: [(&str, &str); 6] = [
    ("10.0.0.0/8", "64496"),
    ("10.1.0.0/16", "64497"),
    ("10.1.128.0/17", "64498"),
    ("10.2.0.0/15", "64499"),
    ("198.51.100.0/24", "64500"),
    ("2001:db8::/32", "64501"),
];

fn table(prefix: &str) -> (IpTable, Labels<String>) {
    let labels = Labels::new();
    let routes = NETS.map(|(net, label)| (net.parse::<IpNet>().unwrap(), format!("{prefix}{label}")));
    (IpTable::builder().labelled_routes(&labels, routes).prefix_lookups().build().unwrap(), labels)
}

/// An image of the networks, whose labels begin with `prefix`.
pub(crate) fn image_of(dir: &Path, prefix: &str) -> PathBuf {
    let path = dir.join("table.img");
    let (table, labels) = table(prefix);
    table.save_labelled(&path, &labels).unwrap();
    path
}

impl Data {
    pub(crate) fn new(rows_of_a_file: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let [flows, shared] = ["flows", "shared"].map(|name| dir.path().join(name));
        std::fs::create_dir(&flows).unwrap();
        let mut data = Self { flows, shared, rows: Vec::new(), dir };
        for file in 0..4 {
            data.write(file, rows_of_a_file);
        }
        data.publish_all();
        data
    }

    /// A directory of its own.
    pub(crate) fn dir(&self, name: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn write(&mut self, file: u32, rows: u32) {
        let numbers: Vec<u32> = (0..rows).map(|n| (n * 4 + file).wrapping_mul(2_654_435_761) >> 8).collect();
        // Each seventh address is null, some are in no network.
        let dst: Vec<Option<Ipv4Addr>> = numbers
            .iter()
            .map(|&n| match n % 7 {
                0 => None,
                1 => Some(Ipv4Addr::from(0xc633_6400 | (n & 0x1ff))),
                _ => Some(Ipv4Addr::from(0x0a00_0000 | (n & 0x0007_ffff))),
            })
            .collect();
        let ip = numbers.iter().zip(&dst).map(|(n, dst)| match (n % 3, dst) {
            (0, _) => Some(Ipv6Addr::from(0x2001_0db8 << 96 | u128::from(*n)).octets()),
            (_, dst) => dst.map(|dst| dst.to_ipv6_mapped().octets()),
        });
        let bytes: Vec<u64> = numbers.iter().map(|n| u64::from(n % 1500)).collect();
        let columns: [(&str, ArrayRef); 8] = [
            ("dst", Arc::new(dst.iter().map(|dst| dst.map(u32::from)).collect::<UInt32Array>())),
            ("ip", Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(ip, 16).unwrap())),
            ("text", Arc::new(dst.iter().map(|dst| dst.map(|dst| dst.to_string())).collect::<StringArray>())),
            ("bytes", Arc::new(UInt64Array::from(bytes.clone()))),
            (
                "route",
                Arc::new(
                    numbers
                        .iter()
                        .map(|n| Some(["10.0.0.0/8", "10.1.0.0/24", "192.0.2.0/24"][*n as usize % 3]))
                        .collect::<StringArray>(),
                ),
            ),
            ("origin", Arc::new(UInt32Array::from_iter_values(numbers.iter().map(|n| 64_496 + n % 2)))),
            (
                "name",
                Arc::new(
                    numbers
                        .iter()
                        .map(|n| Some(["www.parc.com", "parc.com", "example.org"][*n as usize % 3]))
                        .collect::<StringArray>(),
                ),
            ),
            (
                "port",
                Arc::new(UInt16Array::from_iter_values(
                    numbers.iter().map(|n| [53, 80, 443][*n as usize % 3]),
                )),
            ),
        ];
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
                .unwrap();
        let out = File::create(self.flows.join(format!("{file}.parquet"))).unwrap();
        let mut writer = ArrowWriter::try_new(out, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        self.rows.extend(dst.into_iter().zip(bytes));
    }

    fn publish_all(&self) {
        let dir = self.dir("tables");
        publish(&[&image_of(&dir, "AS")], &self.shared, "ris");
        let vrps = dir.join("vrps.csv");
        std::fs::write(&vrps, "ASN,IP Prefix,Max Length,Trust Anchor\nAS64496,10.0.0.0/8,16,ripe\n").unwrap();
        publish(&[&vrps], &self.shared, "rpki");
        let labels = Labels::new();
        let names = [(NameBuf::from_domain(b"parc.com").unwrap(), "parc")];
        let names = wirespeed::NameTable::builder().labelled_names(&labels, names).build().unwrap();
        names.save_labelled(dir.join("names.img"), &labels).unwrap();
        publish(&[&dir.join("names.img")], &self.shared, "names");
        let labels = Labels::new();
        let rules =
            [("dport=443".parse::<Rule<Ipv4Tuple>>().unwrap(), "web"), ("dport=53".parse().unwrap(), "dns")];
        let rules = Classifier::builder().labelled_rules(&labels, rules).build().unwrap();
        rules.save_labelled(dir.join("acl4.img"), &labels).unwrap();
        let labels = Labels::new();
        let rules = [("dport=80".parse::<Rule<Ipv6Tuple>>().unwrap(), "old web")];
        let rules = Classifier::builder().labelled_rules(&labels, rules).build().unwrap();
        rules.save_labelled(dir.join("acl6.img"), &labels).unwrap();
        // A family each: one table.
        publish(&[&dir.join("acl4.img"), &dir.join("acl6.img")], &self.shared, "acl");
    }

    /// Flows and bytes of each label of `dst`, by the oracle, as CSV.
    pub(crate) fn by_label(&self, prefix: &str) -> String {
        let routes: Vec<(Prefix<V4>, NextHop)> = NETS
            .iter()
            .zip(1..)
            .filter_map(|((net, _), index)| Some((net.parse().ok()?, NextHop(index))))
            .collect();
        let mut sums = BTreeMap::<Option<String>, (u64, u64)>::new();
        for &(dst, bytes) in &self.rows {
            let found = dst.map_or(NextHop::NONE, |dst| oracle::scan(&routes, V4(dst.into())));
            let label = found.0.checked_sub(1).map(|index| format!("{prefix}{}", NETS[index as usize].1));
            let sum = sums.entry(label).or_default();
            *sum = (sum.0 + 1, sum.1 + bytes);
        }
        let mut text = "label,flows,bytes\n".to_owned();
        for (label, (flows, bytes)) in sums {
            writeln!(text, "{},{flows},{bytes}", label.unwrap_or_default()).unwrap();
        }
        text
    }
}
