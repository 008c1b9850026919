//! `route IF…`: forwarding between Linux interfaces, by the kernel's own routes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use wirespeed_feeds::kernel;
use wirespeed_router::apps::Ip;
use wirespeed_router::control::Control;
use wirespeed_router::io::{
    Attach, BusyPoll, ForwardingOff, Interface, Joined, LocalAddresses, PacketOptions, PacketPort, Port,
    Program, Tags, Tun, Umem, XdpOptions,
};
use wirespeed_router::{Error, Memory, Report, Worker, run as run_workers};

use super::options::{Driver, Options};
use super::pins::Pins;
use super::report::Progress;
use crate::interrupt::{Measuring, is_interrupted};

/// How long the kernel may take to tell all of its routes.
const FIRST_STATE: Duration = Duration::from_secs(60);
/// How long changes are collected at most before lookups see them.
const COLLECT: Duration = Duration::from_millis(20);

/// Bytes between buffers: a chunk of AF_XDP.
const STRIDE: u32 = 2048;

/// An interface, with what takes its frames.
struct Taken {
    interface: Interface,
    by: By,
}

enum By {
    Xdp(Arc<Program>),
    /// The kernel gets the frames, too, so its own forwarding is off until this is dropped.
    Packet {
        _off: ForwardingOff,
    },
}

/// Forwards until Ctrl-C, or until the time is up.
pub(super) fn run(options: &Options) -> Result<(Report, f64)> {
    let local = LocalAddresses::new();
    let interfaces: Vec<Interface> =
        options.interfaces.iter().map(|name| Interface::open(name)).collect::<Result<_, _>>()?;
    if let Some(other) = interfaces.iter().find(|interface| !interface.is_ethernet) {
        bail!("{}: no Ethernet interface, and frames of other links can't be forwarded", other.name);
    }
    let feed = kernel::follow(kernel::Options::default())?;
    let mut control = Control::new(interfaces.iter().map(|interface| interface.index), local.clone())?;
    let begin = Instant::now();
    if !control.first(&feed, FIRST_STATE)? {
        bail!("the kernel did not tell all of its routes within {} s", FIRST_STATE.as_secs());
    }
    eprintln!("{} routes from the kernel in {:.2} s", control.len(), begin.elapsed().as_secs_f64());
    // The filter of local addresses is right before a frame is taken.
    let taken: Vec<Taken> =
        interfaces.into_iter().map(|interface| take(options, interface, &local)).collect::<Result<_>>()?;
    let workers = workers(options, &taken)?;
    let pins = Pins::of(options, workers)?;
    tell_busy_polling(options, &taken);
    let (reader, routes, own) = (control.reader(), control.routes(), control.own());
    let wants = control.wants();
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
                if let Err(error) = control.follow(&feed, COLLECT) {
                    // The routes are not the kernel's any more, so nothing may be forwarded by them.
                    *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    stop.store(true, Ordering::Relaxed);
                    return;
                }
            }
        });
        let make = |at: usize| -> Result<Worker<Ip<'_>>, Error> {
            pins.pin(at)?;
            let (memory, ports) = open(options, &taken, at, workers, &local)?;
            let worker = Worker::new(Ip::new(&reader, &routes, &own), memory, ports, options.settings());
            Ok(worker.kernel(Box::new(wants.told_by(Tun::open("wirespeed%d")?))))
        };
        let report = run_workers(workers, stop, make, |report| progress.tell(report));
        is_done.store(true, Ordering::Relaxed);
        report
    })?;
    drop(measuring);
    if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error).context("the kernel's routes can't be followed any more; forwarding ended");
    }
    Ok((report, start.elapsed().as_secs_f64()))
}

/// Decides how the frames of an interface are taken.
fn take(options: &Options, interface: Interface, local: &LocalAddresses) -> Result<Taken> {
    let name = interface.name.clone();
    let why_not = match options.driver {
        Driver::Packet => None,
        Driver::Auto | Driver::Xdp => match interface.unusable(STRIDE) {
            Some(reason) => Some(reason.to_string()),
            None => match Program::attach(&interface, local, Tags::Kernel, Attach::Auto) {
                Ok(program) => {
                    let mode =
                        if program.runs() == Attach::Native { "in the driver" } else { "in the kernel" };
                    eprintln!("{name}: AF_XDP, its program runs {mode}, queues: {}", interface.queues);
                    if let Some(reason) = program.why_not_native() {
                        eprintln!("{name}: the driver can't run the program: {reason}");
                    }
                    let by = By::Xdp(Arc::new(program));
                    return Ok(Taken { interface, by });
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
    Ok(Taken { interface, by })
}

/// Tells where busy polling does less than it could.
fn tell_busy_polling(options: &Options, taken: &[Taken]) {
    for Taken { interface, by } in taken.iter().filter(|_| options.busy_poll) {
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
    local: &LocalAddresses,
) -> Result<(Memory, Vec<Box<dyn Port>>), Error> {
    let mut memory = Memory::with_stride(options.buffers(), STRIDE)?;
    let mut umem = Umem::new(&memory);
    let mut xdp = XdpOptions::default();
    xdp.busy_poll = options.busy_poll.then(BusyPoll::default);
    let mut ports: Vec<Box<dyn Port>> = Vec::new();
    for Taken { interface, by } in taken {
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
