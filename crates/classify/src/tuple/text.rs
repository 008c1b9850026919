//! Tuples as text: `src=10.0.0.1 dst=192.0.2.7 sport=40000 dport=443 proto=tcp`.

use std::fmt;

use super::{Fields, Tuple, TupleError};

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
            Some((name, value)) => (Fields::of::<T>().get(name)?, value),
            None => (Fields::of::<T>().of_protocol(word)?, word),
        };
        if given.field(field) != 0 {
            return Err(TupleError::Twice(field.name));
        }
        tuple.set_field(field, field.parse(value)?);
        given.set_field(field, field.all());
    }
    if given == T::default() { Err(TupleError::Empty) } else { Ok(tuple) }
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
