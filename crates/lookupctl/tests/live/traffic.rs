//! Traffic between hosts: numbered datagrams, and TCP whose bytes are checked.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::world::World;

/// Port of the datagrams' receivers.
const PORT: u16 = 7000;

/// Sends numbered datagrams until it is told to end.
pub(crate) struct Sender {
    end: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Sender {
    /// Starts to send from a host to an address, about this many a second.
    pub(crate) fn start(world: &World, from: &str, to: &str, rate: u64) -> Self {
        let to = SocketAddr::new(to.parse().unwrap(), PORT);
        let (end, sent) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (ended, counter) = (Arc::clone(&end), Arc::clone(&sent));
        let thread = world.inside(from, move || {
            let socket = UdpSocket::bind((unspecified(to.ip()), 0)).unwrap();
            while !ended.load(Ordering::Relaxed) {
                // A host that is unreachable now and then is part of the tests.
                let number = counter.load(Ordering::Relaxed);
                if socket.send_to(&number.to_be_bytes(), to).is_ok() {
                    counter.store(number + 1, Ordering::Release);
                }
                thread::sleep(Duration::from_nanos(1_000_000_000 / rate));
            }
        });
        Self { end, sent, thread }
    }

    /// How many were sent so far.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Acquire)
    }

    /// Ends: how many were sent.
    pub(crate) fn finish(self) -> u64 {
        self.end.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.sent.load(Ordering::Acquire)
    }
}

/// Receives numbered datagrams until it is told to end.
pub(crate) struct Sink {
    end: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
    thread: JoinHandle<Vec<u64>>,
}

impl Sink {
    /// Starts to receive at a host's address.
    pub(crate) fn start(world: &World, at: &str, address: &str) -> Self {
        let address = SocketAddr::new(address.parse().unwrap(), PORT);
        let (end, count) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (ended, counter) = (Arc::clone(&end), Arc::clone(&count));
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = world.inside(at, move || {
            let socket = UdpSocket::bind(address).unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            ready.send(()).unwrap();
            let mut numbers = Vec::new();
            loop {
                let mut bytes = [0; 64];
                match socket.recv(&mut bytes) {
                    Ok(_) => {
                        numbers.push(u64::from_be_bytes(*bytes.first_chunk().unwrap()));
                        counter.fetch_add(1, Ordering::Release);
                    }
                    Err(_) if ended.load(Ordering::Relaxed) => return numbers,
                    Err(_) => {}
                }
            }
        });
        is_ready.recv().unwrap();
        Self { end, count, thread }
    }

    /// How many came so far.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Waits until this many more have come. Returns whether they came in time.
    pub(crate) fn gets(&self, more: u64) -> bool {
        let enough = self.count() + more;
        World::until(|| self.count() >= enough)
    }

    /// Ends: the numbers that came, in order.
    pub(crate) fn finish(self) -> Vec<u64> {
        self.end.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// The byte at a place of a transfer.
const fn byte(at: usize) -> u8 {
    (at ^ at >> 8 ^ at >> 16).to_le_bytes()[0]
}

/// Sends bytes by TCP from one host to an address of another, and checks each.
pub(crate) fn transfer(world: &World, from: &str, to: (&str, &str), bytes: usize) {
    let (at, address) = to;
    let address: IpAddr = address.parse().unwrap();
    let (ready, port) = std::sync::mpsc::channel();
    let server = world.inside(at, move || {
        let listener = TcpListener::bind((address, 0)).unwrap();
        ready.send(listener.local_addr().unwrap()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut data = Vec::new();
        stream.read_to_end(&mut data).unwrap();
        data
    });
    let server_address = port.recv().unwrap();
    let client = world.inside(from, move || {
        let mut stream = connect(server_address);
        stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(&(0..bytes).map(byte).collect::<Vec<u8>>()).unwrap();
    });
    client.join().unwrap();
    let data = server.join().unwrap();
    assert_eq!(data.len(), bytes);
    assert!(data.iter().enumerate().all(|(at, &found)| found == byte(at)), "the bytes that were sent");
}

/// Connects within half a minute. A host gives an address up after three unanswered requests, in three
/// seconds, as long as other programs may keep the cores: then it tries again.
fn connect(to: SocketAddr) -> TcpStream {
    let begin = Instant::now();
    loop {
        match TcpStream::connect_timeout(&to, Duration::from_secs(30)) {
            Err(error)
                if error.kind() == ErrorKind::HostUnreachable
                    && begin.elapsed() < Duration::from_secs(30) => {}
            connected => return connected.unwrap(),
        }
    }
}

fn unspecified(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    }
}
