//! [`Socket`]: a socket of AF_XDP with its four rings.
//!
//! | ring | we write | the kernel writes |
//! |---|---|---|
//! | fill | empty buffers | |
//! | receive | | frames |
//! | transmit | frames to send | |
//! | completion | | buffers of frames that were sent |

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use libc::xdp_desc;

use super::super::sys::{self, Mapping};
use super::options::{BusyPoll, Sizes};
use super::ring::{Consumer, Offsets, Producer};

/// A socket of AF_XDP with its four rings.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) fill: Producer<u64>,
    pub(super) receive: Consumer<xdp_desc>,
    pub(super) transmit: Producer<xdp_desc>,
    pub(super) completion: Consumer<u64>,
    pub(super) fd: Arc<OwnedFd>,
    /// Whether calls that receive do the driver's work.
    is_busy_polling: bool,
}

/// Places of the rings in the descriptor.
const RECEIVE: i64 = 0;
const TRANSMIT: i64 = 0x8000_0000;
const FILL: i64 = 0x1_0000_0000;
const COMPLETION: i64 = 0x1_8000_0000;

/// Option: how many frames one call sends, in modes that copy. Kernels before 6.17 don't know it and send 32.
const MAX_TX_SKB_BUDGET: i32 = 9;

/// Frames that one call sends.
const BUDGET: u32 = 256;

/// Bytes of frames that may wait in the kernel for the device.
const SEND_BUFFER: i32 = 8 << 20;

impl Socket {
    /// Makes the rings of a socket that has, or will share, a memory.
    pub(super) fn new(fd: Arc<OwnedFd>, sizes: Sizes) -> io::Result<Self> {
        let set = |name, entries: u32| sys::set_option(&fd, libc::SOL_XDP, name, entries);
        set(libc::XDP_UMEM_FILL_RING, sizes.fill)?;
        set(libc::XDP_UMEM_COMPLETION_RING, sizes.transmit)?;
        set(libc::XDP_RX_RING, sizes.receive)?;
        set(libc::XDP_TX_RING, sizes.transmit)?;
        // Without either, less is sent by one call.
        let _ = set(MAX_TX_SKB_BUDGET, BUDGET.min(sizes.transmit));
        let _ = sys::set_option(&fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, SEND_BUFFER);

        let offsets: [Offsets; 4] = sys::option(&fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, [[0; 4]; 4])?;
        let [receive, transmit, fill, completion] = offsets;
        let odd =
            || io::Error::new(io::ErrorKind::InvalidData, "the kernel's rings lie outside of their mapping");
        let map = |place, offsets: Offsets, size: u32, entry: usize| {
            let end = usize::try_from(offsets[2]).map_err(|_| odd())? + size as usize * entry;
            Mapping::of(&fd, place, end).map(Arc::new)
        };
        let of_frames = size_of::<xdp_desc>();
        let mapped = (
            map(FILL, fill, sizes.fill, 8)?,
            map(RECEIVE, receive, sizes.receive, of_frames)?,
            map(TRANSMIT, transmit, sizes.transmit, of_frames)?,
            map(COMPLETION, completion, sizes.transmit, 8)?,
        );
        Ok(Self {
            fill: Producer::new(mapped.0, fill, sizes.fill).ok_or_else(odd)?,
            receive: Consumer::new(mapped.1, receive, sizes.receive).ok_or_else(odd)?,
            transmit: Producer::new(mapped.2, transmit, sizes.transmit).ok_or_else(odd)?,
            completion: Consumer::new(mapped.3, completion, sizes.transmit).ok_or_else(odd)?,
            fd,
            is_busy_polling: false,
        })
    }

    /// Makes calls that receive do the driver's work. The error names the option that the kernel refuses.
    pub(super) fn busy_poll(&mut self, busy: BusyPoll) -> Result<(), (&'static str, io::Error)> {
        let microseconds = i32::try_from(busy.microseconds).unwrap_or(i32::MAX);
        // The kernel keeps 16 bits.
        let budget = i32::try_from(busy.budget.min(u16::MAX.into())).unwrap_or(i32::MAX);
        let options = [
            ("SO_PREFER_BUSY_POLL", libc::SO_PREFER_BUSY_POLL, 1),
            ("SO_BUSY_POLL", libc::SO_BUSY_POLL, microseconds),
            ("SO_BUSY_POLL_BUDGET", libc::SO_BUSY_POLL_BUDGET, budget),
        ];
        for (name, option, value) in options {
            sys::set_option(&self.fd, libc::SOL_SOCKET, option, value).map_err(|cause| (name, cause))?;
        }
        self.is_busy_polling = true;
        Ok(())
    }

    /// Whether calls that receive do the driver's work.
    pub(super) const fn is_busy_polling(&self) -> bool {
        self.is_busy_polling
    }

    /// Whether the driver has named what a call can poll. It does so with the first frame.
    pub(super) fn has_napi(&self) -> bool {
        sys::option(&self.fd, libc::SOL_SOCKET, libc::SO_INCOMING_NAPI_ID, 0_u32).is_ok_and(|id| id != 0)
    }

    /// Does the driver's work, if that was asked for.
    pub(super) fn poll_driver(&self) {
        if self.is_busy_polling {
            // An interface that is down has no work.
            let _ = sys::kick_receive(&self.fd);
        }
    }

    /// Whether frames go to the device without a copy.
    pub(super) fn is_zero_copy(&self) -> bool {
        sys::option(&self.fd, libc::SOL_XDP, libc::XDP_OPTIONS, 0_u32)
            .is_ok_and(|flags| flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
    }

    /// Frames that the kernel lost: those that it could not store, and those that found the ring full.
    pub(super) fn missed(&self) -> u64 {
        let [dropped, _, _, full, ..] =
            sys::option(&self.fd, libc::SOL_XDP, libc::XDP_STATISTICS, [0; 6]).unwrap_or_default();
        dropped + full
    }

    /// Tells the kernel of frames to send, where it wants to be told. It may take several calls, since one
    /// sends a part only; the last that makes no progress ends this.
    pub(super) fn kick_send(&mut self) -> io::Result<()> {
        let mut waiting = self.transmit.waiting();
        while waiting > 0 && self.transmit.needs_wakeup() {
            match sys::kick_send(&self.fd) {
                Ok(()) => return Ok(()),
                Err(cause) if !is_passing(&cause) => return Err(cause),
                Err(_) => {}
            }
            let now = self.transmit.waiting();
            if now >= waiting {
                return Ok(());
            }
            waiting = now;
        }
        Ok(())
    }

    /// Tells the kernel of new buffers, where it wants to be told.
    pub(super) fn kick_fill(&self) {
        if self.fill.needs_wakeup() {
            // What stands in its way is over at the next call, or told when frames are sent.
            let _ = sys::kick_receive(&self.fd);
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Whether a call that sends may succeed later.
fn is_passing(cause: &io::Error) -> bool {
    let passing = [libc::EAGAIN, libc::EBUSY, libc::ENOBUFS, libc::ENETDOWN, libc::EINTR];
    cause.raw_os_error().is_some_and(|code| passing.contains(&code))
}
