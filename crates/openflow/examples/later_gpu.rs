//! Throwaway: wildcards of many masks in a table, by a device.
#![allow(dead_code, unused_imports, clippy::all)]
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wirespeed_openflow::wire::{Action, Field, FlowMod, Instructions, Match};
use wirespeed_openflow::{Switch, SwitchOptions};
use wirespeed_rng::Rng;
use wirespeed_router::frames::Datagram;
use wirespeed_router::io::{Port, PortCounts};
use wirespeed_router::{App, Error, Frame, Mac, Memory, Published, Settings, Stats, Worker};
const STRIDE: u32 = 384;
/// One end of a ring of frames.
struct Ring {
    ready: Arc<Mutex<VecDeque<Frame>>>,
    is_source: bool,
    counts: PortCounts,
}

impl Port for Ring {
    fn name(&self) -> &'static str {
        "ring"
    }

    fn receive(&mut self, _: &mut Memory, frames: &mut Vec<Frame>, most: usize) -> Result<usize, Error> {
        if !self.is_source {
            return Ok(0);
        }
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        let count = most.min(ready.len());
        frames.extend(ready.drain(..count));
        self.counts.received += count as u64;
        Ok(count)
    }

    fn send(&mut self, _: &mut Memory, frames: &mut Vec<Frame>) -> Result<usize, Error> {
        let count = frames.len();
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).extend(frames.drain(..));
        self.counts.sent += count as u64;
        Ok(count)
    }

    fn held(&self) -> usize {
        if self.is_source { self.ready.lock().unwrap_or_else(PoisonError::into_inner).len() } else { 0 }
    }

    fn close(&mut self, memory: &mut Memory) {
        if self.is_source {
            let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
            ready.drain(..).for_each(|frame| memory.give(frame));
        }
    }

    fn counts(&self) -> PortCounts {
        self.counts
    }
}

fn output() -> Instructions {
    Instructions {
        apply: vec![Action::Output { port: 2, max_len: 0 }],
        has_apply: true,
        ..Instructions::default()
    }
}

/// Seconds that this thread had a CPU, where Linux tells: on a machine with other work they say more than the
/// clock.
fn on_cpu() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    times.split(' ').next().and_then(|nanoseconds| nanoseconds.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

fn main() {
    let a: Vec<String> = std::env::args().skip(1).collect();
    let (table, flows, masks): (u8, u32, u32) =
        (a[0].parse().unwrap(), a[1].parse().unwrap(), a[2].parse().unwrap());
    let seconds: f64 = a[3].parse().unwrap();
    let workers: usize = a[5].parse().unwrap();
    let is_split = a.len() > 6;
    let device = match &*a[4] {
        "cpu" => wirespeed::Device::Cpu,
        "gpu" => wirespeed::Device::Gpu,
        _ => wirespeed::Device::Auto,
    };
    let options = SwitchOptions { workers, device, ..SwitchOptions::with_ports(["in", "out"]) };
    let switch = Switch::new(options).unwrap();
    let mut rng = Rng::new(3);
    let mut all = vec![FlowMod::add(table, 1, Match::all(), output())];
    let prefix = |bits: u32| u128::from(u32::MAX << (32 - bits));
    for number in 1..flows {
        let mask = number % masks;
        let (source, destination) = (9 + mask % 23, 8 + mask / 23);
        let matched = Match::all()
            .with(Field::EthType, 0x0800)
            .with_masked(Field::Ipv4Src, u128::from(rng.below(1 << 32)) & prefix(source), prefix(source))
            .with_masked(
                Field::Ipv4Dst,
                u128::from(rng.below(1 << 32)) & prefix(destination),
                prefix(destination),
            );
        all.push(FlowMod::add(table, 2 + (rng.below(60_000)) as u16, matched, output()));
    }
    switch.flow_mods(&all).unwrap();
    if table > 0 {
        let goto = Instructions { goto: Some(table), ..Instructions::default() };
        switch.flow_mod(&FlowMod::add(0, 1, Match::all(), goto)).unwrap();
        if is_split {
            let apply = vec![Action::SetField(Field::EthSrc, 7)];
            let goto = Instructions { apply, has_apply: true, goto: Some(table), ..Instructions::default() };
            switch.flow_mod(&FlowMod::add(0, 2, Match::all(), goto)).unwrap();
        }
    }
    let t = Instant::now();
    switch.settle();
    eprintln!("settled in {:?}, {}", t.elapsed(), switch.has_classifier(table));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop = &stop;
        let all: Vec<_> = (0..workers)
            .map(|w| {
                let switch = switch.clone();
                scope.spawn(move || {
                    let mut rng = Rng::new(100 + w as u64);
                    let mut memory = Memory::with_stride(1 << 18, STRIDE).unwrap();
                    let ready: VecDeque<Frame> = (0..200_000)
                        .map(|_| {
                            let ip = |n: u64| IpAddr::from(Ipv4Addr::from(n as u32));
                            let bytes = Datagram {
                                to: Mac([2, 0, 0, 0, 0, 1]),
                                from: Mac([2, 0, 0, 0, 0, 2]),
                                addresses: (ip(rng.below(1 << 32)), ip(rng.below(1 << 32))),
                                ports: (40_000, 53),
                                hops: 64,
                                bytes: 60,
                            }
                            .to_bytes();
                            memory.copy_of(&bytes).unwrap()
                        })
                        .collect();
                    let ready = Arc::new(Mutex::new(ready));
                    let port = |is_source| Ring {
                        ready: Arc::clone(&ready),
                        is_source,
                        counts: PortCounts::default(),
                    };
                    let ports: Vec<Box<dyn Port>> = vec![Box::new(port(true)), Box::new(port(false))];
                    let mut worker = Worker::new(
                        switch.app().unwrap(),
                        memory,
                        ports,
                        Settings { deadline: Duration::from_millis(10), ..Settings::default() },
                    );
                    let begin = Instant::now();
                    let stats = worker.run(stop, &Published::default()).unwrap();
                    (stats, begin.elapsed().as_secs_f64(), worker.app().counters())
                })
            })
            .collect();
        std::thread::sleep(Duration::from_secs_f64(seconds + 1.0));
        stop.store(true, Ordering::Relaxed);
        let mut rate = 0.0;
        let (mut cpu, mut gpu) = (0, 0);
        for one in all {
            let (stats, took, _) = one.join().unwrap();
            assert!(stats.is_whole() && stats.frames_in == stats.frames_out);
            rate += stats.frames_out as f64 / took / 1e6;
            cpu += stats.chunks_cpu;
            gpu += stats.chunks_gpu;
        }
        println!(
            "table {table}, {flows} flows, {masks} masks, {} workers {workers} {}: {rate:.2} Mpps, chunks {cpu} {gpu}",
            a[4],
            if is_split { "set" } else { "" }
        );
    });
}
