//! The entries of a table without a name of its own for each.

use crate::name::{Name, SLASH};
use crate::table::{NameTable, NodeId};

/// Gives every entry with its result, a name before those beneath it. O(bytes of all names).
pub(super) fn each_entry(names: &NameTable, mut give: impl FnMut(&Name, u32)) {
    let mut text = Vec::new();
    // A node, and how long its parent's name is.
    let mut stack = vec![(NodeId::ROOT, 0)];
    while let Some((id, parent)) = stack.pop() {
        let node = names.node(id);
        text.truncate(parent);
        if id != NodeId::ROOT {
            text.push(SLASH);
            text.extend_from_slice(node.component());
        }
        if node.result() != 0 {
            give(Name::new_unchecked(&text), node.result());
        }
        stack.extend(node.children().map(|child| (child.id(), text.len())));
    }
}
