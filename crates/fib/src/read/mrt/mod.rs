//! MRT (RFC 6396, RFC 8050): tables in TABLE_DUMP and TABLE_DUMP_V2 records, updates in BGP4MP records.
//!
//! ```text
//!  0        4      6         8        12
//! | time   | type | subtype | length | body …        one record after the other, nothing before, between or after
//! ```
//!
//! One record is in memory at a time, and a hostile length is refused before any allocation for it. A record
//! of a table has dozens of entries; only the attributes of the wanted entry are read.
//!
//! `bgpkit-parser` is not used; the tests compare this reader with it. It reads a default route in a list of
//! prefixes as a path id of add-path (a first octet of 0), silently ends a record or list with a malformed
//! part, and does not know generic records. Strict reading could not be built on it.

mod attributes;
mod bgp4mp;
mod octets;
mod table_dump;
mod table_dump_v2;
#[cfg(test)]
mod tests;

use std::io::{self, Read};

use wirespeed_input::Input;

use super::error::{End, Fault, Place, SkipReason};
use super::mrt_header::{BGP4MP, BGP4MP_ET, HEADER, LONGEST, TABLE_DUMP, TABLE_DUMP_V2, split_header};
use super::peers::PeerBook;
use super::report::Ledger;
use super::table::Table;
use super::updates::Updates;

/// One record.
struct Record<'b> {
    place: Place,
    time: u32,
    kind: u16,
    subtype: u16,
    body: &'b [u8],
}

/// Gives every record to `take`, and the answer of `take` to the ledger.
fn each_record(
    input: &mut Input<'_>,
    ledger: &mut Ledger,
    mut take: impl FnMut(&Record<'_>, &mut Ledger) -> Result<(), Fault>,
) -> Result<(), End> {
    let mut body = Vec::new();
    loop {
        let place = Place::Byte(input.offset());
        let mut header = [0; HEADER];
        match read_full(input, &mut header) {
            Ok(0) => return Ok(()),
            Ok(HEADER) => {}
            Ok(_) => return ledger.cut(place, "the file ends inside the header of a record"),
            Err(error) => return ledger.broken(place, error),
        }
        let (time, kind, subtype, length) = split_header(&header);
        if length > LONGEST {
            ledger.fault(SkipReason::RecordTooLong.into(), place, "")?;
            // The start of the next record can't be known.
            return ledger.cut(place, format!("a record of {length} bytes, over {LONGEST}"));
        }
        body.clear();
        match (&mut *input).take(u64::from(length)).read_to_end(&mut body) {
            Ok(n) if n as u64 == u64::from(length) => {}
            Ok(n) => {
                return ledger.cut(place, format!("the file ends inside a record, {n} bytes into {length}"));
            }
            Err(error) => return ledger.broken(place, error),
        }
        ledger.report.records += 1;
        let record = Record { place, time, kind, subtype, body: &body };
        if let Err(fault) = take(&record, ledger) {
            ledger.fault(fault, place, "")?;
        }
    }
}

/// Fills `into` as far as the input goes. Returns the number of bytes.
fn read_full(input: &mut Input<'_>, into: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match input.read(&mut into[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

pub(super) fn read(
    input: &mut Input<'_>,
    ledger: &mut Ledger,
    table: &mut Table,
    book: &mut PeerBook,
) -> Result<(), End> {
    let mut view = table_dump_v2::View::default();
    each_record(input, ledger, |record, ledger| match record.kind {
        TABLE_DUMP => table_dump::read(record, table, book, ledger),
        TABLE_DUMP_V2 => view.read(record, table, book, ledger),
        _ => Err(SkipReason::OtherRecord.into()),
    })
}

pub(super) fn read_updates(
    input: &mut Input<'_>,
    ledger: &mut Ledger,
    updates: &mut Updates<'_>,
) -> Result<(), End> {
    each_record(input, ledger, |record, ledger| match record.kind {
        BGP4MP | BGP4MP_ET => bgp4mp::read(record, updates, ledger),
        _ => Err(SkipReason::OtherRecord.into()),
    })
}
