//! [`Error`]: why associations and policies can't be had, and why a device fails.

use std::net::IpAddr;
use std::path::PathBuf;

/// The reason why security associations or policies can't be had, or a device does not seal or open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A key has the wrong length.
    #[error("{algorithm} takes a key of {wanted}, and this one has {found} bits")]
    Key {
        /// The algorithm.
        algorithm: &'static str,
        /// The bits of the key.
        found: usize,
        /// The bits that are allowed.
        wanted: &'static str,
    },
    /// A window has a size that is not supported.
    #[error("a replay window of {found} packets is more than {most}")]
    Window {
        /// The packets of the window.
        found: u32,
        /// The most that there may be.
        most: u32,
    },
    /// A security association numbers packets by 64 bits and has no window to find the upper half by.
    #[error("extended sequence numbers need a replay window, and this association has none")]
    NoWindow,
    /// A mapping is to be kept alive or followed, and packets are not in UDP.
    #[error("nat-keepalive and nat-follow are for packets in UDP, and this association has no encap")]
    NoPorts,
    /// A path takes less than every path has to.
    #[error("a path MTU of {found} bytes is less than {least}, which every path takes")]
    Path {
        /// The given size.
        found: u16,
        /// The least that there may be.
        least: u16,
    },
    /// The addresses of a tunnel are of different families.
    #[error("a tunnel from {src} to {dst} is of no family")]
    Families {
        /// The source.
        src: IpAddr,
        /// The destination.
        dst: IpAddr,
    },
    /// An index is one of those that are reserved (RFC 4303, 2.1).
    #[error("the index {0:#x} is reserved: the first one to be given is 0x100")]
    Reserved(u32),
    /// There is a security association with this index and destination already.
    #[error("there is an association {spi:#x} to {dst} already")]
    SaExists {
        /// The index.
        spi: u32,
        /// The destination.
        dst: IpAddr,
    },
    /// There is no security association with this index and destination.
    #[error("there is no association {spi:#x} to {dst}")]
    NoSa {
        /// The index.
        spi: u32,
        /// The destination.
        dst: IpAddr,
    },
    /// There is a policy for this selector and direction already.
    #[error("there is a policy of this selector and direction already")]
    PolicyExists,
    /// There is no policy for this selector and direction.
    #[error("there is no policy of this selector and direction")]
    NoPolicy,
    /// The addresses of a selector are of different families.
    #[error("a selector from {src} to {dst} is of no family")]
    SelectorFamilies {
        /// The source.
        src: ipnet::IpNet,
        /// The destination.
        dst: ipnet::IpNet,
    },
    /// A file of keys can be read by others than its owner.
    #[error("{path}: others than its owner can read this file of keys (mode {mode:03o}): chmod 600 it")]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A file of keys belongs to another user.
    #[error(
        "{path}: this file of keys belongs to user {owner}, who can read and change it: give it to user {own}, who \
         runs this, or to root (chown {own})"
    )]
    Owner {
        /// The file.
        path: PathBuf,
        /// The number of the user whose it is.
        owner: u32,
        /// The number of the user that reads it.
        own: u32,
    },
    /// A file can't be read.
    #[error("{path}: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        cause: std::io::Error,
    },
    /// The policies can't be compiled to rules.
    #[error("policies: {0}")]
    Rules(wirespeed::Error),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(String),
    /// The GPU failed.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Gpu(#[from] wirespeed_gpu::GpuError),
    /// The device has no kernels for these keys.
    #[cfg(feature = "gpu")]
    #[error("{0} is not for devices: seal and open on the CPU")]
    DeviceSuite(&'static str),
    /// There is no place of keys with this number.
    #[cfg(feature = "gpu")]
    #[error("keys {asked} of {most}: a number of keys is below the second")]
    KeysNumber {
        /// The given number.
        asked: u32,
        /// The number of places.
        most: u32,
    },
    /// The place with this number has no keys.
    #[cfg(feature = "gpu")]
    #[error("there are no keys {0} on the device")]
    NoKeys(u32),
    /// Keys were set or cleared since the chunk got its first frame.
    #[cfg(feature = "gpu")]
    #[error("keys of the device have changed while the chunk was filled: fill it again")]
    KeysChanged,
    /// There is no slot with this number.
    #[cfg(feature = "gpu")]
    #[error("slot {asked} of {there}: a number of a slot is below the second")]
    NoSlot {
        /// The given number.
        asked: usize,
        /// The number of slots.
        there: usize,
    },
    /// The slot's chunk is on its way.
    #[cfg(feature = "gpu")]
    #[error("the chunk of slot {0} is on its way: wait for it")]
    UnderWay(usize),
    /// The slot's frames have gone the same direction before.
    #[cfg(feature = "gpu")]
    #[error("the chunk of slot {0} was sealed or opened already: fill it again")]
    Twice(usize),
    /// The chunk has no capacity left for a frame.
    #[cfg(feature = "gpu")]
    #[error("the chunk is full: {frames} frames and {bytes} bytes are the most")]
    Full {
        /// The most frames.
        frames: usize,
        /// The most bytes.
        bytes: usize,
    },
    /// A frame is too short for its header and its tag.
    #[cfg(feature = "gpu")]
    #[error("a frame of {found} bytes is too short: header, vector and tag have {least}")]
    Short {
        /// The frame's bytes.
        found: usize,
        /// The fewest that there may be.
        least: usize,
    },
    /// An option is out of its limits.
    #[cfg(feature = "gpu")]
    #[error("{option} of {found}: the limits are {least} and {most}")]
    Option {
        /// The option.
        option: &'static str,
        /// The given number.
        found: usize,
        /// The least.
        least: usize,
        /// The most.
        most: usize,
    },
    /// A number of lanes that kernels are not built for.
    #[cfg(feature = "gpu")]
    #[error("{found} lanes are asked for: they are a power of two, from {least} to {most}")]
    Lanes {
        /// The given number.
        found: usize,
        /// The fewest.
        least: usize,
        /// The most.
        most: usize,
    },
}

impl From<wirespeed::Error> for Error {
    fn from(cause: wirespeed::Error) -> Self {
        Self::Rules(cause)
    }
}
