//! [`PathLabels`]: an index for each path that routes use, and what the forwarder does with its packets.
//!
//! Each path has an index of its own, so that a neighbour's new address replaces labels and touches no
//! route. The index of a path that no route uses any more waits before it is given to another path: chunks
//! under way may still hold it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use wirespeed::{AnyUpdate, Labels, NextHop};
use wirespeed_feeds::Path;

use super::neighbours::Neighbours;
use super::resolve::{Links, resolve};
use crate::{Error, Hop, Mac, PortId, Route};

/// How long an index rests: chunks are done within a fraction of it.
const REST: Duration = Duration::from_secs(2);

/// The paths that routes use.
pub(super) struct PathLabels {
    routes: Labels<Route>,
    paths: HashMap<Arc<Path>, Used>,
    /// The path of each prefix in the table.
    of: HashMap<IpNet, Arc<Path>>,
    resting: VecDeque<(Instant, NextHop)>,
    /// Numbers of labels that were made: each is another value.
    made: u64,
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
            paths: HashMap::new(),
            of: HashMap::new(),
            resting: VecDeque::new(),
            made: 0,
        }
    }

    pub(super) fn routes(&self) -> Labels<Route> {
        self.routes.clone()
    }

    /// Plans the update that gives a prefix a path, or takes its path away. Paths that the prefix left go to
    /// `gone`, for [`let_go`](Self::let_go) when the update is done.
    pub(super) fn plan(
        &mut self,
        prefix: IpNet,
        path: Option<&Arc<Path>>,
        (links, neighbours): (&Links, &Neighbours),
        updates: &mut Vec<AnyUpdate>,
        gone: &mut Vec<Arc<Path>>,
    ) -> Result<(), Error> {
        if self.of.get(&prefix) == path {
            return Ok(());
        }
        let no_host_bits = |_| Error::Control("the kernel told a prefix with host bits");
        let old = match path {
            Some(path) => {
                let index = self.use_path(path, links, neighbours)?;
                updates.push(AnyUpdate::announce(prefix, index).map_err(no_host_bits)?);
                self.of.insert(prefix, Arc::clone(path))
            }
            None => {
                updates.push(AnyUpdate::withdraw(prefix).map_err(no_host_bits)?);
                self.of.remove(&prefix)
            }
        };
        gone.extend(old);
        Ok(())
    }

    /// Counts one more prefix of a path. A new path gets an index.
    fn use_path(
        &mut self,
        path: &Arc<Path>,
        links: &Links,
        neighbours: &Neighbours,
    ) -> Result<NextHop, Error> {
        if let Some(used) = self.paths.get_mut(path) {
            used.prefixes += 1;
            return Ok(used.index);
        }
        let route = resolve(path, links, neighbours);
        let index = match self.resting.front() {
            Some((since, index)) if since.elapsed() >= REST => {
                let index = *index;
                self.resting.pop_front();
                index
            }
            _ => self.fresh()?,
        };
        self.routes.replace(index, route.clone())?;
        self.paths.insert(Arc::clone(path), Used { index, route, prefixes: 1 });
        Ok(index)
    }

    /// A new index. Its first value is unlike any other, so that no two paths share an index.
    fn fresh(&mut self) -> Result<NextHop, Error> {
        self.made += 1;
        let [_, _, rest @ ..] = self.made.to_be_bytes();
        let value = Route::Via(Hop::new(PortId(u16::MAX), Mac(rest), Mac([0xff; 6]), 0));
        self.routes.intern(value).map_err(|_| Error::Control("there are more paths than indexes"))
    }

    /// Lets paths go that prefixes left.
    pub(super) fn let_go(&mut self, gone: Vec<Arc<Path>>) {
        for path in gone {
            let Some(used) = self.paths.get_mut(&path) else { continue };
            used.prefixes -= 1;
            if used.prefixes == 0 {
                self.resting.push_back((Instant::now(), used.index));
                self.paths.remove(&path);
            }
        }
    }

    /// Resolves all paths again, and replaces the labels of those that lead elsewhere now.
    pub(super) fn resolve_again(&mut self, links: &Links, neighbours: &Neighbours) -> Result<(), Error> {
        for (path, used) in &mut self.paths {
            let route = resolve(path, links, neighbours);
            if route != used.route {
                self.routes.replace(used.index, route.clone())?;
                used.route = route;
            }
        }
        Ok(())
    }
}
