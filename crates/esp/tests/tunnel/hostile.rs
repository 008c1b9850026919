//! Packets that are wrong: each is counted for what it is, none gets out, and nothing panics.

use sha1::{Digest, Sha1};
use wirespeed_esp::{Arrival, Fault, Keys, Sa, SaConfig, Secret};
use wirespeed_rng::Rng;

use crate::{PORTS, arrival, config, fix_checksum, inner, opened, sealed, suites, with_hop_less};

/// The key of packets that are forged with right tags.
const KEY: [u8; 20] = [7; 20];

fn null() -> SaConfig {
    config(Keys::NullSha1 { authentication: Secret::from(&KEY[..]) }, false)
}

fn tag(bytes: &[u8]) -> Vec<u8> {
    let padded = |padding: u8| {
        let mut block = [padding; 64];
        block.iter_mut().zip(KEY).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Sha1::digest([&padded(0x36)[..], bytes].concat());
    Sha1::digest([&padded(0x5c)[..], &inner].concat())[..12].to_vec()
}

/// A packet with this text, behind right headers, and a right tag.
fn forged(number: u32, text: &[u8]) -> Vec<u8> {
    let esp = [&0x1234_5678_u32.to_be_bytes()[..], &number.to_be_bytes(), text].concat();
    let esp = [&esp[..], &tag(&esp)].concat();
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 50, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    packet.extend(esp);
    let length = (packet.len() as u16).to_be_bytes();
    packet[2..4].copy_from_slice(&length);
    fix_checksum(&mut packet);
    packet
}

#[test]
fn texts_that_lie_are_found() {
    let there = Sa::new(&null()).unwrap();
    let whole = inner(false, 30, 0);
    let with = |trailer: &[u8]| [&whole[..], trailer].concat();
    // The inner packet has 50 bytes, so two bytes of trailer need no padding.
    assert_eq!(opened(&there, &forged(1, &with(&[0, 4]))), Ok(whole.clone()));
    assert_eq!(opened(&there, &forged(2, &with(&[1, 2, 3, 4, 4, 4]))), Ok(whole.clone()));
    // More bytes than the packet's hide its length.
    assert_eq!(opened(&there, &forged(3, &with(&[9, 9, 9, 9, 0, 4]))), Ok(whole.clone()));
    assert_eq!(opened(&there, &forged(4, &with(&[1, 2, 3, 5, 4, 4]))), Err(Fault::Padding));
    assert_eq!(opened(&there, &forged(5, &with(&[51, 4]))), Err(Fault::Padding));
    assert_eq!(opened(&there, &forged(6, &with(&[255, 4]))), Err(Fault::Padding));
    assert_eq!(opened(&there, &forged(7, &with(&[0, 59]))), Err(Fault::Dummy));
    assert_eq!(opened(&there, &forged(8, &with(&[0, 6]))), Err(Fault::NextHeader));
    assert_eq!(opened(&there, &forged(9, &with(&[0, 41]))), Err(Fault::Inner));
    let mut longer = whole.clone();
    longer[3] += 1;
    fix_checksum(&mut longer);
    assert_eq!(opened(&there, &forged(10, &[&longer[..], &[0, 4]].concat())), Err(Fault::Inner));
    longer[3] -= 2;
    assert_eq!(opened(&there, &forged(11, &[&longer[..], &[0, 4]].concat())), Err(Fault::Inner));
    assert_eq!(opened(&there, &forged(12, &[0, 4])), Err(Fault::Cut));
    assert_eq!(opened(&there, &forged(13, &[1, 2, 2, 4])), Err(Fault::Inner));
    assert_eq!(opened(&there, &forged(0, &with(&[0, 4]))), Err(Fault::Replay));
    // What failed behind the tag has used its number up.
    assert_eq!(opened(&there, &forged(4, &with(&[0, 4]))), Err(Fault::Replay));
}

#[test]
fn a_wrong_key_opens_nothing() {
    for (right, wrong) in suites(10).into_iter().zip(suites(11)) {
        let here = Sa::new(&config(right, false)).unwrap();
        let there = Sa::new(&config(wrong, false)).unwrap();
        let sent = sealed(&here, &inner(false, 100, 0)).unwrap();
        assert_eq!(opened(&there, &sent), Err(Fault::Tag));
        assert_eq!((there.carried(), there.received()), ((0, 0), 0));
    }
}

/// A changed bit is found, or it is one of the outer header that is under no check.
#[test]
fn every_changed_bit_is_found() {
    for keys in suites(12) {
        for (is_v6, ports) in [(false, None), (true, None), (false, Some(PORTS)), (true, Some(PORTS))] {
            let config = SaConfig { ports, ..config(keys.clone(), is_v6) };
            let here = Sa::new(&config).unwrap();
            let packet = inner(false, 40, 2);
            let sent = sealed(&here, &packet).unwrap();
            let outer = if is_v6 { 40 } else { 20 } + if ports.is_some() { 8 } else { 0 };
            for bit in 0..sent.len() * 8 {
                let mut wrong = sent.clone();
                wrong[bit / 8] ^= 1 << (bit % 8);
                let outcome = opened(&Sa::new(&config).unwrap(), &wrong);
                if bit / 8 >= outer {
                    assert!(outcome.is_err(), "bit {bit}");
                } else if let Ok(found) = outcome {
                    // Congestion is meant to be told by the outer header.
                    let mut same = found;
                    same[1] = packet[1];
                    fix_checksum(&mut same);
                    assert_eq!(same, with_hop_less(&packet), "bit {bit}");
                }
            }
        }
    }
}

#[test]
fn cut_packets_are_refused_at_every_byte() {
    for keys in suites(13) {
        for (is_v6, ports) in [(false, None), (true, None), (false, Some(PORTS)), (true, Some(PORTS))] {
            let config = SaConfig { ports, ..config(keys.clone(), is_v6) };
            let here = Sa::new(&config).unwrap();
            let sent = sealed(&here, &inner(is_v6, 33, 0)).unwrap();
            let (header, udp) = if is_v6 { (40, 40) } else { (20, 20) };
            for len in 0..sent.len() {
                let there = Sa::new(&config).unwrap();
                assert!(opened(&there, &sent[..len]).is_err(), "{len}");
                // Headers that say so make it no better.
                if len < header + if ports.is_some() { 8 } else { 0 } {
                    continue;
                }
                let mut shorter = sent[..len].to_vec();
                if is_v6 {
                    shorter[4..6].copy_from_slice(&(len as u16 - 40).to_be_bytes());
                } else {
                    shorter[2..4].copy_from_slice(&(len as u16).to_be_bytes());
                    fix_checksum(&mut shorter);
                }
                if ports.is_some() {
                    shorter[udp + 4..udp + 6].copy_from_slice(&((len - udp) as u16).to_be_bytes());
                }
                let outcome = opened(&there, &shorter);
                assert!(matches!(outcome, Err(Fault::Cut | Fault::Tag | Fault::Outer)), "{len}: {outcome:?}");
            }
        }
    }
}

#[test]
fn fragments_and_the_wrong_wrapping_have_faults_of_their_own() {
    let keys = suites(14).remove(0);
    for is_v6 in [false, true] {
        let (plain, in_udp) =
            (config(keys.clone(), is_v6), SaConfig { ports: Some(PORTS), ..config(keys.clone(), is_v6) });
        let sent = sealed(&Sa::new(&plain).unwrap(), &inner(false, 50, 0)).unwrap();
        assert_eq!(opened(&Sa::new(&in_udp).unwrap(), &sent), Err(Fault::Encapsulation));
        let sent_in_udp = sealed(&Sa::new(&in_udp).unwrap(), &inner(false, 50, 0)).unwrap();
        assert_eq!(opened(&Sa::new(&plain).unwrap(), &sent_in_udp), Err(Fault::Encapsulation));
        assert!(opened(&Sa::new(&in_udp).unwrap(), &sent_in_udp).is_ok());
    }
    let there = Sa::new(&config(keys.clone(), false)).unwrap();
    let sent = sealed(&Sa::new(&config(keys.clone(), false)).unwrap(), &inner(false, 50, 0)).unwrap();
    for field in [[0x20, 0], [0, 9], [0x20, 9]] {
        let mut fragment = sent.clone();
        fragment[6..8].copy_from_slice(&field);
        fix_checksum(&mut fragment);
        assert_eq!(opened(&there, &fragment), Err(Fault::Fragment));
    }
    let there = Sa::new(&config(keys.clone(), true)).unwrap();
    let mut fragment = inner(true, 60, 0);
    fragment[24..40].copy_from_slice(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    (fragment[6], fragment[40]) = (44, 50);
    assert_eq!(opened(&there, &fragment), Err(Fault::Fragment));
    // In UDP: first ones have the port and perhaps the mark of IKE, later ones neither.
    let there = Sa::new(&SaConfig { ports: Some(PORTS), ..config(keys, true) }).unwrap();
    let mut udp = |offset: u8, port: u16, mark: u8| {
        (fragment[40], fragment[42], fragment[43]) = (17, 0, offset);
        fragment[50..52].copy_from_slice(&port.to_be_bytes());
        fragment[56..60].fill(mark);
        arrival(&there, &fragment)
    };
    assert_eq!(udp(1, 4500, 1), Arrival::Fragment);
    assert_eq!(udp(1, 4500, 0), Arrival::Ike);
    assert_eq!(udp(1, 500, 1), Arrival::Clear);
    assert_eq!(udp(9, 500, 0), Arrival::LaterFragment);
    fragment[39] = 9;
    assert_eq!(arrival(&there, &fragment), Arrival::Clear);
}

#[test]
fn datagrams_for_the_key_daemon_are_told_apart() {
    let config = SaConfig { ports: Some(PORTS), ..config(suites(15).remove(0), false) };
    let sa = Sa::new(&config).unwrap();
    let datagram = |payload: &[u8]| {
        let mut packet = inner(false, 8 + payload.len(), 0);
        packet[16..20].copy_from_slice(&[192, 0, 2, 2]);
        packet[20..28].copy_from_slice(&[0x11, 0x94, 0x11, 0x94, 0, 8 + payload.len() as u8, 0, 0]);
        packet[28..].copy_from_slice(payload);
        fix_checksum(&mut packet);
        packet
    };
    assert_eq!(arrival(&sa, &datagram(&[0xff])), Arrival::Keepalive);
    assert_eq!(arrival(&sa, &datagram(&[0, 0, 0, 0, 1, 2, 3, 4])), Arrival::Ike);
    assert_eq!(arrival(&sa, &datagram(&[0, 0, 1])), Arrival::Bad);
    assert_eq!(arrival(&sa, &datagram(&[])), Arrival::Bad);
    let mut other = datagram(&[1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(matches!(arrival(&sa, &other), Arrival::Esp(_)));
    other[19] = 3;
    fix_checksum(&mut other);
    assert_eq!(arrival(&sa, &other), Arrival::Clear, "it is for another host");
}

/// RFC 6040, 4.2, figure 4: the outer field by the inner one.
#[test]
fn congestion_is_told_inside() {
    let config = null();
    for (inner_field, outcomes) in [
        (0, [Ok(0), Ok(0), Ok(0), Err(Fault::Congestion)]),
        (2, [Ok(2), Ok(1), Ok(2), Ok(3)]),
        (1, [Ok(1), Ok(1), Ok(1), Ok(3)]),
        (3, [Ok(3), Ok(3), Ok(3), Ok(3)]),
    ] {
        for (outer_field, expected) in (0_u8..).zip(outcomes) {
            for is_v6 in [false, true] {
                let here = Sa::new(&config).unwrap();
                let mut sent = sealed(&here, &inner(is_v6, 20, 0xb8 | inner_field)).unwrap();
                sent[1] = 0xb8 | outer_field;
                fix_checksum(&mut sent);
                let outcome = opened(&Sa::new(&config).unwrap(), &sent)
                    .map(|packet| if is_v6 { packet[1] >> 4 & 3 } else { packet[1] & 3 });
                assert_eq!(outcome, expected, "{inner_field} in {outer_field}");
            }
        }
    }
}

#[test]
fn bytes_of_any_kind_do_no_harm() {
    let mut rng = Rng::new(16);
    let rounds = wirespeed_image::rounds::fewer(200_000);
    let sas: Vec<Sa> = suites(17)
        .into_iter()
        .flat_map(|keys| {
            [false, true].map(|is_v6| {
                let ports = is_v6.then_some(PORTS);
                Sa::new(&SaConfig { ports, is_extended: is_v6, ..config(keys.clone(), is_v6) }).unwrap()
            })
        })
        .collect();
    let sent: Vec<Vec<u8>> = sas.iter().map(|sa| sealed(sa, &inner(false, 60, 0)).unwrap()).collect();
    for _ in 0..rounds {
        let at = rng.bits() as usize % sas.len();
        let mut packet = sent[at].clone();
        for _ in 0..1 + rng.bits() % 3 {
            let place = rng.bits() as usize % packet.len();
            packet[place] = rng.bits() as u8;
        }
        packet.truncate(rng.bits() as usize % (packet.len() + 40));
        if packet.len() >= 20 && packet[0] == 0x45 {
            fix_checksum(&mut packet);
        }
        let _ = opened(&sas[at], &packet);
        let _ = sealed(&sas[at], &packet);
    }
}
