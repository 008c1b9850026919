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

use crate::{Error, Report};
use serve::Server;

/// The counters of a router, served for Prometheus until this is dropped.
///
/// ```no_run
/// use wirespeed_router::metrics::Metrics;
/// use wirespeed_router::Report;
///
/// let metrics = Metrics::serve("127.0.0.1:9464".parse()?)?;
/// println!("http://{}/metrics", metrics.address());
/// metrics.publish(&Report::default());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The server answers `GET /metrics` and nothing else. It speaks with a few clients at once, and gives each a
/// few seconds and a few kilobytes for its request, so no client holds it up. It asks nobody who they are:
/// an address that others reach lets them read.
#[derive(Debug)]
pub struct Metrics {
    report: Arc<Mutex<Report>>,
    server: Server,
}

impl Metrics {
    /// Listens at an address: port 0 takes a free one.
    pub fn serve(address: SocketAddr) -> Result<Self, Error> {
        let report = Arc::new(Mutex::new(Report::default()));
        let shared = Arc::clone(&report);
        let answer = move || {
            let report = shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
            text::of(&report)
        };
        let server = Server::start(address, answer)
            .map_err(|cause| Error::port("metrics", format!("{address} can't be listened at"), cause))?;
        Ok(Self { report, server })
    }

    /// The address that it listens at.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Answers with this report from now on.
    pub fn publish(&self, report: &Report) {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone_from(report);
    }
}
