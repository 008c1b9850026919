//! [`Cores`]: the cores that workers are pinned to.

#![allow(unsafe_code)] // sched_setaffinity(2), sched_getaffinity(2)

use std::fmt::Write;
use std::io;
use std::str::FromStr;

use crate::Error;

/// Cores by their numbers in the kernel, in the order in which workers take them.
///
/// The text is a list of numbers and ranges, such as `2,4-7`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cores(Vec<usize>);

/// The reason why a text lists no cores.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoCores {
    /// A part is neither a number nor a range.
    #[error("{0:?} is no core and no range of cores, such as 2 or 4-7")]
    Malformed(String),
    /// A core is there twice.
    #[error("core {0} is there twice")]
    Twice(usize),
    /// A number is larger than those of all cores that a process can be pinned to.
    #[error("core {0} is beyond {most}, the last one that a thread can be pinned to", most = MOST - 1)]
    Beyond(usize),
}

/// The numbers of cores that a mask has bits for.
const MOST: usize = size_of::<libc::cpu_set_t>() * 8;

impl FromStr for Cores {
    type Err = NoCores;

    fn from_str(text: &str) -> Result<Self, NoCores> {
        let mut cores = Vec::new();
        for part in text.split(',') {
            let number = |text: &str| match text.parse::<usize>() {
                Ok(core) if core >= MOST => Err(NoCores::Beyond(core)),
                Ok(core) => Ok(core),
                Err(_) => Err(NoCores::Malformed(part.to_owned())),
            };
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(NoCores::Malformed(part.to_owned()));
            }
            for core in first..=last {
                if cores.contains(&core) {
                    return Err(NoCores::Twice(core));
                }
                cores.push(core);
            }
        }
        Ok(Self(cores))
    }
}

impl std::fmt::Display for Cores {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        for run in self.0.chunk_by(|before, after| before + 1 == *after) {
            let comma = if text.is_empty() { "" } else { "," };
            match run {
                [core] => write!(text, "{comma}{core}")?,
                // A run is not empty.
                [first, .., last] => write!(text, "{comma}{first}-{last}")?,
                [] => {}
            }
        }
        f.write_str(&text)
    }
}

impl Cores {
    /// The cores that the calling thread may run on, by its mask and its cpuset.
    pub fn allowed() -> Result<Self, Error> {
        let mask =
            mask().map_err(|cause| Error::Cores { what: "the mask can't be read".to_owned(), cause })?;
        // SAFETY: reads a bit of the mask, and all numbers are below that of its bits.
        Ok(Self((0..MOST).filter(|&core| unsafe { libc::CPU_ISSET(core, &mask) }).collect()))
    }

    /// The number of cores.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The core of a worker. `None` if there are fewer cores.
    #[must_use]
    pub fn of(&self, worker: usize) -> Option<usize> {
        self.0.get(worker).copied()
    }

    /// Refuses cores that the calling thread, and so those that it starts, may not run on.
    pub fn check(&self) -> Result<(), Error> {
        let allowed = Self::allowed()?;
        match self.0.iter().find(|core| !allowed.0.contains(core)) {
            Some(core) => Err(forbidden(*core, &allowed)),
            None => Ok(()),
        }
    }

    /// Pins the calling thread to a core, and reads the mask back: a cpuset may forbid the core, or take it
    /// away.
    pub fn pin(core: usize) -> Result<(), Error> {
        let allowed = Self::allowed()?;
        if !allowed.0.contains(&core) {
            return Err(forbidden(core, &allowed));
        }
        let failed = |cause| Error::Cores { what: format!("a worker can't be pinned to core {core}"), cause };
        set(core).map_err(failed)?;
        let now = Self::allowed()?;
        if now.0 != [core] {
            return Err(failed(io::Error::other(format!("the kernel lets it run on {now}"))));
        }
        Ok(())
    }
}

fn forbidden(core: usize, allowed: &Cores) -> Error {
    Error::Cores {
        what: format!("core {core} is not allowed: this process may run on {allowed}"),
        cause: io::ErrorKind::PermissionDenied.into(),
    }
}

/// The calling thread's mask.
fn mask() -> io::Result<libc::cpu_set_t> {
    // SAFETY: integers alone, of which zeros are a value.
    let mut mask: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most as many bytes as the mask has. 0 is the calling thread.
    let result = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut mask) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(mask) }
}

/// Sets the calling thread's mask to one core.
fn set(core: usize) -> io::Result<()> {
    // SAFETY: integers alone, of which zeros are a value.
    let mut mask: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: writes a bit of the mask; the caller took the core from a mask of this size.
    unsafe { libc::CPU_SET(core, &mut mask) };
    // SAFETY: the kernel reads as many bytes as the mask has. 0 is the calling thread.
    let result = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const mask) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written() {
        for (text, cores) in [("3", &[3][..]), ("2,4-7", &[2, 4, 5, 6, 7]), ("7,0-1", &[7, 0, 1])] {
            let read: Cores = text.parse().unwrap();
            assert_eq!((read.0.as_slice(), read.to_string().as_str()), (cores, text));
        }
        for text in ["", "a", "1,", "3-1", "-", "1-", "0x1", "1 2"] {
            assert!(matches!(text.parse::<Cores>(), Err(NoCores::Malformed(_))), "{text:?}");
        }
        assert_eq!("1-3,2".parse::<Cores>(), Err(NoCores::Twice(2)));
        assert_eq!("0-99999999".parse::<Cores>(), Err(NoCores::Beyond(99_999_999)));
    }

    #[test]
    fn a_thread_is_pinned_to_the_core_and_no_other() {
        let allowed = Cores::allowed().unwrap();
        let last = *allowed.0.last().unwrap();
        std::thread::spawn(move || {
            Cores::pin(last).unwrap();
            assert_eq!(Cores::allowed().unwrap().0, [last]);
        })
        .join()
        .unwrap();
        let Some(other) = (0..MOST).find(|core| !allowed.0.contains(core)) else { return };
        let error = Cores::pin(other).unwrap_err().to_string();
        assert!(error.contains(&format!("core {other} is not allowed")), "{error}");
        assert!(error.contains(&allowed.to_string()), "{error}");
        assert!(Cores(vec![other]).check().is_err());
        assert_eq!(Cores::allowed().unwrap(), allowed, "nothing has changed");
    }
}
