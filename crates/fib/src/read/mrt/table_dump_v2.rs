//! TABLE_DUMP_V2 (RFC 6396, 4.3; RFC 8050): a table of peers, then one record for each prefix with one entry
//! for each peer.
//!
//! ```text
//! | sequence 4 | length 1 | prefix | entries 2 | entry …         AFI-specific subtypes
//! | sequence 4 | AFI 2 | SAFI 1 | length 1 | prefix | entries 2 | entry …       generic; with add-path, the path's id
//! entry: | peer 2 | time 4 | path id 4 (add-path) | n 2 | attributes n |         comes before the length
//! ```
//!
//! An entry without a next hop (as old BIRDs write for IPv6, and for their own routes) has its peer as next
//! hop. A peer without an address is the collector itself, with the next hop `local`.

use super::Record;
use super::attributes::{AsWidth, Attributes, of_entry};
use super::octets::{Octets, family};
use crate::address::Family;
use crate::read::any_prefix::AnyPrefix;
use crate::read::error::{Fault, SkipReason};
use crate::read::peers::{PeerBook, PeerId};
use crate::read::report::Ledger;
use crate::read::table::Table;

const PEER_INDEX_TABLE: u16 = 1;
const UNICAST: u8 = 1;

/// The layout of a record's entries.
#[derive(Clone, Copy)]
struct Layout {
    prefix: AnyPrefix,
    /// Whether each entry has a path id.
    add_path: bool,
}

/// The table of peers, by index.
#[derive(Default)]
pub(super) struct View {
    peers: Vec<Listed>,
}

/// A peer, and the last record that named it, so that a peer with several paths counts once.
#[derive(Clone, Copy)]
struct Listed {
    peer: PeerId,
    last_record: u64,
}

impl View {
    pub(super) fn read(
        &mut self,
        record: &Record<'_>,
        table: &mut Table,
        book: &mut PeerBook,
        ledger: &mut Ledger,
    ) -> Result<(), Fault> {
        if record.subtype == PEER_INDEX_TABLE {
            return self.read_peers(record, book);
        }
        let mut body = Octets(record.body);
        let layout = start(record.subtype, &mut body)?;
        self.read_entries(record, layout, body, table, book, ledger)
    }

    fn read_peers(&mut self, record: &Record<'_>, book: &mut PeerBook) -> Result<(), Fault> {
        const V6: u8 = 1;
        const LONG_AS: u8 = 2;
        let mut body = Octets(record.body);
        let _collector = body.u32()?;
        let name_len = body.u16()?;
        let _view_name = body.take(usize::from(name_len))?;
        // If the peer table is malformed, no peer is known.
        self.peers.clear();
        let mut peers = Vec::new();
        for index in 0..body.u16()? {
            let kind = body.u8()?;
            let _id = body.u32()?;
            let address = body.address(if kind & V6 != 0 { Family::V6 } else { Family::V4 })?;
            let asn = if kind & LONG_AS != 0 { body.u32()? } else { u32::from(body.u16()?) };
            peers.push(Listed { peer: book.meet(address, asn, Some(index)), last_record: 0 });
        }
        self.peers = peers;
        book.all_met();
        Ok(())
    }

    fn read_entries(
        &mut self,
        record: &Record<'_>,
        Layout { prefix, add_path }: Layout,
        mut body: Octets<'_>,
        table: &mut Table,
        book: &mut PeerBook,
        ledger: &mut Ledger,
    ) -> Result<(), Fault> {
        let number = ledger.report.records;
        for _ in 0..body.u16()? {
            let index = usize::from(body.u16()?);
            let _time = body.u32()?;
            if add_path {
                let _path_id = body.u32()?;
            }
            let attributes_len = body.u16()?;
            let attributes = body.take(usize::from(attributes_len))?;
            let Listed { peer, last_record } = self.peers.get_mut(index).ok_or(SkipReason::UnknownPeer)?;
            if std::mem::replace(last_record, number) == number {
                ledger.pass(SkipReason::OtherPath, record.place);
                continue;
            }
            let peer = *peer;
            if !book.takes(peer, prefix.family())? {
                ledger.pass(SkipReason::OtherPeer, record.place);
                continue;
            }
            let next_hop = if table.origins {
                table.hop(Attributes::split(attributes)?.origin(AsWidth::Four, book.asn(peer))?.as_bytes())?
            } else {
                table.hop_address(of_entry(attributes, prefix.family())?.unwrap_or(book.address(peer)))?
            };
            table.insert(prefix, next_hop, ledger);
        }
        if body.is_empty() { Ok(()) } else { Err(SkipReason::Record.into()) }
    }
}

/// The part of a record before its entries.
fn start(subtype: u16, body: &mut Octets<'_>) -> Result<Layout, SkipReason> {
    let _sequence = body.u32()?;
    let (family, add_path) = match subtype {
        2 => (Family::V4, false),
        4 => (Family::V6, false),
        8 => (Family::V4, true),
        10 => (Family::V6, true),
        3 | 5 | 9 | 11 => return Err(SkipReason::OtherFamily),
        6 | 12 => {
            let (afi, safi) = (body.u16()?, body.u8()?);
            let family = family(afi).filter(|_| safi == UNICAST).ok_or(SkipReason::OtherFamily)?;
            if subtype == 12 {
                let _path_id = body.u32()?;
            }
            (family, false)
        }
        _ => return Err(SkipReason::OtherRecord),
    };
    Ok(Layout { prefix: body.prefix(family)?, add_path })
}
