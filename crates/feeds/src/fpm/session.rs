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

/// Connections that have not sent a frame yet, at most. The oldest gives way.
const NEWCOMERS: usize = 16;

/// What FRR tells.
const PARTS: [Part; 3] = [Part::NextHops, Part::RoutesV4, Part::RoutesV6];

/// Tells FRR's routes until the feed is dropped.
pub(super) fn run(listener: &TcpListener, options: &Options, out: &mut Out) {
    let mut state = State::new(Policy::Single, options.cap);
    let mut session: Option<Session> = None;
    let mut newcomers = Vec::new();
    while !out.is_stopped() {
        let connections = session.iter().map(|session| &session.connection).chain(&newcomers);
        let mut ready = tcp::wait(listener, connections, TICK).into_iter();
        let mut is_ready = session.is_some() && ready.next() == Some(true);
        if let Some(connection) = hear(&mut newcomers, ready, &mut out.status) {
            if let Some(old) = &session {
                tracing::warn!(old = %old.connection.from, new = %connection.from, "FPM: a second connection");
            }
            PARTS.iter().for_each(|&part| state.begin(part));
            let quiet = if out.status.synced { options.quiet } else { options.first_quiet };
            session = Some(Session::new(connection, quiet, state.came()));
            // Its first frame is there.
            is_ready = true;
        }
        while let Some(connection) = tcp::accept(listener) {
            out.status.connections += 1;
            if newcomers.len() == NEWCOMERS {
                let silent: Connection = newcomers.remove(0);
                tracing::warn!(from = %silent.from, limit = NEWCOMERS, "FPM: too many connections without a frame");
            }
            newcomers.push(connection);
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
            end.tell(&current.connection, &mut out.status);
            session = None;
            if out.status.stale_since.is_none() {
                batch.push(Change::Stale(SystemTime::now()));
            }
        }
        out.status.prefixes = state.prefixes() as u64;
        out.send(batch);
    }
}

/// Reads from those that have not sent a frame yet. Returns the newest of those whose first frame is valid.
/// Drops those that end or send something else. `ready` says which have bytes.
fn hear(
    newcomers: &mut Vec<Connection>,
    ready: impl Iterator<Item = bool>,
    status: &mut Status,
) -> Option<Connection> {
    let ready: Vec<usize> = (0..).zip(ready).filter(|&(_, is_ready)| is_ready).map(|(at, _)| at).collect();
    let mut speaker = None;
    // From the last on, so that the others keep their places.
    for at in ready.into_iter().rev() {
        match speaks(&mut newcomers[at]) {
            Ok(false) => {}
            Ok(true) => {
                let heard = newcomers.remove(at);
                speaker.get_or_insert(heard);
            }
            Err(end) => end.tell(&newcomers.remove(at), status),
        }
    }
    speaker
}

/// Reads what there is, and says whether the first whole frame has come. It has to hold messages, so that
/// bytes that happen to be a frame's header are none.
fn speaks(connection: &mut Connection) -> Result<bool, End> {
    if !connection.fill().unwrap_or(false) {
        return Err(End::Closed);
    }
    let Some(frame) = Frames::new(connection.bytes()).next() else { return Ok(false) };
    let frame = frame.map_err(|violation| End::Violation(violation.to_string()))?;
    let mut messages = Messages::new(frame).peekable();
    if messages.peek().is_none() {
        return Err(End::Violation("a first frame without messages".to_owned()));
    }
    messages.try_for_each(|message| message.map(|_| ())).map_err(|fault| End::Violation(of_fault(&fault)))?;
    Ok(true)
}

/// One connection of FRR, which has sent a frame.
#[derive(Debug)]
struct Session {
    connection: Connection,
    /// Says when the table is whole; `None` if it was.
    quiet: Option<Quiet>,
}

/// Why a session is over.
#[derive(Debug)]
enum End {
    Closed,
    Violation(String),
}

impl End {
    /// Warns of the end, and counts violations.
    fn tell(&self, connection: &Connection, status: &mut Status) {
        match self {
            Self::Violation(violation) => {
                status.violations += 1;
                tracing::warn!(from = %connection.from, %violation, "FPM: the connection is dropped");
            }
            Self::Closed => tracing::warn!(from = %connection.from, "FPM: the connection ended"),
        }
    }
}

impl Session {
    fn new(connection: Connection, quiet: Duration, came: u64) -> Self {
        Self { connection, quiet: Some(Quiet::new(quiet, Instant::now(), came)) }
    }

    /// Whether the table became whole. True once.
    fn is_whole(&mut self, state: &State) -> bool {
        let (came, prefixes) = (state.came(), state.prefixes() as u64);
        self.quiet.take_if(|quiet| quiet.is_whole(Instant::now(), came, prefixes)).is_some()
    }

    /// Reads what there is.
    fn read(&mut self, state: &mut State, status: &mut Status) -> Option<End> {
        match self.connection.fill() {
            Ok(true) => {}
            Ok(false) | Err(_) => return Some(End::Closed),
        }
        let (consumed, result) = read(self.connection.bytes(), state, status);
        self.connection.consume(consumed);
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
        let message = message.map_err(|fault| of_fault(&fault))?;
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

fn of_fault(fault: &Fault) -> String {
    match fault {
        Fault::Truncated => "a netlink message that is longer than its frame",
        Fault::Malformed => "a netlink message that is shorter than its header",
    }
    .to_owned()
}
