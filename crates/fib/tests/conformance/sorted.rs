//! [`Sorted`]: the simplest engine. The routes in order, and how far before each is the one that covers it;
//! an update writes all of it anew.
//!
//! ```text
//! head       u64  number of routes
//! upper      u64  the upper half of each route's address, 0 for IPv4
//! lower      u64  the lower half
//! lengths    u8   the prefix length
//! back       u32  how many routes before this one is the longest that covers it, 0 if none does
//! next_hops  u32  the next hop
//! ```
//!
//! Each route that has an address is the last one that doesn't begin after it, or covers that one.

use std::marker::PhantomData;

use wirespeed_fib::{
    Address, BuildError, BuildOptions, Engine, Lookup, NextHop, Outgrown, Prefix, Rib, Standing, Step,
};
use wirespeed_image::{Checked, Image, ImageBuilder, ImageError, Patch, PatchBuilder, SectionId, Table};

pub(crate) const HEAD: SectionId = SectionId(0);
const UPPER: SectionId = SectionId(1);
const LOWER: SectionId = SectionId(2);
const LENGTHS: SectionId = SectionId(3);
const BACK: SectionId = SectionId(4);
const NEXT_HOPS: SectionId = SectionId(5);

/// Name, width and length of each section.
const fn sections(room: u64) -> [(&'static str, usize, u64); 6] {
    [
        ("head", 8, 1),
        ("upper", 8, room),
        ("lower", 8, room),
        ("lengths", 1, room),
        ("back", 4, room),
        ("next_hops", 4, room),
    ]
}

/// The engine: how many routes its image has room for.
pub(crate) struct Sorted {
    room: usize,
}

/// Its table.
#[derive(Clone)]
pub(crate) struct SortedTable<A> {
    image: Image,
    address: PhantomData<fn() -> A>,
}

impl<A: Address> Engine<A> for Sorted {
    const NAME: &'static str = "sorted";
    const STANDING: Standing = Standing::Niche("tests");
    type Table = SortedTable<A>;

    fn build(rib: &Rib<A>, options: &BuildOptions) -> Result<(Self, SortedTable<A>), BuildError> {
        let room = rib.len() as u64 + options.head_room_for(rib.len() as u64, 1, 8);
        let builder = ImageBuilder::new(SortedTable::<A>::KIND, SortedTable::<A>::LAYOUT);
        let mut image = sections(room)
            .into_iter()
            .fold(builder, |builder, (name, width, len)| builder.section_of_width(name, width, len))
            .build(options.memory_cap)?;
        let room = usize::try_from(room).unwrap();
        image.apply(&all_of(rib, room)).unwrap();
        Ok((Self { room }, unchecked(image)))
    }

    fn patch(&mut self, _: &Self::Table, rib: &Rib<A>, _: &[Prefix<A>]) -> Result<Patch, Outgrown> {
        // A patch of all of it costs more than a table anew.
        let is_long = rib.len() > 1 << 16;
        if is_long || rib.len() > self.room { Err(Outgrown("room")) } else { Ok(all_of(rib, self.room)) }
    }

    fn memory_usage(&self) -> u64 {
        0
    }
}

impl Sorted {
    /// Has room for fewer routes from now on, for engines that are to be seen to be wrong.
    pub(crate) fn lose(&mut self, routes: usize) {
        self.room = self.room.saturating_sub(routes);
    }
}

/// All routes and zeros in the room after them, as writes.
fn all_of<A: Address>(rib: &Rib<A>, room: usize) -> Patch {
    let routes: Vec<_> = rib.iter().collect();
    let back = back(&routes);
    let value = |section, at: usize| match routes.get(at) {
        None => 0,
        Some((prefix, _)) if section == UPPER => halves(prefix.address()).0,
        Some((prefix, _)) if section == LOWER => halves(prefix.address()).1,
        Some((prefix, _)) if section == LENGTHS => prefix.len().into(),
        Some(_) if section == BACK => back[at] as u64,
        Some((_, next_hop)) => next_hop.0.into(),
    };
    let mut patch = PatchBuilder::new();
    patch.set(HEAD, 0, routes.len() as u64);
    for section in [UPPER, LOWER, LENGTHS, BACK, NEXT_HOPS] {
        (0..room).for_each(|at| patch.set(section, at as u64, value(section, at)));
    }
    patch.finish(Some((routes.len() as u64, rib.max_next_hop().0.into())))
}

/// How far before each route is the longest that covers it.
fn back<A: Address>(routes: &[(Prefix<A>, NextHop)]) -> Vec<usize> {
    let mut back: Vec<usize> = Vec::new();
    for (at, (prefix, _)) in routes.iter().enumerate() {
        // The route before does, or one that covers that one.
        let mut cover = at.checked_sub(1);
        while let Some(outer) = cover.filter(|&outer| !routes[outer].0.covers(*prefix)) {
            cover = (back[outer] > 0).then(|| outer - back[outer]);
        }
        back.push(cover.map_or(0, |outer| at - outer));
    }
    back
}

/// The upper and the lower half of an address.
fn halves<A: Address>(address: A) -> (u64, u64) {
    let half = |bits: u128| u64::try_from(bits & u128::from(u64::MAX)).unwrap();
    (half(address.to_u128() >> 64), half(address.to_u128()))
}

/// A table of an image that nobody checked, for engines that are to be seen to be wrong.
pub(crate) fn unchecked<A>(image: Image) -> SortedTable<A> {
    SortedTable { image, address: PhantomData }
}

impl<A: Address> SortedTable<A> {
    /// A route.
    pub(crate) fn route(&self, at: usize) -> (Prefix<A>, NextHop) {
        let [upper, lower] = [UPPER, LOWER].map(|half| self.image.section::<u64>(half)[at]);
        let address = A::from_u128_low(u128::from(upper) << 64 | u128::from(lower));
        let prefix = Prefix::around(address, self.image.section::<u8>(LENGTHS)[at]);
        (prefix, NextHop(self.image.section::<u32>(NEXT_HOPS)[at]))
    }

    /// The routes of an address, longest first.
    pub(crate) fn matching(&self, address: A) -> impl Iterator<Item = usize> + '_ {
        let [head, upper, lower] = [HEAD, UPPER, LOWER].map(|section| self.image.section::<u64>(section));
        let (mut low, mut high, halves) = (0, usize::try_from(head[0]).unwrap(), halves(address));
        while low < high {
            let middle = usize::midpoint(low, high);
            if (upper[middle], lower[middle]) > halves { high = middle } else { low = middle + 1 }
        }
        let back = self.image.section::<u32>(BACK);
        let outer = |&at: &usize| (back[at] > 0).then(|| at - back[at] as usize);
        let chain = std::iter::successors(low.checked_sub(1), outer);
        chain.filter(move |&at| self.route(at).0.contains(address))
    }
}

impl<A: Address> Table for SortedTable<A> {
    const KIND: &'static str = "sorted-routes";
    const LAYOUT: u32 = 1;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        Self::expect_kind(&image)?;
        let usage: Vec<_> =
            image.memory_usage().into_iter().map(|s| (s.name, s.width as usize, s.len)).collect();
        let room = usage.get(1).map_or(0, |upper| upper.2);
        if usage != sections(room).map(|(name, width, len)| (name.to_owned(), width, len)) {
            return Err(ImageError::Malformed("other sections".into()));
        }
        let table = unchecked(image);
        let all = |section, values: &mut dyn Iterator<Item = u64>| {
            let results = table.image.results();
            (0..).zip(values).all(|(index, value)| table.admits_at(section, index, value, results))
        };
        let of_32_bits = |section| table.image.section::<u32>(section).iter().copied().map(u64::from);
        let is_valid = all(HEAD, &mut table.image.section::<u64>(HEAD).iter().copied())
            && all(LENGTHS, &mut table.image.section::<u8>(LENGTHS).iter().copied().map(u64::from))
            && all(BACK, &mut of_32_bits(BACK))
            && all(NEXT_HOPS, &mut of_32_bits(NEXT_HOPS));
        is_valid.then_some(table).ok_or(ImageError::Malformed("a value that none can be".into()))
    }

    fn image(&self) -> &Image {
        &self.image
    }

    fn image_mut(&mut self, _: Checked) -> &mut Image {
        &mut self.image
    }

    fn admits(&self, section: SectionId, value: u64, results: u64) -> bool {
        match section {
            HEAD => value <= self.image.section::<u32>(BACK).len() as u64,
            LENGTHS => value <= A::BITS.into(),
            NEXT_HOPS => value <= results,
            _ => true,
        }
    }

    fn admits_at(&self, section: SectionId, index: u64, value: u64, results: u64) -> bool {
        if section == BACK { value <= index } else { self.admits(section, value, results) }
    }
}

impl<A: Address> Lookup<A> for SortedTable<A> {
    fn lookup(&self, address: A) -> NextHop {
        self.matching(address).next().map_or(NextHop::NONE, |at| self.route(at).1)
    }

    fn lookup_batch(&self, addresses: &[A], next_hops: &mut [NextHop]) {
        assert_eq!(addresses.len(), next_hops.len());
        addresses.iter().zip(next_hops).for_each(|(&address, next_hop)| *next_hop = self.lookup(address));
    }

    fn explain(&self, address: A) -> Vec<Step> {
        let step =
            |section, index: usize, value, meaning| Step { section, index: index as u64, value, meaning };
        let routes = self.image.section::<u64>(HEAD)[0];
        let mut steps = vec![step("head", 0, routes, format!("{routes} routes"))];
        let Some(at) = self.matching(address).next() else {
            steps[0].meaning = "no route".into();
            return steps;
        };
        let (prefix, next_hop) = self.route(at);
        let [upper, lower] = [UPPER, LOWER].map(|half| self.image.section::<u64>(half)[at]);
        steps.push(step("upper", at, upper, "the upper half".into()));
        steps.push(step("lower", at, lower, "the lower half".into()));
        steps.push(step("lengths", at, prefix.len().into(), format!("{prefix}")));
        steps.push(step("back", at, self.image.section::<u32>(BACK)[at].into(), "what covers it".into()));
        steps.push(step("next_hops", at, next_hop.0.into(), format!("next hop {next_hop}")));
        if !next_hop.is_some() {
            steps.last_mut().unwrap().meaning = "no route".into();
        }
        steps
    }
}
