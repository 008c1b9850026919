//! [`Acl`]: an access list in front of another application.
//!
//! The other application reads a chunk and shows each packet that it has read: the access list takes its
//! tuple, while its header is near. Then the access list decides first. The other application passes over
//! frames that are decided.

use wirespeed::classify::{FrameError, Ipv4Tuple, Ipv6Tuple, RuleMatch};
use wirespeed::engine::RuleTuple;
use wirespeed::{Labels, NextHop, RuleReader};

use crate::{App, Chunk, Memory, Packet, Reason, Verdict, narrow};

/// The decision of a rule about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// The packet goes on.
    Permit,
    /// The packet is dropped.
    Deny,
    /// The rule has no action: what holds for packets without a rule holds for its packets.
    Otherwise,
}

/// No decision: the words are `permit`, `accept`, `allow`, `pass` and `1`, or `deny`, `drop`, `reject`,
/// `block` and `2`. Numbers are for formats without words;
/// 0 is no action.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} neither permits (permit, accept, allow, pass, 1) nor denies (deny, drop, reject, block, 2)")]
pub struct NoDecision(String);

impl std::str::FromStr for Decision {
    type Err = NoDecision;

    fn from_str(text: &str) -> Result<Self, NoDecision> {
        match text.to_ascii_lowercase().as_str() {
            "permit" | "accept" | "allow" | "pass" | "1" => Ok(Self::Permit),
            "deny" | "drop" | "reject" | "block" | "2" => Ok(Self::Deny),
            "0" => Ok(Self::Otherwise),
            _ => Err(NoDecision(text.to_owned())),
        }
    }
}

impl std::fmt::Display for Decision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Permit => "permit",
            Self::Deny => "deny",
            Self::Otherwise => "0",
        })
    }
}

/// One family's rules.
#[derive(Debug)]
struct Rules<T: RuleTuple> {
    reader: Option<RuleReader<T>>,
    hits: Vec<u64>,
    /// Memory that is used again.
    spare: Vec<Asked<T>>,
}

/// The tuples of a chunk.
#[derive(Debug)]
struct Asked<T> {
    tuples: Vec<T>,
    frames: Vec<u32>,
    matches: Vec<Option<RuleMatch>>,
}

impl<T> Default for Asked<T> {
    fn default() -> Self {
        Self { tuples: Vec::new(), frames: Vec::new(), matches: Vec::new() }
    }
}

/// An access list in front of an application: an [`App`]. Packets that it denies are dropped as
/// [`Reason::Denied`]; it counts the packets of each rule.
#[derive(Debug)]
pub struct Acl<'t, A> {
    inner: A,
    v4: Rules<Ipv4Tuple>,
    v6: Rules<Ipv6Tuple>,
    decisions: &'t Labels<Decision>,
    /// The decision about packets that match no rule, or a rule without an action.
    otherwise: Decision,
    permitted: u64,
    denied: u64,
}

/// A chunk of an [`Acl`] under way.
#[derive(Debug)]
pub struct Pending<P> {
    inner: P,
    v4: Asked<Ipv4Tuple>,
    v6: Asked<Ipv6Tuple>,
}

impl<'t, A: App> Acl<'t, A> {
    /// An access list in front of `inner`. The actions of its rules are indexes of `decisions`. A packet that
    /// matches no rule, or a rule without an action, gets `otherwise`. Without rules for a family its packets
    /// go on.
    pub fn new(inner: A, decisions: &'t Labels<Decision>, otherwise: Decision) -> Self {
        Self {
            inner,
            v4: Rules::default(),
            v6: Rules::default(),
            decisions,
            otherwise,
            permitted: 0,
            denied: 0,
        }
    }

    /// Rules for IPv4.
    #[must_use]
    pub fn v4(mut self, reader: RuleReader<Ipv4Tuple>) -> Self {
        self.v4.reader = Some(reader);
        self
    }

    /// Rules for IPv6.
    #[must_use]
    pub fn v6(mut self, reader: RuleReader<Ipv6Tuple>) -> Self {
        self.v6.reader = Some(reader);
        self
    }

    /// The number of IPv4 packets that matched each rule, by its number; shorter than the list if the last
    /// rules matched none.
    #[must_use]
    pub fn hits_v4(&self) -> &[u64] {
        &self.v4.hits
    }

    /// The number of IPv6 packets that matched each rule.
    #[must_use]
    pub fn hits_v6(&self) -> &[u64] {
        &self.v6.hits
    }

    fn decide<T: RuleTuple>(
        rules: &mut Rules<T>,
        asked: &mut Asked<T>,
        chunk: &mut Chunk,
        decision: impl Fn(NextHop) -> Decision,
    ) -> (u64, u64) {
        let Some(reader) = rules.reader.as_ref().filter(|_| !asked.tuples.is_empty()) else { return (0, 0) };
        asked.matches.resize(asked.tuples.len(), None);
        reader.match_batch(&asked.tuples, &mut asked.matches);
        let mut denied = 0;
        for (&frame, found) in asked.frames.iter().zip(&asked.matches) {
            if let Some(found) = found {
                let at = found.number.get() as usize;
                if at >= rules.hits.len() {
                    rules.hits.resize(at + 1, 0);
                }
                rules.hits[at] += 1;
            }
            if decision(found.map_or(NextHop::NONE, |found| found.action)) == Decision::Deny {
                chunk.decide(frame as usize, Verdict::Drop(Reason::Denied));
                denied += 1;
            }
        }
        (asked.frames.len() as u64 - denied, denied)
    }
}

impl<T> Asked<T> {
    #[inline]
    fn push(&mut self, tuple: T, frame: usize) {
        self.tuples.push(tuple);
        // Fewer than 2^32 frames.
        self.frames.push(narrow::u32(frame));
    }

    #[cold]
    #[inline(never)]
    fn push_any(&mut self, tuple: Result<T, FrameError>, frame: usize) -> Option<Verdict> {
        match tuple {
            Ok(tuple) => {
                self.push(tuple, frame);
                None
            }
            Err(_) => Some(Verdict::Drop(Reason::Cut)),
        }
    }
}

impl<T: RuleTuple> Default for Rules<T> {
    fn default() -> Self {
        Self { reader: None, hits: Vec::new(), spare: Vec::new() }
    }
}

impl<T: RuleTuple> Rules<T> {
    /// Takes the tuple of a packet: as one that is plain, or as any. A packet without a whole transport
    /// header has none, and is dropped: no rule could be asked.
    #[inline]
    fn take(
        &self,
        asked: &mut Asked<T>,
        frame: usize,
        plain: impl FnOnce() -> Option<T>,
        any: impl FnOnce() -> Result<T, FrameError>,
    ) -> Option<Verdict> {
        self.reader.as_ref()?;
        match plain() {
            // From registers to the list: a tuple that both ways lead to goes through memory, and its copy
            // waits for the writing.
            Some(tuple) => asked.push(tuple, frame),
            None => return asked.push_any(any(), frame),
        }
        None
    }

    fn spare(&mut self) -> Asked<T> {
        let mut asked = self.spare.pop().unwrap_or_default();
        asked.tuples.clear();
        asked.frames.clear();
        asked
    }
}

impl<A: App> App for Acl<'_, A> {
    type Pending = Pending<A::Pending>;

    fn pre_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory) -> Self::Pending {
        let (mut v4, mut v6) = (self.v4.spare(), self.v6.spare());
        let (rules4, rules6) = (&self.v4, &self.v6);
        let inner = self.inner.pre_shade_shown(chunk, memory, |at, packet| match packet {
            Packet::V4(packet) => {
                rules4.take(&mut v4, at, || Ipv4Tuple::of_plain(packet), || Ipv4Tuple::of_packet(packet))
            }
            Packet::V6(packet) => {
                rules6.take(&mut v6, at, || Ipv6Tuple::of_plain(packet), || Ipv6Tuple::of_packet(packet))
            }
        });
        Pending { inner, v4, v6 }
    }

    fn is_ready(&self, pending: &Self::Pending) -> bool {
        self.inner.is_ready(&pending.inner)
    }

    fn post_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory, pending: Self::Pending) {
        let Pending { inner, mut v4, mut v6 } = pending;
        {
            let (known, otherwise) = (self.decisions.enter(), self.otherwise);
            let decision = |action| match known.get(action) {
                None | Some(Decision::Otherwise) => otherwise,
                Some(&decision) => decision,
            };
            for (permitted, denied) in [
                Self::decide(&mut self.v4, &mut v4, chunk, decision),
                Self::decide(&mut self.v6, &mut v6, chunk, decision),
            ] {
                self.permitted += permitted;
                self.denied += denied;
            }
        }
        self.v4.spare.push(v4);
        self.v6.spare.push(v6);
        self.inner.post_shade(chunk, memory, inner);
    }

    fn make(&mut self, chunk: &mut Chunk, memory: &mut Memory) {
        self.inner.make(chunk, memory);
    }

    fn suited_to_gpu(&self) -> Option<usize> {
        self.inner.suited_to_gpu()
    }

    fn least_for_gpu(&self) -> usize {
        self.inner.least_for_gpu()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.inner.counters();
        counters.extend([("permitted", self.permitted), ("denied", self.denied)]);
        counters
    }
}
