//! The report of a run: on stderr once a second, and at the end on stdout.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;
use wirespeed_router::io::PortCounts;
use wirespeed_router::metrics::Metrics;
use wirespeed_router::{Report, Stats, Why};

use super::Done;
use super::options::Options;
use super::wiring::LARGEST_FRAME;
use crate::followed::State;
use crate::number::Grouped;
use crate::output::Output;

/// The report as an object.
#[derive(Serialize)]
struct Object<'r> {
    app: &'static str,
    device: &'static str,
    threads: usize,
    frames_in: u64,
    frames_out: u64,
    dropped: BTreeMap<&'static str, u64>,
    to_kernel: u64,
    to_controller: u64,
    queued: u64,
    made: u64,
    made_lost: u64,
    seconds: f64,
    mpps: f64,
    gbps: f64,
    latency_us: Latency,
    chunks: Chunks,
    /// Chunks by the reason for their size, and so for the device.
    why: BTreeMap<&'static str, u64>,
    counters: BTreeMap<&'static str, u64>,
    ports: BTreeMap<&'r str, PortObject>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    sources: &'r [State],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    damage: &'r [String],
}

#[derive(Serialize)]
struct Latency {
    p50: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

#[derive(Serialize)]
struct Chunks {
    cpu: u64,
    gpu: u64,
    /// Frames of a chunk, on average.
    frames_cpu: f64,
    frames_gpu: f64,
}

impl Chunks {
    fn of(stats: &Stats) -> Self {
        let mean = |frames: u64, chunks: u64| frames as f64 / chunks.max(1) as f64;
        let (cpu, gpu) = (stats.chunks_cpu, stats.chunks_gpu);
        Self {
            cpu,
            gpu,
            frames_cpu: mean(stats.sizes_cpu.frames(), cpu),
            frames_gpu: mean(stats.sizes_gpu.frames(), gpu),
        }
    }
}

#[derive(Serialize)]
struct PortObject {
    received: u64,
    sent: u64,
    missed: u64,
    refused: u64,
}

impl PortObject {
    const fn of(counts: &PortCounts) -> Self {
        let PortCounts { received, sent, missed, refused, .. } = *counts;
        Self { received, sent, missed, refused }
    }
}

/// Bytes of a frame on a wire beside its own: preamble, check sequence and gap.
const WIRE_BYTES: u64 = 24;

fn rates(stats: &Stats, seconds: f64) -> (f64, f64) {
    let mpps = stats.frames_out as f64 / seconds / 1e6;
    let bits = (stats.bytes_out + stats.frames_out * WIRE_BYTES) as f64 * 8.0;
    (mpps, bits / seconds / 1e9)
}

/// The reasons why chunks had their sizes; nothing where there is no GPU, and so no choice.
fn whys(stats: &Stats) -> String {
    if stats.whys.iter().all(|(why, _)| why == Why::NoGpu) {
        return String::new();
    }
    counted(stats.whys.iter().map(|(why, count)| (why.name(), count)))
}

/// Numbers with their names: `3 trial, 120 faster`.
fn counted(counts: impl Iterator<Item = (&'static str, u64)>) -> String {
    let parts: Vec<String> = counts.map(|(name, count)| format!("{} {name}", Grouped(count))).collect();
    parts.join(", ")
}

/// Tells what was done.
pub(super) fn tell(options: &Options, done: &Done, output: &mut Output) -> Result<()> {
    let Done { report: Report { stats, counters, ports, damage, .. }, seconds, workers, sources } = done;
    let seconds = seconds.max(1e-9);
    let (mpps, gbps) = rates(stats, seconds);
    let us = |share| stats.latency(share).as_secs_f64() * 1e6;
    if options.json {
        return output.json(&Object {
            app: options.app.name(),
            device: options.device().name(),
            threads: *workers,
            frames_in: stats.frames_in,
            frames_out: stats.frames_out,
            dropped: stats.dropped.iter().map(|(reason, count)| (reason.name(), count)).collect(),
            to_kernel: stats.to_kernel,
            to_controller: stats.to_controller,
            queued: stats.queued,
            made: stats.made,
            made_lost: stats.made_lost,
            seconds,
            mpps,
            gbps,
            latency_us: Latency {
                p50: us(0.5),
                p99: us(0.99),
                p999: us(0.999),
                max: stats.longest_latency().as_secs_f64() * 1e6,
            },
            chunks: Chunks::of(stats),
            why: stats.whys.iter().map(|(why, count)| (why.name(), count)).collect(),
            counters: counters.iter().copied().collect(),
            ports: ports.iter().map(|(name, counts)| (name.as_str(), PortObject::of(counts))).collect(),
            sources,
            damage,
        });
    }
    output.line(format_args!("in        {}", Grouped(stats.frames_in)))?;
    output.line(format_args!("out       {}", Grouped(stats.frames_out)))?;
    for (reason, count) in stats.dropped.iter() {
        output.line(format_args!("dropped   {}  {}", Grouped(count), reason.name()))?;
    }
    output.line(format_args!("to kernel {}", Grouped(stats.to_kernel)))?;
    if stats.to_controller > 0 {
        output.line(format_args!("to controllers {}", Grouped(stats.to_controller)))?;
    }
    output.line(format_args!("queued    {}", Grouped(stats.queued)))?;
    if stats.made + stats.made_lost > 0 {
        let lost = Grouped(stats.made_lost);
        output.line(format_args!("made      {}, and {lost} that no port took", Grouped(stats.made)))?;
    }
    for (name, count) in counters.iter().filter(|(_, count)| *count > 0) {
        output.line(format_args!("{name:<9} {}", Grouped(*count)))?;
    }
    for (name, counts) in ports.iter().filter(|(_, counts)| counts.missed + counts.refused > 0) {
        let (missed, refused) = (Grouped(counts.missed), Grouped(counts.refused));
        match options.reads_capture() {
            // Only the source of a capture refuses any, and no device misses them.
            true => output.line(format_args!(
                "{name}: {refused} refused, as neither Ethernet nor IP or over {LARGEST_FRAME} bytes"
            ))?,
            false => output.line(format_args!("{name}: {missed} missed by the device, {refused} refused"))?,
        }
    }
    for source in sources {
        output.line(format_args!("routes    {source}"))?;
        source.peers().try_for_each(|peer| output.line(format_args!("peer      {peer}")))?;
    }
    for damage in damage {
        output.line(format_args!("{damage}; nothing after that was read"))?;
    }
    output.line(format_args!("rate      {mpps:.2} Mpps, {gbps:.2} Gb/s on the wire, in {seconds:.2} s"))?;
    output.line(format_args!(
        "latency   p50 {:.1} us, p99 {:.1} us, p99.9 {:.1} us",
        us(0.5),
        us(0.99),
        us(0.999)
    ))?;
    let (cpu, gpu) = (Grouped(stats.chunks_cpu), Grouped(stats.chunks_gpu));
    output.line(format_args!("chunks    {cpu} by the CPU, {gpu} by a GPU"))?;
    let whys = whys(stats);
    if !whys.is_empty() {
        output.line(format_args!("why       {whys}"))?;
    }
    Ok(())
}

/// Tells the rate once a second, on stderr, and all counters to whoever asks for metrics.
pub(super) struct Progress {
    is_quiet: bool,
    metrics: Option<Metrics>,
    before: Stats,
    since: Instant,
}

impl Progress {
    /// Fails if metrics can't be served at the address that was asked for.
    pub(super) fn new(options: &Options) -> Result<Self> {
        let metrics = options.metrics.map(Metrics::serve).transpose()?;
        if let Some(metrics) = &metrics {
            eprintln!("metrics at http://{}/metrics", metrics.address());
        }
        Ok(Self { is_quiet: options.json, metrics, before: Stats::default(), since: Instant::now() })
    }

    /// Leaves the time before out of the first second.
    pub(super) fn begin(&mut self, began: Instant) {
        self.since = self.since.max(began);
    }

    /// Takes what was done so far, ten times a second. Returns whether it was time to tell it.
    pub(super) fn tell(&mut self, report: &Report, sources: &[State]) -> bool {
        if let Some(metrics) = &self.metrics {
            metrics.publish(report, sources.iter().map(State::of_metrics).collect());
        }
        let stats = &report.stats;
        let seconds = self.since.elapsed().as_secs_f64();
        if seconds < 0.95 {
            return false;
        }
        self.since = Instant::now();
        if !self.is_quiet {
            eprintln!("{}", second(&stats.since(&self.before), seconds));
        }
        self.before = stats.clone();
        true
    }
}

/// A line about what was done in some seconds, about one.
fn second(stats: &Stats, seconds: f64) -> String {
    let (mpps, gbps) = rates(stats, seconds);
    let received = stats.frames_in as f64 / seconds / 1e6;
    let us = |share| stats.latency(share).as_secs_f64() * 1e6;
    let Chunks { cpu, gpu, frames_cpu, frames_gpu } = Chunks::of(stats);
    let mut line = format!(
        "in {received:.2} out {mpps:.2} Mpps, {gbps:.2} Gb/s; chunks {} CPU of {frames_cpu:.0}, {} GPU of {frames_gpu:.0}; \
         p50 {:.0} p99 {:.0} p99.9 {:.0} us",
        Grouped(cpu),
        Grouped(gpu),
        us(0.5),
        us(0.99),
        us(0.999)
    );
    let dropped = counted(stats.dropped.iter().map(|(reason, count)| (reason.name(), count)));
    for (what, counts) in [("dropped", dropped), ("why", whys(stats))] {
        if !counts.is_empty() {
            line += &format!("; {what} {counts}");
        }
    }
    line
}
