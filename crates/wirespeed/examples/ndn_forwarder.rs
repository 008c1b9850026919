//! An NDN forwarder's FIB: Interests come in as packets, faces come out, and routes change meanwhile.
//!
//! `cargo run --release -p wirespeed --example ndn_forwarder [SECONDS]`
//!
//! Routes, Interests and changes are synthetic and seeded. One thread takes changes from a channel, as a
//! routing daemon sends them; two threads forward, each with a reader and memory of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use wirespeed::names::generate::{self, Churn, ChurnSpec, Load, Paths, TableSpec, TraceSpec};
use wirespeed::names::tlv::{Packet, WireNameBuf};
use wirespeed::names::{NameRib, read};
use wirespeed::prelude::*;

/// Packets that are forwarded at a time.
const BURST: usize = 256;
/// Updates that are applied at a time, at most.
const TOGETHER: usize = 1024;
/// Faces of the forwarder.
const FACES: u32 = 16;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(2.0), |seconds| seconds.parse::<f64>())?;
    let read::NameFib { names, .. } =
        generate::table(&TableSpec { names: 200_000, results: FACES, seed: 1 })?;
    let packets = interests(&names, 100_000)?;
    let spec = ChurnSpec { results: FACES, ..ChurnSpec::default() };
    let changes: Vec<_> = Churn::new(&names, &spec)?.take(100_000).map(|timed| timed.update).collect();

    let mut fib = NameTable::builder().rib(names).build()?;
    println!("{} prefixes, engine {}, {} KiB", fib.len(), fib.engine(), fib.memory_usage() >> 10);

    let (sender, receiver) = mpsc::sync_channel(4 * TOGETHER);
    let stop = &AtomicBool::new(false);
    let reader = fib.reader();
    let (forwarded, applied) = thread::scope(|scope| {
        let forwarders: Vec<_> = (0..2)
            .map(|_| {
                let (reader, packets) = (reader.clone(), &packets);
                scope.spawn(move || forward(&reader, packets, stop))
            })
            .collect();
        let fib = &mut fib;
        let writer = scope.spawn(move || change(fib, &receiver));
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let mut feed = changes.iter().cycle();
        while Instant::now() < end {
            // A routing daemon's part.
            for update in feed.by_ref().take(TOGETHER) {
                let _ = sender.send(update.clone());
            }
        }
        drop(sender);
        stop.store(true, Ordering::Relaxed);
        let forwarded: Vec<_> =
            forwarders.into_iter().map(|forwarder| forwarder.join().unwrap_or_default()).collect();
        (forwarded, writer.join())
    });
    let applied = applied.map_err(|_| "the writer panicked")??;
    let sum = |of: fn(&Forwarded) -> u64| forwarded.iter().map(of).sum::<u64>();
    let sent: u64 = sum(|forwarded| forwarded.by_face.iter().skip(1).sum());
    println!(
        "{sent} Interests sent on, {} without a route, {} that are no packets; {applied} updates in {seconds} s",
        sum(|forwarded| forwarded.by_face[0]),
        sum(|forwarded| forwarded.malformed)
    );
    Ok(())
}

/// What came of packets.
struct Forwarded {
    /// Interests by the face that they left by, those without a route first.
    by_face: Vec<u64>,
    malformed: u64,
}

impl Default for Forwarded {
    fn default() -> Self {
        Self { by_face: vec![0; FACES as usize + 1], malformed: 0 }
    }
}

/// Forwards burst after burst.
fn forward(reader: &NameReader, packets: &[Vec<u8>], stop: &AtomicBool) -> Forwarded {
    let mut forwarded = Forwarded::default();
    let (mut text, mut names) = (Vec::new(), NameBatch::new());
    let mut faces = vec![NextHop::NONE; BURST];
    for burst in packets.chunks(BURST).cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        names.clear();
        for packet in burst {
            let pushed = Packet::parse(packet).is_ok_and(|interest| {
                interest.name.write_name(&mut text).and_then(|name| names.push(name)).is_ok()
            });
            forwarded.malformed += u64::from(!pushed);
        }
        let faces = &mut faces[..names.len()];
        reader.lookup_batch(&names, faces);
        for face in faces {
            forwarded.by_face[face.0 as usize] += 1;
        }
    }
    forwarded
}

/// Applies what comes, all that is waiting at once, until the channel closes; how many updates that were.
fn change(fib: &mut NameTable, incoming: &Receiver<NameUpdate>) -> Result<u64, wirespeed::Error> {
    let mut applied = 0;
    let mut together = Vec::with_capacity(TOGETHER);
    while let Ok(first) = incoming.recv() {
        together.clear();
        together.push(first);
        together.extend(incoming.try_iter().take(TOGETHER - 1));
        fib.apply(&together)?;
        applied += together.len() as u64;
    }
    Ok(applied)
}

/// Interests for names beneath those of a table.
fn interests(names: &NameRib, count: usize) -> Result<Vec<Vec<u8>>, Box<dyn std::error::Error>> {
    let spec = TraceSpec { load: Load::Average, misses: 0.1, seed: 1 };
    let trace = generate::trace(names, Paths::made(), &spec, count)?;
    let interest = |name: &Name| {
        let mut body = Vec::new();
        WireNameBuf::from_name(name)?.as_wire().encode(&mut body);
        body.extend_from_slice(b"\x0a\x04\x01\x02\x03\x04"); // the nonce
        let length = u8::try_from(body.len()).ok().filter(|&length| length < 253);
        let mut packet = vec![0x05];
        match length {
            Some(length) => packet.push(length),
            None => {
                packet.push(253);
                packet.extend_from_slice(&u16::try_from(body.len())?.to_be_bytes());
            }
        }
        packet.append(&mut body);
        Ok(packet)
    };
    trace.names().iter().map(interest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interests_leave_by_the_face_of_their_longest_prefix() {
        let names = generate::table(&TableSpec { names: 2000, results: FACES, seed: 3 }).unwrap().names;
        let mut packets = interests(&names, 3000).unwrap();
        let mut wanted = vec![0; FACES as usize + 1];
        for packet in &packets {
            let name = Packet::parse(packet).unwrap().name.to_name().unwrap();
            wanted[names.lookup(&name).result as usize] += 1;
        }
        assert!(wanted.iter().all(|&count| count > 0), "{wanted:?}");
        packets.push(b"\x09\x00".to_vec());
        let fib = NameTable::builder().rib(names).build().unwrap();
        let stop = AtomicBool::new(false);
        let reader = fib.reader();
        let forwarded = thread::scope(|scope| {
            let (packets, stop) = (&packets, &stop);
            let forwarder = scope.spawn(move || forward(&reader, packets, stop));
            thread::sleep(Duration::from_millis(500));
            stop.store(true, Ordering::Relaxed);
            forwarder.join().unwrap()
        });
        // Some whole passes and a part of one.
        let whole = forwarded.malformed;
        assert!(whole > 0);
        for (count, wanted) in forwarded.by_face.iter().zip(wanted) {
            assert!(
                (wanted * whole..=wanted * (whole + 1)).contains(count),
                "{forwarded:?}",
                forwarded = forwarded.by_face
            );
        }
    }

    #[test]
    fn all_that_was_sent_is_applied() {
        let mut names = generate::table(&TableSpec { names: 2000, results: FACES, seed: 3 }).unwrap().names;
        let spec = ChurnSpec { results: FACES, ..ChurnSpec::default() };
        let updates: Vec<_> =
            Churn::new(&names, &spec).unwrap().take(5000).map(|timed| timed.update).collect();
        let mut fib = NameTable::builder().rib(names.clone()).build().unwrap();
        let (sender, receiver) = mpsc::channel();
        for update in &updates {
            names.apply(update);
            sender.send(update.clone()).unwrap();
        }
        drop(sender);
        assert_eq!(change(&mut fib, &receiver).unwrap(), 5000);
        assert_eq!(fib.len(), names.len());
        let reader = fib.reader();
        assert!(names.iter().all(|(name, result)| reader.lookup(&name) == NextHop(result)));
    }
}
