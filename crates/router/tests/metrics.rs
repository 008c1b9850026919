//! Metrics over a socket: the numbers of a report, and clients that are slow or hostile.

#![cfg(feature = "metrics")]
#![allow(clippy::unwrap_used)] // a test

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use wirespeed::prelude::*;
use wirespeed_feeds::Monitored;
use wirespeed_router::apps::Ip;
use wirespeed_router::apps::ip::Owns;
use wirespeed_router::io::Port;
use wirespeed_router::io::memory::{Limits, MemoryPort};
use wirespeed_router::metrics::{Metrics, SourceState};
use wirespeed_router::{Hop, Mac, Memory, PortId, Reason, Report, Route, Settings, Worker, run};

/// The answer of the server to some bytes.
fn ask(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // A server that has answered already may have closed the connection.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

/// The values of the page, by name with labels.
fn scrape(address: SocketAddr) -> BTreeMap<String, f64> {
    let answer = ask(address, b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
    assert!(body.ends_with("# EOF\n"), "{body}");
    let lines = body.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        })
        .collect()
}

/// Checks that the numbers of a page agree with each other.
fn check(page: &BTreeMap<String, f64>) {
    let of = |name: &str| page[name];
    let sum = |prefix: &str| {
        page.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, value)| value).sum::<f64>()
    };
    let ends = of("wirespeed_frames_out_total")
        + sum("wirespeed_frames_dropped_total{")
        + of("wirespeed_frames_to_kernel_total")
        + of("wirespeed_frames_to_controller_total")
        + of("wirespeed_frames_queued");
    assert!((of("wirespeed_frames_in_total") - ends).abs() < 0.5, "{page:?}");
    let received = sum("wirespeed_port_frames_received_total{");
    assert!((of("wirespeed_frames_in_total") - received).abs() < 0.5, "{page:?}");
    let sent = of("wirespeed_frames_out_total") + of("wirespeed_frames_made_total");
    assert!((sum("wirespeed_port_frames_sent_total{") - sent).abs() < 0.5, "{page:?}");
    let in_all = of("wirespeed_latency_seconds_bucket{le=\"+Inf\"}");
    assert!((in_all - of("wirespeed_latency_seconds_count")).abs() < 0.5, "{page:?}");
}

/// A router from memory to memory, with a destination that it drops, until so many frames were made.
fn forward(frames: u64, metrics: &Metrics, mut during: impl FnMut()) -> Report {
    let routes = Labels::new();
    let hop = Hop::new(PortId(1), Mac([2, 0, 0, 0, 0, 9]), Mac([2, 0, 0, 0, 0, 1]), 1500);
    let nets: [IpNet; 2] = ["10.0.0.0/9".parse().unwrap(), "10.128.0.0/9".parse().unwrap()];
    let table = IpTable::builder()
        .labelled_routes(&routes, [(nets[0], Route::Via(hop)), (nets[1], Route::Blackhole)])
        .build()
        .unwrap();
    let own = Owns::default();
    let reader = table.reader();
    let make = |worker: usize| {
        let mut memory = Memory::new(4096)?;
        let source = wirespeed_router::io::traffic::Traffic {
            to: [[10, 1, 2, 3], [10, 200, 0, 1]].map(std::net::IpAddr::from).into(),
            sizes: "64".parse().unwrap(),
            mac: Mac([2, 0, 0, 0, 0, 0]),
        }
        .source(worker, 2);
        let limits = Limits { count: Some(frames / 2), rate: None };
        let names = ["in", "out"].map(str::to_owned).into_iter();
        let ports = MemoryPort::ports(names, source, &mut memory, limits);
        let ports = ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
        Ok(Worker::new(Ip::new(&reader, &routes, &own), memory, ports, Settings::default()))
    };
    let report = run(2, &AtomicBool::new(false), make, |report| {
        metrics.publish(report, Vec::new());
        during();
    })
    .unwrap();
    metrics.publish(&report, Vec::new());
    report
}

#[test]
fn a_scraper_sees_what_the_report_says() {
    let metrics = Metrics::serve("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut seen = 0.0;
    let report = forward(200_000, &metrics, || {
        let page = scrape(metrics.address());
        check(&page);
        assert!(page["wirespeed_frames_in_total"] >= seen, "counters do not go back");
        seen = page["wirespeed_frames_in_total"];
    });
    let page = scrape(metrics.address());
    check(&page);
    let is = |name: &str, count: u64| assert!((page[name] - count as f64).abs() < 0.5, "{name}: {count}");
    is("wirespeed_frames_in_total", 200_000);
    is("wirespeed_frames_out_total", report.stats.frames_out);
    is("wirespeed_bytes_out_total", report.stats.bytes_out);
    let dropped = report.stats.dropped.of(Reason::Blackhole);
    assert!(dropped > 0, "frames to one of two destinations");
    is("wirespeed_frames_dropped_total{reason=\"blackhole\"}", dropped);
    is("wirespeed_frames_dropped_total{reason=\"no_route\"}", 0);
    for (port, counts) in &report.ports {
        is(&format!("wirespeed_port_frames_received_total{{port=\"{port}\"}}"), counts.received);
        is(&format!("wirespeed_port_frames_sent_total{{port=\"{port}\"}}"), counts.sent);
    }
    is("wirespeed_chunk_frames_count{device=\"cpu\"}", report.stats.chunks_cpu);
    is("wirespeed_chunk_frames_sum{device=\"cpu\"}", 200_000);
    is("wirespeed_chunk_frames_count{device=\"gpu\"}", 0);
    is("wirespeed_chunks_chosen_total{why=\"no_gpu\"}", report.stats.chunks_cpu);
    is("wirespeed_chunks_chosen_total{why=\"faster\"}", 0);
    assert!(!page.keys().any(|name| name.starts_with("wirespeed_source")), "no routes are followed");
    is("wirespeed_latency_seconds_count", 200_000);
    for (name, count) in &report.counters {
        is(&format!("wirespeed_application_total{{counter=\"{name}\"}}"), *count);
    }
    // Half of the frames took at most the median, within the histogram's 1 %.
    let median = report.stats.latency(0.5).as_secs_f64();
    let within = |page: &BTreeMap<String, f64>, bound: f64| {
        let beginning = "wirespeed_latency_seconds_bucket{le=\"";
        let of = |name: &str| name.strip_prefix(beginning)?.strip_suffix("\"}")?.parse::<f64>().ok();
        page.iter()
            .filter(|(name, _)| of(name).is_some_and(|le| le >= bound))
            .map(|(_, count)| *count)
            .fold(f64::INFINITY, f64::min)
    };
    assert!(within(&page, median) >= 99_000.0, "{median}: {page:?}");
}

#[test]
fn errors_are_one_line() {
    let metrics = Metrics::serve("127.0.0.1:0".parse().unwrap()).unwrap();
    let long = [b"GET /metrics HTTP/1.1\r\nX: ", &[b'x'; 20_000][..]].concat();
    let requests: [(&[u8], &str); 7] = [
        (b"GET / HTTP/1.1\r\n\r\n", "404 Not Found"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
        (b"GET /metrics HTTP/2\r\n\r\n", "505 "),
        (b"\r\n\r\n", "400 Bad Request"),
        (b"\xff\xfe\0 a b c\r\n\r\n", "400 Bad Request"),
        (b"GET /metrics\r\n\r\n", "400 Bad Request"),
        (&long, "431 "),
    ];
    for (request, expected) in requests {
        let answer = ask(metrics.address(), request);
        // A client that still sends when the server closes may lose the answer.
        if answer.is_empty() && request.len() > 8192 {
            continue;
        }
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{request:?}: {answer}");
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        assert_eq!(body.lines().count(), 1, "{answer}");
    }
    assert!(ask(metrics.address(), b"GET /metrics?x HTTP/1.0\r\n\r\n").contains(" 200 OK"));
}

#[test]
fn slow_clients_hold_nobody_up() {
    let metrics = Metrics::serve("[::1]:0".parse().unwrap())
        .or_else(|_| Metrics::serve("127.0.0.1:0".parse().unwrap()))
        .unwrap();
    // These say nothing more.
    let mut slow: Vec<TcpStream> = (0..7).map(|_| TcpStream::connect(metrics.address()).unwrap()).collect();
    slow.iter_mut().for_each(|stream| stream.write_all(b"GET /met").unwrap());
    check(&scrape(metrics.address()));
    let more: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(metrics.address()).unwrap()).collect();
    // All are sent away, the first ones when their time is over.
    let start = Instant::now();
    for mut stream in slow.into_iter().chain(more) {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut answer = String::new();
        // A connection that is reset ended, too.
        let _ = stream.read_to_string(&mut answer);
        let ends = ["HTTP/1.1 408 ", "HTTP/1.1 503 "];
        assert!(answer.is_empty() || ends.iter().any(|end| answer.starts_with(end)), "{answer}");
    }
    assert!(start.elapsed() < Duration::from_secs(20));
    check(&scrape(metrics.address()));
}

#[test]
fn an_address_that_is_taken_is_an_error() {
    let metrics = Metrics::serve("127.0.0.1:0".parse().unwrap()).unwrap();
    let error = Metrics::serve(metrics.address()).unwrap_err().to_string();
    assert!(error.contains(&metrics.address().to_string()), "{error}");
    let address = metrics.address();
    drop(metrics);
    assert!(TcpStream::connect(address).is_err(), "it has ended");
}

#[test]
fn a_scraper_sees_how_sources_of_routes_are() {
    let metrics = Metrics::serve("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut kernel = SourceState::default();
    kernel.source = "kernel".to_owned();
    (kernel.is_synced, kernel.prefixes, kernel.overruns) = (true, 7, 2);
    let mut fpm = SourceState::default();
    fpm.source = "fpm:127.0.0.1:2620".to_owned();
    (fpm.stale, fpm.violations, fpm.skipped) = (Some(Duration::from_millis(1500)), 3, 4);
    let mut bmp = SourceState::default();
    bmp.source = "bmp".to_owned();
    let mut monitored = Monitored::default();
    (monitored.routers, monitored.peers_up, monitored.peers_down) = (1, 2, 3);
    (monitored.ups, monitored.downs) = (5, 4);
    bmp.monitored = Some(monitored);
    metrics.publish(&Report::default(), vec![kernel, fpm, bmp]);
    let page = scrape(metrics.address());
    let of = |name: &str, source: &str| page[&format!("wirespeed_source_{name}{{source=\"{source}\"}}")];
    let kernel = ["routes", "synced", "stale_seconds", "overruns_total"].map(|name| of(name, "kernel"));
    assert_eq!(kernel, [7.0, 1.0, 0.0, 2.0]);
    let names = ["routers", "peers_up", "peers_down", "peer_ups_total", "peer_downs_total"];
    assert_eq!(names.map(|name| of(name, "bmp")), [1.0, 2.0, 3.0, 5.0, 4.0]);
    assert!(!page.contains_key("wirespeed_source_routers{source=\"kernel\"}"));
    let names = ["routes", "synced", "stale_seconds", "violations_total", "skipped_total"];
    assert_eq!(names.map(|name| of(name, "fpm:127.0.0.1:2620")), [0.0, 0.0, 1.5, 3.0, 4.0]);
}
