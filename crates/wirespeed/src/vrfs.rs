//! [`Vrfs`]: thousands of routing tables in one, each known by a number.

mod builder;
mod entered;
mod image;
mod reader;

use std::fmt;
use std::sync::Arc;

use ipnet::IpNet;
use wirespeed_fib::{AnyUpdate, Applied, HostBits, InFib, NextHop, Prefix, Rib, Update, V4, V6};
use wirespeed_forest::{FibId as VrfId, FibsError, FibsUpdate, InFibs, LiveFibs};

use crate::engine::EngineName;
use crate::error::Error;
use crate::ip::of_both;
use crate::labels::Labels;
use crate::match_ids::MatchIds;
use crate::memory::Cap;
use crate::uses::{Interned, TableUses};

use entered::FamilyReader;

pub use builder::VrfsBuilder;
pub use reader::{VrfGuard, VrfReader};

/// The routes of a VRF, of both families.
#[derive(Clone, Debug, Default)]
pub struct VrfRoutes {
    /// IPv4 routes.
    pub v4: Rib<V4>,
    /// IPv6 routes.
    pub v6: Rib<V6>,
}

impl VrfRoutes {
    /// Takes routes of both families. Fails if a prefix has host bits.
    pub fn new<P: Into<IpNet>>(routes: impl IntoIterator<Item = (P, NextHop)>) -> Result<Self, HostBits> {
        of_both(routes).map(|(v4, v6)| Self { v4, v6 })
    }
}

/// A change of [`Vrfs`].
#[derive(Clone, Debug)]
pub enum VrfUpdate {
    /// The VRF has these routes from now on, whether it was there or not.
    Set(VrfId, Box<VrfRoutes>),
    /// The VRF ends.
    Remove(VrfId),
    /// A route of a VRF that is there changes.
    Route(VrfId, AnyUpdate),
}

impl VrfUpdate {
    /// Makes the update that gives a VRF these routes. Fails if a prefix has host bits.
    pub fn set<P: Into<IpNet>>(
        vrf: VrfId,
        routes: impl IntoIterator<Item = (P, NextHop)>,
    ) -> Result<Self, HostBits> {
        VrfRoutes::new(routes).map(|routes| Self::Set(vrf, Box::new(routes)))
    }

    /// Makes an announcement of a prefix with a next hop in a VRF. Fails if the prefix has host bits.
    pub fn announce(vrf: VrfId, prefix: impl Into<IpNet>, next_hop: NextHop) -> Result<Self, HostBits> {
        AnyUpdate::announce(prefix, next_hop).map(|update| Self::Route(vrf, update))
    }

    /// Makes a withdrawal of a prefix in a VRF. Fails if the prefix has host bits.
    pub fn withdraw(vrf: VrfId, prefix: impl Into<IpNet>) -> Result<Self, HostBits> {
        AnyUpdate::withdraw(prefix).map(|update| Self::Route(vrf, update))
    }
}

/// Any number of routing tables of both families, such as those of VRFs, tenants or customers. Each is known
/// by a number. They come and go, and their routes change, while any number of [`VrfReader`]s look up. A
/// batch has keys of any of them.
///
/// Parts that are equal in several VRFs are stored once. A VRF of a few routes takes about a kilobyte. Large
/// tables are faster as [`IpTable`](crate::IpTable)s, and smaller if they differ in more than a few percent
/// of their routes: BENCHMARKS.md has figures. Lookups run on the CPU.
///
/// An image file holds all VRFs: [`save`](Self::save), [`open`](Self::open) and [`VrfReader::open`].
///
/// A call changes both families or neither. Readers see the IPv4 changes first, when the IPv6 changes can't
/// fail any more.
///
/// ```
/// use wirespeed::prelude::*;
/// use wirespeed::{VrfId, Vrfs};
///
/// let (red, blue) = (VrfId(7), VrfId(4_000));
/// let net = "10.0.0.0/8".parse::<IpNet>()?;
/// let mut vrfs = Vrfs::builder().vrf(red, [(net, NextHop(1))]).vrf(blue, [(net, NextHop(2))]).build()?;
/// let reader = vrfs.reader();
/// let mut found = [NextHop::NONE; 2];
/// reader.lookup_batch(&[blue, red], &["10.1.2.3".parse()?; 2], &mut found);
/// assert_eq!(found, [NextHop(2), NextHop(1)]);
///
/// vrfs.insert(red, "10.1.0.0/16".parse::<IpNet>()?, NextHop(3))?;
/// vrfs.remove_vrf(blue)?;
/// reader.lookup_batch(&[blue, red], &["10.1.2.3".parse()?; 2], &mut found);
/// assert_eq!(found, [NextHop::NONE, NextHop(3)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Vrfs {
    v4: Tables<V4>,
    v6: Tables<V6>,
    /// The pairs that results stand for, if they are no next hops.
    ids: Option<Arc<MatchIds>>,
    cap: Cap,
    refused: u64,
}

/// The VRFs' tables of one family.
struct Tables<A: InFib> {
    live: LiveFibs<A>,
    uses: Arc<TableUses>,
}

impl Vrfs {
    /// Starts with no VRF. The builder collects VRFs and the settings.
    pub fn builder() -> VrfsBuilder {
        VrfsBuilder::default()
    }

    /// Applies updates in order, and makes all of them visible to readers at once. One call with many updates
    /// costs much less than a call for each. Waits for guards that were taken before the previous call.
    ///
    /// Fails if an update names a VRF that is not there, if a VRF's number is over [`VrfId::MAX`], if a route
    /// has no next hop, or over the memory cap: [the call then did not
    /// happen](crate::image::live#when-an-update-fails).
    pub fn apply(&mut self, updates: impl IntoIterator<Item = VrfUpdate>) -> Result<Applied, Error> {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for update in updates {
            match update {
                VrfUpdate::Set(vrf, routes) => {
                    v4.push(FibsUpdate::Set(vrf, Box::new(routes.v4)));
                    v6.push(FibsUpdate::Set(vrf, Box::new(routes.v6)));
                }
                VrfUpdate::Remove(vrf) => {
                    v4.push(FibsUpdate::Remove(vrf));
                    v6.push(FibsUpdate::Remove(vrf));
                }
                VrfUpdate::Route(vrf, AnyUpdate::V4(update)) => v4.push(FibsUpdate::Route(vrf, update)),
                VrfUpdate::Route(vrf, AnyUpdate::V6(update)) => v6.push(FibsUpdate::Route(vrf, update)),
            }
        }
        let applied = self.apply_to_both(&v4, &v6);
        self.refused += u64::from(applied.is_err());
        applied
    }

    fn apply_one(&mut self, update: Result<VrfUpdate, HostBits>) -> Result<Applied, Error> {
        self.refused += u64::from(update.is_err());
        self.apply([update?])
    }

    fn apply_to_both(&mut self, v4: &[FibsUpdate<V4>], v6: &[FibsUpdate<V6>]) -> Result<Applied, Error> {
        // Wrong values are found before a table changes.
        v4.iter().try_for_each(with_next_hops)?;
        v6.iter().try_for_each(with_next_hops)?;
        let (ids, cap) = (self.ids.clone(), self.cap);
        let mut first = Ok(None);
        let second = self.v6.apply_if(v6, ids.as_deref(), cap, || {
            first = self.v4.apply_if(v4, ids.as_deref(), cap, || true);
            first.is_ok()
        });
        let changes = |applied: Option<Applied>| applied.unwrap_or_default();
        Ok(changes(first?) + changes(second?))
    }

    /// Gives a VRF these routes, whether it was there or not: [`apply`](Self::apply).
    pub fn set<P: Into<IpNet>>(
        &mut self,
        vrf: VrfId,
        routes: impl IntoIterator<Item = (P, NextHop)>,
    ) -> Result<Applied, Error> {
        self.apply_one(VrfUpdate::set(vrf, routes))
    }

    /// Ends a VRF: [`apply`](Self::apply). Its number may be given to another one.
    pub fn remove_vrf(&mut self, vrf: VrfId) -> Result<Applied, Error> {
        self.apply([VrfUpdate::Remove(vrf)])
    }

    /// Inserts a route of a VRF, and replaces the route of an equal prefix: [`apply`](Self::apply).
    pub fn insert(
        &mut self,
        vrf: VrfId,
        prefix: impl Into<IpNet>,
        next_hop: NextHop,
    ) -> Result<Applied, Error> {
        self.apply_one(VrfUpdate::announce(vrf, prefix, next_hop))
    }

    /// Removes a route of a VRF: [`apply`](Self::apply).
    pub fn remove(&mut self, vrf: VrfId, prefix: impl Into<IpNet>) -> Result<Applied, Error> {
        self.apply_one(VrfUpdate::withdraw(vrf, prefix))
    }

    /// A reader of all VRFs. Threads share it, or clone it.
    #[must_use]
    pub fn reader(&self) -> VrfReader {
        let (v4, v6) = (&self.v4, &self.v6);
        let uses = [Arc::clone(&v4.uses), Arc::clone(&v6.uses)];
        let (v4, v6) = (FamilyReader::Live(v4.live.reader()), FamilyReader::Live(v6.live.reader()));
        VrfReader::new(v4, v6, self.ids.clone(), uses)
    }

    /// The numbers of the VRFs, ascending.
    pub fn ids(&self) -> impl Iterator<Item = VrfId> + '_ {
        self.v4.live.model().ids()
    }

    /// Number of VRFs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids().count()
    }

    /// Whether there is no VRF.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids().next().is_none()
    }

    /// The routes of a VRF. `None` if there is no such VRF. O(routes of the VRF).
    #[must_use]
    pub fn routes(&self, vrf: VrfId) -> Option<VrfRoutes> {
        let (mut routes, ids) = (VrfRoutes::default(), self.ids.as_deref());
        let next_hop = |result| ids.map_or(result, |ids| ids.pairs().pair(result).0);
        let is_there = self.v4.live.model().visit(vrf, |prefix, result| {
            routes.v4.insert(prefix, next_hop(result));
        });
        self.v6.live.model().visit(vrf, |prefix, result| {
            routes.v6.insert(prefix, next_hop(result));
        });
        is_there.then_some(routes)
    }

    /// Attaches labels: their values end with the last route that uses them, as described at
    /// [`Labels`](Labels#labels-that-end).
    pub fn attach_labels<T>(&mut self, labels: &Labels<T>) {
        self.v4.uses.attach::<InFibs<V4>>(labels.counts(), self.v4.live.model());
        self.v6.uses.attach::<InFibs<V6>>(labels.counts(), self.v6.live.model());
    }

    /// The number of calls that failed. A call that fails changes nothing.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Bytes held: both copies of the compiled tables, whose chunks are there once, and the routes.
    pub fn memory_usage(&self) -> u64 {
        let ids = self.ids.as_deref().map_or(0, MatchIds::memory_usage);
        self.v4.live.memory_usage() + self.v6.live.memory_usage() + ids
    }
}

impl<A: InFib> Tables<A> {
    /// Applies updates, and asks `is_agreed` when nothing can fail any more.
    fn apply_if(
        &mut self,
        updates: &[FibsUpdate<A>],
        ids: Option<&MatchIds>,
        cap: Cap,
        is_agreed: impl FnOnce() -> bool,
    ) -> Result<Option<Applied>, Error> {
        let numbered;
        let compiled = match ids {
            None => updates,
            Some(ids) => {
                numbered =
                    updates.iter().map(|update| with_pairs(ids, update)).collect::<Result<Vec<_>, _>>()?;
                &numbered[..]
            }
        };
        let watch = self.uses.watch::<InFibs<A>>(self.live.model(), updates);
        let applied = self.live.apply_if(compiled, is_agreed).map_err(|error| of_fibs(error, cap));
        if let Some(watch) = watch {
            let is_done = matches!(applied, Ok(Some(_)));
            watch.tell(self.live.model(), if is_done { Interned::Updates } else { Interned::Nothing });
        }
        applied
    }
}

/// An update with numbers of pairs in the place of next hops.
fn with_pairs<A: InFib>(ids: &MatchIds, update: &FibsUpdate<A>) -> Result<FibsUpdate<A>, Error> {
    Ok(match update {
        FibsUpdate::Set(vrf, rib) => FibsUpdate::Set(*vrf, Box::new(ids.rib(rib)?)),
        FibsUpdate::Route(vrf, Update::Announce { prefix, next_hop: Some(next_hop) }) => {
            let number = ids.intern(*next_hop, prefix.len())?;
            FibsUpdate::Route(*vrf, Update::Announce { prefix: *prefix, next_hop: Some(number) })
        }
        other => other.clone(),
    })
}

/// Checks that every route of an update has a next hop.
fn with_next_hops<A: InFib>(update: &FibsUpdate<A>) -> Result<(), Error> {
    let without = |prefix: Prefix<A>| Err(Error::RouteWithoutNextHop { prefix: prefix.to_string() });
    match update {
        FibsUpdate::Set(_, rib) => crate::table::check_routes(&**rib, None),
        FibsUpdate::Route(_, Update::Announce { prefix, next_hop }) => match next_hop {
            Some(next_hop) if next_hop.is_some() => Ok(()),
            _ => without(*prefix),
        },
        FibsUpdate::Route(_, Update::Withdraw { .. }) | FibsUpdate::Remove(_) => Ok(()),
    }
}

fn of_fibs(error: FibsError, cap: Cap) -> Error {
    match error {
        FibsError::Build(source) => Error::of_build_of("VRFs", EngineName::Forest, source, cap),
        other => Error::Vrf(other),
    }
}

impl fmt::Debug for Vrfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vrfs")
            .field("len", &self.len())
            .field("memory_usage", &self.memory_usage())
            .finish_non_exhaustive()
    }
}
