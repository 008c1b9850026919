//! [`lanes`]: routers between virtual interfaces, in namespaces made for each run.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use wirespeed_netns::{Link, Namespaces};

use super::programs::Programs;
use super::race::{Lane, Run};

/// The beginning of a run, while queues fill: it is left out.
const LEAD: Duration = Duration::from_millis(500);

/// How long a router may take to start.
const PATIENCE: Duration = Duration::from_secs(10);

/// The namespaces of a run: a host that sends, the router, a host that counts. They are gone when this is
/// dropped.
struct World(Namespaces);

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

    fn command(&self, side: &str, program: &Path) -> Command {
        let mut command = self.0.command(side, program);
        command.stdin(Stdio::null());
        command
    }

    /// Frames that the right host has received.
    fn arrived(&self) -> Result<f64> {
        Ok(self.0.counter("right", "hr", "rx_packets")? as f64)
    }

    /// Frames a second that arrive at the right while the left sends all that go.
    fn rate(&self, blast: &Path, seconds: f64) -> Result<f64> {
        let (from, to) = (self.0.mac("left", "hl")?, self.0.mac("middle", "ml")?);
        let time = (LEAD.as_secs_f64() * 2.0 + seconds).to_string();
        let mut sender = self.command("left", blast);
        let sender = sender.args(["hl", &from, &to, "10.0.1.2", "10.0.2.99", &time]).stdout(Stdio::null());
        let mut sender = Running(sender.spawn()?);
        thread::sleep(LEAD);
        let (before, start) = (self.arrived()?, Instant::now());
        thread::sleep(Duration::from_secs_f64(seconds));
        let rate = (self.arrived()? - before) / start.elapsed().as_secs_f64();
        sender.0.wait()?;
        Ok(rate)
    }
}

/// A program that is killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

/// Waits until a program says something, for a while. Returns what it said instead if it does not.
fn says(output: impl std::io::Read + Send + 'static, expected: &'static str) -> Result<(), String> {
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

/// The routers: the kernel, ours by both drivers, and testpmd by both.
pub fn lanes(programs: &Programs, seconds: f64) -> Vec<Lane> {
    let programs = Rc::new(programs.clone());
    let lane = |name, command: String, start: Box<Start>| {
        let programs = Rc::clone(&programs);
        let run = Box::new(move || {
            let world = match World::new() {
                Ok(world) => world,
                Err(error) => return Ok(Run::Absent(format!("no network namespaces: {error:#}"))),
            };
            let router = match start(&world, &programs)? {
                Ok(router) => router,
                Err(reason) => return Ok(Run::Absent(reason)),
            };
            let rate = world.rate(&programs.blast, seconds)?;
            drop(router);
            Ok(Run::Rate(rate))
        });
        Lane { name, setting: "live", command, run }
    };
    let ours = |name, driver: &'static str| {
        let start = move |world: &World, programs: &Programs| {
            let mut command = world.command("middle", &programs.lookupctl);
            command.args(["route", "ml", "mr", "--driver", driver]).stdout(Stdio::null());
            let mut router = Running(command.stderr(Stdio::piped()).spawn()?);
            let output = router.0.stderr.take().context("piped")?;
            Ok(says(output, "mr: ").map(|()| Some(router)))
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
            world.0.forward("middle", false)?;
            let mut router = Running(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?);
            let output = router.0.stdout.take().context("piped")?;
            Ok(says(output, "Port statistics").map(|()| Some(router)).map_err(|last| {
                format!("{last}; it needs the packages dpdk-dev and librte-net-{}23", kind.replace('_', "-"))
            }))
        };
        lane(name, command, Box::new(start))
    };
    let kernel = Box::new(|_: &World, _: &Programs| Ok(Ok(None)));
    vec![
        lane("kernel", "sysctl net.ipv4.ip_forward=1".to_owned(), kernel),
        ours("wirespeed-af_xdp", "xdp"),
        testpmd("testpmd-af_xdp", "af_xdp"),
        ours("wirespeed-af_packet", "packet"),
        testpmd("testpmd-af_packet", "af_packet"),
    ]
}

/// Starts a router, or says why it does not start.
type Start = dyn Fn(&World, &Programs) -> Result<Result<Option<Running>, String>>;
