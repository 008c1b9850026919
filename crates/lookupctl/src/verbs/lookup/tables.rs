//! What `lookup` asks: compiled tables of either family, with the routes beside them where these are at hand.

use std::cell::OnceCell;
use std::net::IpAddr;

use anyhow::{Context, Result, bail};
use wirespeed::engine::{self, Engines, OnDevice, Visitor};
use wirespeed::image_file::{self, ImageFile};
use wirespeed_fib::{Address, BuildOptions, Engine, Family, Fib, Lpm, NextHop, NextHops, Rib, Step, V4, V6};
use wirespeed_image::Table;
use wirespeed_sail::{FibId, SailM, SailMTable};

use crate::engine::Choice;
use crate::several;

/// The tables that were read, and the one to look up in.
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

/// What answers, by family. A family's table is made when its first address comes.
pub(super) struct Tables<'a> {
    routes: Option<Routes<'a>>,
    /// What an image calls its next hops.
    named: NextHops,
    engine: Choice,
    build: BuildOptions,
    v4: OnceCell<Box<dyn Answer + 'a>>,
    v6: OnceCell<Box<dyn Answer + 'a>>,
    /// The image and its family, which is the only one there is then.
    image: Option<(String, Family)>,
}

impl<'a> Tables<'a> {
    pub(super) fn new(
        routes: Option<Routes<'a>>,
        image: Option<ImageFile>,
        engine: Choice,
        build: BuildOptions,
    ) -> Result<Self> {
        let (v4, v6) = (OnceCell::new(), OnceCell::new());
        let only = image.as_ref().map(|image| (image.path().display().to_string(), image.family()));
        let named = image.as_ref().map(ImageFile::next_hops).transpose()?.unwrap_or_default();
        if let Some(image) = image {
            let fib = routes.map(Routes::fib);
            let _ = match image.family() {
                Family::V4 => v4.set(adopt::<V4>(image, fib)?),
                Family::V6 => v6.set(adopt::<V6>(image, fib)?),
            };
        }
        Ok(Self { routes, named, engine, build, v4, v6, image: only })
    }

    /// What a next hop is called; its number where nothing says.
    pub(super) fn name(&self, next_hop: NextHop) -> String {
        let known = self.routes.map_or(&self.named, |routes| &routes.fib().next_hops);
        known.text(next_hop).map_or_else(|| next_hop.to_string(), str::to_owned)
    }

    /// What answers for a family.
    pub(super) fn of(&self, family: Family) -> Result<&dyn Answer> {
        if let Some((name, only)) =
            self.image.as_ref().filter(|image| self.routes.is_none() && image.1 != family)
        {
            bail!("{name}: the image is of an {only} table, and the address is {family}");
        }
        let cell = match family {
            Family::V4 => &self.v4,
            Family::V6 => &self.v6,
        };
        if cell.get().is_none() {
            let routes = self.routes.context("neither a table nor an image")?;
            let made = match family {
                Family::V4 => compile::<V4>(self.engine, routes, &self.build)?,
                Family::V6 => compile::<V6>(self.engine, routes, &self.build)?,
            };
            let _ = cell.set(made);
        }
        Ok(&**cell.get().context("a table was just made")?)
    }
}

fn compile<'a, A: Engines>(
    engine: Choice,
    routes: Routes<'a>,
    build: &BuildOptions,
) -> Result<Box<dyn Answer + 'a>> {
    let rib = A::rib(routes.fib());
    if routes.fibs.len() == 1 {
        return engine.visit(rib, &build.strides, Make { rib: Some(rib), from: Origin::Routes(build) })?;
    }
    let table = SailM::overlay(&several::routes::<A>(routes.fibs)?, build);
    let (_, table) = table.with_context(|| format!("{} can't be built", several::ENGINE))?;
    Ok(Box::new(AnswersWithin { rib, table, fib: routes.within }))
}

fn adopt<'a, A: Engines>(image: ImageFile, fib: Option<&'a Fib>) -> Result<Box<dyn Answer + 'a>> {
    engine::visit(image.engine(), Make { rib: fib.map(A::rib), from: Origin::Image(Box::new(image)) })?
}

/// Makes what answers for a family.
struct Make<'a, 'b, A> {
    rib: Option<&'a Rib<A>>,
    from: Origin<'b>,
}

/// What a table is made from.
enum Origin<'b> {
    Routes(&'b BuildOptions),
    Image(Box<ImageFile>),
}

impl<'a, A: Address> Visitor<A> for Make<'a, '_, A> {
    type Output = Result<Box<dyn Answer + 'a>>;

    fn visit<E: Engine<A, Table: OnDevice>>(self) -> Self::Output {
        let table = match self.from {
            Origin::Image(image) => image.into_table::<E::Table>()?,
            Origin::Routes(build) => {
                let rib = self.rib.context("no routes to build a table of")?;
                E::build(rib, build).with_context(|| format!("{} can't be built", E::NAME))?.1
            }
        };
        Ok(Box::new(Answers { rib: self.rib, table, engine: E::NAME }))
    }
}

/// A table of either family.
pub(super) trait Answer {
    /// What an address leads to.
    fn answer(&self, address: IpAddr) -> Result<Found>;
    /// The steps of its lookup.
    fn explain(&self, address: IpAddr) -> Result<Vec<Step>>;
}

/// What is known of an address.
pub(super) struct Found {
    pub(super) prefix: Option<String>,
    pub(super) next_hop: NextHop,
    /// Where engine and routes contradict each other.
    pub(super) wrong: Option<String>,
}

struct Answers<'a, A, T> {
    rib: Option<&'a Rib<A>>,
    table: T,
    engine: &'static str,
}

impl<A: Address, T: Table + Lpm<A>> Answer for Answers<'_, A, T> {
    fn answer(&self, address: IpAddr) -> Result<Found> {
        let address = own::<A>(address)?;
        let next_hop = self.table.lookup(address);
        let Some(rib) = self.rib else {
            let prefix = image_file::longest_match(self.table.image(), address);
            return Ok(Found { prefix: prefix.map(|prefix| prefix.to_string()), next_hop, wrong: None });
        };
        Ok(Found::checked(rib, address, next_hop, self.engine))
    }

    fn explain(&self, address: IpAddr) -> Result<Vec<Step>> {
        Ok(self.table.explain(own::<A>(address)?))
    }
}

/// The table of several FIBs, for one of them.
struct AnswersWithin<'a, A> {
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

    fn explain(&self, address: IpAddr) -> Result<Vec<Step>> {
        Ok(self.table.explain_in(self.fib, own::<A>(address)?))
    }
}

impl Found {
    /// What an engine found, held against the routes.
    fn checked<A: Address>(rib: &Rib<A>, address: A, next_hop: NextHop, engine: &str) -> Self {
        let matched = rib.longest_match(address);
        let right = matched.map_or(NextHop::NONE, |(_, next_hop)| next_hop);
        let wrong = (next_hop != right)
            .then(|| format!("{engine}: {address} leads to next hop {next_hop}, by the routes to {right}"));
        Self { prefix: matched.map(|(prefix, _)| prefix.to_string()), next_hop, wrong }
    }
}

fn own<A: Address>(address: IpAddr) -> Result<A> {
    A::from_ip(address).with_context(|| format!("{address} is not an {} address", A::FAMILY))
}
