//! The routes that use each label, counted: what says that a label has ended.
//!
//! ```text
//! Labels::intern ──► a claim on the index ──► Table::apply: the claim becomes a use ──► the last route goes: ended
//!
//! LabelCounts   of each set of labels: by index, the claims, and the tables that use it
//! TableUses     of each table and its readers: by index, the routes
//! Claims        of each builder: the indexes that its routes will use
//! ```
//!
//! A table tells the labels that are attached to it about a call after the call is published, and only if it
//! succeeded. Routes, names and rules are counted alike: [`Counted`] says what differs.

mod counted;
mod counts;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wirespeed_fib::NextHop;

use crate::match_ids::MatchIds;

pub(crate) use counted::Counted;
pub(crate) use counts::LabelCounts;

/// The routes of a table by the label that they lead to, for the labels that are attached. They end when the
/// table and its last reader are gone: a reader that stays keeps looking up in the last state.
#[derive(Default)]
pub(crate) struct TableUses {
    uses: Mutex<Uses>,
    /// The pairs that the model's results stand for, if they are no labels.
    pairs: Option<Arc<MatchIds>>,
}

#[derive(Default)]
struct Uses {
    labels: Vec<Arc<LabelCounts>>,
    /// Counted as soon as there are labels.
    routes: HashMap<NextHop, usize>,
    joined: Vec<NextHop>,
    left: Vec<NextHop>,
}

impl TableUses {
    /// Starts with uses that are no part of the model.
    #[cfg(feature = "rules")]
    pub(crate) fn with(beside: impl Iterator<Item = NextHop>) -> Self {
        let uses = Self::default();
        uses.join_beside(beside);
        uses
    }

    /// Counts uses that are no part of the model. A call that brings them does this first, so that no label
    /// ends meanwhile.
    #[cfg(feature = "rules")]
    pub(crate) fn join_beside(&self, beside: impl Iterator<Item = NextHop>) {
        let mut uses = self.uses();
        beside.for_each(|next_hop| uses.join(next_hop));
        uses.tell(&[]);
    }

    /// Takes such uses away, and settles claims of the caller.
    #[cfg(feature = "rules")]
    pub(crate) fn leave_beside(&self, beside: impl Iterator<Item = NextHop>, settled: &[NextHop]) {
        let mut uses = self.uses();
        beside.for_each(|next_hop| uses.leave(next_hop));
        uses.tell(settled);
    }

    /// Starts for a model whose results stand for pairs.
    pub(crate) fn of_pairs(pairs: Option<Arc<MatchIds>>) -> Self {
        Self { uses: Mutex::default(), pairs }
    }

    /// The label that a result of the model leads to.
    fn label(&self, result: NextHop) -> NextHop {
        self.pairs.as_deref().map_or(result, |pairs| pairs.pairs().pair(result).0)
    }

    /// Counts the routes of a model for these labels from now on.
    pub(crate) fn attach<D: Counted>(&self, labels: &Arc<LabelCounts>, model: &D::Model) {
        let mut uses = self.uses();
        if uses.labels.is_empty() {
            D::each_label(model, &mut |result| uses.join(self.label(result)));
        }
        uses.joined.clear();
        if !uses.labels.iter().any(|known| Arc::ptr_eq(known, labels)) {
            let joined: Vec<_> = uses.routes.keys().copied().collect();
            labels.tell(&joined, &[], std::iter::empty());
            uses.labels.push(Arc::clone(labels));
        }
    }

    /// Notes the labels that updates may change, and claims those that they lead to until the call is over.
    /// `None` if there are no labels.
    pub(crate) fn watch<'u, D: Counted>(
        &'u self,
        model: &D::Model,
        updates: &'u [D::Update],
    ) -> Option<Watch<'u, D>> {
        let uses = self.uses();
        if uses.labels.is_empty() {
            return None;
        }
        let mut places = D::places(model, updates);
        places.sort_unstable();
        places.dedup();
        let label = |place| self.label(D::label_at(model, place));
        let before = places.into_iter().map(|place| (place, label(place))).collect();
        for labels in &uses.labels {
            announced::<D>(updates).into_iter().for_each(|next_hop| labels.claim(next_hop));
        }
        Some(Watch { uses: self, updates, before })
    }

    fn uses(&self) -> MutexGuard<'_, Uses> {
        // No code of the user's runs under this lock.
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Uses {
    fn join(&mut self, next_hop: NextHop) {
        if next_hop.is_some() {
            let routes = self.routes.entry(next_hop).or_default();
            *routes += 1;
            if *routes == 1 {
                self.joined.push(next_hop);
            }
        }
    }

    fn leave(&mut self, next_hop: NextHop) {
        if let Entry::Occupied(mut routes) = self.routes.entry(next_hop) {
            *routes.get_mut() -= 1;
            if *routes.get() == 0 {
                routes.remove();
                self.left.push(next_hop);
            }
        }
    }

    /// Tells the labels which of them came and went, and whose claims are settled.
    fn tell(&mut self, settled: &[NextHop]) {
        for labels in &self.labels {
            labels.tell(&self.joined, &self.left, settled.iter().copied());
        }
        self.joined.clear();
        self.left.clear();
    }
}

impl Drop for TableUses {
    fn drop(&mut self) {
        let Uses { labels, routes, .. } = self.uses.get_mut().unwrap_or_else(PoisonError::into_inner);
        let left: Vec<_> = routes.keys().copied().collect();
        labels.iter().for_each(|labels| labels.tell(&[], &left, std::iter::empty()));
    }
}

/// The entries that a caller interned labels for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interned {
    /// No entry.
    Nothing,
    /// The entries of the updates.
    Updates,
    /// All entries of the table after the call, also those that the call did not change.
    Entries,
}

/// The labels of a call's places before the call.
pub(crate) struct Watch<'u, D: Counted> {
    uses: &'u TableUses,
    updates: &'u [D::Update],
    before: Vec<(D::Place<'u>, NextHop)>,
}

impl<D: Counted> Watch<'_, D> {
    /// Tells the labels what a call changed, and which of the caller's claims it used up: none if it failed.
    pub(crate) fn tell(self, model: &D::Model, interned: Interned) {
        let mut uses = self.uses.uses();
        for (place, before) in self.before {
            let after = self.uses.label(D::label_at(model, place));
            if after != before {
                uses.join(after);
                uses.leave(before);
            }
        }
        // The claims of this call, and those of the `intern`s before it.
        let mut settled = announced::<D>(self.updates);
        match interned {
            Interned::Nothing => {}
            Interned::Updates => settled.extend_from_within(..),
            Interned::Entries => {
                D::each_label(model, &mut |result| settled.push(self.uses.label(result)));
                settled.retain(|next_hop| next_hop.is_some());
            }
        }
        uses.tell(&settled);
    }
}

/// The labels that updates lead to.
fn announced<D: Counted>(updates: &[D::Update]) -> Vec<NextHop> {
    let mut announced = Vec::with_capacity(updates.len());
    updates.iter().for_each(|update| D::announced(update, &mut |next_hop| announced.push(next_hop)));
    announced.retain(|next_hop| next_hop.is_some());
    announced
}

/// The labels of a builder, and its claims on them until its table is built or given up.
#[derive(Default)]
pub(crate) struct Claims(Vec<(Arc<LabelCounts>, HashSet<NextHop>)>);

impl Claims {
    /// Attaches the table to labels.
    pub(crate) fn attach(&mut self, labels: &Arc<LabelCounts>) {
        self.of(labels);
    }

    /// Keeps an index of these labels.
    pub(crate) fn hold(&mut self, labels: &Arc<LabelCounts>, next_hop: NextHop) {
        if self.of(labels).insert(next_hop) {
            labels.claim(next_hop);
        }
    }

    /// The labels.
    pub(crate) fn labels(&self) -> impl Iterator<Item = &Arc<LabelCounts>> {
        self.0.iter().map(|(labels, _)| labels)
    }

    fn of(&mut self, labels: &Arc<LabelCounts>) -> &mut HashSet<NextHop> {
        let at = self.0.iter().position(|(known, _)| Arc::ptr_eq(known, labels)).unwrap_or_else(|| {
            self.0.push((Arc::clone(labels), HashSet::new()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        for (labels, held) in &self.0 {
            held.iter().for_each(|&next_hop| labels.release(next_hop));
        }
    }
}

impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claims").field("labels", &self.0.len()).finish_non_exhaustive()
    }
}
