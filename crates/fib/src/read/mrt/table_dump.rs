//! TABLE_DUMP (RFC 6396, 4.2), the old format: one record for each entry, with its peer.
//!
//! ```text
//! | view 2 | sequence 2 | prefix 4/16 | length 1 | status 1 | time 4 | peer 4/16 | AS 2 | n 2 | attributes n |
//! ```
//!
//! Early collectors wrote several entries with one view and sequence number. These are read, too.

use super::Record;
use super::attributes::{AsWidth, Attributes, of_entry};
use super::octets::{Octets, family};
use crate::read::any_prefix::AnyPrefix;
use crate::read::error::{Fault, SkipReason};
use crate::read::peers::PeerBook;
use crate::read::report::Ledger;
use crate::read::table::Table;

pub(super) fn read(
    record: &Record<'_>,
    table: &mut Table,
    book: &mut PeerBook,
    ledger: &mut Ledger,
) -> Result<(), Fault> {
    // The subtype is the family's number.
    let family = family(record.subtype).ok_or(SkipReason::OtherFamily)?;
    let mut body = Octets(record.body);
    let _view_and_sequence = body.u32()?;
    loop {
        let address = body.address(family)?;
        let prefix = AnyPrefix::from_ip(address, u32::from(body.u8()?))?;
        let _status = body.u8()?;
        let _time = body.u32()?;
        let peer_address = body.address(family)?;
        let asn = body.u16()?;
        let attributes_len = body.u16()?;
        let attributes = body.take(usize::from(attributes_len))?;
        let peer = book.meet(peer_address, u32::from(asn), None);
        if book.takes(peer, family)? {
            let next_hop = if table.origins {
                table.hop(Attributes::split(attributes)?.origin(AsWidth::Two, u32::from(asn))?.as_bytes())?
            } else {
                table.hop_address(of_entry(attributes, family)?.unwrap_or(peer_address))?
            };
            table.insert(prefix, next_hop, ledger);
        } else {
            ledger.pass(SkipReason::OtherPeer, record.place);
        }
        if body.is_empty() {
            return Ok(());
        }
    }
}
