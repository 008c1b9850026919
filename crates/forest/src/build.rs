//! [`Forest`] and [`ForestOf`]: compile the tries of a forest, and keep the compiled tables up to date.

use wirespeed_fib::{Address, BuildError, BuildOptions, Engine, Outgrown, Prefix, Rib, Standing, Strides};
use wirespeed_image::{Element, Image, Patch, width_for};
use wirespeed_table::Model;

use crate::chunks::Chunks;
use crate::fibs::{Change, FibId, Fibs, InFibs};
use crate::layout::{
    CELLS, Cell, ForestTable, LEAF, LEAVES, MOST_CELLS, ROOTS, STRIDES, Shape, Width, allocate,
};
use crate::update::{patch, root};

const NAME: &str = "forest";

/// The control plane of many tables: compiles a [`ForestTable`] from [`Fibs`]. The tries are the model's, so
/// it holds only the number of each node's chunk.
#[derive(Clone, Debug)]
pub struct Forest(Chunks);

impl<A: Address> Engine<InFibs<A>> for Forest {
    const NAME: &'static str = NAME;
    const STANDING: Standing = Standing::Niche("many tables in one");
    type Table = ForestTable<A>;

    fn build(fibs: &Fibs<A>, options: &BuildOptions) -> Result<(Self, ForestTable<A>), BuildError> {
        let tables = fibs.end() as u64;
        let room = tables + options.head_room_for(tables, 8, 8);
        let (chunks, table) = compile(fibs, room, options, false)?;
        Ok((Self(chunks), table))
    }

    fn patch(
        &mut self,
        table: &ForestTable<A>,
        fibs: &Fibs<A>,
        changed: &[Change],
    ) -> Result<Patch, Outgrown> {
        patch(&mut self.0, table, fibs, changed)
    }

    fn unpublished(&mut self) {
        self.0.unpublished();
    }

    fn memory_usage(&self) -> u64 {
        self.0.memory_usage()
    }
}

/// The control plane of a single table: a forest of one trie, for small tables. It takes a few kilobytes and
/// microseconds for a few routes, and its lookups take a step for each 8 bits of the matched prefix.
#[derive(Clone, Debug)]
pub struct ForestOf<A: Address> {
    fibs: Fibs<A>,
    chunks: Chunks,
}

impl<A: Address> Engine<A> for ForestOf<A> {
    const NAME: &'static str = NAME;
    const STANDING: Standing = Standing::Niche("small tables");
    type Table = ForestTable<A>;

    fn build(rib: &Rib<A>, options: &BuildOptions) -> Result<(Self, ForestTable<A>), BuildError> {
        let mut fibs = Fibs::with_stride(stride_of::<A>(&options.strides)?);
        fibs.put(ONLY, rib);
        settle(&mut fibs, &mut Vec::new());
        let (chunks, table) = compile(&fibs, 1, options, true)?;
        Ok((Self { fibs, chunks }, table.patched_in_place()))
    }

    fn patch(
        &mut self,
        table: &ForestTable<A>,
        rib: &Rib<A>,
        changed: &[Prefix<A>],
    ) -> Result<Patch, Outgrown> {
        for &prefix in changed {
            self.fibs.exchange(ONLY, prefix, rib.get(prefix));
        }
        let mut changed = Vec::new();
        settle(&mut self.fibs, &mut changed);
        patch(&mut self.chunks, table, &self.fibs, &changed)
    }

    fn memory_usage(&self) -> u64 {
        Model::memory_usage(&self.fibs) + self.chunks.memory_usage()
    }
}

/// The table of a forest of one.
const ONLY: FibId = FibId(0);

fn settle<A: Address>(fibs: &mut Fibs<A>, changed: &mut Vec<Change>) {
    fibs.take_changed(changed);
    fibs.settle();
}

/// The stride of a single table.
fn stride_of<A: Address>(strides: &Strides) -> Result<u8, BuildError> {
    let Strides::Given(given) = strides else { return Ok(8) };
    let is = |stride: &&u8| {
        given.len() == usize::from(A::BITS / **stride) && given.iter().all(|bits| bits == *stride)
    };
    STRIDES.iter().find(is).copied().ok_or_else(|| BuildError::Strides {
        engine: NAME,
        why: "all are of 4 bits or all are of 8 bits".to_owned(),
    })
}

/// Compiles all tables, with room for this number of tables. Patches write in place, or to new chunks.
fn compile<A: Address>(
    fibs: &Fibs<A>,
    tables: u64,
    options: &BuildOptions,
    in_place: bool,
) -> Result<(Chunks, ForestTable<A>), BuildError> {
    let stride = fibs.nodes.stride();
    let (chunks, leaves) = Chunks::needed(fibs);
    // A patch to new chunks writes a path and more while those that it replaces stay. A small table needs
    // room for some of these, and for leaves, of which it may have few.
    let path = u64::from(A::BITS / stride);
    let (chunk_room, leaf_room) = match (in_place, options.tight) {
        (true, _) => (0, 0),
        (false, true) => (2 * path, 2),
        (false, false) => (3 * path, 64),
    };
    let (chunks, leaves) =
        (room(chunks, stride, chunk_room, options)?, room(leaves, stride, leaf_room, options)?);
    let results = fibs.results();
    let widest = results.max(options.results);
    if widest > Width::Wide.most() {
        let (limit, found) = (Width::Wide.most().into(), widest.into());
        return Err(BuildError::Limit { engine: NAME, what: "next hops", limit, found });
    }
    let width = Width::for_up_to(chunks.max(leaves), widest, !in_place);
    let leaf_width = width_for(u64::from(widest) + 1);
    let shape = Shape { stride, width, leaf_width, chunks, leaves, tables };
    let mut image = allocate::<A>(shape, options.memory_cap)?;
    let chunks = Chunks::new(fibs, chunks, leaves, in_place);
    match width {
        Width::Narrow(_) => fill::<A, u32>(&mut image, fibs, &chunks, width)?,
        Width::Wide => fill::<A, u64>(&mut image, fibs, &chunks, width)?,
    }
    match leaf_width {
        1 => fill_leaves::<A, u8>(&mut image, fibs, &chunks)?,
        2 => fill_leaves::<A, u16>(&mut image, fibs, &chunks)?,
        _ => fill_leaves::<A, u32>(&mut image, fibs, &chunks)?,
    }
    image.set_counts(fibs.routes() as u64, results.into());
    Ok((chunks, ForestTable::of_shape(image)?))
}

/// The number of chunks to make room for where there are so many, with `more` beside the usual head room.
fn room(used: u64, stride: u8, more: u64, options: &BuildOptions) -> Result<u32, BuildError> {
    let most = MOST_CELLS >> stride;
    let room = (used + options.head_room_for(used, 8, 3) + more).min(most.max(used));
    let fits = u32::try_from(room).ok().filter(|_| room <= most);
    fits.ok_or(BuildError::Limit { engine: NAME, what: "chunks", limit: most, found: used })
}

fn fill<A: Address, C: Cell>(
    image: &mut Image,
    fibs: &Fibs<A>,
    chunks: &Chunks,
    width: Width,
) -> Result<(), BuildError> {
    let cell =
        |(route, node)| C::try_from(width.cell(route, chunks.of(node))).unwrap_or_else(|_| C::zeroed());
    let cells = image.section_mut::<C>(CELLS)?;
    each(fibs, chunks, false, |first, expanded| {
        cells[first..].iter_mut().zip(expanded).for_each(|(to, &parts)| *to = cell(parts));
    });
    let roots = image.section_mut::<C>(ROOTS)?;
    fibs.ids().for_each(|id| roots[id.index()] = cell(root(fibs, id)));
    Ok(())
}

fn fill_leaves<A: Address, W: Element>(
    image: &mut Image,
    fibs: &Fibs<A>,
    chunks: &Chunks,
) -> Result<(), BuildError> {
    let route = |route: u32| W::try_from(route.into()).unwrap_or_else(|_| W::zeroed());
    let leaves = image.section_mut::<W>(LEAVES)?;
    each(fibs, chunks, true, |first, expanded| {
        leaves[first..].iter_mut().zip(expanded).for_each(|(to, &(from, _))| *to = route(from));
    });
    Ok(())
}

/// Calls `fill` with the first element and the expanded content of each chunk, or of each leaf.
fn each<A: Address>(
    fibs: &Fibs<A>,
    chunks: &Chunks,
    leaves: bool,
    mut fill: impl FnMut(usize, &[(u32, u32)]),
) {
    let (nodes, mut expanded) = (&fibs.nodes, Vec::new());
    for node in 0..nodes.end() {
        let content = nodes.content(node).filter(|content| content.is_leaf() == leaves);
        let Some(content) = content else { continue };
        content.expand(nodes.stride(), &mut expanded);
        fill(((chunks.of(node) & !LEAF) as usize) << nodes.stride(), &expanded);
    }
}
