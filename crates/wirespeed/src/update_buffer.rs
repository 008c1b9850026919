//! [`UpdateBuffer`]: updates that come singly, made visible together.

use std::time::{Duration, Instant};

/// Collects updates that come singly, until they are many or the first one is old. One call of `apply` for
/// all of them costs much less than an `insert` for each: readers get a new state once, and parts of the
/// table that several updates change are written once.
///
/// It holds updates of any kind: [`Update`](crate::Update), [`AnyUpdate`](crate::AnyUpdate),
/// [`VrfUpdate`](crate::VrfUpdate), and those of names and rules. A service that takes updates from a channel
/// waits until more come or the buffer is due:
///
/// ```
/// use std::sync::mpsc::{self, RecvTimeoutError};
/// use std::time::Duration;
///
/// use wirespeed::UpdateBuffer;
/// use wirespeed::prelude::*;
///
/// let (updates, incoming) = mpsc::channel();
/// let writer = std::thread::spawn(move || {
///     let mut table = Ipv4Table::builder().build()?;
///     let mut buffer = UpdateBuffer::new(8_192, Duration::from_millis(20));
///     loop {
///         match incoming.recv_timeout(buffer.due_in().unwrap_or(Duration::MAX)) {
///             Ok(update) => buffer.push(update),
///             Err(RecvTimeoutError::Timeout) => {}
///             Err(RecvTimeoutError::Disconnected) => break,
///         }
///         buffer.flush_if_due(|updates| table.apply(updates))?;
///     }
///     buffer.flush(|updates| table.apply(updates))?; // those that came last
///     Ok::<_, wirespeed::Error>(table)
/// });
/// for n in 0..1_000 {
///     updates.send(Update::announce(format!("10.0.{}.0/24", n % 256).parse()?, NextHop(1 + n)))?;
/// }
/// drop(updates);
/// assert_eq!(writer.join().unwrap()?.len(), 256);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct UpdateBuffer<U> {
    updates: Vec<U>,
    /// The time when the first of them came.
    since: Option<Instant>,
    most: usize,
    age: Duration,
}

impl<U> UpdateBuffer<U> {
    /// Makes a buffer that is due when it has `most` updates, or when its first update is as old as `age`.
    /// Readers see an update at most so much later. A `most` of 0 is like 1.
    #[must_use]
    pub const fn new(most: usize, age: Duration) -> Self {
        Self { updates: Vec::new(), since: None, most, age }
    }

    /// Adds an update, to be applied after those that are there.
    pub fn push(&mut self, update: U) {
        self.updates.push(update);
        self.since.get_or_insert_with(Instant::now);
    }

    /// The updates, in order.
    #[must_use]
    pub fn updates(&self) -> &[U] {
        &self.updates
    }

    /// The time until the buffer is due: zero if it is due now, `None` if it is empty.
    #[must_use]
    pub fn due_in(&self) -> Option<Duration> {
        let since = self.since?;
        let is_full = self.updates.len() >= self.most;
        Some(if is_full { Duration::ZERO } else { self.age.saturating_sub(since.elapsed()) })
    }

    /// Calls `apply` with all updates like [`flush`](Self::flush) if the buffer is due. `None` if it is not.
    pub fn flush_if_due<R, E>(&mut self, apply: impl FnOnce(&[U]) -> Result<R, E>) -> Result<Option<R>, E> {
        match self.due_in() {
            Some(Duration::ZERO) => self.flush(apply),
            _ => Ok(None),
        }
    }

    /// Calls `apply` with all updates, and drops them if it succeeds. `None` if there are none.
    ///
    /// After an error the updates stay. A table that refuses a call changes nothing, so the caller may apply
    /// them one by one, to find the wrong one: [`drain`](Self::drain).
    pub fn flush<R, E>(&mut self, apply: impl FnOnce(&[U]) -> Result<R, E>) -> Result<Option<R>, E> {
        if self.updates.is_empty() {
            return Ok(None);
        }
        let applied = apply(&self.updates)?;
        drop(self.drain());
        Ok(Some(applied))
    }

    /// Takes all updates, in order.
    pub fn drain(&mut self) -> impl Iterator<Item = U> {
        self.since = None;
        self.updates.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    #[test]
    fn it_is_due_when_it_is_full_or_old() {
        let mut buffer = UpdateBuffer::new(3, LONG);
        assert_eq!((buffer.due_in(), buffer.flush(|_| Err::<(), _>("none"))), (None, Ok(None)));
        for n in 1..=3 {
            assert_eq!(buffer.flush_if_due(|_| Err::<(), _>("early")), Ok(None));
            buffer.push(n);
            assert!(buffer.due_in().is_some_and(|left| if n < 3 { left > LONG / 2 } else { left.is_zero() }));
        }
        assert_eq!(buffer.flush_if_due(|all| Ok::<_, ()>(all.to_vec())), Ok(Some(vec![1, 2, 3])));
        assert_eq!((buffer.due_in(), buffer.updates().len()), (None, 0));

        let mut buffer = UpdateBuffer::new(usize::MAX, Duration::from_millis(1));
        buffer.push(1);
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(buffer.flush_if_due(|all| Ok::<_, ()>(all.len())), Ok(Some(1)));
    }

    #[test]
    fn what_is_refused_stays() {
        let mut buffer = UpdateBuffer::new(0, LONG);
        buffer.push('a');
        assert_eq!(buffer.flush_if_due(|_| Err::<(), _>("no")), Err("no"));
        buffer.push('b');
        assert_eq!((buffer.updates(), buffer.due_in()), (&['a', 'b'][..], Some(Duration::ZERO)));
        assert_eq!(buffer.drain().collect::<String>(), "ab");
        assert_eq!(buffer.due_in(), None);
    }
}
