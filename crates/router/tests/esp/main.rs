//! The gateway of tunnels as an application: frames through two routers and back, and what is dropped.

#![cfg(feature = "esp")]
#![allow(clippy::cast_possible_truncation, clippy::unwrap_used)] // every function here is a test or helps one

mod gpu;
mod large;
#[path = "../forwarding/list.rs"]
mod list;
mod quiet;
mod rekey;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use ipnet::IpNet;
use wirespeed::{IpTable, Labels};
use wirespeed_esp::Database;
use wirespeed_esp::read::Lines;
use wirespeed_router::apps::ip::{Own, Owns};
use wirespeed_router::apps::{Esp, Ip};
use wirespeed_router::frames::Datagram;
use wirespeed_router::io::Port;
use wirespeed_router::io::memory::{Limits, MemoryPort, Source};
use wirespeed_router::{Hop, Mac, Memory, PortId, Published, Reason, Route, Settings, Stats, Worker};

const SUITES: [&str; 4] = [
    "aead 'rfc4106(gcm(aes))' 0x00112233445566778899aabbccddeeff01020304 128",
    "aead 'rfc4106(gcm(aes))' 0x00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff01020304 128",
    "enc 'rfc3686(ctr(aes))' 0x00112233445566778899aabbccddeeff01020304 \
     auth-trunc 'hmac(sha1)' 0x000102030405060708090a0b0c0d0e0f10111213 96",
    "enc cipher_null '' auth-trunc 'hmac(sha1)' 0x000102030405060708090a0b0c0d0e0f10111213 96",
];

const TUNNELS: [(&str, &str); 2] = [("192.0.2.1", "192.0.2.2"), ("2001:db8::1", "2001:db8::2")];

/// The lines of a tunnel from the first site to the second, with policies of a direction: `out` where it
/// begins, and `fwd` where it ends.
fn lines(dir: &str, suite: &str, (src, dst): (&str, &str), more: &str) -> String {
    let tunnel = format!("tmpl src {src} dst {dst} proto esp reqid 1 mode tunnel");
    let mut text =
        format!("state add src {src} dst {dst} proto esp spi 0x1000 reqid 1 mode tunnel {suite} {more}\n");
    for (here, there) in [("10.1.0.0/16", "10.2.0.0/16"), ("fd00:1::/32", "fd00:2::/32")] {
        text += &format!("policy add src {here} dst {there} dir {dir} {tunnel}\n");
    }
    text
}

fn database(text: &str) -> Database {
    let lines = Lines::read(text);
    assert_eq!(lines.skipped, []);
    let mut database = Database::new().unwrap();
    database.apply(lines.changes).unwrap();
    database
}

/// Runs frames through a gateway. Port 1 leads everywhere.
fn run(database: &Database, frames: &[Vec<u8>]) -> (Stats, Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let labels = Labels::new();
    let hop = Route::Via(Hop::new(PortId(1), Mac([2, 0, 1, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 1]), 1500));
    let routes = ["0.0.0.0/0", "::/0"].map(|net| (net.parse::<IpNet>().unwrap(), hop.clone()));
    let table = IpTable::builder().labelled_routes(&labels, routes).build().unwrap();
    let own =
        Own { mac: Mac([2; 6]), v4: Some([192, 0, 2, 99].into()), v6: Some("2001:db8::99".parse().unwrap()) };
    let own = Owns::new(vec![own; 2]);
    let app = Esp::new(Ip::new(&table.reader(), &labels, &own), database.reader(), &own);
    let settings = Settings { chunk: 7, ..Settings::default() };
    let (stats, sent) = list::run(app, frames, 2, settings);
    assert!(stats.is_whole(), "{stats:?}");
    let of = |port: usize| sent[port].lock().unwrap().clone();
    (stats, of(1), of(0))
}

fn datagram(is_v6: bool, bytes: usize) -> Vec<u8> {
    let (from, to) = if is_v6 { ("fd00:1::1", "fd00:2::2") } else { ("10.1.0.1", "10.2.0.2") };
    let datagram = Datagram {
        to: Mac([2, 0, 0, 0, 0, 0]),
        from: Mac([2, 0, 0, 0, 0, 9]),
        addresses: (from.parse().unwrap(), to.parse().unwrap()),
        ports: (1000, 2000),
        hops: 64,
        bytes,
    };
    datagram.to_bytes()
}

/// The frame with a tag of a VLAN.
fn tagged(frame: &[u8]) -> Vec<u8> {
    [&frame[..12], &[0x81, 0, 0, 9], &frame[12..]].concat()
}

/// The payload of a UDP datagram in a frame, and the hops of its packet.
fn payload(frame: &[u8]) -> (u8, Vec<u8>) {
    let start = if frame[12] == 0x81 { 18 } else { 14 };
    let packet = &frame[start..];
    assert_eq!([frame[start - 2], frame[start - 1]], if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] });
    if packet[0] >> 4 == 4 { (packet[8], packet[28..].to_vec()) } else { (packet[7], packet[48..].to_vec()) }
}

#[test]
fn frames_go_through_a_tunnel_and_come_out() {
    for suite in SUITES {
        for tunnel in TUNNELS {
            for more in ["", "flag esn replay-window 256", "encap espinudp 4500 4500 0.0.0.0"] {
                let mut frames = Vec::new();
                for bytes in [42, 60, 61, 62, 63, 64, 576, 1400] {
                    for is_v6 in [false, true] {
                        frames.push(datagram(is_v6, bytes));
                        frames.push(tagged(&datagram(is_v6, bytes)));
                    }
                }
                // Padding of the link to 64 bytes stays outside.
                let mut padded = frames.clone();
                padded.iter_mut().for_each(|frame| frame.resize(frame.len().max(64), 0xaa));
                let (stats, sealed, back) = run(&database(&lines("out", suite, tunnel, more)), &padded);
                assert_eq!((stats.frames_out as usize, back.len()), (frames.len(), 0), "{:?}", stats.dropped);
                let tunnel_is_v6 = tunnel.0.contains(':');
                for frame in &sealed {
                    let start = if frame[12] == 0x81 { 18 } else { 14 };
                    assert_eq!(frame[start] >> 4, if tunnel_is_v6 { 6 } else { 4 });
                }
                let there = database(&lines("fwd", suite, tunnel, more));
                let (stats, opened, _) = run(&there, &sealed);
                assert_eq!(stats.frames_out as usize, frames.len(), "{:?}", stats.dropped);
                for (frame, opened) in frames.iter().zip(&opened) {
                    let ((hops, sent), (left, came)) = (payload(frame), payload(opened));
                    assert_eq!((left, came), (hops - 2, sent));
                }
                // Nothing is taken twice.
                let (stats, opened, _) = run(&there, &sealed);
                assert_eq!((stats.dropped.of(Reason::EspReplay) as usize, opened.len()), (frames.len(), 0));
            }
        }
    }
}

/// The datagram with another second byte of the destination.
fn to_network(network: u8) -> Vec<u8> {
    let mut frame = datagram(false, 100);
    frame[14 + 17] = network;
    seal_header(&mut frame);
    frame
}

#[test]
fn packets_in_turns_have_each_the_policy_of_their_own() {
    let text = lines("out", SUITES[0], TUNNELS[0], "")
        + "policy add src 10.1.0.0/16 dst 10.66.0.0/16 dir out action block\n";
    // Sealed, dropped, and in the clear.
    let frames: Vec<_> = [2, 66, 3, 3, 2, 2, 66, 3, 66].map(to_network).into();
    let (stats, sent, _) = run(&database(&text), &frames);
    assert_eq!((stats.dropped.of(Reason::EspPolicy), stats.dropped.all()), (3, 3));
    let protocols: Vec<u8> = sent.iter().map(|frame| frame[14 + 9]).collect();
    assert_eq!(protocols, [50, 17, 17, 50, 50, 17]);
}

#[test]
fn without_a_policy_packets_in_the_clear_are_decided_by_what_holds_otherwise() {
    for (text, dropped) in
        [("", 0), ("policy setdefault fwd block\n", 3), ("policy setdefault out block\n", 3)]
    {
        let (stats, sent, _) = run(&database(text), &[2, 66, 3].map(to_network));
        assert_eq!(
            (stats.dropped.of(Reason::EspPolicy), sent.len()),
            (dropped, 3 - dropped as usize),
            "{text}"
        );
    }
}

#[test]
fn each_drop_has_its_reason() {
    let text = lines("out", SUITES[0], TUNNELS[0], "")
        + "policy add src 10.1.0.0/16 dst 10.66.0.0/16 dir out action block\n";
    let there = lines("fwd", SUITES[0], TUNNELS[0], "") + "policy setdefault fwd block\n";
    let (_, sealed, _) = run(&database(&text), &vec![datagram(false, 200); 12]);
    let change = |at: usize, change: fn(&mut Vec<u8>)| {
        let mut frame = sealed[at].clone();
        change(&mut frame);
        seal_header(&mut frame);
        frame
    };
    let frames = vec![
        sealed[0].clone(),
        sealed[0].clone(),
        change(1, |frame| frame[60] ^= 1),
        change(2, |frame| frame[34] ^= 1),
        change(3, |frame| frame[20] |= 0x20),
        change(4, |frame| frame[16..18].copy_from_slice(&[0, 30])),
        change(5, |frame| frame[16..18].copy_from_slice(&[0, 21])),
        // In the clear, although there is a policy.
        datagram(false, 100),
        // No policy at all.
        {
            let mut frame = datagram(false, 100);
            frame[14 + 12] = 172;
            seal_header(&mut frame);
            frame
        },
        sealed[6].clone(),
    ];
    let (stats, opened, _) = run(&database(&there), &frames);
    let expected = [
        (Reason::EspReplay, 1),
        (Reason::EspTag, 1),
        (Reason::EspNoSa, 1),
        (Reason::EspFragment, 1),
        (Reason::EspCut, 1),
        (Reason::EspOuter, 1),
        (Reason::EspUnprotected, 1),
        (Reason::EspPolicy, 1),
    ];
    for (reason, count) in expected {
        assert_eq!(
            stats.dropped.of(reason),
            count,
            "{reason:?} of {:?}",
            stats.dropped.iter().collect::<Vec<_>>()
        );
    }
    assert_eq!((stats.dropped.all(), opened.len()), (8, 2));

    // Outwards: a policy without an association, one that discards, and an association at its end.
    let unkeyed = text.replace("spi 0x1000 reqid 1", "spi 0x1000 reqid 2");
    let mut blocked = datagram(false, 100);
    blocked[14 + 17] = 66;
    seal_header(&mut blocked);
    let (stats, out, _) = run(&database(&unkeyed), &[datagram(false, 100), blocked]);
    assert_eq!((stats.dropped.of(Reason::EspUnkeyed), stats.dropped.of(Reason::EspPolicy)), (1, 1));
    assert_eq!(out.len(), 0);
    let ending = lines("out", SUITES[0], TUNNELS[0], "replay-oseq 0xfffffffe");
    let (stats, out, _) = run(&database(&ending), &vec![datagram(false, 100); 3]);
    assert_eq!((stats.dropped.of(Reason::EspSequence), out.len()), (2, 1));
}

/// Writes the checksum of an IPv4 header in an untagged frame.
fn seal_header(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let sum = wirespeed_router::checksum::checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
}

#[test]
fn senders_are_told_the_size_that_fits() {
    for (tunnel, overhead) in [(TUNNELS[0], 20), (TUNNELS[1], 40)] {
        let database = database(&lines("out", SUITES[0], tunnel, ""));
        for is_v6 in [false, true] {
            let (stats, out, back) = run(&database, &[datagram(is_v6, 14 + 1500)]);
            assert_eq!((stats.dropped.of(Reason::EspTooBig), out.len(), back.len()), (1, 0, 1));
            let packet = &back[0][14..];
            // The path takes 1,500 bytes: headers, vector and tag go off, and a trailer of two.
            let most = ((1500 - overhead - 8 - 8 - 16) & !3) - 2;
            let told = if is_v6 {
                assert_eq!(
                    (packet[6], packet[40], &packet[24..40]),
                    (58, 2, &datagram(true, 90)[14 + 8..14 + 24])
                );
                u32::from_be_bytes([packet[44], packet[45], packet[46], packet[47]])
            } else {
                assert_eq!((packet[9], packet[20], packet[21]), (1, 3, 4));
                u32::from(u16::from_be_bytes([packet[26], packet[27]]))
            };
            assert_eq!(told, most);
            // What was told fits.
            let (stats, out, _) = run(&database, &[datagram(is_v6, 14 + most as usize)]);
            assert_eq!(out.len(), 1, "{:?}", stats.dropped);
            assert!(out[0].len() <= 14 + 1500);
        }
    }
    // A spent time to live is told, too.
    let mut frame = datagram(false, 100);
    frame[22] = 1;
    seal_header(&mut frame);
    let (stats, _, back) = run(&database(&lines("out", SUITES[0], TUNNELS[0], "")), &[frame]);
    assert_eq!((stats.dropped.of(Reason::EspExpired), back[0][34]), (1, 11));
}

#[test]
fn what_comes_out_of_a_tunnel_goes_into_the_next() {
    let first = lines("out", SUITES[0], TUNNELS[0], "");
    let (_, sealed, _) = run(&database(&first), &vec![datagram(false, 300); 20]);
    let second = "state add src 192.0.2.2 dst 192.0.2.3 proto esp spi 0x2000 reqid 2 mode tunnel \
                  enc 'rfc3686(ctr(aes))' 0x99112233445566778899aabbccddeeff01020304 \
                  auth-trunc 'hmac(sha1)' 0x990102030405060708090a0b0c0d0e0f10111213 96\n\
                  policy update src 10.1.0.0/16 dst 10.2.0.0/16 dir out tmpl src 192.0.2.2 dst 192.0.2.3 proto esp reqid 2 mode tunnel\n";
    let between = lines("fwd", SUITES[0], TUNNELS[0], "") + second;
    let (stats, sealed_again, _) = run(&database(&between), &sealed);
    assert_eq!(stats.frames_out, 20, "{:?}", stats.dropped);
    assert!(sealed_again.iter().all(|frame| frame[14 + 16..14 + 20] == [192, 0, 2, 3]));
    let last = second.replace("dir out", "dir in");
    let (stats, opened, _) = run(&database(&last), &sealed_again);
    assert_eq!(stats.frames_out, 20, "{:?}", stats.dropped);
    assert_eq!(payload(&opened[0]), (64 - 3, payload(&datagram(false, 300)).1));
}

/// The ICMP error of a router between the sites: this packet is larger than `mtu`.
fn too_large(quoted: &[u8], mtu: u16) -> Vec<u8> {
    if quoted[0] >> 4 == 6 {
        let mut error = [&[2, 0, 0, 0, 0, 0][..], &mtu.to_be_bytes(), quoted].concat();
        let mut packet = vec![0x60, 0, 0, 0, 0, error.len() as u8, 58, 64];
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x77]);
        packet.extend(&quoted[8..24]);
        let mut pseudo = packet[8..40].to_vec();
        pseudo.extend([0, 58, 0, error.len() as u8]);
        pseudo.extend(&error);
        error[2..4].copy_from_slice(&wirespeed_router::checksum::checksum(&pseudo).to_be_bytes());
        packet.extend(error);
        return [&[2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9, 0x86, 0xdd][..], &packet].concat();
    }
    let mut error = [&[3, 4, 0, 0, 0, 0][..], &mtu.to_be_bytes(), quoted].concat();
    let sum = wirespeed_router::checksum::checksum(&error);
    error[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut frame = vec![2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9, 8, 0, 0x45, 0, 0, 20 + error.len() as u8];
    frame.extend([0, 0, 0, 0, 64, 1, 0, 0, 198, 51, 100, 1, 192, 0, 2, 1]);
    frame.extend(error);
    seal_header(&mut frame);
    frame
}

#[test]
fn paths_tell_their_size() {
    for (tunnel, is_v6) in [(TUNNELS[0], false), (TUNNELS[1], true)] {
        for encap in ["", "encap espinudp 4500 4500 0.0.0.0"] {
            let database = database(&lines("out", SUITES[0], tunnel, encap));
            let (_, sealed, _) = run(&database, &vec![datagram(false, 1200); 3]);
            let path_mtu = || database.state().sas().next().unwrap().path_mtu();
            let quoted = &sealed[0][14..][..100];
            let esp = if is_v6 { 40 } else { 20 } + if encap.is_empty() { 0 } else { 8 };
            let changed = |at: usize, to: u8| {
                let mut quoted = quoted.to_vec();
                quoted[at] = to;
                too_large(&quoted, 700)
            };
            let mut forged = vec![
                too_large(quoted, 700),
                // Another index, and sequence numbers that were not sent yet, or long ago.
                changed(esp + 3, 9),
                changed(esp + 7, 4),
                changed(esp + 7, 0),
                changed(esp + 4, 1),
                // A packet that the link takes.
                too_large(quoted, 1400),
            ];
            // A wrong checksum.
            *forged[0].last_mut().unwrap() ^= 1;
            if !encap.is_empty() {
                forged.push(changed(esp - 7, 9));
            }
            for forged in forged {
                run(&database, &[forged]);
                assert_eq!(path_mtu(), 1500);
            }
            for (mtu, told) in [(700, 700), (300, 576), (650, 576)] {
                run(&database, &[too_large(quoted, mtu)]);
                assert_eq!(path_mtu(), if is_v6 { 1280 } else { told });
            }
        }
    }
}

/// Runs frames of a source from memory to memory. Returns how many were sealed and opened, and how often the
/// other end of a tunnel moved.
fn from_memory(database: &Database, source: Source, count: u64) -> [u64; 3] {
    let labels = Labels::new();
    let hop = Route::Via(Hop::new(PortId(1), Mac([2, 0, 1, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 1]), 1500));
    let routes = ["0.0.0.0/0", "::/0"].map(|net| (net.parse::<IpNet>().unwrap(), hop.clone()));
    let table = IpTable::builder().labelled_routes(&labels, routes).build().unwrap();
    let own = Owns::default();
    let app = Esp::new(Ip::new(&table.reader(), &labels, &own), database.reader(), &own);
    let mut memory = Memory::new(512).unwrap();
    let names = ["memory0", "memory1"].map(str::to_owned);
    let ports = MemoryPort::ports(names, source, &mut memory, Limits { count: Some(count), rate: None });
    let ports = ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
    let mut worker = Worker::new(app, memory, ports, Settings::default());
    let stats = worker.run(&AtomicBool::new(false), &Published::default()).unwrap();
    assert!(stats.is_whole());
    assert_eq!((stats.frames_in, stats.dropped.all()), (count, 0), "{:?}", stats.dropped);
    let counters = worker.report().counters;
    let of = |name: &str| counters.iter().find(|(known, _)| *known == name).unwrap().1;
    ["esp_sealed", "esp_opened", "esp_mappings_changed"].map(of)
}

#[test]
fn frames_in_memory_are_sealed_and_opened() {
    const COUNT: usize = 2_000;
    for suite in SUITES {
        for (tunnel, is_v6) in [(TUNNELS[0], false), (TUNNELS[1], true)] {
            let more = "flag esn replay-window 4096";
            let here = database(&lines("out", suite, tunnel, more));
            let source = Box::new(move |give: &mut dyn FnMut(&[u8])| give(&datagram(is_v6, 200)));
            assert_eq!(from_memory(&here, source, COUNT as u64), [COUNT as u64, 0, 0]);
            let there = database(&lines("fwd", suite, tunnel, more));
            let (_, sealed, _) = run(&here, &vec![datagram(is_v6, 200); COUNT]);
            let mut sealed = sealed.into_iter();
            let source =
                Box::new(move |give: &mut dyn FnMut(&[u8])| give(&sealed.next().unwrap_or_default()));
            assert_eq!(from_memory(&there, source, COUNT as u64), [0, COUNT as u64, 0]);
        }
    }
}

/// Address translation between the gateways takes another port, and then a third one.
#[test]
fn tunnels_whose_other_end_moves_are_counted_and_told() {
    const PORT: usize = 14 + 20;
    let encap = "encap espinudp 4500 4500 0.0.0.0";
    let here = database(&lines("out", SUITES[0], TUNNELS[0], encap));
    let there = database(&lines("fwd", SUITES[0], TUNNELS[0], encap));
    let (_, sealed, _) = run(&here, &vec![datagram(false, 200); 9]);
    let mut sealed = sealed.into_iter().zip(0_u8..).map(|(mut frame, at)| {
        frame[PORT] += at / 3;
        frame
    });
    let source = Box::new(move |give: &mut dyn FnMut(&[u8])| give(&sealed.next().unwrap_or_default()));
    let told = Arc::default();
    let counts =
        tracing::subscriber::with_default(Told(Arc::clone(&told)), || from_memory(&there, source, 9));
    assert_eq!(counts, [0, 9, 2]);
    // A chunk's packets are opened together, and a second event in the same moment is mostly not told.
    let told = told.lock().unwrap();
    let line = |port: u32| {
        format!(
            "association 0x1000: packets of 192.0.2.1 come from 192.0.2.1, port {port}, now: address translation changed"
        )
    };
    let known = [line(4500 + (1 << 8)), line(4500 + (2 << 8))];
    assert!((1..=2).contains(&told.len()) && told.iter().all(|line| known.contains(line)), "{told:?}");
}

/// Notes the warnings of a thread.
struct Told(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Told {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let told = &mut *self.0.lock().unwrap();
        event.record(&mut |_: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            told.push(format!("{value:?}"));
        });
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::Id {
        tracing::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::Id, _: &tracing::Id) {}

    fn enter(&self, _: &tracing::Id) {}

    fn exit(&self, _: &tracing::Id) {}
}
