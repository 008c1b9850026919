//! [`Turnover`]: tells whether a rule's number went to another rule while a batch was on a GPU.
//!
//! A GPU answers with numbers, and its table may be one state ahead of the state that a guard holds on the
//! CPU. A number in both states is the same rule with the same action, because numbers are not given twice,
//! except if an update puts a rule in place of another. Such an update counts up before the first table has
//! the rule, and again after the last table has it:
//!
//! ```text
//! writer   begin ─► rules on GPUs ─► rules on the CPU ─► end
//! reader   before ─► batch on a GPU ─► guard, actions ─► is it still the same, and nothing under way?
//! ```

use crate::sync::{AtomicU64, Ordering};

/// Counts beginnings and ends of such updates: odd while one is under way.
#[derive(Debug, Default)]
pub(crate) struct Turnover(AtomicU64);

/// The count that was seen before a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen(u64);

impl Turnover {
    /// Runs a change that puts rules in place of others.
    pub(crate) fn during<R>(&self, change: impl FnOnce() -> R) -> R {
        self.0.fetch_add(1, Ordering::SeqCst);
        let done = change();
        self.0.fetch_add(1, Ordering::SeqCst);
        done
    }

    /// Runs a change that may put rules in place of others.
    pub(crate) fn during_if<R>(&self, is_turnover: bool, change: impl FnOnce() -> R) -> R {
        if is_turnover { self.during(change) } else { change() }
    }

    pub(crate) fn seen(&self) -> Seen {
        Seen(self.0.load(Ordering::SeqCst))
    }

    /// Whether no rule was replaced since `seen`.
    pub(crate) fn is_none_since(&self, seen: Seen) -> bool {
        seen.0.is_multiple_of(2) && self.0.load(Ordering::SeqCst) == seen.0
    }
}

#[cfg(loom)]
#[cfg(test)]
mod models {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use loom::thread;

    use super::*;
    use crate::sync::model;

    #[test]
    fn answers_of_two_states_are_noticed() {
        static MIXED: AtomicBool = AtomicBool::new(false);
        model(|| {
            let turnover = Arc::new(Turnover::default());
            // The rule of one number on a GPU and on the CPU.
            let (there, here) = (Arc::new(AtomicU64::new(1)), Arc::new(AtomicU64::new(1)));
            let reader = thread::spawn({
                let (turnover, there, here) = (Arc::clone(&turnover), Arc::clone(&there), Arc::clone(&here));
                move || {
                    let before = turnover.seen();
                    let (found, action) = (there.load(Ordering::Acquire), here.load(Ordering::Acquire));
                    let is_mixed = found != action;
                    assert!(!(is_mixed && turnover.is_none_since(before)));
                    MIXED.fetch_or(is_mixed, std::sync::atomic::Ordering::Relaxed);
                }
            });
            for rule in 2..=3 {
                turnover.during(|| {
                    there.store(rule, Ordering::Release);
                    here.store(rule, Ordering::Release);
                });
            }
            reader.join().unwrap();
        });
        assert!(MIXED.load(std::sync::atomic::Ordering::Relaxed), "a reader sees both states");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_noticed_before_during_and_after() {
        let turnover = Turnover::default();
        let before = turnover.seen();
        assert!(turnover.is_none_since(before));
        let within = turnover.during(|| {
            assert!(!turnover.is_none_since(before));
            turnover.seen()
        });
        assert!(!turnover.is_none_since(before) && !turnover.is_none_since(within));
        assert!(turnover.is_none_since(turnover.seen()));
    }
}
