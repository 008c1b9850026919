//! An OpenFlow-like switch: frames come in on ports, flows say what becomes of them, and a controller changes
//! flows meanwhile.
//!
//! `cargo run --release -p wirespeed --example openflow_switch [FLOWS [SECONDS]]`
//!
//! The file is what `ovs-ofctl dump-flows` writes. Without it there are flows of a switch with 8 ports and 64
//! hosts: one to each host, one that drops telnet, one that floods ARP, and one that sends the rest to the
//! controller. Frames are seeded. One thread takes changes from a channel, as a controller sends them; two
//! threads forward, each with a reader of its own.

use std::convert::Infallible;
use std::fmt::Write;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use wirespeed::classify::FrameError;
use wirespeed::classify::read::{ReadOptions, Source, read_rules, read_rules_from};
use wirespeed::fib::synth::rng::Rng;
use wirespeed::prelude::*;

/// Frames that are forwarded at a time.
const BURST: usize = 256;
/// Changes that are made at a time, at most.
const TOGETHER: usize = 64;
const HOSTS: u8 = 64;
const PORTS: u8 = 8;

/// What becomes of a frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Action {
    Output(u16),
    Flood,
    Drop,
    Controller,
    /// Nothing that this switch knows.
    Other(String),
}

impl FromStr for Action {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let (word, rest) = text.split_once(':').unwrap_or((text, ""));
        Ok(match (word.to_ascii_lowercase().as_str(), rest.parse()) {
            ("output", Ok(port)) => Self::Output(port),
            ("flood" | "all", _) => Self::Flood,
            ("drop", _) => Self::Drop,
            ("controller", _) => Self::Controller,
            _ => Self::Other(text.to_owned()),
        })
    }
}

/// A frame, and the port that it came in on.
type Frame = (u16, Vec<u8>);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (path, seconds) = (args.next(), args.next().map_or(Ok(1.0), |seconds| seconds.parse::<f64>())?);
    let (actions, options) = (Labels::new(), ReadOptions::default());
    let read = match &path {
        Some(path) => read_rules(&Source::Path(path.into()), &options)?,
        None => read_rules_from(flows().as_bytes(), "flows", &options)?,
    };
    // A flow that the switch can't do is an error; so would a switch refuse it.
    let mut table = Classifier::builder().read(read, &actions).build()?;
    println!("{}", table.reports()[0]);
    println!("engine {}, {} masks, {} KiB", table.engine(), table.classes(), table.memory_usage() >> 10);

    let frames = frames(20_000, 1);
    let moves: Vec<_> = match path {
        None => (0..4_096).map(|n| moved(&table, &actions, n)).collect::<Result<_, _>>()?,
        Some(_) => Vec::new(),
    };
    let (sender, receiver) = mpsc::sync_channel(4 * TOGETHER);
    let stop = &AtomicBool::new(false);
    let reader = table.reader();
    let (forwarded, changed) = thread::scope(|scope| {
        let forwarders: Vec<_> = (0..2)
            .map(|_| {
                let (reader, frames, actions) = (reader.clone(), &frames, &actions);
                scope.spawn(move || forward(&reader, actions, frames, stop))
            })
            .collect();
        let table = &mut table;
        let writer = scope.spawn(move || change(table, &receiver));
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let mut feed = moves.iter().cycle();
        while Instant::now() < end {
            // A controller's part.
            for change in feed.by_ref().take(TOGETHER) {
                let _ = sender.send(change.clone());
            }
            thread::sleep(Duration::from_millis(1));
        }
        drop(sender);
        stop.store(true, Ordering::Relaxed);
        let forwarded = forwarders.into_iter().map(|one| one.join().unwrap_or_default());
        (forwarded.fold(Forwarded::default(), Forwarded::and), writer.join())
    });
    let changed = changed.map_err(|_| "the writer panicked")??;
    println!("{forwarded}{changed} changes of flows in {seconds} s");
    Ok(())
}

/// What came of frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Forwarded {
    /// Frames by the port that they went out of.
    out: Vec<u64>,
    flooded: u64,
    dropped: u64,
    to_controller: u64,
    /// Frames without a flow, or with an action that is not known.
    without: u64,
    malformed: u64,
}

impl Forwarded {
    fn count(&mut self, action: Option<&Action>) {
        match action {
            Some(&Action::Output(port)) => {
                let port = usize::from(port);
                self.out.resize(self.out.len().max(port + 1), 0);
                self.out[port] += 1;
            }
            Some(Action::Flood) => self.flooded += 1,
            Some(Action::Drop) => self.dropped += 1,
            Some(Action::Controller) => self.to_controller += 1,
            Some(Action::Other(_)) | None => self.without += 1,
        }
    }

    fn and(mut self, other: Self) -> Self {
        self.out.resize(self.out.len().max(other.out.len()), 0);
        self.out.iter_mut().zip(other.out).for_each(|(all, one)| *all += one);
        self.flooded += other.flooded;
        self.dropped += other.dropped;
        self.to_controller += other.to_controller;
        self.without += other.without;
        self.malformed += other.malformed;
        self
    }

    fn frames(&self) -> u64 {
        let sent = self.out.iter().sum::<u64>();
        sent + self.flooded + self.dropped + self.to_controller + self.without + self.malformed
    }
}

impl std::fmt::Display for Forwarded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { flooded, dropped, to_controller, without, malformed, .. } = self;
        writeln!(f, "{} frames by 2 threads", self.frames())?;
        for (port, count) in self.out.iter().enumerate().filter(|&(_, &count)| count > 0) {
            writeln!(f, "  {count:>10} out of port {port}")?;
        }
        writeln!(f, "  {dropped:>10} dropped, {flooded} flooded, {to_controller} to the controller")?;
        writeln!(f, "  {without:>10} without a flow, {malformed} too short for a frame")
    }
}

/// Forwards burst after burst, each by one state of the flows.
fn forward(
    reader: &RuleReader<OpenFlowTuple>,
    actions: &Labels<Action>,
    frames: &[Frame],
    stop: &AtomicBool,
) -> Forwarded {
    let mut forwarded = Forwarded::default();
    let mut found: Vec<Result<Option<RuleMatch>, FrameError>> = vec![Ok(None); BURST];
    for burst in frames.chunks(BURST).cycle() {
        let found = &mut found[..burst.len()];
        let known = actions.enter();
        reader.match_frames(burst, found);
        for one in found {
            match one {
                Ok(flow) => forwarded.count(flow.and_then(|flow| known.get(flow.action))),
                Err(_) => forwarded.malformed += 1,
            }
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    forwarded
}

/// Makes the changes that come, all that are waiting at once, until the channel closes; how many these were.
fn change(
    table: &mut Classifier<OpenFlowTuple>,
    incoming: &Receiver<RuleUpdate<OpenFlowTuple>>,
) -> Result<u64, wirespeed::Error> {
    let mut changed = 0;
    let mut together = Vec::with_capacity(TOGETHER);
    while let Ok(first) = incoming.recv() {
        together.clear();
        together.push(first);
        together.extend(incoming.try_iter().take(TOGETHER - 1));
        table.apply(&together)?;
        changed += together.len() as u64;
    }
    Ok(changed)
}

/// The flow to a host, with another port as its action.
fn moved(
    table: &Classifier<OpenFlowTuple>,
    actions: &Labels<Action>,
    n: u32,
) -> Result<RuleUpdate<OpenFlowTuple>, Box<dyn std::error::Error>> {
    let number = 3 + n % u32::from(HOSTS);
    let flow = table.rules().rule(number).ok_or("no such flow")?;
    let port = u16::try_from(n / u32::from(HOSTS) + n)? % u16::from(PORTS);
    let action = actions.intern(Action::Output(1 + port))?;
    Ok(RuleUpdate::Set(number, flow.clone().with_action(action.0)))
}

/// The flows of a small switch, as `ovs-ofctl` writes them: those to hosts have the numbers from 3 on.
fn flows() -> String {
    let mut text = "priority=300,arp actions=FLOOD\npriority=200,tcp,tp_dst=23 actions=drop\n".to_owned();
    for host in 0..HOSTS {
        let port = 1 + host % PORTS;
        // Writing to a string doesn't fail.
        let _ = writeln!(text, "priority=100,dl_dst=02:00:00:00:00:{host:02x} actions=output:{port}");
    }
    text + "priority=0 actions=CONTROLLER:65535\n"
}

/// Frames between hosts: mostly TCP, to the web, to telnet or to a host that nobody knows; some ARP, and some
/// that are cut off.
fn frames(count: usize, seed: u64) -> Vec<Frame> {
    let mut rng = Rng::new(seed);
    let frame = |_| {
        let mut host = |hosts: u8| u8::try_from(rng.below(hosts.into())).unwrap_or(0);
        let (from, to, kind) = (host(HOSTS), host(HOSTS + 1), host(100));
        let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from];
        match kind {
            0 => frame.truncate(9),
            1..5 => {
                frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, from, 10, 0, 0, from]);
                frame.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, to]);
            }
            _ => {
                let port = if kind < 10 { 23 } else { 80 };
                frame
                    .extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
                frame.extend([0x9c, 0x40, 0, port, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0]);
            }
        }
        (u16::from(1 + from % PORTS), frame)
    };
    (0..count).map(frame).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch() -> (Classifier<OpenFlowTuple>, Labels<Action>) {
        let actions = Labels::new();
        let read = read_rules_from(flows().as_bytes(), "flows", &ReadOptions::default()).unwrap();
        (Classifier::builder().read(read, &actions).build().unwrap(), actions)
    }

    /// One burst.
    fn once(table: &Classifier<OpenFlowTuple>, actions: &Labels<Action>, frames: &[Frame]) -> Forwarded {
        forward(&table.reader(), actions, frames, &AtomicBool::new(true))
    }

    #[test]
    fn frames_leave_by_their_flows() {
        let (table, actions) = switch();
        let mut wanted = Forwarded::default();
        let frames = frames(BURST, 2);
        for (_, frame) in &frames {
            match &frame[..] {
                short if short.len() < 14 => wanted.malformed += 1,
                frame if frame[13] == 6 => wanted.count(Some(&Action::Flood)),
                frame if frame[37] == 23 => wanted.count(Some(&Action::Drop)),
                frame if frame[5] < HOSTS => {
                    wanted.count(Some(&Action::Output(u16::from(1 + frame[5] % PORTS))));
                }
                _ => wanted.count(Some(&Action::Controller)),
            }
        }
        assert!(wanted.malformed > 0 && wanted.flooded > 0 && wanted.dropped > 0 && wanted.to_controller > 0);
        assert_eq!(once(&table, &actions, &frames), wanted);
        assert_eq!(wanted.frames(), BURST as u64);
        assert!(wanted.to_string().contains("out of port 8"), "{wanted}");
    }

    #[test]
    fn hosts_move_while_frames_come_and_no_frame_gets_lost() {
        let (mut table, actions) = switch();
        let web: Vec<Frame> = frames(4_000, 3)
            .into_iter()
            .filter(|(_, frame)| frame.len() == 54 && frame[37] == 80 && frame[5] < HOSTS)
            .collect();
        let (sender, receiver) = mpsc::channel();
        let (stop, reader) = (AtomicBool::new(false), table.reader());
        let moves: Vec<_> = (0..512).map(|n| moved(&table, &actions, n).unwrap()).collect();
        let forwarded = thread::scope(|scope| {
            let (stop, web, actions) = (&stop, &web, &actions);
            let forwarder = scope.spawn(move || forward(&reader, actions, web, stop));
            moves.iter().for_each(|change| sender.send(change.clone()).unwrap());
            drop(sender);
            assert_eq!(change(&mut table, &receiver).unwrap(), 512);
            stop.store(true, Ordering::Relaxed);
            forwarder.join().unwrap()
        });
        assert_eq!(forwarded.frames(), forwarded.out.iter().sum::<u64>(), "{forwarded}");
        // And in the end all are where they were moved to.
        let mut wanted = Forwarded::default();
        for (_, frame) in web.iter().take(BURST) {
            let RuleUpdate::Set(_, flow) = &moves[512 - usize::from(HOSTS) + usize::from(frame[5])] else {
                panic!("a change of a flow")
            };
            wanted.count(actions.get(NextHop(flow.action())).as_deref());
        }
        assert_eq!(once(&table, &actions, &web[..BURST]), wanted);
    }

    #[test]
    fn actions_are_read_as_ovs_writes_them() {
        let of = |text: &str| text.parse::<Action>().unwrap();
        assert_eq!(of("output:7"), Action::Output(7));
        assert_eq!(
            [of("FLOOD"), of("drop"), of("CONTROLLER:65535")],
            [Action::Flood, Action::Drop, Action::Controller]
        );
        assert_eq!(of("mod_vlan_vid:5,output:1"), Action::Other("mod_vlan_vid:5,output:1".to_owned()));
    }
}
