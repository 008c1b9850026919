//! [`Field`]: a field of a tuple, where it lies, and how its numbers are written.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A field of a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Another name that it is read by.
    pub alias: &'static str,
    /// Bits before it, from the highest of the first word on.
    pub offset: u16,
    /// Bits that it has.
    pub width: u16,
    /// How its numbers are written.
    pub kind: Kind,
}

/// How the numbers of a field are written. All are read as decimal and `0x` numbers too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// `443`
    Number,
    /// `0x0800`
    Hex,
    /// `192.0.2.1`
    Ipv4,
    /// `2001:db8::1`
    Ipv6,
    /// `00:00:5e:00:53:01`
    Mac,
    /// `tcp`
    Protocol,
}

/// What a rule wants of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldMatch {
    /// The bits of the mask are those of the value.
    Masked {
        /// What the bits are.
        value: u128,
        /// Which bits.
        mask: u128,
    },
    /// A number from one to another, both included.
    Range(u128, u128),
}

/// Text that isn't what a field holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// Not of the field's form.
    #[error("{text:?} is no value of {field}")]
    Form {
        /// The field.
        field: &'static str,
        /// The text.
        text: String,
    },
    /// More than fits.
    #[error("{text} is over the {width} bits of {field}")]
    Width {
        /// The field.
        field: &'static str,
        /// The text.
        text: String,
        /// The field's bits.
        width: u16,
    },
    /// A range that ends before it starts.
    #[error("the range {from}-{to} of {field} ends before it starts")]
    Range {
        /// The field.
        field: &'static str,
        /// Its start.
        from: u128,
        /// Its end.
        to: u128,
    },
}

impl Field {
    /// A field of numbers at a place.
    pub const fn new(name: &'static str, offset: u16, width: u16, kind: Kind) -> Self {
        Self { name, alias: name, offset, width, kind }
    }

    /// The field, read by another name too.
    pub const fn or_called(mut self, alias: &'static str) -> Self {
        self.alias = alias;
        self
    }

    /// Whether it is read by a name.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.alias == name
    }

    /// The largest number that fits; as a mask, all of its bits.
    pub const fn all(&self) -> u128 {
        if self.width < 128 { (1 << self.width) - 1 } else { u128::MAX }
    }

    /// The mask of a prefix of so many bits; all bits where it is longer.
    pub const fn prefix(&self, len: u16) -> u128 {
        if len >= self.width {
            self.all()
        } else if len == 0 {
            0
        } else {
            self.all() >> (self.width - len) << (self.width - len)
        }
    }

    /// The parts of it by words, from the highest: word, shift within the word, and width.
    pub(crate) fn bits(&self) -> impl Iterator<Item = (usize, u16, u16)> + use<> {
        let (mut at, end) = (self.offset, self.offset + self.width);
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let stop = end.min(at / 32 * 32 + 32);
                let part = (usize::from(at / 32), (32 - stop % 32) % 32, stop - at);
                at = stop;
                part
            })
        })
    }

    /// The number that a text says.
    pub fn parse(&self, text: &str) -> Result<u128, ValueError> {
        let wrong = || ValueError::Form { field: self.name, text: text.to_owned() };
        let number = self.kind.parse(text).or_else(|| number(text)).ok_or_else(wrong)?;
        if number > self.all() {
            return Err(ValueError::Width { field: self.name, text: text.to_owned(), width: self.width });
        }
        Ok(number)
    }

    /// What a text wants of the field: `V`, `V/LENGTH` of an address, `V/MASK`, `FROM-TO`, or `*`.
    pub fn parse_match(&self, text: &str) -> Result<FieldMatch, ValueError> {
        let wrong = || ValueError::Form { field: self.name, text: text.to_owned() };
        if text == "*" {
            return Ok(FieldMatch::Masked { value: 0, mask: 0 });
        }
        if let Some((value, mask)) = text.split_once('/') {
            let is_address = matches!(self.kind, Kind::Ipv4 | Kind::Ipv6);
            let length = mask.parse::<u16>().ok().filter(|_| is_address);
            let mask = match length {
                Some(length) if length > self.width => return Err(wrong()),
                Some(length) => self.prefix(length),
                None => self.parse(mask)?,
            };
            return Ok(FieldMatch::Masked { value: self.parse(value)? & mask, mask });
        }
        // Some names have a hyphen: ipv6-icmp.
        if let Ok(value) = self.parse(text) {
            return Ok(FieldMatch::Masked { value, mask: self.all() });
        }
        if let Some((from, to)) = text.split_once('-') {
            let (from, to) = (self.parse(from.trim())?, self.parse(to.trim())?);
            if from > to {
                return Err(ValueError::Range { field: self.name, from, to });
            }
            return Ok(FieldMatch::Range(from, to));
        }
        Ok(FieldMatch::Masked { value: self.parse(text)?, mask: self.all() })
    }

    /// A number as people write it.
    pub fn show(&self, number: u128) -> impl fmt::Display + use<> {
        Shown { kind: self.kind, number }
    }

    /// What a rule wants of the field, as [`parse_match`](Self::parse_match) reads it.
    pub fn show_match(&self, wanted: FieldMatch) -> String {
        match wanted {
            FieldMatch::Masked { mask: 0, .. } => "*".to_owned(),
            FieldMatch::Masked { value, mask } if mask == self.all() => self.show(value).to_string(),
            FieldMatch::Masked { value, mask } => {
                let is_address = matches!(self.kind, Kind::Ipv4 | Kind::Ipv6);
                let length = u16::try_from(mask.count_ones()).expect("at most 128 bits");
                match is_address && mask == self.prefix(length) {
                    true => format!("{}/{length}", self.show(value)),
                    false if is_address => format!("{}/{}", self.show(value), self.show(mask)),
                    false => format!("{value:#x}/{mask:#x}"),
                }
            }
            FieldMatch::Range(from, to) => format!("{}-{}", self.show(from), self.show(to)),
        }
    }
}

impl Kind {
    fn parse(self, text: &str) -> Option<u128> {
        match self {
            Self::Number | Self::Hex => None,
            Self::Ipv4 => text.parse::<Ipv4Addr>().ok().map(|address| u128::from(address.to_bits())),
            Self::Ipv6 => text.parse::<Ipv6Addr>().ok().map(Ipv6Addr::to_bits),
            Self::Mac => mac(text),
            Self::Protocol => protocol_number(text).map(u128::from),
        }
    }
}

fn mac(text: &str) -> Option<u128> {
    let mut parts = text.split(':');
    let mut number = 0;
    for _ in 0..6 {
        let part = parts.next().filter(|part| matches!(part.len(), 1 | 2))?;
        // A sign is no digit.
        let byte =
            part.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u8::from_str_radix(part, 16).ok())??;
        number = number << 8 | u128::from(byte);
    }
    parts.next().is_none().then_some(number)
}

fn number(text: &str) -> Option<u128> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let is_right = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    is_right.then(|| u128::from_str_radix(digits, radix).ok())?
}

struct Shown {
    kind: Kind,
    number: u128,
}

impl fmt::Display for Shown {
    #[allow(clippy::cast_possible_truncation)] // addresses and protocols have the bits that are kept
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number;
        match self.kind {
            Kind::Number => write!(f, "{number}"),
            Kind::Hex => write!(f, "{number:#06x}"),
            Kind::Ipv4 => write!(f, "{}", Ipv4Addr::from_bits(number as u32)),
            Kind::Ipv6 => write!(f, "{}", Ipv6Addr::from_bits(number)),
            Kind::Mac => {
                let bytes = (number as u64).to_be_bytes();
                let [_, _, a, b, c, d, e, g] = bytes;
                write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
            }
            Kind::Protocol => match u8::try_from(number).ok().and_then(protocol_name) {
                Some(name) => f.write_str(name),
                None => write!(f, "{number}"),
            },
        }
    }
}

/// IANA's names of protocols that rules call by name.
const PROTOCOLS: [(&str, u8); 16] = [
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", 6),
    ("egp", 8),
    ("udp", 17),
    ("dccp", 33),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmpv6", 58),
    ("ospf", 89),
    ("pim", 103),
    ("vrrp", 112),
    ("sctp", 132),
    ("udplite", 136),
];

/// The name of an IP protocol, where it has one.
pub fn protocol_name(number: u8) -> Option<&'static str> {
    PROTOCOLS.iter().find(|entry| entry.1 == number).map(|entry| entry.0)
}

/// The number of an IP protocol by its name.
pub fn protocol_number(name: &str) -> Option<u8> {
    match name {
        "ipv6-icmp" | "icmp6" => Some(58),
        _ => PROTOCOLS.iter().find(|entry| entry.0.eq_ignore_ascii_case(name)).map(|entry| entry.1),
    }
}

/// The bits of a row of words that belong to fields.
pub(crate) const fn used<const N: usize>(fields: &[Field]) -> [u32; N] {
    let mut words = [0u32; N];
    let mut field = 0;
    while field < fields.len() {
        let mut bit = fields[field].offset as usize;
        while bit < (fields[field].offset + fields[field].width) as usize {
            words[bit / 32] |= 1 << (31 - bit % 32);
            bit += 1;
        }
        field += 1;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT: Field = Field::new("sport", 64, 16, Kind::Number);
    const SRC: Field = Field::new("src", 0, 32, Kind::Ipv4);

    #[test]
    fn matches_are_read_and_written() {
        let masked = |value, mask| FieldMatch::Masked { value, mask };
        let proto = Field::new("proto", 0, 8, Kind::Protocol);
        assert_eq!(proto.parse_match("ipv6-icmp"), Ok(masked(58, 0xff)));
        assert_eq!(proto.parse_match("tcp-udp"), Ok(FieldMatch::Range(6, 17)));
        for (field, text, wanted) in [
            (PORT, "443", masked(443, 0xffff)),
            (PORT, "1024-65535", FieldMatch::Range(1024, 65535)),
            (PORT, "0x400/0xfc00", masked(0x400, 0xfc00)),
            (PORT, "*", masked(0, 0)),
            (SRC, "10.0.0.0/8", masked(0x0a00_0000, 0xff00_0000)),
            (SRC, "10.0.0.1/255.0.0.255", masked(0x0a00_0001, 0xff00_00ff)),
        ] {
            assert_eq!(field.parse_match(text), Ok(wanted), "{text}");
            assert_eq!(field.show_match(wanted), text);
        }
        // A length is one of addresses only.
        assert_eq!(PORT.parse_match("7/4"), Ok(masked(4, 4)));
        for (field, text) in
            [(PORT, "65536"), (PORT, "+1"), (PORT, ""), (PORT, "9-8"), (SRC, "10.0.0.0/33"), (SRC, "10.0.0")]
        {
            assert!(field.parse_match(text).is_err(), "{text}");
        }
        assert_eq!(mac("00:1:ff:aa:B:10"), Some(0x0001_ffaa_0b10));
        assert_eq!((mac("0:1:2:3:4"), mac("0:1:2:3:4:5:6"), mac("+1:1:2:3:4:5")), (None, None, None));
    }
}
