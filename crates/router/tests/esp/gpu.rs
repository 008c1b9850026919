//! Tunnels on a device: the host build of the kernels, and what becomes of frames when it fails.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ipnet::IpNet;
use wirespeed::{IpTable, Labels};
use wirespeed_esp::Database;
use wirespeed_esp::gpu::{Device, Offload, Options, Use};
use wirespeed_kernels_host::{HostDriver, Sanitizers};
use wirespeed_router::apps::ip::Owns;
use wirespeed_router::apps::{Esp, Ip};
use wirespeed_router::{App, Chunk, Hop, Mac, Memory, PortId, Reason, Route, Settings, Stats};

use super::{SUITES, TUNNELS, database, datagram, lines, list, payload, tagged};

/// A device, and what makes it fail. `None`, after saying why, where there is none.
pub(super) fn device(by: Use) -> Option<(Offload, Arc<AtomicBool>)> {
    let driver = HostDriver::for_tests(Sanitizers::On)?;
    let switch = driver.switch();
    let options = Options { keys: 16, slots: 6, frames: 24, bytes: 1 << 16, lanes: None };
    Some((Offload::new(Device::new(Box::new(driver), &options).unwrap(), by), switch))
}

/// An application that fails its device behind the start of a chunk.
struct Failing<A> {
    inner: A,
    chunks: usize,
    fails_at: usize,
    switch: Arc<AtomicBool>,
    asked: Cell<usize>,
    /// Whether chunks are of the size for a GPU.
    is_for_gpu: bool,
}

impl<A: App> App for Failing<A> {
    type Pending = A::Pending;

    fn pre_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory) -> A::Pending {
        // Some are small in between, as where the load changes.
        if self.is_for_gpu && self.chunks % 8 != 7 {
            chunk.set_for_gpu();
        }
        let pending = self.inner.pre_shade(chunk, memory);
        self.chunks += 1;
        if self.chunks == self.fails_at {
            self.switch.store(true, Ordering::Relaxed);
        }
        pending
    }

    /// Chunks stay under way as long as they may, so that several are: until no more come.
    fn is_ready(&self, _: &A::Pending) -> bool {
        self.asked.set(self.asked.get() + 1);
        self.asked.get() > 1000
    }

    fn post_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory, pending: A::Pending) {
        self.inner.post_shade(chunk, memory, pending);
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.inner.counters()
    }
}

/// Runs frames through a gateway with a device, which fails behind the start of a chunk, from 1 on. Returns
/// the frames that went out, and the packets that the device did and those that it left.
pub(super) fn run(
    database: &Database,
    frames: &[Vec<u8>],
    by: Use,
    fails_at: usize,
) -> Option<(Stats, Vec<Vec<u8>>, [u64; 2])> {
    run_sized(database, frames, by, fails_at, by == Use::ByCost)
}

/// Does the same, with chunks that are of the size for a GPU or not.
fn run_sized(
    database: &Database,
    frames: &[Vec<u8>],
    by: Use,
    fails_at: usize,
    is_for_gpu: bool,
) -> Option<(Stats, Vec<Vec<u8>>, [u64; 2])> {
    let (gpu, switch) = device(by)?;
    let labels = Labels::new();
    let hop = Route::Via(Hop::new(PortId(1), Mac([2, 0, 1, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 1]), 1500));
    let routes = ["0.0.0.0/0", "::/0"].map(|net| (net.parse::<IpNet>().unwrap(), hop.clone()));
    let table = IpTable::builder().labelled_routes(&labels, routes).build().unwrap();
    let own = Owns::default();
    let esp = Esp::new(Ip::new(&table.reader(), &labels, &own), database.reader(), &own).gpu(gpu);
    let counts = Cell::new([0; 2]);
    let failing = Failing { inner: esp, chunks: 0, fails_at, switch, asked: Cell::new(0), is_for_gpu };
    let app = Told { inner: failing, counts: &counts };
    let settings = Settings { chunk: if by == Use::Always { 10 } else { 20 }, ..Settings::default() };
    let (stats, sent) = list::run(app, frames, 2, settings);
    assert!(stats.is_whole(), "{stats:?}");
    let out = sent[1].lock().unwrap().clone();
    Some((stats, out, counts.get()))
}

/// An application whose counters can be read when its worker is gone.
struct Told<'c, A: App> {
    inner: A,
    counts: &'c Cell<[u64; 2]>,
}

impl<A: App> App for Told<'_, A> {
    type Pending = A::Pending;

    fn pre_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory) -> A::Pending {
        self.inner.pre_shade(chunk, memory)
    }

    fn is_ready(&self, pending: &A::Pending) -> bool {
        self.inner.is_ready(pending)
    }

    fn post_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory, pending: A::Pending) {
        self.inner.post_shade(chunk, memory, pending);
        let counters = self.inner.counters();
        let of = |name: &str| counters.iter().find(|(known, _)| *known == name).unwrap().1;
        self.counts.set([of("esp_by_gpu"), of("esp_gpu_recovered")]);
    }
}

fn frames() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for bytes in [42, 61, 62, 63, 64, 576, 1400] {
        for is_v6 in [false, true] {
            frames.extend([datagram(is_v6, bytes), tagged(&datagram(is_v6, bytes))]);
        }
    }
    frames
}

#[test]
fn a_device_seals_and_opens_what_the_cpu_does() {
    for (suite, tunnel, more) in [
        (SUITES[0], TUNNELS[0], "flag esn replay-window 256"),
        (SUITES[1], TUNNELS[1], "encap espinudp 4500 4500 0.0.0.0"),
        (SUITES[2], TUNNELS[0], ""),
        (SUITES[3], TUNNELS[0], ""),
    ] {
        let frames = frames();
        let count = frames.len() as u64;
        let near = database(&lines("out", suite, tunnel, more));
        let Some((stats, sealed, done)) = run(&near, &frames, Use::Always, 0) else { return };
        assert_eq!((stats.frames_out, stats.dropped.all()), (count, 0), "{:?}", stats.dropped);
        let by_device = if suite == SUITES[3] { 0 } else { count };
        assert_eq!((done, stats.sizes_gpu.frames()), ([by_device, 0], by_device));
        // The CPU opens what the device sealed, and the device opens it to the same bytes.
        let there = [(); 2].map(|()| database(&lines("fwd", suite, tunnel, more)));
        let (by_cpu, opened, _) = super::run(&there[0], &sealed);
        assert_eq!(by_cpu.frames_out, count, "{:?}", by_cpu.dropped);
        let (stats, opened_there, done) = run(&there[1], &sealed, Use::Always, 0).unwrap();
        assert_eq!((stats.frames_out, done), (count, [by_device, 0]), "{:?}", stats.dropped);
        assert!(opened_there == opened);
        for (frame, opened) in frames.iter().zip(&opened) {
            assert_eq!(payload(opened).1, payload(frame).1);
        }
        // Nothing is taken twice, and nothing that was changed is taken.
        let mut again = sealed.clone();
        *again.last_mut().unwrap().last_mut().unwrap() ^= 1;
        let fresh = database(&lines("fwd", suite, tunnel, more));
        let (stats, ..) = run(&fresh, &[again, sealed].concat(), Use::Always, 0).unwrap();
        let dropped = |reason| stats.dropped.of(reason);
        assert_eq!((dropped(Reason::EspReplay), dropped(Reason::EspTag)), (count - 1, 1));
        assert_eq!(stats.frames_out, count);
    }
}

#[test]
fn a_device_that_fails_loses_no_frame_and_doubles_none() {
    let frames: Vec<Vec<u8>> = frames().into_iter().cycle().take(200).collect();
    for suite in [SUITES[0], SUITES[2]] {
        for fails_at in [1, 6, 15] {
            let near = database(&lines("out", suite, TUNNELS[0], ""));
            let Some((stats, sealed, [by_device, recovered])) = run(&near, &frames, Use::Always, fails_at)
            else {
                return;
            };
            assert_eq!((stats.frames_out, stats.dropped.all()), (200, 0), "{:?}", stats.dropped);
            assert!(recovered > 0 && by_device + recovered < 200, "{by_device} {recovered}");
            assert_eq!(by_device > 0, fails_at > 8, "chunks that were under way are back, or are not");
            // Each number is given once, in the order of frames.
            let number = |frame: &Vec<u8>| {
                let at = if frame[12] == 0x81 { 18 } else { 14 } + 20 + 4;
                u32::from_be_bytes(frame[at..at + 4].try_into().unwrap())
            };
            assert_eq!(sealed.iter().map(number).collect::<Vec<_>>(), (1..=200).collect::<Vec<_>>());
            let there = database(&lines("fwd", suite, TUNNELS[0], ""));
            let (stats, opened, [_, recovered]) = run(&there, &sealed, Use::Always, fails_at).unwrap();
            assert_eq!((stats.frames_out, stats.dropped.all()), (200, 0), "{:?}", stats.dropped);
            assert!(recovered > 0);
            for (frame, opened) in frames.iter().zip(&opened) {
                assert_eq!(payload(opened).1, payload(frame).1);
            }
        }
    }
}

/// Packets that come out of a tunnel go into another one, and so do packets in the clear between them.
#[test]
fn numbers_of_a_tunnel_are_in_the_order_of_frames() {
    let tunnel = "tmpl src 192.0.2.2 dst 192.0.2.3 proto esp reqid 2 mode tunnel";
    let text = format!(
        "{}state add src 192.0.2.2 dst 192.0.2.3 proto esp spi 0x2000 reqid 2 mode tunnel {}\n\
         policy add src 10.1.0.0/16 dst 10.2.0.0/16 dir out {tunnel}\n\
         policy add src 10.3.0.0/16 dst 10.2.0.0/16 dir out {tunnel}\n",
        lines("fwd", SUITES[0], TUNNELS[0], ""),
        SUITES[2]
    );
    let (_, sealed, _) =
        super::run(&database(&lines("out", SUITES[0], TUNNELS[0], "")), &vec![datagram(false, 100); 100]);
    let mut clear = datagram(false, 100);
    clear[14 + 13] = 3;
    super::seal_header(&mut clear);
    // Both kinds in a chunk, and whole chunks of each.
    let mut frames = Vec::new();
    for (at, frame) in sealed.into_iter().enumerate() {
        let count = if at < 30 {
            1
        } else if at % 25 == 0 {
            40
        } else {
            0
        };
        frames.push(frame);
        frames.extend(vec![clear.clone(); count]);
    }
    let count = u32::try_from(frames.len()).unwrap();
    let Some((stats, out, [by_device, _])) = run(&database(&text), &frames, Use::Always, 0) else { return };
    assert_eq!((stats.frames_out, stats.dropped.all()), (count.into(), 0), "{:?}", stats.dropped);
    let number = |frame: &Vec<u8>| u32::from_be_bytes(frame[38..42].try_into().unwrap());
    assert_eq!(out.iter().map(number).collect::<Vec<_>>(), (1..=count).collect::<Vec<_>>());
    assert!(by_device > 100, "{by_device}");
}

#[test]
fn auto_leaves_chunks_of_the_size_for_the_cpu_to_it() {
    let frames = vec![datagram(false, 1400); 400];
    let suite = SUITES[2];
    let near = database(&lines("out", suite, TUNNELS[0], ""));
    let Some((stats, sealed, [by_device, _])) = run_sized(&near, &frames, Use::ByCost, 0, false) else {
        return;
    };
    assert_eq!((stats.frames_out, by_device), (400, 0));
    let far = database(&lines("fwd", suite, TUNNELS[0], ""));
    let (stats, _, [by_device, _]) = run_sized(&far, &sealed, Use::ByCost, 0, false).unwrap();
    assert_eq!((stats.frames_out, by_device, stats.chunks_gpu), (400, 0, 0));
}

#[test]
fn auto_keeps_frames_on_the_faster_device() {
    // The host build is slower than any cipher of the CPU.
    let frames = vec![datagram(false, 1400); 2000];
    for suite in SUITES {
        let near = database(&lines("out", suite, TUNNELS[0], ""));
        let Some((stats, sealed, [by_device, _])) = run(&near, &frames, Use::ByCost, 0) else { return };
        assert_eq!((stats.frames_out, stats.dropped.all()), (2000, 0));
        // Each suite that has kernels is tried. With AES-GCM the CPU is faster; SHA-1 takes it so long that
        // the worker may pay less for the trip.
        let tried = match suite {
            _ if suite.contains("cipher_null") => 0..1,
            _ if suite.contains("gcm") => 1..1000,
            _ => 1..2001,
        };
        assert!(tried.contains(&by_device), "{by_device} of {} by {suite}", sealed.len());
        // A chunk that is opened before an earlier one leaves that one's packets behind the window.
        let far = database(&lines("fwd", suite, TUNNELS[0], "replay-window 32"));
        let Some((stats, _, [by_device, _])) = run(&far, &sealed, Use::ByCost, 0) else { return };
        assert_eq!(stats.frames_out, 2000, "{:?}", stats.dropped);
        assert!(tried.contains(&by_device), "{by_device} opened by {suite}");
    }
}
