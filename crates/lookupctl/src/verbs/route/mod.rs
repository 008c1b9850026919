//! `route`: the packet pipeline, from a source of frames to a sink.

#[cfg(target_os = "linux")]
mod faces;
mod heeded;
#[cfg(target_os = "linux")]
mod live;
mod options;
mod pins;
mod report;
#[cfg(target_os = "linux")]
mod sources;
mod switch;
mod tables;
mod tunnels;
mod wiring;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use wirespeed::gpu::runtime::{Fleet, GpuOptions};
use wirespeed_router::apps::{Esp, Ip};
use wirespeed_router::io::Port;
use wirespeed_router::{App, Error, Memory, Report, Worker, run as run_workers};

use crate::Outcome;
use crate::followed::State;
use crate::interrupt::{Running, is_interrupted};
use crate::output::Output;

use options::AppName;
pub(crate) use options::Options;
use pins::Pins;
use tables::Tables;
use tunnels::{Gpus, Tunnels};
use wiring::Wiring;

/// Runs the verb.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    options.check()?;
    if !options.interfaces.is_empty() {
        return tell(options, &live(options)?);
    }
    // A GPU that is asked for and not there is told before files are read.
    let gpus = Gpus::open(options, options.threads())?;
    if options.app == AppName::Openflow {
        // The switch opens them once there are flows to look up.
        options.device().has_gpu()?;
    }
    let tables = Tables::load(options, fleet(options)?)?;
    let wiring = Wiring::of(options, &tables)?;
    let done = match (&tables, options.app) {
        (Tables::Ip(ip), AppName::Ip) => {
            drive(options, &wiring, |_| Ip::new(&ip.reader, &ip.routes, &ip.own))?
        }
        (Tables::Ip(ip), AppName::Acl) => drive(options, &wiring, |_| {
            ip.list.before(Ip::new(&ip.reader, &ip.routes, &ip.own), options.otherwise())
        })?,
        (Tables::Ip(ip), AppName::Esp) => {
            let tunnels = Tunnels::open(options)?;
            let done = tunnels.followed(|| {
                drive(options, &wiring, |at| {
                    let behind = Ip::new(&ip.reader, &ip.routes, &ip.own);
                    gpus.give(at, Esp::new(behind, tunnels.reader(), &ip.own))
                })
            })?;
            tunnels.tell();
            done
        }
        (Tables::Names(names), _) => drive(options, &wiring, |_| names.forwarder())?,
        (Tables::Switch(switch), _) => drive(options, &wiring, |_| {
            switch.switch.app().expect("the switch was made for as many workers")
        })?,
        (Tables::Ip(_), AppName::Openflow) => bail!("--app openflow has no routes"),
        (Tables::Ip(_), AppName::Names) => bail!("--app names needs a table of names: --table FILE"),
    };
    wiring.finish()?;
    tell(options, &done)
}

/// A run: what was done, in how many seconds, by how many workers, and the states of the sources of routes.
struct Done {
    report: Report,
    seconds: f64,
    workers: usize,
    sources: Vec<State>,
}

impl Done {
    /// A run that began at `began`. Its seconds end with the last frame: applications may take long to let go
    /// of a GPU.
    fn new(report: Report, began: Instant, workers: usize) -> Self {
        let ended = report.ended.unwrap_or_else(Instant::now);
        let seconds = ended.saturating_duration_since(began).as_secs_f64();
        Self { report, seconds, workers, sources: Vec::new() }
    }
}

/// The GPUs that look up, if there are some and the application looks up there. The switch and the gateway of
/// tunnels open their own.
fn fleet(options: &Options) -> Result<Option<Fleet>> {
    let device = options.device();
    if matches!(options.app, AppName::Openflow | AppName::Esp) || !device.has_gpu()? {
        return Ok(None);
    }
    device.open(&GpuOptions::default())
}

#[cfg(target_os = "linux")]
fn live(options: &Options) -> Result<Done> {
    live::run(options)
}

#[cfg(not(target_os = "linux"))]
fn live(_: &Options) -> Result<Done> {
    bail!("interfaces can be used on Linux only; captures and frames in memory on every system")
}

/// Prints what was done.
fn tell(options: &Options, done: &Done) -> Result<Outcome> {
    let mut output = Output::new();
    report::tell(options, done, &mut output)?;
    output.finish()?;
    Ok(if is_interrupted() { Outcome::Interrupted } else { Outcome::Done })
}

/// A function that makes a worker: of its number, its memory and its ports.
type MakeWorker<'m, W> = dyn Fn(usize, Memory, Vec<Box<dyn Port>>) -> W + Sync + 'm;

/// Runs the workers until the time is up, the source ends, or a signal comes.
fn drive<A: App>(options: &Options, wiring: &Wiring, app: impl Fn(usize) -> A + Sync) -> Result<Done> {
    drive_all(options, wiring, &|at, memory, ports| Worker::new(app(at), memory, ports, options.settings()))
}

/// Runs workers of any application, as [`drive`] does.
fn drive_all<'a>(options: &Options, wiring: &Wiring, worker: &MakeWorker<'_, Worker<'a>>) -> Result<Done> {
    let workers = options.threads();
    let stop = AtomicBool::new(false);
    let running = Running::begin();
    let pins = Pins::of(options, workers)?;
    let make = |at: usize| -> Result<Worker<'a>, Error> {
        pins.pin(at)?;
        let (memory, ports) = wiring.open(at)?;
        let mut worker = worker(at, memory, ports);
        if let Some(sink) = wiring.drops() {
            worker = worker.drops(sink);
        }
        wiring.wait_for_all(&stop);
        Ok(worker)
    };
    let begin = Instant::now();
    let mut progress = report::Progress::new(options)?;
    let is_done = AtomicBool::new(false);
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                // Making frames and opening ports is no part of the time.
                let is_over = wiring.started().is_some_and(|since| since.elapsed() >= options.seconds());
                if is_over || is_interrupted() {
                    stop.store(true, Ordering::Relaxed);
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let report = run_workers(workers, &stop, make, |report| {
            if let Some(began) = wiring.started() {
                progress.begin(began);
                progress.tell(report, &[]);
            }
        });
        is_done.store(true, Ordering::Relaxed);
        report
    })?;
    drop(running);
    Ok(Done::new(report, wiring.started().unwrap_or(begin), workers))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use wirespeed_router::{Chunk, Memory, PortId, Verdict};

    use super::*;

    #[derive(Parser)]
    struct Arguments {
        #[command(flatten)]
        options: Options,
    }

    /// An application that takes its time to begin, one worker after the other, and to end.
    struct Slow;

    const SLOW: Duration = Duration::from_millis(500);

    impl Slow {
        fn new(at: usize) -> Self {
            std::thread::sleep(SLOW * u32::try_from(at).unwrap());
            Self
        }
    }

    impl App for Slow {
        type Pending = ();

        fn pre_shade(&mut self, _: &mut Chunk, _: &mut Memory) {}

        fn post_shade(&mut self, chunk: &mut Chunk, _: &mut Memory, (): ()) {
            (0..chunk.len()).for_each(|at| chunk.decide(at, Verdict::Out(PortId(1))));
        }
    }

    impl Drop for Slow {
        fn drop(&mut self) {
            std::thread::sleep(SLOW);
        }
    }

    #[test]
    fn the_rate_is_that_of_the_time_in_which_all_workers_forward() {
        let line = ["route", "--app", "openflow", "--flows", "/dev/null", "--threads", "2", "--load", "0.01"];
        let Arguments { options } = Arguments::parse_from(line.into_iter().chain(["--seconds", "0.2"]));
        let tables = Tables::load(&options, None).unwrap();
        let done = drive(&options, &Wiring::of(&options, &tables).unwrap(), Slow::new).unwrap();
        assert!((0.19..0.6).contains(&done.seconds), "{} s", done.seconds);
        let (frames, all) = (done.report.stats.frames_out as f64, done.seconds * 10_000.0);
        assert!((all * 0.3..all * 1.3 + 100.0).contains(&frames), "{frames} of {all} frames");
    }
}
