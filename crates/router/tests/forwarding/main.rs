//! The IP application, held packet by packet against a forwarder that was written independently of it.

#![allow(clippy::cast_possible_truncation, clippy::unwrap_used)] // every function here is a test or helps one

mod any_frames;
mod app;
mod errors;
mod frames;
mod list;
mod names;
mod oracle;
mod shown;
mod witness;

use std::net::IpAddr;

use ipnet::IpNet;
use proptest::prelude::*;
use wirespeed::{IpTable, Labels};
use wirespeed_router::apps::Ip;
use wirespeed_router::apps::ip::{Own, Owns};
use wirespeed_router::{Group, Hop, Mac, Memory, PortId, Reason, Route, Settings, Stats};

use frames::Kind;
use list::{Sent, Way};
use oracle::{Fate, Oracle};

/// The ports of the router under test: frames come in at the first.
const PORTS: u16 = 5;
const MTU: [u16; PORTS as usize] = [1500, 1500, 1280, 600, 9000];

pub(crate) fn port_mac(port: u16) -> Mac {
    Mac([2, 0, 0, 0, 0, port as u8])
}

pub(crate) fn hop(port: u16, neighbour: u8) -> Hop {
    Hop::new(PortId(port), Mac([2, 0, 1, 0, 0, neighbour]), port_mac(port), MTU[usize::from(port)])
}

/// A small table with every kind of route, in both families.
pub(crate) fn routes() -> Vec<(IpNet, Route)> {
    let group = Group::new([(hop(1, 21), 1), (hop(2, 22), 2)]).unwrap();
    let of = |text: &str, route: Route| (text.parse().unwrap(), route);
    vec![
        of("10.0.0.0/8", Route::Via(hop(1, 1))),
        of("10.1.0.0/16", Route::Via(hop(2, 2))),
        of("10.1.2.0/24", Route::Via(hop(3, 3))),
        of("10.1.2.3/32", Route::Blackhole),
        of("10.2.0.0/16", Route::Unreachable),
        of("10.3.0.0/16", Route::Prohibited),
        of("10.4.0.0/16", Route::Kernel),
        of("10.5.0.0/16", Route::Group(group.clone())),
        of("10.6.0.0/16", Route::Via(hop(4, 4))),
        of("192.0.2.0/24", Route::Via(hop(0, 9))),
        of("2001:db8::/32", Route::Via(hop(0, 10))),
        of("2001:db8:1::/48", Route::Via(hop(1, 11))),
        of("2001:db8:1:2::/64", Route::Via(hop(2, 12))),
        of("2001:db8:1:2::3/128", Route::Blackhole),
        of("2001:db8:2::/48", Route::Unreachable),
        of("2001:db8:3::/48", Route::Prohibited),
        of("2001:db8:4::/48", Route::Kernel),
        of("2001:db8:5::/48", Route::Group(group)),
        of("2001:db8:6::/48", Route::Via(hop(4, 14))),
        of("fd00::/8", Route::Via(hop(3, 13))),
    ]
}

/// Runs frames through the router, in chunks of this size. Returns what it did, and what each port sent.
pub(crate) fn forward(frames: &[Vec<u8>], chunk: usize, errors: u32) -> (Stats, Vec<Sent>) {
    forward_in(Memory::new(2048).unwrap(), frames, chunk, errors)
}

/// Runs frames in buffers of this memory through the router.
fn forward_in(memory: Memory, frames: &[Vec<u8>], chunk: usize, errors: u32) -> (Stats, Vec<Sent>) {
    let labels = Labels::new();
    let table = IpTable::builder().labelled_routes(&labels, routes()).build().unwrap();
    let own: Vec<Own> = (0..PORTS)
        .map(|port| Own {
            mac: port_mac(port),
            v4: Some([192, 0, 2, 100 + port as u8].into()),
            v6: Some(format!("2001:db8::{:x}", 0x100 + port).parse().unwrap()),
        })
        .collect();
    let addresses: Vec<_> = own.iter().filter_map(|own| own.v4).collect();
    let own = Owns::new(own);
    own.set_sources((0..PORTS).map(|_| addresses.clone()));
    let app = Ip::new(&table.reader(), &labels, &own).errors_per_second(errors);
    let settings = Settings { chunk, ..Settings::default() };
    list::run_in(memory, app, frames, (PORTS, Way::ALL), settings)
}

/// Compares what the router did with what the oracle says, in order.
pub(crate) fn check(frames: &[Vec<u8>], chunk: usize) {
    check_in(Memory::new(2048).unwrap(), frames, chunk);
}

/// Compares what the router did with frames in buffers of this memory.
fn check_in(memory: Memory, frames: &[Vec<u8>], chunk: usize) {
    let oracle = Oracle::new(routes(), MTU.to_vec());
    let (stats, sent) = forward_in(memory, frames, chunk, 0);
    let mut expected: Vec<Vec<Vec<u8>>> = vec![Vec::new(); usize::from(PORTS)];
    let mut drops = std::collections::BTreeMap::<Reason, u64>::new();
    let mut to_kernel = 0;
    for frame in frames {
        match oracle.fate(frame) {
            Fate::Out(port, parts) => expected[usize::from(port)].extend(parts),
            Fate::Drop(reason) => *drops.entry(reason).or_default() += 1,
            Fate::Kernel => to_kernel += 1,
        }
    }
    assert!(stats.is_whole(), "{stats:?}");
    assert_eq!(stats.frames_in, frames.len() as u64);
    assert_eq!(stats.to_kernel, to_kernel);
    assert_eq!(stats.dropped.iter().collect::<std::collections::BTreeMap<_, _>>(), drops);
    assert_eq!(stats.queued, 0);
    for (port, (sent, expected)) in sent.iter().zip(&expected).enumerate() {
        // Later fragments are made, so they follow the frames of a chunk: the order counts for the others.
        let mut sent = sent.lock().unwrap().clone();
        let mut expected = expected.clone();
        if expected.iter().any(|frame| frames::is_fragment(frame)) {
            sent.sort();
            expected.sort();
        }
        assert_eq!(sent.len(), expected.len(), "frames of port {port}");
        for (at, (sent, expected)) in sent.iter().zip(&expected).enumerate() {
            assert_eq!(sent, expected, "frame {at} of port {port}");
        }
    }
}

#[test]
fn each_kind_of_frame_goes_where_the_oracle_says() {
    let mut rng = wirespeed_rng::Rng::new(7);
    for round in 0..40 {
        let frames: Vec<Vec<u8>> = (0..500).map(|_| frames::random(&mut rng)).collect();
        check(&frames, [1, 7, 64, 256, 600][round % 5]);
    }
}

#[test]
fn jumbo_frames_are_forwarded_cut_up_or_refused() {
    let v4 = |to: [u8; 4]| (IpAddr::from([192, 0, 2, 1]), IpAddr::from(to));
    let v6 = |to: &str| ("2001:db8::1".parse().unwrap(), to.parse().unwrap());
    let ways = [
        v4([10, 6, 0, 1]),
        v4([10, 0, 0, 1]),
        v4([10, 1, 0, 1]),
        v4([10, 1, 2, 9]),
        v6("2001:db8:6::1"),
        v6("2001:db8:1::1"),
        v6("fd00::1"),
    ];
    // Around the largest packet of each link, and as large as a buffer allows.
    let sizes = [1400, 1452, 1472, 1473, 2000, 4096, 8952, 8972, 8973, 9100, 15_000];
    let mut frames: Vec<Vec<u8>> =
        sizes.iter().flat_map(|&size| ways.iter().map(move |&way| frames::udp(way, 9, size))).collect();
    let whole = frames.clone();
    for frame in whole.iter().filter(|frame| frame[12..14] == [0x08, 0x00]) {
        frames.push(frames::unfragmented(frame));
    }
    for chunk in [1, 64] {
        check_in(Memory::with_stride(2048, 16_384).unwrap(), &frames, chunk);
    }
    // Buffers of the usual size hold none of them: they are cut at their ends, and say so.
    let cut: Vec<Vec<u8>> = frames.iter().map(|frame| frame[..frame.len().min(1600)].to_vec()).collect();
    check(&cut, 64);
}

#[test]
fn frames_cut_at_every_byte_are_counted_and_do_no_harm() {
    let mut rng = wirespeed_rng::Rng::new(8);
    for kind in Kind::ALL {
        for _ in 0..3 {
            let frame = frames::of_kind(*kind, &mut rng);
            let cut: Vec<Vec<u8>> = (0..=frame.len()).map(|len| frame[..len].to_vec()).collect();
            check(&cut, 256);
        }
    }
}

#[test]
fn any_flipped_bit_is_what_it_is() {
    let mut rng = wirespeed_rng::Rng::new(9);
    for kind in Kind::ALL {
        let frame = frames::of_kind(*kind, &mut rng);
        let flipped = (0..frame.len().min(120) * 8).map(|bit| {
            let mut frame = frame.clone();
            frame[bit / 8] ^= 1 << (bit % 8);
            frame
        });
        check(&flipped.collect::<Vec<_>>(), 256);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The fuzz target makes the same checks.
    #[test]
    fn any_frames_are_accounted_for(
        seed: u64,
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        changes in prop::collection::vec((any::<u8>(), any::<prop::sample::Index>(), any::<u8>()), 0..20),
    ) {
        let mut all = any_frames::cut(&bytes);
        // Good frames to the router, with a byte changed here and there.
        let mut rng = wirespeed_rng::Rng::new(seed);
        all.extend(Kind::ALL.iter().map(|kind| {
            let mut frame = frames::of_kind(*kind, &mut rng);
            if frame.len() >= 6 {
                frame[..6].copy_from_slice(&any_frames::mac(0).0);
            }
            frame
        }));
        let count = all.len();
        for (at, place, byte) in changes {
            let frame = &mut all[usize::from(at) % count];
            if !frame.is_empty() {
                let place = place.index(frame.len());
                frame[place] = byte;
            }
        }
        any_frames::check(&all);
    }
}

/// A forwarded packet has one hop less and nothing else changed, and its checksum is right to another parser.
#[test]
fn an_ordinary_packet_is_forwarded() {
    let addresses = (IpAddr::from([192, 0, 2, 7]), IpAddr::from([10, 1, 9, 9]));
    let frame = frames::udp(addresses, 64, 18);
    let (stats, sent) = forward(std::slice::from_ref(&frame), 256, 0);
    assert_eq!((stats.frames_in, stats.frames_out), (1, 1));
    let sent = sent[2].lock().unwrap()[0].clone();
    assert_eq!(sent[..12], *hop(2, 2).header());
    assert_eq!(sent[12..22], frame[12..22]);
    assert_eq!(sent[22], 63);
    assert_eq!(sent[26..], frame[26..]);
    let packet = smoltcp::wire::Ipv4Packet::new_checked(&sent[14..]).unwrap();
    assert!(packet.verify_checksum());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_do_no_harm(frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 1..40)) {
        check(&frames, 16);
    }

    /// Bytes that begin like a packet.
    #[test]
    fn random_packets_do_no_harm(
        mut frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 34..200), 1..40),
        v6 in any::<bool>(),
    ) {
        for frame in &mut frames {
            let (kind, version) = if v6 { ([0x86, 0xdd], 0x60) } else { ([8, 0], 0x40) };
            frame[12..14].copy_from_slice(&kind);
            frame[14] = version | frame[14] & 15;
            frames::mend(frame);
        }
        check(&frames, 16);
    }
}
