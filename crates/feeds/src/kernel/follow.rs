//! [`run`]: the loop of the feed.

use std::time::{Duration, Instant};

use super::Options;
use super::backlog::{Backlog, apply};
use super::dump::{Dumped, Requests, dump};
use super::socket::{Received, Socket};
use crate::error::Error;
use crate::feed::Out;
use crate::model::{Batch, Change, Reason};
use crate::netlink::DumpOf;
use crate::state::{Origin, Part, Policy, State};
use crate::status::Status;

/// How often the loop looks whether the feed was dropped.
const TICK: Duration = Duration::from_millis(100);

/// Changes of a batch, about. More make each cheaper, and come later.
const TOGETHER: usize = 8_192;

/// Routes are compared this long after a link changed: links often change together.
const SETTLING: Duration = Duration::from_millis(50);

/// A comparison is followed by a pause of this many times its own length: a full table and a link that flaps
/// leave time for events.
const PAUSE: u32 = 1;

/// A comparison during which objects changed is repeated so much later. IPv6 routes that change all the time
/// interrupt each dump: then this is how often they are compared.
const INTERRUPTED: Duration = Duration::from_secs(30);

/// Comparisons in a row that an overrun spoiled, after which there is a pause.
const ROUNDS: u32 = 3;

/// Dumps, and the part of the state that each set of them fills.
type Dumps = &'static [(&'static [DumpOf], Part)];

/// The dumps of everything.
const ALL: Dumps = &[
    (&[DumpOf::Links, DumpOf::Addresses, DumpOf::Neighbours, DumpOf::Rules], Part::Hosts),
    (&[DumpOf::NextHops], Part::NextHops),
    (&[DumpOf::RoutesV4], Part::RoutesV4),
    (&[DumpOf::RoutesV6], Part::RoutesV6),
];

/// The dumps of what the kernel changes silently.
const SILENT: Dumps = &[(&[DumpOf::NextHops], Part::NextHops), (&[DumpOf::RoutesV4], Part::RoutesV4)];

/// Tells the kernel's state and its changes until the feed is dropped.
pub(super) fn run(options: &Options, out: &mut Out) -> Result<(), Error> {
    let mut follower = Follower {
        events: Socket::for_events(options.receive_buffer)?,
        requests: Requests::open()?,
        state: State::new(Policy::Kernel, options.cap),
        batch: Batch::new(),
        compare: None,
        next_comparison: Instant::now(),
        rest_until: Instant::now(),
    };
    out.status.connections += 1;
    follower.compare(ALL, None, out)?;
    while !out.is_stopped() {
        follower.step(out)?;
    }
    Ok(())
}

struct Follower {
    events: Socket,
    requests: Requests,
    state: State,
    batch: Batch,
    /// What is to be compared, and why.
    compare: Option<(Dumps, Reason)>,
    /// When the comparison starts.
    next_comparison: Instant,
    /// The end of the pause after the last comparison.
    rest_until: Instant,
}

impl Follower {
    /// Waits for events, and tells what they change.
    fn step(&mut self, out: &mut Out) -> Result<(), Error> {
        let wait = match self.compare {
            Some(_) => self.next_comparison.saturating_duration_since(Instant::now()).min(TICK),
            None => TICK,
        };
        self.events.wait(wait)?;
        let mut overran = false;
        while self.state.touched() < TOGETHER {
            match self.events.receive()? {
                Received::Datagram(datagram) => {
                    overran |= apply(datagram, Origin::Live, &mut self.state, &mut out.status);
                }
                Received::Overrun => overran = true,
                Received::Nothing => break,
            }
            if overran {
                break;
            }
        }
        if overran {
            self.overrun(out);
        }
        if self.state.take_suspect() {
            match self.compare {
                None => self.plan(SILENT, Reason::Silence, SETTLING),
                // A comparison that is planned for later comes now.
                Some((_, Reason::Interrupted)) => self.plan(ALL, Reason::Silence, SETTLING),
                Some(_) => {}
            }
        }
        self.tell(out);
        if let Some((what, reason)) = self.compare
            && Instant::now() >= self.next_comparison
        {
            self.compare = None;
            self.compare(what, Some(reason), out)?;
        }
        Ok(())
    }

    fn overrun(&mut self, out: &mut Out) {
        out.status.overruns += 1;
        tracing::warn!(
            overruns = out.status.overruns,
            "the kernel's buffer overran: everything is read again"
        );
        self.plan(ALL, Reason::Overrun, Duration::ZERO);
    }

    /// Plans a comparison after a while, and after the pause.
    fn plan(&mut self, what: Dumps, reason: Reason, after: Duration) {
        self.compare = Some((what, reason));
        self.next_comparison = self.rest_until.max(Instant::now() + after);
    }

    /// Sends the changes so far.
    fn tell(&mut self, out: &mut Out) {
        self.state.drain(&mut self.batch);
        out.status.prefixes = self.state.prefixes() as u64;
        out.send(std::mem::take(&mut self.batch));
    }

    /// Reads parts of the kernel's state, and tells how they differ from what is held. The first time,
    /// without a reason, changes are told as they come.
    fn compare(&mut self, what: Dumps, reason: Option<Reason>, out: &mut Out) -> Result<(), Error> {
        let start = Instant::now();
        let mut what = what;
        let (mut is_whole, mut is_overrun) = (true, true);
        for _ in 0..ROUNDS {
            let mut backlog = Backlog::default();
            // After an overrun events are of no use: the dump tells what they tell. They would also be
            // applied to a state of which the events before them are missing.
            if reason == Some(Reason::Overrun) {
                Backlog::default().take_from(&mut self.events)?;
            }
            is_whole = true;
            for &(dumps, part) in what {
                self.state.begin(part);
                let mut part_is_whole = true;
                for &of in dumps {
                    part_is_whole &= self.dump(of, reason.is_none(), &mut backlog, out)? == Dumped::Whole;
                    if out.is_stopped() {
                        return Ok(());
                    }
                }
                // What an interrupted dump missed is not gone.
                if part_is_whole {
                    self.state.sweep(part);
                }
                is_whole &= part_is_whole;
            }
            backlog.take_from(&mut self.events)?;
            is_overrun = backlog.is_overrun();
            if !is_overrun {
                backlog.apply_to(&mut self.state, &mut out.status);
                break;
            }
            out.status.overruns += 1;
            what = ALL;
        }
        self.rest_until = Instant::now() + start.elapsed() * PAUSE;
        // What went meanwhile is in the dump, unless it went after its turn.
        let is_suspect = self.state.take_suspect();
        if is_overrun {
            self.plan(ALL, Reason::Overrun, Duration::ZERO);
        } else if !is_whole {
            self.plan(ALL, Reason::Interrupted, if is_suspect { SETTLING } else { INTERRUPTED });
        } else if is_suspect {
            self.plan(SILENT, Reason::Silence, SETTLING);
        }
        self.state.drain(&mut self.batch);
        if !is_overrun {
            let reason = reason.filter(|_| out.status.synced);
            self.batch.push(reason.map_or(Change::Synced, Change::Resynced));
        }
        self.tell(out);
        Ok(())
    }

    fn dump(
        &mut self,
        of: DumpOf,
        at_once: bool,
        backlog: &mut Backlog,
        out: &mut Out,
    ) -> Result<Dumped, Error> {
        let (events, batch, out) = (&mut self.events, &mut self.batch, out);
        let mut status = std::mem::take(&mut out.status);
        let mut between = |state: &mut State, status: &mut Status| {
            if at_once && state.touched() >= TOGETHER {
                state.drain(batch);
                status.prefixes = state.prefixes() as u64;
                std::mem::swap(&mut out.status, status);
                out.send(std::mem::take(batch));
                std::mem::swap(&mut out.status, status);
            }
            !out.is_stopped()
        };
        let dumped =
            dump(of, &mut self.requests, (events, backlog), &mut self.state, &mut status, &mut between);
        out.status = status;
        dumped
    }
}
