//! Packets through tunnels of every kind and back.

use wirespeed_esp::{Keys, Sa, SaConfig, Scratch, Sealing, seal};

use crate::{PORTS, config, inner, opened, sealed, sealed_as, secret, suites, with_hop_less};

#[test]
fn packets_come_out_as_they_went_in() {
    for keys in suites(1) {
        for (outer_v6, is_extended, ports) in [
            (false, false, None),
            (false, true, None),
            (false, true, Some(PORTS)),
            (true, false, None),
            (true, true, Some(PORTS)),
        ] {
            let config = SaConfig { is_extended, ports, ..config(keys.clone(), outer_v6) };
            let (here, there) = (Sa::new(&config).unwrap(), Sa::new(&config).unwrap());
            for inner_v6 in [false, true] {
                for payload in (0..40).chain([63, 64, 65, 1400, 8000]) {
                    let class = if payload % 2 == 0 { 0 } else { 0xb9 };
                    let mut packet = inner(inner_v6, payload, class);
                    let expected = with_hop_less(&packet);
                    // Padding of the link goes no further.
                    packet.extend([0xee; 6]);
                    let sealed = sealed(&here, &packet).unwrap();
                    let outer_class = if outer_v6 { sealed[0] << 4 | sealed[1] >> 4 } else { sealed[1] };
                    assert_eq!(outer_class, class, "services and congestion are copied");
                    assert_eq!(opened(&there, &sealed).unwrap(), expected, "{config:?} {payload}");
                }
            }
            assert_eq!(here.sent(), there.received());
        }
    }
}

/// A packet of any length is as long as promised, and its text a multiple of four bytes.
#[test]
fn sealed_packets_fit_the_path() {
    for keys in suites(2) {
        for outer_v6 in [false, true] {
            for path_mtu in [1280, 1419, 1420, 1421, 1422, 1500] {
                let sa = Sa::new(&SaConfig { path_mtu, ..config(keys.clone(), outer_v6) }).unwrap();
                let most = sa.most_inner();
                let fits = inner(false, most - 20, 0);
                assert!(sealed(&sa, &fits).unwrap().len() <= path_mtu.into());
                let longer = inner(false, most - 20 + 1, 0);
                assert_eq!(sealed(&sa, &longer), Err(wirespeed_esp::Fault::TooBig));
                // Who says so gets the packet whole, to be cut outside.
                let large = Sealing::begin_large(&sa, &longer).unwrap();
                let packet = sealed_as(large, &longer).unwrap();
                assert!(packet.len() > path_mtu.into());
                assert_eq!(large.cut_to(), Some(path_mtu));
                assert!(outer_v6 || packet[6] & 0x40 == 0);
                // The smallest link of IPv6 has to be served, whatever the path says.
                let least = inner(true, 1280 - 40, 0);
                assert!(sealed(&sa, &least).is_ok());
                let cut_to = Sealing::begin(&sa, &least).unwrap().cut_to();
                assert_eq!(cut_to, (most < 1280).then_some(path_mtu));
            }
        }
    }
}

#[test]
fn a_list_of_mixed_packets_is_sealed_and_opened() {
    let sas: Vec<Sa> = suites(3).into_iter().map(|keys| Sa::new(&config(keys, false)).unwrap()).collect();
    let inners: Vec<Vec<u8>> = (0..97).map(|at| inner(at % 3 == 0, at * 13 % 1300, 0)).collect();
    let mut packets = Vec::new();
    let mut unsealed = Vec::new();
    for (at, inner) in inners.iter().enumerate() {
        let sealing = Sealing::begin(&sas[at * 7 % 4], inner).unwrap();
        let mut packet = vec![0; sealing.len()];
        packet[sealing.head()..][..inner.len()].copy_from_slice(inner);
        unsealed.push(sealing.write(at, &mut packet).unwrap());
        packets.push(packet);
    }
    seal(&unsealed, &mut packets[..], &mut Scratch::default());
    let others: Vec<Sa> = suites(3).into_iter().map(|keys| Sa::new(&config(keys, false)).unwrap()).collect();
    for (at, packet) in packets.iter().enumerate() {
        assert_eq!(opened(&others[at * 7 % 4], packet).unwrap(), with_hop_less(&inners[at]));
    }
}

#[test]
fn keys_are_in_no_text() {
    let key: Vec<u8> = (200..236).collect();
    let config = config(Keys::Gcm(key.as_slice().into()), false);
    let sa = Sa::new(&config).unwrap();
    for text in [format!("{config:?}"), format!("{sa:?}"), format!("{:?}", secret(9, 20))] {
        assert!(!text.contains("200, 201") && !text.contains("c8c9"), "{text}");
    }
}
