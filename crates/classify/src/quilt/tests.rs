//! What the suite can't see: cells against their rules.

use wirespeed_rng::Rng;

use super::cell::{Cell, Form};
use crate::conformance::{probes, sets};
use crate::{Ipv4Tuple, OpenFlowTuple, Tuple};

fn cells_are_their_rules<T: Tuple>() -> [usize; 2] {
    let mut rng = Rng::new(6);
    let mut forms = [0; 2];
    for _ in 0..40 {
        let world = sets::World::<T>::new(&mut rng);
        let rules = world.rules(&mut rng, 20);
        let tuples = probes::around(&rules, 40);
        for (_, rule) in rules.iter() {
            let cells = Cell::of(rule).map_or_else(|| Cell::several(rule), |cell| vec![cell]);
            cells.iter().for_each(|cell| forms[usize::from(cell.form == Form::MASKS)] += 1);
            for tuple in &tuples {
                let of = cells.iter().filter(|cell| cell.matches(tuple));
                assert_eq!(of.clone().count() > 0, rule.matches(tuple), "{tuple}");
                assert!(of.clone().all(|cell| {
                    let fixed = cell.fixed();
                    cell.a.and(&fixed) == tuple.and(&fixed)
                }));
            }
        }
    }
    forms
}

#[test]
fn cells_match_what_their_rules_do() {
    for forms in [cells_are_their_rules::<Ipv4Tuple>(), cells_are_their_rules::<OpenFlowTuple>()] {
        assert!(forms[0] > 0 && forms[1] > 0, "both forms: {forms:?}");
    }
}
