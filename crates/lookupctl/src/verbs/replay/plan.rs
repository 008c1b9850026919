//! [`Plan`]: how a trace is driven, by one team of threads or by two.
//!
//! ```text
//! threads   0 1 2 3 4 5 6 7 │ 8 9 10 11 12 13 14
//!           feed a GPU      │ look up on the CPU        beside: batches of a size of their own, and their
//!           large batches   │ small batches             part of the keys where these are offered at a rate
//! ```

use std::fmt;
use std::time::Duration;

use crate::device::On;
use crate::number::grouped;

/// A plan: how much of a trace to drive, on which devices and how many threads, for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verbs) struct Plan {
    /// Keys of the trace, at least one.
    pub(in crate::verbs) len: usize,
    /// Keys of a batch, at least 1.
    pub(in crate::verbs) batch: usize,
    /// Lookup threads, at least 1.
    pub(in crate::verbs) threads: usize,
    /// Batches of a thread that are under way at once, where a GPU may look up; at least 1.
    pub(in crate::verbs) in_flight: usize,
    /// The only device that looks up. Without it each batch goes where it is answered sooner.
    pub(in crate::verbs) only: Option<On>,
    /// More threads, which look up on the CPU whatever the others do.
    pub(in crate::verbs) beside: Option<Beside>,
    /// How long the trace is repeated.
    pub(in crate::verbs) time: Duration,
}

/// Threads that look up on the CPU beside those that feed a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verbs) struct Beside {
    /// Threads, at least 1.
    pub(in crate::verbs) threads: usize,
    /// Keys of a batch, at least 1.
    pub(in crate::verbs) batch: usize,
    /// Their part of the keys where these are offered at a rate, of a thousand: 1 to 999.
    pub(in crate::verbs) permille: u32,
}

impl Plan {
    /// The plan of each team, as if it were alone, with its part of the keys.
    pub(in crate::verbs) fn teams(&self) -> impl Iterator<Item = (Self, f64)> + use<> {
        let feeding = Self { beside: None, ..*self };
        let beside = self.beside.map(|Beside { threads, batch, permille }| {
            let plan = Self { threads, batch, in_flight: 1, only: Some(On::Cpu), ..feeding };
            (plan, f64::from(permille) / 1000.0)
        });
        let rest = beside.map_or(1.0, |(_, part)| 1.0 - part);
        std::iter::once((feeding, rest)).chain(beside)
    }

    /// Threads of all teams.
    pub(in crate::verbs) fn all_threads(&self) -> usize {
        self.teams().map(|(team, _)| team.threads).sum()
    }
}

/// Plans in which some threads feed a GPU and the others look up on the CPU, made of plans for either alone
/// that were tried, the best first. None where one of the two was not tried, or where there is one thread.
pub(super) fn mixed(tried: &[(Plan, f64)]) -> Vec<Plan> {
    let of = |on| tried.iter().filter(move |(plan, _)| plan.only == Some(on) && plan.beside.is_none());
    let (Some((cpu, cpu_rate)), Some(best)) = (of(On::Cpu).next(), of(On::Gpu).next()) else {
        return Vec::new();
    };
    let most = of(On::Gpu).map(|(plan, _)| plan.threads).max().unwrap_or(1);
    let mut counts: Vec<_> =
        [most / 4, most / 2, most * 3 / 4].into_iter().filter(|&count| count > 0).collect();
    counts.dedup();
    let mix = |threads: usize| {
        let (gpu, rate) = *of(On::Gpu).find(|(plan, _)| plan.threads == threads).unwrap_or(best);
        let beside = most - threads;
        #[allow(clippy::cast_precision_loss)] // a few threads
        let part = |threads: usize, all: usize| threads.min(all) as f64 / all as f64;
        let (gpu_rate, cpu_rate) = (rate * part(threads, gpu.threads), cpu_rate * part(beside, cpu.threads));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped
        let permille = (1000.0 * cpu_rate / (cpu_rate + gpu_rate)).clamp(1.0, 999.0) as u32;
        Plan { threads, beside: Some(Beside { threads: beside, batch: cpu.batch, permille }), ..gpu }
    };
    counts.into_iter().filter(|&threads| threads < most).map(mix).collect()
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { batch, threads, in_flight, only, beside, .. } = *self;
        let device = match only {
            None => "GPU and CPU",
            Some(On::Gpu) => "GPU",
            Some(On::Cpu) => "CPU",
        };
        write!(f, "{device}, batches of {}, threads {threads}", grouped(batch))?;
        if only != Some(On::Cpu) {
            write!(f, ", {in_flight} in flight")?;
        }
        match beside {
            None => Ok(()),
            Some(Beside { threads, batch, .. }) => {
                write!(f, "; beside it CPU, batches of {}, threads {threads}", grouped(batch))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(only: On, threads: usize, batch: usize) -> Plan {
        let time = Duration::from_secs(1);
        Plan { len: 1000, batch, threads, in_flight: 1, only: Some(only), beside: None, time }
    }

    #[test]
    fn teams_share_the_threads_and_the_keys() {
        let gpu = |threads, rate| (plan(On::Gpu, threads, 300), rate);
        let cpu = (plan(On::Cpu, 16, 100), 1600.0);
        let made = mixed(&[gpu(8, 3200.0), gpu(15, 3000.0), cpu]);
        assert_eq!(made.len(), 3);
        for mixed in &made {
            assert_eq!(mixed.all_threads(), 15, "as many as fed the GPU");
            let beside = mixed.beside.unwrap();
            assert_eq!(beside.batch, 100);
            let teams: Vec<_> = mixed.teams().collect();
            assert!(teams[0].0.only == Some(On::Gpu) && teams[1].0.only == Some(On::Cpu));
            assert!(teams.iter().all(|(team, _)| team.beside.is_none()));
            assert!((teams[0].1 + teams[1].1 - 1.0).abs() < 1e-9);
        }
        // Three eighths of what eight threads fed, and three quarters of what sixteen looked up.
        assert_eq!(made[0].beside.unwrap().permille, 500);
        assert_eq!(
            format!("{}", made[0]),
            "GPU, batches of 300, threads 3, 1 in flight; beside it CPU, batches of 100, threads 12"
        );
    }

    #[test]
    fn one_thread_or_one_device_has_nothing_to_mix() {
        let (gpu, cpu) = ((plan(On::Gpu, 1, 300), 1.0), (plan(On::Cpu, 1, 100), 1.0));
        assert_eq!(mixed(&[gpu, cpu]), []);
        assert_eq!(mixed(&[(plan(On::Gpu, 4, 300), 1.0)]), []);
        assert_eq!(mixed(&[(plan(On::Cpu, 4, 300), 1.0)]), []);
        assert_eq!(mixed(&[]), []);
    }
}
