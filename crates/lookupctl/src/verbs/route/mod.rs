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
use wirespeed_router::{App, Error, Report, Worker, run as run_workers};

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

/// Runs the workers until the time is up, the source ends, or a signal comes.
fn drive<A: App>(options: &Options, wiring: &Wiring, app: impl Fn(usize) -> A + Sync) -> Result<Done> {
    let workers = options.threads();
    let stop = AtomicBool::new(false);
    let running = Running::begin();
    let pins = Pins::of(options, workers)?;
    let make = |at: usize| -> Result<Worker<A>, Error> {
        pins.pin(at)?;
        let (memory, ports) = wiring.open(at)?;
        let worker = Worker::new(app(at), memory, ports, options.settings());
        Ok(match wiring.drops() {
            Some(sink) => worker.drops(sink),
            None => worker,
        })
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
        let report = run_workers(workers, &stop, make, |report| _ = progress.tell(report, &[]));
        is_done.store(true, Ordering::Relaxed);
        report
    })?;
    drop(running);
    let seconds = wiring.started().unwrap_or(begin).elapsed().as_secs_f64();
    Ok(Done { report, seconds, workers, sources: Vec::new() })
}
