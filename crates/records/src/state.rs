//! [`State`]: where within a record a byte is, by the quotes before it.
//!
//! A cell is quoted if its first byte is a quote; a quote elsewhere is text. The cutter and the scanner go
//! through the same states, so they agree on every input.

/// The position within a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// Before the first byte of a cell.
    #[default]
    Start,
    /// Bytes of a cell without quotes, or after the closing quote.
    Bare,
    /// Bytes within quotes.
    Quoted,
    /// After a quote within quotes: it closes the cell, or is the first of two.
    Closing,
}

impl State {
    /// The position after a byte.
    #[inline]
    pub(crate) fn after(self, byte: u8, separator: u8) -> Self {
        match (self, byte) {
            (Self::Quoted, b'"') => Self::Closing,
            (Self::Quoted, _) | (Self::Start | Self::Closing, b'"') => Self::Quoted,
            (_, b'\n') => Self::Start,
            (_, byte) if byte == separator => Self::Start,
            _ => Self::Bare,
        }
    }
}
