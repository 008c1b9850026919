//! [`Versions`]: the state that workers read, and the state with the changes that they have not seen yet.
//!
//! ```text
//! change     next state ◄─ change      workers read the current state; what was changed is noted
//! publish    both change places        workers that enter see all changes
//! later      next state ◄─ the notes   once no worker is in it any more, before the next change
//! ```

use wirespeed_image::left_right::{Copies, Entrances};

use super::state::{Change, State};

/// A state in two copies, which change places.
pub(crate) struct Versions {
    copies: Copies<State>,
    /// Changes that the next state has and the current one lacks.
    ahead: Vec<Change>,
    /// Changes that the current state has and the next one lacks. No change is made before they are, so one
    /// of both lists is empty.
    behind: Vec<Change>,
}

impl Versions {
    pub(crate) fn new(state: State) -> Self {
        let copies = Copies::new([state.clone(), state]);
        Self { copies, ahead: Vec::new(), behind: Vec::new() }
    }

    /// Entrances for workers.
    pub(crate) fn entrances(&self) -> Entrances<State> {
        self.copies.entrances()
    }

    /// The state with all changes.
    pub(crate) fn newest(&self) -> &State {
        if self.behind.is_empty() { self.copies.other() } else { self.copies.current() }
    }

    /// Makes a change, which workers do not see yet.
    pub(crate) fn change(&mut self, change: Change) {
        self.catch_up();
        self.copies.other_mut().apply(&change);
        self.ahead.push(change);
    }

    /// The number of changes that workers do not see yet.
    pub(crate) const fn ahead(&self) -> usize {
        self.ahead.len()
    }

    /// Takes changes back that workers do not see, all but the first `kept`, by those that undo them in this
    /// order.
    pub(crate) fn take_back<'c>(&mut self, kept: usize, undo: impl Iterator<Item = &'c Change>) {
        undo.for_each(|change| self.copies.other_mut().apply(change));
        self.ahead.truncate(kept);
    }

    /// Lets workers that enter from now on see all changes.
    pub(crate) fn publish(&mut self) {
        if !self.ahead.is_empty() {
            self.copies.turn();
            // What was behind is made.
            std::mem::swap(&mut self.ahead, &mut self.behind);
        }
    }

    /// Waits for the workers that still read the state before the last publication, and makes the next state
    /// equal to the current one. What was removed is gone then.
    pub(crate) fn catch_up(&mut self) {
        if !self.behind.is_empty() {
            self.copies.other_mut().apply_all(self.behind.iter());
            self.behind.clear();
        }
    }
}
