//! How a trace is driven: the options that all replays have in common.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};
use wirespeed::gpu::classify::GROUP;
use wirespeed::gpu::runtime::{self, GpuOptions, SlotSize, Way};

use super::feed::Pace;
use super::plan::Plan;
use super::{bound, choose};
use crate::device::{Device, On};
use crate::number::{grouped, parse_count, parse_positive};
use crate::threads::{self, all_cores};

/// Keys that the CPU looks up at a time.
const ON_CPU: usize = 1 << 12;

/// How a trace is driven.
#[derive(Debug, Args)]
pub(in crate::verbs) struct DriveArguments {
    /// Updates to apply meanwhile: a file, or synth:N for N that are made
    #[arg(long, value_name = "FILE|synth:N")]
    updates: Option<OsString>,

    /// Updates a second, or max: these are repeated until the time is up. By default each is made once,
    /// spread over the time
    #[arg(long, value_name = "N", value_parser = parse_rate)]
    rate: Option<Pace>,

    /// The device of lookups. The default is auto, in silence where there is no GPU and no option is for one
    #[arg(long)]
    device: Option<Device>,

    /// Batches of each thread that are under way at once, on the way to a GPU and back. By default the best
    /// number that is found by trying
    #[arg(long, value_name = "N", value_parser = threads::parser())]
    in_flight: Option<usize>,

    /// The way of keys to a GPU, and of results back. By default the fastest way for the size of a batch, as
    /// measured
    #[arg(long)]
    transfer: Option<Transfer>,

    /// Say on stderr how fast each transfer was, and what each choice of devices, batch size and batches in
    /// flight gave that was tried
    #[arg(long)]
    pub(in crate::verbs) explain: bool,

    /// Find and hold the highest rate at which 99 of 100 batches are back this long after they were due:
    /// 100us, 2ms, 1s
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(in crate::verbs) latency_bound: Option<Duration>,

    /// Lookup threads. The default is one a core, less one that updates take and one that drives a GPU
    #[arg(long, value_name = "N", value_parser = threads::parser())]
    threads: Option<usize>,

    /// Keys looked up at a time. The default is 4096 on the CPU, and the best size that is found by trying
    /// where a GPU may look up or a bound on latency is given
    #[arg(long, value_name = "N", value_parser = parse_positive)]
    batch: Option<usize>,

    /// Seconds that the trace is repeated, or that the rate that was found is held
    #[arg(long, value_name = "S", default_value = "3", value_parser = parse_seconds)]
    seconds: Duration,

    /// One JSON object
    #[arg(long)]
    pub(in crate::verbs) json: bool,
}

/// A transfer to name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Transfer {
    /// Keys and results are copied: three commands a batch
    Copies,
    /// The kernel reads keys and writes results over the bus: one command a batch
    Mapped,
    /// The copies and the kernel, recorded once and replayed as one command
    Graphs,
}

impl Transfer {
    const fn always(self) -> runtime::Transfer {
        runtime::Transfer::Always(match self {
            Self::Copies => Way::Copies,
            Self::Mapped => Way::Mapped,
            Self::Graphs => Way::Graphs,
        })
    }
}

/// Where updates come from.
pub(in crate::verbs) enum Updates<'a> {
    /// Read.
    File(&'a OsStr),
    /// Made updates, so many.
    Made(usize),
}

impl DriveArguments {
    /// Refuses options that contradict each other.
    pub(in crate::verbs) fn check(&self) -> Result<()> {
        // The parser would not ask for --updates beside an option that excludes them.
        if self.rate.is_some() && self.updates.is_none() {
            bail!("--rate is for --updates, and there are none");
        }
        if self.latency_bound.is_some() && self.updates.is_some() && self.rate.is_none() {
            bail!("--latency-bound with --updates needs their --rate: they go in all through the search");
        }
        if let (Some(option), Device::Cpu) = (self.gpu_option(), self.device()) {
            bail!("{option} is for a GPU: it means nothing with --device cpu");
        }
        Ok(())
    }

    /// Where lookups run. Who says how a GPU is to be used learns that there is none.
    pub(in crate::verbs) fn device(&self) -> Device {
        let usual = if self.gpu_option().is_some() { Device::Auto } else { Device::IfAny };
        self.device.unwrap_or(usual)
    }

    /// An option that only a GPU heeds.
    pub(in crate::verbs) fn gpu_option(&self) -> Option<&'static str> {
        let transfer = self.transfer.map(|_| "--transfer");
        let explain = self.explain.then_some("--explain");
        transfer.or(self.in_flight.map(|_| "--in-flight")).or(explain)
    }

    /// The file of updates that is asked for.
    pub(in crate::verbs) fn updates_file(&self) -> Option<&OsStr> {
        self.updates.as_deref()
    }

    /// The updates that are asked for.
    pub(in crate::verbs) fn updates(&self) -> Result<Option<Updates<'_>>> {
        let Some(updates) = &self.updates else { return Ok(None) };
        let Some(count) = updates.to_str().and_then(|text| text.strip_prefix("synth:")) else {
            return Ok(Some(Updates::File(updates)));
        };
        let count = parse_positive(count).map_err(|error| anyhow!("--updates synth:{count}: {error}"))?;
        Ok(Some(Updates::Made(count)))
    }

    /// How fast they go in.
    pub(in crate::verbs) fn pace(&self) -> Pace {
        self.rate.unwrap_or(Pace::Over(self.seconds.as_secs_f64()))
    }

    /// What may be done with a trace of so many keys. The best is found by trying.
    pub(in crate::verbs) fn plans(&self, len: usize, has_gpu: bool) -> Vec<Plan> {
        let is_bound = self.latency_bound.is_some();
        let device = if has_gpu { self.device() } else { Device::Cpu };
        // A plan that the CPU alone carries out has nobody to drive a GPU.
        let mut plans = Vec::new();
        if device != Device::Gpu {
            let sizes = match is_bound {
                true => self.sizes(&bound::ON_CPU, len),
                false => vec![self.batch.unwrap_or(ON_CPU)],
            };
            let counts = if is_bound { self.thread_counts(false) } else { vec![self.threads(false)] };
            let only = Some(On::Cpu);
            let all = counts.iter().flat_map(|&threads| sizes.iter().map(move |&batch| (threads, batch)));
            plans.extend(all.map(|(threads, batch)| Plan {
                in_flight: 1,
                only,
                ..self.plan(len, batch, threads)
            }));
        }
        if device != Device::Cpu {
            let sizes = self.sizes(if is_bound { &bound::ON_GPU[..] } else { &choose::SIZES }, len);
            let counts = if is_bound { self.thread_counts(true) } else { vec![self.threads(true)] };
            let modes = if device == Device::Gpu { &[Some(On::Gpu)][..] } else { &[Some(On::Gpu), None] };
            for only in modes {
                for &threads in &counts {
                    for &batch in &sizes {
                        for in_flight in self.in_flights() {
                            plans.push(Plan { in_flight, only: *only, ..self.plan(len, batch, threads) });
                        }
                    }
                }
            }
        }
        plans
    }

    fn plan(&self, len: usize, batch: usize, threads: usize) -> Plan {
        Plan { len, batch, threads, in_flight: 1, only: None, beside: None, time: self.seconds }
    }

    /// Numbers of batches under way to try on a GPU.
    fn in_flights(&self) -> Vec<usize> {
        match (self.in_flight, self.latency_bound) {
            (Some(in_flight), _) => vec![in_flight],
            (None, Some(_)) => vec![bound::IN_FLIGHT],
            (None, None) => choose::IN_FLIGHT.to_vec(),
        }
    }

    /// Takes plans by which no thread has more batches under way than `room` says for batches of so many
    /// keys: it would keep all slots, and wait for more. Fails if the user asks for more.
    pub(in crate::verbs) fn fitting(
        &self,
        mut plans: Vec<Plan>,
        room: impl Fn(usize) -> usize,
    ) -> Result<Vec<Plan>> {
        for plan in plans.iter_mut().filter(|plan| plan.only != Some(On::Cpu)) {
            let Plan { batch, in_flight, .. } = *plan;
            let there = room(batch.min(plan.len));
            plan.in_flight = in_flight.min(there).max(1);
            if self.in_flight.is_some() && plan.in_flight < in_flight {
                bail!(
                    "--in-flight {in_flight}: GPUs have room for {} batches of {} keys under way",
                    grouped(there),
                    grouped(batch)
                );
            }
        }
        let mut seen = Vec::new();
        plans.retain(|plan| {
            !seen.contains(plan) && {
                seen.push(*plan);
                true
            }
        });
        Ok(plans)
    }

    /// A core that lookups take from who writes, or from the thread that drives a GPU, shows as milliseconds
    /// of latency.
    pub(in crate::verbs) fn threads(&self, has_gpu: bool) -> usize {
        let others = usize::from(self.updates.is_some()) + usize::from(has_gpu);
        self.threads.unwrap_or_else(|| all_cores().saturating_sub(others).max(1))
    }

    /// Sizes of batches to try.
    fn sizes(&self, sizes: &[usize], len: usize) -> Vec<usize> {
        match self.batch {
            Some(batch) => vec![batch],
            // The last one may hold the whole trace.
            None => sizes.iter().copied().filter(|&size| size < 2 * len.max(sizes[0])).collect(),
        }
    }

    /// Numbers of threads to try for a bound on latency, the most last.
    fn thread_counts(&self, has_gpu: bool) -> Vec<usize> {
        let most = self.threads(has_gpu);
        if self.threads.is_some() {
            return vec![most];
        }
        // On the CPU every core adds, except one that other programs need.
        let mut counts = match has_gpu {
            true => vec![most.div_ceil(4), most.div_ceil(2), most],
            false => vec![most.saturating_sub(1).max(1), most],
        };
        counts.dedup();
        counts
    }

    /// What GPUs are to be started with, where the trace has so many keys of so many bytes, with so many of
    /// results: slots for all that may be under way.
    pub(in crate::verbs) fn gpu_options(
        &self,
        len: usize,
        key_bytes: usize,
        result_bytes: usize,
    ) -> GpuOptions {
        /// Bytes of all slots of a size together, about, at most.
        const MOST: usize = 1 << 28;
        /// Slots of a size at least, if so many batches may be under way.
        const FEWEST: usize = 8;
        let plans = self.plans(len, true);
        let mut sizes: Vec<_> = plans.iter().map(|plan| plan.batch).collect();
        sizes.sort_unstable();
        // Slots for small batches are for all small ones; a few keys alone would leave no room between their
        // planes, and the last of the groups that tuples lie in is a whole one.
        let keys = sizes.into_iter().map(|size| size.min(len).max(1 << 12).next_multiple_of(GROUP));
        let mut keys: Vec<_> = keys.collect();
        keys.dedup();
        let under_way = plans.iter().map(|plan| plan.threads * plan.in_flight).max().unwrap_or(1);
        let most = MOST / (key_bytes + result_bytes);
        // A batch that no slot holds goes in parts. Few slots would leave threads waiting.
        let part = (most / under_way.min(FEWEST)).max(1 << 12).next_multiple_of(GROUP);
        let mut keys: Vec<_> = keys.into_iter().map(|keys| keys.min(part)).collect();
        keys.dedup();
        let slots = keys.into_iter().map(|keys| SlotSize { slots: under_way.min(most / keys).max(2), keys });
        let transfer = self.transfer.map_or(runtime::Transfer::Auto, Transfer::always);
        GpuOptions { slots: slots.collect(), key_bytes, result_bytes, transfer, ..GpuOptions::default() }
    }
}

pub(in crate::verbs) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if !(0.001..=1e6).contains(&seconds) {
        return Err("from 0.001 to 1000000 seconds".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

pub(in crate::verbs) fn parse_time(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 3] = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let wrong = || "a time is a number and a unit, such as 100us, 2ms or 1s".to_owned();
    let (number, unit) =
        UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit))).ok_or_else(wrong)?;
    let seconds = number.parse::<f64>().map_err(|_| wrong())? * unit;
    if !(1e-6..=60.0).contains(&seconds) {
        return Err("from 1us to 60s".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

fn parse_rate(text: &str) -> Result<Pace, String> {
    if text == "max" {
        return Ok(Pace::Flat);
    }
    match parse_count(text)? {
        0 => Err("at least 1 a second; leave --updates out for none".to_owned()),
        #[allow(clippy::cast_precision_loss)] // a rate
        rate => Ok(Pace::Rate(rate as f64)),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use wirespeed::gpu::classify::bytes_of;
    use wirespeed_classify::{Ipv4Tuple, Tuple};

    use super::*;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        drive: DriveArguments,
    }

    /// The devices, batch size, threads and batches under way of each plan.
    fn plans(options: &[&str], has_gpu: bool) -> Vec<(Option<On>, usize, usize, usize)> {
        let drive = Alone::parse_from([&["replay"], options].concat()).drive;
        let plans = drive.plans(1 << 22, has_gpu);
        plans.iter().map(|plan| (plan.only, plan.batch, plan.threads, plan.in_flight)).collect()
    }

    #[test]
    fn options_of_a_gpu_are_refused_without_one_and_not_passed_over() {
        let drive = |options: &[&str]| Alone::parse_from([&["replay"], options].concat()).drive;
        for option in [&["--transfer", "mapped"][..], &["--in-flight", "2"], &["--explain"]] {
            assert_eq!(drive(option).device(), Device::Auto, "which says where there is none");
            let refused = drive(&[option, &["--device", "cpu"]].concat()).check().unwrap_err();
            assert!(refused.to_string().starts_with(option[0]), "{refused}");
            drive(&[option, &["--device", "gpu"]].concat()).check().unwrap();
        }
        assert_eq!(drive(&[]).device(), Device::IfAny);
    }

    #[test]
    fn what_the_user_says_is_not_tried() {
        let cpu = Some(On::Cpu);
        assert_eq!(plans(&["--threads", "3"], false), [(cpu, 4096, 3, 1)]);
        assert_eq!(plans(&["--device", "cpu", "--batch", "7", "--threads", "2"], false), [(cpu, 7, 2, 1)]);
        let gpu = ["--device", "gpu", "--batch", "7", "--in-flight", "5", "--threads", "2"];
        assert_eq!(plans(&gpu, true), [(Some(On::Gpu), 7, 2, 5)]);
        let both = [(cpu, 7, 2, 1), (Some(On::Gpu), 7, 2, 5), (None, 7, 2, 5)];
        assert_eq!(plans(&["--batch", "7", "--in-flight", "5", "--threads", "2"], true), both);
    }

    #[test]
    fn no_more_batches_are_under_way_than_there_is_room_for() {
        let drive = |options: &[&str]| Alone::parse_from([&["replay"], options].concat()).drive;
        let fitting = |options: &[&str], room: usize| {
            let drive = drive(options);
            drive.fitting(drive.plans(1 << 22, true), |_| room)
        };
        let asked = ["--device", "gpu", "--batch", "4096", "--in-flight", "1000", "--threads", "2"];
        let refused = fitting(&asked, 999).unwrap_err().to_string();
        assert_eq!(refused, "--in-flight 1000: GPUs have room for 999 batches of 4,096 keys under way");
        assert_eq!(fitting(&asked, 1000).unwrap()[0].in_flight, 1000);
        // One is always under way, and what is tried is not tried twice.
        let one = ["--device", "gpu", "--batch", "4096", "--in-flight", "1", "--threads", "8"];
        assert_eq!(fitting(&one, 2).unwrap()[0].in_flight, 1);
        let open = ["--threads", "4", "--batch", "4096"];
        let tried =
            |room| -> Vec<_> { fitting(&open, room).unwrap().iter().map(|plan| plan.in_flight).collect() };
        assert_eq!(tried(1), [1, 1, 1]);
        assert_eq!(tried(usize::MAX).len(), 1 + 2 * choose::IN_FLIGHT.len());
    }

    #[test]
    fn what_is_left_open_is_tried() {
        let gpu = plans(&["--device", "gpu", "--threads", "1"], true);
        assert_eq!(gpu.len(), choose::SIZES.len() * choose::IN_FLIGHT.len());
        let auto = plans(&["--threads", "1"], true);
        assert_eq!(auto.len(), 1 + 2 * gpu.len());
        assert!(gpu.iter().all(|plan| auto.contains(plan)) && auto.contains(&(Some(On::Cpu), 4096, 1, 1)));
        // For a bound on latency, all that either device may do alone is tried with both.
        let bound = |device| plans(&["--latency-bound", "1ms", "--threads", "4", "--device", device], true);
        let (cpu, gpu, auto) = (bound("cpu"), bound("gpu"), bound("auto"));
        assert!(gpu.iter().all(|plan| auto.contains(plan)));
        assert!(cpu.iter().all(|&(_, batch, threads, _)| auto.contains(&(Some(On::Cpu), batch, threads, 1))));
    }

    #[test]
    fn slots_hold_a_trace_that_ends_within_a_group() {
        let drive = Alone::parse_from(["replay", "--device", "gpu"]).drive;
        for len in [1, 5_001, 166_749] {
            let options = drive.gpu_options(len, Ipv4Tuple::PACKED, size_of::<u32>());
            let needed = options.slot_keys(len, bytes_of::<Ipv4Tuple>(len));
            assert!(options.slots.iter().any(|slot| slot.keys >= needed), "{len}: {:?}", options.slots);
        }
    }
}
