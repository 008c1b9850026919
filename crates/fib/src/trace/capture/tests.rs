use std::io;

use super::super::magic::SECTION;
use super::super::packets::{ENHANCED_PACKET, INTERFACE, PACKET, SIMPLE_PACKET};
use super::*;
use crate::address::{V4, V6};
use crate::trace::is_capture;
use crate::trace::packet::tests::{ethernet, v4};

/// A pcap of these packets; `magic` in the order of the file.
fn pcap_of(magic: [u8; 4], link: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let big = magic[0] == 0xa1;
    let u32_bytes = |n: usize| {
        let n = u32::try_from(n).unwrap();
        if big { n.to_be_bytes() } else { n.to_le_bytes() }
    };
    let version: [u8; 4] = if big { [0, 2, 0, 4] } else { [2, 0, 4, 0] };
    let mut file = [magic, version, [0; 4], [0; 4], u32_bytes(40), u32_bytes(link as usize)].concat();
    for packet in packets {
        // A snapshot of a longer packet, with a time that no clock shows.
        let head = [u32_bytes(1), [0xff; 4], u32_bytes(packet.len()), u32_bytes(1500)];
        file.extend([head.concat(), packet.clone()].concat());
    }
    file
}

fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let u32_bytes = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let pad = (4 - body.len() % 4) % 4;
    let len = u32_bytes(u32::try_from(12 + body.len() + pad).unwrap());
    [&u32_bytes(kind), &len, body, &vec![0; pad], &len].concat()
}

/// A pcapng with an Ethernet and a raw interface, a packet of each kind, and blocks to pass over.
fn pcapng_of(big: bool) -> Vec<u8> {
    let u32_bytes = |n: usize| {
        let n = u32::try_from(n).unwrap();
        if big { n.to_be_bytes() } else { n.to_le_bytes() }
    };
    let u16_bytes = |n: u16| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let mark = u32_bytes(0x1a2b_3c4d);
    let section = block(big, SECTION, &[&mark[..], &[0; 4], &[0xff; 8]].concat());
    // Its option list has no end, and one option is longer than the block.
    let interface =
        |link| block(big, INTERFACE, &[&u16_bytes(link)[..], &[0; 6], &[9, 9, 200, 200]].concat());
    let enhanced = |index: usize, packet: &[u8]| {
        let len = u32_bytes(packet.len());
        block(big, ENHANCED_PACKET, &[&u32_bytes(index)[..], &[0; 8], &len, &len, packet].concat())
    };
    let old = |packet: &[u8]| {
        let len = u32_bytes(packet.len());
        block(big, PACKET, &[&u16_bytes(1)[..], &[0; 10], &len, &len, packet].concat())
    };
    let simple = |packet: &[u8]| block(big, SIMPLE_PACKET, &[&u32_bytes(1500)[..], packet].concat());
    [
        section,
        interface(1),
        interface(101),
        enhanced(0, &ethernet(1)),
        block(big, 0x0bad, &[1; 40]),
        enhanced(1, &v4(2)),
        old(&v4(3)),
        simple(&ethernet(4)),
    ]
    .concat()
}

fn last_octets(trace: &Trace<V4>) -> Vec<u8> {
    trace.keys.iter().map(|key| key.octet(3)).collect()
}

#[test]
fn pcap_of_every_magic_number() {
    for magic in [0xa1b2_c3d4u32, 0xa1b2_3c4d] {
        for magic in [magic.to_be_bytes(), magic.to_le_bytes()] {
            let file = pcap_of(magic, 1, &[ethernet(1), vec![0; 60], ethernet(2)]);
            assert!(is_capture(&file));
            let trace = from_capture::<V4>(&file[..], "t").unwrap();
            assert_eq!((last_octets(&trace), trace.not_ip, trace.damage), (vec![1, 2], 1, None));
        }
    }
}

#[test]
fn pcapng_of_either_order_and_two_sections() {
    for big in [false, true] {
        let file = [pcapng_of(big), pcapng_of(!big)].concat();
        assert!(is_capture(&file));
        let trace = from_capture::<V4>(&file[..], "t").unwrap();
        assert_eq!(last_octets(&trace), [1, 2, 3, 4, 1, 2, 3, 4]);
        assert_eq!(trace.damage, None);
    }
}

#[test]
fn a_cut_capture_keeps_what_is_whole() {
    let pcap = pcap_of(0xa1b2_c3d4u32.to_le_bytes(), 1, &[ethernet(1), ethernet(2)]);
    for (file, whole) in [(pcap, 2), (pcapng_of(false), 4)] {
        for len in 0..file.len() {
            match from_capture::<V4>(&file[..len], "cut.pcap") {
                Ok(trace) => {
                    assert!(!trace.keys.is_empty() && trace.keys.len() <= whole);
                    assert!(trace.damage.is_none_or(|damage| damage.starts_with("cut.pcap: ")));
                }
                Err(error) => assert!(error.to_string().contains("cut.pcap"), "{error}"),
            }
        }
        let cut = from_capture::<V4>(&file[..file.len() - 1], "cut.pcap").unwrap();
        assert_eq!(cut.keys.len(), whole - 1);
        assert!(cut.damage.unwrap().contains("cut off"));
    }
}

#[test]
fn any_flipped_byte_is_survived() {
    for file in [pcap_of(0xa1b2_3c4du32.to_be_bytes(), 1, &[ethernet(1)]), pcapng_of(true)] {
        for at in 0..file.len() {
            for flip in [1, 0x80, 0xff] {
                let mut file = file.clone();
                file[at] ^= flip;
                let _ = from_capture::<V4>(&file[..], "t");
                let _ = from_capture::<V6>(&file[..], "t");
            }
        }
    }
}

#[test]
fn a_source_a_byte_at_a_time() {
    struct Slow<'a>(&'a [u8]);
    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let len = buffer.len().min(1);
            self.0.read(&mut buffer[..len])
        }
    }
    let file = pcapng_of(false);
    assert_eq!(from_capture::<V4>(Slow(&file), "t").unwrap().keys.len(), 4);
}

#[test]
fn a_wrong_family_and_no_ip_say_so() {
    let file = pcap_of(0xa1b2_c3d4u32.to_le_bytes(), 1, &[ethernet(1)]);
    let error = from_capture::<V6>(&file[..], "a.pcap").unwrap_err();
    assert_eq!(error.to_string(), "trace a.pcap holds IPv4 addresses, the table is IPv6");
    let file = pcap_of(0xa1b2_c3d4u32.to_le_bytes(), 147, &[ethernet(1)]);
    let error = from_capture::<V4>(&file[..], "a.pcap").unwrap_err();
    assert_eq!(error.to_string(), "trace a.pcap holds no IPv4 address: none of its 1 packets is IP");
}

#[test]
fn a_record_without_end_takes_no_memory() {
    let mut file = pcap_of(0xa1b2_c3d4u32.to_le_bytes(), 1, &[ethernet(1), ethernet(2)]);
    let second = file.len() - 34 - 8;
    file[second..second + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let source = file.chain(io::repeat(0).take(1 << 26));
    let trace = from_capture::<V4>(source, "t").unwrap();
    assert_eq!(trace.keys.len(), 1);
    assert!(trace.damage.unwrap().contains("over 16777216 bytes"));
}
