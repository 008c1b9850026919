//! The keys of a block's records, a column after the other.

use std::net::IpAddr;

use wirespeed::IpReader;
use wirespeed::names::NameBatch;
use wirespeed::names::read::Former;
use wirespeed_commands::enrich::{self, Key, Kind, Placed, flow, in_family, push_name};
use wirespeed_commands::rules::Flow;
use wirespeed_fib::NextHop;
use wirespeed_records::Records;

/// The cells of a block.
#[derive(Clone, Copy)]
pub(super) struct Cells<'a> {
    pub(super) block: &'a [u8],
    pub(super) records: &'a Records,
}

impl<'a> Cells<'a> {
    fn len(self) -> usize {
        self.records.records().len()
    }

    /// The cell of a record. Those of a wrong record are empty.
    #[inline]
    pub(super) fn cell(self, record: usize, column: usize) -> &'a [u8] {
        self.records.cell(self.block, record, column)
    }
}

/// A cell that is not what its column has to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrongCell {
    pub(super) record: usize,
    pub(super) column: usize,
}

/// The keys of a column, or of the columns of a 5-tuple.
pub(super) type Keys = enrich::Keys<Addresses>;

/// The addresses of a column. Most are of IPv4, so these are looked up as they lie.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    /// The IPv4 address of each record; of a record without one, any.
    pub(super) v4: Vec<u32>,
    /// The IPv6 addresses that are not IPv4-mapped, and their records.
    pub(super) v6: Vec<u128>,
    pub(super) of_v6: Vec<usize>,
    /// The records without an address.
    pub(super) none: Vec<usize>,
}

pub(super) fn new(kind: Kind) -> Keys {
    match kind {
        Kind::Addresses => Keys::Addresses(Addresses::default()),
        Kind::Names | Kind::Domains => Keys::Names(Placed::default()),
        Kind::Rules => Keys::Flows(Placed::default()),
    }
}

/// Takes the keys out of the cells. Returns how many there are. `wrong` gets the cells that hold none.
pub(super) fn parse(
    keys: &mut Keys,
    of: &Key,
    cells: Cells<'_>,
    former: &mut Former,
    wrong: &mut Vec<WrongCell>,
) -> usize {
    match keys {
        Keys::Addresses(addresses) => addresses.parse(of, cells, wrong),
        Keys::Names(names) => {
            names.keys.clear();
            let cell = |record| cells.cell(record, of.first).trim_ascii();
            let push = |names: &mut NameBatch, record| {
                push_name(names, of.kind, cell(record), former).map_err(|()| of.first)
            };
            place(names, cells.len(), push, wrong)
        }
        Keys::Flows(flows) => {
            flows.keys.clear();
            let push = |flows: &mut Vec<Flow>, record| {
                let cell = |at| cells.cell(record, of.first + at).trim_ascii();
                let flow = flow(&of.columns, cell, |at| of.address(cell(at)));
                let flow = flow.map_err(|at| of.first + at)?;
                let place = u32::try_from(flows.len()).map_err(|_| of.first)?;
                flows.extend(flow);
                Ok(flow.map(|_| place))
            };
            place(flows, cells.len(), push, wrong)
        }
    }
}

/// The number of addresses or flows of IPv4, and of IPv6.
pub(super) fn by_family(keys: &Keys) -> [u64; 2] {
    let (all, v6) = match keys {
        Keys::Addresses(Addresses { v4, v6, none, .. }) => (v4.len() - none.len(), v6.len()),
        Keys::Names(_) => (0, 0),
        Keys::Flows(flows) => (flows.keys.len(), flows.keys.iter().filter(|flow| flow.src.is_ipv6()).count()),
    };
    [(all - v6) as u64, v6 as u64]
}

impl Addresses {
    fn parse(&mut self, of: &Key, cells: Cells<'_>, wrong: &mut Vec<WrongCell>) -> usize {
        let column = of.first;
        let Self { v4, v6, of_v6, none } = self;
        v4.clear();
        v6.clear();
        of_v6.clear();
        none.clear();
        // First those that are no IPv4 address as they stand.
        cells.records.dotted(cells.block, column, v4, none);
        none.retain(|&record| {
            let parsed = of.address(cells.cell(record, column).trim_ascii());
            match parsed.unwrap_or_default() {
                Some(IpAddr::V4(address)) => v4[record] = address.to_bits(),
                Some(IpAddr::V6(address)) => {
                    v6.push(address.to_bits());
                    of_v6.push(record);
                }
                None if parsed.is_err() => wrong.push(WrongCell { record, column }),
                None => {}
            }
            !matches!(parsed, Ok(Some(_)))
        });
        cells.len() - none.len()
    }
}

impl enrich::Addresses for Addresses {
    fn look_up(&self, reader: &IpReader, prefix: bool, indexes: &mut Vec<NextHop>, lengths: &mut Vec<u8>) {
        let Self { v4, v6, of_v6, none } = self;
        if v6.len() + none.len() < v4.len() {
            in_family(reader.v4(), v4, prefix, indexes, lengths);
        } else {
            indexes.resize(v4.len(), NextHop::NONE);
            lengths.resize(v4.len(), 0);
        }
        if !v6.is_empty() {
            let (mut found, mut lengths_found) = (Vec::new(), Vec::new());
            in_family(reader.v6(), v6, prefix, &mut found, &mut lengths_found);
            for (place, &record) in of_v6.iter().enumerate() {
                indexes[record] = found[place];
                lengths[record] = lengths_found[place];
            }
        }
        for &record in none {
            indexes[record] = NextHop::NONE;
        }
    }

    fn of(&self, record: usize) -> IpAddr {
        match self.of_v6.binary_search(&record) {
            Ok(place) => IpAddr::V6(self.v6[place].into()),
            Err(_) => IpAddr::V4(self.v4[record].into()),
        }
    }
}

/// Takes the keys of records by `push`, which returns the place of a key, or the column that is wrong.
fn place<K>(
    placed: &mut Placed<K>,
    records: usize,
    mut push: impl FnMut(&mut K, usize) -> Result<Option<u32>, usize>,
    wrong: &mut Vec<WrongCell>,
) -> usize {
    let Placed { keys, places } = placed;
    places.clear();
    places.extend((0..records).map(|record| {
        push(keys, record).unwrap_or_else(|column| {
            wrong.push(WrongCell { record, column });
            None
        })
    }));
    places.iter().flatten().count()
}
