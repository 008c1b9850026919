//! [`Flow`]: a flow of a table, as workers see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::counts::{FlowCounts, Sum};
use super::extract::{Extract, HEAD};
use super::hot::{Hot, Quick};
use crate::wire::number::port;
use crate::wire::{Action, FlowMod, Instructions, Key, Match};

/// The bits that flows of a class look at.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) mask: Key,
    pub(crate) extract: Extract,
}

impl Shape {
    pub(crate) fn new(mask: Key) -> Self {
        Self { mask, extract: Extract::new(&mask) }
    }
}

/// The properties of a flow beside its match and its instructions. They outlive a change of instructions.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) cookie: u64,
    pub(crate) flags: u16,
    pub(crate) idle: u16,
    pub(crate) hard: u16,
    /// The time when it was added, in milliseconds.
    pub(crate) since: u64,
    pub(crate) counts: FlowCounts,
    /// The last time that it had a packet, in milliseconds.
    used: AtomicU64,
    is_gone: AtomicBool,
}

impl Life {
    pub(crate) fn new(asked: &FlowMod, now: u64, counts: FlowCounts) -> Self {
        Self {
            cookie: asked.cookie,
            flags: asked.flags,
            idle: asked.idle,
            hard: asked.hard,
            since: now,
            counts,
            used: AtomicU64::new(now),
            is_gone: AtomicBool::new(false),
        }
    }

    pub(crate) fn end(&self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    /// Notes the time of a packet.
    #[inline]
    pub(crate) fn use_at(&self, now: u64) {
        if self.used.load(Ordering::Relaxed) < now {
            self.used.store(now, Ordering::Relaxed);
        }
    }

    /// The time when it ends without another packet, and whether the idle time ends it.
    pub(crate) fn due(&self) -> Option<(u64, bool)> {
        let hard = (self.hard > 0).then(|| (self.since + u64::from(self.hard) * 1000, false));
        let idle =
            (self.idle > 0).then(|| (self.used.load(Ordering::Relaxed) + u64::from(self.idle) * 1000, true));
        hard.into_iter().chain(idle).min()
    }
}

/// The words of a flow's value that count. Most flows have few, and need no memory of their own for them.
#[derive(Clone, Debug)]
enum Value {
    Few { words: [u64; HEAD], len: u8 },
    Many(Box<[u64]>),
}

impl Value {
    fn new(extract: &Extract, value: &Key) -> Self {
        if extract.has_later() {
            return Self::Many(extract.all(value).collect());
        }
        let (mut words, mut len) = ([0; HEAD], 0);
        for (to, word) in words.iter_mut().zip(extract.all(value)) {
            *to = word;
            len += 1;
        }
        Self::Few { words, len }
    }

    fn words(&self) -> &[u64] {
        match self {
            Self::Few { words, len } => &words[..usize::from(*len)],
            Self::Many(words) => words,
        }
    }
}

/// A flow of a table.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) table: u8,
    pub(crate) priority: u16,
    pub(crate) hot: Hot,
    fields: u64,
    shape: Arc<Shape>,
    value: Value,
    /// The hash of the value.
    hash: u64,
    pub(crate) instructions: Arc<Instructions>,
    pub(crate) life: Arc<Life>,
    /// The counters when they were reset.
    pub(crate) before: Sum,
}

impl Flow {
    pub(crate) fn new(
        table: u8,
        priority: u16,
        matched: &Match,
        shape: Arc<Shape>,
        instructions: Arc<Instructions>,
        life: Arc<Life>,
    ) -> Self {
        let value = Value::new(&shape.extract, &matched.value);
        Self {
            table,
            priority,
            hot: Hot::new(life.counts.cell().clone(), quick(&instructions), priority, life.idle > 0),
            fields: matched.fields,
            hash: shape.extract.hash_value(value.words()),
            value,
            shape,
            instructions,
            life,
            before: Sum::default(),
        }
    }

    /// The flow with other instructions.
    pub(crate) fn changed(&self, instructions: Arc<Instructions>, reset: bool) -> Self {
        Self {
            table: self.table,
            priority: self.priority,
            hot: self.hot.with(quick(&instructions)),
            fields: self.fields,
            shape: Arc::clone(&self.shape),
            value: self.value.clone(),
            hash: self.hash,
            instructions,
            life: Arc::clone(&self.life),
            before: if reset { self.life.counts.sum() } else { self.before },
        }
    }

    pub(crate) const fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    pub(crate) fn value(&self) -> &[u64] {
        self.value.words()
    }

    /// The hash of the value.
    pub(crate) const fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn matched(&self) -> Match {
        let mut value = Key::default();
        for (word, &number) in self.shape.extract.numbers().zip(self.value()) {
            value.0[word] = number;
        }
        Match { fields: self.fields, mask: self.shape.mask, value }
    }

    /// Whether it is the flow of packets that no other flow matches.
    pub(crate) fn is_miss(&self) -> bool {
        self.priority == 0 && self.shape.extract.len() == 0
    }

    /// Counts a packet of a worker, whose time is in milliseconds.
    pub(crate) fn count(&self, worker: usize, bytes: u64, now: u64) {
        self.hot.count(worker, bytes);
        if self.hot.is_timed {
            self.life.use_at(now);
        }
    }

    /// The counters, as controllers see them.
    pub(crate) fn sum(&self) -> Sum {
        let mut sum = self.life.counts.sum().since(self.before);
        if self.life.flags & FlowMod::NO_PACKETS != 0 {
            sum.packets = u64::MAX;
        }
        if self.life.flags & FlowMod::NO_BYTES != 0 {
            sum.bytes = u64::MAX;
        }
        sum
    }

    /// Whether it outputs to a port, and uses a group, where these are asked for.
    pub(crate) fn leads_to(&self, out_port: u32, out_group: u32) -> bool {
        let is_port = |action| matches!(action, Action::Output { port, .. } if port == out_port);
        (out_port == port::ANY || self.instructions.actions().any(is_port))
            && (out_group == port::ANY
                || self.instructions.actions().any(|action| action == Action::Group(out_group)))
    }
}

/// The short way of packets of a flow, if there is one.
fn quick(instructions: &Instructions) -> Quick {
    let Instructions { meter: None, apply, write, metadata: None, goto: None, .. } = instructions else {
        return Quick::No;
    };
    let output = |action: &Action| match *action {
        Action::Output { port, .. } if port <= port::MAX => Quick::Output(port),
        Action::Output { port: port::IN_PORT, .. } => Quick::Back,
        _ => Quick::No,
    };
    match (&apply[..], &write[..]) {
        ([], []) => Quick::Drop,
        ([action], []) | ([], [action]) => output(action),
        _ => Quick::No,
    }
}
