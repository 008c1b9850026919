//! [`Recorded`]: a feed from bytes, without a socket or a thread.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use crate::error::Error;
use crate::model::Batch;
use crate::netlink::{Fault, Messages, read};
use crate::state::{Origin, Part, Paths, Policy, State};
use crate::status::{Monitored, Status};
use crate::{bmp, fpm};

/// A feed from bytes that the caller has: a recorded connection, or one that the caller reads itself.
///
/// ```
/// use wirespeed_feeds::{Recorded, fpm};
///
/// let mut fpm = Recorded::fpm(fpm::Options::default());
/// // A frame of FPM, version 1, type 1, with half of a netlink message: RTM_NEWROUTE.
/// let batch = fpm.read(&[1, 1, 0, 52, 48, 0, 0, 0, 24, 0])?;
/// assert!(batch.is_empty()); // the rest is to come
/// assert!(fpm.read(&[0; 42]).is_ok());
/// assert_eq!(fpm.status().messages, 1);
/// # Ok::<(), wirespeed_feeds::Error>(())
/// ```
#[derive(Debug)]
pub struct Recorded {
    source: Source,
    /// The bytes of a frame that is not whole.
    rest: Vec<u8>,
    status: Status,
}

enum Source {
    Netlink(State),
    Fpm(State),
    Bmp(Box<Bmp>),
}

struct Bmp {
    options: bmp::Options,
    router: bmp::Router,
    tables: bmp::Tables,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Source {
    const fn name(&self) -> &'static str {
        match self {
            Self::Netlink(_) => "netlink",
            Self::Fpm(_) => "FPM",
            Self::Bmp(_) => "BMP",
        }
    }
}

/// All that a source of netlink messages tells.
const PARTS: [Part; 4] = [Part::Hosts, Part::NextHops, Part::RoutesV4, Part::RoutesV6];

impl Recorded {
    /// Reads datagrams of the kernel, as monitors of routes record them, of at most so many prefixes.
    #[must_use]
    pub fn netlink(cap: usize) -> Self {
        Self::of(Source::Netlink(State::new(Policy::Kernel, cap)))
    }

    /// Reads FRR's side of a connection of FPM. Of the options only the cap counts.
    #[must_use]
    pub fn fpm(options: fpm::Options) -> Self {
        Self::of(Source::Fpm(State::new(Policy::Single, options.cap)))
    }

    /// Reads a router's side of a connection of BMP. Of the options only the peer, the view and the cap
    /// count.
    #[must_use]
    pub fn bmp(options: bmp::Options) -> Self {
        let router = bmp::Router::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), String::new());
        let tables = bmp::Tables { rib: bmp::Rib::new(options.cap), paths: Paths::default() };
        Self::of(Source::Bmp(Box::new(Bmp { options, router, tables })))
    }

    fn of(source: Source) -> Self {
        Self { source, rest: Vec::new(), status: Status::default() }
    }

    /// Reads the next bytes, and gives what they change. The end of a frame or message may come later; a
    /// datagram of netlink must be whole.
    ///
    /// Fails after a violation of the protocol. What came before it is applied, and
    /// [`changes`](Self::changes) tells it. The bytes after it are lost.
    pub fn read(&mut self, bytes: &[u8]) -> Result<Batch, Error> {
        self.rest.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.rest);
        let (consumed, result) = match &mut self.source {
            Source::Netlink(state) => {
                read_netlink(&bytes, state, &mut self.status);
                (bytes.len(), Ok(()))
            }
            Source::Fpm(state) => fpm::read(&bytes, state, &mut self.status),
            Source::Bmp(bmp) => bmp.read(&bytes, &mut self.status),
        };
        result.map_err(|reason| {
            self.status.violations += 1;
            Error::Violation { feed: self.source.name(), reason }
        })?;
        self.rest.extend_from_slice(&bytes[consumed..]);
        Ok(self.changes())
    }

    /// Takes the changes that were not told yet.
    pub fn changes(&mut self) -> Batch {
        let mut batch = Batch::new();
        self.status.prefixes = match &mut self.source {
            Source::Netlink(state) | Source::Fpm(state) => {
                state.drain(&mut batch);
                state.prefixes()
            }
            Source::Bmp(bmp) => {
                bmp.tables.rib.drain(&mut batch);
                bmp.tables.paths.forget_unused();
                let mut monitored = Monitored { routers: 1, ..Monitored::default() };
                bmp.router.count(&mut monitored);
                self.status.monitored = Some(monitored);
                bmp.tables.rib.prefixes()
            }
        } as u64;
        self.status.changes += batch.len() as u64;
        batch
    }

    /// Notes that the sender starts anew, and will tell everything again.
    pub fn restart(&mut self) {
        self.rest.clear();
        match &mut self.source {
            Source::Netlink(state) | Source::Fpm(state) => PARTS.iter().for_each(|&part| state.begin(part)),
            Source::Bmp(bmp) => {
                bmp.router.lost();
                bmp.router.connected(&bmp.options, &mut bmp.tables.rib);
            }
        }
    }

    /// Notes that the sender has told everything, and gives what changed: what did not come again since
    /// [`restart`](Self::restart) is gone.
    pub fn whole(&mut self) -> Batch {
        match &mut self.source {
            Source::Netlink(state) | Source::Fpm(state) => PARTS.iter().for_each(|&part| state.sweep(part)),
            Source::Bmp(bmp) => bmp.router.sweep(&mut bmp.tables.rib),
        }
        self.status.synced = true;
        self.changes()
    }

    /// The counters.
    #[must_use]
    pub fn status(&self) -> &Status {
        &self.status
    }
}

/// Applies the messages of a datagram of the kernel.
fn read_netlink(bytes: &[u8], state: &mut State, status: &mut Status) {
    for message in Messages::new(bytes) {
        status.messages += 1;
        match message.and_then(|message| Ok((read(&message)?, message.flags))) {
            Ok((event, flags)) => state.apply(event, flags, Origin::Backlog, status),
            Err(fault @ (Fault::Truncated | Fault::Malformed)) => status.skip(fault.into()),
        }
    }
}

impl Bmp {
    /// Applies whole messages. The bytes that they took, and the violation that ended them.
    fn read(&mut self, bytes: &[u8], status: &mut Status) -> (usize, Result<(), String>) {
        let mut messages = bmp::Messages::new(bytes);
        for raw in messages.by_ref() {
            status.messages += 1;
            match raw.and_then(bmp::read) {
                // An UPDATE that can't be read was counted.
                Ok(message) => {
                    let _ = self.router.take(&message, &self.options, &mut self.tables, status);
                }
                Err(fault) => return (messages.consumed(), Err(fault.0.to_owned())),
            }
        }
        (messages.consumed(), Ok(()))
    }
}
