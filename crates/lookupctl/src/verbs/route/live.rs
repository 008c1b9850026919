//! `route IF…`: forwarding between Linux interfaces.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use wirespeed_router::apps::Ip;
use wirespeed_router::io::{
    Attach, BusyPoll, ForwardingOff, Interface, Joined, LocalAddresses, PacketOptions, PacketPort, Port,
    Program, Tags, Tuns, Umem, XdpOptions,
};
use wirespeed_router::{App, Error, Memory, PortTables, Report, Worker, run as run_workers};

use super::options::{AppName, Driver, Options};
use super::pins::Pins;
use super::report::Progress;
use super::sources::Sources;
use super::tables::AccessList;
use crate::followed::State;
use crate::interrupt::{Measuring, is_interrupted};

/// Bytes between buffers: a chunk of AF_XDP.
const STRIDE: u32 = 2048;

/// An interface, with what takes its frames.
struct Taken {
    interface: Interface,
    /// The addresses whose packets stay the kernel's.
    local: LocalAddresses,
    by: By,
}

enum By {
    Xdp(Arc<Program>),
    /// The kernel gets the frames, too, so its own forwarding is off until this is dropped.
    Packet {
        _off: ForwardingOff,
    },
}

/// Forwards until Ctrl-C, or until the time is up. Returns the states of the sources of routes, too.
pub(super) fn run(options: &Options) -> Result<((Report, f64), Vec<State>)> {
    let interfaces: Vec<Interface> =
        options.interfaces.iter().map(|name| Interface::open(name)).collect::<Result<_, _>>()?;
    if let Some(other) = interfaces.iter().find(|interface| !interface.is_ethernet) {
        bail!("{}: no Ethernet interface, and frames of other links can't be forwarded", other.name);
    }
    let list = AccessList::load(options, None)?;
    // The router's own addresses, as each interface knows them: a VRF has its own.
    let local: Vec<LocalAddresses> = interfaces.iter().map(|_| LocalAddresses::new()).collect();
    let sources = Sources::open(options, &interfaces, &local)?;
    // The filters of local addresses are right before a frame is taken.
    let taken: Vec<Taken> = interfaces
        .into_iter()
        .zip(local)
        .map(|(interface, local)| take(options, interface, local))
        .collect::<Result<_>>()?;
    let (tables, routes, own) = (sources.control.tables(), sources.control.routes(), sources.control.own());
    let ip = || Ip::of_ports(&tables, &routes, &own);
    match options.app {
        AppName::Acl => drive(options, &taken, sources, &tables, || list.before(ip(), options.otherwise)),
        _ => drive(options, &taken, sources, &tables, ip),
    }
}

/// Runs the workers until Ctrl-C, or until the time is up.
fn drive<A: App>(
    options: &Options,
    taken: &[Taken],
    mut sources: Sources,
    tables: &Arc<PortTables>,
    app: impl Fn() -> A + Sync,
) -> Result<((Report, f64), Vec<State>)> {
    let workers = workers(options, taken)?;
    let pins = Pins::of(options, workers)?;
    tell_busy_polling(options, taken);
    let wants = sources.control.wants();
    let states = sources.states();
    let (stop, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
    let measuring = Measuring::begin();
    let start = Instant::now();
    let mut progress = Progress::new(options)?;
    let failed = Mutex::new(None);
    let report = std::thread::scope(|scope| {
        let (stop, is_done, failed) = (&stop, &is_done, &failed);
        scope.spawn(move || {
            while !is_done.load(Ordering::Relaxed) {
                let is_over = options.live_seconds().is_some_and(|seconds| start.elapsed() >= seconds);
                if is_over || is_interrupted() {
                    stop.store(true, Ordering::Relaxed);
                }
                if let Err(error) = sources.follow() {
                    // The routes are not those of their source any more, so nothing may be forwarded by them.
                    *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    stop.store(true, Ordering::Relaxed);
                    return;
                }
            }
        });
        let make = |at: usize| -> Result<Worker<A>, Error> {
            pins.pin(at)?;
            let (memory, ports) = open(options, taken, at, workers)?;
            let worker = Worker::new(app(), memory, ports, options.settings());
            Ok(worker.kernel(Box::new(wants.told_by(Tuns::open(Arc::clone(tables))?))))
        };
        let tell = |report: &Report| {
            if progress.tell(report) && !options.json {
                states.tell();
            }
        };
        let report = run_workers(workers, stop, make, tell);
        is_done.store(true, Ordering::Relaxed);
        report
    })?;
    drop(measuring);
    if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error).context("the routes can't be followed any more; forwarding ended");
    }
    Ok(((report, start.elapsed().as_secs_f64()), states.now()))
}

/// Decides how the frames of an interface are taken.
fn take(options: &Options, interface: Interface, local: LocalAddresses) -> Result<Taken> {
    let name = interface.name.clone();
    let why_not = match options.driver {
        Driver::Packet => None,
        Driver::Auto | Driver::Xdp => match interface.unusable(STRIDE) {
            Some(reason) => Some(reason.to_string()),
            None => match Program::attach(&interface, &local, Tags::Kernel, Attach::Auto) {
                Ok(program) => {
                    let mode =
                        if program.runs() == Attach::Native { "in the driver" } else { "in the kernel" };
                    eprintln!("{name}: AF_XDP, its program runs {mode}, queues: {}", interface.queues);
                    if let Some(reason) = program.why_not_native() {
                        eprintln!("{name}: the driver can't run the program: {reason}");
                    }
                    let by = By::Xdp(Arc::new(program));
                    return Ok(Taken { interface, local, by });
                }
                Err(error) => Some(error.to_string()),
            },
        },
    };
    match why_not {
        Some(reason) if options.driver == Driver::Xdp => bail!("{name}: AF_XDP can't be used: {reason}"),
        Some(reason) => eprintln!("{name}: AF_PACKET, because AF_XDP can't be used: {reason}"),
        None => eprintln!("{name}: AF_PACKET"),
    }
    let by = By::Packet { _off: ForwardingOff::at(&interface)? };
    Ok(Taken { interface, local, by })
}

/// Tells where busy polling does less than it could.
fn tell_busy_polling(options: &Options, taken: &[Taken]) {
    for Taken { interface, by, .. } in taken.iter().filter(|_| options.busy_poll) {
        let name = &interface.name;
        match by {
            By::Packet { .. } => eprintln!("{name}: no busy polling: that is for AF_XDP"),
            By::Xdp(_) if interface.defers_interrupts() == Some(false) => eprintln!(
                "{name}: interrupts come beside busy polling: set napi_defer_hard_irqs and gro_flush_timeout in /sys/class/net/{name}"
            ),
            By::Xdp(_) => {}
        }
    }
}

/// The number of workers: each has a queue of every interface of AF_XDP.
fn workers(options: &Options, taken: &[Taken]) -> Result<usize> {
    let queues =
        taken.iter().filter(|taken| matches!(taken.by, By::Xdp(_))).map(|taken| taken.interface.queues);
    let most = queues.min().map_or(usize::MAX, |queues| queues as usize);
    let asked = options.live_threads();
    if let Some(asked) = asked.filter(|&asked| asked > most) {
        bail!("--threads {asked} is more than the interface with the fewest queues has: {most}");
    }
    Ok(asked.unwrap_or(1).min(most))
}

/// The memory and the ports of a worker.
fn open(
    options: &Options,
    taken: &[Taken],
    worker: usize,
    workers: usize,
) -> Result<(Memory, Vec<Box<dyn Port>>), Error> {
    let mut memory = Memory::with_stride(options.buffers(), STRIDE)?;
    let mut umem = Umem::new(&memory);
    let mut xdp = XdpOptions::default();
    xdp.busy_poll = options.busy_poll.then(BusyPoll::default);
    let mut ports: Vec<Box<dyn Port>> = Vec::new();
    for Taken { interface, local, by } in taken {
        let port: Box<dyn Port> = match by {
            By::Xdp(program) => {
                let mut queues: Vec<Box<dyn Port>> = Vec::new();
                for queue in (0..interface.queues).filter(|&queue| queue as usize % workers == worker) {
                    let port = umem.open(program, queue, &xdp, &mut memory)?;
                    queues.push(Box::new(port));
                }
                Box::new(Joined::new(&interface.name, queues))
            }
            By::Packet { .. } => {
                let mut packet = PacketOptions::default();
                packet.transit = Some(local.transit(interface, Tags::Kernel));
                // The process's number: no other program's group has it.
                let [.., high, low] = (std::process::id() ^ interface.index).to_be_bytes();
                let group = u16::from_be_bytes([high, low]);
                packet.fanout = (workers > 1).then_some(group);
                Box::new(PacketPort::open(interface, &packet)?)
            }
        };
        ports.push(port);
    }
    Ok((memory, ports))
}
