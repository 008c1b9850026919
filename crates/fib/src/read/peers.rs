//! The choice of a peer in a file with the routes of several peers.
//!
//! By default the peer with most prefixes is taken, for each family. It is known only after a pass over the
//! whole file: the first pass counts, and the second one reads. One pass is enough if the file's peer table,
//! or a given address, leaves a single peer. Updates are counted in the same way. If they are for a table of
//! one peer, and the file has updates of that peer, these are taken, even if they are few.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use rustc_hash::FxHashMap;

use super::error::{Fault, ReadError};
use super::report::Peer;
use crate::address::Family;

/// The peer that a user chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PeerChoice {
    /// The peer with this address.
    Address(IpAddr),
    /// The peer of this AS; if there are several, the one with most prefixes.
    As(u32),
    /// A bare number: the index in the file's peer table, or the AS if the file has no such table. For
    /// updates of a table with a known peer it means that peer.
    Number(u32),
    /// All peers of updates, mixed. A table still has one peer, found as if no choice was made.
    All,
}

impl PeerChoice {
    /// Whether a peer fits.
    pub fn matches(self, peer: &Peer) -> bool {
        match self {
            Self::Address(address) => peer.address == address,
            Self::As(asn) => peer.asn == asn,
            Self::Number(number) => peer.index.map_or(peer.asn, u32::from) == number,
            Self::All => true,
        }
    }
}

impl FromStr for PeerChoice {
    type Err = NoPeer;

    /// Parses an address, `AS65000`, a number, or `all`.
    fn from_str(text: &str) -> Result<Self, NoPeer> {
        let no_peer = || NoPeer(text.into());
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        if text == "all" {
            return Ok(Self::All);
        }
        match text.get(..2) {
            Some(prefix) if prefix.eq_ignore_ascii_case("as") => {
                text[2..].parse().map(Self::As).map_err(|_| no_peer())
            }
            _ => text.parse().map(Self::Number).map_err(|_| no_peer()),
        }
    }
}

impl fmt::Display for PeerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::As(asn) => write!(f, "AS{asn}"),
            Self::Number(number) => number.fmt(f),
            Self::All => f.write_str("all"),
        }
    }
}

/// A text that names no peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no peer: give its address, its AS as AS65000, or its number in the file; all mixes the updates of all peers"
)]
pub struct NoPeer(String);

/// A peer in the [`PeerBook`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PeerId(usize);

/// The peers of a file in the order of appearance, and the choice among them.
#[derive(Debug)]
pub(super) struct PeerBook {
    choice: Option<PeerChoice>,
    /// The peers of the table for each family, by address and AS, for updates.
    of_table: [Option<(IpAddr, u32)>; 2],
    peers: Vec<Peer>,
    ids: FxHashMap<(IpAddr, u32, Option<u16>), PeerId>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The first pass, before a peer is chosen.
    Open,
    /// The file's peer table leaves one peer, or no peer.
    #[cfg(feature = "mrt")]
    Single(Option<PeerId>),
    /// The pass that counts prefixes.
    Survey,
    /// The pass after the counting, with the peer for each family.
    Known([Option<PeerId>; 2]),
}

impl PeerBook {
    /// A book for a table.
    pub(super) fn of_table(choice: Option<PeerChoice>) -> Self {
        Self::new(choice.filter(|&choice| choice != PeerChoice::All), [None; 2])
    }

    /// A book for updates. `peers_of_table` are the peers of their table, if they are known.
    pub(super) fn of_updates(choice: Option<PeerChoice>, peers_of_table: [Option<Peer>; 2]) -> Self {
        Self::new(choice, peers_of_table.map(|peer| peer.map(|peer| (peer.address, peer.asn))))
    }

    fn new(choice: Option<PeerChoice>, of_table: [Option<(IpAddr, u32)>; 2]) -> Self {
        Self { choice, of_table, peers: Vec::new(), ids: FxHashMap::default(), stage: Stage::Open }
    }

    /// Adds a peer that a line or record names.
    pub(super) fn meet(&mut self, address: IpAddr, asn: u32, index: Option<u16>) -> PeerId {
        let Self { peers, ids, .. } = self;
        *ids.entry((address, asn, index)).or_insert_with(|| {
            peers.push(Peer { index, address, asn, prefixes: [0; 2], chosen: [false; 2] });
            PeerId(peers.len() - 1)
        })
    }

    /// Says that the peer table is complete: all later routes belong to known peers.
    #[cfg(feature = "mrt")]
    pub(super) fn all_met(&mut self) {
        if let Stage::Open | Stage::Single(_) = self.stage {
            let mut fitting = (0..self.peers.len()).map(PeerId).filter(|&id| self.fits(id));
            self.stage = match (fitting.next(), fitting.next()) {
                (only, None) => Stage::Single(only),
                _ => Stage::Open,
            };
        }
    }

    /// Whether a route of this peer is taken. Also counts the route, except in the pass after the survey.
    pub(super) fn takes(&mut self, PeerId(id): PeerId, family: Family) -> Result<bool, Fault> {
        let f = family as usize;
        let takes = match self.stage {
            Stage::Open => match self.choice {
                Some(PeerChoice::Address(address)) => self.peers[id].address == address,
                Some(PeerChoice::All) => true,
                _ => return Err(Fault::NeedSurvey),
            },
            #[cfg(feature = "mrt")]
            Stage::Single(only) => only == Some(PeerId(id)),
            Stage::Survey => false,
            Stage::Known(chosen) => return Ok(chosen[f] == Some(PeerId(id))),
        };
        self.peers[id].prefixes[f] += 1;
        self.peers[id].chosen[f] |= takes;
        Ok(takes)
    }

    /// The address of a peer.
    #[cfg(feature = "mrt")]
    pub(super) fn address(&self, PeerId(id): PeerId) -> IpAddr {
        self.peers[id].address
    }

    /// The AS of a peer.
    #[cfg(feature = "mrt")]
    pub(super) fn asn(&self, PeerId(id): PeerId) -> u32 {
        self.peers[id].asn
    }

    /// Whether this pass only counts.
    pub(super) fn is_survey(&self) -> bool {
        self.stage == Stage::Survey
    }

    /// Whether this is the last pass.
    pub(super) fn is_decided(&self) -> bool {
        let needs_no_survey = matches!(self.choice, Some(PeerChoice::Address(_) | PeerChoice::All));
        needs_no_survey || matches!(self.stage, Stage::Known(_))
    }

    /// Starts the pass that only counts.
    pub(super) fn start_survey(&mut self) {
        *self = Self { stage: Stage::Survey, ..Self::new(self.choice, self.of_table) };
    }

    /// Ends the counting, before the pass that reads.
    pub(super) fn end_survey(&mut self) {
        let chosen = [0, 1].map(|f| {
            let fitting = (0..self.peers.len()).map(PeerId).filter(|&id| self.fits(id));
            // Among equals the first peer wins.
            let most =
                fitting.rev().max_by_key(|&id| (self.is_of_table(id, f), self.peers[id.0].prefixes[f]));
            most.filter(|&PeerId(id)| self.peers[id].prefixes[f] > 0)
        });
        for (f, id) in chosen.into_iter().enumerate() {
            if let Some(PeerId(id)) = id {
                self.peers[id].chosen[f] = true;
            }
        }
        self.stage = Stage::Known(chosen);
    }

    /// All peers of the file. Fails if the chosen peer is not among them.
    pub(super) fn close(self, name: &str) -> Result<Vec<Peer>, ReadError> {
        const SHOWN: usize = 20;
        match self.choice {
            Some(choice)
                if !self.peers.is_empty() && !(0..self.peers.len()).any(|id| self.fits(PeerId(id))) =>
            {
                let mut known: Vec<String> = self.peers.iter().take(SHOWN).map(ToString::to_string).collect();
                if self.peers.len() > SHOWN {
                    known.push(format!("{} more", self.peers.len() - SHOWN));
                }
                let (name, peer) = (name.to_owned(), choice.to_string());
                Err(ReadError::NoSuchPeer { name, peer, known: known.join(", ") })
            }
            _ => Ok(self.peers),
        }
    }

    fn fits(&self, id: PeerId) -> bool {
        match self.choice {
            // An index of another file's peer table means nothing in this file, but the peer behind it does.
            Some(PeerChoice::Number(_)) if self.of_table != [None; 2] => {
                self.is_of_table(id, 0) || self.is_of_table(id, 1)
            }
            choice => choice.is_none_or(|choice| choice.matches(&self.peers[id.0])),
        }
    }

    /// Whether a peer is the table's peer of a family, and has updates of that family.
    fn is_of_table(&self, PeerId(id): PeerId, family: usize) -> bool {
        let peer = &self.peers[id];
        peer.prefixes[family] > 0 && self.of_table[family] == Some((peer.address, peer.asn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_there_and_back() {
        for text in ["192.0.2.1", "2001:db8::1", "AS65000", "7", "all"] {
            assert_eq!(text.parse::<PeerChoice>().unwrap().to_string(), text);
        }
        assert_eq!("as7".parse(), Ok(PeerChoice::As(7)));
        for bad in ["", "a", "ASx", "-1", "\u{e9}\u{e9}"] {
            assert!(bad.parse::<PeerChoice>().is_err());
        }
    }

    #[test]
    fn the_peer_with_most_prefixes_of_each_family_is_chosen() {
        let mut book = PeerBook::of_table(None);
        book.start_survey();
        let a = book.meet("192.0.2.1".parse().unwrap(), 1, None);
        let b = book.meet("192.0.2.2".parse().unwrap(), 2, None);
        for (id, family) in [(a, Family::V4), (b, Family::V4), (b, Family::V4), (a, Family::V6)] {
            assert!(!book.takes(id, family).unwrap());
        }
        book.end_survey();
        let mut takes = |id, family| book.takes(id, family).unwrap();
        assert_eq!([takes(a, Family::V4), takes(b, Family::V4)], [false, true]);
        assert_eq!([takes(a, Family::V6), takes(b, Family::V6)], [true, false]);
    }

    #[cfg(feature = "mrt")]
    #[test]
    fn a_peer_table_that_leaves_one_peer_needs_no_survey() {
        let mut book = PeerBook::of_table(Some(PeerChoice::Number(1)));
        let a = book.meet("192.0.2.1".parse().unwrap(), 1, Some(0));
        let b = book.meet("192.0.2.2".parse().unwrap(), 2, Some(1));
        assert!(matches!(book.takes(a, Family::V4), Err(Fault::NeedSurvey)));
        book.all_met();
        let mut takes = |id| book.takes(id, Family::V4).unwrap();
        assert_eq!([takes(a), takes(b)], [false, true]);
    }
}
