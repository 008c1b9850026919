//! [`Calibration`]: what was measured of a device, and the transfer to choose by it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::options::Way;

/// Copies must have a rate so much higher than mapped memory to be taken when others are under way. One
/// thread measures. When all cores of a host pack keys, copies lose more: 12 G keys/s of a measured 14, where
/// mapped memory made 16.6 of a measured 15 (IPv4, batches of 256 K, H200).
const COPIES_WORTH: f64 = 1.1;

/// The measurements of a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The device.
    pub device: String,
    /// Bytes of the measured keys. For other keys the transfer is chosen by the bytes of a batch.
    pub key_bytes: usize,
    /// The measurements of each transfer and size that there was time for.
    pub measured: Vec<Measured>,
}

/// The measurement of one transfer at one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The transfer.
    pub way: Way,
    /// Keys of a batch.
    pub count: usize,
    /// Median microseconds from submitting a single batch to having its results, with nothing else under way.
    pub lone_us: f64,
    /// Keys a second with as many batches under way as there are slots, up to eight.
    pub rate: f64,
}

impl Calibration {
    /// The best of all transfers by batch size.
    pub fn curve(&self) -> Curve {
        Curve::of(self.measured.iter())
    }

    fn cell(&self, way: Way, count: usize) -> Option<&Measured> {
        self.measured.iter().find(|measured| (measured.way, measured.count) == (way, count))
    }
}

/// The time of a single batch and the rate of many by batch size, in straight lines between the measured
/// sizes. Asking takes a few nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Ascending by size.
    points: Vec<Point>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    count: usize,
    lone_us: f64,
    rate: f64,
}

impl Curve {
    fn of<'m>(measured: impl Iterator<Item = &'m Measured>) -> Self {
        let mut points: Vec<Point> = Vec::new();
        for &Measured { count, lone_us, rate, .. } in measured {
            match points.iter_mut().find(|point| point.count == count) {
                None => points.push(Point { count, lone_us, rate }),
                Some(point) => {
                    (point.lone_us, point.rate) = (point.lone_us.min(lone_us), point.rate.max(rate));
                }
            }
        }
        points.sort_unstable_by_key(|point| point.count);
        Self { points }
    }

    /// The expected time of a batch of `keys` keys: the time of a single batch, and of the keys under way
    /// before it. Those are taken to be in batches of the same size: a device does small batches at a lower
    /// rate.
    #[allow(clippy::cast_precision_loss)] // an estimate
    pub fn estimate(&self, keys: usize, before: u64) -> Duration {
        let Point { lone_us, rate, .. } = self.at(keys);
        let waits = if rate > 0.0 { before as f64 / rate * 1e6 } else { 0.0 };
        Duration::try_from_secs_f64((lone_us + waits) / 1e6).unwrap_or(Duration::MAX)
    }

    /// Keys a second in batches of `keys` keys. 0 if nothing was measured.
    pub fn rate(&self, keys: usize) -> f64 {
        self.at(keys).rate
    }

    #[allow(clippy::cast_precision_loss)] // an estimate
    fn at(&self, keys: usize) -> Point {
        // Nothing was measured, so the time counts as infinite.
        let none = Point { count: keys, lone_us: 1e12, rate: 0.0 };
        let above = self.points.partition_point(|point| point.count <= keys);
        match (above.checked_sub(1).map(|below| self.points[below]), self.points.get(above).copied()) {
            (Some(low), Some(high)) => {
                let share = (keys - low.count) as f64 / (high.count - low.count) as f64;
                let between = |low: f64, high: f64| low + (high - low) * share;
                Point {
                    count: keys,
                    lone_us: between(low.lone_us, high.lone_us),
                    rate: between(low.rate, high.rate),
                }
            }
            // A batch that is larger than all takes longer in proportion.
            (Some(last), None) => Point { lone_us: last.lone_us * keys as f64 / last.count as f64, ..last },
            (None, Some(first)) => first,
            (None, None) => none,
        }
    }
}

/// The curve of each transfer, from which the best one for a batch is chosen.
#[derive(Clone, Debug, Default)]
pub(super) struct Choice {
    key_bytes: usize,
    curves: [Curve; Way::ALL.len()],
}

impl Choice {
    pub(super) fn of(calibration: &Calibration) -> Self {
        let curve = |way| Curve::of(calibration.measured.iter().filter(|measured| measured.way == way));
        Self { key_bytes: calibration.key_bytes, curves: Way::ALL.map(curve) }
    }

    /// The best transfer for a batch with keys of `bytes` bytes in all: the fastest for a single batch, or
    /// the highest rate if others are under way.
    pub(super) fn best(&self, bytes: usize, is_busy: bool) -> Way {
        let keys = bytes / self.key_bytes.max(1);
        let worth = |way| if way == Way::Mapped { 1.0 } else { COPIES_WORTH };
        let cost = |way: Way, curve: &Curve| {
            let Point { lone_us, rate, .. } = curve.at(keys);
            if is_busy { -rate / worth(way) } else { lone_us }
        };
        Way::ALL
            .into_iter()
            .zip(&self.curves)
            .map(|(way, curve)| (way, cost(way, curve)))
            .min_by(|(_, a), (_, b)| a.total_cmp(b))
            .map_or(Way::Copies, |(way, _)| way)
    }
}

impl std::fmt::Display for Calibration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "{}, keys of {} bytes: microseconds of a lone batch, M keys/s of many",
            self.device, self.key_bytes
        )?;
        write!(f, "{:>10}", "keys")?;
        for way in Way::ALL {
            write!(f, " {:>22}", way.name())?;
        }
        writeln!(f)?;
        let mut counts: Vec<usize> = self.measured.iter().map(|measured| measured.count).collect();
        counts.sort_unstable();
        counts.dedup();
        for count in counts {
            write!(f, "{count:>10}")?;
            for way in Way::ALL {
                match self.cell(way, count) {
                    Some(cell) => write!(f, " {:>10.1} {:>11.1}", cell.lone_us, cell.rate / 1e6)?,
                    None => write!(f, " {:>22}", "-")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_that_of_the_size_by_what_counts() {
        let cell = |way, count, lone_us, rate| Measured { way, count, lone_us, rate };
        let calibration = Calibration {
            device: "a GPU".into(),
            key_bytes: 4,
            measured: vec![
                cell(Way::Copies, 256, 18.0, 1e7),
                cell(Way::Mapped, 256, 9.0, 2e7),
                cell(Way::Graphs, 256, 12.0, 3e7),
                cell(Way::Copies, 1 << 20, 170.0, 9e9),
                cell(Way::Mapped, 1 << 20, 140.0, 8e9),
            ],
        };
        let choice = Choice::of(&calibration);
        assert_eq!(choice.best(4 * 300, false), Way::Mapped);
        assert_eq!(choice.best(4 * 300, true), Way::Graphs);
        assert_eq!(choice.best(4 << 20, false), Way::Mapped);
        assert_eq!(choice.best(4 << 22, true), Way::Copies);
        assert_eq!(Choice::default().best(0, true), Way::Copies);
        assert!(calibration.to_string().contains("140.0"));
    }

    /// Rates as an H200 had them, with a kernel whose writes were slow over the bus.
    #[test]
    fn between_sizes_each_transfer_counts_by_its_own_rates() {
        let cell = |way, count, rate| Measured { way, count, lone_us: 1.0, rate };
        let calibration = Calibration {
            device: "a GPU".into(),
            key_bytes: 3,
            measured: vec![
                cell(Way::Copies, 1 << 16, 4.3e9),
                cell(Way::Mapped, 1 << 16, 7.4e9),
                cell(Way::Copies, 1 << 18, 10.9e9),
                cell(Way::Mapped, 1 << 18, 2.3e9),
            ],
        };
        let choice = Choice::of(&calibration);
        assert_eq!(choice.best(3 * 70_000, true), Way::Mapped);
        assert_eq!(choice.best(3 << 17, true), Way::Copies);
    }

    #[test]
    fn an_estimate_lies_between_the_measured_sizes() {
        let cell = |way, count, lone_us, rate| Measured { way, count, lone_us, rate };
        let calibration = Calibration {
            device: "a GPU".into(),
            key_bytes: 4,
            measured: vec![
                cell(Way::Copies, 1000, 20.0, 1e8),
                cell(Way::Mapped, 1000, 10.0, 2e8),
                cell(Way::Copies, 3000, 30.0, 6e8),
            ],
        };
        let curve = calibration.curve();
        let us = |keys, before| curve.estimate(keys, before).as_secs_f64() * 1e6;
        assert!((curve.rate(2000) - 4e8).abs() < 1.0, "between 2e8 and 6e8");
        assert!((us(2000, 0) - 20.0).abs() < 0.01, "between 10 and 30");
        assert!((us(2000, 4000) - 30.0).abs() < 0.01, "4,000 keys at 4e8 a second come first");
        assert!((us(10, 2000) - 20.0).abs() < 0.01, "below the least size: its time and rate");
        assert!((us(6000, 6000) - 70.0).abs() < 0.01, "over the largest size: its time twice, its rate");
        let none = Curve::default();
        assert!(none.rate(5) == 0.0 && none.estimate(5, 5) > Duration::from_secs(1000));
    }
}
