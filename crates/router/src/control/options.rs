//! [`Options`] of a router's control, and [`Source`]: where its routes come from.

use wirespeed::{Device, Fleet};
use wirespeed_feeds::TableId;

/// The source of routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// The kernel has all routes.
    #[default]
    Kernel,
    /// [`take_routes`](super::Control::take_routes) gives the routes of ports outside of VRFs. VRFs have the
    /// kernel's.
    OneTable,
    /// [`take_routes`](super::Control::take_routes) gives the routes of all tables.
    AllTables,
}

/// The options of a [`Control`](super::Control).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The source of routes.
    pub source: Source,
    /// The table of ports outside of VRFs.
    pub table: TableId,
    /// The device that looks up in the tables.
    pub device: Device,
    /// The GPUs of the device, if they are open already.
    pub fleet: Option<Fleet>,
}

impl Default for Options {
    fn default() -> Self {
        Self { source: Source::Kernel, table: TableId::MAIN, device: Device::Cpu, fleet: None }
    }
}
