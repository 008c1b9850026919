//! The program `wirespeed-ballista`: a scheduler, executors and a client of a cluster.

use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use arrow::csv;
use arrow::json::WriterBuilder;
use arrow::json::writer::LineDelimited;
use arrow::record_batch::RecordBatch;
use arrow::util::pretty::pretty_format_batches;
use clap::{Args, Parser, Subcommand, ValueEnum};
use datafusion::dataframe::DataFrame;
use datafusion::sql::parser::Statement;
use futures::StreamExt;
use wirespeed::classify::TupleName;
use wirespeed::fib::Family;
use wirespeed::fib::read::{Columns, PeerChoice, PrefixColumns, ReadOptions};
use wirespeed::namelookup::read::{NameColumns, ReadOptions as NameOptions};
use wirespeed_ballista::{
    Client, Error, ImageCache, Origin, Place, Stores, executor_config, follow, publish, run_executor,
    run_scheduler, scheduler_config, signalled,
};
use wirespeed_datafusion::{Content, How, MergeSource};

/// SQL with Wirespeed's functions on a cluster of Ballista.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the scheduler of a cluster. Prints its address when it is ready.
    Scheduler(Scheduler),
    /// Runs an executor of a cluster.
    Executor(Executor),
    /// Runs SQL on a cluster, or in this process.
    Sql(Sql),
    /// Publishes a table under the hash of its content, and makes it the latest of its name.
    Publish(Box<Publish>),
}

#[derive(Args)]
struct Scheduler {
    /// Address and port to listen on. Port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:50050")]
    bind: SocketAddr,
    /// The host by which executors reach the scheduler [default: the address of --bind]. Needed with
    /// 0.0.0.0.
    #[arg(long)]
    external_host: Option<String>,
    /// Seconds without a sign of an executor, after which its tasks go to others.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    executor_timeout: u64,
}

#[derive(Args)]
struct Executor {
    /// The scheduler, as host:port.
    #[arg(long, value_parser = host_port)]
    scheduler: (String, u16),
    /// Address and port to listen on; the port after it is used, too. Port 0 takes free ones.
    #[arg(long, default_value = "127.0.0.1:50051")]
    bind: SocketAddr,
    /// The host by which others reach the executor [default: the address that the scheduler sees].
    #[arg(long)]
    external_host: Option<String>,
    /// Directory for the data between stages [default: a temporary one].
    #[arg(long)]
    work_dir: Option<PathBuf>,
    /// Tasks at once [default: the number of CPUs].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    vcores: Option<u16>,
    /// Directory for copies of published tables. Without it tables are opened where they are, and those in
    /// object stores are refused.
    #[arg(long)]
    tables_cache: Option<PathBuf>,
    /// Seconds between signs of life. Less than half of the scheduler's --executor-timeout.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    heartbeat: u64,
    /// Seconds to wait for the scheduler.
    #[arg(long, default_value_t = 30)]
    wait: u64,
}

#[derive(Args)]
struct Sql {
    #[command(flatten)]
    engine: Engine,
    /// A table of the functions, as name=place: an image named by its content, or …/name@latest. May be
    /// repeated.
    #[arg(long, value_name = "NAME=PLACE", value_parser = pair)]
    table: Vec<(String, String)>,
    /// A table of SQL, as name=path: a Parquet file, or a directory of them. May be repeated.
    #[arg(long, value_name = "NAME=PATH", value_parser = pair)]
    parquet: Vec<(String, String)>,
    /// An option of the session, as key=value. May be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
    #[command(flatten)]
    text: Text,
    /// The form of results.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Engine {
    /// The scheduler of the cluster, as host:port.
    #[arg(long, value_parser = host_port)]
    scheduler: Option<(String, u16)>,
    /// No cluster: this process.
    #[arg(long)]
    local: bool,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Text {
    /// Statements, with semicolons between.
    #[arg(short, long, value_name = "SQL")]
    command: Option<String>,
    /// A file of statements.
    #[arg(short, long)]
    file: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// A table for people.
    Table,
    /// CSV with a header.
    Csv,
    /// JSON, one object a line.
    Json,
}

#[derive(Args)]
struct Publish {
    /// An image, routes, names, a list of domains, rules, or payloads of the RPKI, plain or compressed; the
    /// content says which. Several images or files of rules are one table, one of each family.
    #[arg(required_unless_present = "merge", conflicts_with = "merge")]
    files: Vec<PathBuf>,
    /// Source of routes that is merged with others to one table. May be repeated. Each field of an address
    /// comes from the longest prefix that has it, of all sources, and where several have it at one prefix,
    /// from the first of them. NAME is the field of values without names and of lists; COLUMN,... are the
    /// columns to take.
    #[arg(long, value_name = "NAME[:COLUMN,...]=FILE")]
    merge: Vec<MergeSource>,
    /// The format of the files. By default recognised by content.
    #[arg(long, conflicts_with = "merge")]
    format: Option<Content>,
    /// Pass over wrong lines, and leave out rules that header fields can't decide. By default the file is
    /// refused.
    #[arg(long)]
    lenient: bool,
    /// Take the origin of the AS path from MRT and bgpdump, not the next hop.
    #[arg(long)]
    origins: bool,
    /// The columns of CSV or the fields of another format that are the label. By default all.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with = "merge")]
    columns: Vec<String>,
    /// Column of CSV with the prefix, or the two with an address and a length or netmask. By default found by
    /// usual names.
    #[arg(long, value_name = "NAME[,LENGTH]", value_parser = PrefixColumns::of_prefix)]
    prefix_columns: Option<PrefixColumns>,
    /// Columns of CSV with the first and the last address of a range.
    #[arg(long, value_name = "FIRST,LAST", value_parser = PrefixColumns::of_range, conflicts_with = "prefix_columns")]
    range_columns: Option<PrefixColumns>,
    /// Family of addresses of CSV that are decimal numbers: 4 or 6. By default numbers are read in ranges
    /// alone.
    #[arg(long, value_name = "4|6", value_parser = family)]
    address_numbers: Option<Family>,
    /// Column of CSV with the names of a table of names. By default found by usual names.
    #[arg(long, value_name = "COLUMN", conflicts_with = "merge")]
    name_column: Option<String>,
    /// Clear the host bits of prefixes. By default such prefixes are refused.
    #[arg(long)]
    mask_host_bits: bool,
    /// Peer whose routes to take from MRT or bgpdump. By default the one with most prefixes of each family.
    #[arg(long, value_name = "NUMBER|ADDRESS|AS")]
    peer: Option<PeerChoice>,
    /// VRF whose routes to take from FRR's JSON of several VRFs.
    #[arg(long, value_name = "NAME")]
    vrf: Option<String>,
    /// Set whose members to take from a file with several sets of ipset or nft.
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
    /// Read only the ICANN section of the Public Suffix List.
    #[arg(long)]
    icann: bool,
    /// Fields that rules test: the 5-tuple of ipv4 or ipv6. By default recognised by content; a file of both
    /// families needs the option.
    #[arg(long, value_parser = tuple)]
    tuple: Option<TupleName>,
    /// Fact about all packets that decides rules, such as ct=new or in=eth0. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    assume: Vec<String>,
    /// Chain to take from iptables-save (the default is INPUT) or from nft; security groups, by ids or names
    /// with commas between; or the network policy, by NAME or NAMESPACE/NAME.
    #[arg(long)]
    chain: Option<String>,
    /// Table to take from iptables-save (the default is filter) or from nft; ingress (the default) or egress
    /// of security groups and network policies.
    #[arg(long, value_name = "TABLE")]
    rule_table: Option<String>,
    /// Publish again whenever a file changes, until Ctrl-C or SIGTERM. A state that can't be published is
    /// told, and the one before it stays.
    #[arg(long)]
    follow: bool,
    /// Seconds between looks at followed files.
    #[arg(long, default_value_t = 1.0, requires = "follow", value_parser = seconds)]
    every: f64,
    /// The directory, or the address of an object store.
    #[arg(long, value_name = "DIR")]
    to: String,
    /// The table's name: queries list DIR/name@latest.
    #[arg(long)]
    name: String,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("two parts with = between".to_owned()),
    }
}

fn host_port(text: &str) -> Result<(String, u16), String> {
    match text.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
        Some((host, Ok(port))) if !host.is_empty() && port != 0 => Ok((host.to_owned(), port)),
        _ => Err("a host and a port with : between".to_owned()),
    }
}

/// Deep expressions are walked by recursion, and a thread whose stack is full ends the process.
const STACK: usize = 32 << 20;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Work is done on the runtime's threads: this one has a stack of another size.
    let runtime = tokio::runtime::Builder::new_multi_thread().thread_stack_size(STACK).enable_all().build();
    let done =
        runtime.map_err(|source| Error::Io { path: PathBuf::from("threads"), source }).and_then(|runtime| {
            let ended = runtime.block_on(runtime.spawn(run(arguments.command)));
            ended.unwrap_or_else(|panic| Err(Error::Argument(panic.to_string())))
        });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wirespeed-ballista: {}", error.line());
            ExitCode::from(2)
        }
    }
}

async fn run(command: Command) -> Result<(), Error> {
    match command {
        Command::Scheduler(arguments) => scheduler(arguments).await,
        Command::Executor(arguments) => executor(arguments).await,
        Command::Sql(arguments) => sql(arguments).await,
        Command::Publish(arguments) => published(*arguments).await,
    }
}

async fn scheduler(arguments: Scheduler) -> Result<(), Error> {
    let mut config = scheduler_config(&Stores::from_env());
    config.executor_timeout_seconds = arguments.executor_timeout;
    config.no_executors_grace_period_seconds = arguments.executor_timeout;
    config.expire_dead_executor_interval_seconds = (arguments.executor_timeout / 4).clamp(1, 15);
    run_scheduler(config, arguments.bind, arguments.external_host, |address| {
        println!("scheduler: ready on {address}");
        // Who reads it waits for it.
        let _ = io::stdout().flush();
    })
    .await
}

async fn executor(arguments: Executor) -> Result<(), Error> {
    let stores = Stores::from_env();
    let cache = ImageCache::new(stores.clone(), arguments.tables_cache);
    let failed = |path: PathBuf| move |source| Error::Io { path, source };
    let mut temporary = None;
    let work_dir = match arguments.work_dir {
        Some(path) => path,
        None => {
            let made = tempfile::tempdir().map_err(failed(std::env::temp_dir()))?;
            temporary.insert(made).path().to_owned()
        }
    };
    std::fs::create_dir_all(&work_dir).map_err(failed(work_dir.clone()))?;
    let work_dir = work_dir.to_str().ok_or_else(|| Error::Argument("--work-dir is no text".to_owned()))?;
    let mut config = executor_config(&cache, &stores, work_dir);
    (config.scheduler_host, config.scheduler_port) = arguments.scheduler;
    config.external_host = arguments.external_host;
    config.executor_heartbeat_interval_seconds = arguments.heartbeat;
    if let Some(vcores) = arguments.vcores {
        config.vcores = vcores.into();
    }
    run_executor(config, arguments.bind, Duration::from_secs(arguments.wait)).await
}

async fn sql(arguments: Sql) -> Result<(), Error> {
    let text = match (arguments.text.command, arguments.text.file) {
        (Some(text), _) => text,
        (None, Some(path)) => std::fs::read_to_string(&path).map_err(|source| Error::Io { path, source })?,
        (None, None) => return Err(Error::Argument("give --command or --file".to_owned())),
    };
    let statements: Vec<Statement> = Client::statements(&text)?;
    let stores = Stores::from_env();
    let client = match arguments.engine.scheduler {
        Some((host, port)) => Client::remote(&format!("{host}:{port}"), stores).await?,
        None => Client::local(stores)?,
    };
    for (key, value) in &arguments.set {
        client.set(key, value)?;
    }
    for (name, place) in &arguments.table {
        client.table(name, place)?;
    }
    for (name, path) in &arguments.parquet {
        client.parquet(name, path).await?;
    }
    let mut out = BufWriter::new(io::stdout());
    for statement in statements {
        print(client.begin(statement).await?, arguments.format, &mut out).await?;
    }
    out.flush().map_err(output)
}

fn output(source: io::Error) -> Error {
    Error::Io { path: PathBuf::from("standard output"), source }
}

/// Prints the rows of a result. CSV and JSON are written batch by batch, so results of any size go through.
async fn print(result: DataFrame, format: Format, out: &mut impl Write) -> Result<(), Error> {
    let schema = std::sync::Arc::new(result.schema().as_arrow().clone());
    let mut batches = result.execute_stream().await?;
    match format {
        Format::Table => {
            let mut all = vec![RecordBatch::new_empty(schema.clone())];
            while let Some(batch) = batches.next().await {
                all.push(batch?);
            }
            // SET and the like have no columns.
            if !schema.fields().is_empty() {
                writeln!(out, "{}", pretty_format_batches(&all)?).map_err(output)?;
            }
        }
        Format::Csv => {
            let mut writer = csv::Writer::new(out);
            if !schema.fields().is_empty() {
                writer.write(&RecordBatch::new_empty(schema))?;
            }
            while let Some(batch) = batches.next().await {
                writer.write(&batch?)?;
            }
        }
        Format::Json => {
            let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(out);
            while let Some(batch) = batches.next().await {
                writer.write(&batch?)?;
            }
            writer.finish()?;
        }
    }
    Ok(())
}

async fn published(arguments: Publish) -> Result<(), Error> {
    let Publish { to, name, every, .. } = &arguments;
    let origin = match arguments.merge.is_empty() {
        true => Origin::Files(arguments.files.clone()),
        false => Origin::Sources(arguments.merge.clone()),
    };
    let how = arguments.how();
    let stores = Stores::from_env();
    if !arguments.follow {
        publish(&origin, &how, to, name, &stores).await?.iter().for_each(|place| println!("{place}"));
        return Ok(());
    }
    let told = |told: Result<Vec<Place>, Error>| {
        match told {
            Ok(places) => places.iter().for_each(|place| println!("{place}")),
            Err(error) => eprintln!("wirespeed-ballista: {name}: the last state stays: {}", error.line()),
        }
        // Who reads it waits for it.
        let _ = io::stdout().flush();
    };
    let every = Duration::from_secs_f64(*every);
    tokio::select! {
        ended = follow(&origin, &how, (to, name), &stores, every, told) => ended,
        () = signalled() => Ok(()),
    }
}

impl Publish {
    /// The options for reading.
    fn how(&self) -> How {
        let columns = Columns {
            prefix: self.prefix_columns.clone().or_else(|| self.range_columns.clone()),
            values: self.columns.clone(),
            numbers: self.address_numbers,
        };
        let routes = ReadOptions {
            peer: self.peer,
            vrf: self.vrf.clone(),
            set: self.set.clone(),
            origins: self.origins,
            mask_host_bits: self.mask_host_bits,
            columns,
            ..ReadOptions::default()
        };
        let columns = NameColumns { name: self.name_column.clone(), values: self.columns.clone() };
        How {
            content: self.format,
            routes,
            names: NameOptions { columns, ..NameOptions::default() },
            lenient: self.lenient,
            assume: self.assume.clone(),
            tuple: self.tuple,
            chain: self.chain.clone(),
            rule_table: self.rule_table.clone(),
            icann_only: self.icann,
        }
    }
}

fn family(text: &str) -> Result<Family, String> {
    match text {
        "4" => Ok(Family::V4),
        "6" => Ok(Family::V6),
        _ => Err("a family: 4 or 6".to_owned()),
    }
}

fn tuple(text: &str) -> Result<TupleName, String> {
    TupleName::of(text).ok_or_else(|| "a tuple: ipv4 or ipv6".to_owned())
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.001..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds from 0.001 to 86400".to_owned()),
    }
}
