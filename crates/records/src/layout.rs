//! [`Layout`]: where the wanted columns of records are, and how new ones are added.

use crate::cell::is_unset;
use crate::delimited::Delimited;
use crate::encode::{Encoder, Kind};
use crate::json::Members;
use crate::records::Records;
use crate::state::State;

/// The columns that are wanted of records, and those that are added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Names of columns; of JSON, names of members or paths with dots. One may be wanted more than once.
    pub wanted: Vec<String>,
    /// Names among the wanted that may be numbers in JSON, too, as ports are. Others are text or null.
    pub numbers: Vec<String>,
    /// Names of new columns. They are not yet there, and differ.
    pub added: Vec<String>,
}

/// The form of the records of a block.
#[derive(Clone, Debug)]
pub struct Layout {
    pub(crate) form: Form,
    encoder: Encoder,
    leads: Vec<Vec<u8>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Form {
    Delimited(Delimited),
    Json(Members),
}

impl Layout {
    pub(crate) fn new(form: Form, encoder: Encoder, added: &[String]) -> Self {
        let leads = added.iter().map(|name| encoder.lead(name)).collect();
        Self { form, encoder, leads }
    }

    /// Scans a block of whole records. Takes time linear in its length, and no memory for each record once
    /// `records` has grown.
    pub fn scan(&self, block: &[u8], records: &mut Records) {
        self.scan_part(block, block.len(), records);
    }

    /// Scans whole records from the start of a block, until there are so many bytes of them or no more.
    /// Returns the end of the last one: what follows is a block, too. Parts that fit the nearest caches are
    /// scanned and worked on faster than all at once.
    pub fn scan_part(&self, block: &[u8], bytes: usize, records: &mut Records) -> usize {
        let bytes = bytes.max(1);
        match &self.form {
            Form::Delimited(form) => {
                records.begin(form.order.len());
                form.scan(block, bytes, records);
            }
            Form::Json(members) => {
                records.begin(members.wanted.len());
                members.scan(block, bytes, records);
            }
        }
        if let Encoder(Kind::Zeek { unset, empty, .. }) = &self.encoder {
            // The usual marks say of cells of every format that they are empty.
            let own = [unset.as_slice(), empty].map(|mark| if is_unset(mark) { b"-" } else { mark });
            if own != [b"-"; 2] {
                records.clear(block, &own);
            }
            records.unescape(block);
        }
        records.end()
    }

    /// The bytes before the value of a new column: a separator, or the name of a member. `is_first` says that
    /// the record has nothing before it.
    ///
    /// Panics if there is no such column.
    #[must_use]
    pub fn lead(&self, added: usize, is_first: bool) -> &[u8] {
        &self.leads[added][usize::from(is_first)..]
    }

    /// The bytes before the value of every new column, if all have the same: a separator.
    #[must_use]
    pub fn separator(&self) -> Option<&[u8]> {
        match self.form {
            Form::Delimited(_) => self.leads.first().map(|lead| &**lead),
            Form::Json(_) => None,
        }
    }

    /// The encoder of values.
    #[must_use]
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }
}

/// The cells of one record, without quotes. `None` if its quotes are wrong.
pub(crate) fn cells(record: &[u8], separator: u8, quotes: bool) -> Option<Vec<String>> {
    let (mut cells, mut cell, mut state) = (Vec::new(), Vec::new(), State::Start);
    let mut was_quoted = false;
    for &byte in record {
        if !quotes && byte != separator {
            cell.push(byte);
            continue;
        }
        let before = state;
        state = state.after(byte, separator);
        match (before, state) {
            (_, State::Start) => {
                cells.push(String::from_utf8_lossy(&cell).into_owned());
                cell.clear();
                was_quoted = false;
            }
            (State::Start, State::Quoted) => was_quoted = true,
            (State::Quoted, State::Closing) => {}
            (_, State::Bare) if was_quoted => return None,
            _ => cell.push(byte),
        }
    }
    if state == State::Quoted {
        return None;
    }
    cells.push(String::from_utf8_lossy(&cell).into_owned());
    Some(cells)
}
