//! [`Server`]: an HTTP server of one page, bounded against clients that are slow or hostile.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Clients at once. More are told to come again.
const CLIENTS: usize = 8;
/// Bytes of a request.
const REQUEST: usize = 8 << 10;
/// How long a client may take for its request, and again for reading the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// A server, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves the text that `page` makes, anew for each request.
    pub(super) fn start(
        address: SocketAddr,
        page: impl Fn() -> Result<String, fmt::Error> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let page: Arc<Page> = Arc::new(page);
        let thread = std::thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || listen(&listener, &page, &seen))?;
        Ok(Self { address, stop, thread: Some(thread) })
    }

    /// The address that it listens at.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // The thread waits for a client: this is one.
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let own = SocketAddr::new(ip, self.address.port());
        // An address that is gone lets nobody in. The thread then ends with the process.
        if TcpStream::connect_timeout(&own, Duration::from_millis(200)).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

type Page = dyn Fn() -> Result<String, fmt::Error> + Send + Sync;

/// Lets clients in, each on a thread of its own, until `stop` is set.
fn listen(listener: &TcpListener, page: &Arc<Page>, stop: &AtomicBool) {
    let clients = Arc::new(AtomicUsize::new(0));
    loop {
        let accepted = listener.accept();
        if stop.load(Ordering::Acquire) {
            return;
        }
        let Ok((stream, _)) = accepted else {
            // Out of descriptors, or a client that left at once.
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        let present = Present::new(&clients);
        if present.others() >= CLIENTS {
            // Nothing is read, so a client can't hold this thread up.
            let _ = stream.set_nonblocking(true);
            let _ =
                (&stream).write_all(&Answer::error(503, "Service Unavailable", "too many clients").bytes());
            continue;
        }
        let page = Arc::clone(page);
        // Without a thread the client sees that the connection ends.
        let _ = std::thread::Builder::new().name("metrics client".to_owned()).spawn(move || {
            let _present = present;
            // A client that is gone needs no answer.
            let _ = serve(stream, &*page);
        });
    }
}

/// Counts a client while it is kept.
struct Present(Arc<AtomicUsize>, usize);

impl Present {
    fn new(clients: &Arc<AtomicUsize>) -> Self {
        let others = clients.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(clients), others)
    }

    /// How many there were before it.
    const fn others(&self) -> usize {
        self.1
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Reads a request and answers.
fn serve(mut stream: TcpStream, page: &Page) -> io::Result<()> {
    let answer = match request(&mut stream)? {
        Ok(head) => answer(&head, page),
        Err(error) => error,
    };
    let bytes = answer.bytes();
    let until = Instant::now() + PATIENCE;
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(until)?))?;
        match stream.write(rest)? {
            0 => return Ok(()),
            written => rest = &rest[written..],
        }
    }
    stream.shutdown(std::net::Shutdown::Write)
}

/// The time that is left. An error once there is none.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// The head of a request, or the answer to a client that sends none.
fn request(stream: &mut TcpStream) -> io::Result<Result<Vec<u8>, Answer>> {
    let until = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut part = [0; 1024];
    loop {
        let Ok(left) = left(until) else {
            return Ok(Err(Answer::error(408, "Request Timeout", "the request takes too long")));
        };
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part) {
            Ok(0) => return Ok(Err(Answer::error(400, "Bad Request", "the request is not whole"))),
            Ok(read) => head.extend_from_slice(&part[..read]),
            Err(cause) if matches!(cause.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
        if head.windows(4).any(|end| end == b"\r\n\r\n") {
            return Ok(Ok(head));
        }
        if head.len() > REQUEST {
            let what = "Request Header Fields Too Large";
            return Ok(Err(Answer::error(431, what, "the request is too long")));
        }
    }
}

/// The answer to a request.
fn answer(head: &[u8], page: &Page) -> Answer {
    let line = head.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let [method, path, version] = words[..] else {
        return Answer::error(400, "Bad Request", "the first line is no request");
    };
    if !version.starts_with(b"HTTP/1.") {
        return Answer::error(505, "HTTP Version Not Supported", "HTTP/1.0 and HTTP/1.1 are spoken here");
    }
    if method != b"GET" {
        return Answer::error(405, "Method Not Allowed", "there is GET alone");
    }
    if path.split(|&byte| byte == b'?').next() != Some(&b"/metrics"[..]) {
        return Answer::error(404, "Not Found", "there is /metrics alone");
    }
    match page() {
        Ok(body) => Answer { status: 200, name: "OK", kind: OPEN_METRICS, body },
        Err(fmt::Error) => Answer::error(500, "Internal Server Error", "the report can't be written"),
    }
}

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

struct Answer {
    status: u16,
    name: &'static str,
    kind: &'static str,
    body: String,
}

impl Answer {
    /// An error, with one line that says what is wrong.
    fn error(status: u16, name: &'static str, line: &str) -> Self {
        Self { status, name, kind: "text/plain; charset=utf-8", body: format!("{line}\n") }
    }

    fn bytes(&self) -> Vec<u8> {
        let Self { status, name, kind, body } = self;
        let allow = if *status == 405 { "Allow: GET\r\n" } else { "" };
        let length = body.len();
        format!(
            "HTTP/1.1 {status} {name}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{allow}Connection: close\r\n\r\n{body}"
        )
        .into_bytes()
    }
}
