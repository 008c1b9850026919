//! Frames to tuples: nothing panics; a tuple has no bits but those of its fields, is the same packed and in
//! words, and a 5-tuple says of a frame what the 12 fields say.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, OpenFlowTuple, Tuple};

// The port in two bytes, and the frame.
fuzz_target!(|bytes: &[u8]| {
    let [low, high, frame @ ..] = bytes else { return };
    let port = u16::from_le_bytes([*low, *high]);
    let (five, six, twelve) =
        (of::<Ipv4Tuple>(port, frame), of::<Ipv6Tuple>(port, frame), of::<OpenFlowTuple>(port, frame));
    assert_eq!(twelve.is_some(), frame.len() >= 14, "all that has an Ethernet header has 12 fields");
    assert!(five.is_none() || six.is_none(), "a frame of both versions");
    let Some(twelve) = twelve else { return };
    assert_eq!(twelve.field(&OpenFlowTuple::IN_PORT), port.into());
    if let Some(five) = five {
        assert_eq!(twelve.field(&OpenFlowTuple::DL_TYPE), 0x0800);
        for field in Ipv4Tuple::FIELDS {
            let same = OpenFlowTuple::field_of(field.name).expect("the 12 fields have it");
            assert_eq!(five.field(field), twelve.field(same), "{}: {five} and {twelve}", field.name);
        }
    }
    // From the network header on it is the same packet.
    assert!(Ipv4Tuple::of_packet(frame).is_err() || Ipv6Tuple::of_packet(frame).is_err());
});

fn of<T: Tuple>(port: u16, frame: &[u8]) -> Option<T> {
    let tuple = T::of_frame(port, frame).inspect_err(|why| drop(why.to_string())).ok()?;
    assert_eq!(tuple.and(&T::USED), tuple);
    let mut packed = vec![0; T::PACKED];
    tuple.write_packed(&mut packed);
    assert_eq!(T::from_packed(&packed), tuple);
    assert_eq!(tuple.to_string().parse(), Ok(tuple));
    Some(tuple)
}
