//! [`Core`]: a device's owner, as all handles of the device have it.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};

use super::Result;
use super::command::{Answer, Command};
use super::options::GpuOptions;
use super::owner::Owner;
use super::shared::Shared;
use crate::driver::Driver;
use crate::error::GpuError;

/// The most commands that wait for the owner. Sending one more waits.
const COMMANDS: usize = 1024;

/// The part that all handles of a device share. The owner ends when it is dropped.
pub(super) struct Core {
    commands: Option<Sender<Command>>,
    pub(super) shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    ended: Receiver<()>,
}

impl Core {
    /// Starts a device's owner, and allocates the memory of all slots.
    pub(super) fn start(driver: Box<dyn Driver>, mut options: GpuOptions) -> Result<Self> {
        options.slots.retain(|size| size.slots > 0 && size.keys > 0);
        options.slots.sort_by_key(|size| size.keys);
        let (commands, orders) = bounded(COMMANDS);
        let (staging, stagings) = bounded(2);
        let shared = Arc::new(Shared::new(driver.properties().clone(), options, stagings));
        let (up, is_up) = bounded(1);
        let (end, ended) = bounded(1);
        let of_owner = Arc::clone(&shared);
        let name = format!("gpu {}", shared.properties.bus);
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || {
                // It is sent, or dropped by a panic; both end the wait.
                let _end: Sender<()> = end;
                match Owner::new(driver, orders, of_owner, staging) {
                    Ok(owner) => {
                        drop(up.send(Ok(())));
                        owner.run();
                    }
                    Err(error) => drop(up.send(Err(error))),
                }
            })
            .map_err(|error| GpuError::Call { call: "starting a thread", why: error.to_string() })?;
        let core = Self { commands: Some(commands), shared, thread: Some(thread), ended };
        is_up.recv().unwrap_or_else(|_| Err(core.shared.why_lost()))?;
        Ok(core)
    }

    /// Sends a command. Returns it if there is no owner any more.
    #[allow(clippy::result_large_err)] // the error is the command itself
    pub(super) fn send(&self, command: Command) -> std::result::Result<(), Command> {
        match &self.commands {
            Some(commands) => commands.send(command).map_err(|unsent| unsent.0),
            None => Err(command),
        }
    }

    /// Sends a command that has no answer.
    pub(super) fn order(&self, command: Command) -> Result<()> {
        match self.shared.lost.get() {
            Some(lost) => Err(lost.clone()),
            None => self.send(command).map_err(|_| self.shared.why_lost()),
        }
    }

    /// Sends a command that takes microseconds, and polls for its answer before it waits: to be woken takes
    /// as long as such a command.
    pub(super) fn ask_briefly<T>(&self, command: impl FnOnce(Answer<T>) -> Command) -> Result<T> {
        let (answer, answered) = bounded(1);
        self.order(command(answer))?;
        let began = Instant::now();
        while began.elapsed() < self.shared.options.spin {
            match answered.try_recv() {
                Ok(found) => return found,
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => break,
            }
        }
        answered.recv().unwrap_or_else(|_| Err(self.shared.why_lost()))
    }

    /// Sends a command and waits for its answer.
    pub(super) fn ask<T>(&self, command: impl FnOnce(Answer<T>) -> Command) -> Result<T> {
        let (answer, answered) = bounded(1);
        self.order(command(answer))?;
        answered.recv().unwrap_or_else(|_| Err(self.shared.why_lost()))
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.commands = None;
        // The owner sees that no handle is left. It ends when the device has done its work, or has not done
        // it within the timeout. Only a call of the driver that never returns could take longer; then the
        // thread is abandoned.
        let patience = self.shared.options.timeout * 2 + Duration::from_secs(1);
        let is_stuck =
            matches!(self.ended.recv_timeout(patience), Err(crossbeam_channel::RecvTimeoutError::Timeout));
        if let Some(thread) = self.thread.take()
            && !is_stuck
        {
            drop(thread.join());
        }
    }
}
