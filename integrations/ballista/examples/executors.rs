//! Measures two executors beside one: `cargo run --release --example executors -- ROUTES [ROWS]`.
//!
//! The program publishes ROUTES (any format of `lookupctl`, not compressed), and writes ROWS flows (eight
//! million) to eight Parquet files. Their addresses are spread over all of IPv4. It starts a scheduler and an
//! executor of one core on 127.0.0.1, later a second one. It runs three queries in turns: the scan alone,
//! `lpm`, and one that only computes, which tells what a second core can give on this machine. It prints the
//! median time of each with one executor and with two. Answers are compared with those of this process alone
//! first.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use arrow::util::pretty::pretty_format_batches;
use wirespeed_ballista::{
    Client, Error, ImageCache, Origin, Stores, executor_config, publish, run_executor, run_scheduler,
    scheduler_config,
};
use wirespeed_datafusion::How;

type Failed = Box<dyn std::error::Error + Send + Sync>;

const ROUNDS: usize = 5;
const FILES: u64 = 8;

/// Queries that are measured, each with its name.
const QUERIES: [(&str, &str); 3] = [
    ("scan", "SELECT count(dst) AS flows, sum(bytes) AS bytes FROM flows"),
    (
        "lpm",
        "SELECT count(lpm('t', dst)) AS flows, count(DISTINCT lpm('t', dst)) AS found, sum(bytes) AS bytes FROM flows",
    ),
    ("compute", "SELECT min(sha256(CAST(dst AS VARCHAR))) AS least FROM flows"),
];

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        // This program started itself.
        ["--executor", scheduler, work_dir] => Ok(executor(scheduler.parse()?, work_dir).await?),
        [routes] => measure(routes, 8_000_000).await,
        [routes, rows] => measure(routes, rows.parse()?).await,
        _ => Err("executors ROUTES [ROWS]".into()),
    }
}

async fn executor(scheduler: SocketAddr, work_dir: &str) -> Result<(), Error> {
    let stores = Stores::default();
    let mut config = executor_config(&ImageCache::new(stores.clone(), None), &stores, work_dir);
    (config.scheduler_host, config.scheduler_port) = (scheduler.ip().to_string(), scheduler.port());
    config.vcores = 1;
    run_executor(config, SocketAddr::from(([127, 0, 0, 1], 0)), Duration::from_secs(10)).await
}

async fn measure(routes: &str, rows: u64) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let shared = dir.path().join("tables").display().to_string();
    let origin = Origin::Files(vec![PathBuf::from(routes)]);
    publish(&origin, &How::default(), &shared, "t", &Stores::default()).await?;
    let here = Client::local(Stores::default())?;
    let flows = dir.path().join("flows");
    for file in 0..FILES {
        // Multiplying by an odd number visits every address before one comes again.
        let sql = format!(
            "COPY (SELECT arrow_cast(value * 2654435761 % 4294967296, 'UInt32') AS dst, value % 1500 AS bytes
             FROM generate_series({}, {})) TO '{}'",
            rows * file / FILES + 1,
            rows * (file + 1) / FILES,
            flows.join(format!("{file}.parquet")).display()
        );
        here.query(&sql).await?.collect().await?;
    }

    let (send, receive) = tokio::sync::oneshot::channel();
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let config = scheduler_config(&Stores::default());
    tokio::spawn(run_scheduler(config, any_port, None, |address| {
        // Who waits for it is below.
        let _ = send.send(address);
    }));
    let scheduler = receive.await?;
    let cluster = Client::remote(&scheduler.to_string(), Stores::default()).await?;
    for client in [&here, &cluster] {
        client.table("t", &format!("{shared}/t@latest"))?;
        client.parquet("flows", &flows.display().to_string()).await?;
    }

    let mut executors = Vec::new();
    let mut medians = Vec::new();
    for count in 1..=2 {
        executors.push(Executor::start(scheduler, &dir.path().join(format!("work{count}")))?);
        // The executor registers, and has the table open.
        tokio::time::sleep(Duration::from_secs(2)).await;
        for (name, sql) in QUERIES {
            let (expected, found) = (answer(&here, sql).await?, answer(&cluster, sql).await?);
            if expected != found {
                return Err(format!("{name}, {count} executors: {found}\nin place of\n{expected}").into());
            }
        }
        let mut times = [const { Vec::new() }; QUERIES.len()];
        for _ in 0..ROUNDS {
            for ((_, sql), times) in QUERIES.iter().zip(&mut times) {
                let start = Instant::now();
                answer(&cluster, sql).await?;
                times.push(start.elapsed());
            }
        }
        medians.push(times.map(median));
    }
    for (at, (name, _)) in QUERIES.iter().enumerate() {
        let [one, two] = [0, 1].map(|count| medians[count][at].as_secs_f64());
        println!("{name}: one executor {one:.3} s, two {two:.3} s: {:.2} x", one / two);
    }
    Ok(())
}

async fn answer(client: &Client, sql: &str) -> Result<String, Failed> {
    Ok(pretty_format_batches(&client.query(sql).await?.collect().await?)?.to_string())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// An executor, which ends with this value.
struct Executor(Child);

impl Executor {
    fn start(scheduler: SocketAddr, work_dir: &Path) -> Result<Self, Failed> {
        std::fs::create_dir_all(work_dir)?;
        let mut program = Command::new(std::env::current_exe()?);
        program.arg("--executor").arg(scheduler.to_string()).arg(work_dir);
        Ok(Self(program.spawn()?))
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
