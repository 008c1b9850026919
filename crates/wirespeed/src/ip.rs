//! [`IpTable`]: both families in one, keyed by [`IpAddr`].

mod image;
mod reader;

use std::hash::Hash;
use std::mem;
use std::net::IpAddr;
#[cfg(feature = "text")]
use std::path::Path;
use std::str::FromStr;

use ipnet::IpNet;
#[cfg(feature = "text")]
use wirespeed_fib::read::ReadOptions;
use wirespeed_fib::{AnyUpdate, Applied, Fib, HostBits, InFib, NextHop, Rib, Update, V4, V6};

#[cfg(feature = "text")]
use crate::builder::read_file;
use crate::builder::{Builder, labelled};
use crate::error::Error;
use crate::gpu::runtime::GpuOptions;
use crate::labels::Labels;
use crate::settings::{Draft, settings_methods};
use crate::table::Table;

pub use reader::{IpGuard, IpReader};

/// A table of both families.
///
/// An address belongs to the family that it is written in. An IPv4-mapped address (`::ffff:192.0.2.1`, as a
/// dual-stack socket gives it) is an IPv6 address and matches IPv6 prefixes, unless the reader takes it for
/// an IPv4 address: [`IpReader::mapped_as_v4`].
///
/// A call changes both families or neither. Readers see the IPv4 changes first, when the IPv6 changes can't
/// fail any more.
#[derive(Debug)]
pub struct IpTable {
    pub(crate) v4: Table<V4>,
    pub(crate) v6: Table<V6>,
    /// Calls that failed.
    pub(crate) refused: u64,
}

impl IpTable {
    /// Starts a table. The builder collects the routes and the settings.
    pub fn builder() -> IpBuilder {
        IpBuilder { v4: Builder::new(), v6: Builder::new(), draft: Draft::default() }
    }

    /// Joins two tables, for example two with different engines.
    #[must_use]
    pub fn new(v4: Table<V4>, v6: Table<V6>) -> Self {
        Self { v4, v6, refused: 0 }
    }

    /// The IPv4 table.
    #[must_use]
    pub fn v4(&self) -> &Table<V4> {
        &self.v4
    }

    /// The IPv6 table.
    #[must_use]
    pub fn v6(&self) -> &Table<V6> {
        &self.v6
    }

    /// Applies updates in order like [`Table::apply`], each to the table of its family. Returns the sum.
    ///
    /// Fails if either table can't apply its updates: [the call then did not
    /// happen](crate::image::live#when-an-update-fails), in both tables. Readers of IPv4 see the IPv4 updates
    /// before readers of IPv6 see the IPv6 updates. No reader sees an update that is taken back.
    pub fn apply(&mut self, updates: &[AnyUpdate]) -> Result<Applied, Error> {
        let applied = self.apply_to_both(&of_family(updates), &of_family(updates));
        self.refused += u64::from(applied.is_err());
        applied
    }

    fn apply_to_both(&mut self, v4: &[Update<V4>], v6: &[Update<V6>]) -> Result<Applied, Error> {
        // Wrong values are found before a table changes.
        self.v4.check(v4)?;
        let mut first = Ok(Applied::default());
        let second = self.v6.apply_if(v6, &mut || {
            first = self.v4.apply(v4);
            first.is_ok()
        })?;
        Ok(first? + second.unwrap_or_default())
    }

    /// Inserts a route while readers look up, and replaces the route of an equal prefix. For many routes use
    /// [`apply`](Self::apply).
    ///
    /// Fails like [`apply`](Self::apply), and if the prefix has host bits: [`Table::insert`].
    pub fn insert(&mut self, prefix: impl Into<IpNet>, next_hop: NextHop) -> Result<Applied, Error> {
        self.apply_one(AnyUpdate::announce(prefix, next_hop))
    }

    /// Removes a route while readers look up. For many routes use [`apply`](Self::apply). Fails for the
    /// reasons of [`insert`](Self::insert).
    pub fn remove(&mut self, prefix: impl Into<IpNet>) -> Result<Applied, Error> {
        self.apply_one(AnyUpdate::withdraw(prefix))
    }

    fn apply_one(&mut self, update: Result<AnyUpdate, HostBits>) -> Result<Applied, Error> {
        self.refused += u64::from(update.is_err());
        self.apply(&[update?])
    }

    /// The number of calls that failed. A call that fails changes nothing.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// A reader of the table. Threads share it, or clone it.
    #[must_use]
    pub fn reader(&self) -> IpReader {
        IpReader::new(self.v4.reader(), self.v6.reader())
    }

    /// The routes of both families, IPv4 first, each family in order.
    pub fn routes(&self) -> impl Iterator<Item = (IpNet, NextHop)> + '_ {
        let v4 = self.v4.routes().iter().map(|(prefix, next_hop)| (prefix.into(), next_hop));
        v4.chain(self.v6.routes().iter().map(|(prefix, next_hop)| (prefix.into(), next_hop)))
    }

    /// Every prefix that contains the address, with its next hop, shortest first: [`Table::lookup_all`].
    #[must_use]
    pub fn lookup_all(&self, address: IpAddr) -> Vec<(IpNet, NextHop)> {
        match address {
            IpAddr::V4(address) => self.v4.lookup_all(address).map(|(p, n)| (p.into(), n)).collect(),
            IpAddr::V6(address) => self.v6.lookup_all(address).map(|(p, n)| (p.into(), n)).collect(),
        }
    }

    /// Number of prefixes of both families.
    #[must_use]
    pub fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Whether there is no prefix.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    /// Bytes that both tables hold.
    #[must_use]
    pub fn memory_usage(&self) -> u64 {
        self.v4.memory_usage() + self.v6.memory_usage()
    }

    /// Attaches labels to both tables: [`Table::attach_labels`].
    pub fn attach_labels<T>(&mut self, labels: &Labels<T>) {
        self.v4.attach_labels(labels);
        self.v6.attach_labels(labels);
    }

    /// The two tables.
    #[must_use]
    pub fn into_parts(self) -> (Table<V4>, Table<V6>) {
        (self.v4, self.v6)
    }
}

fn of_family<A: InFib>(updates: &[AnyUpdate]) -> Vec<Update<A>> {
    updates.iter().filter_map(A::update).collect()
}

/// The routes of each family. Fails if a prefix has host bits.
pub(crate) fn of_both<P: Into<IpNet>>(
    routes: impl IntoIterator<Item = (P, NextHop)>,
) -> Result<(Rib<V4>, Rib<V6>), HostBits> {
    let (mut v4, mut v6) = (Rib::new(), Rib::new());
    for (prefix, next_hop) in routes {
        match prefix.into() {
            IpNet::V4(prefix) => v4.insert(prefix.try_into()?, next_hop),
            IpNet::V6(prefix) => v6.insert(prefix.try_into()?, next_hop),
        };
    }
    Ok((v4, v6))
}

/// Collects routes of both families, and builds their table. Its methods are like those of [`Builder`].
#[derive(Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct IpBuilder {
    v4: Builder<V4>,
    v6: Builder<V6>,
    draft: Draft,
}

impl IpBuilder {
    /// Adds routes that lead to indexes of the caller's own table of next hops. A route to [`NextHop::NONE`]
    /// makes [`build`](Self::build) fail, and so does a prefix with host bits: [`Builder::routes`].
    pub fn routes<P: Into<IpNet>>(mut self, routes: impl IntoIterator<Item = (P, NextHop)>) -> Self {
        match of_both(routes) {
            Ok((v4, v6)) => {
                self.v4 = self.v4.rib(v4);
                self.v6 = self.v6.rib(v6);
            }
            Err(error) => return self.failed(error.into()),
        }
        self
    }

    /// Adds routes with values of the caller's type. Each value gets an index in `labels`.
    pub fn labelled_routes<P: Into<IpNet>, T: Eq + Hash>(
        mut self,
        labels: &Labels<T>,
        routes: impl IntoIterator<Item = (P, T)>,
    ) -> Self {
        let (mut failed, mut claims) = (None, mem::take(&mut self.draft.claims));
        claims.attach(labels.counts());
        let mut intern = |value| labels.intern_for(&mut claims, value);
        let routes = routes.into_iter().map_while(|(prefix, value)| match intern(value) {
            Ok(next_hop) => Some((prefix, next_hop)),
            Err(error) => {
                failed = Some(error);
                None
            }
        });
        let mut builder = self.routes(routes);
        builder.draft.claims = claims;
        match failed {
            None => builder,
            Some(error) => builder.failed(error.into()),
        }
    }

    /// Adds routes that were read; see [`Builder::fib`].
    pub fn fib<T: FromStr<Err: ToString> + Eq + Hash>(mut self, fib: Fib, labels: &Labels<T>) -> Self {
        match labelled(fib, labels, &mut self.draft.claims) {
            Ok(fib) => {
                self.v4 = self.v4.rib(fib.v4);
                self.v6 = self.v6.rib(fib.v6);
            }
            Err(error) => return self.failed(error),
        }
        self
    }

    /// Adds the routes of a file, of one family or both; see [`Builder::file`].
    #[cfg(feature = "text")]
    pub fn file<T: FromStr<Err: ToString> + Eq + Hash>(
        self,
        path: impl AsRef<Path>,
        labels: &Labels<T>,
    ) -> Self {
        match read_file(path.as_ref(), &ReadOptions::default()) {
            Ok(fib) => self.fib(fib, labels),
            Err(error) => self.failed(error),
        }
    }

    settings_methods! {
        /// Limits the bytes that the compiled table of each family may take: [`Builder::memory_cap`].
        memory_cap;

        /// Leaves head room for next hops up to this index: [`Builder::next_hops`].
        next_hops;

        /// Makes lookups give the matched prefix, too: [`Builder::prefix_lookups`].
        prefix_lookups;

        /// Sets the device that looks batches up, for both families. They share the GPUs:
        /// [`Builder::device`].
        device;

        /// Gives the GPUs that lookups use: [`Builder::fleet`].
        fleet;
    }

    /// Builds both tables, with one engine for both or the best engine for each. For two named engines, build
    /// two tables and join them with [`IpTable::new`]. Fails for the same reasons as [`Builder::build`].
    pub fn build(self) -> Result<IpTable, Error> {
        let Self { v4, v6, draft } = self;
        let (mut settings, claims) = draft.finish()?;
        settings.device.open(&GpuOptions::default())?;
        Ok(IpTable {
            v4: v4.with_settings(settings.clone(), &claims).build()?,
            v6: v6.with_settings(settings, &claims).build()?,
            refused: 0,
        })
    }
}
