//! [`give_up_privileges`]: a router that reads what strangers send keeps no right that it has no use for.

use std::fs;
use std::io;

/// Capabilities by number (capabilities(7)).
const DAC_READ_SEARCH: u32 = 2;
const NET_ADMIN: u32 = 12;
const NET_RAW: u32 = 13;
const IPC_LOCK: u32 = 14;
const SYS_ADMIN: u32 = 21;
const SYS_RESOURCE: u32 = 24;
const BPF: u32 = 39;

/// The capabilities that forwarding between interfaces needs as long as it goes on: to change interfaces,
/// take their frames, pin the memory of frames, and set the addresses that stay the kernel's.
const NEEDED: [u32; 5] = [NET_ADMIN, NET_RAW, IPC_LOCK, SYS_RESOURCE, BPF];

/// The version of the structures that hold 64 capabilities.
const VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct Head {
    version: u32,
    pid: libc::c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Half {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Gives up all capabilities of this thread, and of threads that it will start, but those that a router needs
/// between interfaces: `net_admin`, `net_raw`, `ipc_lock`, `sys_resource` and `bpf` (`sys_admin` where the
/// kernel is older than that). With `reads_files` it can still read files of other users. No program that it
/// starts gets more (`PR_SET_NO_NEW_PRIVS`).
///
/// The user of the process stays the same. Whoever has no capabilities loses nothing.
pub fn give_up_privileges(reads_files: bool) -> io::Result<()> {
    let mut kept: Vec<u32> = NEEDED.to_vec();
    if reads_files {
        kept.push(DAC_READ_SEARCH);
    }
    if last_capability() < BPF {
        kept.push(SYS_ADMIN);
    }
    keep(kept.into_iter().fold(0, |bits, capability| bits | 1 << capability))
}

/// The highest capability that the kernel knows.
fn last_capability() -> u32 {
    let text = fs::read_to_string("/proc/sys/kernel/cap_last_cap");
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(BPF)
}

/// Keeps these capabilities of those that the thread has.
#[allow(unsafe_code, clippy::cast_possible_truncation)] // prctl, capget and capset; the halves of a number
fn keep(bits: u64) -> io::Result<()> {
    let done = |result: libc::c_long| if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    // SAFETY: takes numbers alone.
    done(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.into())?;
    let mut head = Head { version: VERSION, pid: 0 };
    let mut halves = [Half::default(); 2];
    // SAFETY: both are as the kernel defines them for this version, and live through the call.
    done(unsafe { libc::syscall(libc::SYS_capget, &raw mut head, halves.as_mut_ptr()) })?;
    for (half, mask) in halves.iter_mut().zip([bits as u32, (bits >> 32) as u32]) {
        *half = Half { effective: half.effective & mask, permitted: half.permitted & mask, inheritable: 0 };
    }
    // SAFETY: as above.
    done(unsafe { libc::syscall(libc::SYS_capset, &raw mut head, halves.as_ptr()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The effective, permitted and inheritable capabilities of this thread.
    fn capabilities() -> [u64; 3] {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        ["CapEff:", "CapPrm:", "CapInh:"].map(|name| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        })
    }

    /// Capabilities are a thread's own, so the test's other threads keep theirs.
    fn after(reads_files: bool) -> ([u64; 3], [u64; 3], [u64; 3]) {
        let thread = std::thread::spawn(move || {
            let before = capabilities();
            give_up_privileges(reads_files).unwrap();
            let child = std::thread::spawn(capabilities).join().unwrap();
            (before, capabilities(), child)
        });
        thread.join().unwrap()
    }

    #[test]
    fn only_what_is_needed_is_kept() {
        let needed = |extra: u64| NEEDED.iter().fold(extra, |bits, capability| bits | 1 << capability);
        for (reads_files, extra) in [(false, 0), (true, 1 << DAC_READ_SEARCH)] {
            let (before, kept, child) = after(reads_files);
            let wanted = needed(extra) | if last_capability() < BPF { 1 << SYS_ADMIN } else { 0 };
            assert_eq!(kept, [before[0] & wanted, before[1] & wanted, 0]);
            assert_eq!(child, kept, "a thread that starts later has no more");
        }
        // A second time changes nothing.
        let twice =
            std::thread::spawn(|| (give_up_privileges(false).unwrap(), capabilities()).1).join().unwrap();
        assert_eq!(twice, after(false).1);
    }
}
