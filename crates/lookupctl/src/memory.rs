//! The memory that is available, so that a request for too much is an error and does not kill the process.

use std::fs::read_to_string;
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};

use crate::number::{Bytes, grouped, parse_size};

/// The default cap: 80 % of the memory that the machine or the control group of this process has left. `None`
/// if neither is known.
pub(crate) fn default_cap() -> Option<u64> {
    let left = [available(), group_left()].into_iter().flatten().min()?;
    Some(left / 5 * 4)
}

/// The value of `--memory-cap`, for messages of libraries that know only the bytes of one copy.
static ASKED: Mutex<Option<Asked>> = Mutex::new(None);

struct Asked {
    /// The text of the command line.
    text: String,
    bytes: u64,
    /// The number of copies of a table that share the cap.
    copies: u64,
}

/// `--memory-cap SIZE`.
pub(crate) fn parse_cap(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text)?;
    *asked() = Some(Asked { text: text.to_owned(), bytes, copies: 1 });
    Ok(bytes)
}

/// Divides the cap among copies of a table.
pub(crate) fn share_cap(bytes: u64, copies: u64) -> u64 {
    if let Some(asked) = &mut *asked() {
        asked.copies = copies;
    }
    bytes / copies
}

/// Rewrites a message so that it shows the cap of the command line: `over the cap of 512` becomes `over the
/// cap of 1k, of which each of 2 copies may take 512`.
pub(crate) fn as_asked(message: &str) -> String {
    let asked = asked();
    let Some(Asked { text, bytes, copies }) = asked.as_ref() else { return message.to_owned() };
    let of_each = bytes / copies;
    let told = format!("over the cap of {of_each}");
    // The number must not continue with another digit.
    let is_it = message
        .find(&told)
        .is_some_and(|at| !message[at + told.len()..].starts_with(|c: char| c.is_ascii_digit()));
    match (is_it, copies) {
        (false, _) => message.to_owned(),
        (true, 1) => message.replace(&told, &format!("over the cap of {text}")),
        (true, _) => {
            let both = format!("over the cap of {text}, of which each of {copies} copies may take {of_each}");
            message.replace(&told, &both)
        }
    }
}

fn asked() -> std::sync::MutexGuard<'static, Option<Asked>> {
    ASKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses to make more elements of type `T` than fit the memory.
pub(crate) fn check_room<T>(count: usize, what: &str) -> Result<()> {
    let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
    match default_cap() {
        Some(cap) if bytes > cap => {
            bail!("{} {what} take {}, only {} are left", grouped(count), Bytes(bytes), Bytes(cap))
        }
        _ => Ok(()),
    }
}

/// The memory that the kernel can give without swapping.
fn available() -> Option<u64> {
    let text = read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The memory that a container has left of its limit.
fn group_left() -> Option<u64> {
    let number = |path| read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let limit = number("/sys/fs/cgroup/memory.max")?;
    let used = number("/sys/fs/cgroup/memory.current")?;
    Some(limit.saturating_sub(used))
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    #[test]
    fn linux_says_what_is_left() {
        assert!(super::default_cap().unwrap() > 1 << 20);
    }
}
