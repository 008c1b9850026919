//! Iteration in table order.

use super::Rib;
use super::leaf::LeafId;
use super::node::{Child, NodeId, split};
use super::preorder::{PLACES, place, run};
use crate::address::Address;
use crate::next_hop::NextHop;
use crate::prefix::Prefix;

/// Routes in order; made by [`Rib::iter`] and [`Rib::covered`].
#[derive(Clone, Debug)]
pub struct Routes<'a, A: Address> {
    rib: &'a Rib<A>,
    stack: Vec<Frame<A>>,
}

/// A step of the iteration.
#[derive(Clone, Debug)]
enum Frame<A> {
    /// A node.
    Node(Part),
    /// A list, with the next leaf. Leaves that this address and length do not cover are passed over.
    List(LeafId, A, u8),
}

/// The state in one node: the next place and the next octet, and the ends of both.
#[derive(Clone, Debug)]
struct Part {
    node: NodeId,
    place: u16,
    place_end: u16,
    octet: u16,
    octet_end: u16,
}

impl<A: Address> Frame<A> {
    fn whole(child: Child) -> Self {
        match child {
            Child::Node(node) => {
                Self::Node(Part { node, place: 0, place_end: PLACES, octet: 0, octet_end: 256 })
            }
            Child::List(head) => Self::List(head, A::MIN, 0),
        }
    }
}

impl<'a, A: Address> Routes<'a, A> {
    pub(super) fn all(rib: &'a Rib<A>) -> Self {
        Self { rib, stack: vec![Frame::whole(Child::Node(NodeId::ROOT))] }
    }

    pub(super) fn covered(rib: &'a Rib<A>, prefix: Prefix<A>) -> Self {
        Self { rib, stack: Self::top(rib, prefix).into_iter().collect() }
    }

    /// The part of the trie that a prefix covers: a run of its own node, a whole node beneath it, or a list.
    fn top(rib: &Rib<A>, prefix: Prefix<A>) -> Option<Frame<A>> {
        let (depth, bits) = split(prefix.len());
        let mut id = NodeId::ROOT;
        loop {
            let node = rib.node(id);
            let octet = node.octet_of(prefix.address());
            if node.depth == depth {
                let start = place(octet, bits);
                let octets = 1 << (8 - bits);
                return Some(Frame::Node(Part {
                    node: id,
                    place: start,
                    place_end: start + run(bits),
                    octet: u16::from(octet),
                    octet_end: u16::from(octet) + octets,
                }));
            }
            let child = match node.child(octet)?.is() {
                Child::List(head) => return Some(Frame::List(head, prefix.address(), prefix.len())),
                Child::Node(child) => child,
            };
            if rib.is_on_path(child, prefix.address(), depth) {
                id = child;
            } else if prefix.contains(rib.node(child).base) && rib.node(child).depth > depth {
                return Some(Frame::whole(Child::Node(child)));
            } else {
                return None;
            }
        }
    }
}

impl<A: Address> Iterator for Routes<'_, A> {
    type Item = (Prefix<A>, NextHop);

    #[inline(never)] // one copy for all crates
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let frame = match self.stack.last_mut()? {
                Frame::Node(frame) => frame,
                Frame::List(next, address, len) => {
                    match self.rib.leaves.at(*next) {
                        None => {
                            self.stack.pop();
                        }
                        Some((listed, after)) => {
                            *next = after;
                            if Prefix::around(*address, *len).covers(listed.prefix) {
                                return Some((listed.prefix, listed.next_hop));
                            }
                        }
                    }
                    continue;
                }
            };
            let node = self.rib.node(frame.node);
            let found = node.place_from(frame.place).filter(|&at| at < frame.place_end);
            let child = node.child_from(frame.octet).filter(|&(octet, _)| u16::from(octet) < frame.octet_end);
            match (found, child) {
                // The routes of a child come right after the full octet that leads to it.
                (Some(at), child) if child.is_none_or(|(octet, _)| at <= place(octet, 8)) => {
                    frame.place = at + 1;
                    let next_hop = node.get(at).expect("a found place is taken");
                    return Some((node.prefix_at(at), next_hop));
                }
                (_, Some((octet, id))) => {
                    frame.octet = u16::from(octet) + 1;
                    self.stack.push(Frame::whole(id.is()));
                }
                (_, None) => {
                    self.stack.pop();
                }
            }
        }
    }
}
