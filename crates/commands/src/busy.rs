//! A sign of life on stderr for work that takes over a second and has no progress bar.

use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// The time between signs of life.
pub const TICK: Duration = Duration::from_millis(100);
/// The time that work may take without a sign of life.
const PATIENCE: Duration = Duration::from_secs(1);

/// A line on stderr that names the current work, shown after a second and removed when this is dropped. There
/// is no line if stderr is not a terminal.
pub struct Busy {
    /// The channel to the line's thread, for the current work.
    now: Option<Sender<String>>,
    thread: Option<JoinHandle<()>>,
}

impl Busy {
    /// Starts a line with the current work.
    pub fn with(what: impl Into<String>) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self { now: None, thread: None };
        }
        let (now, changes) = channel();
        let mut what = what.into();
        let thread = std::thread::spawn(move || {
            let mut spinner: Option<ProgressBar> = None;
            loop {
                let wait = if spinner.is_some() { TICK } else { PATIENCE };
                match changes.recv_timeout(wait) {
                    Ok(next) => {
                        what = next;
                        spinner.iter().for_each(|spinner| spinner.set_message(what.clone()));
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        let spinner = spinner.get_or_insert_with(|| started(&what));
                        spinner.tick();
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            spinner.iter().for_each(ProgressBar::finish_and_clear);
        });
        Self { now: Some(now), thread: Some(thread) }
    }

    /// Starts a line like [`with`](Self::with) if output goes to a file or a pipe. On a terminal the output
    /// itself is a sign of life.
    pub fn unless_seen(what: impl Into<String>, to_file: bool) -> Self {
        match to_file || !std::io::stdout().is_terminal() {
            true => Self::with(what),
            false => Self { now: None, thread: None },
        }
    }

    /// Changes the current work.
    pub fn now(&self, what: impl Into<String>) {
        if let Some(now) = &self.now {
            let _ = now.send(what.into());
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.now = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn started(what: &str) -> ProgressBar {
    let spinner = ProgressBar::new_spinner().with_message(what.to_owned()).with_elapsed(PATIENCE);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
        spinner.set_style(style);
    }
    spinner
}
