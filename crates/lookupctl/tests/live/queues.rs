//! Interfaces of several queues: a worker for each.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use crate::changes::allowed_core;
use crate::traffic::Sink;
use crate::world::World;

/// Flows that are sent, and the datagrams of each.
const FLOWS: u64 = 32;
const EACH: u64 = 400;
/// Datagrams that are under way at once: fewer than any buffer on the way holds.
const UNDER_WAY: u64 = 128;

/// A datagram that only asks who forwards it.
const ASKS: u64 = u64::MAX;

/// Sockets in a host, one for each flow.
fn flows(world: &World, side: &str) -> Vec<UdpSocket> {
    let bind = |_| UdpSocket::bind(("0.0.0.0", 0)).unwrap();
    world.inside(side, move || (0..FLOWS).map(bind).collect()).join().unwrap()
}

/// Waits until the router forwards every flow. Until all its queues are open, and it knows the neighbour,
/// the kernel forwards some.
fn settle(world: &World, flows: &[UdpSocket], to: &str) {
    let out = || world.metric("frames_out_total");
    let is_ours = || {
        let before = out();
        flows.iter().for_each(|socket| _ = socket.send_to(&ASKS.to_be_bytes(), (to, 7000)).unwrap());
        let start = Instant::now();
        World::until(|| out() >= before + FLOWS || start.elapsed() > Duration::from_secs(1));
        out() >= before + FLOWS
    };
    assert!(World::until(is_ours), "the router forwards");
}

/// Sends numbered datagrams of several flows in turns, as they come to the sink.
fn send(flows: &[UdpSocket], to: &str, sink: &Sink) {
    let before = sink.count();
    for number in 0..EACH {
        for (flow, socket) in (0_u64..).zip(flows) {
            socket.send_to(&(flow << 32 | number).to_be_bytes(), (to, 7000)).unwrap();
        }
        let sent = (number + 1) * FLOWS;
        let came = || sink.count() - before;
        assert!(World::until_soon(|| came() + UNDER_WAY > sent), "{} of {sent} came", came());
    }
    assert!(World::until(|| sink.count() - before == FLOWS * EACH), "{} came", sink.count() - before);
}

#[test]
fn each_queue_has_a_worker_and_flows_keep_their_order() {
    let all = thread::available_parallelism().map_or(1, usize::from);
    let cores = format!("--cores {}", allowed_core());
    for (options, workers) in [("", all.min(2)), ("--threads 1", 1), ("--driver packet", 1), (&cores, 1)] {
        let Some(world) = World::new(&["a", "b"]) else { return };
        let Some(router) = world.router(options) else { return };
        let said = router.said();
        let expected = if workers == 1 { "\n1 worker\n" } else { "\n2 workers, among which the queues" };
        assert!(said.contains(expected), "{options}: {said}");
        let sink = Sink::start(&world, "b", "10.0.2.2");
        let flows = flows(&world, "a");
        settle(&world, &flows, "10.0.2.2");
        let out = || world.metric("frames_out_total");
        let (before, out_before) = (router.busy(), out());
        send(&flows, "10.0.2.2", &sink);
        assert!(World::until(|| out() >= out_before + FLOWS * EACH), "{options}: {}", out() - out_before);
        let after = router.busy();
        assert_eq!(after.len(), workers, "{options}");
        let worked: Vec<f64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
        assert!(worked.iter().all(|&seconds| seconds > 0.02), "{options}: {worked:?}");
        let mut next = BTreeMap::new();
        for number in sink.finish().into_iter().filter(|&number| number != ASKS) {
            let (flow, next) = (number >> 32, next.entry(number >> 32).or_insert(0));
            assert_eq!(number & 0xffff_ffff, *next, "{options}: flow {flow}");
            *next += 1;
        }
        let report = router.stop();
        assert_eq!(report["threads"], workers, "{report}");
    }
}
