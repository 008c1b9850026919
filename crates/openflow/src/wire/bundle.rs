//! Bundles: changes that are made together, by extension 230 of the ONF to version 1.3.
//!
//! ```text
//! experimenter's message   ONF, 2300   bundle, step, flags                      a step in its life
//!                          ONF, 2301   bundle, 0, flags, message                a message for it
//! experimenter's error     ONF, 2300 + the code of version 1.4
//! ```
//!
//! The bodies are those of version 1.4 (specification 1.4.1, section 7.3.9).

use super::bytes::{Cursor, Out};
use super::failure::Failure;
use super::number::onf;
use super::reply::{begin, end};

/// A request about a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleControl {
    /// The number of the bundle, which is the controller's.
    pub id: u32,
    /// The step.
    pub step: BundleStep,
    /// The wishes for the commit: all or nothing, and in order. The switch does both anyway.
    pub flags: u16,
}

/// A step in the life of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum BundleStep {
    /// The bundle begins.
    Open = 0,
    /// No more messages come.
    Close = 2,
    /// All of its changes are made, or none.
    Commit = 4,
    /// The bundle is forgotten.
    Discard = 6,
}

/// A message for a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleAdd {
    /// The number of the bundle.
    pub id: u32,
    /// The flags of the bundle.
    pub flags: u16,
    /// The message, and what follows it, not checked yet.
    pub rest: Vec<u8>,
}

/// The flags that there are: all or nothing, and in order.
const FLAGS: u16 = 3;

/// Refuses properties: each is an experimenter's, and none is known.
pub(super) fn no_properties(rest: &[u8]) -> Result<(), Failure> {
    match rest {
        [] => Ok(()),
        [0xff, 0xff, ..] => Err(Failure::BAD_EXPERIMENTER),
        _ => Err(Failure::BAD_LEN),
    }
}

/// Checks the flags of a bundle.
pub(crate) fn check_flags(flags: u16) -> Result<(), Failure> {
    if flags & !FLAGS == 0 { Ok(()) } else { Err(Failure::BUNDLE_FLAGS) }
}

impl BundleControl {
    pub(super) fn read(body: &mut Cursor<'_>) -> Result<Self, Failure> {
        let (id, step, flags) = (body.u32()?, body.u16()?, body.u16()?);
        let step = match step {
            0 => BundleStep::Open,
            2 => BundleStep::Close,
            4 => BundleStep::Commit,
            6 => BundleStep::Discard,
            _ => return Err(Failure::BUNDLE_TYPE),
        };
        no_properties(body.rest())?;
        Ok(Self { id, step, flags })
    }

    /// The answer once the step is made.
    pub(crate) fn reply(self, xid: u32) -> Vec<u8> {
        let mut out = begin(4, xid);
        out.u32(onf::NUMBER);
        out.u32(onf::BUNDLE_CONTROL.into());
        out.u32(self.id);
        out.u16(self.step as u16 + 1);
        out.u16(self.flags);
        end(out)
    }
}

impl BundleAdd {
    pub(super) fn read(body: &mut Cursor<'_>) -> Result<Self, Failure> {
        let id = body.u32()?;
        body.skip(2)?;
        Ok(Self { id, flags: body.u16()?, rest: body.rest().to_vec() })
    }
}
