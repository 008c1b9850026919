//! Reserved numbers of ports, groups, meters and tables.

/// Reserved numbers of ports.
pub mod port {
    /// The largest number of a port.
    pub const MAX: u32 = 0xffff_ff00;
    /// The port that the packet came in on.
    pub const IN_PORT: u32 = 0xffff_fff8;
    /// The pipeline from its first table on, for packet-out.
    pub const TABLE: u32 = 0xffff_fff9;
    /// The forwarding of a switch without OpenFlow.
    pub const NORMAL: u32 = 0xffff_fffa;
    /// All ports but that where the packet came in, and those that are not to flood.
    pub const FLOOD: u32 = 0xffff_fffb;
    /// All ports but that where the packet came in.
    pub const ALL: u32 = 0xffff_fffc;
    /// The controllers.
    pub const CONTROLLER: u32 = 0xffff_fffd;
    /// The switch's own network stack.
    pub const LOCAL: u32 = 0xffff_fffe;
    /// No port in particular.
    pub const ANY: u32 = 0xffff_ffff;
}

/// Reserved numbers of groups.
pub mod group {
    /// The largest number of a group.
    pub const MAX: u32 = 0xffff_ff00;
    /// All groups, to be deleted or told.
    pub const ALL: u32 = 0xffff_fffc;
    /// No group in particular.
    pub const ANY: u32 = 0xffff_ffff;
}

/// Reserved numbers of meters.
pub mod meter {
    /// The largest number of a meter.
    pub const MAX: u32 = 0xffff_0000;
    /// All meters, to be deleted or told.
    pub const ALL: u32 = 0xffff_ffff;
}

/// Numbers of the ONF as an experimenter.
pub mod onf {
    /// The ONF.
    pub const NUMBER: u32 = 0x4f4e_4600;
    /// Requests about bundles, and the first one of errors about them.
    pub const BUNDLE_CONTROL: u16 = 2300;
    /// Messages for bundles.
    pub const BUNDLE_ADD: u16 = 2301;
}

/// All tables, where flows are deleted or told.
pub const ALL_TABLES: u8 = 0xff;
/// No packet is kept in a buffer.
pub const NO_BUFFER: u32 = 0xffff_ffff;
/// A packet goes to a controller whole.
pub const WHOLE: u16 = 0xffff;
