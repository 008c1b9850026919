//! Frames of messages: a header whose length is set once the body is written, and answers in parts.

use super::bytes::Out;
use super::failure::Failure;
use super::header::VERSION;
use super::number::onf;

/// The bytes of a part of a long answer, with head room for one more element.
const PART: usize = 60_000;

/// Begins a message.
pub(crate) fn begin(kind: u8, xid: u32) -> Vec<u8> {
    let mut out = vec![VERSION, kind, 0, 0];
    out.u32(xid);
    out
}

/// Ends a message: sets its length.
pub(crate) fn end(mut out: Vec<u8>) -> Vec<u8> {
    out.close(0, 2);
    out
}

/// A message without a body.
pub(crate) fn bare(kind: u8, xid: u32) -> Vec<u8> {
    end(begin(kind, xid))
}

/// An error about a message, with the first 64 bytes of it.
pub(crate) fn error(failure: Failure, message: &[u8], xid: u32) -> Vec<u8> {
    let mut out = begin(1, xid);
    // Errors about bundles are the ONF's.
    if failure.kind == 17 {
        out.u16(0xffff);
        out.u16(onf::BUNDLE_CONTROL + failure.code);
        out.u32(onf::NUMBER);
    } else {
        out.u16(failure.kind);
        out.u16(failure.code);
    }
    out.extend(&message[..message.len().min(64)]);
    end(out)
}

/// An answer that may take several messages.
pub(crate) struct Parts<'s> {
    kind: u16,
    xid: u32,
    out: Vec<u8>,
    send: &'s mut dyn FnMut(Vec<u8>),
}

impl<'s> Parts<'s> {
    pub(crate) fn new(kind: u16, xid: u32, send: &'s mut dyn FnMut(Vec<u8>)) -> Self {
        Self { kind, xid, out: Self::head(kind, xid), send }
    }

    fn head(kind: u16, xid: u32) -> Vec<u8> {
        let mut out = begin(19, xid);
        out.u16(kind);
        out.zeros(6);
        out
    }

    /// Where the next element of at most `most` bytes is written. Sends what is full.
    pub(crate) fn element(&mut self, most: usize) -> &mut Vec<u8> {
        if self.out.len() > 16 && self.out.len() + most > PART {
            let mut full = std::mem::replace(&mut self.out, Self::head(self.kind, self.xid));
            // More follows.
            full[11] = 1;
            (self.send)(end(full));
        }
        &mut self.out
    }

    /// Sends the last part.
    pub(crate) fn finish(self) {
        (self.send)(end(self.out));
    }
}
