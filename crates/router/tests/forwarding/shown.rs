//! Packets that an application shows to one in front of it when it reads them: the same ones that a second
//! reading finds.

use wirespeed::{IpTable, Labels};
use wirespeed_rng::Rng;
use wirespeed_router::apps::Ip;
use wirespeed_router::apps::ip::Owns;
use wirespeed_router::{App, Chunk, Memory, Packet, Reason, Settings, Verdict};

use crate::frames::{self, Kind};
use crate::{PORTS, list, routes};

/// A packet that was shown: whether it is IPv4, and its bytes.
type Seen = (bool, Vec<u8>);

/// An application in front of another one: it notes what is shown, and drops each seventh of these packets.
struct Front<A> {
    inner: A,
    /// The other application reads frames and then they are read again.
    is_read_twice: bool,
    seen: Vec<Seen>,
}

/// An application that doesn't show packets by itself.
struct Silent<'a, A>(&'a mut A);

impl<A: App> App for Silent<'_, A> {
    type Pending = A::Pending;

    fn pre_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory) -> A::Pending {
        self.0.pre_shade(chunk, memory)
    }

    fn post_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory, pending: A::Pending) {
        self.0.post_shade(chunk, memory, pending);
    }
}

impl<A: App> App for Front<A> {
    type Pending = A::Pending;

    fn pre_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory) -> A::Pending {
        let mut shown: Vec<(usize, bool, Vec<u8>)> = Vec::new();
        let note = |at: usize, packet: Packet<'_>| {
            let (is_v4, bytes) = match packet {
                Packet::V4(bytes) => (true, bytes),
                Packet::V6(bytes) => (false, bytes),
            };
            shown.push((at, is_v4, bytes.to_vec()));
            at.is_multiple_of(7).then_some(Verdict::Drop(Reason::Application))
        };
        let pending = if self.is_read_twice {
            Silent(&mut self.inner).pre_shade_shown(chunk, memory, note)
        } else {
            self.inner.pre_shade_shown(chunk, memory, note)
        };
        for (at, is_v4, bytes) in shown {
            assert_eq!(chunk.is_undecided(at), !at.is_multiple_of(7), "its verdict counts");
            self.seen.push((is_v4, bytes));
        }
        pending
    }

    fn post_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory, pending: A::Pending) {
        self.inner.post_shade(chunk, memory, pending);
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("shown", self.seen.len() as u64)]
    }
}

impl<A> Drop for Front<A> {
    fn drop(&mut self) {
        SEEN.with_borrow_mut(|seen| seen.push(std::mem::take(&mut self.seen)));
    }
}

thread_local! {
    /// What the applications of a test have seen.
    static SEEN: std::cell::RefCell<Vec<Vec<Seen>>> = const { std::cell::RefCell::new(Vec::new()) };
}

#[test]
fn packets_are_shown_when_they_are_read() {
    let mut rng = Rng::new(11);
    let frames: Vec<Vec<u8>> =
        (0..600).map(|n| frames::of_kind(Kind::ALL[n % Kind::ALL.len()], &mut rng)).collect();
    let labels = Labels::new();
    let table = IpTable::builder().labelled_routes(&labels, routes()).build().unwrap();
    let own = Owns::default();
    let mut done = Vec::new();
    for is_read_twice in [true, false] {
        let inner = Ip::new(&table.reader(), &labels, &own);
        let app = Front { inner, is_read_twice, seen: Vec::new() };
        let (stats, sent) = list::run(app, &frames, PORTS, Settings::default());
        let sent: Vec<Vec<Vec<u8>>> = sent.iter().map(|of| of.lock().unwrap().clone()).collect();
        done.push((stats.frames_out, stats.dropped.of(Reason::Application), sent));
    }
    let seen = SEEN.take();
    let [twice, once] = &seen[..] else { panic!("two applications") };
    assert!(twice.len() > 200 && twice.iter().any(|(is_v4, _)| !is_v4));
    assert_eq!(twice, once);
    assert!(done[0].0 > 100 && done[0].1 > 20, "{:?}", (done[0].0, done[0].1));
    assert!(done[0] == done[1], "the same packets are forwarded");
}
