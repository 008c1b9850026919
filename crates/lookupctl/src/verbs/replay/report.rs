//! What a replay found.

use std::fmt;

use anyhow::Result;
use serde::Serialize;
use wirespeed::Reasons;

use super::latency::Percentiles;
use crate::Outcome;
use crate::followed::State;
use crate::number::{Grouped, counted, counted_u64, grouped};
use crate::output::Output;

/// The result; in JSON, scripts rely on these keys.
#[derive(Debug, Serialize)]
pub(in crate::verbs) struct Report {
    /// The engine at the end, or the engines of IPv4 and IPv6 with a plus sign between them if they differ.
    pub(in crate::verbs) engine: String,
    /// The engine before the updates, if the table of `auto` got another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::verbs) began_with: Option<String>,
    pub(in crate::verbs) device: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::verbs) gpu: Option<GpuReport>,
    pub(in crate::verbs) threads: usize,
    pub(in crate::verbs) batch: usize,
    /// Batches of a thread that were under way at once, where a GPU could look up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::verbs) in_flight: Option<usize>,
    /// More threads, which looked up on the CPU alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::verbs) beside: Option<BesideReport>,
    /// The plan that was taken, in words, where a GPU could look up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::verbs) plan: Option<String>,
    /// Keys of the trace.
    pub(in crate::verbs) keys: usize,
    /// Keys looked up in the timed part.
    pub(in crate::verbs) lookups: u64,
    /// How many of these a prefix matches.
    pub(in crate::verbs) matched: u64,
    /// Keys of the trace that a prefix matches after the last update, 0 to 1.
    pub(in crate::verbs) hit_share: f64,
    /// Answers, in a pass after the last update, that a left-out rule could change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::verbs) uncertain: Option<u64>,
    /// Assumptions about packets that decided an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::verbs) assuming: Option<Vec<String>>,
    pub(in crate::verbs) seconds: f64,
    pub(in crate::verbs) mlookups_per_s: f64,
    /// Seconds of CPU time of the whole program for a billion lookups, if the system tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::verbs) cpu_s_per_glookups: Option<f64>,
    pub(in crate::verbs) latency_us: Percentiles,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::verbs) latency_bound: Option<BoundReport>,
    pub(in crate::verbs) updates: UpdatesReport,
    /// The source whose routes were followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::verbs) followed: Option<State>,
    pub(in crate::verbs) checksum: u64,
    /// Addresses of the trace that were passed over: the table is of the other family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::verbs) other_family: Option<u64>,
    /// The families of a trace of both.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::verbs) families: Vec<FamilyReport>,
    /// Whether a signal ended it before its time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::verbs) interrupted: bool,
    #[serde(rename = "matched_length", skip_serializing_if = "Option::is_none")]
    pub(in crate::verbs) lengths: Option<Lengths>,
}

/// A family's part in a replay of both.
#[derive(Debug, Serialize)]
pub(in crate::verbs) struct FamilyReport {
    pub(in crate::verbs) family: u8,
    pub(in crate::verbs) engine: &'static str,
    /// The engine before the updates, if the table of `auto` got another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::verbs) began_with: Option<&'static str>,
    /// Keys of the trace.
    pub(in crate::verbs) keys: usize,
}

/// Matched bytes of the names of a trace, in one pass after the last update.
#[derive(Clone, Copy, Debug, Serialize)]
pub(in crate::verbs) struct Lengths {
    /// Bytes of all of them.
    pub(in crate::verbs) sum: u64,
    /// Bytes of a name that matched at all.
    pub(in crate::verbs) mean: f64,
}

impl Report {
    /// Prints it, for scripts or for people; how the replay ended.
    pub(in crate::verbs) fn show(&self, json: bool) -> Result<Outcome> {
        let mut output = Output::new();
        if json {
            output.json(self)?;
        } else {
            output.line(self)?;
        }
        output.finish()?;
        Ok(if self.interrupted { Outcome::Interrupted } else { Outcome::Done })
    }
}

/// Threads that looked up on the CPU beside those that fed a GPU.
#[derive(Clone, Copy, Debug, Serialize)]
pub(in crate::verbs) struct BesideReport {
    pub(in crate::verbs) threads: usize,
    /// Keys of a batch.
    pub(in crate::verbs) batch: usize,
}

/// The GPUs' part in a replay.
#[derive(Debug, Serialize)]
pub(in crate::verbs) struct GpuReport {
    pub(in crate::verbs) name: String,
    pub(in crate::verbs) devices: usize,
    /// Share of the keys that were looked up on GPUs, 0 to 1, with those that were looked up to warm up.
    pub(in crate::verbs) share: f64,
    /// The other keys, by the reason why the CPU looked them up.
    pub(in crate::verbs) why_cpu: Reasons,
    /// Why the CPU took over during the run, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::verbs) lost: Option<String>,
}

/// The highest rate that kept a bound on latency.
#[derive(Debug, Serialize)]
pub(in crate::verbs) struct BoundReport {
    /// The bound on p99.
    pub(in crate::verbs) us: f64,
    /// The rate that was offered, and kept if it is so.
    pub(in crate::verbs) mlookups_per_s: f64,
    /// Whether it was kept. No rate that was tried was kept if not; then this is the lowest of them.
    pub(in crate::verbs) held: bool,
}

#[derive(Debug, Default, Serialize)]
pub(in crate::verbs) struct UpdatesReport {
    pub(in crate::verbs) applied: u64,
    pub(in crate::verbs) per_s: f64,
    /// How often an update made the table outgrow itself, so that it was built anew.
    pub(in crate::verbs) rebuilds: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { engine, device, threads, batch, keys, lookups, seconds, mlookups_per_s, .. } = self;
        if self.interrupted {
            writeln!(f, "interrupted: what was measured until then")?;
        }
        let Percentiles { p50, p99, max } = self.latency_us;
        writeln!(
            f,
            "{engine} on {}, {}, batches of {}, a trace of {}",
            Place { device, gpu: self.gpu.as_ref() },
            counted(*threads, "thread"),
            grouped(*batch),
            counted(*keys, "key")
        )?;
        if let Some(plan) = &self.plan {
            writeln!(f, "plan      {plan}")?;
        }
        if let Some(first) = &self.began_with {
            writeln!(f, "engine    {first} at the start, {engine} at the end")?;
        }
        writeln!(f, "rate      {} ({} in {seconds:.2} s)", Rate(*mlookups_per_s), Grouped(*lookups))?;
        if let Some(cpu) = self.cpu_s_per_glookups {
            writeln!(f, "cost      {cpu:.2} s of CPU time a billion lookups")?;
        }
        writeln!(f, "latency   p50 {p50:.1} µs, p99 {p99:.1} µs, max {max:.1} µs a batch")?;
        if let Some(BoundReport { us, mlookups_per_s, held }) = &self.latency_bound {
            let how = if *held { "held" } else { "not held, not even" };
            writeln!(f, "bound     p99 under {us:.0} µs, {how} at {} offered", Rate(*mlookups_per_s))?;
        }
        writeln!(f, "hits      {:.2} %", self.hit_share * 100.0)?;
        if let Some(uncertain) = self.uncertain.filter(|&uncertain| uncertain > 0) {
            writeln!(
                f,
                "uncertain {} of {} answers, as rules were left out or are wider than said",
                Grouped(uncertain),
                grouped(*keys)
            )?;
        }
        if let Some(assuming) = self.assuming.as_ref().filter(|assuming| !assuming.is_empty()) {
            writeln!(f, "assuming  {}", assuming.join(", "))?;
        }
        let UpdatesReport { applied, per_s, rebuilds } = self.updates;
        writeln!(
            f,
            "updates   {} applied, {per_s:.0} a second, {}",
            Grouped(applied),
            counted_u64(rebuilds, "rebuild")
        )?;
        if let Some(source) = &self.followed {
            writeln!(f, "followed  {source}")?;
            source.peers().try_for_each(|peer| writeln!(f, "peer      {peer}"))?;
        }
        if let [v4, v6] = &*self.families {
            writeln!(
                f,
                "families  {} of IPv4, {} of IPv6",
                counted(v4.keys, "key"),
                counted(v6.keys, "key")
            )?;
        }
        if let Some(others @ 1..) = self.other_family {
            writeln!(f, "others    {} of the trace are of the other family", counted_u64(others, "address"))?;
        }
        if let Some(Lengths { sum, mean }) = self.lengths {
            writeln!(f, "lengths   {mean:.1} bytes matched on average, {} in all", Grouped(sum))?;
        }
        write!(f, "checksum  {}", self.checksum)
    }
}

/// A rate in millions of lookups a second, in words.
struct Rate(f64);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            low if low < 0.1 => write!(f, "{:.0} lookups/s", low * 1e6),
            rate => write!(f, "{rate:.1} M lookups/s"),
        }
    }
}

/// Where lookups ran, in words.
struct Place<'a> {
    device: &'a str,
    gpu: Option<&'a GpuReport>,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(GpuReport { name, devices, share, lost, .. }) = self.gpu else {
            return f.write_str(self.device);
        };
        let times = if *devices > 1 { format!("{devices} × ") } else { String::new() };
        write!(f, "{} ({times}{name}, {:.1} % of the lookups", self.device, share * 100.0)?;
        match lost {
            None => f.write_str(")"),
            Some(why) => write!(f, ", then lost: {why})"),
        }
    }
}
