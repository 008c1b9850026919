//! The findings of a reading beside routes: a report for the caller, and the ledger in which readers collect
//! it.
//!
//! The ledger also decides between strict and lenient reading: a reader gives it every fault, and the ledger
//! counts the fault or makes it the error that ends the reading.

use std::fmt::{self, Display};
use std::io;
use std::net::IpAddr;

use wirespeed_input::{Compression, Input, plural};

use super::error::{End, Fault, Place, ReadError, Reason, SkipReason};
use super::field_type::FieldTypes;
use super::format::Format;

/// The next hop of all prefixes in a list without next hops. Its index is 1.
pub const MEMBER: &str = "member";

/// The report of a reading. Displays as a few lines of text.
#[derive(Clone, Debug)]
pub struct ReadReport<F = Format, R = SkipReason> {
    /// The file.
    pub name: String,
    /// The format, recognised or given.
    pub format: F,
    /// The compression of the file.
    pub compression: Compression,
    /// Lines, entries or records read.
    pub records: u64,
    /// Routes, names or updates taken.
    pub routes: u64,
    /// Routes, names or updates for a prefix that was there already. Only the last one for a prefix counts,
    /// except in ranges of clouds, whose values are joined.
    pub repeated: u64,
    /// Routes or updates whose host bits were cleared.
    pub masked: u64,
    /// Whether the file is a list of prefixes without next hops, so that all have the next hop
    /// [`MEMBER`](MEMBER).
    pub is_list: bool,
    /// Whether texts of next hops are fields by name (`asn=13335,country=US`).
    pub names_fields: bool,
    /// The types of the fields of a MaxMind DB.
    pub field_types: FieldTypes,
    /// Lines, entries or records that were passed over, by reason, in order of first appearance.
    pub skipped: Vec<Skipped<R>>,
    /// The peers that the file names (MRT and `bgpdump`).
    pub peers: Vec<Peer>,
    /// The lost end of a truncated file (lenient reading only).
    pub truncated: Option<Loss>,
}

/// A reason for passing over, with its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped<R = SkipReason> {
    /// The reason.
    pub reason: R,
    /// The number of lines, entries or records.
    pub count: u64,
    /// The place of the first one.
    pub first: Place,
}

/// The lost end of a file that is truncated or can't be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The place where the lost part starts.
    pub place: Place,
    /// The reason.
    pub reason: String,
}

/// A BGP peer of the collector that wrote a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// The peer's index in the file's peer table, if there is one.
    pub index: Option<u16>,
    /// Its address.
    pub address: IpAddr,
    /// Its AS number.
    pub asn: u32,
    /// The peer's prefixes of a table, or its updates (IPv4, IPv6), as far as they were read.
    pub prefixes: [u64; 2],
    /// Whether the peer's routes (IPv4, IPv6) were taken.
    pub chosen: [bool; 2],
}

impl<F, R: Reason> ReadReport<F, R> {
    fn new(input: &Input<'_>, format: F) -> Self {
        Self {
            name: input.name().to_owned(),
            format,
            compression: input.compression(),
            records: 0,
            routes: 0,
            repeated: 0,
            masked: 0,
            field_types: FieldTypes::default(),
            is_list: false,
            names_fields: false,
            skipped: Vec::new(),
            peers: Vec::new(),
            truncated: None,
        }
    }

    /// The number of lines, entries or records that were passed over for a reason.
    pub fn skipped_for(&self, reason: R) -> u64 {
        self.skipped.iter().filter(|s| s.reason.same_kind(reason)).map(|s| s.count).sum()
    }

    /// The number of errors in the file that lenient reading passed over.
    pub fn faults(&self) -> u64 {
        self.skipped.iter().filter(|s| s.reason.is_fault()).map(|s| s.count).sum()
    }

    /// The peers whose routes were taken.
    pub fn chosen_peers(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter().filter(|peer| peer.chosen != [false; 2])
    }

    /// The peers whose routes were taken, by family (IPv4, IPv6), for [`ReadOptions::peers_of_table`] when
    /// updates of the table are read. `None` if there is no single peer.
    ///
    /// [`ReadOptions::peers_of_table`]: super::ReadOptions::peers_of_table
    pub fn peer_by_family(&self) -> [Option<Peer>; 2] {
        [0, 1].map(|family| {
            let mut chosen = self.peers.iter().filter(|peer| peer.chosen[family]);
            chosen.next().copied().filter(|_| chosen.next().is_none())
        })
    }
}

impl<F: Display, R: Reason> Display for ReadReport<F, R> {
    #[inline(never)] // one copy for all crates
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, format, records, routes, .. } = self;
        let noun = plural(*records, "record");
        write!(f, "{name}: {format}{}, {records} {noun}, {routes} taken", self.compression)?;
        if self.repeated > 0 {
            write!(f, ", {} of them for a prefix already there", self.repeated)?;
        }
        if self.masked > 0 {
            write!(f, ", {} of them with host bits that were masked", self.masked)?;
        }
        if self.is_list {
            write!(f, "\n  a list of prefixes without next hops: each has the next hop {}", super::MEMBER)?;
        }
        self.write_peers(f)?;
        for Skipped { reason, count, first } in &self.skipped {
            if ![R::BLANK, R::COMMENT].contains(reason) {
                write!(f, "\n  passed over {count}: {reason} (first at {name}{first})")?;
            }
        }
        if let Some(Loss { place, reason }) = &self.truncated {
            write!(f, "\n  cut off at {name}{place}: {reason}; what comes before it is whole")?;
        }
        Ok(())
    }
}

impl<F, R: Reason> ReadReport<F, R> {
    /// Writes a line on the peers that were taken.
    fn write_peers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.peers.len();
        let of_all = |taken: usize| match all {
            1 => "the only one".to_owned(),
            _ if taken == 1 => format!("one of {all} peers"),
            _ => format!("of {all} peers"),
        };
        let chosen: Vec<_> = self.chosen_peers().collect();
        match (&chosen[..], self.peer_by_family()) {
            ([], _) => Ok(()),
            ([peer], _) => write!(f, "\n  taken from {peer}, {}", of_all(1)),
            (_, [Some(v4), Some(v6)]) => {
                write!(f, "\n  taken from {v4} for IPv4 and {v6} for IPv6, {}", of_all(2))
            }
            (mixed, _) => write!(f, "\n  taken from {} of {all} peers, mixed", mixed.len()),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "peer {} AS{}", self.address, self.asn)?;
        self.index.map_or(Ok(()), |index| write!(f, " (number {index})"))
    }
}

/// A function that takes a line or a record with its place.
pub(super) type Take<'t, L, F, R> =
    &'t mut dyn FnMut(&L, Place, &mut Ledger<F, R>) -> Result<(), Fault<F, R>>;

/// The report during a reading.
#[derive(Debug)]
pub struct Ledger<F = Format, R = SkipReason> {
    /// The findings so far.
    pub report: ReadReport<F, R>,
    lenient: bool,
    /// Whether host bits of prefixes are cleared instead of refused.
    pub(super) masks_host_bits: bool,
}

impl<F, R: Reason> Ledger<F, R> {
    /// Makes an empty ledger for an input.
    pub fn new(input: &Input<'_>, format: F, lenient: bool) -> Self {
        Self { report: ReadReport::new(input, format), lenient, masks_host_bits: false }
    }

    /// Counts a line that both modes pass over.
    pub fn pass(&mut self, reason: R, place: Place) {
        match self.report.skipped.iter_mut().find(|s| s.reason.same_kind(reason)) {
            Some(skipped) => skipped.count += 1,
            None => self.report.skipped.push(Skipped { reason, count: 1, first: place }),
        }
    }

    /// Takes a parser's fault. `what` is the wrong text, or other helpful text.
    pub fn fault(
        &mut self,
        fault: Fault<F, R>,
        place: Place,
        what: impl AsRef<[u8]>,
    ) -> Result<(), End<F, R>> {
        match fault {
            Fault::Skip(reason) if self.lenient || !reason.is_fault() => self.pass(reason, place),
            Fault::Skip(reason) => {
                let name = self.report.name.clone();
                return Err(ReadError::Bad { name, place, reason, detail: excerpt(what.as_ref()) }.into());
            }
            Fault::Full(source) => {
                let name = self.report.name.clone();
                return Err(ReadError::TooManyNextHops { name, place, cause: source }.into());
            }
            Fault::Stop => return Err(End::Stop),
            Fault::NeedSurvey => return Err(End::NeedSurvey),
            Fault::Ended(error) => return Err(End::Error(*error)),
        }
        Ok(())
    }

    /// Reports that the input ends too early. In lenient mode this is noted, and the part before it is kept.
    pub fn cut(&mut self, place: Place, reason: impl Into<String>) -> Result<(), End<F, R>> {
        let reason = reason.into();
        if self.lenient {
            self.report.truncated = Some(Loss { place, reason });
            return Ok(());
        }
        let ReadReport { name, records, routes, .. } = &self.report;
        Err(ReadError::CutOff { name: name.clone(), place, reason, records: *records, routes: *routes }
            .into())
    }

    /// Reports an error of the input: truncated compressed data, data that unpacks to too much, or an error
    /// of the operating system.
    pub fn broken(&mut self, place: Place, error: io::Error) -> Result<(), End<F, R>> {
        let is_damage = error.raw_os_error().is_none() && error.kind() != io::ErrorKind::FileTooLarge;
        if !is_damage || self.report.compression == Compression::None {
            return Err(ReadError::Io { name: self.report.name.clone(), cause: error }.into());
        }
        let compression = self.report.compression.name();
        if error.kind() == io::ErrorKind::UnexpectedEof {
            self.cut(place, format!("the {compression} data ends too soon"))
        } else {
            self.cut(place, format!("the {compression} data is corrupt ({error})"))
        }
    }
}

/// The wrong text for a message: short, on one line, escaped.
fn excerpt(what: &[u8]) -> String {
    const LONGEST: usize = 80;
    let what = what.trim_ascii();
    if what.is_empty() {
        return String::new();
    }
    let shown = String::from_utf8_lossy(&what[..what.len().min(LONGEST)]);
    let dots = if what.len() > LONGEST { "…" } else { "" };
    format!(": \"{}{dots}\"", shown.escape_debug())
}
