//! [`Pit`]: Interests that wait for their Data, and who asked.
//!
//! ```text
//! name of the Interest ──► part, by hash ──► entry: faces that asked, with tokens, nonces and until when
//! ```
//!
//! All workers share it, because Data may come in at another queue than its Interest. A part has a lock of
//! its own. The number of faces that wait is bounded; what has waited too long goes when the part is next in
//! use.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use foldhash::fast::RandomState;
use wirespeed::names::tlv::WireName;

use super::link::LONGEST_TOKEN;
use crate::PortId;

/// Parts, each with a lock.
const PARTS: usize = 64;
/// Milliseconds that an Interest waits if it does not say how long (NDN Packet Format, 3.6), and at most.
const LIFETIME: u64 = 4000;
const LONGEST_LIFETIME: u64 = 60_000;
/// Milliseconds between two looks at all entries of a part.
const SWEEP: u64 = 1000;
/// Faces that wait for one name.
const MOST_FACES: usize = 64;
/// Components up to which an Interest may ask for a prefix: a look is due for each one of a Data's name.
pub(super) const MOST_COMPONENTS: usize = 32;
/// Bytes of a link header with two VLAN tags, the longest that is kept.
pub(super) const LINK: usize = 22;

/// Where Data goes to: a port, and the header of the link from there to who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Face {
    pub(super) port: PortId,
    link: [u8; LINK],
    len: u8,
}

impl Face {
    /// A face. `None` if the header is too long.
    pub(super) fn new(port: PortId, header: &[u8]) -> Option<Self> {
        let mut link = [0; LINK];
        link.get_mut(..header.len())?.copy_from_slice(header);
        Some(Self { port, link, len: crate::narrow::u8(header.len()) })
    }

    /// The header of its link.
    pub(super) fn link(&self) -> &[u8] {
        &self.link[..usize::from(self.len)]
    }
}

/// A face that waits for Data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker {
    pub(super) face: Face,
    pub(super) can_be_prefix: bool,
    pub(super) must_be_fresh: bool,
    pub(super) nonce: Option<u32>,
    token: [u8; LONGEST_TOKEN],
    token_len: u8,
    /// The time until which it waits, in milliseconds.
    until: u64,
}

impl Asker {
    /// A face that waits from `now` on. `lifetime` is that of the Interest, in milliseconds. The token has at
    /// most [`LONGEST_TOKEN`] bytes.
    pub(super) fn new(face: Face, token: &[u8], now: u64, lifetime: Option<u64>) -> Self {
        let mut kept = [0; LONGEST_TOKEN];
        kept[..token.len()].copy_from_slice(token);
        Self {
            face,
            can_be_prefix: false,
            must_be_fresh: false,
            nonce: None,
            token: kept,
            token_len: crate::narrow::u8(token.len()),
            until: now + lifetime.unwrap_or(LIFETIME).min(LONGEST_LIFETIME),
        }
    }

    /// The token that goes back with the Data; empty for none.
    pub(super) fn token(&self) -> &[u8] {
        &self.token[..usize::from(self.token_len)]
    }

    /// Whether it asks for the same: Interests of one name differ by what Data they accept.
    fn asks_like(&self, other: &Self) -> bool {
        (self.can_be_prefix, self.must_be_fresh) == (other.can_be_prefix, other.must_be_fresh)
    }
}

/// What becomes of an Interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The Interest goes on: nobody else waits for this, or the face asks again.
    Forward,
    /// An Interest like it is on its way. The Data of that one goes to this face, too.
    Waits,
    /// The Interest was here before: it came back by another way.
    Loop,
    /// There is no place to note it.
    Full,
}

/// Interests that wait for Data: a table that the workers of a forwarder share.
///
/// Each face that waits for a name takes a place. An Interest waits as long as it says, 4 s if it says
/// nothing, and a minute at most.
#[derive(Debug)]
pub struct Pit {
    parts: Box<[Mutex<Part>]>,
    hasher: RandomState,
    /// Places of a part.
    most: usize,
    start: Instant,
    expired: AtomicU64,
}

#[derive(Debug)]
struct Part {
    entries: HashMap<Box<[u8]>, Vec<Asker>, RandomState>,
    /// The number of faces of all entries.
    askers: usize,
    /// The last time that all entries were looked at.
    swept: u64,
}

impl Part {
    /// Lets those go that have waited too long. Returns how many.
    fn sweep(&mut self, now: u64) -> u64 {
        self.swept = now;
        let before = self.askers;
        let askers = &mut self.askers;
        self.entries.retain(|_, entry| {
            let of_entry = entry.len();
            entry.retain(|asker| asker.until > now);
            *askers -= of_entry - entry.len();
            !entry.is_empty()
        });
        if self.entries.capacity() > 64 && self.entries.len() * 8 < self.entries.capacity() {
            self.entries.shrink_to(self.entries.len() * 2);
        }
        (before - self.askers) as u64
    }

    /// Takes those out that Data of a name answers: all that asked for this very name, or those that take a
    /// longer one.
    fn take(&mut self, name: &[u8], is_whole: bool, now: u64, to: &mut Vec<Asker>) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        let before = entry.len();
        entry.retain(|asker| {
            let is_answered = is_whole || asker.can_be_prefix;
            // Two Interests of a face are answered once.
            if is_answered && asker.until > now && to.iter().all(|known| known.face != asker.face) {
                to.push(*asker);
            }
            !is_answered
        });
        let is_empty = entry.is_empty();
        self.askers -= before - entry.len();
        if is_empty {
            self.entries.remove(name);
        }
    }
}

impl Pit {
    /// A table with places for so many faces that wait, rounded up to a multiple of its parts.
    #[must_use]
    pub fn new(most: usize) -> Self {
        let part = || {
            let entries = HashMap::with_hasher(RandomState::default());
            Mutex::new(Part { entries, askers: 0, swept: 0 })
        };
        Self {
            parts: (0..PARTS).map(|_| part()).collect(),
            hasher: RandomState::default(),
            most: most.div_ceil(PARTS).max(1),
            start: Instant::now(),
            expired: AtomicU64::new(0),
        }
    }

    /// The number of faces that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let askers = |part: &Mutex<Part>| part.lock().unwrap_or_else(PoisonError::into_inner).askers;
        self.parts.iter().map(askers).sum()
    }

    /// The number of faces that have waited too long, as far as that was noticed.
    #[must_use]
    pub fn expired(&self) -> u64 {
        self.expired.load(Ordering::Relaxed)
    }

    /// Milliseconds since it was made.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    #[allow(clippy::cast_possible_truncation)] // any bits of a hash
    fn part(&self, name: &[u8]) -> MutexGuard<'_, Part> {
        use std::hash::BuildHasher;
        let at = self.hasher.hash_one(name) as usize % PARTS;
        self.parts[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn swept(&self, part: &mut Part, now: u64) {
        let expired = part.sweep(now);
        self.expired.fetch_add(expired, Ordering::Relaxed);
    }

    /// Notes an Interest, by the value of its name, and tells what becomes of it.
    pub(super) fn ask(&self, name: &[u8], asker: Asker, now: u64) -> Asked {
        let mut part = self.part(name);
        let part = &mut *part;
        let is_full = part.askers >= self.most && part.swept < now;
        if is_full || part.swept + SWEEP <= now {
            self.swept(part, now);
        }
        let has_place = part.askers < self.most;
        let Some(entry) = part.entries.get_mut(name) else {
            if !has_place {
                return Asked::Full;
            }
            part.entries.insert(name.into(), vec![asker]);
            part.askers += 1;
            return Asked::Forward;
        };
        let is_other = |known: &Asker| known.until > now && known.face != asker.face;
        if asker.nonce.is_some() && entry.iter().any(|known| is_other(known) && known.nonce == asker.nonce) {
            return Asked::Loop;
        }
        let is_known = |known: &&mut Asker| known.face == asker.face && known.asks_like(&asker);
        if let Some(known) = entry.iter_mut().find(is_known) {
            *known = asker;
            return Asked::Forward;
        }
        if !has_place || entry.len() >= MOST_FACES {
            return Asked::Full;
        }
        let is_pending = entry.iter().any(|known| is_other(known) && known.asks_like(&asker));
        entry.push(asker);
        part.askers += 1;
        if is_pending { Asked::Waits } else { Asked::Forward }
    }

    /// Takes the faces out that Data of a name answers.
    pub(super) fn answer(&self, name: &WireName<'_>, now: u64, to: &mut Vec<Asker>) {
        let value = name.as_value();
        for end in name.ends().take(MOST_COMPONENTS).filter(|&end| end < value.len()) {
            self.part(&value[..end]).take(&value[..end], false, now, to);
        }
        self.part(value).take(value, true, now, to);
    }
}

#[cfg(test)]
mod tests {
    use wirespeed::names::tlv::WireNameBuf;

    use super::*;

    fn face(number: u8) -> Face {
        Face::new(PortId(number.into()), &[number; 14]).unwrap()
    }

    fn asker(number: u8, nonce: u32, now: u64) -> Asker {
        Asker { nonce: Some(nonce), ..Asker::new(face(number), &[number], now, None) }
    }

    fn name(uri: &str) -> WireNameBuf {
        WireNameBuf::from_uri(uri.as_bytes()).unwrap()
    }

    /// The faces that Data of a name goes to.
    fn answered(pit: &Pit, uri: &str, now: u64) -> Vec<u16> {
        let mut to = Vec::new();
        pit.answer(&name(uri).as_wire(), now, &mut to);
        let mut ports: Vec<u16> = to.iter().map(|asker| asker.face.port.0).collect();
        assert!(to.iter().all(|asker| usize::from(asker.token()[0]) == asker.face.port.index()));
        ports.sort_unstable();
        ports
    }

    #[test]
    fn data_goes_to_all_who_asked_and_once() {
        let pit = Pit::new(1000);
        let a = name("ndn:/a/b");
        let a = a.as_wire();
        assert_eq!(pit.ask(a.as_value(), asker(1, 1, 0), 0), Asked::Forward);
        assert_eq!(pit.ask(a.as_value(), asker(2, 2, 0), 0), Asked::Waits);
        assert_eq!(pit.ask(a.as_value(), asker(3, 2, 0), 0), Asked::Loop, "the nonce of the second");
        assert_eq!(pit.ask(a.as_value(), asker(1, 3, 0), 0), Asked::Forward, "the first asks again");
        assert_eq!(pit.waiting(), 2);
        assert_eq!(answered(&pit, "ndn:/a", 1), [0_u16; 0]);
        assert_eq!(answered(&pit, "ndn:/a/b/c", 1), [0_u16; 0], "nobody takes a longer name");
        assert_eq!(answered(&pit, "ndn:/a/b", 1), [1, 2]);
        assert_eq!((answered(&pit, "ndn:/a/b", 1), pit.waiting()), (vec![], 0));
    }

    #[test]
    fn prefixes_are_answered_by_longer_names() {
        let pit = Pit::new(1000);
        for (number, uri, can_be_prefix) in
            [(1, "ndn:/a", true), (2, "ndn:/a/b", true), (3, "ndn:/a/b", false), (4, "ndn:/a/b/c", true)]
        {
            let asker = Asker { can_be_prefix, ..asker(number, number.into(), 0) };
            assert_eq!(pit.ask(name(uri).as_wire().as_value(), asker, 0), Asked::Forward, "{uri}");
        }
        assert_eq!(answered(&pit, "ndn:/a/b/d", 1), [1, 2]);
        assert_eq!(answered(&pit, "ndn:/a/b", 1), [3]);
        assert_eq!(answered(&pit, "ndn:/a/b/c", 1), [4]);
        assert_eq!(pit.waiting(), 0);
    }

    #[test]
    fn a_face_with_two_interests_gets_data_once() {
        let pit = Pit::new(1000);
        let a = name("ndn:/a");
        let fresh = Asker { must_be_fresh: true, ..asker(1, 2, 0) };
        assert_eq!(pit.ask(a.as_wire().as_value(), asker(1, 1, 0), 0), Asked::Forward);
        assert_eq!(pit.ask(a.as_wire().as_value(), fresh, 0), Asked::Forward);
        assert_eq!((answered(&pit, "ndn:/a", 1), pit.waiting()), (vec![1], 0));
    }

    #[test]
    fn waiting_ends_and_places_are_bounded() {
        let pit = Pit::new(PARTS);
        let mut full = 0;
        for number in 0..500_u32 {
            let uri = name(&format!("ndn:/{number}"));
            let asked = pit.ask(uri.as_wire().as_value(), asker(1, number, 0), 0);
            full += usize::from(asked == Asked::Full);
        }
        assert_eq!(pit.waiting() + full, 500);
        assert!((1..=PARTS).contains(&pit.waiting()), "{}", pit.waiting());
        // All places are free again once they have waited too long.
        let before = pit.waiting() as u64;
        for number in 0..2000_u32 {
            let uri = name(&format!("ndn:/later/{number}"));
            pit.ask(uri.as_wire().as_value(), asker(1, number, LIFETIME), LIFETIME);
        }
        assert_eq!((pit.expired(), pit.waiting() <= PARTS), (before, true));
        // Data that comes too late goes to nobody.
        let uri = name("ndn:/late");
        let pit = Pit::new(100);
        let short = Asker::new(face(1), &[1], 0, Some(10));
        assert_eq!(pit.ask(uri.as_wire().as_value(), short, 0), Asked::Forward);
        assert_eq!(answered(&pit, "ndn:/late", 10), [0_u16; 0]);
        let long = Asker::new(face(1), &[1], 0, Some(u64::MAX));
        assert_eq!(pit.ask(uri.as_wire().as_value(), long, 0), Asked::Forward);
        assert_eq!(answered(&pit, "ndn:/late", LONGEST_LIFETIME), [0_u16; 0], "a minute at most");
    }
}
