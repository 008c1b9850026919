//! [`of`]: a report in the text format of OpenMetrics.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::{SourceState, Told};
use crate::io::PortCounts;
use crate::{ChunkSizes, Reason, Report, Stats, Why};

/// Bounds of latencies, in nanoseconds: 1, 2 and 5 of each power of ten from a microsecond to a second.
const LATENCIES: [u64; 19] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
];

/// The text of a report, and of the states of sources.
pub(super) fn of(told: Told) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("wirespeed");
    registry.register_collector(Box::new(Scrape(told)));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// A report, for one answer.
#[derive(Debug)]
struct Scrape(Told);

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Told { report: Report { stats, counters, ports, .. }, sources } = &self.0;
        totals(&mut encoder, stats)?;
        let dropped = Reason::ALL.iter().map(|&reason| (reason.name(), stats.dropped.of(reason)));
        let help = "Received frames that were dropped, by reason";
        family(&mut encoder, "frames_dropped", help, "reason", dropped)?;
        type Count = fn(&PortCounts) -> u64;
        let of_ports: [(&str, &str, Count); 4] = [
            ("port_frames_received", "Frames that a port received", |counts| counts.received),
            ("port_frames_sent", "Frames that a port sent", |counts| counts.sent),
            ("port_frames_missed", "Frames that the device lost before the router saw them", |counts| {
                counts.missed
            }),
            ("port_frames_refused", "Frames that a port could not give or send", |counts| counts.refused),
        ];
        for (name, help, count) in of_ports {
            let counts = ports.iter().map(|(port, counts)| (port.as_str(), count(counts)));
            family(&mut encoder, name, help, "port", counts)?;
        }
        let counters = counters.iter().copied();
        family(&mut encoder, "application", "Counters of the application", "counter", counters)?;
        let whys = Why::ALL.iter().map(|&why| (why.name(), stats.whys.of(why)));
        let help = "Chunks, by the reason for their size and so for their device";
        family(&mut encoder, "chunks_chosen", help, "why", whys)?;
        sizes(&mut encoder, stats)?;
        latencies(&mut encoder, stats)?;
        of_sources(&mut encoder, sources)
    }
}

/// The states of the sources of routes. Without one there are no such metrics.
fn of_sources(encoder: &mut DescriptorEncoder<'_>, sources: &[SourceState]) -> fmt::Result {
    if sources.is_empty() {
        return Ok(());
    }
    type Count = fn(&SourceState) -> Option<u64>;
    let counters: [(&str, &str, Count); 9] = [
        ("source_messages", "Messages of a source that were read", |of| Some(of.messages)),
        ("source_changes", "Changes of routes that a source told", |of| Some(of.changes)),
        ("source_resyncs", "Times that a state was compared with its source again", |of| Some(of.resyncs)),
        ("source_connections", "Connections of a source", |of| Some(of.connections)),
        ("source_violations", "Connections that were dropped for a violation of their protocol", |of| {
            Some(of.violations)
        }),
        ("source_overruns", "Times that the kernel's buffer overran", |of| Some(of.overruns)),
        ("source_skipped", "Messages of a source that were skipped", |of| Some(of.skipped)),
        ("source_peer_ups", "Times that a peer of a router came up", |of| Some(of.monitored?.ups)),
        ("source_peer_downs", "Times that a peer of a router went down", |of| Some(of.monitored?.downs)),
    ];
    for (name, help, count) in counters {
        let counts = sources.iter().filter_map(|of| Some((of.source.as_str(), count(of)?)));
        family(encoder, name, help, "source", counts)?;
    }
    type Value = fn(&SourceState) -> Option<f64>;
    let gauges: [(&str, &str, Value); 6] = [
        ("source_routes", "Routes of a source", |of| Some(of.prefixes as f64)),
        ("source_synced", "Whether the first state of a source was whole: 1 or 0", |of| {
            Some(f64::from(of.is_synced))
        }),
        ("source_stale_seconds", "Time since a source was lost; 0 while it is there", |of| {
            Some(of.stale.unwrap_or_default().as_secs_f64())
        }),
        ("source_routers", "Routers that are connected", |of| Some(of.monitored?.routers as f64)),
        ("source_peers_up", "Peers of routers that are up", |of| Some(of.monitored?.peers_up as f64)),
        ("source_peers_down", "Peers of routers that are down", |of| Some(of.monitored?.peers_down as f64)),
    ];
    for (name, help, value) in gauges {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (of, value) in sources.iter().filter_map(|of| Some((of, value(of)?))) {
            ConstGauge::new(value).encode(family.encode_family(&[("source", of.source.as_str())])?)?;
        }
    }
    Ok(())
}

/// Counts of all frames.
fn totals(encoder: &mut DescriptorEncoder<'_>, stats: &Stats) -> fmt::Result {
    let totals = [
        ("frames_in", "Frames that were received", stats.frames_in),
        ("bytes_in", "Bytes of received frames", stats.bytes_in),
        ("frames_out", "Received frames that were sent", stats.frames_out),
        ("bytes_out", "Bytes of received frames that were sent", stats.bytes_out),
        ("frames_to_kernel", "Received frames that the operating system took", stats.to_kernel),
        ("frames_to_controller", "Received frames that only controllers got", stats.to_controller),
        ("frames_made", "Frames that the application made and a port sent", stats.made),
        ("frames_made_lost", "Frames that the application made and no port took", stats.made_lost),
    ];
    for (name, help, count) in totals {
        let counter = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(count).encode(counter)?;
    }
    let help = "Received frames that are in chunks or in queues of ports";
    let queued = encoder.encode_descriptor("frames_queued", help, None, MetricType::Gauge)?;
    ConstGauge::new(i64::try_from(stats.queued).unwrap_or(i64::MAX)).encode(queued)
}

/// A counter for each value of a label.
fn family<'v>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    label: &str,
    counts: impl Iterator<Item = (&'v str, u64)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (value, count) in counts {
        ConstCounter::new(count).encode(family.encode_family(&[(label, value)])?)?;
    }
    Ok(())
}

/// Sizes of chunks by device; the count of each is the number of its chunks.
fn sizes(encoder: &mut DescriptorEncoder<'_>, stats: &Stats) -> fmt::Result {
    let help = "Frames of a chunk, by the device that looked it up";
    let mut family = encoder.encode_descriptor("chunk_frames", help, None, MetricType::Histogram)?;
    for (device, sizes) in [("cpu", &stats.sizes_cpu), ("gpu", &stats.sizes_gpu)] {
        let mut steps: Vec<(f64, u64)> = sizes.iter().map(|(most, chunks)| (most as f64, chunks)).collect();
        // The last step stands for all larger chunks, too.
        steps[ChunkSizes::POWERS - 1].0 = f64::INFINITY;
        histogram(family.encode_family(&[("device", device)])?, sizes.frames() as f64, &steps)?;
    }
    Ok(())
}

/// Latencies of frames.
fn latencies(encoder: &mut DescriptorEncoder<'_>, stats: &Stats) -> fmt::Result {
    let help = "Time from the receipt of a chunk's first frame to its transmission, for each frame";
    let metric = encoder.encode_descriptor("latency_seconds", help, None, MetricType::Histogram)?;
    let (all, sum) = stats.latencies();
    let counts = stats.frames_by_latency(&LATENCIES);
    let longer = all.saturating_sub(counts.iter().sum());
    let mut steps: Vec<(f64, u64)> = LATENCIES.iter().map(|&bound| bound as f64 / 1e9).zip(counts).collect();
    steps.push((f64::INFINITY, longer));
    histogram(metric, sum.as_secs_f64(), &steps)
}

/// A histogram of steps, each with its upper bound; the last one has none.
fn histogram(mut encoder: MetricEncoder<'_>, sum: f64, steps: &[(f64, u64)]) -> fmt::Result {
    let count = steps.iter().map(|&(_, count)| count).sum();
    encoder.encode_histogram::<[(&str, &str); 0]>(sum, count, steps, None)
}
