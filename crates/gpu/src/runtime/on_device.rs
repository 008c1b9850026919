//! [`DeviceKeys`], [`DeviceMemory`] and [`Enqueued`]: lookups of keys that are on the device already, in a
//! caller's memory and stream.

use wirespeed_image::device::Kind;

use super::Result;
use super::planes::Planes;
use crate::driver::DevicePtr;
use crate::error::GpuError;
use crate::numbers;

/// Alignment of both parts of keys in the layout of a kind of kernels.
const ALIGN: usize = 16;

/// A caller's memory on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceMemory {
    /// The address.
    pub at: DevicePtr,
    /// The number of bytes.
    pub bytes: usize,
}

/// Keys that are on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceKeys {
    pub(super) kind: Kind,
    pub(super) count: usize,
    pub(super) first: DevicePtr,
    pub(super) second: Option<DevicePtr>,
    pub(super) result_bytes: Option<usize>,
}

impl DeviceKeys {
    /// `count` keys of `key_bytes` bytes, in [`Planes`]. `second` is the second plane of keys that have one.
    pub const fn bytes(key_bytes: usize, first: DevicePtr, second: Option<DevicePtr>, count: usize) -> Self {
        Self { kind: Kind::Bytes(key_bytes), count, first, second, result_bytes: None }
    }

    /// `count` keys in the layout of this kind of kernels.
    pub const fn parts(
        kind: &'static str,
        first: DevicePtr,
        second: Option<DevicePtr>,
        count: usize,
    ) -> Self {
        Self { kind: Kind::Named(kind), count, first, second, result_bytes: None }
    }

    /// Sets the bytes of a result, for kernels whose results differ from the table's.
    #[must_use]
    pub const fn with_results_of(mut self, bytes: usize) -> Self {
        self.result_bytes = Some(bytes);
        self
    }

    /// The number of keys.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Fails if the planes are not those of keys of this width, or not aligned.
    pub(super) fn check(&self) -> Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let widths = match self.kind {
            Kind::Named(_) => [Some(ALIGN), self.second.map(|_| ALIGN)],
            Kind::Bytes(key_bytes) => {
                let (first, second) = Planes::of(key_bytes).widths();
                if self.second.is_some() != (second > 0) {
                    return Err(GpuError::Unsupported(format!("keys of {key_bytes} bytes in these planes")));
                }
                [Some(first), Some(second).filter(|&second| second > 0)]
            }
        };
        let places = [Some(self.first), self.second];
        widths.into_iter().zip(places).try_for_each(|(to, at)| match (to, at) {
            (Some(to), Some(at)) => aligned("keys", at, to),
            _ => Ok(()),
        })
    }
}

impl DeviceMemory {
    /// Fails unless it holds `count` results of `bytes` bytes.
    pub(super) fn check(&self, count: usize, bytes: usize) -> Result<()> {
        let needed = count.saturating_mul(bytes);
        if needed > self.bytes {
            return Err(GpuError::ResultMemory { count, needed, there: self.bytes });
        }
        if count == 0 { Ok(()) } else { aligned("results", self.at, bytes) }
    }
}

/// A misaligned access would lose the device for the whole process.
fn aligned(what: &'static str, at: DevicePtr, to: usize) -> Result<()> {
    if at.0.is_multiple_of(to as u64) { Ok(()) } else { Err(GpuError::Misaligned { what, to }) }
}

/// The result of putting a lookup of keys on the device into a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enqueued {
    /// Bytes of a result: 1, 2 or 4, or 8 for results of names with their lengths.
    pub result_bytes: usize,
    /// The version of the table's state that it sees ([`TableHandle::version`](super::TableHandle::version)).
    pub version: u64,
}

impl Enqueued {
    /// Reads results that were copied from the device. Panics if the number of results is not the length of
    /// `to`, or if they are not numbers.
    pub fn unpack(&self, results: &[u8], to: &mut [u32]) {
        assert!(self.result_bytes <= size_of::<u32>(), "results with lengths are no numbers");
        numbers::unpack(results, self.result_bytes, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: u64) -> DevicePtr {
        DevicePtr(address)
    }

    #[test]
    fn planes_are_those_of_the_width_and_aligned() {
        let fits = |key_bytes, first, second: Option<u64>| {
            DeviceKeys::bytes(key_bytes, at(first), second.map(at), 1).check()
        };
        for (key_bytes, to, second) in
            [(4, 4, None), (3, 2, Some(1)), (16, 16, None), (8, 8, None), (6, 4, Some(2))]
        {
            let first = to as u64;
            assert_eq!(fits(key_bytes, 16 + first, second), Ok(()), "{key_bytes}");
            let other = if second.is_some() { None } else { Some(16) };
            assert!(matches!(fits(key_bytes, 16, other), Err(GpuError::Unsupported(_))), "{key_bytes}");
            let odd = fits(key_bytes, 16 + first / 2, second);
            assert_eq!(odd, Err(GpuError::Misaligned { what: "keys", to }), "{key_bytes}");
        }
        assert_eq!(fits(6, 16, Some(1)), Err(GpuError::Misaligned { what: "keys", to: 2 }));
        let parts = |first, second| DeviceKeys::parts("t4", at(first), Some(at(second)), 1).check();
        assert_eq!(parts(32, 16), Ok(()));
        assert!(parts(8, 16).is_err() && parts(16, 8).is_err());
        // No key is read.
        assert_eq!(DeviceKeys::bytes(4, at(1), None, 0).check(), Ok(()));
    }

    #[test]
    fn memory_for_results_is_held_against_their_number_and_width() {
        let memory = |address, bytes| DeviceMemory { at: at(address), bytes };
        assert_eq!(memory(16, 200).check(100, 2), Ok(()));
        let short = GpuError::ResultMemory { count: 100, needed: 400, there: 399 };
        assert_eq!(memory(16, 399).check(100, 4), Err(short));
        assert!(memory(16, usize::MAX).check(usize::MAX, 1).is_ok());
        assert!(matches!(memory(16, 8).check(usize::MAX, 4), Err(GpuError::ResultMemory { .. })));
        assert_eq!(memory(17, 8).check(4, 2), Err(GpuError::Misaligned { what: "results", to: 2 }));
        assert_eq!(memory(17, 0).check(0, 4), Ok(()));
    }

    #[test]
    fn results_of_all_widths_become_numbers() {
        let read = |result_bytes, bytes: &[u8]| {
            let mut to = [7; 2];
            Enqueued { result_bytes, version: 0 }.unpack(bytes, &mut to);
            to
        };
        assert_eq!(read(1, &[3, 255]), [3, 255]);
        assert_eq!(read(2, &[3, 1, 255, 255]), [0x103, 0xffff]);
        assert_eq!(read(4, &[3, 1, 0, 1, 0, 0, 0, 0]), [0x0100_0103, 0]);
    }
}
