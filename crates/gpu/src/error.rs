//! [`GpuError`]: why a GPU isn't used, each reason with what to do about it.

use wirespeed_image::device::Unsupported;

/// Why something couldn't be done on a GPU.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// There is no NVIDIA driver on this machine.
    #[error(
        "no NVIDIA driver: libcuda can't be opened; install the driver, or give the container access to it"
    )]
    NoDriver,
    /// The driver is there and can't be started.
    #[error("the NVIDIA driver can't be started: {0}")]
    DriverFailed(String),
    /// The driver sees no GPU.
    #[error("the NVIDIA driver sees no GPU; is one plugged in, and is CUDA_VISIBLE_DEVICES set to hide it?")]
    NoDevice,
    /// There is no device of that number.
    #[error("no GPU {asked}: there are {there}, numbered from 0")]
    NoSuchDevice {
        /// The number asked for.
        asked: usize,
        /// How many there are.
        there: usize,
    },
    /// The driver is older than the kernels' PTX.
    #[error(
        "the NVIDIA driver is too old for the kernels: it has CUDA {}.{}, they need CUDA {}.{} (driver {needs_release} or newer)",
        found.0, found.1, needed.0, needed.1
    )]
    DriverTooOld {
        /// The CUDA version of the driver.
        found: (u32, u32),
        /// The CUDA version that the PTX needs.
        needed: (u32, u32),
        /// The first driver release that has it.
        needs_release: u32,
    },
    /// The GPU is older than the kernels' PTX.
    #[error("{name} is too old for the kernels: compute capability {}.{}, they need {}.{}", found.0, found.1, needed.0, needed.1)]
    DeviceTooOld {
        /// The GPU.
        name: String,
        /// Its compute capability.
        found: (u32, u32),
        /// The least that will do.
        needed: (u32, u32),
    },
    /// The driver refused a module.
    #[error("the driver can't load the kernels of {module}: {why}\n{log}")]
    Module {
        /// The module.
        module: String,
        /// The driver's error.
        why: String,
        /// What its compiler said.
        log: String,
    },
    /// There is no such kernel in the build.
    #[error("no kernel {0} in this build")]
    NoKernel(String),
    /// The device's memory doesn't hold it.
    #[error("out of GPU memory: {needed} bytes are needed, {free} are free")]
    OutOfMemory {
        /// Bytes asked for.
        needed: u64,
        /// Bytes that were free.
        free: u64,
    },
    /// More than the caller's own cap.
    #[error("over the cap on GPU memory: {needed} bytes are needed, the cap of {cap} leaves {left}")]
    OverCap {
        /// Bytes asked for.
        needed: u64,
        /// Bytes that the cap leaves.
        left: u64,
        /// The cap.
        cap: u64,
    },
    /// Pinned memory can't be had.
    #[error("{needed} bytes of pinned memory can't be had: {why}")]
    Pinned {
        /// Bytes asked for.
        needed: u64,
        /// The driver's error.
        why: String,
    },
    /// The device is lost, or its context is: nothing more can be done with it in this process.
    #[error("the GPU is lost: {0}")]
    Lost(String),
    /// The device didn't answer in time.
    #[error("the GPU didn't answer within {0} ms")]
    TimedOut(u64),
    /// More keys than the slot holds.
    #[error("a batch of {asked} keys, the slots hold {most}")]
    TooManyKeys {
        /// Keys asked for.
        asked: usize,
        /// Keys that the slot holds, or the largest one.
        most: usize,
    },
    /// Keys or results wider than slots were made for.
    #[error("{what} of {asked} bytes, the slots are made for {most}")]
    TooWide {
        /// Keys or results.
        what: &'static str,
        /// Bytes of one.
        asked: usize,
        /// Bytes that there is room for.
        most: usize,
    },
    /// The table lies on another GPU than the batch.
    #[error("the table lies on another GPU than the batch")]
    OtherDevice,
    /// A patch that doesn't fit the table.
    #[error("the patch doesn't fit the table: {0}")]
    Patch(#[from] wirespeed_image::PatchError),
    /// No kernel looks up in tables of this kind.
    #[error("no kernel looks up in tables of {0}")]
    Unsupported(String),
    /// Keys don't tell enough of what the table has come to depend on since they were packed.
    #[error("keys of {asked} bytes, the table needs {least} by now")]
    NarrowKeys {
        /// Bytes of the keys.
        asked: usize,
        /// Bytes that they need.
        least: usize,
    },
    /// Numbers have outgrown the width that was asked for, between packing and looking up. Asked for anew,
    /// they are wider.
    #[error("results of {bytes} bytes don't hold the table's numbers any more")]
    NarrowResults {
        /// Bytes of a result.
        bytes: usize,
    },
    /// A call that the driver refused for another reason.
    #[error("the NVIDIA driver: {call}: {why}")]
    Call {
        /// The call.
        call: &'static str,
        /// The driver's error.
        why: String,
    },
}

impl From<Unsupported> for GpuError {
    fn from(Unsupported(shape): Unsupported) -> Self {
        Self::Unsupported(shape)
    }
}

impl GpuError {
    /// Whether the device is of no more use in this process.
    pub const fn is_fatal(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::TimedOut(_))
    }
}
