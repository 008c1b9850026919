//! Results of batches that mean something else by the time they are read: numbers of rules, and labels.

use wirespeed::Answers;
use wirespeed::classify::RuleVerdict;
use wirespeed::engine::Served;
use wirespeed::prelude::*;

use crate::batches::check_answers;
use crate::common::on_host;

/// A number is another rule's by the time its answers are read. Actions are those of the packets all the
/// same.
#[test]
fn numbers_that_change_hands_have_the_actions_of_their_packets() {
    let in_place = |mut classifier: Classifier<Ipv4Tuple>, is_on_gpu: bool| {
        classifier.apply(&crate::classify::places(0)).unwrap();
        let batches = classifier.reader().batches();
        let tuples: [Ipv4Tuple; 3] = ["dport=1", "dport=2", "dport=3"].map(|tuple| tuple.parse().unwrap());
        let fill = || {
            let mut batch = batches.batch(3).unwrap();
            assert_eq!(batch.extend_from(&tuples), 3);
            batch
        };
        let actions = |answers: &mut Answers<Ipv4Tuple>| {
            let matches = answers.matches();
            let state = matches.state();
            assert!(matches.iter().zip(&tuples).all(|(found, tuple)| found == state.find(tuple)));
            assert_eq!(matches.verdict(0), RuleVerdict::Certain(matches.get(0)));
            matches.iter().map(|found| found.map(|found| found.action.0)).collect::<Vec<_>>()
        };
        let right = [Some(1), Some(2), None];
        let (mut read, mut held, sent) = (fill().submit().wait(), fill().submit().wait(), fill().submit());
        assert_eq!(read.is_from_gpu(), is_on_gpu);
        assert_eq!(actions(&mut read), right);
        // A rule more changes nothing about these.
        classifier.insert("dport=4 action=4".parse().unwrap()).unwrap();
        assert_eq!(actions(&mut read), right);
        assert_eq!(read.is_from_gpu(), is_on_gpu, "nothing was looked up again");
        classifier.apply(&crate::classify::places(1)).unwrap();
        assert_eq!((held.get(0), held.get(1)), (1, 2), "numbers stay");
        for answers in [&mut read, &mut held, &mut sent.wait()] {
            assert_eq!(actions(answers), right);
            check_answers(answers, &[2, 1, 0], "the numbers of the state of the actions");
            assert_eq!(actions(answers), right);
        }
        // A rule that is gone.
        let mut answers = fill().submit().wait();
        classifier.remove(RuleNumber::new(2).unwrap()).unwrap();
        assert_eq!(actions(&mut answers), [None, Some(2), None]);
        assert_eq!(fill().submit().wait().is_from_gpu(), is_on_gpu);
    };
    in_place(Classifier::builder().build().unwrap(), false);
    let Some((fleet, _)) = on_host(Ipv4Tuple::gpu_options()) else { return };
    in_place(Classifier::builder().device(Device::Gpu).fleet(fleet).build().unwrap(), true);
}

/// Labels that are entered before a batch is submitted resolve its answers after their routes are gone.
#[test]
fn labels_resolve_answers_of_batches_that_began_after_they_were_entered() {
    let labels = Labels::new();
    let net = |n: u8| Ipv4Net::new([192, 0, n, 0].into(), 24).unwrap();
    let routes = (0..4).map(|n| (net(n), format!("path {n}")));
    let mut table = Ipv4Table::builder().labelled_routes(&labels, routes).build().unwrap();
    let batches = table.reader().batches();
    let mut batch = batches.batch(4).unwrap();
    assert_eq!(batch.extend((0..4).map(|n| V4(0xc000_0001 | n << 8))), 4);
    let known = labels.enter();
    let answers = batch.submit().wait();
    for n in 0..4 {
        table.remove(net(n)).unwrap();
        table.insert(net(n), labels.intern(format!("other {n}")).unwrap()).unwrap();
    }
    for (n, next_hop) in answers.iter().enumerate() {
        assert_eq!(known.get(next_hop), Some(&format!("path {n}")));
    }
}
