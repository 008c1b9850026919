//! [`FlowMod`], [`GroupMod`] and [`MeterMod`]: changes that a controller asks for.

use super::action::{Action, Instructions};
use super::bytes::{Cursor, Out};
use super::failure::Failure;
use super::matches::Match;
use super::number::{group, meter};

/// The kind of a change of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowCommand {
    /// A flow is added, in the place of one with the same match and priority.
    Add,
    /// Flows within the match get other instructions.
    Modify,
    /// The flow with the same match and priority gets other instructions.
    ModifyStrict,
    /// Flows within the match are deleted.
    Delete,
    /// The flow with the same match and priority is deleted.
    DeleteStrict,
}

/// A change of flows (specification 1.3.5, section 7.3.4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowMod {
    /// The cookie of the flow, or that which flows have to have.
    pub cookie: u64,
    /// The bits of the cookie that flows have to have.
    pub cookie_mask: u64,
    /// The table.
    pub table: u8,
    /// The command.
    pub command: FlowCommand,
    /// Seconds without a packet until the flow goes; 0 for never.
    pub idle: u16,
    /// Seconds until the flow goes; 0 for never.
    pub hard: u16,
    /// The priority.
    pub priority: u16,
    /// A port that flows to be deleted have to output to, or any.
    pub out_port: u32,
    /// A group that flows to be deleted have to use, or any.
    pub out_group: u32,
    /// The flags.
    pub flags: u16,
    /// The match.
    pub matched: Match,
    /// The instructions.
    pub instructions: Instructions,
}

impl FlowMod {
    /// The flag: tell when the flow goes.
    pub const SEND_REMOVED: u16 = 1;
    /// The flag: refuse to overlap a flow of equal priority.
    pub const CHECK_OVERLAP: u16 = 2;
    /// The flag: begin counting again.
    pub const RESET_COUNTS: u16 = 4;
    /// The flag: do not count packets.
    pub const NO_PACKETS: u16 = 8;
    /// The flag: do not count bytes.
    pub const NO_BYTES: u16 = 16;

    /// A flow to be added to a table.
    #[must_use]
    pub fn add(table: u8, priority: u16, matched: Match, instructions: Instructions) -> Self {
        Self {
            cookie: 0,
            cookie_mask: 0,
            table,
            command: FlowCommand::Add,
            idle: 0,
            hard: 0,
            priority,
            out_port: super::number::port::ANY,
            out_group: group::ANY,
            flags: 0,
            matched,
            instructions,
        }
    }

    pub(super) fn read(body: &mut Cursor<'_>) -> Result<Self, Failure> {
        let (cookie, cookie_mask) = (body.u64()?, body.u64()?);
        let (table, command) = (body.u8()?, body.u8()?);
        let (idle, hard, priority) = (body.u16()?, body.u16()?, body.u16()?);
        let buffer = body.u32()?;
        let (out_port, out_group, flags) = (body.u32()?, body.u32()?, body.u16()?);
        body.skip(2)?;
        let command = match command {
            0 => FlowCommand::Add,
            1 => FlowCommand::Modify,
            2 => FlowCommand::ModifyStrict,
            3 => FlowCommand::Delete,
            4 => FlowCommand::DeleteStrict,
            _ => return Err(Failure::FLOW_COMMAND),
        };
        let is_delete = matches!(command, FlowCommand::Delete | FlowCommand::DeleteStrict);
        // No packet is kept, so there is none to be let go. A deletion ignores the buffer.
        if buffer != super::number::NO_BUFFER && !is_delete {
            return Err(Failure::BUFFER_UNKNOWN);
        }
        if flags & !0x1f != 0 {
            return Err(Failure::FLOW_FLAGS);
        }
        let matched = Match::read(body)?;
        let instructions = if is_delete {
            // A deletion ignores them.
            body.skip(body.len())?;
            Instructions::default()
        } else {
            let mut list = body.part(body.len(), Failure::INSTRUCTION_LEN)?;
            Instructions::read(&mut list, &matched)?
        };
        Ok(Self {
            cookie,
            cookie_mask,
            table,
            command,
            idle,
            hard,
            priority,
            out_port,
            out_group,
            flags,
            matched,
            instructions,
        })
    }

    /// The message, as a controller sends it.
    #[must_use]
    pub fn to_message(&self, xid: u32) -> Vec<u8> {
        let mut out = super::reply::begin(14, xid);
        out.u64(self.cookie);
        out.u64(self.cookie_mask);
        out.u8(self.table);
        out.u8(self.command as u8);
        out.u16(self.idle);
        out.u16(self.hard);
        out.u16(self.priority);
        out.u32(super::number::NO_BUFFER);
        out.u32(self.out_port);
        out.u32(self.out_group);
        out.u16(self.flags);
        out.zeros(2);
        self.matched.write(&mut out);
        self.instructions.write(&mut out);
        super::reply::end(out)
    }
}

/// The kind of a group (specification 1.3.5, section 5.6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKind {
    /// All buckets get a copy of the packet.
    All,
    /// One bucket gets the packet, by the flow that it is of and the weights.
    Select,
    /// The only bucket gets it.
    Indirect,
    /// The first bucket that is live gets it.
    FastFailover,
}

/// A bucket of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The weight in a group that selects.
    pub weight: u16,
    /// The port whose state makes it live.
    pub watch_port: u32,
    /// The group whose state makes it live.
    pub watch_group: u32,
    /// Its action set.
    pub actions: Vec<Action>,
}

impl Bucket {
    /// Writes it as it is in messages.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.u16(0);
        out.u16(self.weight);
        out.u32(self.watch_port);
        out.u32(self.watch_group);
        out.zeros(4);
        self.actions.iter().for_each(|action| action.write(out));
        out.close(start, start);
    }
}

/// The kind of a change of groups or meters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Adds it.
    Add,
    /// Replaces it.
    Modify,
    /// Deletes it.
    Delete,
}

/// A change of groups (specification 1.3.5, section 7.3.4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMod {
    /// The command.
    pub command: Command,
    /// The kind of the group.
    pub kind: GroupKind,
    /// Its number.
    pub number: u32,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
}

/// The most buckets of a group.
pub const MOST_BUCKETS: usize = 1024;
/// The most bytes of the buckets of a group.
const MOST_BUCKET_BYTES: usize = 60_000;

impl GroupMod {
    pub(super) fn read(body: &mut Cursor<'_>) -> Result<Self, Failure> {
        let (command, kind) = (body.u16()?, body.u8()?);
        body.skip(1)?;
        let number = body.u32()?;
        let command = match command {
            0 => Command::Add,
            1 => Command::Modify,
            2 => Command::Delete,
            _ => return Err(Failure::GROUP_COMMAND),
        };
        let kind = match kind {
            0 => GroupKind::All,
            1 => GroupKind::Select,
            2 => GroupKind::Indirect,
            3 => GroupKind::FastFailover,
            _ => return Err(Failure::GROUP_TYPE),
        };
        // What is told of a group has a longer header than this.
        if body.len() > MOST_BUCKET_BYTES {
            return Err(Failure::OUT_OF_BUCKETS);
        }
        let mut buckets = Vec::new();
        while !body.is_empty() {
            let len = usize::from(body.u16()?);
            if len < 16 || !len.is_multiple_of(8) || len - 2 > body.len() {
                return Err(Failure::GROUP_BUCKET);
            }
            let mut bucket = body.part(len - 2, Failure::GROUP_BUCKET)?;
            let weight = bucket.u16()?;
            let (watch_port, watch_group) = (bucket.u32()?, bucket.u32()?);
            bucket.skip(4)?;
            if buckets.len() == MOST_BUCKETS {
                return Err(Failure::OUT_OF_BUCKETS);
            }
            let actions = Action::read_list(&mut bucket, None)?;
            buckets.push(Bucket { weight, watch_port, watch_group, actions });
        }
        Ok(Self { command, kind, number, buckets })
    }

    /// The message, as a controller sends it. Buckets that take more bytes than a message has make one that
    /// no switch takes.
    #[must_use]
    pub fn to_message(&self, xid: u32) -> Vec<u8> {
        let mut out = super::reply::begin(15, xid);
        out.u16(self.command as u16);
        out.u8(self.kind as u8);
        out.zeros(1);
        out.u32(self.number);
        self.buckets.iter().for_each(|bucket| bucket.write(&mut out));
        super::reply::end(out)
    }
}

/// A band of a meter: what happens to packets over a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// The rate, in kilobits or packets a second.
    pub rate: u32,
    /// The burst, in kilobits or packets.
    pub burst: u32,
    /// The levels that the drop precedence rises by; `None` drops packets.
    pub remark: Option<u8>,
}

impl Band {
    /// Writes it as it is in messages.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.u16(if self.remark.is_some() { 2 } else { 1 });
        out.u16(16);
        out.u32(self.rate);
        out.u32(self.burst);
        out.u8(self.remark.unwrap_or(0));
        out.zeros(3);
    }
}

/// A change of meters (specification 1.3.5, section 7.3.4.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterMod {
    /// The command.
    pub command: Command,
    /// The flags.
    pub flags: u16,
    /// The number of the meter.
    pub number: u32,
    /// Its bands.
    pub bands: Vec<Band>,
}

/// The most bands of a meter.
pub const MOST_BANDS: usize = 16;

impl MeterMod {
    /// The flag: the rate is in kilobits a second.
    pub const KBPS: u16 = 1;
    /// The flag: the rate is in packets a second.
    pub const PKTPS: u16 = 2;
    /// The flag: the burst is given.
    pub const BURST: u16 = 4;
    /// The flag: packets are counted.
    pub const STATS: u16 = 8;

    pub(super) fn read(body: &mut Cursor<'_>) -> Result<Self, Failure> {
        let (command, flags, number) = (body.u16()?, body.u16()?, body.u32()?);
        let command = match command {
            0 => Command::Add,
            1 => Command::Modify,
            2 => Command::Delete,
            _ => return Err(Failure::METER_COMMAND),
        };
        if command == Command::Delete {
            body.skip(body.len())?;
            return Ok(Self { command, flags, number, bands: Vec::new() });
        }
        if flags & !0xf != 0 || flags & 3 == 3 {
            return Err(Failure::METER_FLAGS);
        }
        if number == 0 || number > meter::MAX {
            return Err(Failure::METER_INVALID);
        }
        let mut bands = Vec::new();
        while !body.is_empty() {
            let (kind, len) = (body.u16()?, body.u16()?);
            let (rate, burst) = (body.u32()?, body.u32()?);
            if len != 16 {
                return Err(Failure::BAD_LEN);
            }
            let remark = match kind {
                1 => {
                    body.skip(4)?;
                    None
                }
                2 => {
                    let levels = body.u8()?;
                    body.skip(3)?;
                    Some(levels)
                }
                _ => return Err(Failure::METER_BAND),
            };
            if bands.len() == MOST_BANDS {
                return Err(Failure::OUT_OF_BANDS);
            }
            if rate == 0 {
                return Err(Failure::METER_RATE);
            }
            bands.push(Band { rate, burst, remark });
        }
        Ok(Self { command, flags, number, bands })
    }

    /// The message, as a controller sends it.
    #[must_use]
    pub fn to_message(&self, xid: u32) -> Vec<u8> {
        let mut out = super::reply::begin(29, xid);
        out.u16(self.command as u16);
        out.u16(self.flags);
        out.u32(self.number);
        self.bands.iter().for_each(|band| band.write(&mut out));
        super::reply::end(out)
    }
}
