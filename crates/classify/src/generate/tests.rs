use super::*;
use crate::oracle::{Expected, Right};
use crate::{Ipv4Tuple, Ipv6Tuple, OpenFlowTuple, RuleSet, RuleUpdate, Tuple};

fn has_its_shape<T: Tuple>(shape: Shape) {
    let made = Synthetic::<T>::new(shape, 1).expect("a shape that there is");
    let classes = made.rules.classes();
    assert_eq!((made.rules.len(), classes.len()), (shape.rules, shape.classes));
    let mut sizes: Vec<_> = classes.0.iter().map(|class| class.entries.len()).collect();
    sizes.sort_unstable_by_key(|&size| std::cmp::Reverse(size));
    let shared = shape.rules - (shape.classes - shape.full);
    assert!(sizes[..shape.full].iter().all(|&size| size.abs_diff(shared / shape.full) <= 1), "{sizes:?}");
    assert!(sizes[shape.full..].iter().all(|&size| size == 1));
    let trace = made.trace(200, 2);
    let right = trace.iter().filter(|tuple| classes.matching(tuple) == shape.matching).count();
    assert!(right >= 198, "{right} of 200 tuples match {} classes", shape.matching);
    assert_eq!(trace, Synthetic::<T>::new(shape, 1).expect("the same").trace(200, 2));
}

#[test]
fn synthetic_sets_have_the_papers_shape() {
    has_its_shape::<OpenFlowTuple>(Shape::even(1_024, 128));
    has_its_shape::<OpenFlowTuple>(Shape { full: 4, ..Shape::even(1_024, 128) });
    has_its_shape::<OpenFlowTuple>(Shape { matching: 128, ..Shape::even(1_024, 128) });
    has_its_shape::<OpenFlowTuple>(Shape::even(4_096, 1_024));
    has_its_shape::<Ipv4Tuple>(Shape { matching: 8, ..Shape::even(1_024, 128) });
    has_its_shape::<Ipv6Tuple>(Shape::even(1_000, 64));
    let refused = |shape| Synthetic::<Ipv4Tuple>::new(shape, 1).is_err();
    assert!(refused(Shape::even(10, 20)) && refused(Shape::even(0, 0)));
    assert!(
        refused(Shape { matching: 9, ..Shape::even(80, 8) })
            && refused(Shape { full: 0, ..Shape::even(80, 8) })
    );
}

#[test]
fn classbench_like_sets() {
    for kind in Kind::ALL {
        let rules = classbench::<Ipv4Tuple>(kind, 1_000, 3);
        assert_eq!(rules.len(), 1_000);
        let classes = rules.classes().len();
        assert!((50..4_000).contains(&classes), "{kind:?}: {classes} classes");
        let tuples = tuples(&rules, 1_000, 1.0, 4);
        let expected = Expected::of(&rules);
        assert!(tuples.iter().all(|tuple| expected.right(tuple) != 0));
        let distinct: std::collections::BTreeSet<_> =
            tuples.iter().map(|tuple| expected.right(tuple)).collect();
        assert!(distinct.len() > 200, "{kind:?}: {} rules are found", distinct.len());
        assert_eq!(kind.name().parse(), Ok(kind));
    }
    assert_eq!(classbench::<OpenFlowTuple>(Kind::Acl, 50, 3).len(), 50);
    let bursts = tuples(&classbench::<Ipv6Tuple>(Kind::Chain, 50, 3), 1_000, 5.0, 4);
    let repeated = bursts.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert!((700..900).contains(&repeated), "{repeated}");
}

#[test]
fn churn_leads_to_the_same_set_when_applied_twice() {
    let rules = classbench::<Ipv4Tuple>(Kind::Firewall, 200, 3);
    let updates = churn(&rules, 1_000, 4);
    assert_eq!(updates, churn(&rules, 1_000, 4));
    let applied = |times: usize| {
        let mut rules = rules.clone();
        let changed = |rules: &mut RuleSet<_>| updates.iter().filter(|u| rules.apply(u) == Ok(true)).count();
        let changed: usize = (0..times).map(|_| changed(&mut rules)).sum();
        (rules, changed)
    };
    let ((once, changed), (twice, _)) = (applied(1), applied(2));
    assert!(changed > 800, "{changed} of 1,000 change something");
    assert_eq!(once.sorted(), twice.sorted());
    let removed = updates.iter().filter(|update| matches!(update, RuleUpdate::Remove(_))).count();
    assert!((150..350).contains(&removed) && once.last_number() > 350, "{removed}");
    assert!(churn(&RuleSet::<Ipv4Tuple>::new(), 5, 1).is_empty());
}
