//! Packets that are larger than a tunnel's path takes: cut before they are sealed or behind, and put
//! together.

use std::time::Instant;

use wirespeed_esp::gpu::Use;
use wirespeed_esp::{Database, Fragments};
use wirespeed_router::Reason;

use super::{SUITES, TUNNELS, database, datagram, gpu, lines, payload, run, seal_header, tagged};

/// A datagram that may be cut.
fn that_may_be_cut(bytes: usize, id: u8) -> Vec<u8> {
    let mut frame = datagram(false, bytes);
    (frame[19], frame[20]) = (id, 0);
    seal_header(&mut frame);
    frame
}

/// Where the packet of a frame begins.
fn start(frame: &[u8]) -> usize {
    if frame[12] == 0x81 { 18 } else { 14 }
}

/// Whether a frame has a fragment of an ESP packet, or else a whole one.
fn is_fragment(frame: &[u8]) -> bool {
    let packet = &frame[start(frame)..];
    match packet[0] >> 4 {
        4 => packet[6] & 0x3f != 0 || packet[7] != 0,
        _ => packet[6] == 44,
    }
}

/// The other end of a tunnel, with policies for packets that come in.
fn there(suite: &str, tunnel: (&str, &str), more: &str) -> Database {
    database(&lines("fwd", suite, tunnel, more))
}

#[test]
fn packets_of_ipv4_that_may_be_cut_are_cut_before_they_are_sealed() {
    for suite in SUITES {
        for tunnel in TUNNELS {
            let here = database(&lines("out", suite, tunnel, ""));
            let frames = [
                that_may_be_cut(14 + 1500, 1),
                tagged(&that_may_be_cut(14 + 1500, 2)),
                that_may_be_cut(100, 3),
            ];
            let (stats, sealed, told) = run(&here, &frames);
            assert_eq!((stats.dropped.all(), stats.frames_out, stats.made, sealed.len()), (0, 3, 2, 5));
            assert_eq!(told.len(), 0);
            for frame in &sealed {
                assert!(!is_fragment(frame) && frame.len() <= start(frame) + 1500, "{}", frame.len());
            }
            let (stats, opened, _) = run(&there(suite, tunnel, ""), &sealed);
            assert_eq!((stats.dropped.all(), opened.len()), (0, 5), "{:?}", stats.dropped);
            // The parts of a packet come out one behind the other, and the receiver puts them together.
            let mut fragments = Fragments::default();
            let whole = opened.chunks(2).filter_map(|parts| {
                let mut whole = None;
                for part in parts.iter().filter(|part| is_fragment(part)) {
                    whole = fragments.take(&part[start(part)..], Instant::now());
                }
                whole
            });
            for (frame, mut whole) in frames.iter().zip(whole.collect::<Vec<_>>()) {
                let sent = &frame[start(frame)..];
                assert_eq!(whole[8], sent[8] - 2);
                whole[8..12].copy_from_slice(&sent[8..12]);
                assert_eq!(whole, sent);
            }
            assert_eq!(payload(&opened[4]).1, payload(&frames[2]).1);
        }
    }
}

#[test]
fn parts_fit_the_smallest_path() {
    let here = database(&lines("out", SUITES[0], TUNNELS[0], "path-mtu 576"));
    let (stats, sealed, _) = run(&here, &[that_may_be_cut(14 + 1500, 1)]);
    assert_eq!((stats.dropped.all(), stats.made as usize + 1), (0, sealed.len()));
    assert!(sealed.len() == 3 && sealed.iter().all(|frame| frame.len() <= 14 + 576));
}

/// Packets that a gateway has to seal whole and cut then.
fn whole_ones(tunnel_is_v6: bool) -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let of_port = "policy add src 10.1.0.0/16 dst 10.2.0.0/16 proto udp dport 2000 dir DIR priority 1 TUNNEL\n\
                   policy update src 10.1.0.0/16 dst 10.2.0.0/16 dir DIR priority 2 action block\n";
    let mut all = vec![("", of_port, that_may_be_cut(14 + 1500, 7))];
    if tunnel_is_v6 {
        all.push(("path-mtu 1280", "", datagram(true, 14 + 1280)));
        all.push(("path-mtu 1280 encap espinudp 4500 4500 ::", "", datagram(true, 14 + 1270)));
    }
    all
}

#[test]
fn packets_that_have_to_be_sealed_whole_are_cut_outside_and_put_together() {
    for suite in SUITES {
        for tunnel in TUNNELS {
            for (more, policies, large) in whole_ones(tunnel.0.contains(':')) {
                let text = |dir: &str| {
                    let (src, dst) = tunnel;
                    let to = format!("tmpl src {src} dst {dst} proto esp reqid 1 mode tunnel");
                    lines(dir, suite, tunnel, more) + &policies.replace("DIR", dir).replace("TUNNEL", &to)
                };
                let most = if more.contains("1280") { 1280 } else { 1500 };
                let small = datagram(false, 100);
                // More than the window of the other end holds.
                let frames: Vec<_> = (0..90)
                    .map(|at| match at % 3 {
                        0 => small.clone(),
                        1 => large.clone(),
                        _ => tagged(&large),
                    })
                    .collect();
                let (stats, sealed, told) = run(&database(&text("out")), &frames);
                assert_eq!((stats.dropped.all(), stats.frames_out, told.len()), (0, 90, 0));
                assert_eq!(
                    (sealed.len(), sealed.iter().filter(|frame| is_fragment(frame)).count()),
                    (150, 120)
                );
                assert!(sealed.iter().all(|frame| frame.len() <= start(frame) + most));
                let (stats, opened, _) = run(&database(&text("fwd")), &sealed);
                assert_eq!(
                    (stats.frames_out, stats.dropped.of(Reason::EspFragment), stats.dropped.all()),
                    (90, 60, 60),
                    "{:?}",
                    stats.dropped
                );
                for (frame, opened) in frames.iter().zip(&opened) {
                    let ((hops, sent), (left, came)) = (payload(frame), payload(opened));
                    assert_eq!((left, &came), (hops - 2, &sent));
                }
                // In the other order, with one that is lost and one that comes twice.
                let mut sealed = run(&database(&text("out")), &frames[..3]).1;
                assert_eq!(sealed.len(), 5);
                // In UDP a later fragment counts only behind its first one, which has the port.
                if !more.contains("encap") {
                    sealed.swap(1, 2);
                }
                sealed.insert(1, sealed[1].clone());
                sealed.pop();
                let (stats, opened, _) = run(&database(&text("fwd")), &sealed);
                assert_eq!((stats.frames_out, stats.dropped.of(Reason::EspFragment)), (2, 3));
                assert_eq!(payload(&opened[1]).1, payload(&large).1);
            }
        }
    }
}

#[test]
fn large_packets_go_through_a_device_in_order() {
    for (more, large) in [("path-mtu 1280", datagram(true, 14 + 1280)), ("", that_may_be_cut(14 + 1500, 9))] {
        let frames = (0..60).map(|at| if at % 2 == 0 { datagram(false, 100) } else { large.clone() });
        let frames: Vec<_> = frames.collect();
        let here = database(&lines("out", SUITES[0], TUNNELS[1], more));
        let Some((stats, sealed, [by_gpu, _])) = gpu::run(&here, &frames, Use::Always, 0) else { return };
        assert_eq!((stats.dropped.all(), stats.frames_out, sealed.len()), (0, 60, 90));
        assert!(by_gpu > 0);
        let there = there(SUITES[0], TUNNELS[1], more);
        let Some((stats, opened, _)) = gpu::run(&there, &sealed, Use::Always, 0) else { return };
        assert_eq!(stats.dropped.all(), stats.dropped.of(Reason::EspFragment), "{:?}", stats.dropped);
        assert_eq!(opened.len(), if more.is_empty() { 90 } else { 60 });
        let here: Vec<_> = opened.iter().filter(|frame| frame.len() == 100).collect();
        assert_eq!(here.len(), 30);
    }
}

#[test]
fn fragments_of_other_datagrams_for_the_gateway_pass() {
    let there = there(SUITES[0], TUNNELS[0], "encap espinudp 4500 4500 0.0.0.0");
    let mut frame = that_may_be_cut(200, 5);
    frame[14 + 16..14 + 20].copy_from_slice(&[192, 0, 2, 2]);
    frame[20] = 0x20;
    seal_header(&mut frame);
    let mut later = frame.clone();
    later[20..22].copy_from_slice(&[0, 20]);
    seal_header(&mut later);
    let (stats, out, _) = run(&there, &[later, frame]);
    assert_eq!((stats.dropped.all(), out.len()), (0, 2));
}

#[test]
fn what_is_put_together_has_to_fit_a_buffer() {
    let there = there(SUITES[0], TUNNELS[0], "");
    let (_, sealed, _) = run(&database(&lines("out", SUITES[0], TUNNELS[0], "")), &[datagram(false, 1400)]);
    // The packet of a first frame, with a second part of some bytes.
    let parts = |id: u8, second: usize| {
        [(0, 1200), (1200, second)].map(|(offset, bytes)| {
            let mut frame = sealed[0][..34].to_vec();
            frame[16..18].copy_from_slice(&(bytes as u16 + 20).to_be_bytes());
            let word = (offset as u16 / 8) | if offset == 0 { 0x2000 } else { 0 };
            (frame[18], frame[19]) = (0, id);
            frame[20..22].copy_from_slice(&word.to_be_bytes());
            seal_header(&mut frame);
            frame.extend(sealed[0][34..].iter().cycle().skip(offset).take(bytes));
            frame
        })
    };
    // With 14 and 20 bytes of headers: as many as a buffer has, and one more.
    let most = 1792 - 14 - 20 - 1200;
    // The former is no multiple of four bytes.
    for (second, reason) in [(most, Reason::EspCut), (most + 1, Reason::EspLong)] {
        let (stats, ..) = run(&there, &parts(7, second));
        let of = |reason| stats.dropped.of(reason);
        assert_eq!((of(Reason::EspFragment), of(reason)), (1, 1), "{:?}", stats.dropped);
    }
}
