//! Rates of tunnels on one core: `rate [SECONDS [SUITE [SIZE]]]`, for each suite and size of packets, sealed
//! and opened. SUITE is a part of a name.
//!
//! Frames lie 2,112 bytes apart, as in the router, in chunks of 256. A frame's way is timed whole: outwards
//! the header is read and the policy looked up, the tunnel's headers are written and the packet encrypted;
//! inwards the outer header is read, the association found, the packet decrypted and the inner one found, and
//! the policy looked up. Each chunk is timed alone, and the median counts, because other programs may have
//! the core between. Sizes are those of the inner packets. What is opened is compared with what was sealed.

mod packets;

use std::hint::black_box;
use std::time::{Duration, Instant};

use wirespeed::classify::Ipv4Tuple;
use wirespeed_esp::read::Lines;
use wirespeed_esp::{
    Arrival, Beginning, Database, Direction, Inbound, Outbound, Packets, Reader, Scratch, Sealing, open, seal,
};

use packets::packet;

const CHUNK: usize = 256;
const CHUNKS: usize = 16;
const STRIDE: usize = 2112;
const HEAD: usize = 256;

const SUITES: &[(&str, &str)] = &[
    ("AES-GCM-128", "aead 'rfc4106(gcm(aes))' 0x00112233445566778899aabbccddeeff01020304 128"),
    (
        "AES-GCM-256",
        "aead 'rfc4106(gcm(aes))' 0x00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff01020304 128",
    ),
    (
        "AES-128-CTR HMAC-SHA1-96",
        "enc 'rfc3686(ctr(aes))' 0x00112233445566778899aabbccddeeff01020304 \
         auth-trunc 'hmac(sha1)' 0x000102030405060708090a0b0c0d0e0f10111213 96",
    ),
    (
        "NULL HMAC-SHA1-96",
        "enc cipher_null '' auth-trunc 'hmac(sha1)' 0x000102030405060708090a0b0c0d0e0f10111213 96",
    ),
];

/// Sizes of inner packets; 7 of 40, 4 of 576 and 1 of 1,500 bytes are the mixture of the Internet.
const SIZES: &[(&str, &[usize])] = &[
    ("64", &[64]),
    ("128", &[128]),
    ("256", &[256]),
    ("512", &[512]),
    ("1024", &[1024]),
    ("1420", &[1420]),
    ("1500", &[1500]),
    ("imix", &[40, 576, 40, 40, 576, 40, 1500, 40, 576, 40, 576, 40]),
];

/// Packets in buffers: where each begins and how long it is.
struct Buffers {
    bytes: Vec<u8>,
    spans: Vec<(usize, usize)>,
}

impl Packets for Buffers {
    fn packet(&self, at: usize) -> &[u8] {
        let (start, len) = self.spans[at];
        &self.bytes[start..start + len]
    }

    fn packet_mut(&mut self, at: usize) -> &mut [u8] {
        let (start, len) = self.spans[at];
        &mut self.bytes[start..start + len]
    }
}

/// Memory that is used again.
#[derive(Default)]
struct Spare {
    scratch: Scratch,
    tuples: Vec<Ipv4Tuple>,
    numbers: Vec<u32>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds: f64 = arguments.next().map_or(Ok(0.05), |text| text.parse())?;
    let (suite, size) = (arguments.next().unwrap_or_default(), arguments.next());
    println!(
        "{:<26} {:>6} {:>12} {:>12} {:>12} {:>12}",
        "suite", "bytes", "seal ns", "Gb/s", "open ns", "Gb/s"
    );
    for (name, words) in SUITES.iter().filter(|(name, _)| name.contains(&suite)) {
        let text = format!(
            "state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x100 reqid 1 mode tunnel path-mtu 1600 \
             replay-window 1024 flag esn {words}\n\
             policy add src 10.1.0.0/16 dst 10.2.0.0/16 dir out tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid 1 mode tunnel\n\
             policy add src 10.1.0.0/16 dst 10.2.0.0/16 dir in tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid 1 mode tunnel\n"
        );
        let lines = Lines::read(&text);
        assert!(lines.skipped.is_empty(), "{:?}", lines.skipped);
        let mut database = Database::new()?;
        database.apply(lines.changes)?;
        for (label, sizes) in SIZES.iter().filter(|(label, _)| size.as_ref().is_none_or(|size| size == label))
        {
            let (sealing, opening) = rate(&database.reader(), sizes, Duration::from_secs_f64(seconds));
            let bytes: usize = (0..CHUNK).map(|at| sizes[at % sizes.len()]).sum();
            let each = |time: Duration| time.as_secs_f64() * 1e9 / CHUNK as f64;
            let gbps = |time: Duration| bytes as f64 * 8.0 / time.as_secs_f64() / 1e9;
            println!(
                "{name:<26} {label:>6} {:>12.1} {:>12.2} {:>12.1} {:>12.2}",
                each(sealing),
                gbps(sealing),
                each(opening),
                gbps(opening)
            );
        }
    }
    Ok(())
}

/// The median time of a chunk, sealed and opened.
fn rate(reader: &Reader, sizes: &[usize], at_least: Duration) -> (Duration, Duration) {
    let frames = CHUNK * CHUNKS;
    let mut buffers = Buffers { bytes: vec![7; frames * STRIDE], spans: vec![(0, 0); frames] };
    let inner: Vec<Vec<u8>> = (0..CHUNK).map(|at| packet(sizes[at % sizes.len()])).collect();
    for at in 0..frames {
        buffers.spans[at] = (at * STRIDE + HEAD, inner[at % CHUNK].len());
        buffers.packet_mut(at).copy_from_slice(&inner[at % CHUNK]);
    }
    let mut spare = Spare::default();
    let (mut sealing, mut opening) = (Vec::new(), Vec::new());
    let start = Instant::now();
    while start.elapsed() < at_least || sealing.len() < 2 * CHUNKS {
        for chunk in 0..CHUNKS {
            let range = chunk * CHUNK..(chunk + 1) * CHUNK;
            // The hop that a tunnel takes is given back, with the checksum.
            for at in range.clone() {
                buffers.packet_mut(at)[..20].copy_from_slice(&inner[at % CHUNK][..20]);
            }
            let begin = Instant::now();
            send(reader, &mut buffers, range.clone(), &mut spare);
            sealing.push(begin.elapsed());
        }
        for chunk in 0..CHUNKS {
            let range = chunk * CHUNK..(chunk + 1) * CHUNK;
            let begin = Instant::now();
            receive(reader, &mut buffers, range.clone(), &mut spare);
            opening.push(begin.elapsed());
            for at in range {
                let (found, sent) = (buffers.packet(at), &inner[at % CHUNK]);
                assert!(found.len() == sent.len() && found[20..] == sent[20..] && found[8] + 1 == sent[8]);
            }
        }
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    (median(&mut sealing), median(&mut opening))
}

/// Takes packets into the tunnel that their policies say.
fn send(reader: &Reader, buffers: &mut Buffers, range: std::ops::Range<usize>, spare: &mut Spare) {
    ask(reader, Direction::Out, buffers, range.clone(), spare);
    let state = reader.state();
    let mut ready = Vec::with_capacity(CHUNK);
    for (at, &number) in range.zip(&spare.numbers) {
        let Outbound::Protect(sa) = state.outbound(number) else { panic!("the policy protects all") };
        ready.push((at, Sealing::begin(sa, buffers.packet(at)).expect("it fits the tunnel")));
    }
    let mut unsealed = Vec::with_capacity(CHUNK);
    for run in ready.chunk_by(|(_, one), (_, other)| one.is_beside(other)) {
        let mut numbers = run[0].1.take(run.len());
        for &(at, sealing) in run {
            let (start, _) = buffers.spans[at];
            buffers.spans[at] = (start - sealing.head(), sealing.len());
            let written = sealing.write_next(at, buffers.packet_mut(at), &mut numbers);
            unsealed.push(written.expect("the association has numbers left"));
        }
    }
    seal(&unsealed, buffers, &mut spare.scratch);
}

/// Takes packets out of their tunnel.
fn receive(reader: &Reader, buffers: &mut Buffers, range: std::ops::Range<usize>, spare: &mut Spare) {
    let state = reader.state();
    let mut openings = Vec::with_capacity(CHUNK);
    let mut beginning = Beginning::new(&state);
    for at in range.clone() {
        let arrival =
            Arrival::read(buffers.packet(at), |address| state.is_end(address), |port| state.is_port(port));
        let Arrival::Esp(envelope) = arrival else { panic!("{arrival:?}") };
        openings
            .push(beginning.begin(envelope, at).expect("it is new, and has the association that sealed it"));
    }
    drop(beginning);
    let mut outcomes = Vec::with_capacity(CHUNK);
    open(&openings, buffers, &mut spare.scratch, &mut outcomes);
    for (opening, outcome) in openings.iter().zip(outcomes) {
        let opened = outcome.expect("it is authentic");
        let (start, _) = buffers.spans[opening.at];
        buffers.spans[opening.at] = (start + opened.start, opened.len);
    }
    ask(reader, Direction::In, buffers, range, spare);
    for (opening, &number) in openings.iter().zip(&spare.numbers) {
        assert_eq!(black_box(state.inbound(number, Some(opening.sa()))), Inbound::Accept);
    }
}

/// Looks up the policies of packets.
fn ask(
    reader: &Reader,
    direction: Direction,
    buffers: &Buffers,
    range: std::ops::Range<usize>,
    spare: &mut Spare,
) {
    spare.tuples.clear();
    spare.tuples.extend(range.map(|at| Ipv4Tuple::of_packet(buffers.packet(at)).expect("a whole header")));
    spare.numbers.resize(spare.tuples.len(), 0);
    reader.rules(direction).v4.lookup_batch(&spare.tuples, &mut spare.numbers);
}
