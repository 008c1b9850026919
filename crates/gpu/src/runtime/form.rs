//! [`Form`]: the layout of a batch's keys, and the kernels for it.
//!
//! ```text
//! keys of so many bytes   k k k k …             (to 16 bytes)  l l l l …        Planes
//! of any length           where each ends, …    (to 16 bytes)  their bytes      what the kernel of that name makes of it
//!                         first part                           second part
//! ```
//!
//! For this module both are bytes with a second part at an offset. Only the kernel knows their meaning.

use super::planes::Planes;
use wirespeed_image::device::Kind;

/// The layout of a batch's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    kind: Kind,
    count: usize,
    second: Option<usize>,
    bytes: usize,
    result_bytes: Option<usize>,
}

impl Form {
    /// The form of `count` keys of `key_bytes` bytes, in the layout of [`Planes`]. `None` if the size
    /// overflows.
    pub fn keys(key_bytes: usize, count: usize) -> Option<Self> {
        let planes = Planes::of(key_bytes);
        let bytes = planes.bytes(count)?;
        let (kind, second) = (Kind::Bytes(key_bytes), planes.low(count));
        Some(Self { kind, count, second, bytes, result_bytes: None })
    }

    /// The form of `count` keys in `bytes` bytes, whose second part starts at `second`, a multiple of 16, for
    /// kernels of this kind. The offsets in the first part must be right: kernels follow them.
    pub const fn parts(kind: &'static str, count: usize, second: usize, bytes: usize) -> Self {
        Self { kind: Kind::Named(kind), count, second: Some(second), bytes, result_bytes: None }
    }

    /// Sets the bytes of a result, for kernels whose results differ from the table's.
    #[must_use]
    pub const fn with_results_of(mut self, bytes: usize) -> Self {
        self.result_bytes = Some(bytes);
        self
    }

    /// The name that kernels have for this layout.
    pub const fn kind(self) -> Kind {
        self.kind
    }

    /// Number of keys.
    pub const fn count(self) -> usize {
        self.count
    }

    /// The offset of the second part, if there is one.
    pub const fn second(self) -> Option<usize> {
        self.second
    }

    /// Bytes from the start of the first part to the end of the last part.
    pub const fn bytes(self) -> usize {
        self.bytes
    }

    /// Bytes of a result, if they differ from the table's.
    pub const fn result_bytes(self) -> Option<usize> {
        self.result_bytes
    }

    /// The form of the first `count` keys, in the same memory. Layouts of keys of any length allow this.
    #[must_use]
    pub(super) fn first(self, count: usize) -> Self {
        let count = count.min(self.count);
        match self.kind {
            Kind::Bytes(key_bytes) => Self::keys(key_bytes, count).unwrap_or(self),
            Kind::Named(_) => Self { count, ..self },
        }
    }

    /// Rounds the bytes up, to at most `most`, so that batches of similar sizes have equal bytes. The bytes
    /// after the keys are transferred, too.
    #[must_use]
    pub(super) fn rounded(self, most: usize) -> Self {
        match self.kind {
            Kind::Bytes(_) => self,
            Kind::Named(_) => {
                let step = (self.bytes.next_power_of_two() / STEPS).max(16);
                Self { bytes: self.bytes.next_multiple_of(step).min(most.max(self.bytes)), ..self }
            }
        }
    }
}

/// The steps in a power of two to which bytes of recorded batches are rounded. Half of the steps lie between
/// one power of two and the next.
const STEPS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_lie_in_planes() {
        let form = Form::keys(6, 5).unwrap();
        assert_eq!((form.count(), form.second(), form.bytes()), (5, Some(32), 42));
        assert_eq!(form.first(2), Form::keys(6, 2).unwrap());
        assert_eq!(form.rounded(1000), form);
        assert_eq!(Form::keys(4, usize::MAX), None);
    }

    #[test]
    fn parts_stay_where_they_are() {
        let form = Form::parts("packed", 100, 224, 5000).with_results_of(8);
        let part = form.first(40);
        assert_eq!(
            (part.count(), part.second(), part.bytes(), part.result_bytes()),
            (40, Some(224), 5000, Some(8))
        );
        assert_eq!(form.rounded(1 << 20).bytes(), 5120);
        assert_eq!(Form::parts("packed", 100, 224, 5001).rounded(1 << 20).bytes(), 5120);
        assert_eq!(form.rounded(5050).bytes(), 5050);
    }
}
