//! A port that gives frames of a list, and keeps what is sent.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use wirespeed_router::io::{Port, PortCounts};
use wirespeed_router::{App, Error, Frame, Memory, Published, Settings, Stats, Worker};

/// What a port sent.
pub(crate) type Sent = Arc<Mutex<Vec<Vec<u8>>>>;

struct ListPort {
    name: String,
    frames: VecDeque<Vec<u8>>,
    sent: Sent,
    way: Way,
    counts: PortCounts,
}

/// The way of a port with frames.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    /// Frames that it takes at once.
    pub(crate) takes: usize,
    /// Whether frames that are not received yet wait.
    pub(crate) can_wait: bool,
}

impl Way {
    pub(crate) const ALL: Self = Self { takes: usize::MAX, can_wait: false };
}

impl Port for ListPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn receive(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>, most: usize) -> Result<usize, Error> {
        let mut received = 0;
        while received < most
            && let Some(bytes) = self.frames.front()
            && let Some(frame) = memory.copy_of(bytes)
        {
            self.frames.pop_front();
            frames.push(frame);
            received += 1;
        }
        self.counts.received += received as u64;
        Ok(received)
    }

    fn send(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>) -> Result<usize, Error> {
        let sent = frames.len().min(self.way.takes);
        for frame in frames.drain(..sent) {
            self.sent.lock().unwrap().push(memory.bytes(&frame).to_vec());
            memory.give(frame);
        }
        self.counts.sent += sent as u64;
        Ok(sent)
    }

    fn held(&self) -> usize {
        0
    }

    fn close(&mut self, _: &mut Memory) {}

    fn is_at_end(&self) -> bool {
        self.frames.is_empty()
    }

    fn can_wait(&self) -> bool {
        self.way.can_wait
    }

    fn counts(&self) -> PortCounts {
        self.counts
    }
}

/// Runs frames, which come in at port 0, through an application.
pub(crate) fn run<A: App>(app: A, frames: &[Vec<u8>], ports: u16, settings: Settings) -> (Stats, Vec<Sent>) {
    run_in(Memory::new(2048).unwrap(), app, frames, (ports, Way::ALL), settings)
}

/// Runs frames in buffers of this memory, through ports that go this way.
pub(crate) fn run_in<A: App>(
    memory: Memory,
    app: A,
    frames: &[Vec<u8>],
    (ports, way): (u16, Way),
    settings: Settings,
) -> (Stats, Vec<Sent>) {
    let sent: Vec<Sent> = (0..ports).map(|_| Arc::default()).collect();
    let port = |(at, sent): (usize, &Sent)| {
        Box::new(ListPort {
            name: format!("port{at}"),
            frames: if at == 0 { frames.iter().cloned().collect() } else { VecDeque::new() },
            sent: Arc::clone(sent),
            way,
            counts: PortCounts::default(),
        }) as Box<dyn Port>
    };
    let list = sent.iter().enumerate().map(port).collect();
    let mut worker = Worker::new(app, memory, list, settings);
    // Buffers that are not accounted for are an error of `run`.
    let stats = worker.run(&AtomicBool::new(false), &Published::default()).unwrap();
    (stats, sent)
}
