//! [`Table`]: a live table, owned by one writer. Its engine is chosen at run time.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use wirespeed_fib::{Address, Applied, BuildOptions, NextHop, Prefix, Rib, Update, V4, V6};
use wirespeed_image::{Image, ImageError};

use crate::builder::Builder;
use crate::common::TableCore;
use crate::device::DeviceSettings;
use crate::engine::{Addresses, EngineName};
use crate::error::Error;
use crate::image_file::{self, ImageFile, MATCH_IDS};
use crate::key::Key;
use crate::labels::saved::SavedLabels;
use crate::match_ids::MatchIds;
use crate::memory::Cap;
use crate::methods::{save_methods, table_methods};
use crate::reader::{Reader, open_image};
use crate::routes::Routes;
use crate::settings::Choice;
use crate::uses::Claims;

/// An IPv4 table.
pub type Ipv4Table = Table<V4>;
/// An IPv6 table.
pub type Ipv6Table = Table<V6>;
/// A reader of an IPv4 table.
pub type Ipv4Reader = Reader<V4>;
/// A reader of an IPv6 table.
pub type Ipv6Reader = Reader<V6>;

/// A table of one family: the routes, and the compiled table. One owner changes it. Any number of [`Reader`]s
/// look up at the same time, and never wait.
///
/// Memory: the routes, two copies of the compiled table, and the engine's data for updates. A rebuild
/// temporarily takes two more copies of the compiled table.
///
/// ```
/// use wirespeed::prelude::*;
///
/// let mut table = Ipv4Table::builder().routes([("10.0.0.0/8".parse::<Ipv4Net>()?, NextHop(1))]).build()?;
/// let reader = table.reader();
/// assert_eq!(reader.lookup(Ipv4Addr::new(10, 1, 2, 3)), NextHop(1));
///
/// table.insert("10.1.0.0/16".parse::<Ipv4Net>()?, NextHop(2))?;
/// assert_eq!(reader.lookup(Ipv4Addr::new(10, 1, 2, 3)), NextHop(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Table<A: Addresses> {
    pub(crate) core: TableCore<A>,
    /// The length of the longest prefix that is not refused, if it is stated.
    longest_prefix: Option<u8>,
}

impl<A: Addresses> Table<A> {
    /// Starts a table. The builder collects the routes and the settings.
    pub fn builder() -> Builder<A> {
        Builder::new()
    }

    /// Builds the table of some routes with an engine, or with `auto`.
    #[inline(never)] // one copy for all crates
    pub(crate) fn build(
        rib: Rib<A>,
        choice: Choice,
        (cap, options): (Cap, BuildOptions),
        device: DeviceSettings,
        ids: Option<Arc<MatchIds>>,
        claims: Claims,
    ) -> Result<Self, Error> {
        let strides = options.strides;
        let strides = if device.fleet.is_some() { strides.on_gpu() } else { strides };
        let options = BuildOptions { strides, ..options };
        let longest_prefix = device.longest_prefix;
        let core = TableCore::build(choice, rib, (cap, options), (), device)?.with_ids(ids);
        Ok(Self { core: core.with_labels(claims), longest_prefix })
    }

    /// Opens an image file with its routes. Lookups can start as soon as the file is read and checked. The
    /// first update rebuilds the compiled table, which takes as long as a build from the routes.
    ///
    /// Lookups run on the CPU. Fails if the file is damaged, of the other family, or of an engine that is
    /// not in this build.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::of_image(open_image::<A>(path.as_ref())?)
    }

    pub(crate) fn of_image(file: ImageFile) -> Result<Self, Error> {
        let mut rib = file.routes()?.ok_or_else(|| Error::without(file.path(), "routes"))?;
        let (engine, ids, left_out) = (file.engine(), file.match_ids()?, file.left_out()?);
        if let Some(ids) = &ids {
            let last = ids.last();
            rib = ids.rib(&rib)?;
            if ids.last() != last {
                return Err(file.malformed(MATCH_IDS));
            }
        }
        // A small table is that of `auto`, which chooses another engine when the table grows.
        let choice = Choice { engine, is_auto: engine == EngineName::Forest };
        let core = TableCore::resume(choice, rib, file.into_sections()?, ())?;
        let core = core.with_ids(ids.map(Arc::new)).with_left_out(left_out);
        Ok(Self { core, longest_prefix: None })
    }

    /// Applies updates in order, and makes all of them visible to readers at once. A lookup that begins after
    /// this call sees all of them; no lookup sees a part. One call with many updates costs much less than a
    /// call for each: an [`UpdateBuffer`](crate::UpdateBuffer) collects updates that come singly. The call
    /// waits for guards that were taken before the previous call.
    ///
    /// Fails if a route leads to [`NextHop::NONE`], if its prefix is longer than the
    /// [stated length](Builder::longest_prefix), or if the table needs a rebuild that fails: [the call then
    /// did not happen](crate::image::live#when-an-update-fails).
    pub fn apply(&mut self, updates: &[Update<A>]) -> Result<Applied, Error> {
        // `is_agreed` never says no, so there is always a result.
        self.apply_if(updates, &mut || true).map(Option::unwrap_or_default)
    }

    /// Applies updates like [`apply`](Self::apply), and asks `is_agreed` when nothing can fail any more. If
    /// it returns false, the call did not happen, and the result is `None`.
    pub(crate) fn apply_if(
        &mut self,
        updates: &[Update<A>],
        is_agreed: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Applied>, Error> {
        let (of_build, ids) = (self.core.of_build(), self.core.ids().cloned());
        let checked = self.check(updates);
        self.core.change(updates, |live| {
            checked?;
            match ids {
                None => live.apply_if(updates, is_agreed),
                Some(ids) => live.apply_if(&ids.updates(updates, live.model())?, is_agreed),
            }
            .map_err(of_build)
        })
    }

    /// Checks the routes of updates, before anything changes.
    pub(crate) fn check(&self, updates: &[Update<A>]) -> Result<(), Error> {
        check_routes(updates.iter().filter_map(announced), self.longest_prefix)
    }

    /// Inserts a route while readers look up, and replaces the route of an equal prefix. For many routes use
    /// [`apply`](Self::apply).
    ///
    /// Fails like [`apply`](Self::apply), and if the prefix has host bits, as `10.1.2.3/8` has. `trunc` of
    /// `ipnet` clears them.
    ///
    /// ```
    /// use wirespeed::prelude::*;
    ///
    /// let mut table = Ipv4Table::builder().build()?;
    /// let net: Ipv4Net = "10.1.2.3/8".parse()?;
    /// assert!(table.insert(net, NextHop(1)).is_err());
    /// table.insert(net.trunc(), NextHop(1))?; // 10.0.0.0/8
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert<P>(&mut self, prefix: P, next_hop: NextHop) -> Result<Applied, Error>
    where
        P: TryInto<Prefix<A>, Error: Into<Error>>,
    {
        let prefix = self.core.counted(prefix.try_into())?;
        self.apply(&[Update::announce(prefix, next_hop)])
    }

    /// Removes a route while readers look up. For many routes use [`apply`](Self::apply). Fails for the
    /// reasons of [`insert`](Self::insert).
    pub fn remove<P>(&mut self, prefix: P) -> Result<Applied, Error>
    where
        P: TryInto<Prefix<A>, Error: Into<Error>>,
    {
        let prefix = self.core.counted(prefix.try_into())?;
        self.apply(&[Update::withdraw(prefix)])
    }

    /// A reader of the table. Threads share it, or clone it.
    #[must_use]
    pub fn reader(&self) -> Reader<A> {
        Reader::new(self.core.reader())
    }

    /// The routes: exact and longest match, all prefixes that contain an address, and iteration in order.
    pub fn routes(&self) -> Routes<'_, A> {
        Routes::of(self.core.model(), self.core.ids().map(Arc::as_ref))
    }

    /// Every prefix that contains the address, with its next hop, shortest first. The last one is the longest
    /// match. It reads the [routes](Self::routes), not the compiled table: O(lengths).
    pub fn lookup_all(&self, address: impl Key<A>) -> impl Iterator<Item = (Prefix<A>, NextHop)> + '_ {
        self.routes().lookup_all(address)
    }

    table_methods!(routes, "addresses", "crate::Builder");

    save_methods! {
        /// Saves the compiled table and its routes as an image file. An existing file is replaced completely
        /// or not at all.
    }

    /// The image of the table with its routes, without labels.
    pub(crate) fn to_image(&self) -> Result<Image, ImageError> {
        let noted = |image: &Image| {
            image_file::with_routes(&*image_file::noted(image, self.core.left_out())?, self.routes())
        };
        self.core.with_image(noted)
    }

    fn save_with(&self, labels: &SavedLabels, path: &Path) -> Result<(), Error> {
        let save = |image: &Image| image_file::save(image, self.routes(), &labels.texts, path).map(drop);
        self.core.with_image(|image| labels.save_beside(image, self.core.left_out(), path, save))
    }
}

/// The route that an update inserts. An announcement without a next hop leads to one in any case.
fn announced<A: Address>(update: &Update<A>) -> Option<(Prefix<A>, NextHop)> {
    match *update {
        Update::Announce { prefix, next_hop } => Some((prefix, next_hop.unwrap_or(NextHop(1)))),
        Update::Withdraw { .. } => None,
    }
}

/// Checks that every route has a next hop, and a prefix that is not longer than the stated length. A route
/// without a next hop would hide the routes that cover it, and nobody means that.
#[inline(never)] // one copy for all crates
pub(crate) fn check_routes<A: Address>(
    routes: impl IntoIterator<Item = (Prefix<A>, NextHop)>,
    longest_prefix: Option<u8>,
) -> Result<(), Error> {
    let longest = longest_prefix.unwrap_or(A::BITS);
    for (prefix, next_hop) in routes {
        if !next_hop.is_some() {
            return Err(Error::RouteWithoutNextHop { prefix: prefix.to_string() });
        }
        if prefix.len() > longest {
            return Err(Error::LongerPrefix { prefix: prefix.to_string(), longest });
        }
    }
    Ok(())
}

impl<A: Addresses> fmt::Debug for Table<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f.debug_struct("Table").field("family", &A::FAMILY))
    }
}
