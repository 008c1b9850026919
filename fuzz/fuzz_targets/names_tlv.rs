//! NDN names and packets on the wire: nothing panics, and what is a name is the same again through its
//! encoding, its Name and its URI. The bytes as a URI: what is one has a name on the wire whose URI means the
//! same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wirespeed_namelookup::tlv::{Packet, WireName, WireNameBuf};

fuzz_target!(|bytes: &[u8]| {
    if let Ok((name, rest)) = WireName::parse_first(bytes) {
        let mut again = Vec::new();
        name.encode(&mut again);
        again.extend_from_slice(rest);
        assert_eq!(again, bytes);
        is_one_to_one(name);
    }
    if let Ok(name) = WireName::from_value(bytes) {
        is_one_to_one(name);
    }
    if let Ok(packet) = Packet::parse(bytes) {
        is_one_to_one(packet.name);
    }
    if let Ok(name) = WireNameBuf::from_uri(bytes) {
        is_one_to_one(name.as_wire());
    }
});

fn is_one_to_one(wire: WireName<'_>) {
    let name = wire.to_name().expect("far below the limit");
    assert_eq!(wire.ends().last().unwrap_or(0), wire.as_value().len());
    assert_eq!(name.components().count(), wire.components().count());
    for back in [WireNameBuf::from_name(&name), WireNameBuf::from_uri(wire.to_uri().as_bytes())] {
        assert_eq!(back.expect("a canonical name").as_wire(), wire);
    }
}
