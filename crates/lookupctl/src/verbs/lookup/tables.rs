//! The tables of `lookup`: compiled tables of both families, with the routes beside them if these are known.

use std::cell::OnceCell;
use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use wirespeed::engine::{Addresses, AnyTable, EngineName};
use wirespeed::gpu::ip::Remote;
use wirespeed::image_file::{self, ImageFile, VrfImageFile};
use wirespeed::{Fleet, VrfId, VrfReader, VrfRoutes, Vrfs};
use wirespeed_fib::{Address, BuildOptions, Family, Fib, NextHop, NextHops, Prefix, Rib, Step, V4, V6};
use wirespeed_sail::{FibId, SailM, SailMTable};

use crate::engine::Choice;
use crate::several;
use crate::tables::{self, cannot_upload};

/// The tables that were read, and the table to look up in.
#[derive(Clone, Copy)]
pub(super) struct Routes<'a> {
    pub(super) fibs: &'a [Fib],
    pub(super) within: FibId,
}

impl<'a> Routes<'a> {
    fn fib(self) -> &'a Fib {
        &self.fibs[self.within.index()]
    }
}

/// The options for compiling tables, and the device that looks up.
pub(super) struct Compile {
    pub(super) engine: Choice,
    pub(super) build: BuildOptions,
    /// The GPUs that look up. `None` for the CPU.
    pub(super) fleet: Option<Fleet>,
}

/// The tables that answer, by family.
pub(super) struct Tables<'a> {
    from: From<'a>,
    v4: OnceCell<Box<dyn Answer + 'a>>,
    v6: OnceCell<Box<dyn Answer + 'a>>,
}

/// Where tables come from.
enum From<'a> {
    /// Routes, of which a family's table is compiled when its first address comes.
    Routes(Routes<'a>, Compile),
    /// An image.
    Image {
        next_hops: NextHops,
        /// The name of an image of one family, and the family.
        only: Option<(String, Family)>,
    },
}

impl<'a> Tables<'a> {
    /// The tables that are compiled of routes.
    pub(super) fn of_routes(routes: Routes<'a>, compile: Compile) -> Self {
        Self { from: From::Routes(routes, compile), v4: OnceCell::new(), v6: OnceCell::new() }
    }

    /// The tables of an image file. `fleet` has the GPUs that look up.
    pub(super) fn of_images(images: Vec<ImageFile>, fleet: Option<&Fleet>) -> Result<Self> {
        let (v4, v6) = (OnceCell::new(), OnceCell::new());
        let only = match &*images {
            [image] => Some((image.path().display().to_string(), image.family())),
            _ => None,
        };
        // The tables of one file have the texts of the file.
        let next_hops = images.first().map(ImageFile::next_hops).transpose()?.unwrap_or_default();
        for image in images {
            let _ = match image.family() {
                Family::V4 => v4.set(adopt::<V4>(image, fleet)?),
                Family::V6 => v6.set(adopt::<V6>(image, fleet)?),
            };
        }
        Ok(Self { from: From::Image { next_hops, only }, v4, v6 })
    }

    /// The tables of one VRF of an image.
    pub(super) fn of_vrf(path: &Path, vrf: Option<&str>, fleet: Option<&Fleet>) -> Result<Self> {
        let (name, vrfs) = (path.display(), Vrfs::open(path)?);
        let vrf = vrf.with_context(|| format!("{name}: an image of VRFs: choose one with --vrf NUMBER"))?;
        let number = vrf.parse().map(VrfId).ok();
        let found = number.and_then(|number| Some((number, vrfs.routes(number)?)));
        let (vrf, VrfRoutes { v4, v6 }) = found.with_context(|| format!("{name}: there is no VRF {vrf}"))?;
        if fleet.is_some() {
            bail!("{name}: VRFs are looked up on the CPU: leave out --device");
        }
        let v4: Box<dyn Answer> = Box::new(AnswersInVrf { rib: v4, reader: vrfs.reader(), vrf });
        let v6: Box<dyn Answer> = Box::new(AnswersInVrf { rib: v6, reader: vrfs.reader(), vrf });
        let next_hops = VrfImageFile::open(path)?.next_hops()?;
        Ok(Self { from: From::Image { next_hops, only: None }, v4: v4.into(), v6: v6.into() })
    }

    /// The text of a next hop, or its number if there is no text.
    pub(super) fn name(&self, next_hop: NextHop) -> String {
        let known = match &self.from {
            From::Routes(routes, _) => &routes.fib().next_hops,
            From::Image { next_hops, .. } => next_hops,
        };
        known.text(next_hop).map_or_else(|| next_hop.to_string(), str::to_owned)
    }

    /// The reason why a family gets no answer, if it gets none.
    pub(super) fn refuses(&self, family: Family) -> Option<anyhow::Error> {
        let From::Image { only: Some((name, only)), .. } = &self.from else { return None };
        (*only != family)
            .then(|| anyhow!("{name}: the image holds an {only} table, and the address is {family}"))
    }

    /// The table that answers for a family.
    pub(super) fn of(&self, family: Family) -> Result<&dyn Answer> {
        if let Some(why) = self.refuses(family) {
            return Err(why);
        }
        let cell = match family {
            Family::V4 => &self.v4,
            Family::V6 => &self.v6,
        };
        if let (From::Routes(routes, compile), None) = (&self.from, cell.get()) {
            let made = match family {
                Family::V4 => compile.table::<V4>(*routes)?,
                Family::V6 => compile.table::<V6>(*routes)?,
            };
            let _ = cell.set(made);
        }
        Ok(&**cell.get().context("no table of the family")?)
    }
}

impl Compile {
    /// Compiles the table that answers for a family.
    fn table<'a, A: Addresses>(&self, routes: Routes<'a>) -> Result<Box<dyn Answer + 'a>> {
        let rib = A::rib(routes.fib());
        if routes.fibs.len() > 1 {
            let table = SailM::overlay(&several::routes::<A>(routes.fibs)?, &self.build);
            let (_, table) = table.with_context(|| format!("{} can't be built", several::ENGINE))?;
            return Ok(Box::new(AnswersWithin { rib, table, fib: routes.within }));
        }
        let engine = self.engine.resolve_with::<A>(rib, self.fleet.is_some(), &self.build.strides)?;
        let strides = &self.build.strides;
        let strides = if self.fleet.is_some() { strides.clone().on_gpu() } else { strides.clone() };
        let compiled = tables::compile::<A>(engine, rib, &BuildOptions { strides, ..self.build.clone() })?;
        Ok(Box::new(Answers::new(Some(rib), engine, compiled.table, self.fleet.as_ref())?))
    }
}

fn adopt<'a, A: Addresses>(image: ImageFile, fleet: Option<&Fleet>) -> Result<Box<dyn Answer + 'a>> {
    let engine = image.engine();
    Ok(Box::new(Answers::new(None, engine, image.into_table::<A>()?, fleet)?))
}

/// A table of either family.
pub(super) trait Answer {
    /// Looks an address up.
    fn answer(&self, address: IpAddr) -> Result<Found>;
    /// Every prefix that contains an address, shortest first, by the routes.
    fn all(&self, address: IpAddr) -> Result<Vec<(String, NextHop)>>;
    /// The steps of a lookup.
    fn explain(&self, address: IpAddr) -> Result<Vec<Step>>;
}

/// The answer for an address.
pub(super) struct Found {
    pub(super) prefix: Option<String>,
    pub(super) next_hop: NextHop,
    /// A message if the engine and the routes differ.
    pub(super) wrong: Option<String>,
}

struct Answers<'a, A: Addresses> {
    rib: Option<&'a Rib<A>>,
    engine: EngineName,
    table: Box<dyn AnyTable<A>>,
    /// The table on GPUs, if they look up.
    remote: Option<Remote<A>>,
}

impl<'a, A: Addresses> Answers<'a, A> {
    fn new(
        rib: Option<&'a Rib<A>>,
        engine: EngineName,
        table: Box<dyn AnyTable<A>>,
        fleet: Option<&Fleet>,
    ) -> Result<Self> {
        // Whole addresses suit any table.
        let remote = fleet.map(|fleet| table.upload(fleet, (A::BITS, &[]))).transpose();
        Ok(Self { rib, engine, table, remote: remote.with_context(|| cannot_upload(engine))? })
    }
}

impl<A: Addresses> Answer for Answers<'_, A> {
    fn answer(&self, address: IpAddr) -> Result<Found> {
        let address = own::<A>(address)?;
        let mut next_hop = [NextHop::NONE];
        match &self.remote {
            None => next_hop[0] = self.table.lookup(address),
            Some(remote) => {
                remote.lookup_batch(&[address], &mut next_hop).context("the lookup on the GPU")?;
            }
        }
        let [next_hop] = next_hop;
        let Some(rib) = self.rib else {
            let prefix = image_file::longest_match(self.table.image(), address);
            return Ok(Found { prefix: prefix.map(|prefix| prefix.to_string()), next_hop, wrong: None });
        };
        Ok(Found::checked(rib, address, next_hop, self.engine.as_str()))
    }

    fn all(&self, address: IpAddr) -> Result<Vec<(String, NextHop)>> {
        let address = own::<A>(address)?;
        if let Some(rib) = self.rib {
            return Ok(covering(rib, address));
        }
        let all = image_file::lookup_all(self.table.image(), address);
        Ok(texts(all.context("--all reads the routes, and the image has none")?))
    }

    fn explain(&self, address: IpAddr) -> Result<Vec<Step>> {
        Ok(self.table.explain(own::<A>(address)?))
    }
}

/// The table of several FIBs, for one of them.
struct AnswersWithin<'a, A: Address> {
    rib: &'a Rib<A>,
    table: SailMTable<A>,
    fib: FibId,
}

impl<A: Address> Answer for AnswersWithin<'_, A> {
    fn answer(&self, address: IpAddr) -> Result<Found> {
        let address = own::<A>(address)?;
        let next_hop = self.table.lookup_in(self.fib, address);
        Ok(Found::checked(self.rib, address, next_hop, several::ENGINE))
    }

    fn all(&self, address: IpAddr) -> Result<Vec<(String, NextHop)>> {
        Ok(covering(self.rib, own::<A>(address)?))
    }

    fn explain(&self, address: IpAddr) -> Result<Vec<Step>> {
        Ok(self.table.explain_in(self.fib, own::<A>(address)?))
    }
}

/// The tables of an image of VRFs, for one of them.
struct AnswersInVrf<A: Address> {
    rib: Rib<A>,
    reader: VrfReader,
    vrf: VrfId,
}

impl<A: Address> Answer for AnswersInVrf<A> {
    fn answer(&self, address: IpAddr) -> Result<Found> {
        let next_hop = self.reader.lookup(self.vrf, address);
        Ok(Found::checked(&self.rib, own::<A>(address)?, next_hop, "forest"))
    }

    fn all(&self, address: IpAddr) -> Result<Vec<(String, NextHop)>> {
        Ok(covering(&self.rib, own::<A>(address)?))
    }

    fn explain(&self, _: IpAddr) -> Result<Vec<Step>> {
        bail!("--explain shows no lookups in an image of VRFs")
    }
}

impl Found {
    /// Compares an engine's answer with the routes.
    fn checked<A: Address>(rib: &Rib<A>, address: A, next_hop: NextHop, engine: &str) -> Self {
        let matched = rib.longest_match(address);
        let right = matched.map_or(NextHop::NONE, |(_, next_hop)| next_hop);
        let wrong = (next_hop != right)
            .then(|| format!("{engine}: {address} leads to next hop {next_hop}, by the routes to {right}"));
        Self { prefix: matched.map(|(prefix, _)| prefix.to_string()), next_hop, wrong }
    }
}

fn covering<A: Address>(rib: &Rib<A>, address: A) -> Vec<(String, NextHop)> {
    texts(rib.covering(Prefix::host(address)))
}

fn texts<A: Address>(routes: impl IntoIterator<Item = (Prefix<A>, NextHop)>) -> Vec<(String, NextHop)> {
    routes.into_iter().map(|(prefix, next_hop)| (prefix.to_string(), next_hop)).collect()
}

fn own<A: Address>(address: IpAddr) -> Result<A> {
    A::from_ip(address).with_context(|| format!("{address} is not an {} address", A::FAMILY))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::on_host;

    #[test]
    fn kernels_answer_for_both_families() {
        let Some((fleet, switch)) = on_host::fleet::<V4>() else { return };
        let mut fib = Fib::default();
        let routes = [("10.0.0.0/8", 1), ("10.1.2.3/32", 2), ("2001:db8::/32", 3), ("2001:db8::7/128", 4)];
        for (prefix, next_hop) in routes {
            match prefix.parse() {
                Ok(prefix) => drop(fib.v4.insert(prefix, NextHop(next_hop))),
                Err(_) => drop(fib.v6.insert(prefix.parse().unwrap(), NextHop(next_hop))),
            }
        }
        let (fibs, build, engine) = ([fib], BuildOptions::default(), Choice::Auto);
        let routes = Routes { fibs: &fibs, within: FibId(0) };
        let tables = Tables::of_routes(routes, Compile { engine, build, fleet: Some(fleet) });
        let answer = |address: &str| {
            let address: IpAddr = address.parse().unwrap();
            tables.of(Family::of(address)).unwrap().answer(address)
        };
        for (address, right) in
            [("10.1.2.3", 2), ("10.1.2.4", 1), ("11.0.0.0", 0), ("2001:db8::7", 4), ("2001:db8::8", 3)]
        {
            let found = answer(address).unwrap();
            assert_eq!((found.next_hop.0, found.wrong), (right, None), "{address}");
        }
        switch.store(true, Ordering::Relaxed);
        assert!(answer("10.1.2.3").is_err(), "a GPU that is lost answers nothing");
    }
}
