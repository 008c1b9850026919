//! [`Costs`]: where a batch costs the worker less. [`Use`]: whether that is asked.

use wirespeed_gpu::costs::PerKey;

/// Bytes of frames below which the CPU is asked alone: a trip takes longer than these with any cipher.
pub(super) const LEAST: usize = 16 << 10;
/// Batches of a size after which one goes the other way, at the earliest.
const TRIAL: u32 = 128;
/// What such a batch costs more than the others is at most one part in this many of what they cost.
const SPARED: u64 = 50;

/// The packets that go to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Each packet that it has kernels, keys and slots for.
    Always,
    /// Packets of batches that cost the worker less there, as measured.
    ByCost,
}

/// What a byte costs the worker, by the size of its batch; and batches since the last trial.
#[derive(Debug)]
pub(super) struct Costs {
    pub(super) cpu: PerKey,
    pub(super) device: PerKey,
    since: u32,
}

impl Default for Costs {
    fn default() -> Self {
        Self { cpu: PerKey::new(0), device: PerKey::new(0), since: 0 }
    }
}

impl Costs {
    /// Whether a batch goes to the device.
    pub(super) fn suits_device(&mut self, by: Use, bytes: usize) -> bool {
        if by == Use::Always {
            return true;
        }
        if bytes < LEAST {
            return false;
        }
        let (cpu, device) = (self.cpu.of_one(bytes), self.device.of_one(bytes));
        if cpu == 0 || device == 0 {
            // The first batch of a size goes to the CPU, and the next one to the device.
            return cpu != 0;
        }
        self.since += 1;
        let (here, more) = (cpu.min(device), cpu.abs_diff(device));
        let is_paid = here.saturating_mul(self.since.into()) >= more.saturating_mul(SPARED);
        let is_trial = self.since >= TRIAL && is_paid;
        if is_trial {
            self.since = 0;
        }
        (device < cpu) != is_trial
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The number of batches of a hundred that go to the device, if a byte costs this many picoseconds.
    fn share(cpu: u64, device: u64, bytes: usize) -> usize {
        let mut costs = Costs::default();
        let took = |each: u64| Duration::from_nanos(each * bytes as u64 / 1000);
        let mut one = || {
            let is_device = costs.suits_device(Use::ByCost, bytes);
            if is_device {
                costs.device.note(bytes, took(device));
            } else {
                costs.cpu.note(bytes, took(cpu));
            }
            is_device
        };
        (0..200).for_each(|_| _ = one());
        (0..100).filter(|_| one()).count()
    }

    #[test]
    fn batches_go_where_they_cost_less() {
        assert!(share(1000, 300, 1 << 20) >= 98);
        assert!(share(300, 1000, 1 << 20) <= 2);
        // Small ones are not tried.
        assert_eq!(share(1000, 300, LEAST - 1), 0);
        assert!(Costs::default().suits_device(Use::Always, 1));
    }

    #[test]
    fn trials_of_a_device_cost_little_however_slow_it_is() {
        for times in [3, 30, 1000] {
            let (mut costs, bytes, each) = (Costs::default(), 1 << 20, Duration::from_micros(10));
            let mut one = || match costs.suits_device(Use::ByCost, bytes) {
                true => {
                    costs.device.note(bytes, each * times);
                    u64::from(times)
                }
                false => {
                    costs.cpu.note(bytes, each);
                    1
                }
            };
            // The first ones learn.
            (0..10).for_each(|_| _ = one());
            let spent: u64 = (0..200_000).map(|_| one()).sum();
            assert!((200_001..210_000).contains(&spent), "{spent} at {times} times the cost");
        }
    }

    #[test]
    fn costs_that_change_are_seen() {
        let mut costs = Costs::default();
        let bytes = 1 << 20;
        let (slow, fast) = (Duration::from_millis(2), Duration::from_millis(1));
        let mut went = Vec::new();
        for round in 0..20_000 {
            let is_late = round > 5000;
            let is_device = costs.suits_device(Use::ByCost, bytes);
            match is_device {
                true => costs.device.note(bytes, if is_late { fast } else { slow * 4 }),
                false => costs.cpu.note(bytes, slow),
            }
            went.push(is_device);
        }
        let share = |part: &[bool]| part.iter().filter(|&&it| it).count() as f64 / part.len() as f64;
        assert!(share(&went[1000..5000]) < 0.02, "{}", share(&went[1000..5000]));
        assert!(share(&went[18_000..]) > 0.98, "{}", share(&went[18_000..]));
    }
}
