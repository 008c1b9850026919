//! `lookupctl replay` as a user runs it, on each device: as it is, by batch size, by threads, by batch size
//! and batches in flight, and within a bound on latency.
//!
//! ```text
//! Subject   a table and its trace ──► Replayer ──► Replay   rates, latencies and costs of one run
//! Sweep     the settings of a figure ──► each on each device, round after round ──► Sheet   the run of the median rate
//! ```
//!
//! All runs of a subject look up equal keys in equal tables: their checksums must agree.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;
use wirespeed_fib::Family;

use crate::data;
use crate::gpu::plot::Plot;
use crate::report::{Sheet, median};

/// The kind of table that is looked up in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum What {
    /// IPv4 addresses
    V4,
    /// IPv6 addresses
    V6,
    /// Names
    Names,
    /// Tuples, by rules
    Rules,
}

/// A table and a trace to replay.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The name in records.
    pub name: String,
    /// The words after `lookupctl`.
    arguments: Vec<OsString>,
}

impl Subject {
    /// The real table where it is there, else what `lookupctl` makes.
    pub fn of(what: What) -> Self {
        match what {
            What::V4 => Self::addresses(Family::V4, "4"),
            What::V6 => Self::addresses(Family::V6, "6"),
            What::Names => Self::files(
                "names",
                &["names", "replay"],
                &[("--table", "names/urls-300k.txt.zst")],
                "--lenient",
            ),
            What::Rules => {
                let rules = ("--rules", "rules/acl1_10k.rules.zst");
                let trace = ("--trace", "rules/acl1_10k.trace.zst");
                Self::files("rules", &["classify", "replay"], &[rules, trace], "--lenient")
            }
        }
    }

    fn addresses(family: Family, number: &str) -> Self {
        let source = data::sources().into_iter().find(|source| source.family == family);
        let mut arguments: Vec<OsString> = vec!["replay".into(), "--family".into(), number.into()];
        if let Some(path) = source.as_ref().and_then(data::Source::path) {
            arguments.extend(["--fib".into(), path.into(), "--lenient".into()]);
        }
        Self { name: source.map_or_else(|| format!("synthetic-v{number}"), |source| source.name), arguments }
    }

    /// A verb on these files, if all are there.
    fn files(kind: &str, verb: &[&str], files: &[(&str, &str)], reading: &str) -> Self {
        let files: Vec<(&str, PathBuf)> =
            files.iter().map(|&(option, file)| (option, data::directory().join(file))).collect();
        let mut arguments: Vec<OsString> = verb.iter().map(OsString::from).collect();
        if !files.iter().all(|(_, path)| path.is_file()) {
            return Self { name: format!("synthetic-{kind}"), arguments };
        }
        let first = files[0].1.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = first.as_deref().and_then(|name| name.split('.').next()).unwrap_or(kind).replace('_', "-");
        for (option, path) in files {
            arguments.extend([option.into(), path.into()]);
        }
        arguments.push(reading.into());
        Self { name, arguments }
    }
}

/// The result of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// Lookups a second.
    pub rate: f64,
    /// The rate that held a bound on latency, if there was a bound and it was held.
    pub held: Option<f64>,
    /// Microseconds that half of the batches took at most, and 99 of 100.
    pub latency: [f64; 2],
    /// Seconds of CPU time of a billion lookups, if the system tells.
    pub cost: Option<f64>,
    /// Share of the lookups that GPUs did.
    pub gpu_share: f64,
    threads: u64,
    batch: u64,
    in_flight: Option<u64>,
    checksum: u64,
}

impl Replay {
    /// Reads what `lookupctl replay --json` prints.
    fn read(json: &[u8]) -> Result<Self> {
        let json: Value = serde_json::from_slice(json)?;
        let none = |name: &str| anyhow!("no {name} in the report");
        let float = |name: &str| json[name].as_f64().ok_or_else(|| none(name));
        let whole = |name: &str| json[name].as_u64().ok_or_else(|| none(name));
        let latency = |name: &str| json["latency_us"][name].as_f64().ok_or_else(|| none(name));
        let bound = &json["latency_bound"];
        Ok(Self {
            rate: float("mlookups_per_s")? * 1e6,
            held: bound["mlookups_per_s"].as_f64().filter(|_| bound["held"] == true).map(|rate| rate * 1e6),
            latency: [latency("p50")?, latency("p99")?],
            cost: json["cpu_s_per_glookups"].as_f64(),
            gpu_share: json["gpu"]["share"].as_f64().unwrap_or(0.0),
            threads: whole("threads")?,
            batch: whole("batch")?,
            in_flight: json["in_flight"].as_u64(),
            checksum: whole("checksum")?,
        })
    }
}

/// The program that replays, and the time of each run.
#[derive(Clone, Debug)]
pub struct Replayer {
    program: PathBuf,
    /// Options of every run.
    options: Vec<OsString>,
}

impl Replayer {
    /// Takes this `lookupctl`, or else the one beside this program, for runs of so many seconds.
    pub fn new(program: Option<&Path>, seconds: f64) -> Result<Self> {
        let beside = || Ok(std::env::current_exe()?.with_file_name("lookupctl"));
        let program = program.map_or_else(beside, |path| Ok::<_, anyhow::Error>(path.to_owned()))?;
        ensure!(
            program.is_file(),
            "{}: not there: build it with `cargo build --release -p lookupctl`, or name it with --lookupctl",
            program.display()
        );
        Ok(Self { program, options: vec!["--json".into(), "--seconds".into(), seconds.to_string().into()] })
    }

    /// Replays a subject on a device with further options.
    pub fn run(&self, subject: &Subject, device: &str, options: &[String]) -> Result<Replay> {
        let mut command = Command::new(&self.program);
        command.args(&subject.arguments).args(&self.options).args(["--device", device]).args(options);
        let output = command.stdin(Stdio::null()).output().context("lookupctl does not start")?;
        if !output.status.success() {
            bail!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
        }
        Replay::read(&output.stdout).with_context(|| format!("{command:?}"))
    }
}

/// The settings of a figure.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The name in records.
    pub name: &'static str,
    title: String,
    settings: Vec<Vec<String>>,
    plots: Vec<Plot>,
}

/// The option that only a GPU heeds.
const IN_FLIGHT: &str = "--in-flight";

/// The columns of all figures.
const COLUMNS: &[&str] = &[
    "device",
    "asked",
    "threads",
    "batch",
    "in_flight",
    "runs",
    "mlookups_per_s",
    "least_mlookups_per_s",
    "of_best_alone",
    "of_best",
    "p50_us",
    "p99_us",
    "gpu_share",
    "cpu_s_per_glookups",
    "bound_held",
];

impl Sweep {
    /// Nothing said beside the device.
    pub fn as_it_is() -> Self {
        let title = "with nothing else said".into();
        Self { name: "replay", title, settings: vec![Vec::new()], plots: Vec::new() }
    }

    /// Batch sizes: powers of four from 64 to 2^20.
    pub fn batches() -> Self {
        let sizes: Vec<usize> = (6..=20).step_by(2).map(|log| 1 << log).collect();
        Self::by("replay-batches", "by batch size", "batch", &sizes)
    }

    /// Numbers of threads: 1, 2, 4 and so on, up to the cores of this machine.
    pub fn threads(cores: usize) -> Self {
        let powers = std::iter::successors(Some(1), |threads| Some(threads * 2));
        let mut threads: Vec<usize> = powers.take_while(|&threads| threads < cores).collect();
        threads.push(cores);
        Self::by("replay-threads", "by threads", "threads", &threads)
    }

    /// Nothing said, and all batch sizes of more than 8,192 keys with all numbers in flight up to 8, by
    /// powers of two: the best that a hand could find. Only a GPU has batches in flight.
    pub fn by_hand() -> Self {
        let settings = (14..=20).flat_map(|log| (0..=3).map(move |in_flight| (1 << log, 1 << in_flight)));
        let said = |(batch, in_flight): (u32, u32)| {
            let words = [IN_FLIGHT, &in_flight.to_string(), "--batch", &batch.to_string()];
            words.map(str::to_owned).to_vec()
        };
        let settings = std::iter::once(Vec::new()).chain(settings.map(said)).collect();
        let title = "by batch size and batches in flight".into();
        Self { name: "replay-by-hand", title, settings, plots: Vec::new() }
    }

    /// A bound on latency, as `--latency-bound` takes it.
    pub fn bound(bound: &str) -> Self {
        let settings = vec![vec!["--latency-bound".into(), bound.into()]];
        let title = format!("p99 within {bound}");
        Self { name: "replay-bound", title, settings, plots: Vec::new() }
    }

    fn by(name: &'static str, title: &str, option: &'static str, values: &[usize]) -> Self {
        let plot = |y| Plot {
            x: option,
            y,
            curves: &["device"],
            log_x: true,
            crossing: (y == "mlookups_per_s").then_some(["cpu", "gpu"]),
        };
        let settings = values.iter().map(|value| vec![format!("--{option}"), value.to_string()]).collect();
        let plots = vec![plot("mlookups_per_s"), plot("cpu_s_per_glookups")];
        Self { name, title: title.into(), settings, plots }
    }

    /// The plots of its sheet.
    pub fn plots(&self) -> &[Plot] {
        &self.plots
    }

    /// Replays a subject in each setting on each device, so many times, device after device.
    pub fn measure(
        &self,
        replayer: &Replayer,
        subject: &Subject,
        devices: &[&str],
        rounds: usize,
    ) -> Result<Sheet> {
        let mut runs = vec![vec![Vec::new(); devices.len()]; self.settings.len()];
        let mut checksum = None;
        for round in 0..rounds {
            for (setting, of_setting) in self.settings.iter().zip(&mut runs) {
                for (device, of_device) in devices.iter().zip(of_setting) {
                    if *device == "cpu" && setting.iter().any(|word| word == IN_FLIGHT) {
                        continue;
                    }
                    let run = replayer.run(subject, device, setting)?;
                    let said = if setting.is_empty() { "as it is".into() } else { setting.join(" ") };
                    eprintln!("{}, round {round}: {device}, {said}: {:.0} M/s", subject.name, run.rate / 1e6);
                    ensure!(
                        *checksum.get_or_insert(run.checksum) == run.checksum,
                        "{device}, {said}: other results: checksum {}, not {checksum:?}",
                        run.checksum
                    );
                    of_device.push(run);
                }
            }
        }
        let title = format!("{}: lookupctl replay, {}", subject.name, self.title);
        Ok(Sheet { title, columns: COLUMNS, rows: rows(devices, &self.settings, &runs) })
    }
}

/// A row for each setting and device.
fn rows(devices: &[&str], settings: &[Vec<String>], runs: &[Vec<Vec<Replay>>]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    // Rates of other settings were measured at another time, so their medians are compared.
    let of_all = runs.iter().flatten().map(|runs| middle(runs)).fold(0.0, f64::max);
    for (setting, of_setting) in settings.iter().zip(runs) {
        // Runs of one round are neighbours in time, so they are compared with each other.
        let best_alone = |round: usize| {
            let alone = devices.iter().zip(of_setting).filter(|(device, _)| **device != "auto");
            alone.filter_map(|(_, runs)| runs.get(round)).map(kept).fold(0.0, f64::max)
        };
        for (device, runs) in devices.iter().zip(of_setting) {
            let rates: Vec<f64> = runs.iter().map(kept).collect();
            let rate = middle(runs);
            let Some(run) = runs.iter().find(|run| kept(run) == rate) else { continue };
            let of_best: Vec<f64> =
                rates.iter().enumerate().map(|(round, rate)| rate / best_alone(round)).collect();
            let word = |number: Option<f64>, digits: usize| {
                number
                    .filter(|number| number.is_finite())
                    .map_or("-".into(), |number| format!("{number:.digits$}"))
            };
            let held = runs.iter().filter(|run| run.held.is_some()).count();
            rows.push(vec![
                (*device).to_owned(),
                setting.last().cloned().unwrap_or_else(|| "-".into()),
                run.threads.to_string(),
                run.batch.to_string(),
                run.in_flight.map_or("-".into(), |number| number.to_string()),
                runs.len().to_string(),
                word(Some(rate / 1e6), 0),
                word(Some(rates.iter().copied().fold(f64::INFINITY, f64::min) / 1e6), 0),
                word((*device == "auto").then(|| median(&of_best)), 3),
                word((*device == "auto").then_some(rate / of_all), 3),
                word(Some(run.latency[0]), 1),
                word(Some(run.latency[1]), 1),
                word(Some(run.gpu_share), 3),
                word(run.cost, 3),
                if setting.iter().any(|word| word == "--latency-bound") {
                    held.to_string()
                } else {
                    "-".into()
                },
            ]);
        }
    }
    rows
}

/// The median of the rates that count; 0 of no runs.
fn middle(runs: &[Replay]) -> f64 {
    let rates: Vec<f64> = runs.iter().map(kept).collect();
    if rates.is_empty() { 0.0 } else { median(&rates) }
}

/// The rate that counts: the one that held the bound, if there was one.
fn kept(run: &Replay) -> f64 {
    run.held.unwrap_or(run.rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rate: f64) -> Replay {
        Replay {
            rate: rate * 1e6,
            held: None,
            latency: [1.0, 2.5],
            cost: Some(0.25),
            gpu_share: 0.5,
            threads: 15,
            batch: 64,
            in_flight: Some(4),
            checksum: 7,
        }
    }

    #[test]
    fn reports_are_read() {
        let json = br#"{"threads": 15, "batch": 64, "in_flight": 4, "mlookups_per_s": 12.0, "checksum": 7,
            "cpu_s_per_glookups": 0.25, "latency_us": {"p50": 1.0, "p99": 2.5, "max": 9.0}, "gpu": {"share": 0.5}}"#;
        assert_eq!(Replay::read(json).unwrap(), run(12.0));
        let text = String::from_utf8(json.to_vec()).unwrap();
        let bound = |held: bool| {
            let bound = format!(
                "\"latency_bound\": {{\"us\": 100, \"mlookups_per_s\": 5.0, \"held\": {held}}}, \"gpu\""
            );
            Replay::read(text.replace("\"gpu\"", &bound).as_bytes()).unwrap().held
        };
        assert_eq!((bound(true), bound(false)), (Some(5e6), None));
        let short = Replay::read(text.replace("checksum", "other").as_bytes()).unwrap_err();
        assert_eq!(short.to_string(), "no checksum in the report");
        assert!(Replay::read(b"").is_err());
    }

    #[test]
    fn rows_hold_the_run_of_the_median_and_compare_auto_with_the_better_device_round_by_round() {
        let runs = vec![vec![
            vec![run(10.0), run(20.0), run(11.0)],
            vec![run(8.0), run(40.0), run(12.0)],
            vec![run(9.0), run(40.0), run(13.0)],
        ]];
        let settings = [vec!["--batch".to_owned(), "64".to_owned()]];
        let rows = rows(&["cpu", "gpu", "auto"], &settings, &runs);
        let column = |name: &str| COLUMNS.iter().position(|&column| column == name).unwrap();
        let cells = |name: &str| rows.iter().map(|row| row[column(name)].clone()).collect::<Vec<_>>();
        assert_eq!(cells("device"), ["cpu", "gpu", "auto"]);
        assert_eq!(cells("mlookups_per_s"), ["11", "12", "13"]);
        assert_eq!(cells("least_mlookups_per_s"), ["10", "8", "9"]);
        assert_eq!(cells("of_best_alone"), ["-", "-", "1.000"]);
        assert_eq!(cells("of_best"), ["-", "-", "1.000"]);
        assert!(rows.iter().all(|row| row.len() == COLUMNS.len() && row[column("asked")] == "64"));
    }

    #[test]
    fn auto_is_compared_with_the_best_of_all_settings_and_a_device_may_have_no_run() {
        let settings = [Vec::new(), vec![IN_FLIGHT.to_owned(), "2".to_owned()]];
        let runs = vec![vec![vec![run(10.0)], vec![run(12.0)]], vec![vec![], vec![run(15.0)]]];
        let rows = rows(&["cpu", "auto"], &settings, &runs);
        let at = COLUMNS.iter().position(|&column| column == "of_best").unwrap();
        assert_eq!(rows.iter().map(|row| row[at].as_str()).collect::<Vec<_>>(), ["-", "0.800", "1.000"]);
    }

    #[test]
    fn sweeps_name_their_settings() {
        let words = |sweep: Sweep| sweep.settings.iter().map(|setting| setting.join(" ")).collect::<Vec<_>>();
        assert_eq!(words(Sweep::as_it_is()), [""]);
        assert_eq!(words(Sweep::threads(6)), ["--threads 1", "--threads 2", "--threads 4", "--threads 6"]);
        assert_eq!(words(Sweep::threads(1)), ["--threads 1"]);
        let batches = words(Sweep::batches());
        assert_eq!(
            (batches[0].as_str(), batches.last().unwrap().as_str()),
            ("--batch 64", "--batch 1048576")
        );
        assert_eq!(words(Sweep::bound("100us")), ["--latency-bound 100us"]);
        let by_hand = words(Sweep::by_hand());
        assert_eq!((by_hand.len(), by_hand[0].as_str()), (1 + 7 * 4, ""));
        assert_eq!(by_hand[28], "--in-flight 8 --batch 1048576");
    }
}
