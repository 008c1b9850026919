//! [`ActionSet`]: actions in the order in which a set is executed (specification 1.3.5, section 5.10).

use crate::wire::Action;

/// Actions, at most one of each type, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ActionSet(Vec<Action>);

/// The place of an action in the order. Actions of one place replace each other.
const fn rank(action: Action) -> (u8, u8) {
    match action {
        Action::CopyTtlIn => (0, 0),
        Action::PopVlan => (1, 0),
        Action::PopMpls(_) => (1, 1),
        Action::PopPbb => (1, 2),
        Action::PushMpls(_) => (2, 0),
        Action::PushPbb(_) => (3, 0),
        Action::PushVlan(_) => (4, 0),
        Action::CopyTtlOut => (5, 0),
        Action::DecMplsTtl => (6, 0),
        Action::DecNwTtl => (6, 1),
        Action::SetField(field, _) => (7, field as u8),
        Action::SetMplsTtl(_) => (7, 100),
        Action::SetNwTtl(_) => (7, 101),
        Action::SetQueue(_) => (8, 0),
        Action::Group(_) => (9, 0),
        Action::Output { .. } => (10, 0),
    }
}

impl ActionSet {
    pub(crate) fn of(actions: &[Action]) -> Self {
        let mut set = Self::default();
        set.write(actions);
        set
    }

    /// Writes actions into the set: the last one of a type stays.
    pub(crate) fn write(&mut self, actions: &[Action]) {
        for &action in actions {
            match self.0.binary_search_by_key(&rank(action), |&known| rank(known)) {
                Ok(at) => self.0[at] = action,
                Err(at) => self.0.insert(at, action),
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The actions in the order of their execution. An output beside a group is ignored.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Action> + '_ {
        let has_group = self.0.iter().any(|action| matches!(action, Action::Group(_)));
        self.0.iter().copied().filter(move |action| !(has_group && matches!(action, Action::Output { .. })))
    }
}
