use wirespeed_table::{BuildOptions, Engine};

use super::interleave::interleave;
use super::*;
use crate::fsm::Fsm;
use crate::mata::{Mata, MataForm};
use crate::name::{Name, NameBuf};
use crate::names::NameBatch;
use crate::table::NameTable;

#[test]
fn a_machine_that_isnt_as_placed_is_told() {
    let entries: Vec<_> =
        ["/com/a", "/com/b", "/org"].into_iter().map(|text| NameBuf::new(text).unwrap()).zip(1..).collect();
    let table: NameTable = entries.iter().cloned().collect();
    let mut fsm = Fsm::of(&table, MataForm::STRIDE).unwrap();
    let mut engine = Mata::build(&table, &BuildOptions::default()).unwrap().0;
    let mut states = vec![0; fsm.state_count()];
    states[fsm.root().unwrap() as usize] = engine.root;
    for at in 0..states.len() {
        for transition in fsm.transitions(u32::try_from(at).unwrap()) {
            let slot = engine.space.slot(states[at], transition.input);
            if let Some(next) = transition.state {
                states[next as usize] = engine.arrays.cell(slot).link & !layout::ACCEPTING;
            }
        }
    }
    assert!(engine.leads_as(&fsm, &states));
    let slot = engine.space.slot(engine.root, u32::from_le_bytes(*b"com/"));
    engine.arrays.cells[slot as usize].link ^= layout::ACCEPTING;
    assert!(!engine.leads_as(&fsm, &states));
    engine.arrays.cells[slot as usize].link ^= layout::ACCEPTING;
    fsm.halve(fsm.root().unwrap());
    states.resize(fsm.state_count(), 0);
    assert!(!engine.leads_as(&fsm, &states));
}

#[test]
fn names_that_are_interleaved() {
    let texts = ["/com/parc/www", "/", "/org", "/com/a\0\0\0\0"];
    let batch: NameBatch = texts.iter().map(|text| Name::new(text).unwrap()).collect();
    let names = interleave(batch.names());
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0u32, |word, &b| word << 8 | u32::from(b));
    let column = |lane: usize| names.rows().iter().skip(lane).step_by(32).copied().collect::<Vec<_>>();
    assert_eq!(names.groups(), [0, 4]);
    assert_eq!(column(0), [word(b"com/"), word(b"parc"), word(b"/"), word(b"www/")]);
    assert_eq!(column(1), [0; 4]);
    assert_eq!(column(2), [word(b"org/"), 0, 0, 0]);
    assert_eq!(column(3), [word(b"com/"), word(b"a\0\0\0"), word(b"\0/"), 0]);
    assert_eq!(interleave(batch.names().part(0..0)).groups(), [0]);
}
