//! [`Feed`]: a source of changes that runs on a thread of its own.
//!
//! ```text
//! kernel, FPM, BMP ──► thread: parse, hold the state ──► bounded queue of batches ──► Feed::recv
//!                                                  └───► Status, at any time
//! ```
//!
//! The queue is bounded, so a consumer that stops costs no memory: the thread waits, TCP holds the sender
//! back, and the kernel's buffer overruns, which the feed repairs.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::error::Error;
use crate::model::{Batch, Change};
use crate::status::Status;

/// Batches that wait for the consumer at most.
const QUEUE: usize = 16;

/// A source of changes. Dropping it ends its thread.
#[derive(Debug)]
pub struct Feed {
    name: &'static str,
    address: Option<SocketAddr>,
    batches: Option<Receiver<Batch>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    status: Mutex<Status>,
    stop: AtomicBool,
    /// Why the thread ended.
    ended: Mutex<Option<String>>,
}

impl Feed {
    /// Starts `run` on a thread. It returns when [`Out::is_stopped`] or when nothing more can come.
    pub(crate) fn start<R>(name: &'static str, run: R) -> Result<Self, Error>
    where
        R: FnOnce(&mut Out) -> Result<(), Error> + Send + 'static,
    {
        let (sender, batches) = sync_channel(QUEUE);
        let shared = Arc::new(Shared::default());
        let mut out = Out { sender, shared: Arc::clone(&shared), status: Status::default() };
        let body = move || {
            if let Err(error) = run(&mut out) {
                tracing::error!(feed = name, %error, "the feed ended");
                *lock(&out.shared.ended) = Some(error.to_string());
            }
        };
        let thread = thread::Builder::new()
            .name(format!("feed {name}"))
            .spawn(body)
            .map_err(|error| Error::Thread { feed: name, error })?;
        Ok(Self { name, address: None, batches: Some(batches), shared, thread: Some(thread) })
    }

    /// Notes the address that the feed listens on.
    pub(crate) fn at(mut self, address: Option<SocketAddr>) -> Self {
        self.address = address;
        self
    }

    /// The address that the feed listens on; `None` if it does not listen.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Waits for the next batch. Fails if the feed ended.
    pub fn recv(&self) -> Result<Batch, Error> {
        self.batches().recv().map_err(|_| self.ended())
    }

    /// Waits for the next batch, at most as long as `timeout`; `None` if none came. Fails if the feed ended.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<Option<Batch>, Error> {
        match self.batches().recv_timeout(timeout) {
            Ok(batch) => Ok(Some(batch)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
        }
    }

    /// The state and the counters. Takes a lock for a moment.
    #[must_use]
    pub fn status(&self) -> Status {
        lock(&self.shared.status).clone()
    }

    fn batches(&self) -> &Receiver<Batch> {
        self.batches.as_ref().expect("only dropping takes the queue away")
    }

    fn ended(&self) -> Error {
        let reason = lock(&self.shared.ended).clone().unwrap_or_else(|| "its thread ended".to_owned());
        Error::Ended { feed: self.name, reason }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // A thread that waits for room in the queue ends when nobody can make any.
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's end of a feed.
#[derive(Debug)]
pub(crate) struct Out {
    sender: SyncSender<Batch>,
    shared: Arc<Shared>,
    /// The thread's own counters. [`Self::publish`] makes them visible.
    pub(crate) status: Status,
}

impl Out {
    /// Whether the feed was dropped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    /// Makes the counters visible.
    pub(crate) fn publish(&self) {
        lock(&self.shared.status).clone_from(&self.status);
    }

    /// Sends a batch and makes the counters visible. Waits while the queue is full. An empty batch is not
    /// sent.
    pub(crate) fn send(&mut self, batch: Batch) {
        for change in &batch {
            match change {
                Change::Synced => {
                    self.status.synced = true;
                    self.status.stale_since = None;
                }
                Change::Resynced(_) => {
                    self.status.resyncs += 1;
                    self.status.stale_since = None;
                }
                Change::Stale(since) => self.status.stale_since = Some(*since),
                _ => self.status.changes += 1,
            }
        }
        self.publish();
        if !batch.is_empty() && self.sender.send(batch).is_err() {
            self.shared.stop.store(true, Ordering::Relaxed);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
