//! [`Part`]: the states beneath some nodes of the component trie.

use rayon::prelude::*;

use super::link::{ACCEPTING, LEAF, number};
use super::text::{Stride, chunk};
use crate::table::{Children, Node, NodeId};

/// States and transitions, numbered within the part.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// The first transition of each state.
    pub(super) first: Vec<u32>,
    pub(super) inputs: Vec<u32>,
    pub(super) targets: Vec<u32>,
    pub(super) results: Vec<u32>,
    /// The first state of each node's children.
    pub(super) nodes: Vec<(NodeId, u32)>,
    /// Transitions that lead to a node's state.
    pub(super) open: Vec<(u32, NodeId)>,
}

/// A child, with the data that sorting needs.
#[derive(Clone, Copy)]
struct Child<'t> {
    /// Its first eight bytes, as a number that sorts like the bytes.
    key: u64,
    component: &'t [u8],
    node: Node<'t>,
}

/// Children that share the bytes so far, and the transition to their state.
struct Group {
    from: usize,
    to: usize,
    /// The number of shared bytes.
    at: usize,
    incoming: Option<u32>,
}

impl<'t> Child<'t> {
    fn of(node: Node<'t>) -> Self {
        let component = node.component();
        let mut key = [0; 8];
        let len = component.len().min(8);
        key[..len].copy_from_slice(&component[..len]);
        Self { key: u64::from_be_bytes(key), component, node }
    }
}

impl Part {
    /// Adds the states of a node's children. Groups wait on an explicit stack, because components may be
    /// thousands of steps long.
    pub(super) fn expand(&mut self, node: Node<'_>, all: &Children, stride: Stride) {
        let children = sorted(node, all);
        self.nodes.push((node.id(), number(self.first.len())));
        let mut groups = vec![Group { from: 0, to: children.len(), at: 0, incoming: None }];
        while let Some(group) = groups.pop() {
            let state = number(self.first.len());
            self.first.push(number(self.inputs.len()));
            if let Some(incoming) = group.incoming {
                self.targets[incoming as usize] = state;
            }
            self.step(&children[..group.to], &group, stride, &mut groups);
        }
    }

    /// The transitions of a group's state.
    fn step(&mut self, children: &[Child<'_>], group: &Group, stride: Stride, groups: &mut Vec<Group>) {
        let mut from = group.from;
        while from < children.len() {
            let child = &children[from];
            let (input, next) = chunk(child.component, group.at, stride);
            let same = |other: &&Child<'_>| chunk(other.component, group.at, stride).0 == input;
            let to = from + 1 + children[from + 1..].iter().take_while(same).count();
            let transition = number(self.inputs.len());
            let ends = next > child.component.len();
            let result = if ends { child.node.result() } else { 0 };
            if !ends {
                groups.push(Group { from, to, at: next, incoming: Some(transition) });
            } else if child.node.has_children() {
                self.open.push((transition, child.node.id()));
            }
            self.inputs.push(input);
            self.targets.push(if result == 0 { LEAF } else { LEAF | ACCEPTING });
            self.results.push(result);
            from = to;
        }
    }
}

/// A node's children in order of their bytes, so that children with the same first steps are consecutive.
fn sorted<'t>(node: Node<'t>, all: &Children) -> Vec<Child<'t>> {
    /// The fewest children that are sorted on all threads.
    const MANY: usize = 1 << 14;
    let mut children: Vec<_> = all.of_node(node).map(Child::of).collect();
    let order = |a: &Child<'_>, b: &Child<'_>| a.key.cmp(&b.key).then_with(|| a.component.cmp(b.component));
    match children.len() {
        ..2 => {}
        2..MANY => children.sort_unstable_by(order),
        _ => children.par_sort_unstable_by(order),
    }
    children
}
