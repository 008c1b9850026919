//! [`run`]: the loop of the feed, over the connections of all routers.

use std::net::TcpListener;
use std::time::{Duration, Instant, SystemTime};

use super::Options;
use super::fault::Fault;
use super::message::{Message, Messages, read};
use super::peers::Peers;
use super::rib::Rib;
use super::router::{Router, Tables};
use crate::feed::Out;
use crate::model::{Batch, Change, Reason};
use crate::state::Paths;
use crate::status::{Monitored, Status};
use crate::tcp::{self, Connection};

/// How often the loop looks whether the feed was dropped.
const TICK: Duration = Duration::from_millis(100);

/// Connections at one time at most. The oldest that has not said what router it is gives way to a new one.
const CONNECTIONS: usize = 64;

/// Routers that are remembered at most, with their routes.
const ROUTERS: usize = 256;

/// How often the state of the peers is made visible.
const PEERS_EVERY: Duration = Duration::from_millis(500);

/// A connection, and the router that it said to be.
#[derive(Debug)]
struct Session {
    connection: Connection,
    since: Instant,
    router: Option<usize>,
    is_over: bool,
}

/// Why a session is over.
enum End {
    Closed,
    Violation(Fault),
}

/// Tells what the routers tell, until the feed is dropped.
pub(super) fn run(listener: &TcpListener, options: &Options, peers: &Peers, out: &mut Out) {
    let mut all = All {
        options,
        sessions: Vec::new(),
        routers: Vec::new(),
        tables: Tables { rib: Rib::new(options.cap), paths: Paths::default() },
    };
    let mut peers_due = Instant::now();
    while !out.is_stopped() {
        let ready = tcp::wait(listener, all.sessions.iter().map(|session| &session.connection), TICK);
        let mut batch = Batch::new();
        for at in (0..ready.len()).filter(|&at| ready[at]) {
            all.read(at, &mut batch, &mut out.status);
        }
        all.end_silent(&mut out.status);
        all.sessions.retain(|session| !session.is_over);
        all.accept(listener, &mut out.status);
        all.tables.rib.drain(&mut batch);
        all.tables.paths.forget_unused();
        let mut synced = out.status.synced;
        for at in 0..all.routers.len() {
            if all.routers[at].becomes_whole(&mut all.tables.rib) {
                all.tables.rib.drain(&mut batch);
                batch.push(if synced { Change::Resynced(Reason::Reconnected) } else { Change::Synced });
                synced = true;
                // Other routers may still be away.
                let lost = all.routers.iter().filter_map(|router| router.lost_at).min();
                batch.extend(lost.map(Change::Stale));
            }
        }
        if peers_due <= Instant::now() {
            peers_due = Instant::now() + PEERS_EVERY;
            let list = all.routers.iter().flat_map(|router| router.peers(&all.tables.rib)).collect();
            peers.set(list);
        }
        out.status.prefixes = all.tables.rib.prefixes() as u64;
        out.status.monitored = Some(all.monitored());
        out.send(batch);
    }
}

struct All<'a> {
    options: &'a Options,
    sessions: Vec<Session>,
    routers: Vec<Router>,
    tables: Tables,
}

impl All<'_> {
    /// Takes the connections that wait, but no more at once than have a place: what they said is read before
    /// others come in their place.
    fn accept(&mut self, listener: &TcpListener, status: &mut Status) {
        let places = self.sessions.iter().filter(|session| session.router.is_none()).count();
        for _ in 0..(CONNECTIONS - self.sessions.len() + places).max(1) {
            let Some(connection) = tcp::accept(listener) else { break };
            status.connections += 1;
            if self.sessions.len() >= CONNECTIONS {
                // Sessions are in the order in which they came.
                let oldest = self.sessions.iter().position(|session| session.router.is_none());
                let dropped = oldest.map(|at| self.sessions.remove(at).connection);
                let is_new = dropped.is_none();
                let from = dropped.as_ref().unwrap_or(&connection).from;
                status.violations += 1;
                tracing::warn!(%from, limit = CONNECTIONS, "BMP: too many connections: this one is dropped");
                if is_new {
                    continue;
                }
            }
            self.sessions.push(Session { connection, since: Instant::now(), router: None, is_over: false });
        }
    }

    /// Ends the sessions without a first message in time, so that they take no place from routers.
    fn end_silent(&mut self, status: &mut Status) {
        let first_message = self.options.first_message;
        let is_silent = |session: &&mut Session| {
            !session.is_over && session.router.is_none() && session.since.elapsed() > first_message
        };
        for session in self.sessions.iter_mut().filter(is_silent) {
            status.violations += 1;
            session.is_over = true;
            tracing::warn!(
                from = %session.connection.from,
                after = ?first_message,
                "BMP: the connection is dropped: no message came"
            );
        }
    }

    /// The routers that are connected, and the peers of all.
    fn monitored(&self) -> Monitored {
        let routers = self.sessions.iter().filter(|session| session.router.is_some()).count() as u64;
        let mut monitored = Monitored { routers, ..Monitored::default() };
        self.routers.iter().for_each(|router| router.count(&mut monitored));
        monitored
    }

    /// Reads what a session has.
    fn read(&mut self, at: usize, batch: &mut Batch, status: &mut Status) {
        if self.sessions[at].is_over {
            return;
        }
        let end = match self.sessions[at].connection.fill() {
            Ok(true) => self.messages(at, status).err(),
            Ok(false) | Err(_) => Some(End::Closed),
        };
        let Some(end) = end else { return };
        let from = self.sessions[at].connection.from;
        match end {
            End::Closed => tracing::warn!(%from, "BMP: the connection ended"),
            End::Violation(Fault(reason)) => {
                status.violations += 1;
                tracing::warn!(%from, reason, "BMP: the connection is dropped");
            }
        }
        self.sessions[at].is_over = true;
        if let Some(router) = self.sessions[at].router {
            self.routers[router].lost();
            self.tables.rib.drain(batch);
            batch.push(Change::Stale(SystemTime::now()));
        }
    }

    /// Reads the whole messages that a session has.
    fn messages(&mut self, at: usize, status: &mut Status) -> Result<(), End> {
        // The bytes leave the session while the messages change the rest.
        let bytes = self.sessions[at].connection.take_bytes();
        let mut messages = Messages::new(&bytes);
        let mut result = Ok(());
        for raw in messages.by_ref() {
            status.messages += 1;
            result = match raw.and_then(read) {
                Ok(message) => self.message(at, &message, status),
                Err(fault) => Err(End::Violation(fault)),
            };
            if result.is_err() {
                break;
            }
        }
        let consumed = messages.consumed();
        self.sessions[at].connection.give_back(bytes, consumed);
        result
    }

    fn message(&mut self, at: usize, message: &Message<'_>, status: &mut Status) -> Result<(), End> {
        match (message, self.sessions[at].router) {
            (Message::Termination, _) => Err(End::Closed),
            (Message::Initiation { name }, None) => {
                self.sessions[at].router = Some(self.router(at, name.unwrap_or_default())?);
                Ok(())
            }
            (_, None) => Err(End::Violation(Fault("no initiation before other messages"))),
            (message, Some(router)) => {
                let taken = self.routers[router].take(message, self.options, &mut self.tables, status);
                if let Err(Fault(reason)) = taken {
                    tracing::debug!(router = self.routers[router].name, reason, "BMP: an UPDATE is skipped");
                }
                Ok(())
            }
        }
    }

    /// The router that a session's initiation names.
    fn router(&mut self, at: usize, name: &[u8]) -> Result<usize, End> {
        let (address, name) = (self.sessions[at].connection.from.ip(), String::from_utf8_lossy(name));
        let known = self.routers.iter().position(|router| router.address == address && router.name == name);
        let router = match known {
            Some(router) => router,
            None if self.routers.len() >= ROUTERS => {
                return Err(End::Violation(Fault("there are too many routers")));
            }
            None => {
                self.routers.push(Router::new(address, name.into_owned()));
                self.routers.len() - 1
            }
        };
        for session in self.sessions.iter_mut().filter(|session| session.router == Some(router)) {
            tracing::warn!(old = %session.connection.from, "BMP: a second connection of a router");
            (session.is_over, session.router) = (true, None);
            self.routers[router].lost();
        }
        self.routers[router].connected(self.options, &mut self.tables.rib);
        Ok(router)
    }
}
