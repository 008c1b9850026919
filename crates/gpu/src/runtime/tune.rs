//! [`Tuning`]: the measured best numbers of blocks and threads of kernels.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// The result of a sweep on a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// The device's name. The result is valid for this device only.
    pub device: String,
    /// The best launch of each kernel and size.
    pub tuned: Vec<Tuned>,
}

/// The work that a launch has beside it on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Company {
    /// Other batches: the best launch leaves them a part of the device.
    #[default]
    Batches,
    /// No work: the best launch is the fastest. Lookups of keys that are on the device count as such.
    Nothing,
}

/// The best blocks and threads of a kernel for batches of similar size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tuned {
    /// The kernel's module.
    pub module: String,
    /// The kernel's name.
    pub kernel: String,
    /// Bytes of shared memory of a block. For a kernel that takes any number, each number is measured.
    #[serde(default)]
    pub shared: u32,
    /// The work beside it.
    #[serde(default)]
    pub company: Company,
    /// The class: batches of about 2 to the power of this.
    pub class: u32,
    /// Blocks of a launch.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Nanoseconds that the kernel took for 2^`class` keys.
    pub ns: f64,
}

/// The class of a batch: the binary logarithm of its size, rounded down and then up to an even number.
pub(super) const fn class_of(count: usize) -> u32 {
    let log = match count.checked_ilog2() {
        Some(log) => log,
        None => 0,
    };
    let even = log.div_ceil(2) * 2;
    if even < SMALLEST { SMALLEST } else { even }
}

/// The class of the smallest batches.
pub(super) const SMALLEST: u32 = 8;

impl Tuning {
    /// Reads a file that [`save`](Self::save) wrote.
    pub fn load(path: &Path) -> std::io::Result<Self> {
        Ok(serde_json::from_slice(&std::fs::read(path)?)?)
    }

    /// Writes the result to a file.
    pub fn save(&self, path: &Path) -> std::io::Result<()> {
        std::fs::write(path, serde_json::to_vec_pretty(self)?)
    }
}

impl std::fmt::Display for Tuning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.device)?;
        writeln!(
            f,
            "{:<24} {:>8} {:>10} {:>7} {:>8} {:>10} {:>10}",
            "kernel", "beside", "keys", "blocks", "threads", "us", "G keys/s"
        )?;
        for tuned in &self.tuned {
            let Tuned { kernel, company, class, blocks, threads, ns, .. } = tuned;
            let beside = match company {
                Company::Batches => "batches",
                Company::Nothing => "nothing",
            };
            let keys = 1u64 << class;
            #[allow(clippy::cast_precision_loss)] // for people to read
            let rate = keys as f64 / ns;
            writeln!(
                f,
                "{kernel:<24} {beside:>8} {keys:>10} {blocks:>7} {threads:>8} {:>10.2} {rate:>10.2}",
                ns / 1e3
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_all_sizes() {
        let class = |count| class_of(count);
        assert_eq!([class(0), class(1), class(256), class(257), class(511)], [8; 5]);
        assert_eq!([class(512), class(1 << 20), class((1 << 20) + 1), class(1 << 21)], [10, 20, 20, 22]);
    }

    #[test]
    fn a_tuning_is_saved_and_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tuning.json");
        let tuned = Tuned {
            module: "m".into(),
            kernel: "k_k4".into(),
            shared: 0,
            company: Company::Nothing,
            class: 20,
            blocks: 132,
            threads: 1024,
            ns: 2500.5,
        };
        let tuning = Tuning { device: "a GPU".into(), tuned: vec![tuned] };
        tuning.save(&path).unwrap();
        assert_eq!(Tuning::load(&path).unwrap(), tuning);
        assert!(tuning.to_string().contains("k_k4"));
        std::fs::write(&path, "{").unwrap();
        assert!(Tuning::load(&path).is_err());
    }
}
