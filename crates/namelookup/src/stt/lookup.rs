//! Lookups in a state transition table. A batch takes names in groups of 32, a byte of each in turn.

use wirespeed_image::{Image, Table, number};
use wirespeed_table::{Lookup, Step};

use super::layout::{ACCEPTING, HEAD, RESULTS, ROOT, ROOT_RESULT, ROW, SttTable, TABLE};
use crate::domain::NameDomain;
use crate::found::Match;
use crate::fsm::{Stride, chunks};
use crate::name::{Name, SLASH};
use crate::names::Names;

/// Names in flight.
const LANES: usize = 32;

impl Lookup<NameDomain> for SttTable {
    fn lookup(&self, name: &Name) -> Match {
        let view = View::of(self.image());
        let (mut row, mut found) = (view.root, (0, 0));
        for step in chunks(name, Stride::ONE) {
            if row == 0 {
                break;
            }
            let link = view.table[row * ROW + step.input as usize];
            if link & ACCEPTING != 0 {
                found = (link & !ACCEPTING, step.end);
            }
            row = view.row(link);
        }
        view.result(found.0, found.1)
    }

    fn lookup_batch(&self, names: Names<'_>, results: &mut [u32]) {
        assert_eq!(names.len(), results.len(), "a result for each name");
        let mut matches = [Match::NONE; LANES];
        for (group, results) in results.chunks_mut(LANES).enumerate() {
            let (from, matches) = (group * LANES, &mut matches[..results.len()]);
            View::of(self.image()).group(names.part(from..from + results.len()), matches);
            results.iter_mut().zip(matches).for_each(|(result, found)| *result = found.result);
        }
    }

    fn match_batch(&self, names: Names<'_>, matches: &mut [Match]) {
        assert_eq!(names.len(), matches.len(), "a match for each name");
        for (group, matches) in matches.chunks_mut(LANES).enumerate() {
            let from = group * LANES;
            View::of(self.image()).group(names.part(from..from + matches.len()), matches);
        }
    }

    fn shape(&self) -> Option<String> {
        Some(format!("{} rows of 256 links", self.rows()))
    }

    fn explain(&self, name: &Name) -> Vec<Step> {
        let view = View::of(self.image());
        let (mut row, mut found) = (view.root, (0, 0));
        let meaning = format!("names start in row {row}");
        let mut steps = vec![Step { section: "head", index: ROOT as u64, value: row as u64, meaning }];
        for step in chunks(name, Stride::ONE) {
            if row == 0 {
                break;
            }
            let index = row * ROW + step.input as usize;
            let link = view.table[index];
            if link & ACCEPTING != 0 {
                found = (link & !ACCEPTING, step.end);
            }
            row = view.row(link);
            let meaning = match (link, row) {
                (0, _) => format!("no transition by {:#x}", step.input),
                (_, 0) => format!("by {:#x} to a leaf", step.input),
                (_, row) => format!("by {:#x} to row {row}", step.input),
            };
            steps.push(Step { section: "table", index: index as u64, value: link.into(), meaning });
        }
        let (section, index) =
            if found.0 == 0 { ("head", ROOT_RESULT as u64) } else { ("results", found.0.into()) };
        let result = view.result(found.0, found.1).result;
        let meaning = if result == 0 { "no match".to_owned() } else { format!("result {result}") };
        steps.push(Step { section, index, value: result.into(), meaning });
        steps
    }
}

/// The sections, found once a batch.
struct View<'t> {
    image: &'t Image,
    table: &'t [u32],
    rows: usize,
    root: usize,
    root_result: u32,
}

impl<'t> View<'t> {
    #[allow(clippy::cast_possible_truncation)] // checked: a row that is there, and a result
    fn of(image: &'t Image) -> Self {
        let (head, table) = (image.section::<u64>(HEAD), image.section::<u32>(TABLE));
        let (root, root_result) = (head[ROOT] as usize, head[ROOT_RESULT] as u32);
        Self { image, table, rows: table.len() / ROW, root, root_result }
    }

    /// The row that a link leads to, 0 for none.
    #[inline]
    fn row(&self, link: u32) -> usize {
        let state = (link & !ACCEPTING) as usize;
        if state < self.rows { state } else { 0 }
    }

    fn result(&self, state: u32, length: usize) -> Match {
        let at = state as usize;
        let result = match (at, self.image.width(RESULTS)) {
            (0, _) => self.root_result,
            (_, Some(1)) => number(self.image.section::<u8>(RESULTS)[at]),
            (_, Some(2)) => number(self.image.section::<u16>(RESULTS)[at]),
            _ => self.image.section::<u32>(RESULTS)[at],
        };
        if result == 0 { Match::NONE } else { Match::new(result, length) }
    }

    /// Looks up a group of names.
    fn group(&self, names: Names<'_>, matches: &mut [Match]) {
        let mut lanes = [(0, 0); LANES];
        let mut found = [(0, 0); LANES];
        let mut live = 0;
        for at in 0..names.len() {
            if self.root != 0 && !names.name(at).is_empty() {
                lanes[live] = (at, self.root);
                live += 1;
            }
        }
        // The byte under way is that after the slash of as many bytes before.
        let mut byte = 1;
        while live > 0 {
            let mut still = 0;
            for at in 0..live {
                let (lane, row) = lanes[at];
                let name = names.name(lane).as_bytes();
                let link = self.table[row * ROW + usize::from(name.get(byte).copied().unwrap_or(SLASH))];
                if link & ACCEPTING != 0 {
                    found[lane] = (link & !ACCEPTING, byte);
                }
                let row = self.row(link);
                lanes[still] = (lane, row);
                still += usize::from(row != 0 && byte < name.len());
            }
            live = still;
            byte += 1;
        }
        for (to, &(state, length)) in matches.iter_mut().zip(&found) {
            *to = self.result(state, length);
        }
    }
}
