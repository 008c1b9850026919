//! [`GamtT`] and [`GamtS`]: the two engines, and their compilation from a Rib.
//!
//! The strides are chosen for the routes ([`Plan`]), and the nodes of each level are counted, before anything
//! is built. Routes in table order then fill the trie node by node: those that end in a node paint its units,
//! a run of longer ones goes to a child.

use wirespeed_fib::{Address, BuildError, BuildOptions, Engine, Outgrown, Prefix, Rib, Standing};
use wirespeed_image::{Element, Image, ImageError, Patch};

use crate::layout::{GamtTable, InTrie, Separate, allocate, next_hops};
use crate::plan::Plan;
use crate::slots::Slots;
use crate::trie::{LevelUsage, Trie};

/// GAMT with next hops in the trie: the paper's GAMT_T. The faster lookup.
#[derive(Clone, Debug)]
pub struct GamtT<A: Address> {
    pub(crate) trie: Trie,
    /// The largest next hop that a leaf holds.
    pub(crate) widest: u32,
    /// The largest that has been in the table.
    pub(crate) results: u32,
    /// Withdrawn prefixes whose nodes may still be there.
    pub(crate) withdrawn: Vec<Prefix<A>>,
}

/// GAMT with a separate table of next hops: the paper's GAMT_S. The faster update.
#[derive(Clone, Debug)]
pub struct GamtS<A: Address> {
    pub(crate) trie: Trie,
    pub(crate) slots: Slots<A>,
    /// The largest next hop that has been in the table.
    pub(crate) results: u32,
}

impl<A: Address> Engine<A> for GamtT<A> {
    const NAME: &'static str = "gamt";
    const STANDING: Standing = Standing::Niche("as many updates as lookups, or a small table");
    type Table = GamtTable<A, InTrie>;

    fn build(rib: &Rib<A>, options: &BuildOptions) -> Result<(Self, Self::Table), BuildError> {
        let results = rib.max_next_hop().0;
        let widest = results.max(options.results);
        let routes: Vec<_> = rib.iter().map(|(prefix, next_hop)| (prefix, next_hop.0)).collect();
        let plan = Plan::of(Self::NAME, rib, options, widest)?;
        let mut image = allocate::<A, InTrie>(&plan.levels, None, options.memory_cap)?;
        let trie = compile(&plan, &routes, &mut image)?;
        image.set_counts(rib.len() as u64, results.into());
        let widest = plan.widest();
        Ok((Self { trie, widest, results, withdrawn: Vec::new() }, GamtTable::new(image)))
    }

    fn patch(&mut self, _: &Self::Table, rib: &Rib<A>, changed: &[Prefix<A>]) -> Result<Patch, Outgrown> {
        self.patch(rib, changed)
    }

    fn memory_usage(&self) -> u64 {
        self.trie.memory_usage() + (self.withdrawn.capacity() * size_of::<Prefix<A>>()) as u64
    }
}

impl<A: Address> Engine<A> for GamtS<A> {
    const NAME: &'static str = "gamt-s";
    const STANDING: Standing = Standing::Niche("next hops that change all the time");
    type Table = GamtTable<A, Separate>;

    fn build(rib: &Rib<A>, options: &BuildOptions) -> Result<(Self, Self::Table), BuildError> {
        let results = rib.max_next_hop().0;
        let routes: Vec<_> = rib.iter().collect();
        let slots = Slots::new(&routes, results.max(options.results), options.tight);
        let room = slots.next_hops().len();
        let widest = u32::try_from(room - 1).unwrap_or(u32::MAX);
        let plan = Plan::of(Self::NAME, rib, options, widest)?;
        let separate = Some((room as u64, slots.width()));
        let mut image = allocate::<A, Separate>(&plan.levels, separate, options.memory_cap)?;
        // Slots were given in the order of the routes.
        let routes: Vec<_> = routes.iter().zip(1..).map(|(&(prefix, _), slot)| (prefix, slot)).collect();
        let trie = compile(&plan, &routes, &mut image)?;
        write_next_hops(&slots, &mut image, plan.levels.len())?;
        image.set_counts(rib.len() as u64, results.into());
        Ok((Self { trie, slots, results }, GamtTable::new(image)))
    }

    fn patch(&mut self, _: &Self::Table, rib: &Rib<A>, changed: &[Prefix<A>]) -> Result<Patch, Outgrown> {
        self.patch(rib, changed)
    }

    fn memory_usage(&self) -> u64 {
        self.trie.memory_usage() + self.slots.memory_usage()
    }
}

impl<A: Address> GamtT<A> {
    /// The use of each level.
    pub fn usage(&self) -> Vec<LevelUsage> {
        self.trie.usage()
    }
}

impl<A: Address> GamtS<A> {
    /// The use of each level.
    pub fn usage(&self) -> Vec<LevelUsage> {
        self.trie.usage()
    }
}

/// The trie of a plan, and its units in an image.
fn compile<A: Address>(
    plan: &Plan,
    routes: &[(Prefix<A>, u32)],
    image: &mut Image,
) -> Result<Trie, ImageError> {
    let mut trie = Trie::new(plan);
    trie.fill(routes).expect("the nodes were counted on these very routes");
    trie.write(image)?;
    Ok(trie)
}

pub(crate) fn write_next_hops<A: Address>(
    slots: &Slots<A>,
    image: &mut Image,
    levels: usize,
) -> Result<(), ImageError> {
    fn write<W: Element>(from: &[u32], to: &mut [W]) {
        for (to, &next_hop) in to.iter_mut().zip(from) {
            *to = W::try_from(next_hop.into()).ok().expect("the width was chosen for the largest next hop");
        }
    }
    let (from, section) = (slots.next_hops(), next_hops(levels));
    match slots.width() {
        1 => write::<u8>(from, image.section_mut(section)?),
        2 => write::<u16>(from, image.section_mut(section)?),
        _ => write::<u32>(from, image.section_mut(section)?),
    }
    Ok(())
}
