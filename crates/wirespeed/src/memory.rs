//! How much memory tables may take where the user states nothing.
//!
//! | engine | both copies of a compiled table together |
//! |---|---|
//! | `auto` | [`BASE`] and [`EACH`] bytes a prefix, and half of the machine's memory |
//! | given by name | half of the machine's memory |
//!
//! The first is some five times the memory of the engines that `auto` chooses. Only a table whose routes have
//! become others than it was built for meets it. The second keeps a process from being killed. Neither is
//! looked at where a cap is stated.

use wirespeed_fib::{BuildOptions, ByEntries};

/// What a table may take whatever its number of prefixes.
const BASE: u64 = 256 << 20;
/// What it may take for each prefix beside that. `auto` keeps chunks below 768 bytes in one copy.
const EACH: u64 = 2 << 10;

/// What one copy may take.
const BY_PREFIXES: ByEntries = ByEntries { base: BASE / 2, each: EACH / 2 };

/// What a table may take, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cap {
    /// The user: so many bytes for both copies.
    Stated(u64),
    /// Nobody, of a table whose engine was chosen for its routes.
    Auto,
    /// Nobody, of one whose engine has been given.
    Named,
}

impl Cap {
    /// The options for one copy.
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

/// Half of the machine's memory, or half of the limit of this process's control group; `None` if neither is
/// known.
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
    // Without a limit it says "max".
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
