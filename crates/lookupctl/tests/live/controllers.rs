//! `lookupctl route --app openflow` with a controller over TCP: the switch connects to it, or it connects to
//! the switch. It adds flows, changes the way of frames, is lost, and comes back.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use wirespeed_openflow::wire::{Action, Field, FlowCommand, FlowMod, Instructions, Match};

use crate::apps::subnet;
use crate::traffic::{Sender, Sink, transfer};
use crate::world::{Router, World, drivers};

const ADDRESS: &str = "127.0.0.1:6633";

/// Which side connects.
enum Way {
    /// The switch, to this listener in its namespace.
    Accept(TcpListener),
    /// The controller.
    Connect,
}

impl Way {
    fn new(world: &World, accepts: bool) -> Self {
        match accepts {
            true => Self::Accept(world.inside("r", || TcpListener::bind(ADDRESS).unwrap()).join().unwrap()),
            false => Self::Connect,
        }
    }

    fn options(&self) -> String {
        match self {
            Self::Accept(_) => format!("--controller tcp:{ADDRESS}"),
            Self::Connect => format!("--listen {ADDRESS}"),
        }
    }

    /// A controller that has greeted the switch.
    fn controller(&self, world: &World) -> Controller {
        let stream = match self {
            Self::Accept(listener) => listener.accept().unwrap().0,
            Self::Connect => world.inside("r", || TcpStream::connect(ADDRESS).unwrap()).join().unwrap(),
        };
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut controller = Controller { stream };
        controller.stream.write_all(&[4, 0, 0, 8, 0, 0, 0, 1]).unwrap();
        controller.barrier();
        controller
    }
}

/// A controller of the switch.
struct Controller {
    stream: TcpStream,
}

impl Controller {
    /// Waits until the switch has done all that it was asked for. It refuses nothing.
    fn barrier(&mut self) {
        self.stream.write_all(&[4, 20, 0, 8, 0, 0, 0, 9]).unwrap();
        loop {
            let mut header = [0; 8];
            self.stream.read_exact(&mut header).unwrap();
            let mut body = vec![0; usize::from(u16::from_be_bytes([header[2], header[3]])) - 8];
            self.stream.read_exact(&mut body).unwrap();
            assert_ne!(header[1], 1, "an error: {body:?}");
            if header[1] == 21 {
                return;
            }
        }
    }

    fn change(&mut self, flow: &FlowMod) {
        self.stream.write_all(&flow.to_message(5)).unwrap();
        self.barrier();
    }

    /// All frames of a port go to another one.
    fn lead(&mut self, priority: u16, from: u32, to: u32) {
        self.change(&flow(priority, from, to));
    }
}

fn flow(priority: u16, from: u32, to: u32) -> FlowMod {
    let apply = vec![Action::Output { port: to, max_len: 0 }];
    let instructions = Instructions { apply, has_apply: true, ..Instructions::default() };
    FlowMod::add(0, priority, Match::all().with(Field::InPort, from.into()), instructions)
}

/// Starts a switch between `ra`, `rb` and `rc`, which are its ports 1 to 3, and its first controller.
fn switch(world: &World, options: &str, way: &Way) -> Option<(Router, Controller)> {
    let options = format!("--app openflow {options} {}", way.options());
    // The switch may wait for its controller's greeting before it tells how it is.
    thread::scope(|scope| {
        let controller = match way {
            Way::Accept(_) => Some(scope.spawn(|| way.controller(world))),
            Way::Connect => None,
        };
        let router = world.router_at("r", &options, &["ra", "rb", "rc"]);
        if router.is_none() && controller.is_some() {
            // Nobody else connects.
            drop(world.inside("r", || TcpStream::connect(ADDRESS)).join());
            let _ = controller.map(thread::ScopedJoinHandle::join);
            return None;
        }
        let controller = controller.map_or_else(|| way.controller(world), |thread| thread.join().unwrap());
        Some((router?, controller))
    })
}

/// Whether datagrams from `a` that are sent to `b` come to it.
fn reaches(world: &World) -> bool {
    let (sink, sender) = (Sink::start(world, "b", "10.0.5.2"), Sender::start(world, "a", "10.0.5.2", 500));
    thread::sleep(Duration::from_millis(500));
    sender.finish();
    !sink.finish().is_empty()
}

fn received_by_c(world: &World) -> u64 {
    world.counter("c", "hc", "rx_packets").unwrap()
}

#[test]
fn a_controller_leads_frames_is_lost_and_comes_back() {
    for (driver, accepts) in drivers().flat_map(|driver| [(driver, true), (driver, false)]) {
        let Some(world) = subnet(&["a", "b", "c", "r"]) else { return };
        let way = Way::new(&world, accepts);
        let Some((router, mut controller)) = switch(&world, driver, &way) else { return };
        assert!(!reaches(&world), "{driver}: without a flow");
        controller.lead(1, 1, 2);
        controller.lead(1, 2, 1);
        transfer(&world, "a", ("b", "10.0.5.2"), 60_000);
        // Frames go the new way, from one barrier's answer on.
        let (sink, sender) =
            (Sink::start(&world, "b", "10.0.5.2"), Sender::start(&world, "a", "10.0.5.2", 500));
        assert!(sink.gets(20), "{driver}");
        controller.lead(9, 1, 3);
        thread::sleep(Duration::from_millis(100));
        let (of_b, of_c) = (sink.count(), received_by_c(&world));
        assert!(World::until(|| received_by_c(&world) > of_c + 20), "{driver}: to the new port");
        assert_eq!(sink.count(), of_b, "{driver}: none to the old one");
        let back = FlowMod { command: FlowCommand::DeleteStrict, ..flow(9, 1, 3) };
        controller.change(&FlowMod { instructions: Instructions::default(), ..back });
        assert!(sink.gets(20), "{driver}: back again");
        // Fail-secure: its flows stay without it.
        drop(controller);
        thread::sleep(Duration::from_millis(500));
        assert!(sink.gets(20), "{driver}: without a controller");
        sender.finish();
        sink.finish();
        // It comes back, and its changes hold at once.
        let mut controller = way.controller(&world);
        transfer(&world, "b", ("a", "fd05::1"), 60_000);
        controller.lead(9, 1, 3);
        assert!(!reaches(&world), "{driver}: by the controller that came back");
        let report = router.stop();
        assert!(report["frames_out"].as_u64().unwrap() > 100, "{driver}: {report}");
    }
}

#[test]
fn a_switch_that_fails_standalone_learns_addresses_until_a_controller_is_there() {
    for (driver, accepts) in drivers().flat_map(|driver| [(driver, true), (driver, false)]) {
        let Some(world) = subnet(&["a", "b", "c", "r"]) else { return };
        let way = Way::new(&world, accepts);
        let Some((router, controller)) = switch(&world, &format!("{driver} --standalone"), &way) else {
            return;
        };
        // The time of a look whether there is a controller.
        thread::sleep(Duration::from_millis(500));
        assert!(!reaches(&world), "{driver}: the controller has no flow");
        drop(controller);
        assert!(World::until(|| reaches(&world)), "{driver}: without a controller");
        transfer(&world, "a", ("b", "10.0.5.2"), 60_000);
        let controller = way.controller(&world);
        thread::sleep(Duration::from_millis(500));
        assert!(!reaches(&world), "{driver}: the controller came back");
        drop(controller);
        assert!(World::until(|| reaches(&world)), "{driver}: lost once more");
        router.stop();
    }
}
