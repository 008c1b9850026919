//! [`Match`]: what a flow matches, read from and written as OXM (specification 1.3.5, section 7.2.3).

use super::bytes::{Cursor, Out};
use super::failure::Failure;
use super::field::{Field, Key};

/// The class of the basic fields.
const BASIC: u16 = 0x8000;
const IPV4: u128 = 0x0800;
const IPV6: u128 = 0x86dd;

/// Values of fields under masks. Bits outside of the mask are 0 in the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Match {
    /// The fields that it looks at, by [`Field::bit`].
    pub fields: u64,
    /// The bits that it looks at.
    pub mask: Key,
    /// Their values.
    pub value: Key,
}

impl Match {
    /// A match of every packet.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// The match with a field of this value.
    #[must_use]
    pub fn with(self, field: Field, value: u128) -> Self {
        self.with_masked(field, value, field.all())
    }

    /// The match with a field of this value under a mask. A mask of 0 is no demand.
    #[must_use]
    pub fn with_masked(mut self, field: Field, value: u128, mask: u128) -> Self {
        self.set_masked(field, value, mask);
        self
    }

    fn set_masked(&mut self, field: Field, value: u128, mask: u128) {
        if mask & field.all() != 0 {
            self.fields |= field.bit();
            self.mask.set(field, mask);
            self.value.set(field, value & mask);
        }
    }

    /// Whether it looks at a field.
    #[must_use]
    pub const fn has(&self, field: Field) -> bool {
        self.fields & field.bit() != 0
    }

    /// Whether a packet matches.
    #[must_use]
    pub fn matches(&self, key: &Key) -> bool {
        key.matches(&self.value, &self.mask)
    }

    /// Whether this match is at least as narrow as the other one: all that it matches the other one does.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        self.mask.covers(&other.mask) && self.value.matches(&other.value, &other.mask)
    }

    /// Whether some packet matches both.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.value.matches(&other.value, &self.mask.and(&other.mask))
    }

    /// The number that a field has to be exactly.
    fn exact(&self, field: Field) -> Option<u128> {
        (self.has(field) && self.mask.of(field) == field.all()).then(|| self.value.of(field))
    }

    /// Whether a packet that matches has to have a field (specification 1.3.5, table 11).
    #[must_use]
    pub fn allows(&self, field: Field) -> bool {
        let ether = self.exact(Field::EthType);
        let proto = |wanted| self.is_ip() && self.exact(Field::IpProto) == Some(wanted);
        let icmp6 = ether == Some(IPV6) && proto(58);
        match field {
            Field::InPort | Field::Metadata | Field::EthDst | Field::EthSrc | Field::EthType => true,
            Field::VlanVid | Field::TunnelId => true,
            Field::InPhyPort => self.has(Field::InPort),
            Field::VlanPcp => self.has(Field::VlanVid) && self.value.of(Field::VlanVid) != 0,
            Field::IpDscp | Field::IpEcn | Field::IpProto => self.is_ip(),
            Field::Ipv4Src | Field::Ipv4Dst => ether == Some(IPV4),
            Field::TcpSrc | Field::TcpDst => proto(6),
            Field::UdpSrc | Field::UdpDst => proto(17),
            Field::SctpSrc | Field::SctpDst => proto(132),
            Field::Icmpv4Type | Field::Icmpv4Code => ether == Some(IPV4) && proto(1),
            Field::ArpOp | Field::ArpSpa | Field::ArpTpa | Field::ArpSha | Field::ArpTha => {
                ether == Some(0x0806)
            }
            Field::Ipv6Src | Field::Ipv6Dst | Field::Ipv6Flabel | Field::Ipv6Exthdr => ether == Some(IPV6),
            Field::Icmpv6Type | Field::Icmpv6Code => icmp6,
            Field::Ipv6NdTarget => icmp6 && matches!(self.exact(Field::Icmpv6Type), Some(135 | 136)),
            Field::Ipv6NdSll => icmp6 && self.exact(Field::Icmpv6Type) == Some(135),
            Field::Ipv6NdTll => icmp6 && self.exact(Field::Icmpv6Type) == Some(136),
            Field::MplsLabel | Field::MplsTc | Field::MplsBos => matches!(ether, Some(0x8847 | 0x8848)),
            Field::PbbIsid => ether == Some(0x88e7),
        }
    }

    fn is_ip(&self) -> bool {
        matches!(self.exact(Field::EthType), Some(IPV4 | IPV6))
    }

    /// The fields that it looks at.
    pub fn iter(&self) -> impl Iterator<Item = Field> + '_ {
        Field::ALL.into_iter().filter(|&field| self.has(field))
    }

    /// Checks that each field may be there.
    fn check(&self, given: u64) -> Result<(), Failure> {
        let wrong = |&field: &Field| given & field.bit() != 0 && !self.allows(field);
        Field::ALL.iter().find(|field| wrong(field)).map_or(Ok(()), |_| Err(Failure::MATCH_PREREQ))
    }

    /// Reads a match with its header and padding.
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self, Failure> {
        let kind = cursor.u16()?;
        let len = usize::from(cursor.u16()?);
        if kind != 1 {
            return Err(Failure::MATCH_TYPE);
        }
        let body = len.checked_sub(4).ok_or(Failure::MATCH_LEN)?;
        let padding = len.next_multiple_of(8) - len;
        if body + padding > cursor.len() {
            return Err(Failure::MATCH_LEN);
        }
        let mut oxms = cursor.part(body, Failure::MATCH_LEN)?;
        cursor.skip(padding)?;
        Self::read_fields(&mut oxms)
    }

    /// Reads fields up to the end of a part.
    fn read_fields(oxms: &mut Cursor<'_>) -> Result<Self, Failure> {
        let mut read = Self::default();
        let mut given = 0_u64;
        while !oxms.is_empty() {
            let (field, value, mask) = read_oxm(oxms, Failure::MATCH_FIELD, Failure::MATCH_LEN)?;
            if given & field.bit() != 0 {
                return Err(Failure::MATCH_DUP);
            }
            given |= field.bit();
            if value & !field.all() != 0 {
                return Err(Failure::MATCH_VALUE);
            }
            if let Some(mask) = mask {
                if !field.is_maskable() || mask & !field.all() != 0 {
                    return Err(Failure::MATCH_MASK);
                }
                // Specification 1.3.5, section 7.2.3.5.
                if value & !mask != 0 {
                    return Err(Failure { kind: 4, code: 5 });
                }
            } else if field == Field::VlanVid && value != 0 && value & 0x1000 == 0 {
                return Err(Failure::MATCH_VALUE);
            }
            read.set_masked(field, value, mask.unwrap_or(field.all()));
        }
        read.check(given)?;
        Ok(read)
    }

    /// Writes the match with its header and padding.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.u16(1);
        out.u16(0);
        for field in self.iter() {
            let mask = self.mask.of(field);
            let mask = (mask != field.all()).then_some(mask);
            write_oxm(out, field, self.value.of(field), mask);
        }
        out.close(start, start + 2);
        out.pad(start);
    }
}

/// Reads one field: its value, and its mask if it has one.
#[inline]
pub(super) fn read_oxm(
    cursor: &mut Cursor<'_>,
    unknown: Failure,
    bad_len: Failure,
) -> Result<(Field, u128, Option<u128>), Failure> {
    let class = cursor.u16()?;
    let (field, len) = (cursor.u8()?, usize::from(cursor.u8()?));
    let has_mask = field & 1 != 0;
    let field = Field::of(field >> 1).filter(|_| class == BASIC).ok_or(unknown)?;
    if len != field.bytes() << u32::from(has_mask) {
        return Err(bad_len);
    }
    let value = cursor.number(field.bytes())?;
    let mask = if has_mask { Some(cursor.number(field.bytes())?) } else { None };
    Ok((field, value, mask))
}

/// Writes one field.
pub(super) fn write_oxm(out: &mut Vec<u8>, field: Field, value: u128, mask: Option<u128>) {
    let len = field.bytes() << u32::from(mask.is_some());
    out.u16(BASIC);
    out.u8((field as u8) << 1 | u8::from(mask.is_some()));
    out.number(len as u128, 1);
    out.number(value, field.bytes());
    if let Some(mask) = mask {
        out.number(mask, field.bytes());
    }
}
