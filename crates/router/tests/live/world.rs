//! [`World`]: the namespaces of a test, and processes in them.

use std::env;
use std::io::{BufRead, BufReader};
use std::ops::Deref;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use wirespeed_netns::{Link, Namespaces};

/// Two hosts and what joins them. The namespaces are gone when this is dropped.
pub(crate) struct World {
    all: Namespaces,
    /// Whether its processes go before all others of the machine, so that a busy machine's rates are good.
    pub(crate) is_urgent: bool,
}

/// The namespaces.
pub(crate) const SIDES: [&str; 3] = ["left", "middle", "right"];

impl World {
    /// Makes the namespaces, with addresses and routes. `None`, and says so, where this is not possible.
    pub(crate) fn new() -> Option<Self> {
        let world = Self { all: Namespaces::or_skip(&SIDES, &["ping"])?, is_urgent: false };
        for (side, near, far, net) in [("left", "ml", "hl", 1), ("right", "mr", "hr", 2)] {
            world
                .link(Link { router: ("middle", near), host: (side, far), net, queues: 2 })
                .expect("veth devices");
        }
        world.kernel_forwards(true);
        Some(world)
    }

    /// Sets the kernel's forwarding between both hosts.
    pub(crate) fn kernel_forwards(&self, on: bool) {
        self.forward("middle", on).expect("it may be switched");
    }

    /// A command of a namespace: a program and its arguments.
    fn words(&self, side: &str, words: &[&str]) -> Command {
        let mut command = self.command(side, words[0]);
        command.args(&words[1..]);
        command
    }

    /// A command that goes before all others of the machine, if this world's do.
    fn urgent<'c>(&self, priority: &'c str, command: &[&'c str]) -> Vec<&'c str> {
        let first: &[&str] = if self.is_urgent { &["chrt", "-f", priority] } else { &[] };
        first.iter().chain(command).copied().collect()
    }

    /// Starts a part of the test in a namespace: see `part.rs`. It has said `ready` when this returns.
    pub(crate) fn start(&self, side: &str, part: &str) -> Part {
        let exe = env::current_exe().expect("the test's own program");
        let exe = exe.to_str().expect("a path in UTF-8");
        let arguments = [exe, "--exact", "part", "--ignored", "--nocapture", "--test-threads=1"];
        // Root without capabilities may do nothing.
        let capabilities = match part.split(' ').next() {
            Some("beggar") => Some("-all"),
            Some("modest") => Some("-all,+net_admin,+net_raw,+bpf,+ipc_lock"),
            _ => None,
        };
        let bounding = capabilities.map(|all| format!("--bounding-set={all}"));
        let mut limited: Vec<&str> = Vec::new();
        if let Some(bounding) = &bounding {
            limited.extend(["setpriv", bounding, "--inh-caps=-all"]);
        }
        limited.extend(arguments);
        let arguments = limited;
        // Whoever measures must not wait for those that are measured.
        let priority = if part.starts_with("count") { "2" } else { "1" };
        let mut child = self
            .words(side, &self.urgent(priority, &arguments))
            .env("WIRESPEED_PART", part)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("ip runs");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let mut part = Part { input: child.stdin.take(), child, output, said: String::new() };
        part.wait_for("ready");
        part
    }

    /// Runs a part of the test until it ends: what it said.
    pub(crate) fn play(&self, side: &str, part: &str) -> String {
        self.start(side, part).finish()
    }

    /// Starts DPDK's testpmd between both hosts, with the addresses of the forwarder. `None` if it is not
    /// installed, or does not start.
    pub(crate) fn testpmd(&self, kind: &str) -> Option<Part> {
        let peers = [("left", "hl"), ("right", "hr")].map(|(side, interface)| self.mac(side, interface));
        let devices = [(0, "ml"), (1, "mr")].map(|(at, name)| format!("--vdev=net_{kind}{at},iface={name}"));
        let peers = [0, 1].map(|at| format!("--eth-peer={at},{}", peers[at]));
        let prefix = format!("--file-prefix={}", self.prefix());
        let mut command =
            vec!["stdbuf", "-oL", "dpdk-testpmd", "--no-huge", "--no-pci", "-m", "256", "-l", "0,1", &prefix];
        command.extend(devices.iter().map(String::as_str));
        command.extend(["--", "--forward-mode=mac", "--total-num-mbufs=16384", "--nb-cores=1"]);
        command.extend(peers.iter().map(String::as_str));
        let mut child = self
            .words("middle", &self.urgent("1", &command))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let mut part = Part { input: child.stdin.take(), child, output, said: String::new() };
        part.says("Press enter").then_some(part)
    }

    /// The hardware address of an interface.
    pub(crate) fn mac(&self, side: &str, interface: &str) -> String {
        self.all.mac(side, interface).expect("it is there")
    }

    /// A counter of an interface.
    pub(crate) fn counter(&self, side: &str, interface: &str, counter: &str) -> u64 {
        self.all.counter(side, interface, counter).expect("it is there")
    }

    /// The forwarder's description: see `part.rs`.
    pub(crate) fn forwarder(&self, driver: &str) -> String {
        let macs = [("middle", "ml"), ("left", "hl"), ("middle", "mr"), ("right", "hr")]
            .map(|(side, interface)| self.mac(side, interface));
        format!("forward {driver} ml={}>{} mr={}>{}", macs[0], macs[1], macs[2], macs[3])
    }

    /// Sends pings from the left to the right: how many came back, and the TTL of the last.
    pub(crate) fn ping(&self, address: &str, count: u32) -> (u32, Option<u32>) {
        self.ping_of(address, count, 56)
    }

    /// Sends pings of a size.
    pub(crate) fn ping_of(&self, address: &str, count: u32, bytes: u32) -> (u32, Option<u32>) {
        let (count, bytes) = (count.to_string(), bytes.to_string());
        // With `-w` it waits for late replies, which a busy machine has.
        let ping = ["ping", "-n", "-i", "0.02", "-w", "5", "-c", &count, "-s", &bytes, address];
        let text = self.words("left", &ping).output().expect("ip runs");
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        let replies: Vec<&str> =
            text.lines().filter_map(|line| line.split_once("ttl=")).map(|l| l.1).collect();
        let ttl = replies.last().and_then(|rest| rest.split(' ').next()?.parse().ok());
        (u32::try_from(replies.len()).expect("few"), ttl)
    }
}

impl Deref for World {
    type Target = Namespaces;

    fn deref(&self) -> &Namespaces {
        &self.all
    }
}

/// A process of a test. Killed when this is dropped.
pub(crate) struct Part {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    said: String,
}

impl Part {
    /// Reads until it says a line that begins so.
    fn wait_for(&mut self, beginning: &str) {
        assert!(self.says(beginning), "the part ended before {beginning:?}:\n{}", self.said);
    }

    /// Reads until it says a line that begins so. Returns `false` if it ends before.
    fn says(&mut self, beginning: &str) -> bool {
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).expect("text") == 0 {
                return false;
            }
            self.said.push_str(&line);
            if line.starts_with(beginning) {
                return true;
            }
        }
    }

    /// Tells it to end, and waits: what it said.
    pub(crate) fn finish(mut self) -> String {
        self.input = None;
        self.join()
    }

    /// Waits until it ends: what it said.
    pub(crate) fn join(mut self) -> String {
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).expect("text") == 0 {
                break;
            }
            self.said.push_str(&line);
        }
        let status = self.child.wait().expect("it was started");
        assert!(status.success(), "{status}:\n{}", self.said);
        std::mem::take(&mut self.said)
    }

    /// Kills it, as a crash would.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it was started");
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
