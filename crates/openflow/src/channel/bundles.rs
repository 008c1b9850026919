//! [`Bundles`]: the bundles of one controller that are open.
//!
//! A bundle ends when it is committed or discarded, and with the connection. One that fails stays by its
//! number until then: what comes for it is refused, so that it is not made in part.

use std::sync::atomic::Ordering;

use crate::switch::Switch;
use crate::wire::bundle::check_flags;
use crate::wire::{BundleAdd, BundleControl, BundleStep, Failure, Header};

/// Bundles of a controller at a time.
const MOST: usize = 64;
/// Milliseconds without a word about a bundle until it fails.
const IDLE: u64 = 10_000;

/// The bundles of a controller in the order in which they were opened.
pub(super) struct Bundles {
    switch: Switch,
    known: Vec<Bundle>,
}

struct Bundle {
    id: u32,
    flags: u16,
    is_closed: bool,
    messages: Messages,
    /// The answer to all that comes for it, once it failed.
    failure: Option<Failure>,
    /// The time of the last message about it, in milliseconds.
    heard: u64,
}

impl Bundle {
    /// Lets its messages go, and refuses what comes for it.
    fn fail(&mut self, failure: Failure) {
        self.failure = Some(failure);
        self.messages.clear();
    }
}

impl Bundles {
    pub(super) const fn new(switch: Switch) -> Self {
        Self { switch, known: Vec::new() }
    }

    /// Makes a step of a bundle. The messages of one that is to be committed come back.
    pub(super) fn step(&mut self, asked: BundleControl, now: u64) -> Result<Option<Messages>, Failure> {
        let BundleControl { id, step, flags } = asked;
        self.expire(now);
        let at = self.place(id);
        if step == BundleStep::Open {
            check_flags(flags)?;
            if let Some(at) = at {
                if self.known[at].failure.is_none() {
                    self.known[at].fail(Failure::BUNDLE_ID);
                    return Err(Failure::BUNDLE_ID);
                }
                self.known.remove(at);
            }
            return self.open(id, flags, now).map(|_| None);
        }
        let at = at.ok_or(Failure::BUNDLE_ID)?;
        if step == BundleStep::Discard {
            self.known.remove(at);
            return Ok(None);
        }
        let bundle = &mut self.known[at];
        bundle.heard = now;
        let refused = match bundle.failure {
            Some(failure) => Some(failure),
            None if bundle.flags != flags => Some(Failure::BUNDLE_FLAGS),
            None if step == BundleStep::Close && bundle.is_closed => Some(Failure::BUNDLE_CLOSED),
            None => None,
        };
        if step == BundleStep::Commit {
            let bundle = self.known.remove(at);
            return refused.map_or(Ok(Some(bundle.messages)), Err);
        }
        bundle.is_closed = true;
        match refused {
            None => Ok(None),
            Some(failure) => {
                if bundle.failure.is_none() {
                    bundle.fail(Failure::BUNDLE_ID);
                }
                Err(failure)
            }
        }
    }

    /// Adds a message to a bundle, and opens it if there is none of the number.
    pub(super) fn add(&mut self, asked: &BundleAdd, xid: u32, now: u64) -> Result<(), Failure> {
        self.expire(now);
        let bundle = match self.place(asked.id) {
            Some(at) => &mut self.known[at],
            None => {
                check_flags(asked.flags)?;
                self.open(asked.id, asked.flags, now)?
            }
        };
        bundle.heard = now;
        if let Some(failure) = bundle.failure {
            return Err(failure);
        }
        let (failure, told) = match asked.message(xid) {
            _ if bundle.is_closed => (Failure::BUNDLE_ID, Failure::BUNDLE_CLOSED),
            _ if bundle.flags != asked.flags => (Failure::BUNDLE_ID, Failure::BUNDLE_FLAGS),
            Err(failure) => (Failure::BUNDLE_MSG_FAILED, failure),
            Ok(message) if bundle.messages.push(message) => return Ok(()),
            Ok(_) => (Failure::BUNDLE_MSG_TOO_MANY, Failure::BUNDLE_MSG_TOO_MANY),
        };
        bundle.fail(failure);
        Err(told)
    }

    /// Lets bundles fail of which nothing was said for long.
    pub(super) fn expire(&mut self, now: u64) {
        let is_over = |bundle: &&mut Bundle| bundle.failure.is_none() && bundle.heard + IDLE < now;
        self.known.iter_mut().filter(is_over).for_each(|bundle| bundle.fail(Failure::BUNDLE_TIMEOUT));
    }

    fn place(&self, id: u32) -> Option<usize> {
        self.known.iter().position(|bundle| bundle.id == id)
    }

    /// Opens a bundle of a number that there is not. One that failed long ago makes place.
    fn open(&mut self, id: u32, flags: u16, now: u64) -> Result<&mut Bundle, Failure> {
        if self.known.len() >= MOST {
            let failed = self.known.iter().position(|bundle| bundle.failure.is_some());
            self.known.remove(failed.ok_or(Failure::OUT_OF_BUNDLES)?);
        }
        let messages = Messages { switch: self.switch.clone(), bytes: Vec::new() };
        self.known.push(Bundle { id, flags, is_closed: false, messages, failure: None, heard: now });
        self.known.last_mut().ok_or(Failure::OUT_OF_BUNDLES)
    }
}

/// The messages of a bundle one behind the other. All bundles of a switch have a bound together.
pub(super) struct Messages {
    switch: Switch,
    bytes: Vec<u8>,
}

impl Messages {
    /// Adds a message, or tells that there is no place for it.
    fn push(&mut self, message: &[u8]) -> bool {
        let shared = &self.switch.0;
        let most = shared.options.most_bundle_bytes;
        let with = |bytes: usize| bytes.checked_add(message.len()).filter(|&bytes| bytes <= most);
        let fits = shared.bundled.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with).is_ok();
        if fits {
            self.bytes.extend(message);
        }
        fits
    }

    fn clear(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.switch.0.bundled.fetch_sub(bytes.len(), Ordering::Relaxed);
    }

    /// The messages in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[..];
        std::iter::from_fn(move || {
            let (message, after) = rest.split_at_checked(Header::of(rest)?.len.into())?;
            rest = after;
            Some(message)
        })
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SwitchOptions;
    use crate::wire::reply::bare;
    use crate::wire::{FlowMod, Instructions, Match};

    fn message() -> Vec<u8> {
        FlowMod::add(0, 1, Match::all(), Instructions::default()).to_message(5)
    }

    /// The answers to steps at times: those before `add` have numbers of [`BundleStep`].
    fn bundles(most: usize) -> (Switch, Bundles) {
        let options = SwitchOptions { most_bundle_bytes: most, ..SwitchOptions::with_ports(["a"]) };
        let switch = Switch::new(options).unwrap();
        (switch.clone(), Bundles::new(switch))
    }

    fn step(bundles: &mut Bundles, id: u32, step: BundleStep, now: u64) -> Result<usize, Failure> {
        let made = bundles.step(BundleControl { id, step, flags: 3 }, now)?;
        Ok(made.map_or(0, |messages| messages.iter().count()))
    }

    fn add(bundles: &mut Bundles, id: u32, now: u64) -> Result<(), Failure> {
        bundles.add(&BundleAdd { id, flags: 3, rest: message() }, 5, now)
    }

    #[test]
    fn a_bundle_of_which_nothing_is_said_fails_whole() {
        use BundleStep::{Close, Commit, Open};
        let (switch, mut bundles) = bundles(1 << 20);
        for (id, last) in [(1, IDLE), (2, IDLE + 1)] {
            assert_eq!(step(&mut bundles, id, Open, 0), Ok(0));
            assert_eq!(add(&mut bundles, id, 0), Ok(()));
            let is_there = last == IDLE;
            bundles.expire(last);
            assert_eq!(switch.0.bundled.load(Ordering::Relaxed), usize::from(is_there) * message().len());
            let wanted = |good: usize| if is_there { Ok(good) } else { Err(Failure::BUNDLE_TIMEOUT) };
            // No second half begins a bundle of its own.
            assert_eq!(add(&mut bundles, id, last), wanted(0).map(|_| ()));
            assert_eq!(step(&mut bundles, id, Close, last), wanted(0));
            assert_eq!(step(&mut bundles, id, Commit, last), wanted(2));
            assert_eq!(step(&mut bundles, id, Commit, last), Err(Failure::BUNDLE_ID));
        }
    }

    #[test]
    fn bundles_have_bounds_in_number_and_in_bytes() {
        use BundleStep::{Commit, Discard, Open};
        let len = message().len();
        let (switch, mut bundles) = bundles(3 * len);
        let mut other = Bundles::new(switch.clone());
        assert_eq!(add(&mut other, 1, 0), Ok(()));
        assert_eq!((add(&mut bundles, 1, 0), add(&mut bundles, 2, 0)), (Ok(()), Ok(())));
        // One byte too many: the bundle that does not fit is gone, with what it had.
        assert_eq!(add(&mut bundles, 1, 0), Err(Failure::BUNDLE_MSG_TOO_MANY));
        assert_eq!(add(&mut bundles, 2, 0), Ok(()));
        assert_eq!(step(&mut bundles, 1, Commit, 0), Err(Failure::BUNDLE_MSG_TOO_MANY));
        assert_eq!(step(&mut bundles, 2, Commit, 0), Ok(2));
        // With a connection its bundles go.
        drop(other);
        assert_eq!(switch.0.bundled.load(Ordering::Relaxed), 0);
        (0..64).for_each(|id| assert_eq!(step(&mut bundles, id, Open, 0), Ok(0)));
        assert_eq!(step(&mut bundles, 64, Open, 0), Err(Failure::OUT_OF_BUNDLES));
        assert_eq!(add(&mut bundles, 64, 0), Err(Failure::OUT_OF_BUNDLES));
        assert_eq!(step(&mut bundles, 7, Discard, 0), Ok(0));
        assert_eq!(step(&mut bundles, 64, Open, 0), Ok(0));
        // One that failed makes place.
        assert_eq!(step(&mut bundles, 9, Open, 0), Err(Failure::BUNDLE_ID));
        assert_eq!(step(&mut bundles, 65, Open, 0), Ok(0));
        assert_eq!(step(&mut bundles, 9, Commit, 0), Err(Failure::BUNDLE_ID));
    }

    #[test]
    fn what_can_not_be_in_a_bundle_is_refused_with_it() {
        let own = BundleControl { id: 1, step: BundleStep::Commit, flags: 3 }.reply(5);
        let mut short = message();
        short[3] -= 8;
        let mut long = message();
        long[3] += 8;
        let mut other = message();
        other[7] = 6;
        let padded = [&bare(2, 5)[..], &[0; 8]].concat();
        for (rest, failure) in [
            (bare(2, 5), Failure::BUNDLE_MSG_UNSUP),
            (bare(20, 5), Failure::BUNDLE_MSG_UNSUP),
            (own, Failure::BUNDLE_TYPE),
            (short, Failure::BAD_LEN),
            (long, Failure::BUNDLE_MSG_LEN),
            (other, Failure::BUNDLE_MSG_XID),
            (vec![4, 14, 0, 7, 0, 0, 0, 5], Failure::BUNDLE_MSG_LEN),
            (vec![4, 14, 0], Failure::BUNDLE_MSG_LEN),
            ([&message()[..], &[0xff, 0xff, 0, 12]].concat(), Failure::BAD_EXPERIMENTER),
            (padded, Failure::BAD_LEN),
        ] {
            let (_, mut bundles) = bundles(1 << 20);
            assert_eq!(add(&mut bundles, 1, 0), Ok(()));
            let told = bundles.add(&BundleAdd { id: 1, flags: 3, rest: rest.clone() }, 5, 0);
            assert_eq!(told, Err(failure), "{rest:?}");
            assert_eq!(step(&mut bundles, 1, BundleStep::Commit, 0), Err(Failure::BUNDLE_MSG_FAILED));
        }
    }
}
