//! Tuples: the header fields of a packet that rules look at.
//!
//! A tuple is a row of 32-bit words. The fields lie one after another from the highest bit of the first word
//! on, each with its highest bit first. So a shift reads a field's number from a word, and a prefix of an
//! address is a prefix of a word:
//!
//! ```text
//! Ipv4Tuple      src | dst | sport,dport | proto,0,0,0                            4 words, 13 bytes packed
//! Ipv6Tuple      src ×4 | dst ×4 | sport,dport | proto,0,0,0                     10 words, 37 bytes packed
//! OpenFlowTuple  in_port,dl_src.. | ..dl_src | dl_dst.. | ..dl_dst,dl_vlan
//!                | pcp,0,dl_type | tos,proto,0,0 | nw_src | nw_dst | tp_src,tp_dst    9 words, 36 bytes packed
//! OpenFlow13Tuple  in_port,eth_src.. | ..eth_src | eth_dst.. | ..eth_dst,eth_vlan
//!                | eth_type,tos,proto | sport,dport | label | src ×4 | dst ×4 | link   16 words, 64 bytes packed
//! ```
//!
//! In memory and in images the words are little-endian, as engines and kernels read them. The packed form has
//! the words in network order without the padding at the end, like the fields on the wire.

mod error;
mod field;
mod fields;
mod frame;
mod ipv4;
mod ipv6;
mod openflow;
mod openflow13;
mod text;

use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::str::FromStr;

use bytemuck::Pod;
use wirespeed_table::Domain;

use crate::domain::UpdateError;
use crate::rules::{Changed, RuleSet};
use crate::update::RuleUpdate;

pub use error::TupleError;
pub(crate) use field::decimal;
pub use field::{Field, FieldMatch, Kind, ValueError, protocol_name, protocol_number};
pub(crate) use fields::{Fields, Wanted};
pub use frame::{FrameError, Layer, has_ports};
pub use ipv4::Ipv4Tuple;
pub use ipv6::Ipv6Tuple;
pub use openflow::{OpenFlowTuple, VLAN_NONE};
pub use openflow13::OpenFlow13Tuple;

/// The header fields of a packet, as a row of words. A mask has this form, too.
///
/// It is plain data: `bytemuck::cast_slice` turns tuples into words, [`WORDS`](Self::WORDS) for each.
pub trait Tuple:
    Copy
    + Eq
    + Ord
    + Hash
    + Debug
    + Default
    + Display
    + FromStr<Err = TupleError>
    + Pod
    + Send
    + Sync
    + 'static
    + for<'k> Domain<
        Key<'k> = &'k Self,
        Keys<'k> = &'k [Self],
        Found = u32,
        Result = u32,
        Source = RuleSet<Self>,
        Model = RuleSet<Self>,
        Update = RuleUpdate<Self>,
        Change = Changed<Self>,
        Error = UpdateError,
    >
{
    /// The name that users know.
    const NAME: &'static str;
    /// The number of 32-bit words.
    const WORDS: usize;
    /// The number of packed bytes.
    const PACKED: usize;
    /// The fields, in the order of their offsets.
    const FIELDS: &'static [Field];
    /// All bits that belong to a field. The other bits are zero in every tuple and every mask.
    const USED: Self;
    /// Values of fields in a text that does not give them: 0, but for the VLAN of a frame without a tag.
    const PLAIN: Self;

    /// The words.
    fn words(&self) -> &[u32];

    /// The words, mutable.
    fn words_mut(&mut self) -> &mut [u32];

    /// The tuple of these words. It drops bits that belong to no field. Panics if the number of words is not
    /// [`WORDS`](Self::WORDS).
    fn from_words(words: &[u32]) -> Self {
        let mut tuple = Self::default();
        tuple.words_mut().copy_from_slice(words);
        tuple.and(&Self::USED)
    }

    /// The bits that both have: a tuple under a mask.
    #[inline]
    fn and(mut self, other: &Self) -> Self {
        for (word, other) in self.words_mut().iter_mut().zip(other.words()) {
            *word &= other;
        }
        self
    }

    /// The bits that either has.
    #[inline]
    fn or(mut self, other: &Self) -> Self {
        for (word, other) in self.words_mut().iter_mut().zip(other.words()) {
            *word |= other;
        }
        self
    }

    /// Whether the tuple under a mask is a value.
    #[inline]
    fn matches(&self, value: &Self, mask: &Self) -> bool {
        let differ = self.words().iter().zip(value.words()).zip(mask.words()).map(|((t, v), m)| t & m ^ v);
        differ.fold(0, |all, word| all | word) == 0
    }

    /// The number of bits that are set; for a mask, the number of bits that it looks at.
    fn ones(&self) -> u32 {
        self.words().iter().map(|word| word.count_ones()).sum()
    }

    /// The number in a field.
    fn field(&self, field: &Field) -> u128 {
        field.bits().fold(0, |number, (word, shift, width)| {
            number << width | u128::from(self.words()[word] >> shift & low_bits(width))
        })
    }

    /// Sets the number of a field; drops bits over the field's width.
    fn set_field(&mut self, field: &Field, number: u128) {
        let mut rest = field.width;
        for (word, shift, width) in field.bits() {
            rest -= width;
            #[allow(clippy::cast_possible_truncation)] // as many bits as the part has
            let part = (number >> rest) as u32 & low_bits(width);
            let word = &mut self.words_mut()[word];
            *word = *word & !(low_bits(width) << shift) | part << shift;
        }
    }

    /// The tuple with a number in a field.
    #[must_use]
    fn with(mut self, field: &Field, number: u128) -> Self {
        self.set_field(field, number);
        self
    }

    /// Writes the packed form. Panics unless there are [`PACKED`](Self::PACKED) bytes.
    fn write_packed(&self, bytes: &mut [u8]) {
        assert_eq!(bytes.len(), Self::PACKED, "the bytes of a packed tuple");
        for (to, word) in bytes.chunks_mut(4).zip(self.words()) {
            to.copy_from_slice(&word.to_be_bytes()[..to.len()]);
        }
    }

    /// The tuple of a packed form. Panics unless there are [`PACKED`](Self::PACKED) bytes.
    fn from_packed(bytes: &[u8]) -> Self {
        assert_eq!(bytes.len(), Self::PACKED, "the bytes of a packed tuple");
        let mut tuple = Self::default();
        for (word, from) in tuple.words_mut().iter_mut().zip(bytes.chunks(4)) {
            let mut four = [0; 4];
            four[..from.len()].copy_from_slice(from);
            *word = u32::from_be_bytes(four);
        }
        tuple.and(&Self::USED)
    }

    /// The field of a name or an alias.
    fn field_of(name: &str) -> Option<&'static Field> {
        Self::FIELDS.iter().find(|field| field.is_called(name))
    }

    /// The tuple of an Ethernet frame that came in on a port. The docs of each type say how it treats packets
    /// that lack a field.
    fn of_frame(in_port: u16, frame: &[u8]) -> Result<Self, FrameError>;
}

impl Fields {
    /// The fields of a tuple.
    pub(crate) const fn of<T: Tuple>() -> Self {
        Self { tuple: T::NAME, all: T::FIELDS }
    }
}

/// A number of ones from the lowest bit on, at most 32.
const fn low_bits(width: u16) -> u32 {
    if width < 32 { (1 << width) - 1 } else { u32::MAX }
}

/// What all tuples have in common beside their fields: a row of words, and what follows from it.
macro_rules! words {
    ($tuple:ident, $words:literal, $packed:literal, $name:literal, $fields:ident, $plain:expr) => {
        impl Tuple for $tuple {
            const NAME: &'static str = $name;
            const WORDS: usize = $words;
            const PACKED: usize = $packed;
            const FIELDS: &'static [Field] = &$fields;
            const USED: Self = Self($crate::tuple::field::used(&$fields));
            const PLAIN: Self = Self($plain);

            #[inline]
            fn words(&self) -> &[u32] {
                &self.0
            }

            #[inline]
            fn words_mut(&mut self) -> &mut [u32] {
                &mut self.0
            }

            fn of_frame(in_port: u16, frame: &[u8]) -> Result<Self, FrameError> {
                Self::from_frame(in_port, frame)
            }
        }

        impl std::fmt::Display for $tuple {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::tuple::text::write(self, f)
            }
        }

        impl std::fmt::Debug for $tuple {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({self})", stringify!($tuple))
            }
        }

        impl std::str::FromStr for $tuple {
            type Err = $crate::tuple::TupleError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::tuple::text::parse(text)
            }
        }
    };
}
use words;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn holds<T: Tuple>(words: &[u32]) {
        let tuple = T::from_words(&words[..T::WORDS]);
        assert_eq!(tuple.and(&T::USED), tuple);
        let mut packed = vec![0xa5; T::PACKED];
        tuple.write_packed(&mut packed);
        assert_eq!(T::from_packed(&packed), tuple);
        assert_eq!(tuple.to_string().parse::<T>().expect("what it writes it reads"), tuple);
        let fields = T::FIELDS.iter().fold(T::default(), |t, field| t.with(field, tuple.field(field)));
        assert_eq!(fields, tuple, "fields hold all that there is");
        assert!(tuple.matches(&tuple, &T::USED) && tuple.matches(&T::default(), &T::default()));
    }

    proptest! {
        #[test]
        fn packed_text_and_fields_are_the_tuple(words in proptest::array::uniform16(any::<u32>())) {
            holds::<Ipv4Tuple>(&words);
            holds::<Ipv6Tuple>(&words);
            holds::<OpenFlowTuple>(&words);
            holds::<OpenFlow13Tuple>(&words);
        }

        #[test]
        fn a_match_is_by_the_bits_of_the_mask(t in proptest::array::uniform4(any::<u32>()), flip in 0..104usize, m in proptest::array::uniform4(any::<u32>())) {
            let (tuple, mask) = (Ipv4Tuple::from_words(&t), Ipv4Tuple::from_words(&m));
            let mut other = tuple;
            other.words_mut()[flip / 32] ^= 1 << (31 - flip % 32);
            let is_seen = mask.words()[flip / 32] >> (31 - flip % 32) & 1 == 1;
            prop_assert_eq!(other.matches(&tuple.and(&mask), &mask), !is_seen);
        }
    }

    #[test]
    fn widths_are_those_of_the_papers() {
        let bits = |fields: &[Field]| fields.iter().map(|field| field.width).sum::<u16>();
        assert_eq!(bits(Ipv4Tuple::FIELDS), 104);
        assert_eq!(bits(Ipv6Tuple::FIELDS), 296);
        // With the padding of `ofp_match` it is the paper's 288.
        assert_eq!((bits(OpenFlowTuple::FIELDS), OpenFlowTuple::PACKED), (288 - 24, 36));
        assert_eq!(OpenFlowTuple::FIELDS.len(), 12);
    }
}
