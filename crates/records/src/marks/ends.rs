//! [`Ends`]: the places of the ends of cells, record by record.

use super::{Marks, WINDOW};

/// The ends of cells of records that were not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    /// The place of each end, and room for more.
    pub(super) at: Vec<u32>,
    pub(super) len: usize,
    /// The number of ends up to each end of a line.
    lines: Vec<usize>,
}

impl Ends {
    /// Adds the ends of windows, the first of which starts at a place.
    pub(crate) fn push(&mut self, at: u32, windows: &[Marks]) {
        let wanted = self.len + windows.len() * WINDOW;
        if self.at.len() < wanted {
            self.at.resize(wanted + self.len, 0);
        }
        #[cfg(target_arch = "x86_64")]
        if super::avx512::push(self, at, windows) || super::avx2::push(self, at, windows) {
            return;
        }
        self.push_each(at, windows);
    }

    /// Adds the ends of windows. There is room for them.
    #[inline(always)] // compiled for other instructions, too
    pub(super) fn push_each(&mut self, mut at: u32, windows: &[Marks]) {
        for marks in windows {
            self.push_lines(marks);
            let mut ends = marks.ends;
            // Eight at a time without a branch. What comes next overwrites those that are too many.
            for eight in self.at[self.len..].as_chunks_mut::<8>().0 {
                for into in eight {
                    *into = at.wrapping_add(ends.trailing_zeros());
                    ends &= ends.wrapping_sub(1);
                }
                if ends == 0 {
                    break;
                }
            }
            self.len += marks.ends.count_ones() as usize;
            at = at.wrapping_add(u64::BITS);
        }
    }

    /// Adds the ends of lines of a window.
    #[inline(always)] // compiled for other instructions, too
    pub(super) fn push_lines(&mut self, marks: &Marks) {
        let mut lines = marks.lines;
        while lines != 0 {
            let up_to = lines ^ (lines - 1);
            self.lines.push(self.len + (marks.ends & up_to).count_ones() as usize);
            lines &= lines - 1;
        }
    }

    /// The ends of each whole record, of which the last is that of the record.
    pub(crate) fn records(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        let mut first = 0;
        self.lines.iter().map(move |&line| &self.at[std::mem::replace(&mut first, line)..line])
    }

    /// Forgets the whole records.
    pub(crate) fn forget(&mut self) {
        if let Some(&count) = self.lines.last() {
            self.at.copy_within(count..self.len, 0);
            self.len -= count;
            self.lines.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::marks::TOGETHER;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// However windows are pushed, the ends are the same, record by record.
        #[test]
        fn ends_of_windows(
            windows in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 1..2 * TOGETHER),
            dense: bool,
        ) {
            let windows: Vec<Marks> = windows
                .iter()
                .map(|&(a, b, c)| if dense { (a | b, a & b) } else { (a & b & c, a & b & c & (a >> 7)) })
                .map(|(ends, lines)| Marks { ends, lines, ..Marks::default() })
                .collect();
            let (mut right, mut record) = (Vec::new(), Vec::new());
            for (marks, at) in windows.iter().zip((100..).step_by(WINDOW)) {
                for bit in (0..64).filter(|bit| marks.ends >> bit & 1 == 1) {
                    record.push(at + bit);
                    if marks.lines >> bit & 1 == 1 {
                        right.push(std::mem::take(&mut record));
                    }
                }
            }
            let (mut ends, mut each, mut at) = (Ends::default(), Ends::default(), 100);
            let (mut found, mut found_each) = (Vec::new(), Vec::new());
            for windows in windows.chunks(TOGETHER) {
                ends.push(at, windows);
                each.at.resize(each.len + windows.len() * WINDOW, 0);
                each.push_each(at, windows);
                at += windows.iter().map(|_| u64::BITS).sum::<u32>();
                for (ends, found) in [(&mut ends, &mut found), (&mut each, &mut found_each)] {
                    found.extend(ends.records().map(<[u32]>::to_vec));
                    ends.forget();
                }
            }
            prop_assert_eq!(&ends.at[..ends.len], &record[..]);
            prop_assert!(found == right && found_each == right);
        }
    }
}
