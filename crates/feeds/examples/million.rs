//! Measures how fast a million routes come into a live table: from the kernel, or by FPM from a sender in
//! this program.
//!
//! `cargo run --release -p wirespeed-feeds --example million [NAMESPACE]`
//!
//! With a namespace, its routes come from the kernel, three times. Without one, the sender sends a million
//! routes over 64 next-hop objects, and then changes 200,000 of them, over the loopback.

use std::io::Write;
use std::net::{IpAddr, TcpStream};
use std::time::{Duration, Instant};

use wirespeed_feeds::{Change, Feed, LiveTable, fpm, kernel};

const ROUTES: u32 = 1_000_000;
const CHANGES: u32 = 200_000;
const OBJECTS: u32 = 64;
const PATIENCE: Duration = Duration::from_secs(120);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1) {
        Some(namespace) => {
            for _ in 0..3 {
                of_kernel(&namespace)?;
            }
            Ok(())
        }
        None => of_fpm(),
    }
}

fn of_kernel(namespace: &str) -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let feed = kernel::follow(kernel::Options::in_namespace(namespace))?;
    let prefixes = count_until_synced(&feed)?;
    let told = start.elapsed();
    drop(feed);

    let start = Instant::now();
    let feed = kernel::follow(kernel::Options::in_namespace(namespace))?;
    let table = LiveTable::of(&feed, PATIENCE)?;
    println!(
        "kernel: {prefixes} routes told in {:.2} s; a table of {} that looks up after {:.2} s; {} MB in all",
        told.as_secs_f64(),
        table.table().len(),
        start.elapsed().as_secs_f64(),
        resident() >> 20,
    );
    Ok(())
}

fn of_fpm() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = fpm::Options::default();
    options.address.set_port(0);
    let quiet = options.first_quiet;
    let feed = fpm::listen(options)?;
    let mut sender = TcpStream::connect(feed.address().ok_or("no address")?)?;
    let all: Vec<u8> =
        (1..=OBJECTS).flat_map(next_hop).chain((0..ROUTES).flat_map(|n| route(n, 1 + n % OBJECTS))).collect();
    let changes: Vec<u8> = (0..CHANGES).flat_map(|n| route(n * 4, 1 + (n + 1) % OBJECTS)).collect();

    let start = Instant::now();
    let writer = std::thread::spawn(move || sender.write_all(&all).map(|()| sender));
    let mut table = LiveTable::of(&feed, PATIENCE)?;
    let whole = start.elapsed();
    println!(
        "FPM: a table of {} that looks up {:.2} s after the first byte, of which {:.1} s pass in silence; {} MB \
         in all",
        table.table().len(),
        whole.as_secs_f64(),
        quiet.as_secs_f64(),
        resident() >> 20,
    );
    let mut sender = writer.join().map_err(|_| "the sender panicked")??;

    let last = prefix((CHANGES - 1) * 4);
    let before = find(&table, last);
    let start = Instant::now();
    let writer = std::thread::spawn(move || sender.write_all(&changes).map(|()| sender));
    while find(&table, last) == before {
        table.follow(&feed, Duration::from_secs(1))?;
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "FPM: {CHANGES} changes in the table after {seconds:.2} s: {:.0} a second",
        f64::from(CHANGES) / seconds
    );
    drop(writer.join());
    Ok(())
}

/// The number of routes told until the feed is whole.
fn count_until_synced(feed: &Feed) -> Result<usize, wirespeed_feeds::Error> {
    let mut routes = 0;
    loop {
        let batch = feed.recv()?;
        routes += batch.iter().filter(|change| matches!(change, Change::Route(_))).count();
        if batch.contains(&Change::Synced) {
            return Ok(routes);
        }
    }
}

fn find(table: &LiveTable, address: u32) -> String {
    let known = table.labels().enter();
    let found = table.reader().lookup(IpAddr::V4(address.into()));
    known.get(found).map(ToString::to_string).unwrap_or_default()
}

/// The bytes of memory that the program has.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) << 10
}

/// The prefix of a number, of 24 bits, in 1.0.0.0/8 and what follows.
fn prefix(n: u32) -> u32 {
    (1 << 24) + (n << 8)
}

/// A frame of FPM: the next-hop object of a number.
fn next_hop(id: u32) -> Vec<u8> {
    let mut body = vec![2, 0, 0, 0, 0, 0, 0, 0];
    attribute(&mut body, 1, &id.to_ne_bytes());
    attribute(&mut body, 5, &2_u32.to_ne_bytes());
    attribute(&mut body, 6, &(0x0a00_0000 + id).to_be_bytes());
    frame(104, &body)
}

/// A frame of FPM: a route of a next-hop object.
fn route(n: u32, object: u32) -> Vec<u8> {
    let mut body = vec![2, 24, 0, 0, 254, 186, 0, 1, 0, 0, 0, 0];
    attribute(&mut body, 1, &prefix(n).to_be_bytes());
    attribute(&mut body, 6, &20_u32.to_ne_bytes());
    attribute(&mut body, 30, &object.to_ne_bytes());
    frame(24, &body)
}

fn attribute(to: &mut Vec<u8>, number: u16, value: &[u8; 4]) {
    to.extend(8_u16.to_ne_bytes());
    to.extend(number.to_ne_bytes());
    to.extend(value);
}

fn frame(kind: u16, body: &[u8]) -> Vec<u8> {
    let length = 16 + u16::try_from(body.len()).expect("a short message");
    let mut frame = vec![1, 1];
    frame.extend((length + 4).to_be_bytes());
    frame.extend(u32::from(length).to_ne_bytes());
    frame.extend(kind.to_ne_bytes());
    frame.extend([0; 10]);
    frame.extend(body);
    frame
}
