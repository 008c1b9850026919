//! Flows in Parquet, and published tables.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, DictionaryArray, FixedSizeBinaryArray, RecordBatch, StringArray, UInt16Array, UInt32Array,
    UInt64Array,
};
use arrow::datatypes::Int32Type;
use datafusion::parquet::arrow::ArrowWriter;
use wirespeed::fib::oracle;
use wirespeed::fib::{Prefix, V4};
use wirespeed::prelude::*;

use super::publish;

/// Four files of flows, and the tables `ris`, `rpki`, `names` and `acl`.
pub(crate) struct Data {
    pub(crate) flows: PathBuf,
    pub(crate) shared: PathBuf,
    rows: Vec<Row>,
    dir: tempfile::TempDir,
}

/// A flow.
struct Row {
    id: u64,
    number: u32,
    dst: Option<Ipv4Addr>,
    ip: Option<IpAddr>,
    bytes: u64,
}

const ROUTES: [&str; 3] = ["10.0.0.0/8", "10.1.0.0/24", "192.0.2.0/24"];
const NAMES: [&str; 3] = ["www.parc.com", "parc.com", "example.org"];
const PORTS: [u16; 3] = [53, 80, 443];

/// One of three by a flow's number.
fn pick<T: Copy>(of: [T; 3], number: u32) -> T {
    of[number as usize % 3]
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
        let ip: Vec<Option<Ipv6Addr>> = numbers
            .iter()
            .zip(&dst)
            .map(|(n, dst)| match (n % 3, dst) {
                (0, _) => Some(Ipv6Addr::from(0x2001_0db8 << 96 | u128::from(*n))),
                (_, dst) => dst.map(|dst| dst.to_ipv6_mapped()),
            })
            .collect();
        let octets = ip.iter().map(|ip| ip.map(|ip| ip.octets()));
        let texts: Vec<_> = dst.iter().map(|dst| dst.map(|dst| dst.to_string())).collect();
        let ids: Vec<u64> = (0..rows).map(|n| u64::from(n * 4 + file)).collect();
        let bytes: Vec<u64> = numbers.iter().map(|n| u64::from(n % 1500)).collect();
        let columns: [(&str, ArrayRef); 10] = [
            ("id", Arc::new(UInt64Array::from(ids.clone()))),
            ("dst", Arc::new(dst.iter().map(|dst| dst.map(u32::from)).collect::<UInt32Array>())),
            ("ip", Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(octets, 16).unwrap())),
            ("text", Arc::new(texts.iter().map(Option::as_deref).collect::<StringArray>())),
            (
                "dictionary",
                Arc::new(texts.iter().map(Option::as_deref).collect::<DictionaryArray<Int32Type>>()),
            ),
            ("bytes", Arc::new(UInt64Array::from(bytes.clone()))),
            ("route", Arc::new(numbers.iter().map(|&n| Some(pick(ROUTES, n))).collect::<StringArray>())),
            ("origin", Arc::new(UInt32Array::from_iter_values(numbers.iter().map(|n| 64_496 + n % 2)))),
            ("name", Arc::new(numbers.iter().map(|&n| Some(pick(NAMES, n))).collect::<StringArray>())),
            ("port", Arc::new(UInt16Array::from_iter_values(numbers.iter().map(|&n| pick(PORTS, n))))),
        ];
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
                .unwrap();
        let out = File::create(self.flows.join(format!("{file}.parquet"))).unwrap();
        let mut writer = ArrowWriter::try_new(out, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        for (at, (id, bytes)) in ids.into_iter().zip(bytes).enumerate() {
            let ip = ip[at].map(|ip| IpAddr::V6(ip).to_canonical());
            self.rows.push(Row { id, number: numbers[at], dst: dst[at], ip, bytes });
        }
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

    /// The networks as routes, whose labels begin with `prefix`.
    pub(crate) fn routes(&self, prefix: &str) -> String {
        NETS.map(|(net, label)| format!("{net} {prefix}{label}\n")).concat()
    }

    /// Flows and bytes of each label of `dst`, by the oracle, as CSV.
    pub(crate) fn by_label(&self, prefix: &str) -> String {
        let routes: Vec<(Prefix<V4>, NextHop)> = NETS
            .iter()
            .zip(1..)
            .filter_map(|((net, _), index)| Some((net.parse().ok()?, NextHop(index))))
            .collect();
        let mut sums = BTreeMap::<Option<String>, (u64, u64)>::new();
        for &Row { dst, bytes, .. } in &self.rows {
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

    /// What every function says of the flows whose numbers are in a range, by slow walks over what they look
    /// up in, as CSV.
    pub(crate) fn by_every_function(&self, ids: std::ops::Range<u64>) -> String {
        let mut rows: Vec<_> = self.rows.iter().filter(|row| ids.contains(&row.id)).collect();
        rows.sort_by_key(|row| row.id);
        let mut text = "id,i,label,asn,prefix,len,around,state,n,list,rule,action\n".to_owned();
        for &&Row { id, number, dst, ip, .. } in &rows {
            let is_null = dst.is_none();
            let (dst, ip) =
                (dst.map_or_else(Vec::new, |dst| around(dst.into())), ip.map(|ip| (ip, around(ip))));
            let empty = String::new;
            let last = |found: &[usize]| found.last().map(|&at| at + 1);
            let index = last(&dst).map_or_else(empty, |index| index.to_string());
            let label = last(&dst).map_or_else(empty, |index| format!("AS{}", NETS[index - 1].1));
            let len = last(&dst)
                .map_or_else(empty, |index| NETS[index - 1].0.rsplit_once('/').unwrap().1.to_owned());
            let of_ip = ip.as_ref().and_then(|(_, found)| last(found)).map(|index| NETS[index - 1]);
            let (prefix, asn) = of_ip.unwrap_or(("", ""));
            let all: Vec<_> = dst.iter().map(|at| (at + 1).to_string()).collect();
            // One payload: 10.0.0.0/8 up to 16 bits, AS 64496.
            let state = match pick(ROUTES, number) {
                "192.0.2.0/24" => "not-found",
                "10.0.0.0/8" if number % 2 == 0 => "valid",
                _ => "invalid",
            };
            let is_listed = pick(NAMES, number).ends_with("parc.com");
            let (n, list) = if is_listed { ("1", "parc") } else { ("", "") };
            let port = pick(PORTS, number);
            let of_v4 = match port {
                443 => Some((1, "web")),
                53 => Some((2, "dns")),
                _ => None,
            };
            let rule = of_v4.filter(|_| !is_null).map_or_else(empty, |(rule, _)| rule.to_string());
            let action = match &ip {
                None => "",
                Some((IpAddr::V4(_), _)) => of_v4.map_or("", |(_, action)| action),
                Some((IpAddr::V6(_), _)) if port == 80 => "old web",
                Some((IpAddr::V6(_), _)) => "",
            };
            writeln!(
                text,
                "{id},{index},{label},{asn},{prefix},{len},{},{state},{n},{list},{rule},{action}",
                all.join("+"),
            )
            .unwrap();
        }
        text
    }
}

/// The networks that contain an address, shortest first.
fn around(address: IpAddr) -> Vec<usize> {
    let mut found: Vec<_> =
        (0..NETS.len()).filter(|&at| NETS[at].0.parse::<IpNet>().unwrap().contains(&address)).collect();
    found.sort_by_key(|&at| NETS[at].0.parse::<IpNet>().unwrap().prefix_len());
    found
}
