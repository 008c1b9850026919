//! [`World`]: a router and hosts in network namespaces, joined by virtual interfaces. [`Router`]: the binary
//! that forwards there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;
use wirespeed_image::rounds;
use wirespeed_netns::{Link, Namespaces};
use wirespeed_router::io::{Interface, Offload};

/// The ways in which frames are taken.
pub(crate) const DRIVERS: [&str; 2] = ["--driver xdp", "--driver packet"];

/// All ways, or the first of them in a plain run.
pub(crate) fn drivers() -> impl Iterator<Item = &'static str> {
    DRIVERS.into_iter().step_by(rounds::plain_step(2))
}

/// A router `r` and hosts, each in a namespace that is its letter. Host `a` is at 10.0.1.2 and fd01::2, `b`
/// at 10.0.2.2 and fd02::2, and so on; `ra` and `rb` are the router's interfaces, `ha` and `hb` theirs. The
/// namespaces are gone when this is dropped.
pub(crate) struct World {
    all: Namespaces,
    hosts: &'static [&'static str],
}

/// Whether the kernel is older than this.
fn is_before(version: [u32; 2]) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split('.').map(|number| number.parse().expect("a version"));
    [numbers.next().unwrap(), numbers.next().unwrap()] < version
}

impl World {
    /// `None`, and says so, where namespaces can't be made.
    pub(crate) fn new(hosts: &'static [&'static str]) -> Option<Self> {
        let sides: Vec<&str> = hosts.iter().copied().chain(["r"]).collect();
        let world = Self { all: Namespaces::or_skip(&sides, &[])?, hosts };
        for (net, side) in (1..).zip(hosts) {
            let (near, far) = (format!("r{side}"), format!("h{side}"));
            world.link(Link { router: ("r", &near), host: (side, &far), net, queues: 2 }).unwrap();
            world.without_offloads(side, &far);
        }
        if let Err(error) = world.forward("r", true) {
            println!("skipped: forwarding can't be switched on: {error}");
            return None;
        }
        Some(world)
    }

    /// Namespaces without anything in them. `None`, and says so, where they can't be made.
    pub(crate) fn bare(sides: &[&str]) -> Option<Self> {
        Self::bare_with(sides, &[])
    }

    /// Namespaces for programs. `None`, and says so, also where a program is not installed.
    pub(crate) fn bare_with(sides: &[&str], programs: &[&str]) -> Option<Self> {
        Some(Self { all: Namespaces::or_skip(sides, programs)?, hosts: &[] })
    }

    /// Switches off what an interface of a host leaves to hardware. Segments larger than the link takes fit
    /// no buffer of a router.
    pub(crate) fn without_offloads(&self, side: &str, interface: &str) {
        let interface = interface.to_owned();
        self.inside(side, move || {
            let interface = Interface::open(&interface).unwrap();
            for offload in [Offload::TransmitChecksum, Offload::Segmentation, Offload::GenericSegmentation] {
                interface.set_offload(offload, false).unwrap();
            }
        })
        .join()
        .unwrap();
    }

    /// Runs many commands of `ip` in a namespace.
    pub(crate) fn batch(&self, side: &str, lines: &str) {
        self.all.batch(side, lines, false).unwrap();
    }

    /// Runs a function on a thread in a namespace: its sockets belong there.
    pub(crate) fn inside<T: Send + 'static>(
        &self,
        side: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let enter = self.entrance(side).unwrap();
        thread::spawn(move || {
            enter().unwrap();
            work()
        })
    }

    /// Starts the router between all interfaces. `None`, and says so, where it may not forward.
    pub(crate) fn router(&self, options: &str) -> Option<Router> {
        let interfaces: Vec<String> = self.hosts.iter().map(|side| format!("r{side}")).collect();
        let interfaces: Vec<&str> = interfaces.iter().map(String::as_str).collect();
        self.router_at("r", options, &interfaces)
    }

    /// Starts a router in a namespace between some interfaces.
    pub(crate) fn router_at(&self, side: &str, options: &str, interfaces: &[&str]) -> Option<Router> {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let child = self
            .command(side, env!("CARGO_BIN_EXE_lookupctl"))
            .args(["route", "--json", "--metrics", "9464"])
            .args(options.split_whitespace())
            .args(interfaces)
            .stderr(File::create(&log).unwrap())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut router = Router { child, log, _folder: folder };
        let start = Instant::now();
        while self.try_metrics(side, interfaces[0]).is_none() {
            if router.child.try_wait().unwrap().is_some() {
                let said = router.said();
                let is_old = said.contains("AF_PACKET needs Linux 6.6") && is_before([6, 6]);
                assert!(is_old || said.contains("CAP_") || said.contains("ermitted"), "{said}");
                println!("skipped: {said}");
                return None;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{}", router.said());
            thread::sleep(Duration::from_millis(20));
        }
        Some(router)
    }

    /// The metrics of the router, by name with labels.
    pub(crate) fn metrics(&self) -> BTreeMap<String, f64> {
        self.try_metrics("r", "ra").expect("the router answers")
    }

    /// A counter of the router.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        self.metrics()[&format!("wirespeed_{name}")].to_string().parse().expect("a whole number")
    }

    fn try_metrics(&self, side: &str, port: &str) -> Option<BTreeMap<String, f64>> {
        let read = || {
            let mut stream = TcpStream::connect("127.0.0.1:9464").ok()?;
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").ok()?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).ok()?;
            Some(answer)
        };
        let answer = self.inside(side, read).join().unwrap()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        let lines = body.lines().filter(|line| !line.starts_with('#'));
        let pair = |line: &str| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        };
        // Before the first report no port is known.
        let page: BTreeMap<String, f64> = lines.map(pair).collect();
        let of_port = format!("wirespeed_port_frames_received_total{{port=\"{port}\"}}");
        page.contains_key(&of_port).then_some(page)
    }

    /// Waits until something holds. Returns whether it came to hold in time.
    pub(crate) fn until(what: impl Fn() -> bool) -> bool {
        Self::until_every(Duration::from_millis(20), what)
    }

    /// Waits for what comes within a fraction of a millisecond most often. Returns whether it came in time.
    pub(crate) fn until_soon(what: impl Fn() -> bool) -> bool {
        Self::until_every(Duration::from_micros(100), what)
    }

    fn until_every(pause: Duration, what: impl Fn() -> bool) -> bool {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(30) {
            if what() {
                return true;
            }
            thread::sleep(pause);
        }
        false
    }
}

impl Deref for World {
    type Target = Namespaces;

    fn deref(&self) -> &Namespaces {
        &self.all
    }
}

/// A router that runs. Killed when this is dropped.
pub(crate) struct Router {
    child: Child,
    log: PathBuf,
    _folder: tempfile::TempDir,
}

impl Router {
    /// Its messages on stderr.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Bytes of memory that it holds.
    pub(crate) fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    /// The effective capabilities of its threads, as bits.
    pub(crate) fn rights(&self) -> Vec<u64> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let of = |status: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        };
        threads
            .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("status")).ok())
            .map(|status| of(&status))
            .collect()
    }

    /// Seconds of CPU time of each worker.
    pub(crate) fn busy(&self) -> Vec<f64> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let of = |thread: std::io::Result<std::fs::DirEntry>| {
            let folder = thread.ok()?.path();
            let name = std::fs::read_to_string(folder.join("comm")).ok()?;
            let spent = std::fs::read_to_string(folder.join("schedstat")).ok()?;
            let nanoseconds: f64 = spent.split(' ').next()?.parse().ok()?;
            name.starts_with("worker ").then_some(nanoseconds / 1e9)
        };
        threads.filter_map(of).collect()
    }

    /// Ends it as Ctrl-C does: its report, whose sums were checked.
    pub(crate) fn stop(mut self) -> Value {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let mut text = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(130), "{}", self.said());
        let report: Value = serde_json::from_str(&text).unwrap();
        let of = |key: &str| report[key].as_u64().unwrap();
        let dropped: u64 =
            report["dropped"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
        let ends = of("frames_out") + dropped + of("to_kernel") + of("to_controller") + of("queued");
        assert_eq!(of("frames_in"), ends, "{report}");
        report
    }

    /// Kills it, as a crash would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}
