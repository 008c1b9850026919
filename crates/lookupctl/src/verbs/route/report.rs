//! The report of a run: on stderr once a second, and at the end on stdout.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;
use wirespeed_router::io::PortCounts;
use wirespeed_router::metrics::Metrics;
use wirespeed_router::{Report, Stats};

use super::options::Options;
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

/// Tells what was done.
pub(super) fn tell(
    options: &Options,
    report: &Report,
    seconds: f64,
    sources: &[State],
    output: &mut Output,
) -> Result<()> {
    let Report { stats, counters, ports, damage } = report;
    let seconds = seconds.max(1e-9);
    let (mpps, gbps) = rates(stats, seconds);
    let us = |share| stats.latency(share).as_secs_f64() * 1e6;
    if options.json {
        return output.json(&Object {
            app: options.app.name(),
            device: options.device().name(),
            threads: options.threads(),
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
            chunks: Chunks { cpu: stats.chunks_cpu, gpu: stats.chunks_gpu },
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
        output.line(format_args!("{name}: {missed} missed by the device, {refused} refused"))?;
    }
    for source in sources {
        output.line(format_args!("routes    {source}"))?;
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
    output.line(format_args!("chunks    {cpu} by the CPU, {gpu} by a GPU"))
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

    /// Takes what was done so far, ten times a second. Returns whether it was time to tell it.
    pub(super) fn tell(&mut self, report: &Report) -> bool {
        if let Some(metrics) = &self.metrics {
            metrics.publish(report);
        }
        let stats = &report.stats;
        let seconds = self.since.elapsed().as_secs_f64();
        if seconds < 0.95 {
            return false;
        }
        self.since = Instant::now();
        if !self.is_quiet {
            let frames = (stats.frames_out - self.before.frames_out) as f64 / seconds / 1e6;
            let dropped = stats.dropped.all() - self.before.dropped.all();
            let gpu = stats.chunks_gpu - self.before.chunks_gpu;
            let cpu = stats.chunks_cpu - self.before.chunks_cpu;
            eprintln!(
                "{frames:.2} Mpps, {} dropped, chunks {} CPU {} GPU, p99 {:.0} us so far",
                Grouped(dropped),
                Grouped(cpu),
                Grouped(gpu),
                stats.latency(0.99).as_secs_f64() * 1e6
            );
        }
        self.before = stats.clone();
        true
    }
}
