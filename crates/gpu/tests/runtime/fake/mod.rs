//! A device made up for tests: streams that run in any order that their events allow, and faults on demand.
//!
//! Work is queued and done in small steps, a random stream's each time, whenever somebody asks whether an
//! event has come. A copy or a kernel takes several steps; so whatever isn't ordered against it gets in
//! between sooner or later, and a batch that should have waited for a patch sees a part of it. A lookup of
//! one block announces its end where it is asked to, some steps after its last result and some before its
//! end, up to which it counts as using its memory. What no driver may be asked is noted, and a test ends by
//! looking at the notes:
//!
//! - access to memory that wasn't taken, or was given back, or past its end
//! - memory given back while queued work has its address
//! - copies from or to memory of this process that isn't pinned
//! - anything left over when the driver ends without being lost

#![allow(unsafe_code)] // pinned memory by its address, which is what is tested
#![allow(clippy::unwrap_used)] // it helps tests

mod control;
mod driver;
mod memory;
mod work;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use wirespeed_gpu::GpuError;
use wirespeed_gpu::driver::{Driver, Event, Graph, Properties, Stream};

pub(crate) use control::Control;

use work::Op;

type Result<T> = std::result::Result<T, GpuError>;

pub(crate) struct Fake {
    control: Arc<Control>,
    properties: Properties,
    random: u64,
    is_lost: bool,
    used: u64,
    next_address: u64,
    /// Blocks by address, with the first of their allocation.
    blocks: BTreeMap<u64, (u64, Vec<u8>)>,
    /// Pinned memory by its address on the device.
    pinned: BTreeMap<u64, Box<[u64]>>,
    streams: HashMap<Stream, VecDeque<Op>>,
    /// How often each event was recorded, and which of these have come.
    events: HashMap<Event, (u64, u64)>,
    times: HashMap<Event, u64>,
    graphs: HashMap<Graph, Vec<Op>>,
    capture: Option<(Stream, Vec<Op>)>,
    launches: u64,
    ids: u64,
    steps: u64,
}

impl Fake {
    /// A device with so many bytes of memory, whose work goes in the order that the seed says.
    pub(crate) fn start(seed: u64, memory: u64) -> (Box<dyn Driver>, Arc<Control>) {
        let control = Arc::new(Control::new());
        let properties = Properties {
            name: "made up".into(),
            capability: (9, 0),
            memory,
            multiprocessors: 4,
            shared_per_block: 100 << 10,
            l2: 1 << 20,
            bus: "none".into(),
        };
        let fake = Self {
            control: Arc::clone(&control),
            properties,
            random: seed * 2 + 1,
            is_lost: false,
            used: 0,
            next_address: 1 << 20,
            blocks: BTreeMap::new(),
            pinned: BTreeMap::new(),
            streams: HashMap::new(),
            events: HashMap::new(),
            times: HashMap::new(),
            graphs: HashMap::new(),
            capture: None,
            launches: 0,
            ids: 0,
            steps: 0,
        };
        (Box::new(fake), control)
    }

    fn call(&mut self) -> Result<()> {
        let calls = self.control.calls.fetch_add(1, Ordering::SeqCst);
        self.is_lost |= calls >= self.control.lose_at.load(Ordering::SeqCst);
        if self.is_lost { Err(GpuError::Lost("as the test wants it".into())) } else { Ok(()) }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random >> 33).unwrap() % limit
    }

    fn id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    fn address(&mut self, bytes: usize) -> u64 {
        let address = self.next_address;
        self.next_address += (bytes as u64 + 8192) & !4095;
        address
    }
}
