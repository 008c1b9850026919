//! [`GpuError`]: the reason why a GPU can't be used, with advice.

use wirespeed_image::device::Unsupported;

/// The reason why a call to a GPU failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// There is no NVIDIA driver on this machine.
    #[error(
        "no NVIDIA driver: libcuda can't be opened; install the driver, or give the container access to it"
    )]
    NoDriver,
    /// The driver exists but can't be started.
    #[error("the NVIDIA driver can't be started: {0}")]
    DriverFailed(String),
    /// The driver sees no GPU.
    #[error("the NVIDIA driver sees no GPU; is one plugged in, and is CUDA_VISIBLE_DEVICES set to hide it?")]
    NoDevice,
    /// There is no device with this number.
    #[error("no GPU {asked}: there are {there}, numbered from 0")]
    NoSuchDevice {
        /// The given number.
        asked: usize,
        /// The number of devices.
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
        /// The least compute capability that the kernels need.
        needed: (u32, u32),
    },
    /// The driver refused a module.
    #[error("the driver can't load the kernels of {module}: {why}\n{log}")]
    Module {
        /// The module.
        module: String,
        /// The driver's error.
        why: String,
        /// The log of the driver's compiler.
        log: String,
    },
    /// The build has no such kernel.
    #[error("no kernel {0} in this build")]
    NoKernel(String),
    /// The device has not enough free memory.
    #[error("out of GPU memory: {needed} bytes are needed, {free} are free")]
    OutOfMemory {
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// The memory is over the caller's cap.
    #[error("over the cap on GPU memory: {needed} bytes are needed, the cap of {cap} leaves {left}")]
    OverCap {
        /// Bytes needed.
        needed: u64,
        /// Bytes that the cap leaves.
        left: u64,
        /// The cap.
        cap: u64,
    },
    /// Pinned memory can't be allocated.
    #[error("{needed} bytes of pinned memory can't be allocated: {why}")]
    Pinned {
        /// Bytes needed.
        needed: u64,
        /// The driver's error.
        why: String,
    },
    /// The device or its context is lost: it can't be used any more in this process.
    #[error("the GPU is lost: {0}")]
    Lost(String),
    /// The device didn't answer in time.
    #[error("the GPU didn't answer within {0} ms")]
    TimedOut(u64),
    /// No slot came free in time: batches, or answers in slots, are kept.
    #[error("no slot came free within {0} ms: batches or their answers are kept")]
    NoSlot(u64),
    /// A batch has more keys than the slot holds.
    #[error("a batch of {asked} keys is too large: the slots hold {most}")]
    TooManyKeys {
        /// Keys of the batch.
        asked: usize,
        /// Keys that the slot, or the largest slot, holds.
        most: usize,
    },
    /// Keys or results are wider than the slots allow.
    #[error("{what} of {asked} bytes are too wide: the slots are made for {most}")]
    TooWide {
        /// Keys or results.
        what: &'static str,
        /// Bytes of a key or result.
        asked: usize,
        /// The most bytes of a key or result.
        most: usize,
    },
    /// The table is on another GPU than the batch.
    #[error("the table is on another GPU than the batch")]
    OtherDevice,
    /// A patch does not fit the table.
    #[error("the patch doesn't fit the table: {0}")]
    Patch(wirespeed_image::PatchError),
    /// No kernel looks up in tables of this kind.
    #[error("no kernel looks up in tables of {0}")]
    Unsupported(String),
    /// Keys were packed before the table began to depend on more of their bits.
    #[error("keys of {asked} bytes, the table needs {least} by now")]
    NarrowKeys {
        /// Bytes of the keys.
        asked: usize,
        /// Bytes that they need.
        least: usize,
    },
    /// Results have become too narrow for the table's numbers between packing and looking up. A repeated
    /// batch gets wider results.
    #[error("results of {bytes} bytes are too narrow for the table's numbers by now")]
    NarrowResults {
        /// Bytes of a result.
        bytes: usize,
    },
    /// Results of keys on the GPU take more bytes than the memory for them has.
    #[error("results of {count} keys take {needed} bytes, the memory for them has {there}")]
    ResultMemory {
        /// The number of keys.
        count: usize,
        /// Bytes of their results.
        needed: usize,
        /// Bytes of the memory.
        there: usize,
    },
    /// Memory on the GPU is not aligned to its elements.
    #[error("the memory of {what} on the GPU must start at a multiple of {to} bytes")]
    Misaligned {
        /// Keys or results.
        what: &'static str,
        /// The alignment in bytes.
        to: usize,
    },
    /// The driver refused a call for another reason.
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

impl From<wirespeed_image::PatchError> for GpuError {
    fn from(cause: wirespeed_image::PatchError) -> Self {
        Self::Patch(cause)
    }
}

impl GpuError {
    /// Whether the device can't be used any more in this process.
    pub const fn is_fatal(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::TimedOut(_))
    }
}
