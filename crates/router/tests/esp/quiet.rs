//! Keepalives: what a gateway sends while no frame comes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use wirespeed::{IpTable, Labels};
use wirespeed_router::apps::ip::Owns;
use wirespeed_router::apps::{Esp, Ip};
use wirespeed_router::io::{Port, PortCounts};
use wirespeed_router::{Error, Frame, Hop, Mac, Memory, PortId, Published, Route, Settings, Worker};

use super::{SUITES, TUNNELS, database, lines, run};

/// A port without frames. It stops its worker once something was sent.
struct Quiet {
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
    stop: Arc<AtomicBool>,
    /// The time when it stops the worker in any case.
    until: Instant,
}

impl Port for Quiet {
    fn name(&self) -> &'static str {
        "quiet"
    }

    fn receive(&mut self, _: &mut Memory, _: &mut Vec<Frame>, _: usize) -> Result<usize, Error> {
        if Instant::now() > self.until {
            self.stop.store(true, Ordering::Relaxed);
        }
        Ok(0)
    }

    fn send(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>) -> Result<usize, Error> {
        let sent = frames.len();
        for frame in frames.drain(..) {
            self.sent.lock().unwrap().push(memory.bytes(&frame).to_vec());
            memory.give(frame);
        }
        self.stop.store(true, Ordering::Relaxed);
        Ok(sent)
    }

    fn held(&self) -> usize {
        0
    }

    fn close(&mut self, _: &mut Memory) {}

    fn counts(&self) -> PortCounts {
        PortCounts::default()
    }
}

#[test]
fn mappings_are_kept_alive_without_a_frame() {
    for tunnel in TUNNELS {
        let database =
            database(&lines("out", SUITES[0], tunnel, "encap espinudp 4500 4501 :: nat-keepalive 1"));
        let labels = Labels::new();
        let hop = Route::Via(Hop::new(PortId(0), Mac([2, 0, 1, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 1]), 1500));
        let routes = ["0.0.0.0/0", "::/0"].map(|net| (net.parse::<IpNet>().unwrap(), hop.clone()));
        let table = IpTable::builder().labelled_routes(&labels, routes).build().unwrap();
        let own = Owns::default();
        let app = Esp::new(Ip::new(&table.reader(), &labels, &own), database.reader(), &own);
        let (sent, stop) = (Arc::default(), Arc::default());
        let until = Instant::now() + Duration::from_secs(30);
        let port = Quiet { sent: Arc::clone(&sent), stop: Arc::clone(&stop), until };
        let mut worker =
            Worker::new(app, Memory::new(64).unwrap(), vec![Box::new(port)], Settings::default());
        let began = Instant::now();
        let stats = worker.run(&stop, &Published::default()).unwrap();
        assert!(began.elapsed() >= Duration::from_secs(1) && stats.is_whole());
        assert_eq!((stats.frames_in, stats.frames_out, stats.made), (0, 0, 1));
        let frame = sent.lock().unwrap().remove(0);
        assert_eq!(frame[..12], [2, 0, 1, 0, 0, 1, 2, 0, 0, 0, 0, 1]);
        assert_eq!(
            frame[frame.len() - 9..],
            [0x11, 0x94, 0x11, 0x95, 0, 9, frame[frame.len() - 3], frame[frame.len() - 2], 0xff]
        );
        // The other end takes it for what it is.
        let there = super::database(&lines("fwd", SUITES[0], tunnel, "encap espinudp 4500 4501 ::"));
        let (stats, out, _) = run(&there, &[frame]);
        assert_eq!((stats.dropped.of(wirespeed_router::Reason::EspKeepalive), out.len()), (1, 0));
    }
}
