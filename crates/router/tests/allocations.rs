//! Forwarding allocates nothing for a frame: a run of three times as many frames asks for memory about as
//! often.

#![allow(clippy::unwrap_used)] // a test

use std::sync::atomic::AtomicBool;

use wirespeed::prelude::*;
use wirespeed_image::Counting;
use wirespeed_router::apps::Ip;
use wirespeed_router::apps::ip::Owns;
use wirespeed_router::io::Port;
use wirespeed_router::io::memory::{Limits, MemoryPort};
use wirespeed_router::io::traffic::Traffic;
use wirespeed_router::{Hop, Mac, Memory, PortId, Reason, Route, Settings, Worker, run};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls that do not depend on the number of frames: statistics are read each second.
const ASIDE: u64 = 300;

/// Calls for memory of a router that forwards so many frames, some to nowhere.
fn allocations(frames: u64) -> u64 {
    let routes = Labels::new();
    let hop = Hop::new(PortId(1), Mac([2, 0, 0, 0, 0, 9]), Mac([2, 0, 0, 0, 0, 1]), 1500);
    let nets: [IpNet; 3] = ["10.0.0.0/9", "10.128.0.0/9", "2001:db8::/32"].map(|net| net.parse().unwrap());
    let all = [Route::Via(hop), Route::Blackhole, Route::Via(hop)];
    let table = IpTable::builder().labelled_routes(&routes, nets.into_iter().zip(all)).build().unwrap();
    let (own, reader) = (Owns::default(), table.reader());
    let to = ["10.1.2.3", "10.200.0.1", "2001:db8::1", "192.0.2.1"].map(|to| to.parse().unwrap());
    let traffic = Traffic { to: to.into(), sizes: "imix".parse().unwrap(), mac: Mac([2, 0, 0, 0, 0, 0]) };
    let make = |worker: usize| {
        let mut memory = Memory::new(4096)?;
        let limits = Limits { count: Some(frames), rate: None };
        let names = ["in", "out"].map(str::to_owned).into_iter();
        let ports = MemoryPort::ports(names, traffic.source(worker, 1), &mut memory, limits);
        let ports = ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
        Ok(Worker::new(Ip::new(&reader, &routes, &own), memory, ports, Settings::default()))
    };
    let before = ALLOCATOR.of_all();
    let report = run(1, &AtomicBool::new(false), make, |_| {}).unwrap();
    assert_eq!(report.stats.frames_in, frames);
    assert!(report.stats.frames_out > 0 && report.stats.dropped.of(Reason::Blackhole) > 0);
    ALLOCATOR.of_all() - before
}

#[test]
fn a_frame_allocates_nothing() {
    allocations(10_000);
    let (few, many) = (allocations(100_000), allocations(300_000));
    assert!(few > 0 && many < few + ASIDE, "{few} for 100,000 frames, {many} for 300,000");
}
