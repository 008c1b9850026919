//! Two switches with three cables between them, for the switch tests of Ryu: `two_switches CONTROLLER`.
//!
//! ```text
//!            controller, such as tcp:127.0.0.1:6653
//!            │                              │
//!    datapath 1, the target         datapath 2, the tester
//!    ports 1, 2, 3  ◄───── cables ─────►  ports 1, 2, 3
//! ```
//!
//! A cable lies in memory. Like Ethernet it makes short frames 60 bytes long. Each switch has one worker. The
//! program ends when its standard input does. `cargo xtask ryu-tests` runs it.

use std::collections::VecDeque;
use std::io::Read;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use wirespeed_openflow::{Channel, Switch, SwitchOptions, Target};
use wirespeed_router::io::{Port, PortCounts};
use wirespeed_router::{Error, Frame, Memory, Published, Settings, Worker};

type Failure = Box<dyn std::error::Error>;

/// Cables between the switches.
const CABLES: usize = 3;
/// Frames on their way in a cable.
const MOST: usize = 1024;
/// The shortest frame of Ethernet, without its check sequence.
const LEAST: usize = 60;
/// Buffers of a worker.
const BUFFERS: u32 = 4096;

/// Frames on their way, in one direction.
type Line = Arc<Mutex<VecDeque<Vec<u8>>>>;

/// One end of a cable.
struct Cable {
    out: Line,
    back: Line,
    /// A byte for whoever sleeps at the other end.
    bell: UnixDatagram,
    counts: PortCounts,
}

impl Cable {
    /// Both ends.
    fn pair() -> std::io::Result<[Self; 2]> {
        let (one, other) = UnixDatagram::pair()?;
        let (there, back) = (Line::default(), Line::default());
        let end = |bell: UnixDatagram, out: &Line, back: &Line| -> std::io::Result<Self> {
            bell.set_nonblocking(true)?;
            Ok(Self { out: Arc::clone(out), back: Arc::clone(back), bell, counts: PortCounts::default() })
        };
        Ok([end(one, &there, &back)?, end(other, &back, &there)?])
    }
}

impl Port for Cable {
    fn name(&self) -> &'static str {
        "cable"
    }

    fn receive(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>, most: usize) -> Result<usize, Error> {
        // Before the frames: a bell that rings behind this is heard the next time.
        while self.bell.recv(&mut [0]).is_ok() {}
        let mut line = self.back.lock().unwrap_or_else(PoisonError::into_inner);
        let mut received = 0;
        // A frame stays in its cable until there is a buffer for it.
        while received < most
            && memory.free() > 0
            && let Some(bytes) = line.pop_front()
        {
            match memory.copy_of(&bytes) {
                Some(frame) => {
                    frames.push(frame);
                    received += 1;
                }
                None => self.counts.refused += 1,
            }
        }
        self.counts.received += received as u64;
        Ok(received)
    }

    fn send(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>) -> Result<usize, Error> {
        let mut line = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = frames.len().min(MOST.saturating_sub(line.len()));
        for frame in frames.drain(..sent) {
            let mut bytes = memory.bytes(&frame).to_vec();
            bytes.resize(bytes.len().max(LEAST), 0);
            line.push_back(bytes);
            memory.give(frame);
        }
        if sent > 0 {
            // One that is full is heard anyway.
            let _ = self.bell.send(&[1]);
        }
        self.counts.sent += sent as u64;
        Ok(sent)
    }

    fn held(&self) -> usize {
        0
    }

    fn close(&mut self, _: &mut Memory) {}

    fn descriptors(&self, descriptors: &mut Vec<RawFd>) -> bool {
        descriptors.push(self.bell.as_raw_fd());
        true
    }

    fn counts(&self) -> PortCounts {
        self.counts
    }
}

/// A switch with a controller, and its worker in a thread.
struct Running {
    _channel: Channel,
    worker: std::thread::JoinHandle<Result<(), Error>>,
}

fn start(
    datapath: u64,
    cables: Vec<Cable>,
    controller: &Target,
    stop: &Arc<AtomicBool>,
) -> Result<Running, Failure> {
    let names = (1..=CABLES).map(|number| format!("cable{number}"));
    let switch = Switch::new(SwitchOptions { datapath, ..SwitchOptions::with_ports(names) })?;
    let channel = Channel::open(&switch, std::slice::from_ref(controller))?;
    let (app, injector) = (switch.app()?, switch.injector().ok_or("the injector was given")?);
    let stop = Arc::clone(stop);
    let worker = std::thread::spawn(move || {
        let mut ports: Vec<Box<dyn Port>> =
            cables.into_iter().map(|cable| Box::new(cable) as Box<dyn Port>).collect();
        ports.push(Box::new(injector));
        let mut worker = Worker::new(app, Memory::new(BUFFERS)?, ports, Settings::default());
        worker.run(&stop, &Published::default()).map(drop)
    });
    Ok(Running { _channel: channel, worker })
}

fn main() -> Result<(), Failure> {
    let usage = "usage: two_switches tcp:HOST:PORT";
    let mut arguments = std::env::args().skip(1);
    let (Some(controller), None) = (arguments.next(), arguments.next()) else { return Err(usage.into()) };
    let controller: Target = controller.parse()?;
    let stop = Arc::new(AtomicBool::new(false));
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for _ in 0..CABLES {
        let [one, other] = Cable::pair()?;
        near.push(one);
        far.push(other);
    }
    let switches = [start(1, near, &controller, &stop)?, start(2, far, &controller, &stop)?];
    // Until whoever started it lets go.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    stop.store(true, Ordering::Relaxed);
    for Running { worker, .. } in switches {
        worker.join().map_err(|_| "a worker panicked")??;
    }
    Ok(())
}
