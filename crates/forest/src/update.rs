//! Updates as patches: the chunks of nodes that changed, and the roots of tables that changed.

use wirespeed_fib::{Address, Outgrown};
use wirespeed_image::{Patch, PatchBuilder, SectionId, Table};

use crate::chunks::Chunks;
use crate::fibs::{Change, FibId, Fibs};
use crate::layout::{CELLS, Cell, ForestTable, ROOTS, Width};
use crate::nodes::NONE;

/// The patch that brings a compiled table to the state of `fibs`.
pub(crate) fn patch<A: Address>(
    chunks: &mut Chunks,
    table: &ForestTable<A>,
    fibs: &Fibs<A>,
    changed: &[Change],
) -> Result<Patch, Outgrown> {
    if fibs.results() > table.width.most() {
        return Err(Outgrown("room for next hops"));
    }
    chunks.assign(fibs, changed)?;
    match table.width {
        Width::Narrow => patch_of::<A, u32>(chunks, table, fibs, changed),
        Width::Wide => patch_of::<A, u64>(chunks, table, fibs, changed),
    }
}

/// Route and node of the root of a table.
pub(crate) fn root<A: Address>(fibs: &Fibs<A>, id: FibId) -> (u32, u32) {
    fibs.fib(id).map_or((0, NONE), |fib| (fib.default, fib.root))
}

fn patch_of<A: Address, C: Cell>(
    chunks: &Chunks,
    table: &ForestTable<A>,
    fibs: &Fibs<A>,
    changed: &[Change],
) -> Result<Patch, Outgrown> {
    let (cells, roots) = (table.image().section::<C>(CELLS), table.image().section::<C>(ROOTS));
    let (mut patch, mut expanded) = (PatchBuilder::new(), Vec::new());
    let mut set = |section: SectionId, index: usize, old: C, (route, node): (u32, u32)| {
        let new = C::of(route, chunks.of(node));
        if old.into() != new {
            patch.set(section, index as u64, new);
        }
    };
    for &change in changed {
        match change {
            Change::Root(id) => match roots.get(id.index()) {
                Some(&old) => set(ROOTS, id.index(), old, root(fibs, id)),
                None if fibs.fib(id).is_some() => return Err(Outgrown("room for tables")),
                None => {}
            },
            Change::Node(node) => {
                let Some(content) = fibs.nodes.content(node) else { continue };
                let first = (chunks.of(node) as usize) << table.stride;
                content.expand(table.stride, &mut expanded);
                for (at, (&old, &new)) in (first..).zip(cells[first..].iter().zip(&expanded)) {
                    set(CELLS, at, old, new);
                }
            }
        }
    }
    Ok(patch.finish(Some((fibs.routes() as u64, fibs.results().into()))))
}
