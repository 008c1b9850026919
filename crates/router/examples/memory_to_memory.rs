//! Forwards frames from memory to memory on one core, as a rate to compare with: `memory_to_memory FIB [BYTES
//! [SECONDS]]`. Without arguments it makes a small table and runs for a moment.

#![allow(clippy::cast_possible_truncation)] // random numbers, and ports of a few

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use wirespeed::prelude::*;
use wirespeed_rng::Rng;
use wirespeed_router::apps::{Ip, ip::Owns};
use wirespeed_router::frames::Datagram;
use wirespeed_router::io::Port;
use wirespeed_router::io::memory::{Limits, MemoryPort, Source};
use wirespeed_router::{Hop, Mac, Memory, PortId, Published, Route, Settings, Worker};

const PORTS: u16 = 2;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let fib = arguments.next();
    let bytes: usize = arguments.next().map_or(Ok(64), |text| text.parse())?;
    let seconds: f64 =
        arguments.next().map_or(Ok(if fib.is_some() { 3.0 } else { 0.2 }), |text| text.parse())?;

    let texts = Labels::<String>::new();
    let named = match &fib {
        Some(path) => IpTable::builder().file(path, &texts).build()?,
        None => {
            let routes =
                (0..200_u8).map(|n| (IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(n + 1, 0, 0, 0), 8)), n));
            IpTable::builder()
                .labelled_routes(&texts, routes.map(|(net, n)| (net, format!("peer {}", n % 7))))
                .build()?
        }
    };
    // Each next hop of the file is a neighbour of one of the ports.
    let routes = Labels::new();
    let hop = |next_hop: NextHop| {
        let port = (next_hop.0 % u32::from(PORTS)) as u16;
        let [_, a, b, c] = next_hop.0.to_be_bytes();
        Route::Via(Hop::new(PortId(port), Mac([2, 0, 1, a, b, c]), Mac([2, 0, 0, 0, 0, port as u8]), 1500))
    };
    let list: Vec<(IpNet, NextHop)> = named.routes().collect();
    let prefixes: Vec<IpNet> = list.iter().map(|&(net, _)| net).filter(|net| net.addr().is_ipv4()).collect();
    let wants_v6 = std::env::var_os("V6").is_some();
    let prefixes: Vec<IpNet> = if wants_v6 {
        list.iter().map(|&(net, _)| net).filter(|net| net.addr().is_ipv6()).collect()
    } else {
        prefixes
    };
    let table = IpTable::builder()
        .labelled_routes(&routes, list.into_iter().map(|(net, next_hop)| (net, hop(next_hop))))
        .build()?;

    let buffers = std::env::var("BUFFERS").map_or(Ok(1 << 16), |text| text.parse())?;
    let stride = std::env::var("STRIDE").map_or(Ok(2112), |text| text.parse())?;
    let mut memory = Memory::with_stride(buffers, stride)?;
    let own = Owns::default();
    let names = (0..PORTS).map(|port| format!("memory{port}"));
    let ports = MemoryPort::ports(names, source(prefixes, bytes, 1), &mut memory, Limits::default());
    let ports = ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
    let chunk = std::env::var("CHUNK").map_or(Ok(256), |text| text.parse())?;
    let settings = Settings { chunk, ..Settings::default() };
    let mut worker = Worker::new(Ip::new(&table.reader(), &routes, &own), memory, ports, settings);
    let (stop, published) = (AtomicBool::new(false), Published::default());
    let (start, cpu) = (Instant::now(), cpu_time());
    let stats = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_secs_f64(seconds));
            stop.store(true, Ordering::Relaxed);
        });
        worker.run(&stop, &published)
    })?;
    let took = start.elapsed().as_secs_f64();
    // On a machine with other work the time on the core says more than the time on the clock.
    let cpu = cpu_time().saturating_sub(cpu).as_secs_f64();
    println!(
        "{:.1} Mpps of the time on the core ({:.1} ns a frame)",
        stats.frames_out as f64 / cpu / 1e6,
        cpu / stats.frames_out as f64 * 1e9
    );
    println!(
        "{:.1} Mpps, {} of {} frames forwarded, dropped {:?}, p50 {:?} p99.9 {:?}",
        stats.frames_out as f64 / took / 1e6,
        stats.frames_out,
        stats.frames_in,
        stats.dropped.iter().collect::<Vec<_>>(),
        stats.latency(0.5),
        stats.latency(0.999),
    );
    assert!(stats.is_whole());
    Ok(())
}

/// The time that this thread was on a core, as Linux tells it.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0))
}

/// Frames to random addresses in random prefixes.
fn source(prefixes: Vec<IpNet>, bytes: usize, seed: u64) -> Source {
    let mut rng = Rng::new(seed + 1);
    Box::new(move |give| {
        let net = prefixes[(rng.bits() % prefixes.len() as u64) as usize];
        let (from, to): (IpAddr, IpAddr) = match net {
            IpNet::V4(net) => {
                let host = rng.bits() as u32 & net.hostmask().to_bits();
                (
                    Ipv4Addr::new(10, 0, 0, 1).into(),
                    Ipv4Addr::from_bits(net.network().to_bits() | host).into(),
                )
            }
            IpNet::V6(net) => {
                let host = rng.bits128() & net.hostmask().to_bits();
                let to = Ipv6Addr::from_bits(net.network().to_bits() | host);
                ("2001:db8::1".parse().expect("an address"), to.into())
            }
        };
        let datagram = Datagram {
            to: Mac([2, 0, 0, 0, 0, 9]),
            from: Mac([2, 0, 0, 0, 0, 8]),
            addresses: (from, to),
            ports: (rng.bits() as u16, 53),
            hops: 64,
            bytes,
        };
        give(&datagram.to_bytes());
    })
}
