//! [`lanes`]: routers between virtual interfaces, in namespaces made for each run.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use wirespeed_netns::{Link, Namespaces};

use super::controller::add_flows;
use super::programs::Programs;
use super::race::{Lane, Run};

/// The beginning of a run, while queues fill: it is left out.
const LEAD: Duration = Duration::from_millis(500);

/// The port of loopback at which switches wait for controllers.
pub(super) const CONTROLLER: u16 = 6653;
/// Flows that a controller adds.
const CHANGES: u32 = 500_000;

/// How long a router may take to start.
const PATIENCE: Duration = Duration::from_secs(10);

/// The namespaces of a run: a host that sends, the router, a host that counts. They are gone when this is
/// dropped.
pub(super) struct World(Namespaces);

const SIDES: [&str; 3] = ["left", "middle", "right"];

impl World {
    fn new() -> Result<Self> {
        let all = Namespaces::new(&SIDES)?;
        for (side, near, far, net) in [("left", "ml", "hl", 1), ("right", "mr", "hr", 2)] {
            all.link(Link { router: ("middle", near), host: (side, far), net, queues: 1 })?;
        }
        // A host that drops what it gets, and whose address nobody has to ask for.
        let right = all.mac("right", "hr")?;
        all.try_ip("middle", &format!("neigh add 10.0.2.99 lladdr {right} dev mr"))?;
        all.forward("middle", true)?;
        Ok(Self(all))
    }

    pub(super) fn command(&self, side: &str, program: &Path) -> Command {
        let mut command = self.0.command(side, program);
        command.stdin(Stdio::null());
        command
    }

    /// Says whether the kernel forwards in a namespace.
    pub(super) fn forward(&self, side: &str, on: bool) -> Result<()> {
        Ok(self.0.forward(side, on)?)
    }

    /// Frames that the right host has received.
    fn arrived(&self) -> Result<f64> {
        Ok(self.0.counter("right", "hr", "rx_packets")? as f64)
    }

    /// Starts the left, which sends all that go for some seconds, and waits until it does.
    fn send(&self, blast: &Path, seconds: f64) -> Result<Running> {
        let (from, to) = (self.0.mac("left", "hl")?, self.0.mac("middle", "ml")?);
        let time = (LEAD.as_secs_f64() * 2.0 + seconds).to_string();
        let mut sender = self.command("left", blast);
        let sender = sender.args(["hl", &from, &to, "10.0.1.2", "10.0.2.99", &time]).stdout(Stdio::null());
        let sender = Running(sender.spawn()?);
        thread::sleep(LEAD);
        Ok(sender)
    }

    /// Flows a second that a controller adds to the switch in the middle over loopback, while the left sends.
    pub(super) fn changes(&self, blast: &Path) -> Result<f64> {
        let before = self.arrived()?;
        let sender = self.send(blast, PATIENCE.as_secs_f64() * 60.0)?;
        let entrance = self.0.entrance("middle")?;
        let controller = thread::spawn(move || {
            entrance()?;
            add_flows(TcpStream::connect(("127.0.0.1", CONTROLLER))?, CHANGES)
        });
        let took = controller.join().map_err(|_| anyhow!("the controller panicked"))??;
        drop(sender);
        anyhow::ensure!(self.arrived()? > before, "the switch forwards nothing meanwhile");
        Ok(f64::from(CHANGES) / took.as_secs_f64())
    }

    /// Frames a second that arrive at the right while the left sends all that go.
    pub(super) fn rate(&self, blast: &Path, seconds: f64) -> Result<f64> {
        let mut sender = self.send(blast, seconds)?;
        let (before, start) = (self.arrived()?, Instant::now());
        thread::sleep(Duration::from_secs_f64(seconds));
        let rate = (self.arrived()? - before) / start.elapsed().as_secs_f64();
        sender.0.wait()?;
        Ok(rate)
    }
}

/// A program that is killed when this is dropped.
pub(super) struct Running(pub(super) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

/// Waits until a program says something, for a while. Returns what it said instead if it does not.
pub(super) fn says(
    output: impl std::io::Read + Send + 'static,
    expected: &'static str,
) -> Result<(), String> {
    let (told, tells) = std::sync::mpsc::channel();
    thread::spawn(move || {
        // The rest is read, too, so that the program never waits.
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let _ = told.send(line);
        }
    });
    let (until, mut last) = (Instant::now() + PATIENCE, "it said nothing".to_owned());
    while let Ok(line) = tells.recv_timeout(until.saturating_duration_since(Instant::now())) {
        if line.contains(expected) {
            return Ok(());
        }
        last = line;
    }
    Err(last)
}

/// Starts a router, or says why it does not start: the programs that run until it is dropped.
pub(super) type Start = dyn Fn(&World, &Programs) -> Result<Result<Vec<Running>, String>>;

/// Measures a router that runs.
pub(super) type Measure = dyn Fn(&World, &Programs) -> Result<f64>;

/// A router between virtual interfaces, in namespaces of its own.
pub(super) fn lane(
    programs: &Programs,
    name: &str,
    command: String,
    start: Box<Start>,
    measure: Box<Measure>,
) -> Lane {
    let programs = programs.clone();
    let run = Box::new(move || {
        let world = match World::new() {
            Ok(world) => world,
            Err(error) => return Ok(Run::Absent(format!("no network namespaces: {error:#}"))),
        };
        let router = match start(&world, &programs)? {
            Ok(router) => router,
            Err(reason) => return Ok(Run::Absent(reason)),
        };
        let rate = measure(&world, &programs)?;
        drop(router);
        Ok(Run::Rate(rate))
    });
    Lane { name: name.to_owned(), setting: "live", command, run }
}

/// The routers: the kernel, ours by both drivers, and testpmd by both.
pub fn lanes(programs: &Programs, seconds: f64) -> Vec<Lane> {
    let lane = |name, command: String, start: Box<Start>| {
        let rate = Box::new(move |world: &World, programs: &Programs| world.rate(&programs.blast, seconds));
        lane(programs, name, command, start, rate)
    };
    let ours = |name, driver: &'static str| {
        let start = move |world: &World, programs: &Programs| {
            let mut command = world.command("middle", &programs.lookupctl);
            command.args(["route", "ml", "mr", "--driver", driver]).stdout(Stdio::null());
            let mut router = Running(command.stderr(Stdio::piped()).spawn()?);
            let output = router.0.stderr.take().context("piped")?;
            Ok(says(output, "mr: ").map(|()| vec![router]))
        };
        lane(name, format!("lookupctl route ml mr --driver {driver}"), Box::new(start))
    };
    let testpmd = |name, kind: &'static str| {
        let words = format!(
            "--no-huge --no-pci -m 256 -l 0,1 --vdev=net_{kind}0,iface=ml --vdev=net_{kind}1,iface=mr -- \
             --forward-mode=mac --nb-cores=1 --total-num-mbufs=16384 --stats-period=1"
        );
        let command = format!("dpdk-testpmd {words}");
        let start = move |world: &World, _: &Programs| {
            // Its addresses of peers are options behind the devices'.
            let peers = [world.0.mac("left", "hl")?, world.0.mac("right", "hr")?];
            let mut command = world.command("middle", Path::new("dpdk-testpmd"));
            command
                .arg(format!("--file-prefix={}", world.0.prefix()))
                .args(words.split_whitespace())
                .args([0, 1].map(|at| format!("--eth-peer={at},{}", peers[at])));
            // The kernel must not forward, too.
            world.forward("middle", false)?;
            let mut router = Running(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?);
            let output = router.0.stdout.take().context("piped")?;
            Ok(says(output, "Port statistics").map(|()| vec![router]).map_err(|last| {
                format!("{last}; it needs the packages dpdk-dev and librte-net-{}23", kind.replace('_', "-"))
            }))
        };
        lane(name, command, Box::new(start))
    };
    let kernel = Box::new(|_: &World, _: &Programs| Ok(Ok(Vec::new())));
    vec![
        lane("kernel", "sysctl net.ipv4.ip_forward=1".to_owned(), kernel),
        ours("wirespeed-af_xdp", "xdp"),
        testpmd("testpmd-af_xdp", "af_xdp"),
        ours("wirespeed-af_packet", "packet"),
        testpmd("testpmd-af_packet", "af_packet"),
    ]
}
