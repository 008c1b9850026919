//! [`Owner`]: the one thread that calls a device's driver.
//!
//! ```text
//! mod      the loop: takes commands, asks events whether they have come, hands out what is done; failure and the end
//! submit   a batch onto its stream, by one of three ways
//! joined   batches that are launched together
//! graphs   the work of a batch recorded
//! patch    patches between batches
//! tables   copies of tables: uploads, changing over, giving back
//! launch   which program, how many blocks and threads; the sweep
//! ```
//!
//! A *flight* is work that the device has not reported as done. All memory that the device uses for it
//! belongs to the flight until then. The loop checks the oldest flight, one other in turn, and looks for
//! commands in between. Most flights end in the order that they began in, and a check takes about as long as
//! a launch, so few checks are in vain. A small batch waits neither for the end of a large one nor for many
//! checks.

mod joined;
mod launch;
mod patch;
mod submit;
mod tables;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use rustc_hash::FxHashMap;

use super::Result;
use super::calibration::Choice;
use super::command::{Answer, Command, Staging};
use super::flag::Flag;
use super::graphs::Graphs;
use super::memory::Purpose;
use super::options::SlotSize;
use super::reply::Reply;
use super::shared::Shared;
use super::slot::{Outcome, Request, Slot, Slots};
use crate::driver::{Driver, Event, Pinned, Stream};
use crate::error::GpuError;

use joined::Joined;
use launch::Tuner;
use patch::Patcher;
use tables::{CopyState, TableState};

/// Commands that are taken in a row before the device is checked again.
const BURST: usize = 8;
/// The number of pinned blocks for uploads: one is filled while the other is transferred.
const STAGINGS: usize = 2;
/// The number of looks at a flight before its event is checked, if a flag says that it is done or nobody
/// waits for it: checking takes as long as a few dozen looks.
const LOOKS: u32 = 64;
/// The time that the owner sleeps between checks when the device takes long.
const NAP: Duration = Duration::from_micros(50);

pub(super) struct Owner {
    driver: Box<dyn Driver>,
    commands: Receiver<Command>,
    shared: Arc<Shared>,
    /// Batches that will be launched together, before the device is checked again.
    joined: Option<Joined>,
    flights: Vec<Flight>,
    /// The flight that was last checked beside the oldest.
    cursor: usize,
    /// The time when the device last finished something.
    progress: Instant,
    tables: FxHashMap<u64, TableState>,
    copies: FxHashMap<u64, CopyState>,
    /// Unused events.
    events: Vec<Event>,
    uploads: Stream,
    /// The channel for empty staging blocks. It is removed when the device is lost, so that nobody waits for
    /// more.
    staging: Option<Sender<Staging>>,
    patcher: Patcher,
    tuner: Tuner,
    choice: Option<Choice>,
}

/// Work under way, with all memory that the device uses for it.
struct Flight {
    /// The end of the work.
    event: Event,
    /// The end of its reading of the table, not after the end of the work.
    read: Event,
    began: Instant,
    /// The copy of a table that it uses.
    copy: Option<u64>,
    /// The number of looks at it in vain, without a check of its event.
    looks: u32,
    cargo: Cargo,
}

enum Cargo {
    /// The batches of a launch, and its stream. Those that have said that they are done are not here any
    /// more.
    Batches(Stream, Slots),
    Piece(Staging),
    /// A patch: its number among all patches, and the stage that it uses, if any.
    Patch(u64, Option<usize>),
    /// An event that somebody waits for.
    Fence(Answer<()>),
    /// The end of grids that said before that they were done.
    End,
    /// A lookup in a caller's own stream, which may take any time.
    Foreign,
}

impl Flight {
    /// Whether all that is left of it may say that it is done, before its event does.
    fn has_flags(&self) -> bool {
        matches!(&self.cargo, Cargo::Batches(_, slots) if slots.iter().all(|slot| slot.flag.is_awaited()))
    }

    /// Whether to check its event this time. Nobody waits for a lookup in a caller's stream here, and checks
    /// of it would hold up the next command.
    fn is_to_be_asked(&mut self, spin: Duration) -> bool {
        if !self.has_flags() && !matches!(self.cargo, Cargo::Foreign) {
            return true;
        }
        self.looks += 1;
        // After that time the owner sleeps between looks, so there are few looks.
        self.looks.is_multiple_of(LOOKS) || self.began.elapsed() > spin
    }
}

impl Owner {
    /// Allocates the memory and streams of slots and staging.
    pub(super) fn new(
        mut driver: Box<dyn Driver>,
        commands: Receiver<Command>,
        shared: Arc<Shared>,
        staging: Sender<Staging>,
    ) -> Result<Self> {
        let uploads = driver.stream()?;
        let patcher = Patcher::new(&mut *driver, &shared)?;
        let tuner = Tuner::new(&mut *driver)?;
        let mut owner = Self {
            driver,
            commands,
            shared,
            joined: None,
            flights: Vec::new(),
            cursor: 0,
            progress: Instant::now(),
            tables: FxHashMap::default(),
            copies: FxHashMap::default(),
            events: Vec::new(),
            uploads,
            staging: Some(staging),
            patcher,
            tuner,
            choice: None,
        };
        owner.make_slots()?;
        for _ in 0..STAGINGS {
            let memory = owner.pin(owner.shared.options.staging_bytes.max(1))?;
            let event = owner.driver.event(false)?;
            owner.leave(Staging { memory, event });
        }
        Ok(owner)
    }

    /// Serves commands until no handle is left.
    pub(super) fn run(mut self) {
        while catch_unwind(AssertUnwindSafe(|| self.serve())).is_err() {
            // After a panic nothing is tried again: every command gets this error from now on.
            self.fail(&GpuError::Lost("its owner thread panicked".into()));
        }
        self.shut_down();
    }

    fn serve(&mut self) {
        let spin = self.shared.options.spin;
        let mut busy = Instant::now();
        loop {
            for _ in 0..BURST {
                match self.commands.try_recv() {
                    Ok(command) => {
                        self.obey(command);
                        busy = Instant::now();
                    }
                    Err(TryRecvError::Empty) => {
                        self.launch_joined();
                        self.flush_all();
                        break;
                    }
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            self.launch_joined();
            if self.poll() {
                busy = Instant::now();
            } else if busy.elapsed() < spin {
                // The loop continues at once: the pause instruction may cost a virtual machine an exit.
            } else if !self.commands.is_empty() {
                // There is a command after all.
            } else if self.flights.is_empty() {
                match self.commands.recv() {
                    Ok(command) => self.obey(command),
                    Err(_) => return,
                }
                busy = Instant::now();
            } else {
                match self.commands.recv_timeout(NAP) {
                    Ok(command) => {
                        self.obey(command);
                        busy = Instant::now();
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        }
    }

    fn obey(&mut self, command: Command) {
        if !matches!(command, Command::Submit(_)) {
            self.launch_joined();
        }
        match command {
            Command::Submit(slot) => self.submit(slot),
            Command::Alloc(sizes, answer) => {
                let copy = self.alive().and_then(|()| self.alloc_copy(&sizes));
                self.answer(&answer, copy);
            }
            Command::Free(copy) => self.doom(copy),
            Command::Upload { copy, to, staging, bytes } => self.upload(copy, to, staging, bytes),
            Command::Uploaded(answer) => self.fence(self.uploads, answer),
            Command::Install(install) => self.install(*install),
            Command::Drop(table) => self.drop_table(table),
            Command::Require { table, key_bytes, result_bytes } => {
                self.require(table, key_bytes, result_bytes);
            }
            Command::Patch { table, writes, version, one_by_one } => {
                self.patch(table, writes, version, one_by_one);
            }
            Command::Settled(answer) => {
                self.flush_all();
                self.fence(self.patcher.stream, answer);
            }
            Command::LookUp(lookup) => {
                let enqueued = self.alive().and_then(|()| self.lookup_on(&lookup));
                self.answer(&lookup.answer, enqueued);
            }
            Command::Tune { mut slot, table, form, answer } => {
                let tuning = self.alive().and_then(|()| self.tune(&slot, table, form));
                slot.request = Request::NONE;
                self.shared.pool.give_back(slot);
                self.answer(&answer, tuning);
            }
            Command::Tuned(tuned) => {
                self.tuner.learn(tuned);
                self.tables.values_mut().for_each(TableState::forget_launches);
            }
            Command::Calibrated(calibration) => self.choice = Some(Choice::of(&calibration)),
        }
    }

    /// Hands out what says that it is done. Then checks the oldest flights while they are done, and ends
    /// them, and one of the others.
    fn poll(&mut self) -> bool {
        let mut has_ended = false;
        let mut at = 0;
        while at < self.flights.len() {
            let before = self.flights.len();
            has_ended |= self.hand_out_announced(at);
            // A flight that ends leaves its place to the next one.
            at += usize::from(self.flights.len() >= before);
        }
        for _ in 0..BURST {
            if self.flights.is_empty() || !self.check(0) {
                break;
            }
            has_ended = true;
        }
        if self.flights.len() > 1 {
            self.cursor = 1 + self.cursor % (self.flights.len() - 1);
            has_ended |= self.check(self.cursor);
        }
        has_ended
    }

    /// Checks a flight, and ends it if it is done.
    fn check(&mut self, at: usize) -> bool {
        let spin = self.shared.options.spin;
        let flight = &mut self.flights[at];
        if !flight.is_to_be_asked(spin) {
            return false;
        }
        match self.driver.is_done(flight.event) {
            Ok(true) => {
                self.land(at);
                true
            }
            Ok(false) => {
                let since = flight.began.max(self.progress);
                let timeout = self.shared.options.timeout;
                if !matches!(flight.cargo, Cargo::Foreign) && since.elapsed() > timeout {
                    self.fail(&timed_out(timeout));
                }
                false
            }
            Err(error) => {
                self.fail(&error);
                true
            }
        }
    }

    /// Ends a flight and hands out its content.
    fn land(&mut self, at: usize) {
        let flight = self.flights.remove(at);
        self.progress = Instant::now();
        match flight.cargo {
            Cargo::Batches(_, slots) => {
                self.events.push(flight.event);
                slots.into_iter().for_each(|slot| self.hand_out(slot));
            }
            Cargo::Piece(staging) => self.leave(staging),
            Cargo::Patch(place, stage) => self.patcher.landed(place, stage, flight.event, &mut self.events),
            Cargo::Fence(answer) => {
                self.events.push(flight.event);
                drop(answer.send(Ok(())));
            }
            Cargo::End | Cargo::Foreign => self.events.push(flight.event),
        }
        if flight.copy.is_some() {
            self.free_doomed();
        }
    }

    /// Hands out the batches of a flight that have said that they are done. The flight ends with the last
    /// one.
    fn hand_out_announced(&mut self, at: usize) -> bool {
        let Cargo::Batches(_, slots) = &mut self.flights[at].cargo else { return false };
        let mut done = Vec::new();
        match slots.iter_mut().map(|slot| usize::from(slot.flag.has_come())).sum::<usize>() {
            0 => return false,
            come if come == slots.len() => {}
            _ => {
                let (come, left) = std::mem::take(slots).into_iter().partition(|slot| slot.flag.is_come());
                (done, *slots) = (come, left);
            }
        }
        self.announced(at);
        if done.is_empty() {
            self.land(at);
        } else {
            self.progress = Instant::now();
            done.into_iter().for_each(|slot| self.hand_out(slot));
        }
        true
    }

    /// Gives a slot to the thread that waits for it.
    fn hand_out(&self, slot: Box<Slot>) {
        self.shared.load.done(slot.request.form.count());
        let reply = Arc::clone(&slot.reply);
        if let Some(unwanted) = reply.complete(slot) {
            self.shared.pool.give_back(unwanted);
        }
    }

    fn leave(&self, staging: Staging) {
        if let Some(to) = &self.staging {
            drop(to.send(staging));
        }
    }

    /// Waits until a condition is met, and ends flights meanwhile.
    fn wait_until(&mut self, is_met: impl Fn(&Self) -> bool) -> Result<()> {
        while !is_met(self) {
            if !self.poll() {
                std::thread::yield_now();
            }
            self.alive()?;
        }
        Ok(())
    }

    /// Answers when all current work of the stream is done.
    fn fence(&mut self, stream: Stream, answer: Answer<()>) {
        let recorded = self.alive().and_then(|()| {
            let event = self.spare_event()?;
            self.driver.record(event, stream).map(|()| event)
        });
        match recorded {
            Ok(event) => self.take_off(event, event, None, Cargo::Fence(answer)),
            Err(error) => self.answer(&answer, Err(error)),
        }
    }

    fn take_off(&mut self, event: Event, read: Event, copy: Option<u64>, cargo: Cargo) {
        self.flights.push(Flight { event, read, began: Instant::now(), copy, looks: 0, cargo });
    }

    fn spare_event(&mut self) -> Result<Event> {
        match self.events.pop() {
            Some(event) => Ok(event),
            None => self.driver.event(false),
        }
    }

    /// Sends an answer. If it is an error that means that the device is lost, all other work ends, too.
    fn answer<T>(&mut self, answer: &Answer<T>, with: Result<T>) {
        if let Err(error) = &with {
            self.note(error);
        }
        drop(answer.send(with));
    }

    fn note(&mut self, error: &GpuError) {
        if error.is_fatal() {
            self.fail(error);
        }
    }

    fn alive(&self) -> Result<()> {
        self.shared.lost.get().map_or(Ok(()), |lost| Err(lost.clone()))
    }

    /// Ends all current and later work with the error: the device can't be used any more.
    fn fail(&mut self, why: &GpuError) {
        let why = if why.is_fatal() { why.clone() } else { GpuError::Lost(why.to_string()) };
        self.shared.lose(why.clone());
        self.staging = None;
        let joined = self.joined.take().map_or_else(Vec::new, |joined| joined.slots);
        self.hand_out_failed(joined, &why);
        for flight in std::mem::take(&mut self.flights) {
            match flight.cargo {
                Cargo::Batches(_, slots) => self.hand_out_failed(slots, &why),
                Cargo::Fence(answer) => drop(answer.send(Err(why.clone()))),
                // The driver frees memory that the device may still use.
                Cargo::Piece(_) | Cargo::Patch(..) | Cargo::End | Cargo::Foreign => {}
            }
        }
    }

    fn hand_out_failed(&self, slots: Slots, why: &GpuError) {
        for mut slot in slots {
            slot.outcome = Outcome::failed(why.clone());
            self.hand_out(slot);
        }
    }

    /// Waits for the device, and frees everything, when no handle is left.
    fn shut_down(mut self) {
        let began = Instant::now();
        self.launch_joined();
        // This is done at once, because announced batches may have ends to wait for.
        self.copies.values_mut().for_each(CopyState::doom);
        self.free_doomed();
        while !self.flights.is_empty() && self.alive().is_ok() {
            if !self.poll() {
                std::thread::sleep(NAP);
            }
            // A caller's own stream gets no more time than the device.
            if began.elapsed() > self.shared.options.timeout * 2 {
                self.fail(&timed_out(self.shared.options.timeout));
            }
        }
        match self.shared.lost.get() {
            None => self.give_back(),
            // The device may still use memory of this process, so this memory must stay for ever.
            Some(GpuError::TimedOut(_)) => std::mem::forget(self.driver),
            // The device does nothing any more; the end of the driver frees everything.
            Some(_) => {}
        }
    }

    #[allow(unsafe_code)] // gives memory back
    fn give_back(&mut self) {
        let mut pinned: Vec<Pinned> = self.shared.stagings.try_iter().map(|staging| staging.memory).collect();
        let mut blocks = Vec::new();
        for mut slot in self.shared.pool.drain() {
            slot.graphs.drop_all(&mut *self.driver);
            pinned.extend([slot.keys, slot.results]);
            blocks.push(vec![slot.device_keys, slot.device_results]);
        }
        self.patcher.give_back(&mut pinned);
        for memory in pinned {
            // SAFETY: no flight is left that the device could use it for. Nor is a grid that had said that it
            // was done: each has been waited for with the copy that it read, and no copy is left. And there
            // is no handle through which a thread could use it: each holds the channel open that had to close
            // for this.
            unsafe { self.driver.free_pinned(memory) };
        }
        for blocks in blocks {
            // SAFETY: as above.
            unsafe { self.driver.free(&blocks) };
        }
    }

    fn make_slots(&mut self) -> Result<()> {
        let sizes = self.shared.options.slots.clone();
        for (size, &SlotSize { slots, keys }) in sizes.iter().enumerate() {
            for _ in 0..slots {
                let slot = self.make_slot(size, keys)?;
                self.shared.pool.give_back(Box::new(slot));
            }
        }
        Ok(())
    }

    fn make_slot(&mut self, size: usize, capacity: usize) -> Result<Slot> {
        let options = &self.shared.options;
        let none = GpuError::TooManyKeys { asked: capacity, most: 1 << 32 };
        let bytes = |each: usize| capacity.checked_mul(each).filter(|&b| b < 1 << 40).ok_or(none.clone());
        // A second plane starts at a multiple of 16 bytes.
        let keys = bytes(options.key_bytes)? + 16;
        let results = bytes(options.result_bytes)?;
        let blocks = self.alloc(Purpose::Slot, &[keys, results])?;
        let pinned_results = self.pin(Flag::room_after(results))?;
        Ok(Slot {
            size,
            feeders: 0,
            capacity,
            stream: self.driver.stream()?,
            looked_up: self.driver.event(false)?,
            keys: self.pin(keys)?,
            flag: Flag::after(results, &pinned_results),
            results: pinned_results,
            device_keys: blocks[0],
            device_results: blocks[1],
            reply: Arc::new(Reply::default()),
            request: Request::NONE,
            outcome: Outcome::NONE,
            graphs: Graphs::default(),
            waited_for: 0,
        })
    }
}

fn timed_out(after: Duration) -> GpuError {
    GpuError::TimedOut(u64::try_from(after.as_millis()).unwrap_or(u64::MAX))
}
