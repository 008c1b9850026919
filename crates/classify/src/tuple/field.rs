//! [`Field`]: a field of a tuple, with its position and the text form of its numbers.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A field of a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Another name that readers accept.
    pub alias: &'static str,
    /// The bits before it, from the highest bit of the first word on.
    pub offset: u16,
    /// The width in bits.
    pub width: u16,
    /// The text form of its numbers.
    pub kind: Kind,
}

/// The text form of a field's numbers. Numbers other than addresses are read as decimal numbers without
/// leading zeros and as `0x` numbers too, MAC addresses also as `0x` numbers.
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

/// The condition of a rule on a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldMatch {
    /// A value under a mask.
    Masked {
        /// The value.
        value: u128,
        /// The mask.
        mask: u128,
    },
    /// A number from one to another, both included.
    Range(u128, u128),
}

/// Text that is not a value of a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// Text that doesn't have the field's form.
    #[error("{text:?} is not a value of {field}")]
    Form {
        /// The field.
        field: &'static str,
        /// The text.
        text: String,
    },
    /// A number over the field's width.
    #[error("{text} is over the {width} bits of {field}")]
    Width {
        /// The field.
        field: &'static str,
        /// The text.
        text: String,
        /// The field's bits.
        width: u16,
    },
    /// A decimal number that others read as octal.
    #[error("{text:?} of {field} has a leading zero, which could mean octal")]
    LeadingZero {
        /// The field.
        field: &'static str,
        /// The text.
        text: String,
    },
    /// A mask of a field of numbers that isn't in hex: it could be taken for a length.
    #[error("{text:?} is no mask of {field}: one is 0x and hex digits")]
    Mask {
        /// The field.
        field: &'static str,
        /// The text.
        text: String,
    },
    /// A value with bits that its mask doesn't have.
    #[error("{bits} are set in {text} of {field}: without them it is {masked}")]
    BesideMask {
        /// The field.
        field: &'static str,
        /// The name of the bits.
        bits: &'static str,
        /// The text.
        text: String,
        /// The text without these bits.
        masked: String,
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
        let is_plain = match self.kind {
            Kind::Ipv4 | Kind::Ipv6 => false,
            Kind::Mac => is_hex(text),
            Kind::Number | Kind::Hex | Kind::Protocol => true,
        };
        self.checked(text, self.kind.parse(text).or_else(|| number(text).filter(|_| is_plain)))
    }

    /// The number that a column of a trace says, where addresses may be decimal numbers.
    #[cfg(feature = "text")]
    pub(crate) fn parse_column(&self, text: &str) -> Result<u128, ValueError> {
        self.checked(text, self.kind.parse(text).or_else(|| number(text)))
    }

    /// What a text was read as, where the field can hold it.
    fn checked(&self, text: &str, number: Option<u128>) -> Result<u128, ValueError> {
        let (field, shown) = (self.name, || text.to_owned());
        match number {
            Some(number) if number <= self.all() => Ok(number),
            Some(_) => Err(ValueError::Width { field, text: shown(), width: self.width }),
            None if has_leading_zero(text) => Err(ValueError::LeadingZero { field, text: shown() }),
            None => Err(ValueError::Form { field, text: shown() }),
        }
    }

    /// Parses a condition on the field: `V`, `V/LENGTH` of an address, `V/MASK`, `FROM-TO`, or `*`. A value
    /// has no bit beside its mask. A mask of numbers is in hex.
    pub fn parse_match(&self, text: &str) -> Result<FieldMatch, ValueError> {
        if text == "*" {
            return Ok(FieldMatch::Masked { value: 0, mask: 0 });
        }
        if let Some((value, mask)) = text.split_once('/') {
            let (value, mask) = (self.parse(value)?, self.parse_mask(mask)?);
            return if value & !mask == 0 {
                Ok(FieldMatch::Masked { value, mask })
            } else {
                Err(self.beside_mask(text, value, mask))
            };
        }
        // Some names have a hyphen: ipv6-icmp.
        if let Ok(value) = self.parse(text) {
            return Ok(FieldMatch::Masked { value, mask: self.all() });
        }
        if let Some((from, to)) = text.split_once('-') {
            let (from, to) = (self.parse(from)?, self.parse(to)?);
            if from > to {
                return Err(ValueError::Range { field: self.name, from, to });
            }
            return Ok(FieldMatch::Range(from, to));
        }
        Ok(FieldMatch::Masked { value: self.parse(text)?, mask: self.all() })
    }

    /// The mask that a text says, or the length of a prefix.
    fn parse_mask(&self, text: &str) -> Result<u128, ValueError> {
        let is_length = self.is_address() && text.bytes().all(|b| b.is_ascii_digit());
        if is_length {
            let length = decimal(text).and_then(|length| u16::try_from(length).ok());
            let length = length.filter(|&length| length <= self.width);
            return self.checked(text, length.map(|length| self.prefix(length)));
        }
        if matches!(self.kind, Kind::Number | Kind::Hex | Kind::Protocol) && !is_hex(text) {
            return Err(ValueError::Mask { field: self.name, text: text.to_owned() });
        }
        self.parse(text)
    }

    fn beside_mask(&self, text: &str, value: u128, mask: u128) -> ValueError {
        let bits = if self.is_address() { "host bits" } else { "bits beside the mask" };
        let masked = self.show_match(FieldMatch::Masked { value: value & mask, mask });
        ValueError::BesideMask { field: self.name, bits, text: text.to_owned(), masked }
    }

    /// Whether it is an address of IP, which may have the length of a prefix.
    const fn is_address(&self) -> bool {
        matches!(self.kind, Kind::Ipv4 | Kind::Ipv6)
    }

    /// A number as people write it.
    pub fn show(&self, number: u128) -> impl fmt::Display + use<> {
        Shown { kind: self.kind, number }
    }

    /// Writes a condition on the field as [`parse_match`](Self::parse_match) reads it.
    pub fn show_match(&self, wanted: FieldMatch) -> String {
        match wanted {
            FieldMatch::Masked { mask: 0, .. } => "*".to_owned(),
            FieldMatch::Masked { value, mask } if mask == self.all() => self.show(value).to_string(),
            FieldMatch::Masked { value, mask } => {
                let is_address = self.is_address();
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
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(_) if !is_hex(text) => None,
        Some(digits) => u128::from_str_radix(digits, 16).ok(),
        None => decimal(text),
    }
}

fn is_hex(text: &str) -> bool {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// A number of decimal digits alone, without leading zeros.
pub(crate) fn decimal(text: &str) -> Option<u128> {
    let is_right = text.bytes().all(|b| b.is_ascii_digit()) && !has_leading_zero(text);
    is_right.then(|| text.parse().ok())?
}

fn has_leading_zero(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit())
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
    }

    #[test]
    fn what_could_mean_something_else_is_refused() {
        let proto = Field::new("proto", 0, 8, Kind::Protocol);
        let dl_src = Field::new("dl_src", 0, 48, Kind::Mac);
        let wide = Field::new("src", 0, 128, Kind::Ipv6);
        for (field, text, says) in [
            (SRC, "10.0.0.1/8", "host bits are set in 10.0.0.1/8 of src: without them it is 10.0.0.0/8"),
            (SRC, "10.0.0.1/0", "host bits are set in 10.0.0.1/0 of src: without them it is *"),
            (SRC, "10.0.0.1/255.0.0.0", "without them it is 10.0.0.0/8"),
            // A wildcard of routers, where the bits say what does not count.
            (SRC, "10.0.0.0/0.0.0.255", "host bits are set"),
            (wide, "2001:db8::1/32", "without them it is 2001:db8::/32"),
            (PORT, "0x15/0xfff0", "bits beside the mask are set in 0x15/0xfff0 of sport"),
            (PORT, "16/16", "\"16\" is no mask of sport"),
            (PORT, "7/4", "\"4\" is no mask of sport"),
            (PORT, "0/", "\"\" is no mask of sport"),
            (PORT, "1-5/0xf", "\"1-5\" is not a value of sport"),
            (PORT, "*/0xf", "\"*\" is not a value of sport"),
            (proto, "0/tcp", "\"tcp\" is no mask of proto"),
            (PORT, "010", "\"010\" of sport has a leading zero"),
            (PORT, "00", "leading zero"),
            (PORT, "1-010", "leading zero"),
            (proto, "06", "leading zero"),
            (SRC, "10.0.0.0/08", "\"08\" of src has a leading zero"),
            (SRC, "10.0.0.0/33", "\"33\" is not a value of src"),
            (SRC, "10.0.0.0/+8", "\"+8\" is not a value of src"),
            (SRC, "10.0.0.0/70000", "\"70000\" is not a value of src"),
            (SRC, "10.0.0.0/", "\"\" is not a value of src"),
            (SRC, "10.0.0.0/8/8", "\"8/8\" is not a value of src"),
            (SRC, "10.0.0.0/0xff000000", "not a value of src"),
            (SRC, "10.0.0", "not a value of src"),
            (SRC, "010.0.0.1", "not a value of src"),
            (SRC, "1", "not a value of src"),
            (SRC, "0x0a000001", "not a value of src"),
            (SRC, "1-5", "not a value of src"),
            (wide, "1", "not a value of src"),
            (dl_src, "5", "not a value of dl_src"),
            (dl_src, "02:00:00:00:00:01/02:00:00:00:00:00", "bits beside the mask are set"),
            (PORT, "65536", "over the 16 bits"),
            (PORT, "9-8", "ends before it starts"),
            (PORT, "1-", "\"\" is not a value of sport"),
            (PORT, "-5", "\"\" is not a value of sport"),
            (PORT, "1-2-3", "not a value of sport"),
            (PORT, "1 - 5", "not a value of sport"),
            (PORT, " 1", "not a value of sport"),
            (PORT, "", "not a value of sport"),
            (PORT, "+1", "not a value of sport"),
            (PORT, "-1", "not a value of sport"),
            (PORT, "1e3", "not a value of sport"),
            (PORT, "0x", "not a value of sport"),
            (PORT, "0x+1", "not a value of sport"),
            (PORT, "1_000", "not a value of sport"),
            (PORT, "٣", "not a value of sport"),
        ] {
            let error = field.parse_match(text).expect_err(text).to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        assert_eq!(dl_src.parse("0x20000000000"), Ok(0x0200_0000_0000));
        assert_eq!((SRC.parse_column("16"), SRC.parse_column("10.0.0.1")), (Ok(16), Ok(0x0a00_0001)));
        assert!(SRC.parse_column("016").is_err());
        assert_eq!(mac("00:1:ff:aa:B:10"), Some(0x0001_ffaa_0b10));
        assert_eq!((mac("0:1:2:3:4"), mac("0:1:2:3:4:5:6"), mac("+1:1:2:3:4:5")), (None, None, None));
    }
}
