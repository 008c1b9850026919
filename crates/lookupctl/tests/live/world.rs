//! [`World`]: a router and hosts in network namespaces, joined by virtual interfaces. [`Router`]: the binary
//! that forwards there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use wirespeed_router::io::{Interface, Offload};

/// A router `r` and hosts, each in a namespace that is its letter. Host `a` is at 10.0.1.2 and fd01::2, `b`
/// at 10.0.2.2 and fd02::2, and so on; `ra` and `rb` are the router's interfaces, `ha` and `hb` theirs. The
/// namespaces are gone when this is dropped.
pub(crate) struct World {
    prefix: String,
    hosts: &'static [&'static str],
}

impl World {
    /// `None`, and says so, where namespaces can't be made.
    pub(crate) fn new(hosts: &'static [&'static str]) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let world = Self { prefix: format!("wsl{}x{number}", std::process::id()), hosts };
        for side in hosts.iter().chain(&["r"]) {
            let made = Command::new("ip").args(["netns", "add", &world.name(side)]).output();
            if !made.as_ref().is_ok_and(|output| output.status.success()) {
                println!("skipped: no network namespaces: {made:?}");
                return None;
            }
            world.ip(side, "link set lo up");
        }
        for (net, side) in (1..).zip(hosts) {
            let (near, far) = (format!("r{side}"), format!("h{side}"));
            let queues = "numrxqueues 2 numtxqueues 2";
            let peer = format!("{far} netns {} {queues}", world.name(side));
            world.ip("r", &format!("link add {near} {queues} type veth peer name {peer}"));
            for (at, interface, last) in [("r", &near, 1), (side, &far, 2)] {
                world.ip(at, &format!("addr add 10.0.{net}.{last}/24 dev {interface}"));
                world.ip(at, &format!("addr add fd0{net}::{last}/64 dev {interface} nodad"));
                world.ip(at, &format!("link set {interface} up"));
            }
            world.ip(side, &format!("route add default via 10.0.{net}.1"));
            world.ip(side, &format!("route add default via fd0{net}::1"));
            // Segments larger than the link takes fit no buffer of the router.
            world
                .inside(side, move || {
                    let interface = Interface::open(&far).unwrap();
                    for offload in
                        [Offload::TransmitChecksum, Offload::Segmentation, Offload::GenericSegmentation]
                    {
                        interface.set_offload(offload, false).unwrap();
                    }
                })
                .join()
                .unwrap();
        }
        for key in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            let write = format!("echo 1 > /proc/sys/net/{key}");
            if !world.command("r", &["sh", "-c", &write]).status().unwrap().success() {
                println!("skipped: forwarding can't be switched on");
                return None;
            }
        }
        Some(world)
    }

    fn name(&self, side: &str) -> String {
        format!("{}{side}", self.prefix)
    }

    fn command(&self, side: &str, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(side)]).args(words);
        command
    }

    /// Runs `ip` in a namespace.
    pub(crate) fn ip(&self, side: &str, words: &str) {
        let output =
            Command::new("ip").args(["-n", &self.name(side)]).args(words.split(' ')).output().unwrap();
        assert!(output.status.success(), "{side}: {words}: {output:?}");
    }

    /// Runs many commands of `ip` in a namespace.
    pub(crate) fn batch(&self, side: &str, lines: &str) {
        let mut ip = Command::new("ip")
            .args(["-n", &self.name(side), "-batch", "-"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        ip.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        assert!(ip.wait().unwrap().success());
    }

    /// Runs a function on a thread in a namespace: its sockets belong there.
    pub(crate) fn inside<T: Send + 'static>(
        &self,
        side: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let namespace = File::open(format!("/run/netns/{}", self.name(side))).unwrap();
        thread::spawn(move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        })
    }

    /// Starts the router between all interfaces. `None`, and says so, where it may not forward.
    pub(crate) fn router(&self, options: &str) -> Option<Router> {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let interfaces: Vec<String> = self.hosts.iter().map(|side| format!("r{side}")).collect();
        let mut words = vec![env!("CARGO_BIN_EXE_lookupctl"), "route", "--json", "--metrics", "9464"];
        words.extend(options.split_whitespace());
        words.extend(interfaces.iter().map(String::as_str));
        let child = self
            .command("r", &words)
            .stderr(File::create(&log).unwrap())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut router = Router { child, log, _folder: folder };
        let start = Instant::now();
        while self.try_metrics().is_none() {
            if router.child.try_wait().unwrap().is_some() {
                let said = router.said();
                assert!(said.contains("CAP_") || said.contains("ermitted"), "{said}");
                println!("skipped: {said}");
                return None;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{}", router.said());
            thread::sleep(Duration::from_millis(20));
        }
        Some(router)
    }

    /// What the router tells a scraper, by name with labels.
    pub(crate) fn metrics(&self) -> BTreeMap<String, f64> {
        self.try_metrics().expect("the router answers")
    }

    /// What a counter of the router says.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        self.metrics()[&format!("wirespeed_{name}")].to_string().parse().expect("a whole number")
    }

    fn try_metrics(&self) -> Option<BTreeMap<String, f64>> {
        let read = || {
            let mut stream = TcpStream::connect("127.0.0.1:9464").ok()?;
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").ok()?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).ok()?;
            Some(answer)
        };
        let answer = self.inside("r", read).join().unwrap()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        let lines = body.lines().filter(|line| !line.starts_with('#'));
        let pair = |line: &str| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        };
        // Before the first report no port is known.
        let page: BTreeMap<String, f64> = lines.map(pair).collect();
        page.contains_key("wirespeed_port_frames_received_total{port=\"ra\"}").then_some(page)
    }

    /// Waits until something holds. Returns whether it came to hold in time.
    pub(crate) fn until(what: impl Fn() -> bool) -> bool {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(30) {
            if what() {
                return true;
            }
            thread::sleep(Duration::from_millis(20));
        }
        false
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for side in self.hosts.iter().chain(&["r"]) {
            let _ = Command::new("ip").args(["netns", "del", &self.name(side)]).output();
        }
    }
}

/// A router that runs. Killed when this is dropped.
pub(crate) struct Router {
    child: Child,
    log: PathBuf,
    _folder: tempfile::TempDir,
}

impl Router {
    /// What it said on stderr.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Bytes of memory that it holds.
    pub(crate) fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
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
        let ends = of("frames_out") + dropped + of("to_kernel") + of("queued");
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
