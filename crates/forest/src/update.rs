//! Updates as patches: the chunks of nodes that changed, and the roots of tables that changed.

use wirespeed_fib::{Address, Outgrown};
use wirespeed_image::{Element, Patch, PatchBuilder, SectionId, Table};

use crate::chunks::Chunks;
use crate::content::NONE;
use crate::fibs::{Change, FibId, Fibs};
use crate::layout::{CELLS, Cell, ForestTable, LEAF, LEAVES, ROOTS, Width};

/// The patch that brings a compiled table to the state of `fibs`.
pub(crate) fn patch<A: Address>(
    chunks: &mut Chunks,
    table: &ForestTable<A>,
    fibs: &Fibs<A>,
    changed: &[Change],
) -> Result<Patch, Outgrown> {
    // A leaf is as wide as all routes need, or wider.
    let widest = u64::from(fibs.results()) + 1;
    if fibs.results() > table.width.most() || widest >> (8 * table.leaf_width) != 0 {
        return Err(Outgrown("room for next hops"));
    }
    chunks.assign(fibs, changed)?;
    let mut patch = PatchBuilder::new();
    match table.width {
        Width::Narrow(_) => patch_cells::<A, u32>(&mut patch, chunks, table, fibs, changed)?,
        Width::Wide => patch_cells::<A, u64>(&mut patch, chunks, table, fibs, changed)?,
    }
    match table.leaf_width {
        1 => patch_leaves::<A, u8>(&mut patch, chunks, table, fibs, changed),
        2 => patch_leaves::<A, u16>(&mut patch, chunks, table, fibs, changed),
        _ => patch_leaves::<A, u32>(&mut patch, chunks, table, fibs, changed),
    }
    Ok(patch.finish(Some((fibs.routes() as u64, fibs.results().into()))))
}

/// Route and node of the root of a table.
pub(crate) fn root<A: Address>(fibs: &Fibs<A>, id: FibId) -> (u32, u32) {
    fibs.fib(id).map_or((0, NONE), |fib| (fib.default, fib.root))
}

fn patch_cells<A: Address, C: Cell>(
    patch: &mut PatchBuilder,
    chunks: &Chunks,
    table: &ForestTable<A>,
    fibs: &Fibs<A>,
    changed: &[Change],
) -> Result<(), Outgrown> {
    let cell = |(route, node)| table.width.cell(route, chunks.of(node));
    let (cells, roots) = (table.cells::<C>(), table.image().section::<C>(ROOTS));
    each(chunks, fibs, changed, false, |first, expanded| {
        let new = expanded.iter().map(|&parts| cell(parts));
        write(patch, CELLS, first, |at| cells.at(at), new);
    });
    for id in changed.iter().filter_map(Change::root) {
        match roots.get(id.index()) {
            Some(_) => {
                write(patch, ROOTS, id.index(), |at| roots[at], std::iter::once(cell(root(fibs, id))));
            }
            _ if fibs.fib(id).is_some() => return Err(Outgrown("room for tables")),
            _ => {}
        }
    }
    Ok(())
}

fn patch_leaves<A: Address, W: Element>(
    patch: &mut PatchBuilder,
    chunks: &Chunks,
    table: &ForestTable<A>,
    fibs: &Fibs<A>,
    changed: &[Change],
) {
    let leaves = table.leaves::<W>();
    each(chunks, fibs, changed, true, |first, expanded| {
        let new = expanded.iter().map(|&(route, _)| route.into());
        write(patch, LEAVES, first, |at| leaves.at(at), new);
    });
}

/// Calls `write` with the first element and the expanded content of each chunk that changed, or of each leaf.
fn each<A: Address>(
    chunks: &Chunks,
    fibs: &Fibs<A>,
    changed: &[Change],
    leaves: bool,
    mut write: impl FnMut(usize, &[(u32, u32)]),
) {
    let (stride, mut expanded) = (fibs.nodes.stride(), Vec::new());
    let is_one = |&node: &u32| {
        // A node may be free again.
        fibs.nodes.content(node).is_some_and(|content| content.is_leaf() == leaves)
    };
    let nodes = changed.iter().filter_map(Change::node).filter(is_one);
    // In order, so that the patch need not be sorted.
    let mut nodes: Vec<_> = nodes.map(|node| (chunks.of(node) & !LEAF, node)).collect();
    nodes.sort_unstable();
    for (number, node) in nodes {
        let Some(content) = fibs.nodes.content(node) else { continue };
        content.expand(stride, &mut expanded);
        write((number as usize) << stride, &expanded);
    }
}

/// Writes the elements from `first` on that differ from the old ones.
fn write<T: Element>(
    patch: &mut PatchBuilder,
    section: SectionId,
    first: usize,
    old: impl Fn(usize) -> T,
    new: impl Iterator<Item = u64>,
) {
    for (at, new) in (first..).zip(new) {
        if old(at).into() != new {
            patch.set(section, at as u64, new);
        }
    }
}
