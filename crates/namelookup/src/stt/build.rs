//! [`Stt`]: the control plane of a state transition table, and the compilation of one.

use wirespeed_image::{Image, Patch, Pool, width_for};
use wirespeed_table::{BuildError, BuildOptions, Engine, Outgrown, Standing};

use super::layout::{ACCEPTING, CAP, HEAD, RESULTS, ROOT, ROOT_RESULT, ROW, SttTable, TABLE, allocate};
use crate::domain::NameDomain;
use crate::fsm::{Fsm, Stride};
use crate::table::{NameTable, NodeId};

/// Builds a state transition table and keeps it up to date.
///
/// A table over the cap, or over 1 GiB without a cap, is refused with the bytes that it would take.
#[derive(Clone, Debug)]
pub struct Stt {
    /// The links, as in the image.
    pub(super) table: Vec<u32>,
    /// Results by state, leaves included.
    pub(super) results: Vec<u32>,
    /// Transitions of each row.
    pub(super) counts: Vec<u16>,
    /// The link to each row; `None` for the root's row.
    pub(super) incoming: Vec<Option<usize>>,
    pub(super) rows: Pool,
    /// Leaves. Leaf 1 is the first state that has no row.
    pub(super) leaves: Pool,
    /// The root's row, 0 for none.
    pub(super) root: u32,
    pub(super) root_result: u32,
    pub(super) most: u32,
    /// Bytes of a result.
    pub(super) width: usize,
    /// Links and results that an update changed.
    pub(super) dirty: Vec<usize>,
    pub(super) dirty_results: Vec<u32>,
}

impl Engine<NameDomain> for Stt {
    const NAME: &'static str = "stt";
    const STANDING: Standing = Standing::Paper("MATA, NSDI 2013");
    type Table = SttTable;

    fn build(names: &NameTable, options: &BuildOptions) -> Result<(Self, SttTable), BuildError> {
        let fsm = Fsm::of(names, Stride::ONE)?;
        // Row 0 means none; an eighth is for updates.
        let room = |used: u64, part: u64| used + if options.tight { 0 } else { used / part } + 9;
        let (rows, leaves) = (room(fsm.state_count() as u64, 8), room(fsm.census().leaves, 2));
        let most = if names.is_empty() { 0 } else { names.results() };
        let width = width_for(u64::from(most.max(options.results)));
        let image = allocate(rows, rows + leaves, width, options.memory_cap.unwrap_or(CAP))?;
        let pool = |pieces: u64| Pool::new(u32::try_from(pieces).expect("fewer than there are links"));
        let in_memory = |len: u64| usize::try_from(len).expect("the image has as many");
        let mut engine = Self {
            table: vec![0; in_memory(rows) * ROW],
            results: vec![0; in_memory(rows + leaves)],
            counts: vec![0; in_memory(rows)],
            incoming: vec![None; in_memory(rows)],
            rows: pool(rows),
            leaves: pool(leaves + 1),
            root: 0,
            root_result: fsm.root_result(),
            most,
            width,
            dirty: Vec::new(),
            dirty_results: Vec::new(),
        };
        engine.fill(&fsm);
        debug_assert!(engine.leads_as(&fsm), "each transition leads where the machine says");
        let image = engine.compile(image, names)?;
        Ok((engine, SttTable::new(image)))
    }

    fn patch(&mut self, _: &Self::Table, names: &NameTable, changed: &[NodeId]) -> Result<Patch, Outgrown> {
        self.patch_of(names, changed)
    }

    fn memory_usage(&self) -> u64 {
        let links = size_of_val(&self.table[..]) + size_of_val(&self.results[..]);
        let rows = size_of_val(&self.counts[..]) + size_of_val(&self.incoming[..]);
        (links + rows) as u64 + self.rows.memory_usage() + self.leaves.memory_usage()
    }
}

impl Stt {
    /// The machine's states in rows, in its order.
    fn fill(&mut self, fsm: &Fsm) {
        for _ in 0..fsm.state_count() {
            self.rows.take().expect("there is room for all");
        }
        self.root = fsm.root().map_or(0, |root| root + 1);
        for (row, state) in (1..).zip(0..fsm.state_count()) {
            let all = fsm.range(u32::try_from(state).expect("a state"));
            self.counts[row] = u16::try_from(all.len()).expect("at most 256 bytes");
            for at in all {
                let transition = fsm.transition(at);
                let index = row * ROW + transition.input as usize;
                let state = match transition.state {
                    Some(next) => {
                        self.incoming[next as usize + 1] = Some(index);
                        next + 1
                    }
                    None => self.leaf().expect("there is room for all"),
                };
                self.results[state as usize] = transition.result;
                self.table[index] = if transition.result == 0 { state } else { ACCEPTING | state };
            }
        }
    }

    /// A state without transitions.
    pub(super) fn leaf(&mut self) -> Option<u32> {
        Some(self.leaves.take()? - 1 + self.first_leaf())
    }

    /// The first state that has no row.
    pub(super) fn first_leaf(&self) -> u32 {
        u32::try_from(self.counts.len()).expect("rows are fewer than links")
    }

    /// Whether all transitions lead where the machine's do, and there are no others.
    fn leads_as(&self, fsm: &Fsm) -> bool {
        let links = self.table.iter().filter(|&&link| link != 0).count();
        let leads = |row: usize, at: usize| {
            let transition = fsm.transition(at);
            let link = self.table[row * ROW + transition.input as usize];
            let state = link & !ACCEPTING;
            let is_state = transition.state.map_or(state >= self.first_leaf(), |next| state == next + 1);
            is_state && (link & ACCEPTING != 0) == (transition.result != 0)
        };
        let mut states = (1..).zip(0..fsm.state_count());
        links == fsm.transition_count()
            && states.all(|(row, state)| {
                fsm.range(u32::try_from(state).expect("a state")).all(|at| leads(row, at))
            })
    }

    fn compile(&self, mut image: Image, names: &NameTable) -> Result<Image, BuildError> {
        let head = image.section_mut::<u64>(HEAD)?;
        head[ROOT] = self.root.into();
        head[ROOT_RESULT] = self.root_result.into();
        image.section_mut::<u32>(TABLE)?.copy_from_slice(&self.table);
        let bytes = self.results.iter().map(|result| result.to_le_bytes());
        match self.width {
            1 => image.section_mut::<u8>(RESULTS)?.iter_mut().zip(bytes).for_each(|(to, b)| *to = b[0]),
            2 => {
                let to = image.section_mut::<u16>(RESULTS)?.iter_mut();
                to.zip(bytes).for_each(|(to, b)| *to = u16::from_le_bytes([b[0], b[1]]));
            }
            _ => image.section_mut::<u32>(RESULTS)?.copy_from_slice(&self.results),
        }
        image.set_counts(names.len() as u64, u64::from(self.most));
        Ok(image)
    }
}
