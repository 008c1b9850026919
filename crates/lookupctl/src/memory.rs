//! How much memory there is to take, so that an absurd request is an error and not a killed process.

use std::fs::read_to_string;

use anyhow::{Result, bail};

use crate::number::{Bytes, grouped};

/// The cap that holds where the user states none: 80 % of what the machine, or the control group that this process
/// is in, has left. `None` where neither says.
pub(crate) fn default_cap() -> Option<u64> {
    let left = [available(), group_left()].into_iter().flatten().min()?;
    Some(left / 5 * 4)
}

/// Refuses to make more things of type `T` than there is memory for.
pub(crate) fn check_room<T>(count: usize, what: &str) -> Result<()> {
    let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
    match default_cap() {
        Some(cap) if bytes > cap => {
            bail!("{} {what} take {}, and {} are left to take", grouped(count), Bytes(bytes), Bytes(cap))
        }
        _ => Ok(()),
    }
}

/// What the kernel says can be had without swapping.
fn available() -> Option<u64> {
    let text = read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// What a container has left of its limit.
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
