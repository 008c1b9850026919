//! Calls of bpf(2): maps, programs and links. The kernel checks programs before it loads them, so these
//! functions are safe to call.

#![allow(unsafe_code)] // system calls

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// One instruction: operation, registers (destination in the low half), offset, constant.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) code: u8,
    pub(super) registers: u8,
    pub(super) offset: i16,
    pub(super) constant: i32,
}

/// Kinds of maps.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Keys to values.
    Hash,
    /// Queues to sockets of AF_XDP.
    Sockets,
}

/// A map that programs read.
#[derive(Debug)]
pub(super) struct Map {
    fd: OwnedFd,
    key: usize,
    value: usize,
}

/// A command of bpf(2), with what it reads: the part of `union bpf_attr` that belongs to it.
///
/// # Safety
///
/// The type is `repr(C)`, without padding, and begins as the kernel's structure for `COMMAND` does.
unsafe trait Command {
    const COMMAND: libc::c_long;
}

/// Calls bpf(2).
///
/// # Safety
///
/// Pointers in `attributes` are good for what the command reads and writes.
unsafe fn call<C: Command>(attributes: &mut C) -> io::Result<libc::c_long> {
    let (at, size) = (std::ptr::from_mut(attributes), size_of::<C>());
    // SAFETY: the kernel reads and writes as many bytes as `C` has; the caller answers for what it points to.
    let result = unsafe { libc::syscall(libc::SYS_bpf, C::COMMAND, at, size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Calls bpf(2) for a descriptor.
///
/// # Safety
///
/// As for [`call`], and the command returns a new descriptor.
unsafe fn open<C: Command>(attributes: &mut C) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise.
    let fd = unsafe { call(attributes) }?;
    let fd = i32::try_from(fd).map_err(|_| io::ErrorKind::InvalidData)?;
    // SAFETY: the kernel just opened it, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A name that the kernel shows: letters, digits, `_` and `.`.
fn named(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(name.bytes().take(15)).for_each(|(to, from)| *to = from);
    bytes
}

fn word(len: usize) -> u32 {
    u32::try_from(len).expect("programs, keys and frames are small")
}

#[repr(C)]
struct CreateMap {
    kind: u32,
    key: u32,
    value: u32,
    entries: u32,
    flags: u32,
    inner: u32,
    node: u32,
    name: [u8; 16],
}
// SAFETY: BPF_MAP_CREATE: seven words, and the name.
unsafe impl Command for CreateMap {
    const COMMAND: libc::c_long = 0;
}

#[repr(C)]
struct Entry<const COMMAND: libc::c_long> {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}
// SAFETY: BPF_MAP_UPDATE_ELEM and BPF_MAP_DELETE_ELEM begin so. Other numbers are not used.
unsafe impl<const COMMAND: libc::c_long> Command for Entry<COMMAND> {
    const COMMAND: libc::c_long = COMMAND;
}
const UPDATE: libc::c_long = 2;
const DELETE: libc::c_long = 3;

/// Entries are made when they are set: no memory for those that never are.
const NO_PREALLOC: u32 = 1;

impl Map {
    /// Makes a map for this many entries.
    pub(super) fn new(kind: Kind, name: &str, key: usize, value: usize, entries: u32) -> io::Result<Self> {
        let (number, flags) = match kind {
            Kind::Hash => (1, NO_PREALLOC),
            Kind::Sockets => (17, 0),
        };
        let mut attributes = CreateMap {
            kind: number,
            key: word(key),
            value: word(value),
            entries,
            flags,
            inner: 0,
            node: 0,
            name: named(name),
        };
        // SAFETY: no pointer; the command returns a descriptor.
        Ok(Self { fd: unsafe { open(&mut attributes) }?, key, value })
    }

    /// Sets the value of a key.
    pub(super) fn set(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        assert!(key.len() == self.key && value.len() == self.value, "a key and a value of the map's sizes");
        self.change::<UPDATE>(key, value.as_ptr() as u64)
    }

    /// Removes a key, if it is there.
    pub(super) fn remove(&self, key: &[u8]) -> io::Result<()> {
        assert!(key.len() == self.key, "a key of the map's size");
        match self.change::<DELETE>(key, 0) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    fn change<const COMMAND: libc::c_long>(&self, key: &[u8], value: u64) -> io::Result<()> {
        let mut attributes =
            Entry::<COMMAND> { map: self.number(), padding: 0, key: key.as_ptr() as u64, value, flags: 0 };
        // SAFETY: both callers have checked the lengths against those that the kernel knows, and only `set`
        // changes with a value.
        unsafe { call(&mut attributes) }?;
        Ok(())
    }

    /// The number of its descriptor, for an instruction that loads the map.
    pub(super) fn number(&self) -> u32 {
        self.fd.as_raw_fd().cast_unsigned()
    }
}

#[repr(C)]
struct LoadProgram {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach: u32,
}
// SAFETY: BPF_PROG_LOAD begins so.
unsafe impl Command for LoadProgram {
    const COMMAND: libc::c_long = 5;
}

/// The places where programs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hook {
    /// Before the kernel has a buffer for the frame.
    Xdp,
    /// Behind sockets of AF_PACKET, and before protocols (TCX, since Linux 6.6).
    Ingress,
}

impl Hook {
    /// The kind of its programs.
    const fn program(self) -> u32 {
        match self {
            Self::Xdp => 6,
            Self::Ingress => 3,
        }
    }

    /// The kind of attachment.
    const fn attachment(self) -> u32 {
        match self {
            Self::Xdp => 37,
            Self::Ingress => 46,
        }
    }
}

/// Loads a program. The error has what the kernel's verifier says.
pub(super) fn load(
    hook: Hook,
    name: &str,
    instructions: &[Instruction],
) -> Result<OwnedFd, (io::Error, String)> {
    let load = |level, log: &mut [u8]| {
        let mut attributes = LoadProgram {
            kind: hook.program(),
            count: word(instructions.len()),
            instructions: instructions.as_ptr() as u64,
            license: c"MIT/Apache-2.0".as_ptr() as u64,
            log_level: level,
            log_size: if level == 0 { 0 } else { word(log.len()) },
            log: if level == 0 { 0 } else { log.as_mut_ptr() as u64 },
            version: 0,
            flags: 0,
            name: named(name),
            interface: 0,
            attach: if hook == Hook::Xdp { hook.attachment() } else { 0 },
        };
        // SAFETY: the instructions, the license and the log are there for as many bytes as it says; the
        // command returns a descriptor.
        unsafe { open(&mut attributes) }
    };
    // The log costs time, so it is asked for only where there is something to tell.
    load(0, &mut []).or_else(|first| {
        let mut log = vec![0; 1 << 16];
        load(1, &mut log).map_err(|_| {
            let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
            (first, String::from_utf8_lossy(&log[..end]).trim().to_owned())
        })
    })
}

#[repr(C)]
struct CreateLink {
    program: u32,
    interface: u32,
    attach: u32,
    flags: u32,
}
// SAFETY: BPF_LINK_CREATE begins so.
unsafe impl Command for CreateLink {
    const COMMAND: libc::c_long = 28;
}

/// Attaches a program to an interface as long as the link is open: when the process dies, it falls off.
pub(super) fn attach(hook: Hook, program: &OwnedFd, interface: u32, flags: u32) -> io::Result<OwnedFd> {
    let program = program.as_raw_fd().cast_unsigned();
    let mut attributes = CreateLink { program, interface, attach: hook.attachment(), flags };
    // SAFETY: no pointer; the command returns a descriptor.
    unsafe { open(&mut attributes) }
}

#[repr(C)]
struct UpdateLink {
    link: u32,
    program: u32,
    flags: u32,
    old: u32,
}
// SAFETY: BPF_LINK_UPDATE begins so.
unsafe impl Command for UpdateLink {
    const COMMAND: libc::c_long = 29;
}

/// Puts another program in the place of a link's: each frame runs through the one or the other.
pub(super) fn exchange(link: &OwnedFd, program: &OwnedFd) -> io::Result<()> {
    let [link, program] = [link, program].map(|fd| fd.as_raw_fd().cast_unsigned());
    let mut attributes = UpdateLink { link, program, flags: 0, old: 0 };
    // SAFETY: no pointer.
    unsafe { call(&mut attributes) }?;
    Ok(())
}

#[cfg(test)]
pub(super) mod test_run {
    //! Programs run over frames that were made by hand.

    use super::*;

    #[repr(C)]
    struct TestRun {
        program: u32,
        verdict: u32,
        size_in: u32,
        size_out: u32,
        data_in: u64,
        data_out: u64,
        repeat: u32,
        duration: u32,
    }
    // SAFETY: BPF_PROG_TEST_RUN begins so.
    unsafe impl Command for TestRun {
        const COMMAND: libc::c_long = 10;
    }

    /// The verdict of a program about a frame of at least 14 bytes.
    pub(in super::super) fn verdict(program: &OwnedFd, frame: &[u8]) -> io::Result<u32> {
        let mut attributes = TestRun {
            program: program.as_raw_fd().cast_unsigned(),
            verdict: 0,
            size_in: word(frame.len()),
            size_out: 0,
            data_in: frame.as_ptr() as u64,
            data_out: 0,
            repeat: 1,
            duration: 0,
        };
        // SAFETY: the frame is there for as many bytes as it says, and nothing is written out.
        unsafe { call(&mut attributes) }?;
        Ok(attributes.verdict)
    }

    #[repr(C)]
    struct Info {
        fd: u32,
        size: u32,
        info: u64,
    }
    // SAFETY: BPF_OBJ_GET_INFO_BY_FD begins so.
    unsafe impl Command for Info {
        const COMMAND: libc::c_long = 15;
    }

    /// The kernel's number of a program.
    pub(in super::super) fn number(program: &OwnedFd) -> io::Result<u32> {
        let mut kind_and_number = [0_u32; 2];
        let mut attributes = Info {
            fd: program.as_raw_fd().cast_unsigned(),
            size: 8,
            info: kind_and_number.as_mut_ptr() as u64,
        };
        // SAFETY: the kernel writes at most the 8 bytes that it is told of.
        unsafe { call(&mut attributes) }?;
        Ok(kind_and_number[1])
    }
}
