//! All entries of a table replaced in one step: [`TableCore::replace`] for every domain; and for routes
//! [`Table::replace`], [`Table::load`] and those of [`IpTable`].
//!
//! ```text
//! new entries ──► difference to the current entries ─┬─ few:  updates
//!                                                    └─ many: a table built beside the current one
//! ```

#[cfg(feature = "text")]
use std::hash::Hash;
#[cfg(feature = "text")]
use std::path::Path;
#[cfg(feature = "text")]
use std::str::FromStr;

#[cfg(feature = "text")]
use wirespeed_fib::read::ReadOptions;
use wirespeed_fib::{Applied, Rib, Update, V4, V6};

use crate::common::TableCore;
use crate::engine::{Addresses, AnyLive, Served};
use crate::error::Error;
use crate::ip::IpTable;
#[cfg(feature = "text")]
use crate::labels::Labels;
#[cfg(feature = "text")]
use crate::load::read;
use crate::routes::Routes;
use crate::table::Table;
#[cfg(feature = "text")]
use crate::uses::Claims;
use crate::uses::Interned;

/// One in so many entries may differ for updates to cost less than a build.
const FEW: usize = 4;

impl<D: Served> TableCore<D> {
    /// Replaces all entries by other ones, `len` in number, to which the updates of `difference` lead. Tells
    /// `change` whether these are so few that they cost less than a build. `is_interned` says whether the
    /// caller interned the entries' labels.
    pub(crate) fn replace(
        &mut self,
        is_interned: bool,
        (difference, len): (&[D::Update], usize),
        change: impl FnOnce(&mut dyn AnyLive<D>, bool) -> Result<Option<Applied>, Error>,
    ) -> Result<Option<Applied>, Error> {
        let is_few = difference.len() <= len / FEW;
        let interned = if is_interned { Interned::Entries } else { Interned::Nothing };
        let replaced = self.change_claimed(interned, difference, |live| change(live, is_few))?;
        if replaced.is_some() {
            self.forget_left_out();
        }
        Ok(replaced.map(|applied| Applied { changes: difference.len(), ..applied }))
    }
}

impl<A: Addresses> Table<A> {
    /// Replaces all routes. Readers see the old routes or the new ones, and nothing between. If few routes
    /// differ, only these are updated; otherwise a table is built beside the current one, which takes as much
    /// memory again until the call returns. The engine and the settings stay. `changes` of the result counts
    /// the routes that differ. If labels are attached, [intern](crate::Labels::intern) one for each route,
    /// also for routes that stay.
    ///
    /// Fails like [`apply`](Self::apply): the call then did not happen.
    ///
    /// ```
    /// use wirespeed::Rib;
    /// use wirespeed::prelude::*;
    ///
    /// let routes = |n| [("10.0.0.0/8".parse().unwrap(), NextHop(n))].into_iter().collect::<Rib<V4>>();
    /// let mut table = Ipv4Table::builder().rib(routes(1)).build()?;
    /// let reader = table.reader();
    /// table.replace(routes(2))?;
    /// assert_eq!(reader.lookup(Ipv4Addr::new(10, 1, 2, 3)), NextHop(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn replace(&mut self, routes: Rib<A>) -> Result<Applied, Error> {
        // `is_agreed` never says no, so there is always a result.
        self.replace_if(true, routes, &mut || true).map(Option::unwrap_or_default)
    }

    /// [Replaces](Self::replace) all routes by those of this family in a file: routes in any format of
    /// [`Builder::file`](crate::Builder::file), or an image with its routes. Next hops get labels.
    ///
    /// Fails if the file can't be read, or has no routes of this family. The table then stays as it was.
    #[cfg(feature = "text")]
    pub fn load<T: FromStr<Err: ToString> + Eq + Hash>(
        &mut self,
        path: impl AsRef<Path>,
        labels: &Labels<T>,
    ) -> Result<Applied, Error> {
        let (path, mut claims) = (path.as_ref(), Claims::default());
        let fib = read(path, labels, &mut claims, &ReadOptions::default())?;
        if A::rib(&fib).is_empty() {
            return Err(Error::NoRoutesOfFamily { path: path.to_owned(), wanted: A::FAMILY });
        }
        self.attach_labels(labels);
        let replaced = self.replace_if(false, A::into_rib(fib).0, &mut || true);
        replaced.map(Option::unwrap_or_default)
    }

    /// Replaces all routes, and asks `is_agreed` when nothing can fail any more. `is_interned` says whether
    /// the caller interned the routes' labels.
    pub(crate) fn replace_if(
        &mut self,
        is_interned: bool,
        routes: Rib<A>,
        is_agreed: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Applied>, Error> {
        let updates = difference(self.routes(), &routes);
        let (of_build, ids) = (self.core.of_build(), self.core.ids().cloned());
        let checked = self.check(&updates);
        self.core.replace(is_interned, (&updates, routes.len()), |live, is_few| {
            checked?;
            match (is_few, ids) {
                (true, None) => live.apply_if(&updates, is_agreed),
                (true, Some(ids)) => live.apply_if(&ids.updates(&updates, live.model())?, is_agreed),
                (false, None) => live.replace_if(routes, is_agreed),
                (false, Some(ids)) => live.replace_if(ids.rib(&routes)?, is_agreed),
            }
            .map_err(of_build)
        })
    }
}

impl IpTable {
    /// Replaces all routes of both families, or of neither: [`Table::replace`].
    pub fn replace(&mut self, v4: Rib<V4>, v6: Rib<V6>) -> Result<Applied, Error> {
        self.replace_both(true, v4, v6)
    }

    /// [Replaces](Self::replace) all routes by those of a file, of one family or both: [`Table::load`]. A
    /// family that the file lacks has no routes afterwards.
    #[cfg(feature = "text")]
    pub fn load<T: FromStr<Err: ToString> + Eq + Hash>(
        &mut self,
        path: impl AsRef<Path>,
        labels: &Labels<T>,
    ) -> Result<Applied, Error> {
        self.load_as(path, labels, &ReadOptions::default())
    }

    /// [Loads](Self::load) a file of routes with other options for reading. An image has its own.
    #[cfg(feature = "text")]
    pub fn load_as<T: FromStr<Err: ToString> + Eq + Hash>(
        &mut self,
        path: impl AsRef<Path>,
        labels: &Labels<T>,
        options: &ReadOptions,
    ) -> Result<Applied, Error> {
        let mut claims = Claims::default();
        let fib = read(path.as_ref(), labels, &mut claims, options)?;
        self.attach_labels(labels);
        self.replace_both(false, fib.v4, fib.v6)
    }

    fn replace_both(&mut self, is_interned: bool, v4: Rib<V4>, v6: Rib<V6>) -> Result<Applied, Error> {
        let (mut v4, mut first) = (Some(v4), Ok(None));
        let second = self.v6.replace_if(is_interned, v6, &mut || {
            first = self.v4.replace_if(is_interned, v4.take().unwrap_or_default(), &mut || true);
            first.is_ok()
        });
        let replaced = match (first, second) {
            (Err(error), _) | (_, Err(error)) => Err(error),
            (Ok(first), Ok(second)) => Ok(first.unwrap_or_default() + second.unwrap_or_default()),
        };
        self.refused += u64::from(replaced.is_err());
        replaced
    }
}

/// The updates that make the new routes of the old ones. Both are in order.
fn difference<A: Addresses>(old: Routes<'_, A>, new: &Rib<A>) -> Vec<Update<A>> {
    let (mut old, mut updates) = (old.iter().peekable(), Vec::new());
    for route @ (prefix, next_hop) in new {
        while let Some((gone, _)) = old.next_if(|&(gone, _)| gone < prefix) {
            updates.push(Update::withdraw(gone));
        }
        if old.next_if(|&(before, _)| before == prefix) != Some(route) {
            updates.push(Update::announce(prefix, next_hop));
        }
    }
    updates.extend(old.map(|(gone, _)| Update::withdraw(gone)));
    updates
}
