//! `--device`: where lookups run, and the GPUs for it.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use clap::ValueEnum;
use wirespeed::GpuError;
use wirespeed::gpu::dispatch::{Policy, Use};
use wirespeed::gpu::driver::devices;
use wirespeed::gpu::ip::open_all;
use wirespeed::gpu::runtime::{Fleet, GpuOptions};

/// Where lookups run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Device {
    /// GPUs where a batch is back sooner from there, else this machine's cores
    Auto,
    /// This machine's cores
    Cpu,
    /// This machine's GPUs
    Gpu,
    /// What `auto` is, without a word where there is no GPU: nobody asked.
    #[value(skip)]
    IfAny,
}

/// The device of lookups that run on one of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum On {
    /// The engines on this machine's cores
    Cpu,
    /// Their kernels on its GPUs
    Gpu,
}

impl On {
    /// Starts the GPUs if they are to look up; an error if none is usable.
    pub(crate) fn open(self, options: &GpuOptions) -> Result<Option<Fleet>> {
        match self {
            Self::Cpu => Ok(None),
            Self::Gpu => Device::Gpu.open(options),
        }
    }

    /// Starts the GPUs for `lookup`, which can't explain what a GPU reads.
    pub(crate) fn open_for_lookup(self, options: &GpuOptions, explain: bool) -> Result<Option<Fleet>> {
        if explain && self == Self::Gpu {
            bail!("--explain tells the steps of a lookup on the CPU: --device cpu");
        }
        self.open(options)
    }

    /// The name in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cpu => Device::Cpu.name(),
            Self::Gpu => Device::Gpu.name(),
        }
    }
}

impl Device {
    /// The name in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Auto | Self::IfAny => "auto",
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
        }
    }

    /// Whether there is a GPU to try, before anything is read. An error where only that would do.
    pub(crate) fn has_gpu(self) -> Result<bool> {
        match self {
            Self::Cpu => Ok(false),
            Self::Auto | Self::Gpu | Self::IfAny => Ok(self.unless_missing(devices())?.is_some()),
        }
    }

    /// Starts the GPUs.
    pub(crate) fn open(self, options: &GpuOptions) -> Result<Option<Fleet>> {
        self.unless_missing(open_all(options))
    }

    /// What came of a GPU. Without it, an error if only that would do; if the CPU will, says so and goes on.
    pub(crate) fn unless_missing<T>(self, got: Result<T, GpuError>) -> Result<Option<T>> {
        match got {
            Ok(got) => Ok(Some(got)),
            Err(why) if self == Self::Gpu => Err(anyhow!("--device gpu: {why}")),
            Err(_) if self == Self::IfAny => Ok(None),
            Err(why) => {
                eprintln!("no usable GPU: {why}; lookups run on the CPU");
                Ok(None)
            }
        }
    }

    /// When GPUs are used.
    pub(crate) fn by(self, latency_bound: Option<Duration>) -> Use {
        match self {
            Self::Gpu => Use::Always,
            Self::Cpu | Self::Auto | Self::IfAny => Use::ByLoad(Policy { latency_bound }),
        }
    }
}
