//! [`PathLabels`]: an index for each path that routes use, and what the forwarder does with its packets.
//!
//! Each path of a VRF has an index of its own, so that a neighbour's new address replaces labels and touches
//! no route. The index of a path that no route uses any more waits before it is given to another path: chunks
//! under way may still hold it.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foldhash::HashMap;
use wirespeed::{Labels, NextHop};
use wirespeed_feeds::Path;

use super::resolve::Ways;
use super::routes::Vrf;
use crate::{Error, Hop, Mac, PortId, Route, Taken};

/// How long an index rests: chunks are done within a fraction of it.
const REST: Duration = Duration::from_secs(2);

/// The paths that routes use.
pub(super) struct PathLabels {
    routes: Labels<Route>,
    paths: HashMap<(Vrf, Arc<Path>), Used>,
    resting: VecDeque<(Instant, NextHop)>,
    /// Numbers of labels that were made: each is another value.
    made: u64,
    has_new: bool,
}

struct Used {
    index: NextHop,
    route: Route,
    prefixes: usize,
}

impl PathLabels {
    pub(super) fn new() -> Self {
        Self {
            routes: Labels::new(),
            paths: HashMap::default(),
            resting: VecDeque::new(),
            made: 0,
            has_new: false,
        }
    }

    pub(super) fn routes(&self) -> Labels<Route> {
        self.routes.clone()
    }

    /// Counts one more prefix of a path, and gives its index. A new path gets a new one.
    pub(super) fn use_path(&mut self, vrf: Vrf, path: &Arc<Path>, ways: Ways<'_>) -> Result<NextHop, Error> {
        if let Some(used) = self.paths.get_mut(&(vrf, Arc::clone(path))) {
            used.prefixes += 1;
            return Ok(used.index);
        }
        let route = ways.resolve(vrf, path);
        let index = match self.resting.front() {
            Some((since, index)) if since.elapsed() >= REST => {
                let index = *index;
                self.resting.pop_front();
                index
            }
            _ => self.fresh()?,
        };
        self.routes.replace(index, route.clone())?;
        self.has_new = true;
        self.paths.insert((vrf, Arc::clone(path)), Used { index, route, prefixes: 1 });
        Ok(index)
    }

    /// A new index. Its first value is unlike any other, so that no two paths share an index.
    fn fresh(&mut self) -> Result<NextHop, Error> {
        self.made += 1;
        let [_, _, rest @ ..] = self.made.to_be_bytes();
        let value = Route::Via(Hop::new(PortId(u16::MAX), Mac(rest), Mac([0xff; 6]), 0));
        self.routes.intern(value).map_err(|_| Error::Control("there are more paths than indexes"))
    }

    /// Whether there are paths that were not there at the last call.
    pub(super) fn take_new(&mut self) -> bool {
        std::mem::take(&mut self.has_new)
    }

    /// Lets a path go that a prefix left.
    pub(super) fn let_go(&mut self, vrf: Vrf, path: Arc<Path>) {
        let key = (vrf, path);
        let Some(used) = self.paths.get_mut(&key) else { return };
        used.prefixes -= 1;
        if used.prefixes == 0 {
            self.resting.push_back((Instant::now(), used.index));
            self.paths.remove(&key);
        }
    }

    /// Resolves all paths again, and replaces the labels of those that lead elsewhere now.
    pub(super) fn resolve_again(&mut self, ways: Ways<'_>) -> Result<(), Error> {
        for ((vrf, path), used) in &mut self.paths {
            let route = ways.resolve(*vrf, path);
            if route != used.route {
                self.routes.replace(used.index, route.clone())?;
                used.route = route;
            }
        }
        Ok(())
    }

    /// The gateways of the kernel's paths that carried packets, with their interfaces.
    pub(super) fn used_gateways(&self, taken: &Taken, ways: Ways<'_>) -> impl Iterator<Item = (u32, IpAddr)> {
        let is_used = move |(vrf, used): (Vrf, &Used)| taken.has(used.index) && ways.routes.is_kernels(vrf);
        let used = self.paths.iter().filter(move |((vrf, _), used)| is_used((*vrf, used)));
        used.flat_map(move |((vrf, path), _)| ways.gateways(*vrf, path))
    }

    /// The gateways of the paths whose next hops the kernel does not find by itself, with their interfaces.
    pub(super) fn gateways(&self, ways: Ways<'_>) -> impl Iterator<Item = (u32, IpAddr)> {
        let ours = self.paths.keys().filter(move |(vrf, _)| !ways.routes.is_kernels(*vrf));
        ours.flat_map(move |(vrf, path)| ways.gateways(*vrf, path))
    }
}
