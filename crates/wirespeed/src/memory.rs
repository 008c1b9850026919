//! Default memory caps of tables: the limits that hold if the user states none.
//!
//! | engine | cap for both copies of a compiled table together |
//! |---|---|
//! | `auto` | [`BASE`] and [`EACH`] bytes for each prefix, and half of the machine's memory |
//! | given by name | half of the machine's memory |
//!
//! The first cap is about five times the memory that the engines of `auto` need. Only a table whose routes
//! have become very different since it was built reaches it. The second cap keeps the process from being
//! killed. A stated cap replaces both.

use wirespeed_fib::{BuildOptions, ByEntries};

/// The bytes that a table of any number of prefixes may take.
const BASE: u64 = 256 << 20;
/// The bytes that a table may take for each prefix, beside [`BASE`]. `auto` keeps chunks below 768 bytes in
/// one copy.
const EACH: u64 = 2 << 10;

/// The cap of one copy.
const BY_PREFIXES: ByEntries = ByEntries { base: BASE / 2, each: EACH / 2 };

/// The memory cap of a table, and its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cap {
    /// A cap that the user stated, in bytes for both copies.
    Stated(u64),
    /// The default cap of a table whose engine `auto` picked.
    Auto,
    /// The default cap of a table whose engine the user named.
    Named,
}

impl Cap {
    /// The build options for one copy.
    pub(crate) fn options(self) -> BuildOptions {
        let (cap, by_prefixes) = match self {
            Self::Stated(cap) => (Some(cap), None),
            Self::Auto => (half(), Some(BY_PREFIXES)),
            Self::Named => (half(), None),
        };
        let memory_cap = cap.map(|cap| cap / 2);
        BuildOptions { memory_cap, memory_by_entries: by_prefixes, ..BuildOptions::default() }
    }
}

/// Half of the machine's memory, or half of the limit of this process's control group if that is less. `None`
/// if neither is known.
pub(crate) fn half() -> Option<u64> {
    [machine(), group()].into_iter().flatten().min().map(|bytes| bytes / 2)
}

fn machine() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn group() -> Option<u64> {
    // The file says "max" if there is no limit.
    std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    #[test]
    fn linux_says_what_there_is() {
        assert!(super::half().is_some_and(|half| half > 64 << 20));
    }
}
