//! Updates of a state transition table (section 2.5) as patches: links come and go one by one, rows and
//! leaves are taken and given back.

use wirespeed_image::{Patch, PatchBuilder};
use wirespeed_table::Outgrown;

use super::build::Stt;
use super::layout::{ACCEPTING, HEAD, RESULTS, ROOT, ROOT_RESULT, ROW, TABLE};
use crate::fsm::write_text;
use crate::table::{NameTable, Node, NodeId};

impl Stt {
    pub(super) fn patch_of(&mut self, names: &NameTable, changed: &[NodeId]) -> Result<Patch, Outgrown> {
        if names.results() > u32::MAX >> (32 - 8 * self.width) {
            return Err(Outgrown("results' width"));
        }
        self.most = self.most.max(names.results());
        self.root_result = names.root().result();
        let mut text = Vec::new();
        let nodes = || changed.iter().filter(|&&id| id != NodeId::ROOT).map(|&id| names.node(id));
        // A name may have gone and come again as another node.
        for node in nodes().filter(Node::is_gone) {
            text.clear();
            write_text(node, &mut text);
            self.remove(&text);
        }
        for node in nodes().filter(|node| !node.is_gone() && node.result() != 0) {
            text.clear();
            write_text(node, &mut text);
            self.insert(&text, node.result())?;
        }
        for node in nodes().filter(|node| !node.is_gone() && node.result() == 0) {
            text.clear();
            write_text(node, &mut text);
            self.remove(&text);
        }
        Ok(self.written((names.len() as u64, u64::from(self.most))))
    }

    /// The patch of all that changed.
    fn written(&mut self, counts: (u64, u64)) -> Patch {
        let mut patch = PatchBuilder::new();
        patch.set(HEAD, ROOT as u64, self.root.into());
        patch.set(HEAD, ROOT_RESULT as u64, self.root_result.into());
        for index in self.dirty.drain(..) {
            patch.set(TABLE, index as u64, self.table[index].into());
        }
        for state in self.dirty_results.drain(..) {
            patch.set(RESULTS, state.into(), self.results[state as usize].into());
        }
        patch.finish(Some(counts))
    }

    fn insert(&mut self, text: &[u8], result: u32) -> Result<(), Outgrown> {
        if self.root == 0 {
            self.root = self.row(None)?;
        }
        let mut row = self.root;
        for (at, &byte) in text.iter().enumerate() {
            let index = row as usize * ROW + usize::from(byte);
            let is_last = at + 1 == text.len();
            let link = self.table[index];
            let state = link & !ACCEPTING;
            if link == 0 {
                self.counts[row as usize] += 1;
            }
            // A leaf has to be a row where something follows.
            let state = match (link, is_last) {
                (0, true) => self.leaf().ok_or(Outgrown("room for leaves"))?,
                (0, false) => self.row(Some(index))?,
                (_, false) if state >= self.first_leaf() => {
                    let row = self.row(Some(index))?;
                    self.carry(state, row);
                    self.leaves.give_back(state - self.first_leaf() + 1);
                    row
                }
                _ => state,
            };
            self.lead(index, link & ACCEPTING | state);
            if is_last {
                self.lead(index, ACCEPTING | state);
                self.set_result(state, result);
            }
            row = state;
        }
        Ok(())
    }

    fn remove(&mut self, text: &[u8]) {
        let (mut row, mut last) = (self.root, None);
        for &byte in text {
            if row == 0 || row >= self.first_leaf() {
                return;
            }
            let index = row as usize * ROW + usize::from(byte);
            row = self.table[index] & !ACCEPTING;
            last = Some(index);
        }
        let Some(index) = last.filter(|_| row != 0) else { return };
        self.lead(index, row);
        self.prune(index);
    }

    /// Takes a link out that leads to a state without transitions where no entry ends, and those above that
    /// then do. Where an entry ends in a row that is empty, a leaf takes its place.
    fn prune(&mut self, mut index: usize) {
        loop {
            let (ends, state) = (self.table[index] & ACCEPTING != 0, self.table[index] & !ACCEPTING);
            let is_leaf = state >= self.first_leaf();
            if is_leaf && ends || !is_leaf && self.counts[state as usize] > 0 {
                return;
            }
            if ends {
                // Without a leaf the empty row stays, and does as one.
                if let Some(leaf) = self.leaf() {
                    self.carry(state, leaf);
                    self.rows.give_back(state);
                    self.lead(index, ACCEPTING | leaf);
                }
                return;
            }
            if is_leaf {
                self.leaves.give_back(state - self.first_leaf() + 1);
            } else {
                self.rows.give_back(state);
            }
            self.lead(index, 0);
            let row = index / ROW;
            self.counts[row] -= 1;
            match self.incoming[row] {
                _ if self.counts[row] > 0 => return,
                Some(incoming) => index = incoming,
                None => {
                    self.rows.give_back(std::mem::take(&mut self.root));
                    return;
                }
            }
        }
    }

    /// An empty row for a link, or the root's.
    fn row(&mut self, incoming: Option<usize>) -> Result<u32, Outgrown> {
        let row = self.rows.take().ok_or(Outgrown("room for rows"))?;
        self.incoming[row as usize] = incoming;
        Ok(row)
    }

    /// The link's value from now on.
    fn lead(&mut self, index: usize, link: u32) {
        if self.table[index] != link {
            self.table[index] = link;
            self.dirty.push(index);
        }
    }

    /// One state takes another's place.
    fn carry(&mut self, from: u32, to: u32) {
        self.set_result(to, self.results[from as usize]);
    }

    fn set_result(&mut self, state: u32, result: u32) {
        self.results[state as usize] = result;
        self.dirty_results.push(state);
    }
}
