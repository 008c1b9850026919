//! Models of labels that end under their readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as Plain};

use loom::thread;

use super::*;
use crate::sync::{AtomicU64, Ordering, model_within};

/// A reader that enters, looks up and resolves, beside a writer that leads the one route to another label and
/// reclaims, `rounds` times.
fn a_route_moves_from_label_to_label(rounds: u64) {
    static AGAIN: AtomicBool = AtomicBool::new(false);
    // A call of a writer has so many steps that two changes of the thread would take minutes.
    model_within(1, move || {
        let labels = Labels::new();
        // Stands for a table: the index that its route leads to, and the value that the index has then.
        let route = Arc::new(AtomicU64::new(0));
        let lead = |labels: &Labels<u64>, route: &AtomicU64, value: u64, before: Option<NextHop>| {
            let now = labels.intern(value).unwrap();
            route.store(value << 32 | u64::from(now.0), Ordering::Release);
            labels.counts().tell(&[now], before.as_slice(), [now].into_iter());
            now
        };
        let mut now = lead(&labels, &route, 0, None);
        let reader = thread::spawn({
            let (labels, route) = (labels.clone(), Arc::clone(&route));
            move || {
                let known = labels.enter();
                let found = route.load(Ordering::Acquire);
                let index = NextHop(u32::try_from(found & u64::from(u32::MAX)).unwrap());
                assert_eq!(known.get(index), Some(&(found >> 32)), "what a lookup found resolves");
            }
        });
        let first = now;
        for value in 1..=rounds {
            now = lead(&labels, &route, value, Some(now));
            // Each step may pass a mark: the value goes, then its index, which the next round takes.
            (0..3).for_each(|_| labels.with_index(|_| ()));
            AGAIN.fetch_or(value > 1 && now == first, Plain::Relaxed);
        }
        reader.join().unwrap();
    });
    assert!(AGAIN.load(Plain::Relaxed), "an index is given again beside the reader");
}

#[test]
fn what_a_reader_finds_resolves_while_labels_end() {
    a_route_moves_from_label_to_label(2);
}
