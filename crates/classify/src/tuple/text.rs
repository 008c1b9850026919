//! Tuples as text: `src=10.0.0.1 dst=192.0.2.7 sport=40000 dport=443 proto=tcp`.

use std::fmt;

use super::field::ValueError;
use super::{Kind, Tuple};

/// Text that is not a tuple.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TupleError {
    /// Text without a field.
    #[error("no field is given")]
    Empty,
    /// A word without `=`.
    #[error("{0:?} is not of the form FIELD=VALUE")]
    Word(String),
    /// Text with neither fields nor enough columns.
    #[error(
        "{0} columns: source, destination, ports and protocol are five, or fields are given as FIELD=VALUE"
    )]
    Columns(usize),
    /// Text after the five columns that is not a number.
    #[error("{0:?} behind the five columns is not a number")]
    Behind(String),
    /// A field that the tuple doesn't have.
    #[error("a tuple of {tuple} has no field {field:?}; it has {}", .has.join(", "))]
    Field {
        /// The tuple's name.
        tuple: &'static str,
        /// The field.
        field: String,
        /// The names of the tuple's fields.
        has: Vec<&'static str>,
    },
    /// A field that is given twice.
    #[error("{0} is given twice")]
    Twice(&'static str),
    /// A value that the field can't have.
    #[error(transparent)]
    Value(#[from] ValueError),
}

/// Writes all fields.
pub(super) fn write<T: Tuple>(tuple: &T, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (at, field) in T::FIELDS.iter().enumerate() {
        let space = if at == 0 { "" } else { " " };
        write!(f, "{space}{}={}", field.name, field.show(tuple.field(field)))?;
    }
    Ok(())
}

/// Reads fields in any order. Fields that are not given are those of [`Tuple::PLAIN`]. A protocol may stand
/// alone: `tcp`.
pub(super) fn parse<T: Tuple>(text: &str) -> Result<T, TupleError> {
    let mut tuple = T::PLAIN;
    let mut given = T::default();
    for word in text.split([' ', '\t', ',']).filter(|word| !word.is_empty()) {
        let (field, value) = match word.split_once('=') {
            Some((name, value)) => (T::field_of(name).ok_or_else(|| no_field::<T>(name))?, value),
            None => (alone::<T>(word).ok_or_else(|| TupleError::Word(word.to_owned()))?, word),
        };
        if given.field(field) != 0 {
            return Err(TupleError::Twice(field.name));
        }
        tuple.set_field(field, field.parse(value)?);
        given.set_field(field, field.all());
    }
    if given == T::default() { Err(TupleError::Empty) } else { Ok(tuple) }
}

fn alone<T: Tuple>(word: &str) -> Option<&'static super::Field> {
    let field = T::FIELDS.iter().find(|field| field.kind == Kind::Protocol)?;
    super::protocol_number(word).map(|_| field)
}

/// The error for a field that the tuple doesn't have.
pub(crate) fn no_field<T: Tuple>(name: &str) -> TupleError {
    let has = T::FIELDS.iter().map(|field| field.name).collect();
    TupleError::Field { tuple: T::NAME, field: name.to_owned(), has }
}

#[cfg(test)]
mod tests {
    use super::super::{Ipv4Tuple, OpenFlowTuple, Tuple, VLAN_NONE};

    #[test]
    fn a_frame_has_no_tag_unless_it_is_said() {
        let vlan = |text: &str| {
            let tuple: OpenFlowTuple = text.parse().expect("a tuple");
            tuple.field(&OpenFlowTuple::DL_VLAN)
        };
        assert_eq!(vlan("in_port=1 dl_type=0x0800"), VLAN_NONE.into());
        assert_eq!(["dl_vlan=0", "dl_vlan=7 tcp"].map(vlan), [0, 7]);
    }

    #[test]
    fn tuples_in_words() {
        let text = "src=10.0.0.1 dst=192.0.2.7 sport=40000 dport=443 proto=tcp";
        let tuple: Ipv4Tuple = text.parse().expect("a tuple");
        assert_eq!(tuple, Ipv4Tuple::new([10, 0, 0, 1].into(), [192, 0, 2, 7].into(), 40000, 443, 6));
        assert_eq!(tuple.to_string(), text);
        assert_eq!("tcp, dport=443 nw_dst=192.0.2.7 src=10.0.0.1 sport=40000".parse(), Ok(tuple));
        for wrong in [
            "",
            " , ",
            "src",
            "src=",
            "src=1.2.3",
            "src=1",
            "src=10.0.0.0/8",
            "src=*",
            "port=3",
            "dport=70000",
            "dport=010",
            "dport=+1",
            "dport=1-2",
            "dport = 1",
            "dport=1 dport=1",
            "dport=0 tp_dst=0",
            "proto=06",
            "proto=tcp udp",
            "src=0.0.0.0 src=0.0.0.0",
        ] {
            assert!(wrong.parse::<Ipv4Tuple>().is_err(), "{wrong}");
        }
    }
}
