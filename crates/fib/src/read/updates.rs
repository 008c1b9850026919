//! Updates: their collection by the readers of all formats, and the plain format.
//!
//! Plain updates are `A prefix [next-hop]` and `W prefix`, one on each line, with an optional time in seconds
//! before it, and `#` comments. `A` without a next hop keeps the prefix's next hop.

use std::net::IpAddr;
use std::ops::ControlFlow;
use std::time::Duration;

#[cfg(feature = "mrt")]
use rustc_hash::FxHashMap;
use wirespeed_input::Input;

use super::any_prefix::AnyPrefix;
use super::error::{End, Fault, SkipReason};
use super::peers::PeerBook;
use super::report::Ledger;
use super::table::{HopFinder, no_more};
use super::text::{each_line, split_word, uncomment, utf8};
use crate::address::Family;
use crate::fib::AnyUpdate;
use crate::next_hop::{NextHop, NextHops};

/// An update and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedUpdate {
    /// The time since the epoch, if the source has it.
    pub time: Option<Duration>,
    /// The update.
    pub update: AnyUpdate,
}

/// Takes updates from a reader and gives them to the caller.
pub(super) struct Updates<'a> {
    next_hops: &'a mut NextHops,
    finder: HopFinder,
    book: &'a mut PeerBook,
    /// Whether routes get their origin as next hop.
    pub(super) origins: bool,
    #[cfg(feature = "mrt")]
    pub(super) paths: Paths,
    give: &'a mut dyn FnMut(TimedUpdate) -> ControlFlow<()>,
}

/// The paths of prefixes whose peers announce several (RFC 7911): the first that stands is the route.
#[cfg(feature = "mrt")]
#[derive(Default)]
pub(super) struct Paths(FxHashMap<(Peer, AnyPrefix), Vec<(u32, NextHop)>>);

/// The address and AS of a peer.
#[cfg(feature = "mrt")]
type Peer = (IpAddr, u32);

#[cfg(feature = "mrt")]
impl Paths {
    /// Notes a path. Returns the next hop of the prefix.
    pub(super) fn announced(&mut self, peer: Peer, prefix: AnyPrefix, id: u32, next_hop: NextHop) -> NextHop {
        let paths = self.0.entry((peer, prefix)).or_default();
        match paths.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) => *known = next_hop,
            None => paths.push((id, next_hop)),
        }
        paths[0].1
    }

    /// Forgets a path. Returns the next hop of the prefix if another path stands.
    pub(super) fn withdrawn(&mut self, peer: Peer, prefix: AnyPrefix, id: u32) -> Option<NextHop> {
        let paths = self.0.get_mut(&(peer, prefix))?;
        paths.retain(|(known, _)| *known != id);
        let left = paths.first().map(|&(_, next_hop)| next_hop);
        if left.is_none() {
            self.0.remove(&(peer, prefix));
        }
        left
    }
}

impl<'a> Updates<'a> {
    pub(super) fn new(
        next_hops: &'a mut NextHops,
        book: &'a mut PeerBook,
        origins: bool,
        give: &'a mut dyn FnMut(TimedUpdate) -> ControlFlow<()>,
    ) -> Self {
        Self {
            next_hops,
            finder: HopFinder::default(),
            book,
            origins,
            #[cfg(feature = "mrt")]
            paths: Paths::default(),
            give,
        }
    }

    /// Whether an update of this peer is taken.
    pub(super) fn takes(&mut self, address: IpAddr, asn: u32, family: Family) -> Result<bool, Fault> {
        let peer = self.book.meet(address, asn, None);
        self.book.takes(peer, family)
    }

    pub(super) fn hop(&mut self, word: &[u8]) -> Result<NextHop, Fault> {
        self.finder.word(self.next_hops, word)
    }

    #[cfg(feature = "mrt")]
    pub(super) fn hop_address(&mut self, address: IpAddr) -> Result<NextHop, Fault> {
        self.finder.address(self.next_hops, address)
    }

    pub(super) fn announce(
        &mut self,
        time: Option<Duration>,
        prefix: AnyPrefix,
        next_hop: Option<NextHop>,
        ledger: &mut Ledger,
    ) -> Result<(), Fault> {
        self.give(TimedUpdate { time, update: prefix.announce(next_hop) }, ledger)
    }

    pub(super) fn withdraw(
        &mut self,
        time: Option<Duration>,
        prefix: AnyPrefix,
        ledger: &mut Ledger,
    ) -> Result<(), Fault> {
        self.give(TimedUpdate { time, update: prefix.withdraw() }, ledger)
    }

    fn give(&mut self, update: TimedUpdate, ledger: &mut Ledger) -> Result<(), Fault> {
        ledger.report.routes += 1;
        match (self.give)(update) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Fault::Stop),
        }
    }
}

pub(super) fn read(input: &mut Input<'_>, ledger: &mut Ledger, updates: &mut Updates<'_>) -> Result<(), End> {
    each_line(input, ledger, |line, _, ledger| update(line, updates, ledger))
}

#[inline]
fn update(line: &[u8], updates: &mut Updates<'_>, ledger: &mut Ledger) -> Result<(), Fault> {
    let (mut word, mut rest) = split_word(uncomment(line));
    let mut when = None;
    if word.first().is_some_and(u8::is_ascii_digit) {
        when = Some(time(utf8(word)?)?);
        (word, rest) = split_word(rest);
    }
    let announces = match word {
        b"A" => true,
        b"W" => false,
        _ => return Err(SkipReason::UpdateKind.into()),
    };
    let (word, rest) = split_word(rest);
    let prefix = ledger.prefix(word)?;
    let (hop, rest) = if announces { split_word(rest) } else { (&b""[..], rest) };
    no_more(rest)?;
    match (announces, hop) {
        (false, _) => updates.withdraw(when, prefix, ledger),
        (true, b"") => updates.announce(when, prefix, None, ledger),
        (true, hop) => {
            let next_hop = updates.hop(hop)?;
            updates.announce(when, prefix, Some(next_hop), ledger)
        }
    }
}

/// A time in seconds, with a fraction of up to nine significant digits.
pub fn time(text: &str) -> Result<Duration, SkipReason> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !is_number(seconds) || !is_number(fraction) {
        return Err(SkipReason::Time);
    }
    let seconds = seconds.parse().map_err(|_| SkipReason::Time)?;
    let nanos = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    Ok(Duration::new(seconds, nanos.fold(0, |n, digit| n * 10 + u32::from(digit - b'0'))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prefix::PrefixError;
    use crate::read::tests::{text_of_updates, updates_of};
    use crate::read::{Format, Place, ReadError, ReadOptions, collect_updates_from, read_updates_from};

    #[test]
    fn reads_announcements_and_withdrawals_with_and_without_times() {
        let text = "A 10.0.0.0/8 a\n# note\nW 10.0.0.0/8\n5 A ::/0 # keep\n1687212000.000250 W ::/0\n";
        let (updates, report) = updates_of(Format::Updates, text).unwrap();
        assert_eq!(updates, "A 10.0.0.0/8 a\nW 10.0.0.0/8\n5 A ::/0\n1687212000.00025 W ::/0\n");
        assert_eq!(report.routes, 4);
    }

    #[test]
    fn indexes_go_on_from_the_tables() {
        let mut hops = NextHops::new();
        hops.intern("a").unwrap();
        let text = "A 10.0.0.0/8 b\nA 10.0.0.0/8 a\n";
        let (updates, _) =
            collect_updates_from(text.as_bytes(), "test", &ReadOptions::default(), &mut hops).unwrap();
        assert_eq!(text_of_updates(&updates, &hops), text);
        assert_eq!((hops.find("a"), hops.find("b")), (Some(NextHop(1)), Some(NextHop(2))));
    }

    #[test]
    fn the_caller_may_stop() {
        let text = "A 10.0.0.0/8 b\nnonsense\n";
        let stop = |_| ControlFlow::Break(());
        let options = ReadOptions { format: Some(Format::Updates), ..ReadOptions::default() };
        let report =
            read_updates_from(text.as_bytes(), "test", &options, &mut NextHops::new(), stop).unwrap();
        assert_eq!(report.routes, 1);
    }

    #[test]
    fn bad_lines() {
        for (line, expected) in [
            ("A", SkipReason::Prefix(PrefixError::Address)),
            ("A 10.0.0.0/33", SkipReason::Prefix(PrefixError::TooLong { len: 33, family: Family::V4 })),
            ("A 10.0.0.0/8 a b", SkipReason::TooManyColumns),
            ("W 10.0.0.0/8 a", SkipReason::TooManyColumns),
            ("X 10.0.0.0/8", SkipReason::UpdateKind),
            ("5x W 10.0.0.0/8", SkipReason::Time),
            ("5. W 10.0.0.0/8", SkipReason::Time),
            ("99999999999999999999 W 10.0.0.0/8", SkipReason::Time),
        ] {
            match updates_of(Format::Updates, &format!("W 10.0.0.0/8\n{line}\n")) {
                Err(ReadError::Bad { place: Place::Line(2), reason, .. }) if reason == expected => {}
                other => panic!("{line}: {other:?}"),
            }
        }
    }

    #[test]
    fn times() {
        assert_eq!(time("12.5"), Ok(Duration::from_millis(12_500)));
        assert_eq!(time("0.0000000019"), Ok(Duration::from_nanos(1)));
        for bad in ["", ".", "1.", ".5", "-1", "1e3", "1.-5"] {
            assert_eq!(time(bad), Err(SkipReason::Time));
        }
    }
}
