//! Packets of tunnels into a chunk, and out of it: the CPU's part before the device and behind it.

use super::chunk::Chunk;
use crate::error::Error;
use crate::fault::Fault;
use crate::open::{Opened, Opening};
use crate::seal::Unsealed;

impl Chunk<'_> {
    /// Puts a packet with its headers into the chunk, to be sealed: its frame, from the ESP header on. `keys`
    /// is the number of its association's keys on the device; the caller has set them there. Fails like
    /// [`place`](Self::place).
    pub fn push_unsealed(&mut self, keys: u32, unsealed: &Unsealed<'_>, packet: &[u8]) -> Result<(), Error> {
        self.push(keys, unsealed.high().unwrap_or(0), &packet[unsealed.start()..])
    }

    /// Copies a sealed frame back into its packet.
    ///
    /// Panics if there is no frame with this number, or if the packet has another length than before.
    pub fn sealed(&self, at: usize, unsealed: &Unsealed<'_>, packet: &mut [u8]) {
        packet[unsealed.start()..].copy_from_slice(self.frame(at));
        unsealed.finish(packet);
    }

    /// Puts a packet that came into the chunk, to be opened. `keys` is the number of its association's keys
    /// on the device; the caller has set them there. Fails like [`place`](Self::place).
    pub fn push_opening(&mut self, keys: u32, opening: &Opening<'_>, packet: &[u8]) -> Result<(), Error> {
        self.push(keys, opening.high().unwrap_or(0), &packet[opening.frame()])
    }

    /// Copies an opened frame back into its packet, and finds the inner packet, like
    /// [`open`](fn@crate::open).
    ///
    /// Panics if there is no frame with this number, or if the packet has another length than before.
    pub fn opened(&self, at: usize, opening: &Opening<'_>, packet: &mut [u8]) -> Result<Opened, Fault> {
        opening.finish(packet, self.is_right(at), |packet| {
            packet[opening.frame()].copy_from_slice(self.frame(at));
            Ok(())
        })
    }
}
