use proptest::prelude::*;

use super::element::write_element;
use super::*;
use crate::name::{Name, NameBuf};

const DIGEST: &str = "28bad4b5275bd392dbb670c75cf0b66f13f7942021e80f55c0e86b374753a548";

fn wire(uri: &str) -> WireNameBuf {
    WireNameBuf::from_uri(uri.as_bytes()).unwrap_or_else(|error| panic!("{uri}: {error}"))
}

/// A name of its bytes on the wire, of which the Name element is all.
fn name(bytes: &[u8]) -> Result<String, TlvError> {
    WireName::parse(bytes).map(|name| name.to_uri())
}

#[test]
fn wire_and_uri() {
    for (value, uri) in [
        (&b""[..], "ndn:/"),
        (b"\x08\x03com\x08\x04parc", "ndn:/com/parc"),
        (b"\x08\x00", "ndn:/..."),
        (b"\x08\x01.", "ndn:/...."),
        (b"\x08\x02..\x08\x03...\x08\x02.a", "ndn:/...../....../.a"),
        (b"\x08\x01/\x08\x03%2F\x08\x01=", "ndn:/%2F/%252F/%3D"),
        (b"\x08\x09AZaz09-_~\x08\x02+ ", "ndn:/AZaz09-_~/%2B%20"),
        (b"\x08\x03\x00\x7f\xff", "ndn:/%00%7F%FF"),
        (b"\x20\x08metadata\x36\x01\x03\x32\x02\x01\x00", "ndn:/32=metadata/54=%03/50=%01%00"),
        (b"\x34\x00\x38\x01.\xfd\xff\xff\x01x", "ndn:/52=.../56=..../65535=x"),
        (b"\x03\x01=\xfd\x00\xfd\x00", "ndn:/3=%3D/253=..."),
    ] {
        let mut bytes = Vec::new();
        write_element(7, value, &mut bytes);
        assert_eq!(name(&bytes).as_deref(), Ok(uri));
        let wire = wire(uri);
        assert_eq!(wire.as_wire().as_value(), value, "{uri}");
        let mut again = Vec::new();
        wire.as_wire().encode(&mut again);
        assert_eq!(again, bytes);
        assert_eq!(WireNameBuf::from_name(&wire.as_wire().to_name().unwrap()), Ok(wire));
    }
}

#[test]
fn digests_are_hexadecimal() {
    for (kind, word) in [(1u8, "sha256digest"), (2, "params-sha256")] {
        let name = wire(&format!("/a/{word}={DIGEST}"));
        let value = name.as_wire().as_value();
        assert_eq!((value.len(), value[3], value[4], value[5]), (3 + 34, kind, 32, 0x28));
        assert_eq!(name.as_wire().to_uri(), format!("ndn:/a/{word}={DIGEST}"));
        assert_eq!(wire(&format!("/a/{word}={}", DIGEST.to_uppercase())), name);
        let escaped: String =
            DIGEST.as_bytes().chunks(2).map(|b| format!("%{}", std::str::from_utf8(b).unwrap())).collect();
        assert_eq!(wire(&format!("/a/{kind}={escaped}")), name);
        for bad in [
            format!("{word}="),
            format!("{word}={}", &DIGEST[1..]),
            format!("{word}={DIGEST}00"),
            format!("{kind}=x"),
        ] {
            assert_eq!(WireNameBuf::from_uri(format!("/{bad}").as_bytes()), Err(UriError::Digest), "{bad}");
        }
        assert_eq!(
            WireNameBuf::from_uri(format!("/{word}={}g", &DIGEST[1..]).as_bytes()),
            Err(UriError::Digest)
        );
    }
}

#[test]
fn uris_that_are_not_canonical() {
    for (uri, canonical) in [
        ("/a/", "ndn:/a"),
        ("ndn:/", "ndn:/"),
        ("ndn://authority", "ndn:/"),
        ("ndn://authority/a", "ndn:/a"),
        ("/8=a%62c", "ndn:/abc"),
        ("/8=...", "ndn:/..."),
        ("/%2e%2e%2e%2E", "ndn:/...."),
        ("/a b?c#d:e", "ndn:/a%20b%3Fc%23d%3Ae"),
        ("/8=a=b", "ndn:/a%3Db"),
        (
            "/v=0/seg=256/off=65536/t=4294967296/seq=18446744073709551615",
            "ndn:/54=%00/50=%01%00/52=%00%01%00%00/56=%00%00%00%01%00%00%00%00/58=%FF%FF%FF%FF%FF%FF%FF%FF",
        ),
    ] {
        assert_eq!(wire(uri).as_wire().to_uri(), canonical, "{uri}");
    }
    for (uri, error) in [
        ("", UriError::NoSlash),
        ("a", UriError::NoSlash),
        ("ndn:", UriError::NoSlash),
        ("ndn:a/b", UriError::NoSlash),
        ("//", UriError::EmptyComponent),
        ("/a//b", UriError::EmptyComponent),
        ("/8=", UriError::EmptyComponent),
        ("/54=/a", UriError::EmptyComponent),
        ("/.", UriError::Periods(1)),
        ("/a/..", UriError::Periods(2)),
        ("/54=%2e", UriError::Periods(1)),
        ("/%", UriError::Percent),
        ("/a%2", UriError::Percent),
        ("/%+2", UriError::Percent),
        ("/%2g", UriError::Percent),
        ("/a=b", UriError::Type),
        ("/=b", UriError::Type),
        ("/0=b", UriError::Type),
        ("/08=b", UriError::Type),
        ("/+8=b", UriError::Type),
        ("/65536=b", UriError::Type),
        ("/SHA256DIGEST=00", UriError::Type),
        ("/v=", UriError::Number),
        ("/v=-1", UriError::Number),
        ("/v=+1", UriError::Number),
        ("/v=%31", UriError::Number),
        ("/v=18446744073709551616", UriError::Number),
    ] {
        assert_eq!(WireNameBuf::from_uri(uri.as_bytes()), Err(error), "{uri}");
    }
}

#[test]
fn typed_components_match_no_generic_ones() {
    let names = ["/a/54=%03", "/a/%36%3D%03", "/a/54%3D%2503", "/a/%03", "/a/50=%03", "/a/8=54%3D%03"];
    let names: Vec<NameBuf> = names.iter().map(|uri| wire(uri).as_wire().to_name().unwrap()).collect();
    let table: crate::NameTable =
        (1u32..).zip(&names[..5]).map(|(result, name)| (name.clone(), result)).collect();
    for (result, name) in (1..).zip(&names[..5]) {
        assert_eq!(table.lookup(name).result, result, "{name}");
    }
}

#[test]
fn malformed_names() {
    use TlvError as E;
    for (bytes, error) in [
        (&b""[..], E::Short { offset: 0, wanted: 1, left: 0 }),
        (b"\x07", E::Short { offset: 1, wanted: 1, left: 0 }),
        (b"\x07\x01", E::Short { offset: 2, wanted: 1, left: 0 }),
        (b"\x07\x05\x08\x03com\x08", E::Rest { offset: 7, left: 1 }),
        (b"\x08\x03com", E::Unexpected { offset: 0, found: 8, wanted: "a Name" }),
        (b"\x07\x05\x08\x04com", E::Short { offset: 4, wanted: 4, left: 3 }),
        // A component that goes past the end of its name, not of the bytes.
        (b"\x07\x04\x08\x03com", E::Short { offset: 4, wanted: 3, left: 2 }),
        (b"\x07\x01\x08", E::Short { offset: 3, wanted: 1, left: 0 }),
        (b"\x07\x02\x00\x00", E::ComponentType { offset: 2, found: 0 }),
        (b"\x07\x06\xfe\x00\x01\x00\x00\x00", E::ComponentType { offset: 2, found: 65_536 }),
        (b"\x07\x03\x01\x01x", E::Digest { offset: 2, found: 1 }),
        (b"\x07\x02\x02\x00", E::Digest { offset: 2, found: 0 }),
        (b"\xfd\x00\x07\x00", E::NotShortest { offset: 0, number: 7 }),
        (b"\x07\xfd\x00\xfc", E::NotShortest { offset: 1, number: 252 }),
        (b"\x07\xfe\x00\x00\xff\xff", E::NotShortest { offset: 1, number: 65_535 }),
        (b"\x07\xff\x00\x00\x00\x00\xff\xff\xff\xff", E::NotShortest { offset: 1, number: 0xffff_ffff }),
        (b"\x07\xff\xff\xff\xff\xff\xff\xff\xff\xff", E::Short { offset: 10, wanted: u64::MAX, left: 0 }),
        (b"\x07\xfe\x00\x01", E::Short { offset: 2, wanted: 4, left: 2 }),
        (b"\x07\x02\x08\xfd", E::Short { offset: 4, wanted: 2, left: 0 }),
    ] {
        assert_eq!(name(bytes), Err(error), "{bytes:x?}");
        assert!(!error.to_string().is_empty());
    }
    assert_eq!(
        WireNameBuf::new().push(ComponentType::PARAMETERS_SHA256_DIGEST, b"x"),
        Err(E::Digest { offset: 0, found: 1 })
    );
}

#[test]
fn names_of_packets() {
    let packet =
        |bytes| Packet::parse(bytes).map(|packet| (packet.kind, packet.name.to_uri(), packet.rest.len()));
    for (bytes, expected) in [
        (&b"\x05\x0d\x07\x05\x08\x03com\x0a\x04\x01\x02\x03\x04"[..], (PacketKind::Interest, "ndn:/com", 0)),
        (b"\x06\x02\x07\x00\x05", (PacketKind::Data, "ndn:/", 1)),
        // Elements that may be ignored.
        (b"\x05\x0c\xfd\x01\x00\x01x\x07\x05\x08\x03com", (PacketKind::Interest, "ndn:/com", 0)),
    ] {
        assert_eq!(packet(bytes), Ok((expected.0, expected.1.to_owned(), expected.2)));
    }
    use TlvError as E;
    for (bytes, error) in [
        (&b"\x07\x00"[..], E::Unexpected { offset: 0, found: 7, wanted: "an Interest or a Data packet" }),
        (
            b"\x64\x02\x50\x00",
            E::Unexpected { offset: 0, found: 0x64, wanted: "an Interest or a Data packet" },
        ),
        (b"\x05\x00", E::NoName { found: 0 }),
        (b"\x05\x02\x20\x00", E::NoName { found: 2 }),
        (b"\x05\x04\x21\x00\x07\x00", E::Unexpected { offset: 2, found: 0x21, wanted: "a Name" }),
        (b"\x05\x04\x1e\x00\x07\x00", E::Unexpected { offset: 2, found: 0x1e, wanted: "a Name" }),
        (b"\x05\x03\x07\x02\x08\x00", E::Short { offset: 4, wanted: 2, left: 1 }),
        (b"\x05\x04\x07\x02\x00\x00", E::ComponentType { offset: 4, found: 0 }),
        (b"\x05\x10\x07\x00", E::Short { offset: 2, wanted: 16, left: 2 }),
    ] {
        assert_eq!(packet(bytes), Err(error), "{bytes:x?}");
    }
}

#[test]
fn numbers_of_components() {
    let value = |value| Component::new(ComponentType::SEGMENT, value).unwrap().number();
    assert_eq!((value(b"\x03"), value(b"\x01\x00")), (Some(3), Some(256)));
    assert_eq!(value(b"\xff\xff\xff\xff\xff\xff\xff\xff"), Some(u64::MAX));
    assert_eq!((value(b""), value(b"\x01\x02\x03")), (None, None));
    assert_eq!(
        wire("/seq=17").as_wire().components().next().and_then(|component| component.number()),
        Some(17)
    );
}

#[test]
fn prefixes_on_the_wire() {
    let owned = wire("/com/%2F/54=%03");
    let name = owned.as_wire();
    let ends: Vec<usize> = name.ends().collect();
    assert_eq!(ends, [5, 8, 11]);
    for (components, uri) in [(0, "ndn:/"), (1, "ndn:/com"), (2, "ndn:/com/%2F"), (3, "ndn:/com/%2F/54=%03")]
    {
        assert_eq!(name.prefix(components).to_uri(), uri);
        let text = name.to_name().unwrap();
        let length = name.prefix(components).to_name().unwrap().len();
        assert_eq!(name.matched(&text, u32::try_from(length).unwrap()), name.prefix(components));
    }
    assert_eq!(name.prefix(9), name);
}

/// A component, of few kinds and values so that they meet.
fn component() -> impl Strategy<Value = (ComponentType, Vec<u8>)> {
    let value = prop_oneof![
        prop::collection::vec(prop::sample::select(b"./=%a8\0\xff".to_vec()), 0..5),
        prop::collection::vec(any::<u8>(), 0..300),
        prop::sample::select(vec![b"54=%03".to_vec(), b"sha256digest=00".to_vec(), b"%2F".to_vec()]),
    ];
    let kind = prop_oneof![Just(8), Just(1), Just(2), Just(54), Just(252), Just(253), 1..=u16::MAX];
    (kind, value, any::<[u8; 32]>()).prop_map(|(kind, value, digest)| {
        let kind = ComponentType::new(kind).expect("not 0");
        (kind, if kind.is_digest() { digest.to_vec() } else { value })
    })
}

fn wire_name() -> impl Strategy<Value = WireNameBuf> {
    prop::collection::vec(component(), 0..6).prop_map(|components| {
        let mut name = WireNameBuf::new();
        components.iter().for_each(|(kind, value)| name.push(*kind, value).expect("digests are 32 bytes"));
        name
    })
}

proptest! {
    #[test]
    fn there_and_back(wire in wire_name()) {
        let mut bytes = Vec::new();
        wire.as_wire().encode(&mut bytes);
        let parsed = WireName::parse(&bytes).unwrap();
        prop_assert_eq!(parsed, wire.as_wire());
        let name = parsed.to_name().unwrap();
        prop_assert_eq!(Name::new(if name.is_empty() { &b"/"[..] } else { name.as_bytes() }), Ok(&*name));
        prop_assert_eq!(name.components().count(), parsed.components().count());
        prop_assert_eq!(&WireNameBuf::from_name(&name).unwrap(), &wire);
        prop_assert_eq!(&WireNameBuf::from_uri(parsed.to_uri().as_bytes()).unwrap(), &wire);
    }

    #[test]
    fn wire_names_are_equal_iff_names_are((one, other) in (wire_name(), wire_name())) {
        let names = [&one, &other].map(|wire| wire.as_wire().to_name().unwrap());
        prop_assert_eq!(one == other, names[0] == names[1]);
        let wire_prefix = other.as_wire().prefix(one.as_wire().components().count()) == one.as_wire();
        prop_assert_eq!(wire_prefix, names[0].is_prefix_of(&names[1]));
    }

    #[test]
    fn what_is_a_uri_becomes_canonical(text in "(/[.%=a/0-9Ff]{0,8}){1,4}") {
        if let Ok(wire) = WireNameBuf::from_uri(text.as_bytes()) {
            let name = wire.as_wire().to_name().unwrap();
            prop_assert_eq!(WireNameBuf::from_name(&name), Ok(wire));
        }
    }

    #[test]
    fn bytes_are_a_name_or_an_error(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(7), Just(8), 0..6u8], 0..64)) {
        if let Ok((name, rest)) = WireName::parse_first(&bytes) {
            let mut again = Vec::new();
            name.encode(&mut again);
            again.extend_from_slice(rest);
            prop_assert_eq!(&again, &bytes);
            prop_assert_eq!(name.ends().last().unwrap_or(0), name.as_value().len());
        }
        let _ = Packet::parse(&bytes);
    }
}
