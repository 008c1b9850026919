//! `--device`: the device that looks up, and its GPUs.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use clap::ValueEnum;
use wirespeed::GpuError;
use wirespeed::gpu::dispatch::{Policy, Use};
use wirespeed::gpu::driver::devices;
use wirespeed::gpu::ip::open_all;
use wirespeed::gpu::runtime::{Fleet, GpuOptions};

/// The device that looks up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Device {
    /// The GPUs or the cores, whichever answer a batch sooner
    Auto,
    /// This machine's cores
    Cpu,
    /// This machine's GPUs
    Gpu,
    /// Like `auto`, but silent if there is no GPU, because the user gave no device.
    #[value(skip)]
    IfAny,
}

/// The device of lookups that run on one device only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum On {
    /// The engines on this machine's cores
    Cpu,
    /// The engines' kernels on this machine's GPUs
    Gpu,
}

impl On {
    /// Starts the GPUs if they look up. Fails if no GPU is usable.
    pub(crate) fn open(self, options: &GpuOptions) -> Result<Option<Fleet>> {
        match self {
            Self::Cpu => Ok(None),
            Self::Gpu => Device::Gpu.open(options),
        }
    }

    /// Starts the GPUs for `lookup`. Refuses `--explain` on GPUs.
    pub(crate) fn open_for_lookup(self, options: &GpuOptions, explain: bool) -> Result<Option<Fleet>> {
        if explain && self == Self::Gpu {
            bail!("--explain shows the steps of a lookup on the CPU only: use --device cpu");
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

    /// Whether there is a GPU to try, before any input is read. Fails if the device is `gpu` and there is
    /// none.
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

    /// Takes the result of a call to a GPU. An error is an error for `gpu`; for other devices it is a
    /// message, and the CPU goes on.
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

    /// The policy by which batches go to GPUs.
    pub(crate) fn by(self, latency_bound: Option<Duration>) -> Use {
        match self {
            Self::Gpu => Use::Always,
            Self::Cpu | Self::Auto | Self::IfAny => Use::ByLoad(Policy { latency_bound }),
        }
    }
}
