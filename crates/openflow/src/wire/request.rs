//! [`Request`]: messages that a controller sends, read from their bytes.

use super::action::{Action, Instructions};
use super::bundle::{BundleAdd, BundleControl, no_properties};
use super::bytes::Cursor;
use super::change::{FlowMod, GroupMod, MeterMod};
use super::failure::Failure;
use super::header::{HEADER, Header, VERSION};
use super::matches::Match;
use super::number::{onf, port};

/// A message of a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// The greeting. It tells whether the controller speaks version 1.3.
    Hello {
        /// Whether both sides speak this version.
        is_known: bool,
    },
    /// An error that the controller tells.
    Error,
    /// A question whether the switch is there.
    EchoRequest,
    /// The answer to a question of the switch.
    EchoReply,
    /// A question for features.
    Features,
    /// A question for the configuration.
    GetConfig,
    /// A change of the configuration.
    SetConfig {
        /// The treatment of fragments.
        flags: u16,
        /// The most bytes of a packet without a match for a controller.
        miss_len: u16,
    },
    /// A packet to be sent.
    PacketOut(PacketOut),
    /// A change of flows.
    FlowMod(Box<FlowMod>),
    /// A change of groups.
    GroupMod(GroupMod),
    /// A change of a port.
    PortMod {
        /// The port.
        port: u32,
        /// Its address, which is not changed.
        address: [u8; 6],
        /// The bits of its configuration.
        config: u32,
        /// The bits that change.
        mask: u32,
    },
    /// A change of a table.
    TableMod {
        /// The table.
        table: u8,
        /// The bits of its configuration.
        config: u32,
    },
    /// A question for statistics or descriptions.
    Multipart(Multipart),
    /// A question whether all before is done.
    Barrier,
    /// A question for the queues of a port.
    QueueConfig(u32),
    /// A change of the controller's role.
    Role {
        /// The role.
        role: u32,
        /// The number of the election.
        generation: u64,
    },
    /// A question for the kinds of messages that the controller gets unasked.
    GetAsync,
    /// A change of these kinds.
    SetAsync([u32; 6]),
    /// A change of meters.
    MeterMod(MeterMod),
    /// A step in the life of a bundle.
    BundleControl(BundleControl),
    /// A message for a bundle.
    BundleAdd(BundleAdd),
}

/// A packet that a controller sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketOut {
    /// The port that it is said to have come in on.
    pub in_port: u32,
    /// The actions on it.
    pub actions: Vec<Action>,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// A question for flows: by table, port, group, cookie and match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowQuery {
    /// The table, or all.
    pub table: u8,
    /// A port that flows output to, or any.
    pub out_port: u32,
    /// A group that flows use, or any.
    pub out_group: u32,
    /// The value of the cookie.
    pub cookie: u64,
    /// The bits of the cookie that count.
    pub cookie_mask: u64,
    /// The match that flows have to be within.
    pub matched: Match,
}

/// A question for statistics or descriptions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Multipart {
    /// The description of the switch.
    Desc,
    /// Flows one by one.
    Flows(Box<FlowQuery>),
    /// Flows in sum.
    Aggregate(Box<FlowQuery>),
    /// The counters of tables.
    Tables,
    /// The counters of ports.
    Ports(u32),
    /// The counters of queues of a port.
    Queues(u32),
    /// The counters of groups.
    Groups(u32),
    /// The groups.
    GroupDescs,
    /// The abilities of groups.
    GroupFeatures,
    /// The counters of meters.
    Meters(u32),
    /// The meters.
    MeterConfigs(u32),
    /// The abilities of meters.
    MeterFeatures,
    /// The abilities of tables.
    TableFeatures,
    /// The ports.
    PortDescs,
}

impl Multipart {
    /// The number of the kind in messages.
    #[must_use]
    pub const fn kind(&self) -> u16 {
        match self {
            Self::Desc => 0,
            Self::Flows(_) => 1,
            Self::Aggregate(_) => 2,
            Self::Tables => 3,
            Self::Ports(_) => 4,
            Self::Queues(_) => 5,
            Self::Groups(_) => 6,
            Self::GroupDescs => 7,
            Self::GroupFeatures => 8,
            Self::Meters(_) => 9,
            Self::MeterConfigs(_) => 10,
            Self::MeterFeatures => 11,
            Self::TableFeatures => 12,
            Self::PortDescs => 13,
        }
    }

    fn read(body: &mut Cursor<'_>) -> Result<Self, Failure> {
        let (kind, flags) = (body.u16()?, body.u16()?);
        body.skip(4)?;
        // No question here is longer than a message.
        if flags & 1 != 0 {
            return Err(Failure::MULTIPART_OVERFLOW);
        }
        let query = |body: &mut Cursor<'_>| {
            let table = body.u8()?;
            body.skip(3)?;
            let (out_port, out_group) = (body.u32()?, body.u32()?);
            body.skip(4)?;
            let (cookie, cookie_mask) = (body.u64()?, body.u64()?);
            let matched = Match::read(body)?;
            let query = FlowQuery { table, out_port, out_group, cookie, cookie_mask, matched };
            Ok::<_, Failure>(Box::new(query))
        };
        let read = match kind {
            0 => Self::Desc,
            1 => Self::Flows(query(body)?),
            2 => Self::Aggregate(query(body)?),
            3 => Self::Tables,
            4 | 5 | 6 | 9 | 10 => {
                let number = body.u32()?;
                body.skip(4)?;
                match kind {
                    4 => Self::Ports(number),
                    5 => Self::Queues(number),
                    6 => Self::Groups(number),
                    9 => Self::Meters(number),
                    _ => Self::MeterConfigs(number),
                }
            }
            7 => Self::GroupDescs,
            8 => Self::GroupFeatures,
            11 => Self::MeterFeatures,
            12 if body.is_empty() => Self::TableFeatures,
            // The tables are as they are.
            12 => return Err(Failure::FEATURES_EPERM),
            13 => Self::PortDescs,
            0xffff => return Err(Failure::BAD_EXPERIMENTER),
            _ => return Err(Failure::BAD_MULTIPART),
        };
        if body.is_empty() { Ok(read) } else { Err(Failure::BAD_LEN) }
    }
}

impl Request {
    /// Reads a message: all of its bytes, as many as its header says.
    pub fn read(message: &[u8]) -> Result<Self, Failure> {
        let header = Header::of(message).ok_or(Failure::BAD_LEN)?;
        let mut body = Cursor::new(&message[HEADER..], Failure::BAD_LEN);
        if header.kind == 0 {
            return Ok(Self::Hello { is_known: knows(header.version, body.rest()) });
        }
        if header.version != VERSION {
            return Err(Failure::BAD_VERSION);
        }
        let body = &mut body;
        let read = match header.kind {
            1 => return Ok(Self::Error),
            2 => return Ok(Self::EchoRequest),
            3 => return Ok(Self::EchoReply),
            4 if body.u32()? != onf::NUMBER => return Err(Failure::BAD_EXPERIMENTER),
            4 => match u16::try_from(body.u32()?) {
                Ok(onf::BUNDLE_CONTROL) => return BundleControl::read(body).map(Self::BundleControl),
                Ok(onf::BUNDLE_ADD) => return BundleAdd::read(body).map(Self::BundleAdd),
                _ => return Err(Failure::BAD_EXP_TYPE),
            },
            5 => Self::Features,
            7 => Self::GetConfig,
            9 => Self::SetConfig { flags: body.u16()?, miss_len: body.u16()? },
            13 => return PacketOut::read(body).map(Self::PacketOut),
            14 => Self::FlowMod(Box::new(FlowMod::read(body)?)),
            15 => Self::GroupMod(GroupMod::read(body)?),
            16 => {
                let port = body.u32()?;
                body.skip(4)?;
                let address = body.array()?;
                body.skip(2)?;
                let (config, mask) = (body.u32()?, body.u32()?);
                body.skip(8)?;
                Self::PortMod { port, address, config, mask }
            }
            17 => {
                let table = body.u8()?;
                body.skip(3)?;
                Self::TableMod { table, config: body.u32()? }
            }
            18 => Self::Multipart(Multipart::read(body)?),
            20 => Self::Barrier,
            22 => {
                let port = body.u32()?;
                body.skip(4)?;
                Self::QueueConfig(port)
            }
            24 => {
                let role = body.u32()?;
                body.skip(4)?;
                Self::Role { role, generation: body.u64()? }
            }
            26 => Self::GetAsync,
            28 => {
                let mut masks = [0; 6];
                for mask in &mut masks {
                    *mask = body.u32()?;
                }
                Self::SetAsync(masks)
            }
            29 => Self::MeterMod(MeterMod::read(body)?),
            _ => return Err(Failure::BAD_TYPE),
        };
        if body.is_empty() { Ok(read) } else { Err(Failure::BAD_LEN) }
    }

    /// Whether it changes the switch, so that a slave must not send it.
    #[must_use]
    pub const fn is_change(&self) -> bool {
        matches!(
            self,
            Self::PacketOut(_)
                | Self::FlowMod(_)
                | Self::GroupMod(_)
                | Self::PortMod { .. }
                | Self::TableMod { .. }
                | Self::MeterMod(_)
                | Self::BundleControl(_)
                | Self::BundleAdd(_)
        )
    }
}

/// Whether a greeting's sender speaks version 1.3: by its bit map if there is one, else by its version, which
/// is its highest one (specification 1.3.5, section 6.3.1).
fn knows(version: u8, body: &[u8]) -> bool {
    let mut elements = Cursor::new(body, Failure::BAD_LEN);
    while let (Ok(kind), Ok(len)) = (elements.u16(), elements.u16()) {
        let Some(len) = usize::from(len).checked_sub(4) else { break };
        let Ok(mut body) = elements.part(len, Failure::BAD_LEN) else { break };
        if let (1, Ok(map)) = (kind, body.u32()) {
            return map & 1 << VERSION != 0;
        }
        if elements.skip(len.next_multiple_of(8).saturating_sub(len + 4)).is_err() {
            break;
        }
    }
    version >= VERSION
}

impl BundleAdd {
    /// The message that it has: one that changes something, is right as far as it tells by itself, and has
    /// the number of the message around it.
    pub(crate) fn message(&self, xid: u32) -> Result<&[u8], Failure> {
        let header = Header::of(&self.rest).ok_or(Failure::BUNDLE_MSG_LEN)?;
        let (message, rest) = match self.rest.split_at_checked(header.len.into()) {
            Some((message, rest)) if message.len() >= HEADER => (message, rest),
            _ => return Err(Failure::BUNDLE_MSG_LEN),
        };
        if header.xid != xid {
            return Err(Failure::BUNDLE_MSG_XID);
        }
        // Zeros up to a multiple of eight bytes come before properties.
        no_properties(rest.get(message.len().next_multiple_of(8) - message.len()..).unwrap_or_default())?;
        let read = Request::read(message)?;
        let fits = read.is_change() && !matches!(read, Request::BundleControl(_) | Request::BundleAdd(_));
        fits.then_some(message).ok_or(Failure::BUNDLE_MSG_UNSUP)
    }
}

impl PacketOut {
    fn read(body: &mut Cursor<'_>) -> Result<Self, Failure> {
        let (buffer, in_port, len) = (body.u32()?, body.u32()?, usize::from(body.u16()?));
        body.skip(6)?;
        if buffer != super::number::NO_BUFFER {
            return Err(Failure::BUFFER_UNKNOWN);
        }
        let is_port =
            (1..=port::MAX).contains(&in_port) || in_port == port::CONTROLLER || in_port == port::ANY;
        if !is_port && in_port != port::LOCAL {
            return Err(Failure::BAD_PORT);
        }
        let mut list = body.part(len, Failure::BAD_LEN)?;
        let actions = Action::read_list(&mut list, None)?;
        Ok(Self { in_port, actions, data: body.rest().to_vec() })
    }
}

impl Instructions {
    /// Reads instructions from bytes, for a match.
    pub fn from_bytes(bytes: &[u8], by: &Match) -> Result<Self, Failure> {
        Self::read(&mut Cursor::new(bytes, Failure::INSTRUCTION_LEN), by)
    }

    /// The bytes of the instructions.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        bytes
    }
}
