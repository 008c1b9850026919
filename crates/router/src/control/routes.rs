//! [`Routes`]: the routes of all tables, those of the kernel and those that another source gives, and which
//! of them counts.

use std::net::IpAddr;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use ipnet::IpNet;
use wirespeed_feeds::{Path, PathKind, TableId};

use super::options::Source;

/// The tables that ports look up in: that of a VRF, by its number, or `None` outside of VRFs.
pub(super) type Vrf = Option<TableId>;

/// The routes of all tables.
pub(super) struct Routes {
    source: Source,
    /// The table of ports outside of VRFs.
    table: TableId,
    kernel: Tables,
    given: Tables,
    /// The paths of given routes, each once.
    paths: HashSet<Arc<Path>>,
    /// The number of paths at which unused ones are looked for.
    full_at: usize,
}

type Tables = HashMap<TableId, HashMap<IpNet, Arc<Path>>>;

/// Below this number of paths nothing is looked for.
const FEW: usize = 1024;

impl Routes {
    pub(super) fn new(source: Source, table: TableId) -> Self {
        let (kernel, given, paths) = (HashMap::default(), HashMap::default(), HashSet::default());
        Self { source, table, kernel, given, paths, full_at: FEW }
    }

    /// The number of the table of a VRF, or of ports outside.
    fn number(&self, vrf: Vrf) -> TableId {
        vrf.unwrap_or(self.table)
    }

    /// Whether the routes of a VRF come from another source than the kernel.
    pub(super) fn is_given(&self, vrf: Vrf) -> bool {
        match self.source {
            Source::Kernel => false,
            Source::OneTable => vrf.is_none(),
            Source::AllTables => true,
        }
    }

    /// Whether the kernel looks packets of a VRF up as the router does, so that it finds the next hops.
    pub(super) fn is_kernels(&self, vrf: Vrf) -> bool {
        !self.is_given(vrf) && (vrf.is_some() || self.table == TableId::MAIN)
    }

    /// The VRFs, or ports outside, in which routes of a table count.
    pub(super) fn concerned(&self, table: TableId) -> impl Iterator<Item = Vrf> + use<> {
        let is_outside = table == self.table || table == TableId::LOCAL;
        [Some(Some(table)), is_outside.then_some(None)].into_iter().flatten()
    }

    /// Sets a route of the kernel, or takes it away. Returns the path that was there.
    pub(super) fn set_kernels(
        &mut self,
        table: TableId,
        prefix: IpNet,
        path: Option<Arc<Path>>,
    ) -> Option<Arc<Path>> {
        set(&mut self.kernel, table, prefix, path)
    }

    /// Sets a given route, or takes it away. Returns the path that was there.
    pub(super) fn set_given(
        &mut self,
        table: TableId,
        prefix: IpNet,
        path: Option<Arc<Path>>,
    ) -> Option<Arc<Path>> {
        let path = path.map(|path| self.one(path));
        set(&mut self.given, table, prefix, path)
    }

    /// The one path of this content. The AS of the origin makes no other way.
    fn one(&mut self, path: Arc<Path>) -> Arc<Path> {
        let path = match path.origin_as {
            Some(_) => Arc::new(Path { origin_as: None, ..Path::clone(&path) }),
            None => path,
        };
        if let Some(known) = self.paths.get(&path) {
            return Arc::clone(known);
        }
        if self.paths.len() >= self.full_at {
            self.paths.retain(|path| Arc::strong_count(path) > 1);
            self.full_at = (2 * self.paths.len()).max(FEW);
        }
        self.paths.insert(Arc::clone(&path));
        path
    }

    /// The path that counts for a prefix. The router's own addresses come first, then given routes, if the
    /// VRF has some, then the kernel's; of those only the links' own beside given ones.
    pub(super) fn path(&self, vrf: Vrf, prefix: &IpNet) -> Option<&Arc<Path>> {
        let table = self.number(vrf);
        let kernels = || find(&self.kernel, table, prefix);
        let own = || match vrf {
            None => find(&self.kernel, TableId::LOCAL, prefix),
            Some(_) => kernels().filter(|path| is_own(path)),
        };
        own().or_else(|| match self.is_given(vrf) {
            true => find(&self.given, table, prefix).or_else(|| kernels().filter(|path| is_on_link(path))),
            false => kernels(),
        })
    }

    /// The kernel's path to an address that is a next hop: that of its longest prefix. A link-local address
    /// is on every link, so it has none.
    pub(super) fn way_to(&self, vrf: Vrf, address: IpAddr) -> Option<&Arc<Path>> {
        if matches!(address, IpAddr::V6(address) if address.is_unicast_link_local()) {
            return None;
        }
        let table = self.kernel.get(&self.number(vrf))?;
        let longest = IpNet::from(address).prefix_len();
        (0..=longest).rev().find_map(|length| {
            // No longer than the address.
            let prefix = IpNet::new(address, length).ok()?.trunc();
            table.get(&prefix)
        })
    }

    /// All prefixes that may have a path in a VRF.
    pub(super) fn prefixes(&self, vrf: Vrf) -> impl Iterator<Item = IpNet> + '_ {
        let local = vrf.is_none().then(|| self.kernel.get(&TableId::LOCAL)).flatten();
        let given = self.is_given(vrf).then(|| self.given.get(&self.number(vrf))).flatten();
        let tables = [local, self.kernel.get(&self.number(vrf)), given];
        tables.into_iter().flatten().flat_map(HashMap::keys).copied()
    }
}

fn find<'t>(tables: &'t Tables, table: TableId, prefix: &IpNet) -> Option<&'t Arc<Path>> {
    tables.get(&table)?.get(prefix)
}

fn set(tables: &mut Tables, table: TableId, prefix: IpNet, path: Option<Arc<Path>>) -> Option<Arc<Path>> {
    match path {
        Some(path) => tables.entry(table).or_default().insert(prefix, path),
        None => {
            let of = tables.get_mut(&table)?;
            let old = of.remove(&prefix);
            if of.is_empty() {
                tables.remove(&table);
            }
            old
        }
    }
}

/// Whether a path leads to hosts on a link, without a router between.
pub(super) fn is_on_link(path: &Arc<Path>) -> bool {
    path.kind == PathKind::Unicast && path.hops.iter().any(|hop| hop.gateway.is_none() && hop.interface != 0)
}

/// Whether a path leads to the router itself.
fn is_own(path: &Arc<Path>) -> bool {
    matches!(path.kind, PathKind::Local | PathKind::Broadcast | PathKind::Anycast)
}
