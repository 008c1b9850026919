//! [`Injector`]: the port of a worker from which frames of controllers come.
//!
//! A frame has its port before its first byte: [`OpenFlow`](crate::OpenFlow) takes it off and sends the rest.

use std::sync::mpsc::Receiver;

use wirespeed_router::io::{Port, PortCounts};
use wirespeed_router::{Error, Frame, Memory};

/// The bytes of the port before a frame.
pub(crate) const PREFIX: u16 = 4;

/// A frame that a controller sends out of a port.
pub(crate) struct Injected {
    pub(crate) port: u32,
    pub(crate) bytes: Vec<u8>,
}

/// A function that is told of a frame that is lost.
type TooLarge = Box<dyn Fn(u32, usize) + Send>;

/// A port that gives the frames that controllers send. It has to be the last port of a worker, after the
/// ports of the switch.
pub struct Injector {
    frames: Receiver<Injected>,
    counts: PortCounts,
    /// Is told the port and the bytes of a frame that no buffer can hold.
    too_large: TooLarge,
    /// A frame for which there was no buffer.
    next: Option<Injected>,
}

impl std::fmt::Debug for Injector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Injector").finish_non_exhaustive()
    }
}

impl Injector {
    pub(crate) fn new(frames: Receiver<Injected>, too_large: TooLarge) -> Self {
        Self { frames, counts: PortCounts::default(), too_large, next: None }
    }
}

impl Port for Injector {
    fn name(&self) -> &'static str {
        "controller"
    }

    fn receive(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>, most: usize) -> Result<usize, Error> {
        let mut received = 0;
        while received < most {
            let Some(injected) = self.next.take().or_else(|| self.frames.try_recv().ok()) else { break };
            let len = injected.bytes.len() + usize::from(PREFIX);
            if len > memory.capacity() {
                self.counts.refused += 1;
                (self.too_large)(injected.port, injected.bytes.len());
                continue;
            }
            let Some(frame) = memory.take_for(len) else {
                self.next = Some(injected);
                break;
            };
            let bytes = memory.bytes_mut(&frame);
            bytes[..PREFIX.into()].copy_from_slice(&injected.port.to_be_bytes());
            bytes[PREFIX.into()..].copy_from_slice(&injected.bytes);
            frames.push(frame);
            received += 1;
        }
        self.counts.received += received as u64;
        Ok(received)
    }

    /// Takes frames, and lets them go: nothing is sent to controllers here.
    fn send(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>) -> Result<usize, Error> {
        let count = frames.len();
        frames.drain(..).for_each(|frame| memory.give(frame));
        self.counts.sent += count as u64;
        Ok(count)
    }

    fn held(&self) -> usize {
        0
    }

    fn close(&mut self, _: &mut Memory) {}

    /// Whether no frame waits: a worker whose other ports have ended does not wait for controllers.
    fn is_at_end(&self) -> bool {
        self.next.is_none()
    }

    fn counts(&self) -> PortCounts {
        self.counts
    }
}
