//! Inner fragments, and policies and associations that are for some ports (RFC 4301, section 7).

use wirespeed::classify::{Ipv4Tuple, Ipv6Tuple};
use wirespeed_esp::read::Lines;
use wirespeed_esp::{Database, Direction, Fault, Inbound, Outbound, Reader};

use crate::{fix_checksum, inner, opened, sealed, with_hop_less};

/// An association, as a line.
fn sa(spi: u32, more: &str) -> String {
    format!(
        "state add src 192.0.2.1 dst 192.0.2.2 proto esp spi {spi} reqid {spi} mode tunnel \
         aead 'rfc4106(gcm(aes))' 0x00112233445566778899aabbccddeeff01020304 128 {more}\n"
    )
}

/// A policy of packets between the sites, as a line.
fn policy(is_v6: bool, dir: &str, words: &str, way: &str) -> String {
    let [src, dst] = if is_v6 { ["fd00:1::/32", "fd00:2::/32"] } else { ["10.1.0.0/16", "10.2.0.0/16"] };
    format!("policy add src {src} dst {dst} {words} dir {dir} {way}\n")
}

fn through(reqid: u32) -> String {
    format!("tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid {reqid} mode tunnel")
}

fn database(text: &str) -> Database {
    let lines = Lines::read(text);
    assert_eq!(lines.skipped, []);
    let mut database = Database::new().unwrap();
    database.apply(lines.changes).unwrap();
    database
}

/// A datagram from port 1000 to port 2000, in three parts of 64 bytes: a first fragment, one from the middle,
/// and the last one.
fn fragments(is_v6: bool) -> [Vec<u8>; 3] {
    let mut whole = inner(is_v6, 192, 0);
    let head = whole.len() - 192;
    whole[head..head + 8].copy_from_slice(&[3, 0xe8, 7, 0xd0, 0, 192, 0, 0]);
    std::array::from_fn(|at| {
        let part = &whole[head + 64 * at..][..64];
        let offset = u16::try_from(64 * at / 8).unwrap();
        let has_more = u16::from(at < 2);
        let mut packet = whole[..head].to_vec();
        if is_v6 {
            (packet[5], packet[6]) = (72, 44);
            let [high, low] = (offset << 3 | has_more).to_be_bytes();
            packet.extend([17, 0, high, low, 0, 0, 0, 9]);
        } else {
            packet[3] = 84;
            packet[6..8].copy_from_slice(&(has_more << 13 | offset).to_be_bytes());
            fix_checksum(&mut packet);
        }
        packet.extend(part);
        packet
    })
}

/// The number of the policy of a packet.
fn number(reader: &Reader, direction: Direction, packet: &[u8]) -> u32 {
    let (rules, mut number) = (reader.rules(direction), [0]);
    if packet[0] >> 4 == 6 {
        rules.v6.lookup_batch(&[Ipv6Tuple::of_packet(packet).unwrap()], &mut number);
    } else {
        rules.v4.lookup_batch(&[Ipv4Tuple::of_packet(packet).unwrap()], &mut number);
    }
    number[0]
}

/// The tunnels that the fragments go out through, or else the decision.
fn out(database: &Database, is_v6: bool) -> [String; 3] {
    let reader = database.reader();
    fragments(is_v6).map(|packet| {
        let number = number(&reader, Direction::Out, &packet);
        match reader.state().outbound(number) {
            Outbound::Protect(sa) => format!("{}", sa.spi()),
            other => format!("{other:?}"),
        }
    })
}

#[test]
fn ports_decide_about_first_fragments_and_others_have_policies_of_their_own() {
    for is_v6 in [false, true] {
        let tunnels = sa(300, "") + &sa(301, "");
        let of_port = policy(is_v6, "out", "proto udp dport 2000 priority 1", &through(300));
        // With nothing else, all but the first fragment have no policy.
        let bare = tunnels.clone() + &of_port;
        assert_eq!(out(&database(&bare), is_v6), ["300", "Pass", "Pass"]);
        let strict = bare.clone() + "policy setdefault out block\n";
        assert_eq!(out(&database(&strict), is_v6), ["300", "Discard", "Discard"]);
        // A policy for all ports takes them along, into the same tunnel or another one, or drops them.
        let all = |way: &str| bare.clone() + &policy(is_v6, "out", "priority 2", way);
        assert_eq!(out(&database(&all(&through(300))), is_v6), ["300"; 3]);
        assert_eq!(out(&database(&all(&through(301))), is_v6), ["300", "301", "301"]);
        assert_eq!(out(&database(&all("action block")), is_v6), ["300", "Discard", "Discard"]);
        // The ports 0 are those of other fragments.
        let zero = policy(is_v6, "out", "sport 0 dport 0 priority 1", &through(301));
        assert_eq!(out(&database(&(bare + &zero)), is_v6), ["300", "301", "301"]);
    }
}

#[test]
fn fragments_that_come_in_need_a_policy_that_is_for_them() {
    for is_v6 in [false, true] {
        let decisions = |text: &str, is_protected: bool| {
            let database = database(text);
            let (reader, state) = (database.reader(), database.state());
            let through = state.sa("192.0.2.2".parse().unwrap(), 300).filter(|_| is_protected);
            fragments(is_v6).map(|packet| state.inbound(number(&reader, Direction::In, &packet), through))
        };
        use Inbound::{Accept, Discard, Unprotected};
        let of_port = sa(300, "") + &policy(is_v6, "in", "proto udp dport 2000", &through(300));
        assert_eq!(decisions(&of_port, true), [Accept, Discard, Discard]);
        // In the clear, those that no policy is for pass unless it is said otherwise.
        assert_eq!(decisions(&of_port, false), [Unprotected, Accept, Accept]);
        let strict = of_port + "policy setdefault in block\n";
        assert_eq!(decisions(&strict, false), [Unprotected, Discard, Discard]);
        let all = sa(300, "") + &policy(is_v6, "in", "", &through(300));
        assert_eq!(decisions(&all, true), [Accept; 3]);
        assert_eq!(decisions(&all, false), [Unprotected; 3]);
    }
}

#[test]
fn an_association_for_some_ports_carries_no_other_fragments() {
    for is_v6 in [false, true] {
        let [src, dst] = if is_v6 { ["fd00:1::/32", "fd00:2::/32"] } else { ["10.1.0.0/16", "10.2.0.0/16"] };
        let between = format!("sel src {src} dst {dst}");
        let of_port = format!("{between} proto udp dport 2000");
        let text = sa(300, "") + &sa(301, &of_port) + &sa(302, &between);
        // The first end of the last one would send anything.
        let (here, there) = (text.clone() + &sa(303, ""), text + &sa(303, &of_port));
        let (here, there) = (database(&here), database(&there));
        let ends = [here.state(), there.state()];
        let of = |end: usize, spi: u32| ends[end].sas().find(|sa| sa.spi() == spi).unwrap();
        let [first, middle, last] = fragments(is_v6);
        for packet in [&first, &middle, &last] {
            // Without ports all parts go through as they are: nothing is put together.
            for spi in [300, 302] {
                let sent = sealed(of(0, spi), packet).unwrap();
                assert_eq!(opened(of(1, spi), &sent), Ok(with_hop_less(packet)), "{spi}");
            }
        }
        let sent = sealed(of(0, 301), &first).unwrap();
        assert_eq!(opened(of(1, 301), &sent), Ok(with_hop_less(&first)));
        for packet in [&middle, &last] {
            assert_eq!(sealed(of(0, 301), packet).err(), Some(Fault::Policy));
            let sent = sealed(of(0, 303), packet).unwrap();
            assert_eq!(opened(of(1, 303), &sent), Err(Fault::Policy));
        }
    }
}
