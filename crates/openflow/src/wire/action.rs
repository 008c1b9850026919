//! [`Action`] and [`Instructions`]: what a flow does with packets, read with checks and written.

use super::bytes::{Cursor, Out};
use super::failure::Failure;
use super::field::Field;
use super::matches::{Match, read_oxm, write_oxm};
use super::number::{group, port};

/// Bytes of a list of actions: two lists and what is told beside them fit a message.
const MOST_BYTES: usize = 24 * 1024;

/// A change of a packet, or a place that it goes to (specification 1.3.5, section 7.2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The packet goes out of a port. To a controller it goes with at most this many bytes.
    Output {
        /// The port, or a reserved number.
        port: u32,
        /// The most bytes for a controller.
        max_len: u16,
    },
    /// The time to live goes from the next header to the outermost one.
    CopyTtlOut,
    /// The time to live goes from the outermost header to the next one.
    CopyTtlIn,
    /// The time to live of the outer MPLS entry is set.
    SetMplsTtl(u8),
    /// The time to live of the outer MPLS entry becomes one less.
    DecMplsTtl,
    /// A VLAN tag of this type is added.
    PushVlan(u16),
    /// The outer VLAN tag is taken off.
    PopVlan,
    /// An MPLS entry of this type is added.
    PushMpls(u16),
    /// The outer MPLS entry is taken off; the type is that of what follows.
    PopMpls(u16),
    /// The queue of the port is chosen. Ports have no queues here.
    SetQueue(u32),
    /// The packet goes through a group.
    Group(u32),
    /// The time to live of IP is set.
    SetNwTtl(u8),
    /// The time to live of IP becomes one less.
    DecNwTtl,
    /// A field is set.
    SetField(Field, u128),
    /// A header of provider backbone bridges is added.
    PushPbb(u16),
    /// A header of provider backbone bridges is taken off.
    PopPbb,
}

/// The instructions of a flow (specification 1.3.5, section 5.9).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    /// The meter that packets go through first.
    pub meter: Option<u32>,
    /// The actions that are applied at once.
    pub apply: Vec<Action>,
    /// Whether there is an instruction to apply actions.
    pub has_apply: bool,
    /// Whether the action set is cleared.
    pub clear: bool,
    /// The actions that are written to the action set.
    pub write: Vec<Action>,
    /// Whether there is an instruction to write actions.
    pub has_write: bool,
    /// The value and the mask that are written to the metadata.
    pub metadata: Option<(u64, u64)>,
    /// The table that goes on.
    pub goto: Option<u8>,
}

/// The fields of packets where an action is applied, as far as its flow knows.
#[derive(Clone, Copy, Debug)]
enum Known<'m> {
    /// The fields of the match.
    By(&'m Match),
    /// Nothing: for packet-out, for buckets, and once the headers were changed.
    Nothing,
}

impl Action {
    /// Reads a list of actions up to the end of a part. With a match, fields that are set have to be those of
    /// packets that match.
    pub(crate) fn read_list(list: &mut Cursor<'_>, by: Option<&Match>) -> Result<Vec<Self>, Failure> {
        let mut known = by.map_or(Known::Nothing, Known::By);
        if list.len() > MOST_BYTES {
            return Err(Failure::ACTION_TOO_MANY);
        }
        let mut actions = Vec::new();
        while !list.is_empty() {
            let mut header = *list;
            let (kind, len) = (header.u16()?, usize::from(header.u16()?));
            if len < 8 || !len.is_multiple_of(8) || len > list.len() {
                return Err(Failure::ACTION_LEN);
            }
            let mut body = list.part(len, Failure::ACTION_LEN)?;
            body.skip(4)?;
            let action = Self::read(kind, &mut body)?;
            if let (Self::SetField(field, _), Known::By(by)) = (action, known)
                && !by.allows(field)
            {
                return Err(Failure::ACTION_INCONSISTENT);
            }
            if action.changes_headers() {
                known = Known::Nothing;
            }
            actions.push(action);
        }
        Ok(actions)
    }

    /// The groups that actions lead to, each once.
    pub(crate) fn groups(actions: impl Iterator<Item = Self>) -> Vec<u32> {
        let group = |action| if let Self::Group(number) = action { Some(number) } else { None };
        let mut groups: Vec<u32> = actions.filter_map(group).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    const fn changes_headers(self) -> bool {
        matches!(
            self,
            Self::PushVlan(_)
                | Self::PopVlan
                | Self::PushMpls(_)
                | Self::PopMpls(_)
                | Self::PushPbb(_)
                | Self::PopPbb
                | Self::SetField(Field::VlanVid | Field::EthType | Field::IpProto, _)
        )
    }

    /// Reads the body of an action.
    fn read(kind: u16, body: &mut Cursor<'_>) -> Result<Self, Failure> {
        let exactly = |body: &Cursor<'_>, len: usize| {
            if body.len() == len { Ok(()) } else { Err(Failure::ACTION_LEN) }
        };
        match kind {
            0 => exactly(body, 12)?,
            25 | 0xffff => {}
            11 | 12 | 15..=24 | 26 | 27 => exactly(body, 4)?,
            _ => return Err(Failure::ACTION_TYPE),
        }
        Ok(match kind {
            0 => {
                let (port, max_len) = (body.u32()?, body.u16()?);
                if port == 0 || port == port::ANY || (port > port::MAX && port < port::IN_PORT) {
                    return Err(Failure::ACTION_OUT_PORT);
                }
                Self::Output { port, max_len }
            }
            11 => Self::CopyTtlOut,
            12 => Self::CopyTtlIn,
            15 => Self::SetMplsTtl(body.u8()?),
            16 => Self::DecMplsTtl,
            17 => match body.u16()? {
                ether @ (0x8100 | 0x88a8) => Self::PushVlan(ether),
                _ => return Err(Failure::ACTION_ARGUMENT),
            },
            18 => Self::PopVlan,
            19 => match body.u16()? {
                ether @ (0x8847 | 0x8848) => Self::PushMpls(ether),
                _ => return Err(Failure::ACTION_ARGUMENT),
            },
            20 => Self::PopMpls(body.u16()?),
            21 => Self::SetQueue(body.u32()?),
            22 => match body.u32()? {
                number if number <= group::MAX => Self::Group(number),
                _ => return Err(Failure::ACTION_OUT_GROUP),
            },
            23 => Self::SetNwTtl(body.u8()?),
            24 => Self::DecNwTtl,
            25 => {
                let (field, value, mask) = read_oxm(body, Failure::ACTION_SET_TYPE, Failure::ACTION_SET_LEN)?;
                if mask.is_some() || body.len() >= 8 {
                    return Err(Failure::ACTION_SET_LEN);
                }
                if matches!(field, Field::InPort | Field::InPhyPort | Field::Metadata | Field::Ipv6Exthdr) {
                    return Err(Failure::ACTION_SET_TYPE);
                }
                let is_wide = value & !field.all() != 0;
                if is_wide || field == Field::VlanVid && value & 0x1000 == 0 {
                    return Err(Failure::ACTION_SET_ARGUMENT);
                }
                Self::SetField(field, value)
            }
            26 => match body.u16()? {
                ether @ 0x88e7 => Self::PushPbb(ether),
                _ => return Err(Failure::ACTION_ARGUMENT),
            },
            27 => Self::PopPbb,
            _ => return Err(Failure::ACTION_EXPERIMENTER),
        })
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        let start = out.len();
        let head = |out: &mut Vec<u8>, kind: u16| {
            out.u16(kind);
            out.u16(8);
        };
        match self {
            Self::Output { port, max_len } => {
                head(out, 0);
                out.u32(port);
                out.u16(max_len);
                out.zeros(6);
            }
            Self::CopyTtlOut => head(out, 11),
            Self::CopyTtlIn => head(out, 12),
            Self::SetMplsTtl(ttl) => {
                head(out, 15);
                out.u8(ttl);
            }
            Self::DecMplsTtl => head(out, 16),
            Self::PushVlan(ether) => {
                head(out, 17);
                out.u16(ether);
            }
            Self::PopVlan => head(out, 18),
            Self::PushMpls(ether) => {
                head(out, 19);
                out.u16(ether);
            }
            Self::PopMpls(ether) => {
                head(out, 20);
                out.u16(ether);
            }
            Self::SetQueue(queue) => {
                head(out, 21);
                out.u32(queue);
            }
            Self::Group(group) => {
                head(out, 22);
                out.u32(group);
            }
            Self::SetNwTtl(ttl) => {
                head(out, 23);
                out.u8(ttl);
            }
            Self::DecNwTtl => head(out, 24),
            Self::SetField(field, value) => {
                head(out, 25);
                write_oxm(out, field, value, None);
            }
            Self::PushPbb(ether) => {
                head(out, 26);
                out.u16(ether);
            }
            Self::PopPbb => head(out, 27),
        }
        out.pad(start);
        out.close(start, start + 2);
    }
}

impl Instructions {
    /// Whether packets without an action set are only given metadata and another table.
    pub(crate) fn only_leads(&self) -> bool {
        self.meter.is_none() && self.apply.is_empty() && self.write.is_empty()
    }

    /// Reads instructions up to the end, for a flow of this table that matches so.
    pub(crate) fn read(list: &mut Cursor<'_>, by: &Match) -> Result<Self, Failure> {
        let mut read = Self::default();
        let mut seen = 0_u32;
        while !list.is_empty() {
            let mut header = *list;
            let (kind, len) = (header.u16()?, usize::from(header.u16()?));
            if len < 8 || !len.is_multiple_of(8) || len > list.len() {
                return Err(Failure::INSTRUCTION_LEN);
            }
            let mut body = list.part(len, Failure::INSTRUCTION_LEN)?;
            body.skip(4)?;
            if (1..=6).contains(&kind) {
                // One of each type at most.
                if seen & 1 << kind != 0 {
                    return Err(Failure::INSTRUCTION_UNSUPPORTED);
                }
                seen |= 1 << kind;
            }
            match kind {
                1 if len == 8 => read.goto = Some(body.u8()?),
                2 if len == 24 => {
                    body.skip(4)?;
                    let (value, mask) = (body.u64()?, body.u64()?);
                    read.metadata = Some((value & mask, mask));
                }
                3 | 4 => {
                    body.skip(4)?;
                    // An action set is executed in an order of its own, so what its packets look like then is
                    // known of actions that are applied only.
                    let by = if kind == 4 { Some(by) } else { None };
                    let actions = Action::read_list(&mut body, by)?;
                    if kind == 4 {
                        (read.apply, read.has_apply) = (actions, true);
                    } else {
                        (read.write, read.has_write) = (actions, true);
                    }
                }
                5 if len == 8 => read.clear = true,
                6 if len == 8 => read.meter = Some(body.u32()?),
                1 | 2 | 5 | 6 => return Err(Failure::INSTRUCTION_LEN),
                0xffff => return Err(Failure::INSTRUCTION_EXPERIMENTER),
                _ => return Err(Failure::INSTRUCTION_UNKNOWN),
            }
        }
        Ok(read)
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        if let Some(meter) = self.meter {
            out.u16(6);
            out.u16(8);
            out.u32(meter);
        }
        for (kind, actions, is_there) in [(4, &self.apply, self.has_apply), (3, &self.write, self.has_write)]
        {
            if kind == 3 && self.clear {
                out.u16(5);
                out.u16(8);
                out.u32(0);
            }
            if is_there {
                let start = out.len();
                out.u16(kind);
                out.u16(0);
                out.u32(0);
                actions.iter().for_each(|action| action.write(out));
                out.close(start, start + 2);
            }
        }
        if let Some((value, mask)) = self.metadata {
            out.u16(2);
            out.u16(24);
            out.u32(0);
            out.u64(value);
            out.u64(mask);
        }
        if let Some(table) = self.goto {
            out.u16(1);
            out.u16(8);
            out.u8(table);
            out.zeros(3);
        }
    }

    /// All actions of both lists.
    pub fn actions(&self) -> impl Iterator<Item = Action> + '_ {
        self.apply.iter().chain(&self.write).copied()
    }
}
