//! [`Meter`]: packets over a rate are dropped or marked.
//!
//! Each band is a leaky bucket as one number: the time when all that was admitted has drained at the band's
//! rate (the generic cell rate algorithm, ITU-T I.371). Workers change it by compare and swap, so a meter
//! holds for all of them together, and no worker waits.

use std::sync::atomic::{AtomicU64, Ordering};

use super::counts::Counts;
use crate::wire::{Band, MeterMod};

/// The burst of a band that says none: the traffic of this time.
const BURST_NS: u64 = 100_000_000;

/// A meter.
#[derive(Debug)]
pub(crate) struct Meter {
    pub(crate) flags: u16,
    pub(crate) bands: Vec<Band>,
    drained: Vec<AtomicU64>,
    pub(crate) counts: Counts,
    pub(crate) of_band: Vec<Counts>,
    pub(crate) since: u64,
}

/// The decision of a meter about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metered {
    Pass,
    Drop,
    Remark(u8),
}

impl Meter {
    pub(crate) fn new(asked: &MeterMod, now: u64, workers: usize) -> Self {
        Self {
            flags: asked.flags,
            drained: asked.bands.iter().map(|_| AtomicU64::new(0)).collect(),
            counts: Counts::new(workers),
            of_band: asked.bands.iter().map(|_| Counts::new(workers)).collect(),
            bands: asked.bands.clone(),
            since: now,
        }
    }

    /// The meter with other flags and bands. Its packets and bytes and its time go on; bands begin anew.
    pub(crate) fn changed(&self, asked: &MeterMod, workers: usize) -> Self {
        Self { counts: self.counts.clone(), ..Self::new(asked, self.since, workers) }
    }

    /// Meters a packet of so many bytes at a time in nanoseconds. Of the bands whose rate is exceeded the one
    /// with the highest rate decides.
    pub(crate) fn take(&self, worker: usize, bytes: u64, now: u64) -> Metered {
        self.counts.add(worker, 1, bytes);
        let mut over: Option<usize> = None;
        for (at, (band, drained)) in self.bands.iter().zip(&self.drained).enumerate() {
            let rate = u64::from(band.rate).max(1);
            let (cost, unit) = if self.flags & MeterMod::PKTPS != 0 {
                (1_000_000_000 / rate, 1_000_000_000)
            } else {
                (bytes * 8_000_000 / rate, 1_000_000_000)
            };
            let burst = match self.flags & MeterMod::BURST {
                0 => BURST_NS,
                _ => u64::from(band.burst) * unit / rate,
            };
            // The first packet after a pause always passes.
            let admit = |drained: u64| {
                let from = drained.max(now);
                (from - now <= burst.max(cost) - cost).then_some(from + cost)
            };
            let is_over = drained.fetch_update(Ordering::Relaxed, Ordering::Relaxed, admit).is_err();
            if is_over && over.is_none_or(|over| self.bands[over].rate < band.rate) {
                over = Some(at);
            }
        }
        let Some(at) = over else { return Metered::Pass };
        self.of_band[at].add(worker, 1, bytes);
        self.bands[at].remark.map_or(Metered::Drop, Metered::Remark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Command;

    #[test]
    fn a_meter_lets_its_rate_through() {
        for (flags, rate) in [(MeterMod::PKTPS, 1000), (MeterMod::KBPS, 8000)] {
            let bands = vec![Band { rate, burst: 0, remark: None }];
            let meter = Meter::new(&MeterMod { command: Command::Add, flags, number: 1, bands }, 0, 1);
            // Twice the rate, for ten seconds: packets of 1,000 bytes, 2,000 a second.
            let passed =
                (0..20_000_u64).filter(|n| meter.take(0, 1000, n * 500_000) == Metered::Pass).count();
            assert!((10_000..=10_200).contains(&passed), "{passed} at {rate}");
            assert_eq!(meter.counts.sum().packets, 20_000);
            assert_eq!(meter.of_band[0].sum().packets, 20_000 - passed as u64);
        }
    }
}
