//! The entries of a table, without an owned name for each.

use crate::name::{Name, SLASH};
use crate::table::{NameTable, NodeId};

/// Calls `give` with every entry and its result, a name before the names beneath it. O(bytes of all names).
pub(super) fn each_entry(names: &NameTable, mut give: impl FnMut(&Name, u32)) {
    let children = names.children();
    let mut text = Vec::new();
    // A node, and the length of its parent's name.
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
        stack.extend(children.of_node(node).map(|child| (child.id(), text.len())));
    }
}
