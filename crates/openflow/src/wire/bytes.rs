//! [`Cursor`] and [`Out`]: numbers in the order of the network, read with checks and written with lengths.

use super::failure::Failure;

/// The rest of bytes that are being read. Reading past the end is a failure that the caller names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'b> {
    bytes: &'b [u8],
    short: Failure,
}

impl<'b> Cursor<'b> {
    pub(crate) const fn new(bytes: &'b [u8], short: Failure) -> Self {
        Self { bytes, short }
    }

    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) const fn rest(&self) -> &'b [u8] {
        self.bytes
    }

    pub(crate) fn take(&mut self, bytes: usize) -> Result<&'b [u8], Failure> {
        let (taken, rest) = self.bytes.split_at_checked(bytes).ok_or(self.short)?;
        self.bytes = rest;
        Ok(taken)
    }

    pub(crate) fn skip(&mut self, bytes: usize) -> Result<(), Failure> {
        self.take(bytes).map(|_| ())
    }

    /// A part of its own, whose end is a failure of its own.
    pub(crate) fn part(&mut self, bytes: usize, short: Failure) -> Result<Self, Failure> {
        Ok(Self { bytes: self.take(bytes)?, short })
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Failure> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(self.short)?;
        self.bytes = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Failure> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Failure> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Failure> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Failure> {
        self.array().map(u64::from_be_bytes)
    }

    /// A number of at most 16 bytes.
    pub(crate) fn number(&mut self, bytes: usize) -> Result<u128, Failure> {
        Ok(self.take(bytes)?.iter().fold(0, |number, &byte| number << 8 | u128::from(byte)))
    }
}

/// Bytes that are being written.
pub(crate) trait Out {
    fn bytes(&mut self) -> &mut Vec<u8>;

    fn u8(&mut self, number: u8) {
        self.bytes().push(number);
    }

    fn u16(&mut self, number: u16) {
        self.bytes().extend(number.to_be_bytes());
    }

    fn u32(&mut self, number: u32) {
        self.bytes().extend(number.to_be_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.bytes().extend(number.to_be_bytes());
    }

    fn zeros(&mut self, bytes: usize) {
        let len = self.bytes().len() + bytes;
        self.bytes().resize(len, 0);
    }

    /// Writes the last bytes of a number.
    fn number(&mut self, number: u128, bytes: usize) {
        self.bytes().extend(&number.to_be_bytes()[16 - bytes..]);
    }

    /// Writes a text into a field of fixed width, with a zero at its end.
    fn text(&mut self, text: &str, bytes: usize) {
        let len = text.len().min(bytes - 1);
        self.bytes().extend(&text.as_bytes()[..len]);
        self.zeros(bytes - len);
    }

    /// Writes the number of bytes from `start` on as the 16 bits at `at`. What is written has fewer than
    /// 2^16 bytes.
    fn close(&mut self, start: usize, at: usize) {
        let len = u16::try_from(self.bytes().len() - start).unwrap_or(u16::MAX);
        self.bytes()[at..at + 2].copy_from_slice(&len.to_be_bytes());
    }

    /// Adds zeros up to a multiple of eight bytes from `start` on.
    fn pad(&mut self, start: usize) {
        let len = self.bytes().len() - start;
        self.zeros(len.next_multiple_of(8) - len);
    }
}

impl Out for Vec<u8> {
    fn bytes(&mut self) -> &mut Self {
        self
    }
}
