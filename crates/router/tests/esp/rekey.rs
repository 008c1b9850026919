//! New keys again and again while packets go through a tunnel: every packet comes out, once and in order.
//!
//! `WIRESPEED_SOAK=SECONDS` is for how long; a second by default.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use wirespeed::{IpTable, Labels};
use wirespeed_esp::gpu::Use;
use wirespeed_esp::{Change, Database, Reader};
use wirespeed_router::apps::ip::Owns;
use wirespeed_router::apps::{Esp, Ip};
use wirespeed_router::io::{Port, PortCounts};
use wirespeed_router::{Error, Frame, Hop, Mac, Memory, PortId, Published, Route, Settings, Stats, Worker};

use super::{SUITES, TUNNELS, database, datagram, gpu, lines};

/// Packets under way at most: no queue between the gateways fills.
const UNDER_WAY: u64 = 1000;

/// The state that ports share.
#[derive(Default)]
struct Shared {
    /// Packets that were made, and those that came out.
    made: AtomicU64,
    arrived: AtomicU64,
    /// Whether no more are made, and whether the first gateway is done.
    is_over: AtomicBool,
    is_sent: AtomicBool,
    /// Between the gateways.
    line: Mutex<VecDeque<Vec<u8>>>,
}

enum End {
    Source,
    LineIn,
    LineOut,
    Sink,
}

struct Place {
    end: End,
    shared: Arc<Shared>,
    counts: PortCounts,
}

impl Place {
    fn port(end: End, shared: &Arc<Shared>) -> Box<dyn Port> {
        Box::new(Self { end, shared: Arc::clone(shared), counts: PortCounts::default() })
    }

    fn next(&self, template: &[u8]) -> Option<Vec<u8>> {
        let shared = &self.shared;
        match self.end {
            End::Source => {
                let made = shared.made.load(Ordering::Acquire);
                if shared.is_over.load(Ordering::Acquire)
                    || made - shared.arrived.load(Ordering::Acquire) >= UNDER_WAY
                {
                    return None;
                }
                let mut frame = template.to_vec();
                let at = frame.len() - 8;
                frame[at..].copy_from_slice(&made.to_be_bytes());
                shared.made.store(made + 1, Ordering::Release);
                Some(frame)
            }
            End::LineOut => shared.line.lock().unwrap().pop_front(),
            End::LineIn | End::Sink => None,
        }
    }
}

impl Port for Place {
    fn name(&self) -> &'static str {
        "place"
    }

    fn receive(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>, most: usize) -> Result<usize, Error> {
        let template = datagram(false, 200);
        let mut received = 0;
        while received < most
            && memory.free() > 0
            && let Some(bytes) = self.next(&template)
        {
            frames.push(memory.copy_of(&bytes).unwrap());
            received += 1;
        }
        self.counts.received += received as u64;
        Ok(received)
    }

    fn send(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>) -> Result<usize, Error> {
        let sent = frames.len();
        for frame in frames.drain(..) {
            let bytes = memory.bytes(&frame);
            match self.end {
                End::LineIn => self.shared.line.lock().unwrap().push_back(bytes.to_vec()),
                End::Sink => {
                    let number = u64::from_be_bytes(*bytes.last_chunk().unwrap());
                    // A packet that is lost or comes twice is another one than the next.
                    assert_eq!(number, self.shared.arrived.load(Ordering::Acquire));
                    self.shared.arrived.store(number + 1, Ordering::Release);
                }
                End::Source | End::LineOut => panic!("nothing goes back"),
            }
            memory.give(frame);
        }
        self.counts.sent += sent as u64;
        Ok(sent)
    }

    fn held(&self) -> usize {
        0
    }

    fn close(&mut self, _: &mut Memory) {}

    fn is_at_end(&self) -> bool {
        match self.end {
            End::Source => self.shared.is_over.load(Ordering::Acquire),
            End::LineOut => {
                self.shared.is_sent.load(Ordering::Acquire) && self.shared.line.lock().unwrap().is_empty()
            }
            End::LineIn | End::Sink => true,
        }
    }

    fn counts(&self) -> PortCounts {
        self.counts
    }
}

/// Runs a gateway until its source ends.
fn gateway(reader: Reader, ports: Vec<Box<dyn Port>>, by_device: bool) -> Stats {
    let labels = Labels::new();
    let hop = Route::Via(Hop::new(PortId(1), Mac([2, 0, 1, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 1]), 1500));
    let table = IpTable::builder()
        .labelled_routes(&labels, [("0.0.0.0/0".parse::<IpNet>().unwrap(), hop)])
        .build()
        .unwrap();
    let own = Owns::default();
    let mut app = Esp::new(Ip::new(&table.reader(), &labels, &own), reader, &own);
    if by_device && let Some((device, _)) = gpu::device(Use::Always) {
        app = app.gpu(device);
    }
    let mut worker = Worker::new(app, Memory::new(4096).unwrap(), ports, Settings::default());
    worker.run(&AtomicBool::new(false), &Published::default()).unwrap()
}

/// The association of a number: its keys are its own.
fn association(number: u32) -> Vec<Change> {
    let suite = SUITES[number as usize % 3].replace("0x00112233", &format!("0x{number:08x}"));
    let text = lines("out", &suite, TUNNELS[0], "").replace("0x1000", &format!("{:#x}", 0x1000 + number));
    let lines = wirespeed_esp::read::Lines::read(text.lines().next().unwrap());
    assert!(lines.skipped.is_empty());
    lines.changes
}

fn rekey(by_device: bool, time: Duration) {
    let shared = Arc::new(Shared::default());
    let mut near = database(&lines("out", SUITES[0], TUNNELS[0], ""));
    let mut far = database(&lines("fwd", SUITES[0], TUNNELS[0], ""));
    let readers = [near.reader(), far.reader()];
    let end = TUNNELS[0].1.parse().unwrap();
    std::thread::scope(|scope| {
        let [near_reader, far_reader] = readers;
        let first = scope.spawn(|| {
            let ports = vec![Place::port(End::Source, &shared), Place::port(End::LineIn, &shared)];
            let stats = gateway(near_reader, ports, by_device);
            shared.is_sent.store(true, Ordering::Release);
            stats
        });
        let second = scope.spawn(|| {
            let ports = vec![Place::port(End::LineOut, &shared), Place::port(End::Sink, &shared)];
            gateway(far_reader, ports, by_device)
        });
        let until = Instant::now() + time;
        let is_running = || !first.is_finished() && !second.is_finished();
        let mut rekeys = 0;
        while Instant::now() < until && is_running() {
            rekeys += 1;
            // As a key daemon does it: the far end has the new keys first, and the old ones until nothing
            // comes by them any more.
            let apply = |database: &mut Database, changes: Vec<Change>| database.apply(changes).unwrap();
            apply(&mut far, association(rekeys));
            apply(&mut near, association(rekeys));
            let made = shared.made.load(Ordering::Acquire);
            while shared.arrived.load(Ordering::Acquire) < made && is_running() {
                std::thread::sleep(Duration::from_micros(200));
            }
            let old = 0x1000 + rekeys - 1;
            apply(&mut near, vec![Change::RemoveSa(end, old)]);
            apply(&mut far, vec![Change::RemoveSa(end, old)]);
        }
        shared.is_over.store(true, Ordering::Release);
        let (first, second) = (first.join().unwrap(), second.join().unwrap());
        let made = shared.made.load(Ordering::Acquire);
        assert_eq!(
            (first.dropped.all(), second.dropped.all()),
            (0, 0),
            "{:?} {:?}",
            first.dropped,
            second.dropped
        );
        assert_eq!((first.frames_out, second.frames_out), (made, made));
        assert_eq!(shared.arrived.load(Ordering::Acquire), made);
        assert!(rekeys >= 3 && made > 500, "{rekeys} rekeys, {made} packets");
        eprintln!("{rekeys} rekeys, {made} packets, on a device: {by_device}");
    });
}

fn time() -> Duration {
    let seconds = std::env::var("WIRESPEED_SOAK").ok().map(|text| text.parse().expect("seconds"));
    Duration::from_secs(seconds.unwrap_or(1))
}

#[test]
fn new_keys_lose_and_double_no_packet() {
    rekey(false, time());
}

#[test]
fn new_keys_on_a_device_lose_and_double_no_packet() {
    rekey(true, time());
}
