//! The tuples that are looked up, as each contestant wants them: as tuples, and as headers in network order
//! with a pointer to each, which is what `rte_acl` takes of packets that lie in memory.

use std::ops::Range;

use wirespeed_classify::{Ipv4Tuple, Tuple};

use crate::batch::Batch;
use crate::report::Setting;

/// A header: protocol, 3 bytes of nothing, source, destination, ports, all in network order.
pub type Header = [u8; 16];

/// Tuples in the order in which they are looked up, and their right answers.
pub struct Trace {
    /// `in-order` or `shuffled`.
    pub name: &'static str,
    /// The seed that it was shuffled by.
    pub seed: u64,
    /// The number of each tuple's rule.
    pub right: Vec<u32>,
    tuples: Vec<Ipv4Tuple>,
    headers: Vec<Header>,
    /// Pointers to the headers, which never move.
    pointers: Vec<*const Header>,
}

/// A part of a trace.
#[derive(Clone, Copy)]
pub struct Tuples<'a> {
    /// The part as tuples.
    pub tuples: &'a [Ipv4Tuple],
    /// The part as pointers to headers, good as long as the trace is.
    pub headers: &'a [*const Header],
}

impl Trace {
    /// A trace of tuples, and of what is right for each.
    pub fn new(name: &'static str, seed: u64, tuples: Vec<Ipv4Tuple>, right: Vec<u32>) -> Self {
        let headers: Vec<Header> = tuples.iter().map(header).collect();
        let pointers = headers.iter().map(std::ptr::from_ref).collect();
        Self { name, seed, right, tuples, headers, pointers }
    }

    /// A set with this trace, for the rows of a record.
    pub fn setting(&self, set: &Setting) -> Setting {
        set.on_trace(self.name, self.seed, self.right.iter().copied())
    }

    /// Every n-th tuple, so that at most so many are left.
    pub fn spread(&self, most: usize) -> Self {
        let every = self.tuples.len().div_ceil(most.max(1)).max(1);
        let tuples = self.tuples.iter().step_by(every).copied().collect();
        Self::new(self.name, self.seed, tuples, self.right.iter().step_by(every).copied().collect())
    }

    /// All of them.
    pub fn tuples(&self) -> Tuples<'_> {
        Tuples { tuples: &self.tuples, headers: &self.pointers }
    }

    /// The number of tuples.
    pub const fn len(&self) -> usize {
        self.headers.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.headers.is_empty()
    }
}

impl Batch for Tuples<'_> {
    /// A part of one tuple.
    type Key = Self;

    fn len(self) -> usize {
        self.tuples.len()
    }

    fn part(self, range: Range<usize>) -> Self {
        Self { tuples: &self.tuples[range.clone()], headers: &self.headers[range] }
    }

    fn each(self) -> impl Iterator<Item = Self> {
        let parts = self.tuples.chunks(1).zip(self.headers.chunks(1));
        parts.map(|(tuples, headers)| Self { tuples, headers })
    }
}

fn header(tuple: &Ipv4Tuple) -> Header {
    let [src, dst, ports, proto] = [0, 1, 2, 3].map(|at| tuple.words()[at].to_be_bytes());
    let mut header = [0; 16];
    header[..4].copy_from_slice(&proto);
    for (to, word) in header[4..].as_chunks_mut().0.iter_mut().zip([src, dst, ports]) {
        *to = word;
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_in_network_order() {
        let tuple = Ipv4Tuple::new([10, 1, 2, 3].into(), [192, 0, 2, 1].into(), 0x0102, 443, 17);
        assert_eq!(header(&tuple), [17, 0, 0, 0, 10, 1, 2, 3, 192, 0, 2, 1, 1, 2, 1, 187]);
        let trace = Trace::new("in-order", 0, vec![tuple; 5], (0..5).collect());
        assert_eq!(trace.spread(2).right, [0, 3]);
        assert_eq!(trace.tuples().part(1..4).each().map(Batch::len).collect::<Vec<_>>(), [1, 1, 1]);
    }
}
