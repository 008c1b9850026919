//! Ports of lists: frames to give, and what was sent.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use wirespeed_openflow::{OpenFlow, Switch};
use wirespeed_router::io::{Port, PortCounts};
use wirespeed_router::{Error, Frame, Memory, Published, Settings, Stats, Worker};

struct ListPort {
    frames: VecDeque<Vec<u8>>,
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
    /// A call that is made when it is asked for frames for the first time.
    once: Option<Box<dyn FnOnce() + Send>>,
}

impl Port for ListPort {
    fn name(&self) -> &'static str {
        "list"
    }

    fn receive(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>, most: usize) -> Result<usize, Error> {
        if let Some(once) = self.once.take() {
            once();
        }
        let count = most.min(self.frames.len());
        for bytes in self.frames.drain(..count) {
            frames.push(memory.copy_of(&bytes).expect("a buffer"));
        }
        Ok(count)
    }

    fn send(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>) -> Result<usize, Error> {
        let count = frames.len();
        for frame in frames.drain(..) {
            self.sent.lock().unwrap().push(memory.bytes(&frame).to_vec());
            memory.give(frame);
        }
        Ok(count)
    }

    fn held(&self) -> usize {
        0
    }

    fn close(&mut self, _: &mut Memory) {}

    fn is_at_end(&self) -> bool {
        self.frames.is_empty()
    }

    fn counts(&self) -> PortCounts {
        PortCounts::default()
    }
}

/// The counters of an application, by name.
type Counters = Vec<(&'static str, u64)>;

/// Runs frames, each of which comes in at a port from 1 on. Returns what was done, what each port sent, and
/// the application's counters.
pub(crate) fn run(
    switch: &Switch,
    app: OpenFlow,
    ports: u32,
    frames: &[(u32, Vec<u8>)],
    chunk: usize,
) -> (Stats, Vec<(u32, Vec<u8>)>, Counters) {
    run_while(switch, app, ports, frames, chunk, || ())
}

/// Does the same, and something once between the first chunk of port 1 and the one of port 2.
pub(crate) fn run_while(
    switch: &Switch,
    app: OpenFlow,
    ports: u32,
    frames: &[(u32, Vec<u8>)],
    chunk: usize,
    meanwhile: impl FnOnce() + Send + 'static,
) -> (Stats, Vec<(u32, Vec<u8>)>, Counters) {
    let mut boxes: Vec<Box<dyn Port>> = Vec::new();
    let mut lists = Vec::new();
    let mut meanwhile: Option<Box<dyn FnOnce() + Send>> = Some(Box::new(meanwhile));
    for port in 1..=ports {
        let sent = Arc::default();
        lists.push(Arc::clone(&sent));
        let frames = frames.iter().filter(|(of, _)| *of == port).map(|(_, bytes)| bytes.clone()).collect();
        let once = if port == 2 { meanwhile.take() } else { None };
        boxes.push(Box::new(ListPort { frames, sent, once }));
    }
    if let Some(injector) = switch.injector() {
        boxes.push(Box::new(injector));
    }
    let settings = Settings { chunk, ..Settings::default() };
    // Each frame of a chunk may be sent to several ports.
    let buffers = 4096.max(16 * chunk as u32);
    let mut worker = Worker::new(app, Memory::new(buffers).unwrap(), boxes, settings);
    let stats = worker.run(&AtomicBool::new(false), &Published::default()).unwrap();
    let mut sent = Vec::new();
    for (port, list) in (1..).zip(lists) {
        sent.extend(list.lock().unwrap().drain(..).map(|bytes| (port, bytes)));
    }
    sent.sort();
    (stats, sent, worker.report().counters)
}
