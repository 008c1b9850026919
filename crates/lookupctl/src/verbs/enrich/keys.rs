//! The keys of a block's records, a column after the other.

use std::net::IpAddr;

use wirespeed::names::NameBatch;
use wirespeed::names::read::Former;
use wirespeed_commands::enrich::{Key, Kind, flow, push_name};
use wirespeed_commands::rules::Flow;
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
pub(super) enum Keys {
    Addresses(Addresses),
    Names(Placed<NameBatch>),
    Flows(Placed<Vec<Flow>>),
}

/// The addresses of a column. Most are of IPv4, so these are looked up as they lie.
#[derive(Default)]
pub(super) struct Addresses {
    /// The IPv4 address of each record; of a record without one, any.
    pub(super) v4: Vec<u32>,
    /// The IPv6 addresses that are not IPv4-mapped, and their records.
    pub(super) v6: Vec<u128>,
    pub(super) of_v6: Vec<usize>,
    /// The records without an address.
    pub(super) none: Vec<usize>,
}

/// The keys of those records that have one.
#[derive(Default)]
pub(super) struct Placed<K> {
    pub(super) keys: K,
    /// The place of each record's key.
    pub(super) places: Vec<Option<u32>>,
}

impl Keys {
    pub(super) fn new(kind: Kind) -> Self {
        match kind {
            Kind::Addresses => Self::Addresses(Addresses::default()),
            Kind::Names | Kind::Domains => Self::Names(Placed::default()),
            Kind::Rules => Self::Flows(Placed::default()),
        }
    }

    /// Takes the keys out of the cells. Returns how many there are. `wrong` gets the cells that hold none.
    pub(super) fn parse(
        &mut self,
        of: &Key,
        cells: Cells<'_>,
        former: &mut Former,
        wrong: &mut Vec<WrongCell>,
    ) -> usize {
        match self {
            Self::Addresses(addresses) => addresses.parse(of, cells, wrong),
            Self::Names(names) => {
                names.keys.clear();
                let cell = |record| cells.cell(record, of.first).trim_ascii();
                let push = |names: &mut NameBatch, record| {
                    push_name(names, of.kind, cell(record), former).map_err(|()| of.first)
                };
                names.parse(cells.len(), push, wrong)
            }
            Self::Flows(flows) => {
                flows.keys.clear();
                let push = |flows: &mut Vec<Flow>, record| {
                    let cell = |at| cells.cell(record, of.first + at).trim_ascii();
                    let flow = flow(&of.columns, cell, |at| of.address(cell(at)));
                    let flow = flow.map_err(|at| of.first + at)?;
                    let place = u32::try_from(flows.len()).map_err(|_| of.first)?;
                    flows.extend(flow);
                    Ok(flow.map(|_| place))
                };
                flows.parse(cells.len(), push, wrong)
            }
        }
    }
}

impl Keys {
    /// The number of addresses or flows of IPv4, and of IPv6.
    pub(super) fn by_family(&self) -> [u64; 2] {
        let (all, v6) = match self {
            Self::Addresses(Addresses { v4, v6, none, .. }) => (v4.len() - none.len(), v6.len()),
            Self::Names(_) => (0, 0),
            Self::Flows(flows) => {
                (flows.keys.len(), flows.keys.iter().filter(|flow| flow.src.is_ipv6()).count())
            }
        };
        [(all - v6) as u64, v6 as u64]
    }
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

    /// The address of a record that has one.
    pub(super) fn of(&self, record: usize) -> IpAddr {
        match self.of_v6.binary_search(&record) {
            Ok(place) => IpAddr::V6(self.v6[place].into()),
            Err(_) => IpAddr::V4(self.v4[record].into()),
        }
    }
}

impl<K> Placed<K> {
    /// Takes the keys of records by `push`, which returns the place of a key, or the column that is wrong.
    fn parse(
        &mut self,
        records: usize,
        mut push: impl FnMut(&mut K, usize) -> Result<Option<u32>, usize>,
        wrong: &mut Vec<WrongCell>,
    ) -> usize {
        self.places.clear();
        let Self { keys, places } = self;
        places.extend((0..records).map(|record| {
            push(keys, record).unwrap_or_else(|column| {
                wrong.push(WrongCell { record, column });
                None
            })
        }));
        places.iter().flatten().count()
    }

    /// The place of a record's key.
    pub(super) fn place(&self, record: usize) -> Option<usize> {
        self.places[record].map(|place| place as usize)
    }
}
