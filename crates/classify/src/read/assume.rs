//! [`Assumptions`]: facts about packets that are not in a tuple, as the user states them.
//!
//! A firewall looks at more than header fields: the state of a connection, the interface, a mark, a rate. A
//! user who knows these for the packets in question states them, `ct=new` or `in=eth0`. Rules that depend on
//! them are then read as they are for such packets.

use std::fmt;
use std::str::FromStr;

/// A fact about packets that is not in a tuple.
///
/// ```
/// use wirespeed_classify::read::Assumption;
///
/// let assumption: Assumption = "ct=new".parse()?;
/// assert_eq!(assumption.to_string(), "ct=new");
/// assert!("ct=open".parse::<Assumption>().unwrap_err().to_string().contains("established"));
/// # Ok::<(), wirespeed_classify::read::AssumptionError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Assumption {
    key: AssumptionKey,
    /// The value in its normal form: numbers are decimal, flags in the order of their bits.
    value: String,
}

/// The subject of an [`Assumption`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum AssumptionKey {
    /// The state of the packet's connection: `new`, `established`, `related`, `invalid` or `untracked`. A
    /// `+snat` or `+dnat` after it says that the addresses are translated; otherwise they aren't. In every
    /// state but `untracked` packets have no later fragments, because connection tracking reassembles them.
    Ct,
    /// The direction of the packet within its connection: `original` or `reply`.
    CtDirection,
    /// The interface on which the packet came in.
    In,
    /// The interface on which the packet leaves.
    Out,
    /// The packet's mark, a number, as it is before the first rule.
    Mark,
    /// The connection's mark, a number. A packet that is untracked or invalid has no connection: no rule of
    /// iptables or nft with a condition on this mark matches it.
    CtMark,
    /// The zone in which the packet's connection was looked up, a number of 16 bits. Rules of nft and flows
    /// of Open vSwitch have conditions on it; those of nft match no packet without a connection.
    CtZone,
    /// Whether rates are `under` all limits, or `over` them. Hit counts in lists of recent sources are such
    /// limits.
    Limit,
    /// The type of the destination address for the machine: `local`, `unicast`, `broadcast`, `multicast`,
    /// `anycast`, `blackhole`, `unreachable`, `prohibit`, `throw`, `nat`, `xresolve` or `unspec`.
    DstType,
    /// The type of the source address for the machine, with the values of [`DstType`](Self::DstType).
    SrcType,
    /// The type of the frame's destination: `unicast`, `broadcast` or `multicast`.
    PacketType,
    /// The TCP flags that are set, joined by `+`: `syn`, `syn+ack`; or `none`. They are `fin`, `syn`, `rst`,
    /// `psh`, `ack`, `urg`, `ece` and `cwr`.
    TcpFlags,
    /// Whether the packet is a fragment other than the first, which has no ports: `yes` or `no`.
    Fragment,
}

/// Text that is not an assumption, or an assumption that contradicts another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssumptionError {
    /// Text without `=`.
    #[error("{0:?} is not of the form KEY=VALUE, such as ct=new")]
    Form(String),
    /// A key that is not known.
    #[error("nothing can be assumed of {0:?}: the keys are {all}", all = keys())]
    Key(String),
    /// A value that the key can't have.
    #[error("{key} can't be {value:?}: it is {}", .key.values())]
    Value {
        /// The key.
        key: AssumptionKey,
        /// The value.
        value: String,
    },
    /// Two values of one key.
    #[error("{0} and {1} can't both be assumed")]
    Contradiction(Assumption, Assumption),
}

/// The assumptions under which rules are read: at most one for each key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assumptions(Vec<Assumption>);

/// The states of connections.
const STATES: [&str; 5] = ["new", "established", "related", "invalid", "untracked"];
/// The types of addresses, by the names of `RTN_*`.
const ADDRESS_TYPES: [&str; 12] = [
    "local",
    "unicast",
    "broadcast",
    "multicast",
    "anycast",
    "blackhole",
    "unreachable",
    "prohibit",
    "throw",
    "nat",
    "xresolve",
    "unspec",
];
/// TCP flags from the lowest bit on.
const FLAGS: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];

impl AssumptionKey {
    /// All keys.
    pub const ALL: [Self; 13] = [
        Self::Ct,
        Self::CtDirection,
        Self::In,
        Self::Out,
        Self::Mark,
        Self::CtMark,
        Self::CtZone,
        Self::Limit,
        Self::DstType,
        Self::SrcType,
        Self::PacketType,
        Self::TcpFlags,
        Self::Fragment,
    ];

    /// The name in `KEY=VALUE`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ct => "ct",
            Self::CtDirection => "ct-dir",
            Self::In => "in",
            Self::Out => "out",
            Self::Mark => "mark",
            Self::CtMark => "ct-mark",
            Self::CtZone => "ct-zone",
            Self::Limit => "limit",
            Self::DstType => "dst-type",
            Self::SrcType => "src-type",
            Self::PacketType => "pkt-type",
            Self::TcpFlags => "tcp-flags",
            Self::Fragment => "fragment",
        }
    }

    /// An assumption that many packets fit, such as `ct=new`, as an example in messages.
    pub const fn example(self) -> &'static str {
        match self {
            Self::Ct => "ct=new",
            Self::CtDirection => "ct-dir=original",
            Self::In => "in=eth0",
            Self::Out => "out=eth1",
            Self::Mark => "mark=0",
            Self::CtMark => "ct-mark=0",
            Self::CtZone => "ct-zone=0",
            Self::Limit => "limit=under",
            Self::DstType => "dst-type=local",
            Self::SrcType => "src-type=unicast",
            Self::PacketType => "pkt-type=unicast",
            Self::TcpFlags => "tcp-flags=syn",
            Self::Fragment => "fragment=no",
        }
    }

    /// The values, as text for people.
    pub fn values(self) -> String {
        match self {
            Self::In | Self::Out => "the name of an interface".to_owned(),
            Self::Mark | Self::CtMark => "a number of 32 bits".to_owned(),
            Self::CtZone => "a number of 16 bits".to_owned(),
            Self::Ct => format!("{}, with +snat or +dnat where addresses are translated", STATES.join(", ")),
            Self::TcpFlags => format!("none, or some of {} joined by +", FLAGS.join(", ")),
            _ => self.names().join(", "),
        }
    }

    /// The values of a key that has few.
    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::CtDirection => &["original", "reply"],
            Self::Limit => &["under", "over"],
            Self::DstType | Self::SrcType => &ADDRESS_TYPES,
            Self::PacketType => &["unicast", "broadcast", "multicast"],
            Self::Fragment => &["yes", "no"],
            Self::Ct | Self::In | Self::Out | Self::Mark | Self::CtMark | Self::CtZone | Self::TcpFlags => {
                &[]
            }
        }
    }

    /// A value in its normal form; `None` if the key can't have it.
    fn normal(self, value: &str) -> Option<String> {
        match self {
            Self::In | Self::Out => is_interface(value).then(|| value.to_owned()),
            Self::Mark | Self::CtMark => Some(number(value)?.to_string()),
            Self::CtZone => Some(u16::try_from(number(value)?).ok()?.to_string()),
            Self::TcpFlags => flags(value).map(show_flags),
            Self::Ct => connection(value),
            _ => {
                let value = value.to_ascii_lowercase();
                self.names().contains(&&*value).then_some(value)
            }
        }
    }
}

impl fmt::Display for AssumptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Assumption {
    /// An assumption of a value that the key can have.
    pub fn new(key: AssumptionKey, value: &str) -> Result<Self, AssumptionError> {
        let wrong = || AssumptionError::Value { key, value: value.to_owned() };
        Ok(Self { key, value: key.normal(value).ok_or_else(wrong)? })
    }

    /// The subject.
    pub const fn key(&self) -> AssumptionKey {
        self.key
    }

    /// The value, in its normal form.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The number of a mark or of a zone.
    pub(crate) fn number(&self) -> Option<u32> {
        number(&self.value)
    }

    /// The bits of TCP flags.
    pub(crate) fn flags(&self) -> Option<u8> {
        flags(&self.value)
    }
}

impl FromStr for Assumption {
    type Err = AssumptionError;

    fn from_str(text: &str) -> Result<Self, AssumptionError> {
        let (key, value) = text.split_once('=').ok_or_else(|| AssumptionError::Form(text.to_owned()))?;
        let found = AssumptionKey::ALL.into_iter().find(|known| known.as_str() == key);
        Self::new(found.ok_or_else(|| AssumptionError::Key(key.to_owned()))?, value)
    }
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

impl Assumptions {
    /// A list of assumptions. An error if two of them contradict each other.
    pub fn new(all: impl IntoIterator<Item = Assumption>) -> Result<Self, AssumptionError> {
        all.into_iter().try_fold(Self::default(), Self::with)
    }

    /// Adds an assumption. An error if it contradicts another.
    pub fn with(mut self, assumption: Assumption) -> Result<Self, AssumptionError> {
        match self.get(assumption.key) {
            Some(before) if *before == assumption => {}
            Some(before) => return Err(AssumptionError::Contradiction(before.clone(), assumption)),
            None => self.0.push(assumption),
        }
        Ok(self)
    }

    /// The assumption on a key.
    pub fn get(&self, key: AssumptionKey) -> Option<&Assumption> {
        self.0.iter().find(|assumption| assumption.key == key)
    }

    /// All assumptions, in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = &Assumption> {
        self.0.iter()
    }

    /// Whether nothing is assumed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Whether Linux accepts the name for an interface (`dev_valid_name`).
fn is_interface(name: &str) -> bool {
    let is_odd = |c: char| c.is_whitespace() || matches!(c, '/' | ':' | '+' | '*' | '"');
    (1..16).contains(&name.len()) && !matches!(name, "." | "..") && !name.contains(is_odd)
}

/// A number of 32 bits, decimal or with `0x`.
fn number(text: &str) -> Option<u32> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    let is_right = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    is_right.then(|| u32::from_str_radix(digits, radix).ok())?
}

/// The bits of TCP flags.
fn flags(text: &str) -> Option<u8> {
    if text.eq_ignore_ascii_case("none") {
        return Some(0);
    }
    text.split(['+', ',']).try_fold(0, |flags, name| {
        let bit = FLAGS.iter().position(|flag| flag.eq_ignore_ascii_case(name))?;
        Some(flags | 1 << bit)
    })
}

/// The state of a connection in its normal form: `new`, `new+dnat`, `new+dnat+snat`.
fn connection(text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    let mut words = text.split('+');
    let state = words.next().filter(|state| STATES.contains(state))?;
    let mut translated: Vec<&str> = words.collect();
    translated.sort_unstable();
    let is_right = translated.iter().all(|word| matches!(*word, "snat" | "dnat"))
        && translated.is_sorted_by(|a, b| a < b);
    is_right.then(|| [&[state], &*translated].concat().join("+"))
}

fn show_flags(bits: u8) -> String {
    let set = (0..8).filter(|bit| bits >> bit & 1 == 1).map(|bit| FLAGS[bit]);
    let names: Vec<&str> = set.collect();
    if names.is_empty() { "none".to_owned() } else { names.join("+") }
}

fn keys() -> String {
    AssumptionKey::ALL.map(AssumptionKey::as_str).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assumptions_in_words() {
        for (text, normal) in [
            ("ct=NEW", "ct=new"),
            ("ct=new+SNAT+dnat", "ct=new+dnat+snat"),
            ("in=eth0.5", "in=eth0.5"),
            ("mark=0x10", "mark=16"),
            ("ct-zone=0xffff", "ct-zone=65535"),
            ("tcp-flags=ACK,syn", "tcp-flags=syn+ack"),
            ("tcp-flags=none", "tcp-flags=none"),
            ("dst-type=local", "dst-type=local"),
            ("fragment=no", "fragment=no"),
        ] {
            assert_eq!(text.parse::<Assumption>().expect(text).to_string(), normal);
        }
        for wrong in [
            "ct",
            "ct=",
            "ct=open",
            "ct=dnat",
            "ct=new+new",
            "ct=new+dnat+dnat",
            "state=new",
            "in=",
            "in=eth+",
            "in=a b",
            "in=sixteen-letters-",
            "mark=-1",
            "mark=0x100000000",
            "ct-zone=65536",
            "tcp-flags=",
            "tcp-flags=syn+",
            "limit=1",
        ] {
            assert!(wrong.parse::<Assumption>().is_err(), "{wrong}");
        }
        for key in AssumptionKey::ALL {
            assert_eq!(key.example().parse::<Assumption>().expect("an example").key(), key);
        }
        let keys = "state=new".parse::<Assumption>().expect_err("no key").to_string();
        assert!(AssumptionKey::ALL.iter().all(|key| keys.contains(key.as_str())), "{keys}");
    }

    #[test]
    fn no_two_values_of_a_key() {
        let all = |texts: &[&str]| Assumptions::new(texts.iter().map(|text| text.parse().expect("one")));
        assert_eq!(all(&["ct=new", "ct=new", "in=eth0"]).expect("the second says no more").iter().count(), 2);
        let error = all(&["ct=new", "in=a", "ct=related"]).expect_err("two states");
        assert_eq!(error.to_string(), "ct=new and ct=related can't both be assumed");
    }
}
