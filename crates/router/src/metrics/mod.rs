//! [`Metrics`]: what a router does, for Prometheus: counters, sizes of chunks and latencies, as text over
//! HTTP.
//!
//! ```text
//! run ── told, ten times a second ──► Metrics ◄── GET /metrics ── a scraper
//! ```
//!
//! A scraper sees one report as a whole, so its sums agree: each frame that came in is out, dropped, with the
//! operating system, or queued.

mod serve;
mod text;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use wirespeed_feeds::Monitored;

use crate::{Error, Report};
use serve::Server;

/// The state of a source of routes that is followed, such as the kernel or a daemon of BGP.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SourceState {
    /// Its name, such as `kernel` or `fpm:127.0.0.1:2620`.
    pub source: String,
    /// Whether its first state was whole.
    pub is_synced: bool,
    /// The time since it was lost; `None` while it is there.
    pub stale: Option<Duration>,
    /// The routes that it has now.
    pub prefixes: u64,
    /// Messages that were read, those that were skipped included.
    pub messages: u64,
    /// Changes that it told. A route that changes more than once in what is read at once is told once.
    pub changes: u64,
    /// The times that its state was compared with the source again.
    pub resyncs: u64,
    /// Connections that were made.
    pub connections: u64,
    /// Connections that were dropped for a violation of their protocol.
    pub violations: u64,
    /// The times that the kernel's buffer overran.
    pub overruns: u64,
    /// Messages that were skipped.
    pub skipped: u64,
    /// The routers and their peers; `None` if the source is not of BMP.
    pub monitored: Option<Monitored>,
}

/// The report and the states that a scraper is told.
#[derive(Clone, Debug, Default)]
struct Told {
    report: Report,
    sources: Vec<SourceState>,
}

/// The counters of a router, served for Prometheus until this is dropped.
///
/// ```no_run
/// use wirespeed_router::metrics::Metrics;
/// use wirespeed_router::Report;
///
/// let metrics = Metrics::serve("127.0.0.1:9464".parse()?)?;
/// println!("http://{}/metrics", metrics.address());
/// metrics.publish(&Report::default(), Vec::new());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The server answers `GET /metrics` and nothing else. It speaks with a few clients at once, and gives each a
/// few seconds and a few kilobytes for its request, so no client holds it up. It asks nobody who they are:
/// an address that others reach lets them read.
#[derive(Debug)]
pub struct Metrics {
    told: Arc<Mutex<Told>>,
    server: Server,
}

impl Metrics {
    /// Listens at an address: port 0 takes a free one.
    pub fn serve(address: SocketAddr) -> Result<Self, Error> {
        let told: Arc<Mutex<Told>> = Arc::default();
        let shared = Arc::clone(&told);
        let answer = move || {
            let told = shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
            text::of(told)
        };
        let server = Server::start(address, answer)
            .map_err(|cause| Error::port("metrics", format!("{address} can't be listened at"), cause))?;
        Ok(Self { told, server })
    }

    /// The address that it listens at.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Answers with this report, and these states of the sources of routes, from now on.
    pub fn publish(&self, report: &Report, sources: Vec<SourceState>) {
        let told = Told { report: report.clone(), sources };
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = told;
    }
}
