//! How a trace is driven: the options that all replays have in common.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use wirespeed::gpu::classify::GROUP;
use wirespeed::gpu::runtime::{GpuOptions, SlotSize};

use super::bound;
use super::drive::Plan;
use super::feed::Pace;
use crate::device::Device;
use crate::number::{parse_count, parse_positive};
use crate::threads::{self, all_cores};

/// How a trace is driven.
#[derive(Debug, Args)]
pub(in crate::verbs) struct DriveArguments {
    /// Updates to apply meanwhile: a file, or synth:N for N that are made
    #[arg(long, value_name = "FILE|synth:N")]
    updates: Option<OsString>,

    /// Updates a second, or max: these are repeated until the time is up. By default each is made once,
    /// spread over the time
    #[arg(long, value_name = "N", requires = "updates", value_parser = parse_rate)]
    rate: Option<Pace>,

    /// Where lookups run. The default is auto, in silence where there is no GPU
    #[arg(long)]
    device: Option<Device>,

    /// Batches of each thread that are under way at once, on the way to a GPU and back
    #[arg(long, value_name = "N", default_value = "4", value_parser = threads::parser())]
    pub(in crate::verbs) in_flight: usize,

    /// Find and hold the highest rate at which 99 of 100 batches are back this long after they were due:
    /// 100us, 2ms, 1s
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(in crate::verbs) latency_bound: Option<Duration>,

    /// Lookup threads. The default is one a core, less one that updates take and one that drives a GPU
    #[arg(long, value_name = "N", value_parser = threads::parser())]
    threads: Option<usize>,

    /// Keys looked up at a time. The default is 4096 on the CPU, 1048576 on a GPU, 65536 where it may be
    /// either, and what is best for a bound on latency
    #[arg(long, value_name = "N", value_parser = parse_positive)]
    batch: Option<usize>,

    /// How long the trace is repeated, or how long the rate that was found is held
    #[arg(long, value_name = "S", default_value = "3", value_parser = parse_seconds)]
    seconds: Duration,

    /// One JSON object
    #[arg(long)]
    pub(in crate::verbs) json: bool,
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
        if self.latency_bound.is_some() && self.updates.is_some() && self.rate.is_none() {
            bail!("--latency-bound with --updates needs their --rate: they go in all through the search");
        }
        Ok(())
    }

    /// Where lookups run.
    pub(in crate::verbs) fn device(&self) -> Device {
        self.device.unwrap_or(Device::IfAny)
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

    /// What to do with a trace of so many keys.
    pub(in crate::verbs) fn plan(&self, len: usize, has_gpu: bool) -> Plan {
        Plan { len, batch: self.batch(has_gpu), threads: self.threads(has_gpu), time: self.seconds }
    }

    /// A core that lookups take from who writes, or from the thread that drives a GPU, shows as milliseconds
    /// of latency.
    pub(in crate::verbs) fn threads(&self, has_gpu: bool) -> usize {
        let others = usize::from(self.updates.is_some()) + usize::from(has_gpu);
        self.threads.unwrap_or_else(|| all_cores().saturating_sub(others).max(1))
    }

    /// Keys looked up at a time.
    fn batch(&self, has_gpu: bool) -> usize {
        self.batch.unwrap_or(match self.device() {
            Device::Gpu => 1 << 20,
            Device::Auto | Device::IfAny if has_gpu => 1 << 16,
            Device::Auto | Device::IfAny | Device::Cpu => 1 << 12,
        })
    }

    /// Sizes of batches to try for a bound on latency.
    pub(in crate::verbs) fn sizes(&self, len: usize) -> Vec<usize> {
        match self.batch {
            Some(batch) => vec![batch],
            None => bound::SIZES.into_iter().filter(|&size| size <= len.max(bound::SIZES[0])).collect(),
        }
    }

    /// Numbers of threads to try for a bound on latency, the most last.
    pub(in crate::verbs) fn thread_counts(&self, has_gpu: bool) -> Vec<usize> {
        let most = self.threads(has_gpu);
        if self.threads.is_some() || !has_gpu {
            return vec![most];
        }
        let mut counts = vec![most.div_ceil(4), most.div_ceil(2), most];
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
        const MOST: usize = 1 << 30;
        let sizes = match self.latency_bound {
            None => vec![self.batch(true)],
            Some(_) => self.sizes(len),
        };
        // Slots for small batches are for all small ones; a few keys alone would leave no room between their
        // planes, and the last of the groups that tuples lie in is a whole one.
        let keys = sizes.into_iter().map(|size| size.min(len).max(1 << 12).next_multiple_of(GROUP));
        let mut keys: Vec<_> = keys.collect();
        keys.dedup();
        let under_way = self.threads(true) * self.in_flight;
        let most = MOST / (key_bytes + result_bytes);
        let slots = keys.into_iter().map(|keys| SlotSize { slots: under_way.min(most / keys).max(2), keys });
        GpuOptions { slots: slots.collect(), key_bytes, result_bytes, ..GpuOptions::default() }
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if !(0.001..=1e6).contains(&seconds) {
        return Err("from 0.001 to 1000000 seconds".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

fn parse_time(text: &str) -> Result<Duration, String> {
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
