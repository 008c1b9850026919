//! [`Channel`]: threads that connect to controllers, or listen for them, and one that keeps time.
//!
//! A controller has two threads: one reads and answers, one writes. A controller that vanishes, floods or
//! lies ends its own connection at most; workers go on without waiting for any of these threads.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, recv};

use super::link::{Link, Links};
use super::outbox::Outbox;
use super::session::Talk;
use super::tell;
use crate::error::Error;
use crate::switch::{Fail, Switch};
use crate::wire::reply::bare;

/// How often time is kept.
const TICK: Duration = Duration::from_millis(100);
/// How long a read waits before the thread looks whether it has to end.
const LOOK: Duration = Duration::from_millis(200);
/// Silence after which the switch asks whether the controller is there.
const SILENCE: u64 = 15_000;
/// Silence after which the connection ends.
const DEAD: u64 = 45_000;
/// How long a write waits for a controller that does not read.
const WRITE: Duration = Duration::from_secs(30);
/// How long a controller that was not reached is left alone.
const AGAIN: Duration = Duration::from_secs(1);
/// Controllers that may be connected to one address that is listened at.
const MOST: usize = 64;
/// Bytes that are read at once: some 1,700 changes of flows.
const READ: usize = 1 << 18;
/// The time for which changes wait to be published while more of them come.
const UNSEEN: Duration = Duration::from_millis(1);

/// The addresses of controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The switch connects to `HOST:PORT`, again and again.
    Connect(String),
    /// The switch listens at `ADDRESS:PORT`.
    Listen(String),
}

impl std::str::FromStr for Target {
    type Err = Error;

    /// Reads `tcp:HOST:PORT`, to connect, and `ptcp:PORT:ADDRESS` or `listen:ADDRESS:PORT`, to listen.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::Address { text: text.to_owned() };
        let (kind, rest) = text.split_once(':').ok_or_else(wrong)?;
        let address = |rest: &str| {
            let (host, port) = rest.rsplit_once(':').ok_or_else(wrong)?;
            if host.is_empty() || port.parse::<u16>().is_err() {
                return Err(wrong());
            }
            Ok(rest.to_owned())
        };
        match kind {
            "tcp" => address(rest).map(Self::Connect),
            "listen" => address(rest).map(Self::Listen),
            "ptcp" => {
                let (port, host) = rest.split_once(':').unwrap_or((rest, "0.0.0.0"));
                address(&format!("{host}:{port}")).map(Self::Listen)
            }
            _ => address(text).map(Self::Connect),
        }
    }
}

/// The state that the threads share.
struct Common {
    switch: Switch,
    links: Arc<Links>,
    stop: AtomicBool,
    /// Connections of controllers, so that the end can close them.
    streams: Mutex<Vec<(Arc<Link>, TcpStream)>>,
    readers: Mutex<Vec<JoinHandle<()>>>,
}

/// The connections of a switch to controllers. They end when this is dropped.
pub struct Channel {
    common: Arc<Common>,
    threads: Vec<JoinHandle<()>>,
    listening: Vec<std::net::SocketAddr>,
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel").field("listening", &self.listening).finish_non_exhaustive()
    }
}

impl Channel {
    /// Connects to controllers and listens for them. Without any it keeps time alone: flows end, and the
    /// classifier for wildcards is built. A switch has one channel.
    pub fn open(switch: &Switch, targets: &[Target]) -> Result<Self, Error> {
        let common = Arc::new(Common {
            switch: switch.clone(),
            links: Arc::default(),
            stop: AtomicBool::new(false),
            streams: Mutex::default(),
            readers: Mutex::default(),
        });
        let mut channel = Self { common, threads: Vec::new(), listening: Vec::new() };
        channel.spawn("openflow-time", Common::keep_time)?;
        for target in targets.iter().cloned() {
            match target {
                Target::Connect(address) => {
                    channel.spawn("openflow-connect", move |common| common.connect(&address))?;
                }
                Target::Listen(address) => {
                    let cannot = |cause| Error::Listen { address: address.clone(), cause };
                    let listener = TcpListener::bind(&address).map_err(cannot)?;
                    listener.set_nonblocking(true).map_err(cannot)?;
                    channel.listening.push(listener.local_addr().map_err(cannot)?);
                    channel.spawn("openflow-listen", move |common| common.listen(&listener))?;
                }
            }
        }
        Ok(channel)
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce(&Arc<Common>) + Send + 'static) -> Result<(), Error> {
        let common = Arc::clone(&self.common);
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || run(&common));
        self.threads.push(thread.map_err(Error::Thread)?);
        Ok(())
    }

    /// The addresses that are listened at, in the order of the targets.
    #[must_use]
    pub fn listening(&self) -> &[std::net::SocketAddr] {
        &self.listening
    }

    /// The number of controllers that have greeted.
    #[must_use]
    pub fn controllers(&self) -> usize {
        self.common.links.all().iter().filter(|link| link.is_ready()).count()
    }

    /// The number of messages that were lost, because a controller did not read or too many packets came.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let of_links: u64 = self.common.links.all().iter().map(|link| link.outbox.lost()).sum();
        of_links + self.common.switch.0.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.common.stop.store(true, Ordering::Release);
        for (link, stream) in self.common.streams().iter() {
            link.outbox.close();
            // It may have ended by itself.
            let _ = stream.shutdown(Shutdown::Read);
        }
        for thread in self.threads.drain(..) {
            // A panic was told by its thread.
            let _ = thread.join();
        }
        let readers =
            std::mem::take(&mut *self.common.readers.lock().unwrap_or_else(PoisonError::into_inner));
        for reader in readers {
            let _ = reader.join();
        }
    }
}

impl Common {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn streams(&self) -> std::sync::MutexGuard<'_, Vec<(Arc<Link>, TcpStream)>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives packets to controllers as they come, and does what is to be done in passing.
    fn keep_time(self: &Arc<Self>) {
        let shared = &*self.switch.0;
        let waiting = shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = Instant::now() + TICK;
        while !self.is_over() {
            let now = Instant::now();
            if now < next {
                match waiting.recv_timeout(next - now) {
                    Ok(packet) => tell::packet_in(&self.links, &packet),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                continue;
            }
            next = now + TICK;
            shared.tend(false);
            let events = {
                let mut control = shared.control();
                let is_alone = !self.links.all().iter().any(|link| link.is_ready());
                control.set_standalone(is_alone && shared.options.fail == Fail::Standalone);
                control.publish()
            };
            tell::events(shared, &self.links, events);
        }
    }

    fn connect(self: &Arc<Self>, address: &str) {
        while !self.is_over() {
            let addresses = address.to_socket_addrs().into_iter().flatten();
            let stream =
                addresses.filter_map(|address| TcpStream::connect_timeout(&address, AGAIN).ok()).next();
            if let Some(stream) = stream {
                self.talk(stream);
            }
            let until = Instant::now() + AGAIN;
            while !self.is_over() && Instant::now() < until {
                std::thread::sleep(TICK);
            }
        }
    }

    fn listen(self: &Arc<Self>, listener: &TcpListener) {
        let open = Arc::new(AtomicUsize::new(0));
        while !self.is_over() {
            let Ok((stream, _)) = listener.accept() else {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            };
            // One more is refused: it sees its connection end.
            if open.load(Ordering::Relaxed) >= MOST || stream.set_nonblocking(false).is_err() {
                continue;
            }
            open.fetch_add(1, Ordering::Relaxed);
            let (common, count) = (Arc::clone(self), Arc::clone(&open));
            let thread = std::thread::Builder::new().name("openflow-read".to_owned()).spawn(move || {
                common.talk(stream);
                count.fetch_sub(1, Ordering::Relaxed);
            });
            match thread {
                Ok(thread) => {
                    let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
                    readers.retain(|reader| !reader.is_finished());
                    readers.push(thread);
                }
                Err(_) => {
                    open.fetch_sub(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Talks to a controller until either side ends it.
    fn talk(self: &Arc<Self>, stream: TcpStream) {
        let is_set = stream.set_nodelay(true).is_ok()
            && stream.set_read_timeout(Some(LOOK)).is_ok()
            && stream.set_write_timeout(Some(WRITE)).is_ok();
        let (Ok(out), Ok(kept), true) = (stream.try_clone(), stream.try_clone(), is_set) else { return };
        let link = Arc::new(Link::new(Outbox::new()));
        link.heard.store(self.switch.0.now(), Ordering::Relaxed);
        self.links.add(&link);
        self.streams().push((Arc::clone(&link), kept));
        std::thread::scope(|scope| {
            scope.spawn(|| write(&link, out));
            self.read(&link, &stream);
            link.outbox.close();
        });
        // The writer may have been the one that ended.
        let _ = stream.shutdown(Shutdown::Both);
        self.links.remove(&link);
        self.streams().retain(|(known, _)| !Arc::ptr_eq(known, &link));
    }

    fn read(&self, link: &Arc<Link>, stream: &TcpStream) {
        let mut talk = Talk::new(self.switch.clone(), Arc::clone(&self.links), Arc::clone(link));
        if talk.begin().is_ok() {
            self.take(&mut talk, link, stream);
        }
        talk.settle();
    }

    /// Takes what a controller sends until either side ends it.
    fn take(&self, talk: &mut Talk, link: &Arc<Link>, stream: &TcpStream) {
        let mut buffer = vec![0; READ];
        let mut is_asked = false;
        while !self.is_over() {
            let now = self.switch.0.now();
            match next(talk, stream, &mut buffer) {
                Ok(0) => return,
                Ok(count) => {
                    is_asked = false;
                    link.heard.store(now, Ordering::Relaxed);
                    if talk.receive(&buffer[..count]).is_err() {
                        return;
                    }
                }
                Err(error) if is_pause(&error) => {
                    let silent = now.saturating_sub(link.heard.load(Ordering::Relaxed));
                    // An echo request, once.
                    if silent > DEAD
                        || silent > SILENCE && !is_asked && link.outbox.try_push(bare(2, 0)).is_err()
                    {
                        return;
                    }
                    is_asked |= silent > SILENCE;
                }
                Err(_) => return,
            }
        }
    }
}

/// Reads the next bytes of a controller. Changes are published before the thread waits for some: as long as
/// bytes are there, more changes may come, and a publication waits for workers.
fn next(talk: &mut Talk, mut stream: &TcpStream, buffer: &mut [u8]) -> std::io::Result<usize> {
    if talk.unpublished().is_some_and(|since| since < UNSEEN)
        && let Ok((count, _)) = recv(stream, &mut *buffer, RecvFlags::DONTWAIT)
    {
        return Ok(count);
    }
    talk.settle();
    stream.read(buffer)
}

/// Writes what waits for a controller, until it is closed or can't be written.
fn write(link: &Link, mut stream: TcpStream) {
    while let Ok(bytes) = link.outbox.take(Duration::from_secs(1)) {
        if stream.write_all(&bytes).is_err() {
            link.outbox.close();
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
    }
}

fn is_pause(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
