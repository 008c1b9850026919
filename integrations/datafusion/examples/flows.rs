//! Measures what `lpm` adds to a scan of flows in Parquet: `cargo run --release --example flows -- [ROWS
//! [ROUTES]]`.
//!
//! The program makes a table of 100,000 prefixes, or reads ROUTES (any format of `lookupctl`, not
//! compressed). It writes ROWS flows (a million) whose addresses follow the prefixes, few prefixes having
//! most flows, as `UInt32` and as `FixedSizeBinary(16)`. Then it runs queries in turns on one thread, and
//! prints the median time of each beside that of the scan alone. Answers are compared with lookups one by one
//! first.
//!
//! `flows FILE.parquet ROUTES [THREADS [ROUNDS]]` runs the queries of `integrations/bench/bench.py` on the
//! flows that it wrote. A line a query: its name, the number of flows, seconds of wall time, seconds of CPU
//! time (both medians), and for queries with `lpm` the answer. Linux alone, for its CPU times.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, FixedSizeBinaryArray, RecordBatch, UInt32Array, UInt64Array};
use arrow::datatypes::UInt64Type;
use arrow::util::display::array_value_to_string;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use wirespeed::Prefix;
use wirespeed::prelude::*;
use wirespeed_datafusion::{AddressTable, Table, Tables, register_all};

type Failed = Box<dyn std::error::Error>;

const ROUNDS: usize = 7;
/// Rows of a record batch that is written.
const BLOCK: usize = 1 << 16;

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| arguments.get(at).map_or(Ok(default), |text| text.parse());
    let routes = arguments.get(1).map(Path::new);
    match arguments.first() {
        Some(file) if file.ends_with(".parquet") => {
            let (threads, rounds) = (number(2, 1)?, number(3, ROUNDS)?.max(1));
            let routes = routes.ok_or("a file of flows needs ROUTES")?;
            runtime(threads)?.block_on(of_file(file, routes, threads, rounds))
        }
        _ => runtime(1)?.block_on(of_own(number(0, 1_000_000)?, routes)),
    }
}

fn runtime(threads: usize) -> Result<tokio::runtime::Runtime, Failed> {
    Ok(match threads {
        1 => tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        _ => tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?,
    })
}

/// Runs the queries on flows of a file.
async fn of_file(path: &str, routes: &Path, threads: usize, rounds: usize) -> Result<(), Failed> {
    let (routes, labels) = self::routes(Some(routes))?;
    let context = session(routes, &labels, path, threads).await?;
    let rows = context.table("flows").await?.count().await?;
    let rest =
        ", max(time), max(src), max(sport), max(dport), max(proto), max(flags), max(input), max(packets)";
    // A scan alone has the aggregates of the query with lookups, over the column itself.
    let counted = |key: &str, rest: &str| {
        format!(
            "SELECT count(number), sum(CAST(number AS BIGINT UNSIGNED)), sum(bytes){rest} \
             FROM (SELECT *, {key} AS number FROM flows)"
        )
    };
    let queries = [
        ("scan of dst, bytes", false, counted("dst", "")),
        ("lpm(dst)", true, counted("lpm(dst)", "")),
        ("scan of dst16, bytes", false, "SELECT count(dst16), sum(bytes) FROM flows".to_owned()),
        ("lpm(dst16)", true, counted("lpm(dst16)", "")),
        ("scan of ten columns", false, counted("dst", rest)),
        ("ten columns and lpm(dst)", true, counted("lpm(dst)", rest)),
    ];
    let mut times = queries.each_ref().map(|_| (Vec::new(), Vec::new()));
    for _ in 0..rounds {
        for ((_, _, sql), (walls, cpus)) in queries.iter().zip(&mut times) {
            let cpu = cpu_time()?;
            walls.push(time(&context, sql).await?);
            cpus.push(cpu_time()? - cpu);
        }
    }
    for ((name, is_lookup, sql), (walls, cpus)) in queries.iter().zip(times) {
        print!("{name}\t{rows}\t{}\t{}", median(walls).as_secs_f64(), median(cpus).as_secs_f64());
        if *is_lookup {
            let answer = context.sql(sql).await?.collect().await?;
            for column in &answer[0].columns()[..3] {
                print!("\t{}", array_value_to_string(column, 0)?);
            }
        }
        println!();
    }
    Ok(())
}

/// The CPU time of all threads. None of them ends between two calls.
fn cpu_time() -> Result<Duration, Failed> {
    let mut nanoseconds = 0;
    for task in std::fs::read_dir("/proc/self/task")? {
        let times = std::fs::read_to_string(task?.path().join("schedstat"))?;
        nanoseconds += times.split(' ').next().unwrap_or_default().parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// A session with flows of a file and a table.
async fn session(
    routes: IpTable,
    labels: &Labels<String>,
    path: &str,
    threads: usize,
) -> Result<SessionContext, Failed> {
    let tables = Tables::new();
    tables.insert("t", Table::Addresses(AddressTable::new(routes, labels)));
    let config = SessionConfig::new().with_target_partitions(threads);
    let mut context = SessionContext::new_with_config(config);
    register_all(&mut context, &tables)?;
    context.register_parquet("flows", path, ParquetReadOptions::default()).await?;
    Ok(context)
}

/// Runs queries on flows that it makes.
async fn of_own(rows: usize, file: Option<&Path>) -> Result<(), Failed> {
    let (routes, labels) = routes(file)?;
    println!("{} IPv4 prefixes, {rows} flows", routes.v4().len());
    let prefixes: Vec<Prefix<V4>> = routes.v4().routes().iter().map(|(prefix, _)| prefix).collect();
    let reader = routes.reader();
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("flows.parquet");
    let sum = write(&path, rows, &prefixes, reader.v4())?;

    let path = path.to_str().ok_or("a path that is no text")?;
    let context = session(routes, &labels, path, 1).await?;

    for column in ["dst", "dst16"] {
        // The scan alone counts what it reads, so that nothing is left out.
        let scan = format!("SELECT count({column}), sum(bytes) FROM flows");
        let lpm = format!("SELECT count(lpm({column})), sum(bytes) FROM flows");
        let check = format!("SELECT sum(CAST(lpm({column}) AS BIGINT UNSIGNED)) FROM flows");
        let found = context.sql(&check).await?.collect().await?;
        let found = arrow::array::AsArray::as_primitive::<UInt64Type>(found[0].column(0)).value(0);
        if found != sum {
            return Err(format!("{column}: the sum of all indexes is {found}, not {sum}").into());
        }
        let (mut scans, mut lpms) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            scans.push(time(&context, &scan).await?);
            lpms.push(time(&context, &lpm).await?);
        }
        let (scan, lpm) = (median(scans), median(lpms));
        let rate = |time: Duration| rows as f64 / time.as_secs_f64() / 1e6;
        println!(
            "{column}: scan {:.1} M rows/s, with lpm {:.1} M rows/s: {:+.1} % of time",
            rate(scan),
            rate(lpm),
            (lpm.as_secs_f64() / scan.as_secs_f64() - 1.0) * 100.0
        );
    }
    Ok(())
}

fn routes(file: Option<&Path>) -> Result<(IpTable, Labels<String>), Failed> {
    let labels = Labels::new();
    let Some(file) = file else {
        let mut random = Random(1);
        let nets = (0..100_000).map(|n| {
            let len = 14 + u8::try_from(random.below(11)).expect("below 11");
            (Ipv4Net::new((random.next() << 3).into(), len).expect("a length below 33").trunc(), n % 5000)
        });
        let nets: std::collections::BTreeMap<_, _> = nets.collect();
        let nets = nets.into_iter().map(|(net, n)| (IpNet::V4(net), format!("AS{n}")));
        return Ok((IpTable::builder().labelled_routes(&labels, nets).build()?, labels));
    };
    Ok((IpTable::builder().file(file, &labels).build()?, labels))
}

/// Writes the flows. Returns the sum of the indexes that their addresses have.
fn write(path: &Path, rows: usize, prefixes: &[Prefix<V4>], reader: &Ipv4Reader) -> Result<u64, Failed> {
    let (mut random, mut sum, mut writer) = (Random(2), 0, None);
    let mut left = rows;
    while left > 0 {
        let block = left.min(BLOCK);
        left -= block;
        let dst: Vec<u32> = (0..block).map(|_| address(&mut random, prefixes)).collect();
        sum += dst.iter().map(|&dst| u64::from(reader.lookup(dst).0)).sum::<u64>();
        let mapped = dst.iter().map(|&dst| Ipv4Addr::from(dst).to_ipv6_mapped().octets());
        let mapped: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter(mapped)?);
        let bytes: ArrayRef =
            Arc::new(UInt64Array::from_iter_values(dst.iter().map(|_| 40 + u64::from(random.below(1460)))));
        let dst: ArrayRef = Arc::new(UInt32Array::from(dst));
        let batch = RecordBatch::try_from_iter([("dst", dst), ("dst16", mapped), ("bytes", bytes)])?;
        if writer.is_none() {
            writer = Some(ArrowWriter::try_new(std::fs::File::create(path)?, batch.schema(), None)?);
        }
        if let Some(writer) = &mut writer {
            writer.write(&batch)?;
        }
    }
    writer.ok_or("no rows")?.close()?;
    Ok(sum)
}

/// An address of a prefix. A prefix near the start has most flows: the product of two even numbers is often
/// small.
fn address(random: &mut Random, prefixes: &[Prefix<V4>]) -> u32 {
    let below = u32::try_from(prefixes.len()).expect("fewer than 2^32 prefixes");
    let at = u64::from(random.below(below)) * u64::from(random.below(below)) / u64::from(below);
    let prefix = prefixes[usize::try_from(at).expect("below the number of prefixes")];
    let host = random.next().checked_shr(prefix.len().into()).unwrap_or(0);
    prefix.address().0 | host
}

async fn time(context: &SessionContext, sql: &str) -> Result<Duration, Failed> {
    let start = Instant::now();
    context.sql(sql).await?.collect().await?;
    Ok(start.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Numbers that look random, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(self.0 >> 32).expect("32 bits")
    }

    fn below(&mut self, end: u32) -> u32 {
        u32::try_from((u64::from(self.next()) * u64::from(end)) >> 32).expect("below `end`")
    }
}
