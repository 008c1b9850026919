//! [`Replay`]: a stream that can be read again from its start, for inputs that can't be opened twice.
//!
//! The bytes that were read are kept in compressed form: in memory up to [`IN_MEMORY`], then in an unnamed
//! temporary file. Nothing is read ahead: a second reading gets the kept bytes and then continues with the
//! stream.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tempfile::{SpooledTempFile, spooled_tempfile};

/// The most bytes kept in memory.
const IN_MEMORY: usize = 64 << 20;

pub(crate) struct Replay<'a>(Arc<Mutex<Shared<'a>>>);

struct Shared<'a> {
    stream: Box<dyn Read + Send + 'a>,
    /// The first `kept_bytes` bytes of the stream.
    kept: SpooledTempFile,
    kept_bytes: u64,
    keep: bool,
}

impl<'a> Replay<'a> {
    pub(crate) fn new(stream: Box<dyn Read + Send + 'a>) -> Self {
        let kept = spooled_tempfile(IN_MEMORY);
        Self(Arc::new(Mutex::new(Shared { stream, kept, kept_bytes: 0, keep: true })))
    }

    pub(crate) fn rewound(&self) -> Reading<'a> {
        Reading { shared: Arc::clone(&self.0), at: 0 }
    }

    /// Stops keeping bytes: there will be no further reading from the start.
    pub(crate) fn stop_keeping(&self) {
        lock(&self.0).keep = false;
    }
}

impl fmt::Debug for Replay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").finish_non_exhaustive()
    }
}

/// One reading of a [`Replay`] from its start.
pub(crate) struct Reading<'a> {
    shared: Arc<Mutex<Shared<'a>>>,
    at: u64,
}

fn lock<'m, 'a>(shared: &'m Mutex<Shared<'a>>) -> MutexGuard<'m, Shared<'a>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Read for Reading<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut shared = lock(&self.shared);
        let Shared { stream, kept, kept_bytes, keep } = &mut *shared;
        let n = if self.at < *kept_bytes {
            kept.seek(SeekFrom::Start(self.at))?;
            kept.read(into)?
        } else {
            let n = stream.read(into)?;
            if *keep {
                kept.seek(SeekFrom::Start(*kept_bytes))?;
                kept.write_all(&into[..n])?;
                *kept_bytes += n as u64;
            }
            n
        };
        self.at += n as u64;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_reading_goes_on_where_the_first_stopped() {
        let replay = Replay::new(Box::new(&b"abcdef"[..]));
        let mut half = [0; 3];
        replay.rewound().read_exact(&mut half).unwrap();
        let mut again = replay.rewound();
        replay.stop_keeping();
        let mut whole = String::new();
        again.read_to_string(&mut whole).unwrap();
        assert_eq!(whole, "abcdef");
    }
}
