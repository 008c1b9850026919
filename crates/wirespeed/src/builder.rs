//! [`Builder`]: collects the routes and settings of a table.

use std::hash::Hash;
#[cfg(feature = "text")]
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

#[cfg(feature = "text")]
use wirespeed_fib::read::{ReadOptions, Source, read_fib};
use wirespeed_fib::{Address, Fib, NextHop, Prefix, Rib};

use crate::engine::Addresses;
use crate::error::Error;
use crate::labels::{Labels, parse};
use crate::match_ids::MatchIds;
use crate::memory::Cap;
use crate::settings::{Draft, Settings, settings_methods};
use crate::table::{Table, check_routes};
use crate::uses::Claims;

/// Collects routes, and builds their table. If a prefix is added several times, from any source, the last
/// route stays. [`build`](Self::build) reports the first error of all calls.
#[derive(Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct Builder<A: Address> {
    rib: Rib<A>,
    draft: Draft,
}

impl<A: Addresses> Builder<A> {
    pub(crate) fn new() -> Self {
        Self { rib: Rib::new(), draft: Draft::default() }
    }

    /// Adds routes that lead to indexes of the caller's own table of next hops: from 1 to `u32::MAX - 1`. An
    /// engine that is named may hold less; `auto` picks one that holds them, but those from 2^30 on may cost
    /// speed. The error of an index that is too large states the limit.
    ///
    /// A route to [`NextHop::NONE`] makes [`build`](Self::build) fail, and so does a prefix with host bits,
    /// such as `10.1.2.3/8`. `trunc` of `ipnet` clears them.
    pub fn routes<P>(mut self, routes: impl IntoIterator<Item = (P, NextHop)>) -> Self
    where
        P: TryInto<Prefix<A>, Error: Into<Error>>,
    {
        for (prefix, next_hop) in routes {
            match prefix.try_into() {
                Ok(prefix) => self.rib.insert(prefix, next_hop),
                Err(error) => return self.failed(error.into()),
            };
        }
        self
    }

    /// Adds routes with values of the caller's type. Each value gets an index in `labels`.
    /// A prefix with host bits makes [`build`](Self::build) fail.
    pub fn labelled_routes<P, T: Eq + Hash>(
        mut self,
        labels: &Labels<T>,
        routes: impl IntoIterator<Item = (P, T)>,
    ) -> Self
    where
        P: TryInto<Prefix<A>, Error: Into<Error>>,
    {
        self.draft.claims.attach(labels.counts());
        for (prefix, value) in routes {
            let next_hop = labels.intern_for(&mut self.draft.claims, value).map_err(Error::from);
            match next_hop.and_then(|next_hop| Ok((prefix.try_into().map_err(Into::into)?, next_hop))) {
                Ok((prefix, next_hop)) => self.rib.insert(prefix, next_hop),
                Err(error) => return self.failed(error),
            };
        }
        self
    }

    /// Adds routes of a `Rib`, with their indexes. A route to [`NextHop::NONE`] makes [`build`](Self::build)
    /// fail.
    pub fn rib(mut self, rib: Rib<A>) -> Self {
        if self.rib.is_empty() {
            self.rib = rib;
        } else {
            self.rib.extend(rib.iter());
        }
        self
    }

    /// Adds the routes of this family that were read, for example with other [`ReadOptions`] than
    /// [`file`](Self::file) uses. The texts of next hops are parsed into labels.
    pub fn fib<T: FromStr<Err: ToString> + Eq + Hash>(mut self, fib: Fib, labels: &Labels<T>) -> Self {
        let labelled = labelled(fib, labels, &mut self.draft.claims);
        self.labelled(labelled)
    }

    /// Adds the routes of this family with labels.
    fn labelled(self, fib: Result<Fib, Error>) -> Self {
        match fib {
            Ok(fib) => self.rib(A::into_rib(fib).0),
            Err(error) => self.failed(error),
        }
    }

    /// Adds the routes of this family from a file. The format is recognised by content: plain text (`prefix
    /// next-hop`), MRT, `bgpdump -m`, pfx2as, `ip route`, `ip -j route`, FRR's JSON, or CSV or TSV whose
    /// first line names the columns. Further ranges of clouds (AWS, Google, Azure, Oracle, Cloudflare),
    /// delegations of registries, and a set of `ipset save` or nft. A file is plain or compressed with gzip,
    /// bzip2 or zstd. MRT and each compression need their features. The texts of next hops are parsed into
    /// labels: a `Labels<String>` takes any text. The path `builtin:bogons` names the special-purpose
    /// prefixes of IANA ([`bogons`](crate::fib::bogons)).
    ///
    /// A line that is wrong makes [`build`](Self::build) fail, with the file and the line. A prefix with host
    /// bits is wrong, too: `mask_host_bits` of [`ReadOptions`] clears them, for [`fib`](Self::fib).
    #[cfg(feature = "text")]
    pub fn file<T: FromStr<Err: ToString> + Eq + Hash>(
        mut self,
        path: impl AsRef<Path>,
        labels: &Labels<T>,
    ) -> Self {
        let path = path.as_ref();
        match read_file(path, &ReadOptions::default()) {
            Ok(fib) if A::rib(&fib).is_empty() => {
                self.failed(Error::NoRoutesOfFamily { path: path.to_owned(), wanted: A::FAMILY })
            }
            Ok(fib) => {
                let labelled = labelled(fib, labels, &mut self.draft.claims);
                self.labelled(labelled.map_err(|error| error.in_file(path)))
            }
            Err(error) => self.failed(error),
        }
    }

    settings_methods! {
        /// Limits the bytes that both copies of the compiled table may take together. A table that needs more
        /// is not built, and an update that needs more fails. The routes are not counted. While a table is
        /// rebuilt, the old and the new one are there, and each may take so much.
        ///
        /// Where the best engine needs more, `auto` takes a smaller one, which is slower. Only if none fits,
        /// the call fails.
        ///
        /// Without this call the cap is half of the machine's memory, or half of the limit of the process's
        /// control group. With the engine `auto` the cap is then also 256 MiB and 2 KiB for each prefix: a
        /// table needs so much only if its routes have become very different from those that its engine was
        /// picked for. Build such a table anew, name an engine, or state a cap.
        memory_cap;

        /// Leaves head room for next hops up to this index, if updates will bring larger ones than the routes
        /// have now. Without it a larger next hop makes the engine rebuild the table.
        next_hops;

        /// States the length of the longest prefix that the table will ever have, such as 48. A route with a
        /// longer prefix is refused: [`build`](Self::build), [`Table::apply`], [`Table::replace`] and the
        /// like fail with [`Error::LongerPrefix`], and nothing changes. By default any prefix may come.
        ///
        /// Lookups on GPUs use this: keys have as few bytes as the longest prefix needs, and a table without
        /// a stated length has to keep all bytes of IPv6 addresses, because a longer prefix may come while
        /// they are under way. [`Batches`](crate::Batches) write the first bytes of an address once, into
        /// memory that the GPU reads: 8 of IPv6 with a length up to 64 and 6 with up to 48, and 3 of IPv4
        /// with up to 24. The other bits, which no lookup depends on, are then not kept, and a batch may
        /// give its [keys](crate::Batch::keys) back with zeros in their place.
        ///
        /// Keys always have the bytes that this length needs, also while all prefixes are shorter: state no
        /// more than will come. An image file does not keep the length. For both families build two tables,
        /// and join them with [`IpTable::new`](crate::IpTable::new).
        ///
        /// ```
        /// use wirespeed::prelude::*;
        /// use wirespeed::Error;
        ///
        /// let routes = [("2001:db8::/32".parse::<Ipv6Net>()?, NextHop(1))];
        /// let mut table = Ipv6Table::builder().routes(routes).longest_prefix(48).build()?;
        /// table.insert("2001:db8:1::/48".parse::<Ipv6Net>()?, NextHop(2))?;
        /// let refused = table.insert("2001:db8:1:2::/64".parse::<Ipv6Net>()?, NextHop(3));
        /// assert!(matches!(refused, Err(Error::LongerPrefix { longest: 48, .. })));
        /// assert_eq!(table.len(), 2);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        longest_prefix;

        /// Makes lookups give the matched prefix, too:
        /// [`Reader::lookup_prefix`](crate::Reader::lookup_prefix),
        /// [`Reader::lookup_prefixes`](crate::Reader::lookup_prefixes). The compiled table has a result for
        /// each pair of a next hop and a prefix length, which costs memory and time of all lookups:
        /// BENCHMARKS.md has figures. Tables without it pay nothing.
        ///
        /// The table then has head room for a quarter more pairs, whatever [`next_hops`](Self::next_hops)
        /// asks for.
        prefix_lookups;

        /// Sets the device that looks batches up: the CPU (the default), this machine's GPUs, or either by
        /// load. This applies to batches of [`Reader`](crate::Reader)s and [`Pipeline`](crate::Pipeline)s.
        /// Single lookups and lookups through a [`Guard`](crate::Guard) stay on the CPU. Updates reach both.
        /// If a GPU fails, the CPU answers.
        ///
        /// A batch on GPUs sees one state of the table if it has at most 131,072 addresses, or fewer if the
        /// GPUs' slots hold fewer. A larger batch goes in parts, and each part sees one state.
        ///
        /// ```
        /// use wirespeed::prelude::*;
        ///
        /// let routes = [("10.0.0.0/8".parse::<Ipv4Net>()?, NextHop(1))];
        /// let table = Ipv4Table::builder().routes(routes).device(Device::Auto).build()?;
        /// if let Some(why) = table.device_note() {
        ///     println!("on the CPU: {why}");
        /// }
        /// let mut found = [NextHop::NONE; 2];
        /// table.reader().lookup_batch(&[Ipv4Addr::new(10, 1, 2, 3), Ipv4Addr::new(11, 0, 0, 1)], &mut found);
        /// assert_eq!(found, [NextHop(1), NextHop::NONE]);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        device;

        /// Gives the GPUs for [`Device::Gpu`](crate::Device::Gpu) and [`Device::Auto`](crate::Device::Auto),
        /// if they are started already, for example for another table ([`Table::fleet`]), or need other
        /// options. The default is to start all GPUs with
        /// [`GpuOptions::default`](crate::gpu::runtime::GpuOptions), for this table only.
        fleet;
    }

    /// Builds the table.
    ///
    /// Fails if a source could not be read, or a route has no next hop or a prefix longer than the [stated
    /// length](Self::longest_prefix). Fails if no engine has the name, or if the table exceeds a limit of the
    /// engine or the cap. Fails if [`Device::Gpu`](crate::Device::Gpu) was asked for and no GPU is usable.
    #[inline(never)] // one copy for all crates
    pub fn build(self) -> Result<Table<A>, Error> {
        let (rib, (mut settings, claims)) = (self.rib, self.draft.finish()?);
        check_routes(&rib, settings.device.longest_prefix)?;
        if !settings.prefix_lookups {
            let (choice, options) = settings.resolve::<A>(&rib, Cap::Auto)?;
            return Table::build(rib, choice, options, settings.device, None, claims);
        }
        let ids = MatchIds::new();
        let rib = ids.rib(&rib)?;
        settings.results = ids.head_room();
        let (choice, options) = settings.resolve::<A>(&rib, Cap::Auto)?;
        Table::build(rib, choice, options, settings.device, Some(Arc::new(ids)), claims)
    }

    /// Takes the settings of a builder of both families, and attaches its labels.
    pub(crate) fn with_settings(mut self, settings: Settings, claims: &Claims) -> Self {
        claims.labels().for_each(|labels| self.draft.claims.attach(labels));
        self.draft.settings = settings;
        self
    }
}

/// Reads a file of routes of either family.
#[cfg(feature = "text")]
pub(crate) fn read_file(path: &Path, options: &ReadOptions) -> Result<Fib, Error> {
    Ok(read_fib(&Source::Path(path.to_owned()), options)?.0)
}

/// Replaces the indexes of the routes by the indexes that `labels` give to their next hops' texts.
pub(crate) fn labelled<T: FromStr<Err: ToString> + Eq + Hash>(
    mut fib: Fib,
    labels: &Labels<T>,
    claims: &mut Claims,
) -> Result<Fib, Error> {
    claims.attach(labels.counts());
    let mut label = vec![NextHop::NONE];
    for (_, text) in fib.next_hops.iter() {
        label.push(labels.intern_for(claims, parse(text)?)?);
    }
    relabel(&mut fib, &label);
    Ok(fib)
}

/// Replaces each index of the routes by the label at its place.
pub(crate) fn relabel(fib: &mut Fib, label: &[NextHop]) {
    if label.iter().zip(0..).all(|(label, index)| label.0 == index) {
        return;
    }
    let relabel = |next_hop: NextHop| label.get(next_hop.0 as usize).copied().unwrap_or_default();
    fib.v4 = fib.v4.iter().map(|(prefix, next_hop)| (prefix, relabel(next_hop))).collect();
    fib.v6 = fib.v6.iter().map(|(prefix, next_hop)| (prefix, relabel(next_hop))).collect();
}
