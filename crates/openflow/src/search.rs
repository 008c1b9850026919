//! [`find`]: the flows of many packets in one table.
//!
//! ```text
//! hash tables     a probe of each class that is not in the table's classifier, for all packets together
//! classifier      its answers for packets that it may have a better flow for: at once, or from a batch that was
//!                 handed over to its device before
//! ```

use std::sync::Arc;

use rustc_hash::FxHashMap;
use wirespeed::{Batches, Submitted};
use wirespeed_classify::{OpenFlow13Tuple, OpenFlowTuple};
use wirespeed_router::{Frame, Memory};

use crate::pipeline::class::Probe;
use crate::pipeline::front::{Front, Of, OfKey, Rules, Used};
use crate::pipeline::hit::Hit;
use crate::pipeline::row::Row;
use crate::pipeline::table::Table;

/// Packets up to which the classifier's answers are taken at once, without a batch that is handed over.
pub(crate) const AT_ONCE: usize = 1024;

/// Packets whose fields are read as tuples.
pub(crate) trait Packets {
    /// The number of packets.
    fn count(&self) -> usize;

    /// The tuple of a packet.
    fn tuple<T: OfKey>(&self, at: usize) -> T;
}

impl<R: Row> Packets for &[R] {
    fn count(&self) -> usize {
        self.len()
    }

    fn tuple<T: OfKey>(&self, at: usize) -> T {
        T::of_key(&self[at])
    }
}

/// The frames of a chunk, which are read where they lie.
#[derive(Clone, Copy)]
pub(crate) struct Frames<'c> {
    pub(crate) frames: &'c [Frame],
    pub(crate) memory: &'c Memory,
    /// The number in OpenFlow of the port that they came in on.
    pub(crate) in_port: u32,
}

impl<'c> Frames<'c> {
    #[inline]
    pub(crate) fn bytes(&self, at: usize) -> &'c [u8] {
        self.memory.bytes(&self.frames[at])
    }

    /// Reads the fields of all frames into rows.
    pub(crate) fn read<R: Row>(&self, rows: &mut Vec<R>) {
        rows.resize(self.frames.len(), R::NONE);
        let frames = rows.iter_mut().zip(self.frames);
        frames.for_each(|(row, frame)| row.read_to(self.memory.bytes(frame), self.in_port));
    }
}

impl Packets for Frames<'_> {
    fn count(&self) -> usize {
        self.frames.len()
    }

    fn tuple<T: OfKey>(&self, at: usize) -> T {
        T::of_key(&T::Row::read(self.bytes(at), self.in_port))
    }
}

/// The batches of the classifiers that were seen last, by the numbers of their tables.
#[derive(Default)]
pub(crate) struct Sources {
    narrow: FxHashMap<u8, Source<OpenFlowTuple>>,
    wide: FxHashMap<u8, Source<OpenFlow13Tuple>>,
}

/// A classifier, and its batches.
type Source<T> = (Arc<Front>, Batches<T>);

/// The lookups of packets in the classifier of a table.
#[derive(Default)]
pub(crate) struct Batch {
    front: Option<Arc<Front>>,
    /// The tuples that the classifier is asked for, by their kind.
    narrow: Asked<OpenFlowTuple>,
    wide: Asked<OpenFlow13Tuple>,
}

/// The tuples that a classifier is asked for.
struct Asked<T: OfKey> {
    tuples: Vec<T>,
    /// The packets of the tuples.
    packets: Vec<u32>,
    numbers: Vec<u32>,
    submitted: Option<Submitted<T>>,
}

impl<T: OfKey> Default for Asked<T> {
    fn default() -> Self {
        Self { tuples: Vec::new(), packets: Vec::new(), numbers: Vec::new(), submitted: None }
    }
}

impl<T: OfKey> Asked<T> {
    fn is_ready(&self) -> bool {
        self.submitted.as_ref().is_none_or(Submitted::is_ready)
    }

    /// Hands tuples over to the device of a classifier.
    fn submit(
        &mut self,
        of: &Of<T>,
        front: &Arc<Front>,
        sources: &mut FxHashMap<u8, Source<T>>,
        packets: &impl Packets,
    ) {
        let source = || (Arc::clone(front), of.reader().batches());
        let known = sources.entry(front.table()).or_insert_with(source);
        if !Arc::ptr_eq(&known.0, front) {
            *known = source();
        }
        self.tuples.clear();
        self.tuples.extend((0..packets.count()).map(|at| packets.tuple::<T>(at)));
        if let Some(mut batch) = known.1.batch(self.tuples.len()) {
            batch.extend_from(&self.tuples);
            self.submitted = Some(batch.submit());
        }
    }

    /// Takes the answers to tuples that were handed over, or asks for packets that the classifier may have a
    /// better flow for. Returns the number of packets that it was asked for, and whether a GPU answered.
    fn answers<'s, R: Row>(
        &mut self,
        of: &Of<T>,
        front: &'s Front,
        rows: &[R],
        found: &mut [Option<Hit<'s>>],
    ) -> (usize, bool) {
        let Self { tuples, packets, numbers, submitted } = self;
        numbers.clear();
        if let Some(submitted) = submitted.take() {
            let answers = submitted.wait();
            numbers.resize(answers.len(), 0);
            answers.copy_to(numbers);
            numbers.iter().enumerate().for_each(|(at, &number)| better(&mut found[at], front, number));
            return (numbers.len(), answers.is_from_gpu());
        }
        tuples.clear();
        packets.clear();
        for (at, row) in (0_u32..).zip(rows) {
            if found[at as usize].is_none_or(|found| found.hot.priority < front.best()) {
                packets.push(at);
                tuples.push(T::of_key(row));
            }
        }
        numbers.resize(tuples.len(), 0);
        of.reader().lookup_batch(tuples, numbers);
        for (&at, &number) in packets.iter().zip(&**numbers) {
            better(&mut found[at as usize], front, number);
        }
        (numbers.len(), false)
    }
}

/// Takes the flow of a classifier's rule, if its priority is higher.
#[inline]
fn better<'s>(found: &mut Option<Hit<'s>>, front: &'s Front, number: u32) {
    if let Some(hit) = front.flow(number)
        && found.is_none_or(|found| hit.hot.priority > found.hot.priority)
    {
        *found = Some(hit);
    }
}

impl Batch {
    /// Begins with the classifier of a table, if there is one.
    pub(crate) fn begin(&mut self, table: &Table) {
        self.end();
        self.front = table.front().map(|used| Arc::clone(&used.front));
    }

    /// Lets the classifier and its answers go.
    pub(crate) fn end(&mut self) {
        self.front = None;
        (self.narrow.submitted, self.wide.submitted) = (None, None);
    }

    /// Hands packets over to the classifier's device, if they are worth it.
    pub(crate) fn submit(&mut self, sources: &mut Sources, packets: &impl Packets) {
        if let Some(front) = &self.front
            && packets.count() > AT_ONCE
        {
            match front.rules() {
                Rules::Narrow(of) => self.narrow.submit(of, front, &mut sources.narrow, packets),
                Rules::Wide(of) => self.wide.submit(of, front, &mut sources.wide, packets),
            }
        }
    }

    /// Whether answers need no wait.
    pub(crate) fn is_ready(&self) -> bool {
        self.narrow.is_ready() && self.wide.is_ready()
    }

    /// The number of tuples that were handed over last.
    pub(crate) const fn len(&self) -> usize {
        self.narrow.tuples.len() + self.wide.tuples.len()
    }
}

/// Finds the flow of each row in a table. Returns the number of rows that the classifier was asked for, and
/// whether a GPU answered.
pub(crate) fn find<'s, R: Row>(
    table: &'s Table,
    batch: &mut Batch,
    rows: &[R],
    found: &mut [Option<Hit<'s>>],
    probes: &mut Vec<Probe>,
    worker: usize,
) -> (usize, bool) {
    // The answers hold only if the classifier is still that of the table.
    let is_of_batch = |used: &&Used| batch.front.as_ref().is_some_and(|of| Arc::ptr_eq(of, &used.front));
    let used = table.front().filter(is_of_batch);
    table.lookup_batch(rows, found, probes, worker, used.is_some());
    let Some(used) = used else { return (0, false) };
    let front = &*used.front;
    let asked = match front.rules() {
        Rules::Narrow(of) => batch.narrow.answers(of, front, rows, found),
        Rules::Wide(of) => batch.wide.answers(of, front, rows, found),
    };
    if used.has_lost() {
        replace_lost(table, rows, found, probes, worker);
    }
    asked
}

/// Asks all hash tables for rows whose flows are gone.
fn replace_lost<'s, R: Row>(
    table: &'s Table,
    rows: &[R],
    found: &mut [Option<Hit<'s>>],
    probes: &mut Vec<Probe>,
    worker: usize,
) {
    let is_gone = |&at: &usize| found[at].as_ref().is_some_and(Hit::is_gone);
    let lost: Vec<usize> = (0..found.len()).filter(is_gone).collect();
    let rows: Vec<R> = lost.iter().map(|&at| rows[at]).collect();
    let mut others = vec![None; lost.len()];
    table.lookup_batch(&rows, &mut others, probes, worker, false);
    lost.into_iter().zip(others).for_each(|(at, other)| found[at] = other);
}
