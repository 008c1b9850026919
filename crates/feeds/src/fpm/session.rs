//! [`run`]: the loop of the feed, and [`Session`]: one connection of FRR.

use std::net::TcpListener;
use std::time::{Duration, Instant, SystemTime};

use super::Options;
use super::frame::Frames;
use crate::feed::Out;
use crate::model::{Batch, Change, Reason};
use crate::netlink::{Event, Fault, Messages, read as read_message};
use crate::quiet::Quiet;
use crate::state::{Origin, Part, Policy, State};
use crate::status::{Skip, Status};
use crate::tcp::{self, Connection};

/// How often the loop looks whether the feed was dropped.
const TICK: Duration = Duration::from_millis(100);

/// What FRR tells.
const PARTS: [Part; 3] = [Part::NextHops, Part::RoutesV4, Part::RoutesV6];

/// Tells FRR's routes until the feed is dropped.
pub(super) fn run(listener: &TcpListener, options: &Options, out: &mut Out) {
    let mut state = State::new(Policy::Single, options.cap);
    let mut session: Option<Session> = None;
    while !out.is_stopped() {
        let connections = session.iter().map(|session| &session.connection);
        let is_ready = tcp::wait(listener, connections, TICK).first() == Some(&true);
        if let Some(connection) = tcp::accept(listener) {
            if let Some(old) = &session {
                tracing::warn!(old = %old.connection.from, new = %connection.from, "FPM: a second connection");
            }
            out.status.connections += 1;
            PARTS.iter().for_each(|&part| state.begin(part));
            session = Some(Session::new(connection, options.quiet, state.came()));
            continue;
        }
        let Some(current) = &mut session else { continue };
        let mut batch = Batch::new();
        let end = if is_ready { current.read(&mut state, &mut out.status) } else { None };
        state.drain(&mut batch);
        if current.is_whole(&state) {
            PARTS.iter().for_each(|&part| state.sweep(part));
            state.drain(&mut batch);
            let first = !out.status.synced;
            batch.push(if first { Change::Synced } else { Change::Resynced(Reason::Reconnected) });
        }
        if let Some(end) = end {
            if let End::Violation(violation) = &end {
                out.status.violations += 1;
                tracing::warn!(from = %current.connection.from, %violation, "FPM: the connection is dropped");
            } else {
                tracing::warn!(from = %current.connection.from, "FPM: the connection ended");
            }
            session = None;
            if out.status.stale_since.is_none() {
                batch.push(Change::Stale(SystemTime::now()));
            }
        }
        out.status.prefixes = state.prefixes() as u64;
        out.send(batch);
    }
}

/// One connection of FRR.
#[derive(Debug)]
struct Session {
    connection: Connection,
    /// Says when the table is whole; `None` if it was.
    quiet: Option<Quiet>,
    /// Whether a whole frame came. Somebody who only connects must not seem to be a FRR without routes.
    has_spoken: bool,
}

/// Why a session is over.
#[derive(Debug)]
enum End {
    Closed,
    Violation(String),
}

impl Session {
    fn new(connection: Connection, quiet: Duration, came: u64) -> Self {
        Self { connection, quiet: Some(Quiet::new(quiet, Instant::now(), came)), has_spoken: false }
    }

    /// Whether the table became whole. True once.
    fn is_whole(&mut self, state: &State) -> bool {
        let (came, prefixes) = (state.came(), state.prefixes() as u64);
        let has_spoken = self.has_spoken;
        self.quiet.take_if(|quiet| has_spoken && quiet.is_whole(Instant::now(), came, prefixes)).is_some()
    }

    /// Reads what there is.
    fn read(&mut self, state: &mut State, status: &mut Status) -> Option<End> {
        match self.connection.fill() {
            Ok(true) => {}
            Ok(false) | Err(_) => return Some(End::Closed),
        }
        let (consumed, result) = read(self.connection.bytes(), state, status);
        self.connection.consume(consumed);
        self.has_spoken |= consumed > 0;
        result.err().map(End::Violation)
    }
}

/// Applies the whole frames. The bytes that they took, and the violation that ended them.
pub(crate) fn read(bytes: &[u8], state: &mut State, status: &mut Status) -> (usize, Result<(), String>) {
    let mut frames = Frames::new(bytes);
    for frame in frames.by_ref() {
        let applied = match frame {
            Ok(frame) => apply(frame, state, status),
            Err(violation) => Err(violation.to_string()),
        };
        if applied.is_err() {
            return (frames.consumed(), applied);
        }
    }
    (frames.consumed(), Ok(()))
}

/// Applies the messages of a frame.
fn apply(frame: &[u8], state: &mut State, status: &mut Status) -> Result<(), String> {
    for message in Messages::new(frame) {
        status.messages += 1;
        let message = message.map_err(|fault| {
            match fault {
                Fault::Truncated => "a netlink message that is longer than its frame",
                Fault::Malformed => "a netlink message that is shorter than its header",
            }
            .to_owned()
        })?;
        match read_message(&message) {
            Ok(
                event @ (Event::NextHop(_) | Event::NextHopGone(_) | Event::Route(_) | Event::RouteGone(_)),
            ) => state.apply(event, 0, Origin::Live, status),
            Ok(Event::Skipped(reason)) => status.skip(reason),
            // Links and neighbours are the kernel's to tell.
            Ok(_) => status.skip(Skip::OtherKind),
            Err(fault) => status.skip(fault.into()),
        }
    }
    Ok(())
}
