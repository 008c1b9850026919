//! An application of a user, in well under a hundred lines: a reflector, which sends each frame back to where
//! it came from, but those to a port of its own, which it counts and drops.

use std::net::IpAddr;

use wirespeed_router::{App, Chunk, Memory, PortId, Reason, Settings, Verdict};

use crate::list::Way;
use crate::{frames, list};

struct Reflector {
    drop_port: u16,
    dropped: u64,
}

impl App for Reflector {
    /// The frames of a chunk that are to be dropped: nothing is looked up, so they are known at once.
    type Pending = Vec<bool>;

    fn pre_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory) -> Vec<bool> {
        let is_to_port = |bytes: &[u8]| bytes.get(36..38) == Some(&self.drop_port.to_be_bytes());
        chunk.frames().iter().map(|frame| is_to_port(memory.bytes(frame))).collect()
    }

    fn post_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory, pending: Vec<bool>) {
        for (at, drop) in pending.into_iter().enumerate() {
            let verdict = if drop {
                self.dropped += 1;
                Verdict::Drop(Reason::Application)
            } else {
                match memory.bytes_mut(&chunk.frames()[at]).first_chunk_mut::<12>() {
                    Some(addresses) => {
                        addresses.rotate_left(6);
                        Verdict::Out(chunk.port())
                    }
                    None => Verdict::Drop(Reason::Cut),
                }
            };
            chunk.decide(at, verdict);
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("to_port", self.dropped)]
    }
}

#[test]
fn a_users_application_runs() {
    let addresses = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
    let frame = frames::udp(addresses, 9, 30);
    let mut other = frame.clone();
    other[36..38].copy_from_slice(&54_u16.to_be_bytes());
    let list = [frame.clone(), other, vec![1, 2, 3]];
    let app = Reflector { drop_port: 54, dropped: 0 };
    let (stats, sent) = list::run(app, &list, 1, Settings::default());
    assert_eq!((stats.frames_in, stats.frames_out), (3, 1));
    assert_eq!((stats.dropped.of(Reason::Application), stats.dropped.of(Reason::Cut)), (1, 1));
    let back = sent[0].lock().unwrap()[0].clone();
    assert_eq!((&back[..6], &back[6..12], &back[12..]), (&frame[6..12], &frame[..6], &frame[12..]));
}

/// Sends each frame out of port 1.
struct Through;

impl App for Through {
    type Pending = ();

    fn pre_shade(&mut self, _: &mut Chunk, _: &mut Memory) {}

    fn post_shade(&mut self, chunk: &mut Chunk, _: &mut Memory, (): ()) {
        (0..chunk.len()).for_each(|at| chunk.decide(at, Verdict::Out(PortId(1))));
    }
}

#[test]
fn frames_that_can_wait_are_not_lost_for_a_slow_port() {
    let frame = frames::udp((IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2])), 9, 30);
    let frames: Vec<Vec<u8>> =
        (0..20_000_u32).map(|number| frame.iter().copied().chain(number.to_be_bytes()).collect()).collect();
    for chunk in [64, 2000] {
        let run = |can_wait| {
            let memory = Memory::new(1 << 15).unwrap();
            let settings = Settings { chunk, ..Settings::default() };
            list::run_in(memory, Through, &frames, (2, Way { takes: 16, can_wait }), settings)
        };
        let (stats, sent) = run(true);
        assert!(stats.is_whole() && stats.dropped.all() == 0, "{stats:?}");
        assert_eq!(*sent[1].lock().unwrap(), frames, "all of them, in order");
        // A device's frames are lost in its ring or here.
        let (stats, sent) = run(false);
        assert!(stats.is_whole() && stats.dropped.of(Reason::QueueFull) > 0, "{stats:?}");
        assert_eq!(stats.dropped.all() + stats.frames_out, 20_000);
        assert_eq!(sent[1].lock().unwrap().len() as u64, stats.frames_out);
    }
}
