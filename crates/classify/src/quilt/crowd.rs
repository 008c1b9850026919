//! The cells that are scanned under every plan: mixed cells, which no bucket holds, and cells that fix the
//! same bits to the same value as many others do, so that no hash tells them apart.

use super::buckets::MOST_CELLS;
use super::cell::{Cell, Form};
use super::layout::{blocks, words};
use crate::rank::Rank;
use crate::seeded::{Pairs, Seeded};
use crate::tuple::Tuple;

/// Cells with their ranks.
type Cells<T> = Vec<(Cell<T>, Rank)>;

/// Cells for layers, and those that are scanned. O(n log n).
pub(super) fn split<T: Tuple>(cells: &[(Cell<T>, Rank)], seed: u64) -> (Cells<T>, Cells<T>) {
    let pairs = Pairs::new(Seeded(seed));
    let mut keys: Vec<(u64, usize)> =
        cells.iter().enumerate().map(|(at, (cell, _))| (key(cell, &pairs), at)).collect();
    keys.sort_unstable();
    let mut is_scanned: Vec<bool> = cells.iter().map(|(cell, _)| cell.form.is_mixed()).collect();
    for of_key in keys.chunk_by(|a, b| a.0 == b.0).filter(|of_key| of_key.len() > MOST_CELLS) {
        // Several rules may be one cell.
        let mut distinct: Vec<&Cell<T>> = of_key.iter().map(|&(_, at)| &cells[at].0).collect();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() > MOST_CELLS {
            of_key.iter().for_each(|&(_, at)| is_scanned[at] = true);
        }
    }
    let of = |scanned: bool| {
        let those = cells.iter().zip(&is_scanned).filter(move |(_, is)| **is == scanned);
        those.map(|(cell, _)| *cell).collect()
    };
    (of(false), of(true))
}

/// What stands for the bits that a cell fixes, and their value.
fn key<T: Tuple>(cell: &Cell<T>, pairs: &Pairs) -> u64 {
    let fixed = cell.fixed();
    let value = cell.a.and(&fixed);
    let of = (0..blocks::<T>()).flat_map(|block| [words(&fixed, block), words(&value, block)]);
    pairs.hash(of).wrapping_add(u64::from(cell.form == Form::MASKS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ipv4Tuple, Rule, RuleNumber};

    #[test]
    fn only_crowds_are_scanned() {
        let cell =
            |text: String| Cell::of(&text.parse::<Rule<Ipv4Tuple>>().expect("a rule")).expect("ranges");
        let crowd = |src: u32, count: u32| {
            (0..count).map(move |n| cell(format!("src={src}.0.0.0/8 sport=1-{} dport=1-65534", 60_000 + n)))
        };
        let again = std::iter::repeat_n(cell("src=9.0.0.0/8 dport=1-9".to_owned()), 99);
        let rank = |number| Rank::new(1, RuleNumber::new(number).expect("a number"));
        let cells: Vec<_> = crowd(1, 17).chain(again).chain(crowd(2, 16)).zip((1..).map(rank)).collect();
        let (layered, scanned) = split(&cells, 5);
        assert_eq!((layered.len(), scanned.len()), (115, 17));
        assert!(scanned == cells[..17] && layered == cells[17..]);
    }
}
