//! [`Ahead`]: lookups in the tables behind the first one, for all frames of a chunk together.
//!
//! ```text
//! frames whose flow leads on ─► the lowest table that any of them waits for ─► find ─► answers ─┐
//!                    ▲          all frames that ever come there wait for it by now              │
//!                    └──────── each goes on by its flow: fields that it sets, metadata ◄────────┘
//! ```
//!
//! Flows lead to later tables only, so a chunk is looked up once in each table that its frames come to, in a
//! batch that a GPU may take. Nothing is done that others see: nothing is sent, metered or counted. Frames
//! then go their ways one by one and in order, as if they were alone, and take an answer where their fields
//! are those that it was asked with. A meter may have marked a frame meanwhile: such a frame is looked up
//! alone.

use crate::pipeline::answers::Answers;
use crate::pipeline::class::Probe;
use crate::pipeline::edit::Packet;
use crate::pipeline::flow::Flow;
use crate::pipeline::hit::Hit;
use crate::pipeline::hot::Quick;
use crate::pipeline::state::{State, TABLES};
use crate::search::{Batch, Frames, Sources, find};
use crate::wire::Key;

/// Bytes of a frame that are changed here: its headers. Where they are more, the frame is looked up alone.
const HEADERS: usize = 256;

/// A frame on its way through the tables.
#[derive(Clone, Copy)]
struct Walker {
    /// The place of the frame in its chunk.
    at: u32,
    /// The place of its packet.
    packet: u32,
    /// The table that it waits for.
    table: u8,
    /// Whether its flows did nothing but lead on.
    is_plain: bool,
}

/// Memory of lookups that is used again.
#[derive(Default)]
pub(crate) struct Ahead {
    packets: Vec<Packet>,
    waiting: Vec<Walker>,
    asked: Vec<Walker>,
    keys: Vec<Key>,
    batch: Batch,
    /// The number of packets that classifiers were asked for, and whether a GPU answered.
    pub(crate) classified: u64,
    pub(crate) is_by_gpu: bool,
}

impl Ahead {
    /// Looks up all tables that frames come to from their flows in the first one.
    pub(crate) fn answers<'s>(
        &mut self,
        state: &'s State,
        frames: Frames<'_>,
        first: &[Option<Hit<'s>>],
        sources: &mut Sources,
        probes: &mut Vec<Probe>,
        worker: usize,
    ) -> Answers<'s> {
        (self.classified, self.is_by_gpu) = (0, false);
        self.start(frames, first);
        if self.waiting.is_empty() {
            return Answers::default();
        }
        let mut answers = Answers::new(first.len());
        while let Some(number) = self.waiting.iter().map(|walker| walker.table).min() {
            self.ask(number);
            let table = &state.tables[usize::from(number)];
            self.batch.begin(table);
            self.batch.submit(sources, &&*self.keys);
            let mut found = vec![None; self.keys.len()];
            let (asked, is_by_gpu) = find(table, &mut self.batch, &self.keys, &mut found, probes, worker);
            self.classified += asked as u64;
            self.is_by_gpu |= is_by_gpu;
            for (at, hit) in found.into_iter().enumerate() {
                let walker = self.asked[at];
                answers.add(walker.at, number, self.keys[at], hit);
                if walker.is_plain && hit.is_some_and(|hit| hit.hot.quick() != Quick::No) {
                    answers.set_plain(walker.at);
                } else if let Some(flow) = hit.and_then(|hit| hit.flow()) {
                    self.step(walker, flow, frames);
                }
            }
        }
        self.batch.end();
        answers
    }

    /// Begins with the frames whose flows in the first table lead to others.
    fn start(&mut self, frames: Frames<'_>, first: &[Option<Hit<'_>>]) {
        let leads = |hit: &Hit<'_>| hit.hot.quick() == Quick::No;
        let mut packets = 0;
        for (at, hit) in (0_u32..).zip(first) {
            let Some(flow) = hit.filter(leads).and_then(|hit| hit.flow()) else { continue };
            if flow.instructions.goto.is_none() {
                continue;
            }
            if self.packets.len() == packets as usize {
                self.packets.push(Packet::default());
            }
            self.packets[packets as usize].read(frames.bytes(at as usize), frames.in_port);
            self.step(Walker { at, packet: packets, table: 0, is_plain: true }, flow, frames);
            packets += 1;
        }
    }

    /// Takes the frames that wait for a table, and their fields.
    fn ask(&mut self, table: u8) {
        let Self { packets, waiting, asked, keys, .. } = self;
        asked.clear();
        keys.clear();
        waiting.retain(|walker| {
            if walker.table == table {
                let packet = &mut packets[walker.packet as usize];
                packet.refresh();
                asked.push(*walker);
                keys.push(packet.key);
            }
            walker.table != table
        });
    }

    /// Goes on by a flow, if it leads to another table.
    fn step(&mut self, mut walker: Walker, flow: &Flow, frames: Frames<'_>) {
        let instructions = &*flow.instructions;
        let Some(table) = instructions.goto.filter(|&table| table > walker.table && table < TABLES) else {
            return;
        };
        let packet = &mut self.packets[walker.packet as usize];
        if !instructions.apply.is_empty() && packet.bytes.is_empty() {
            let bytes = frames.bytes(walker.at as usize);
            packet.hold(&bytes[..bytes.len().min(HEADERS)]);
        }
        if instructions.apply.iter().any(|&action| packet.change(action).is_err()) {
            return;
        }
        if let Some(metadata) = instructions.metadata {
            packet.write_metadata(metadata);
        }
        walker.is_plain &= instructions.only_leads();
        walker.table = table;
        self.waiting.push(walker);
    }
}
