//! `route IF…`: forwarding between Linux interfaces, by routes, by names, or as a switch.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use wirespeed::Fleet;
use wirespeed_openflow::PortInfo;
use wirespeed_router::apps::{Esp, Ip};
use wirespeed_router::io::capture::{CaptureWriter, DropCapture};
use wirespeed_router::io::{
    Attach, BusyPoll, Claim, ForwardingOff, HostLink, HostPort, Interface, Joined, LocalAddresses, Offload,
    PacketOptions, PacketPort, Port, Program, Promiscuous, Tags, Takes, Tun, Tuns, Umem, Withheld,
    XdpOptions, give_up_privileges,
};
use wirespeed_router::{App, Error, Mac, Memory, PortId, PortTables, Report, Worker, run as run_workers};

use super::faces::Faces;
use super::options::{AppName, Driver, Options};
use super::pins::Pins;
use super::report::Progress;
use super::sources::{Sources, States};
use super::switch::OpenFlow;
use super::tables::{AccessList, NameTables, own_mac};
use super::tunnels::{Gpus, Tunnels};
use super::{Done, MakeWorker, fleet};
use crate::interrupt::{Running, is_interrupted};
use crate::number::counted;

/// Bytes between buffers: a chunk of AF_XDP.
const STRIDE: u32 = 2048;

/// How often interfaces are looked at that nobody tells of.
const LOOK: Duration = Duration::from_millis(200);

/// An interface, with what takes its frames.
struct Taken {
    interface: Interface,
    /// The addresses whose packets stay the kernel's.
    local: LocalAddresses,
    /// The frames that are taken.
    takes: Takes,
    by: By,
    /// Frames to other addresses come, too, until this is dropped.
    _promiscuous: Option<Promiscuous>,
}

enum By {
    Xdp(Arc<Program>),
    /// The kernel gets the frames, too, so it is kept from forwarding or answering them until this is
    /// dropped.
    Packet {
        _off: Option<ForwardingOff>,
        _withheld: Option<Withheld>,
    },
}

/// Work beside the workers: a step that is done again and again, and the states of the sources of routes.
struct Beside<'d> {
    step: Box<dyn FnMut() -> Result<()> + Send + 'd>,
    states: Arc<States>,
    /// Where copies of dropped frames go.
    drops: Option<&'d CaptureWriter>,
}

/// The queues of a device that is made for the host: one for each worker, as its last port.
struct HostPorts(Mutex<Vec<HostPort>>);

impl HostPorts {
    /// Makes the device, if a name is given.
    fn open(name: Option<&str>, link: HostLink, workers: usize) -> Result<Self> {
        let queues = name.map(|name| HostPort::open(name, link, workers)).transpose()?;
        Ok(Self(Mutex::new(queues.unwrap_or_default())))
    }

    /// The port of a worker.
    fn take(&self) -> Option<Box<dyn Port>> {
        let port = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        port.map(|port| Box::new(port) as Box<dyn Port>)
    }
}

/// Forwards until a signal, or until the time is up. Returns the states of the sources of routes, too.
pub(super) fn run(options: &Options) -> Result<Done> {
    let interfaces: Vec<Interface> =
        options.interfaces.iter().map(|name| Interface::open(name)).collect::<Result<_, _>>()?;
    if let Some(other) = interfaces.iter().find(|interface| !interface.is_ethernet) {
        bail!("{}: no Ethernet interface, and frames of other links can't be forwarded", other.name);
    }
    // Before anything is changed that another program may rely on.
    let _claims: Vec<Claim> = interfaces.iter().map(Claim::of).collect::<Result<_, _>>()?;
    let drops = options.drops.as_deref().map(CaptureWriter::create).transpose()?;
    let fleet = fleet(options)?;
    // Starting a driver for the first time may need any right, and so may new files. All threads that come
    // after this have the same few.
    options.device().has_gpu()?;
    give_up_privileges(true).context("privileges can't be given up")?;
    let done = match options.app {
        AppName::Names => names(options, drops.as_ref(), fleet, interfaces),
        AppName::Openflow => switch(options, drops.as_ref(), interfaces),
        AppName::Ip | AppName::Acl | AppName::Esp => {
            routed(options, drops.as_ref(), fleet.as_ref(), interfaces)
        }
    }?;
    drops.iter().try_for_each(CaptureWriter::finish)?;
    Ok(done)
}

/// Forwards by routes of IP.
fn routed(
    options: &Options,
    drops: Option<&CaptureWriter>,
    fleet: Option<&Fleet>,
    interfaces: Vec<Interface>,
) -> Result<Done> {
    let list = AccessList::load(options, fleet)?;
    let tunnels = (options.app == AppName::Esp).then(|| Tunnels::open(options)).transpose()?;
    let takes = match &tunnels {
        Some(tunnels) => Takes::Tunnels(Tags::Kernel, tunnels.ports()),
        None => Takes::Transit(Tags::Kernel),
    };
    // The router's own addresses, as each interface knows them: a VRF has its own.
    let local: Vec<LocalAddresses> = interfaces.iter().map(|_| LocalAddresses::new()).collect();
    let sources = Sources::open(options, fleet, &interfaces, &local)?;
    // The filters of local addresses are right before a frame is taken.
    let taken = take_all(options, interfaces.into_iter().zip(local), &takes)?;
    let (tables, routes, own) = (sources.control.tables(), sources.control.routes(), sources.control.own());
    let used = sources.control.used();
    let ip = || Ip::of_ports(&tables, &routes, &own).noting(&used);
    let host = HostPorts::open(options.host_device.as_deref(), HostLink::Packets, workers(options, &taken)?)?;
    match &tunnels {
        Some(tunnels) => {
            let gpus = Gpus::open(options, workers(options, &taken)?)?;
            // Behind the ports of the interfaces, of which there are fewer than 2^16.
            let host_port = options.host_device.as_ref().map(|_| u16::try_from(taken.len()).map(PortId));
            let host_port = host_port.transpose()?;
            let gateway = |at| {
                let gateway = Esp::new(ip().behind_own_packets(), tunnels.reader(), &own);
                gpus.give(
                    at,
                    match host_port {
                        Some(port) => gateway.host(port),
                        None => gateway,
                    },
                )
            };
            let run = || forward(options, &taken, (sources, drops), (&tables, &host), gateway);
            let done = tunnels.followed(run)?;
            tunnels.tell();
            Ok(done)
        }
        None if options.app == AppName::Acl => {
            forward(options, &taken, (sources, drops), (&tables, &host), |_| {
                list.before(ip(), options.otherwise())
            })
        }
        None => forward(options, &taken, (sources, drops), (&tables, &host), |_| ip()),
    }
}

/// Runs an application that forwards by the routes of these sources.
fn forward<A: App>(
    options: &Options,
    taken: &[Taken],
    (mut sources, drops): (Sources, Option<&CaptureWriter>),
    (tables, host): (&Arc<PortTables>, &HostPorts),
    app: impl Fn(usize) -> A + Sync,
) -> Result<Done> {
    let wants = sources.control.wants();
    let beside = Beside { states: sources.states(), step: Box::new(move || Ok(sources.follow()?)), drops };
    drive(options, taken, beside, &|at, memory, mut ports| {
        ports.extend(host.take());
        let worker = Worker::new(app(at), memory, ports, options.settings());
        Ok(worker.kernel(Box::new(wants.told_by(Tuns::open(Arc::clone(tables))?))))
    })
}

/// Forwards NDN Interests by their names.
fn names(
    options: &Options,
    drops: Option<&CaptureWriter>,
    fleet: Option<Fleet>,
    mut interfaces: Vec<Interface>,
) -> Result<Done> {
    let mut faces = None;
    let macs: Vec<Mac> = interfaces.iter().map(|interface| Mac(interface.mac)).collect();
    let names = NameTables::load(options, fleet, macs.into_iter(), |texts| {
        faces.insert(Faces::of(texts)).routes(&interfaces)
    })?;
    let local: Vec<LocalAddresses> = interfaces.iter().map(|_| LocalAddresses::new()).collect();
    let takes = if options.pending.is_some() { Takes::InterestsAndData } else { Takes::Interests };
    let taken = take_all(options, interfaces.clone().into_iter().zip(local.clone()), &takes)?;
    let (names, faces) = (&names, &faces);
    let step = move || {
        std::thread::sleep(LOOK);
        let before: Vec<[u8; 6]> = interfaces.iter().map(|interface| interface.mac).collect();
        refresh(&mut interfaces);
        if interfaces.iter().map(|interface| interface.mac).ne(before) {
            for (interface, local) in interfaces.iter().zip(&local) {
                local.set_mac(interface.index, interface.mac)?;
            }
            names.own.set(interfaces.iter().map(|interface| own_mac(Mac(interface.mac))).collect());
            if let Some(faces) = faces {
                faces.update(&interfaces, &names.routes)?;
            }
        }
        Ok(())
    };
    drive(
        options,
        &taken,
        Beside { step: Box::new(step), states: Arc::default(), drops },
        &|_, memory, ports| {
            let worker = Worker::new(names.forwarder(), memory, ports, options.settings());
            Ok(worker.kernel(Box::new(Tun::open("wirespeed%d")?)))
        },
    )
}

/// Forwards as a switch, whose ports are the interfaces.
fn switch(options: &Options, drops: Option<&CaptureWriter>, mut interfaces: Vec<Interface>) -> Result<Done> {
    let port = |interface: &Interface| PortInfo {
        name: interface.name.clone(),
        mac: Mac(interface.mac),
        kbps: interface.megabits().unwrap_or(10_000).saturating_mul(1000),
    };
    let local = interfaces.iter().map(|_| LocalAddresses::new());
    let taken = take_all(options, interfaces.clone().into_iter().zip(local), &Takes::All)?;
    let workers = workers(options, &taken)?;
    let host = HostPorts::open(options.local.as_deref(), HostLink::Ethernet, workers)?;
    let local = options.local.as_deref().map(Interface::open).transpose()?;
    let local = local.as_ref().map(port);
    let switch = OpenFlow::open(options, interfaces.iter().map(port).collect(), local, workers)?;
    let switch = &switch.switch;
    let tell = move |interfaces: &[Interface]| {
        for (number, interface) in (1..).zip(interfaces) {
            switch.set_link(number, interface.is_up && interface.is_running);
        }
    };
    tell(&interfaces);
    let step = move || {
        std::thread::sleep(LOOK);
        let has_link = |interface: &Interface| interface.is_up && interface.is_running;
        let before: Vec<bool> = interfaces.iter().map(has_link).collect();
        refresh(&mut interfaces);
        if interfaces.iter().map(has_link).ne(before) {
            tell(&interfaces);
        }
        Ok(())
    };
    drive(
        options,
        &taken,
        Beside { step: Box::new(step), states: Arc::default(), drops },
        &|_, memory, mut ports| {
            ports.extend(host.take());
            // Frames that controllers send come in at a port behind all others, of one worker.
            if let Some(injector) = switch.injector() {
                ports.push(Box::new(injector));
            }
            let app = switch.app().expect("the switch was made for as many workers");
            Ok(Worker::new(app, memory, ports, options.settings()))
        },
    )
}

/// Asks the kernel for interfaces again. One that is gone has no link.
fn refresh(interfaces: &mut [Interface]) {
    for interface in interfaces {
        if interface.refresh().is_err() {
            (interface.is_up, interface.is_running) = (false, false);
        }
    }
}

/// Runs the workers until a signal, or until the time is up.
fn drive<'a>(
    options: &Options,
    taken: &[Taken],
    beside: Beside<'_>,
    worker: &MakeWorker<'_, Result<Worker<'a>, Error>>,
) -> Result<Done> {
    let workers = workers(options, taken)?;
    let pins = Pins::of(options, workers)?;
    // The tables are read; the keys of tunnels may be read again.
    give_up_privileges(options.app == AppName::Esp).context("privileges can't be given up")?;
    tell_busy_polling(options, taken);
    let shared = if workers > 1 { ", among which the queues of each interface are shared out" } else { "" };
    eprintln!("{}{shared}", counted(workers, "worker"));
    let Beside { mut step, states, drops } = beside;
    let (stop, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
    let running = Running::begin();
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
                if let Err(error) = step() {
                    // What packets go by is not what it should be any more, so nothing may be forwarded.
                    *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    stop.store(true, Ordering::Relaxed);
                    return;
                }
            }
        });
        let make = |at: usize| -> Result<Worker<'a>, Error> {
            pins.pin(at)?;
            let (memory, ports) = open(options, taken, at, workers)?;
            let worker = worker(at, memory, ports)?;
            Ok(match drops {
                Some(writer) => worker.drops(Box::new(DropCapture::new(writer))),
                None => worker,
            })
        };
        let tell = |report: &Report| {
            if progress.tell(report, &states.now()) && !options.json {
                states.tell();
            }
        };
        let report = run_workers(workers, stop, make, tell);
        is_done.store(true, Ordering::Relaxed);
        report
    })?;
    drop(running);
    if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error).context("routes or interfaces can't be followed any more; forwarding ended");
    }
    Ok(Done { sources: states.now(), ..Done::new(report, start, workers) })
}

/// Takes the frames of all interfaces.
fn take_all(
    options: &Options,
    interfaces: impl Iterator<Item = (Interface, LocalAddresses)>,
    takes: &Takes,
) -> Result<Vec<Taken>> {
    if matches!(takes, Takes::Transit(_)) {
        eprintln!(
            "what is forwarded here, the kernel's firewall (nftables, iptables), NAT and rp_filter don't see: filter it with --app acl"
        );
    }
    interfaces.map(|(interface, local)| take(options, interface, local, takes.clone())).collect()
}

/// Decides how the frames of an interface are taken.
fn take(options: &Options, interface: Interface, local: LocalAddresses, takes: Takes) -> Result<Taken> {
    let name = interface.name.clone();
    let promiscuous = (takes == Takes::All).then(|| Promiscuous::at(&interface)).transpose()?;
    let why_not = match options.driver() {
        Driver::Packet => None,
        Driver::Auto | Driver::Xdp => match interface.unusable(STRIDE) {
            Some(reason) => Some(reason.to_string()),
            None => match Program::attach(&interface, &local, takes.clone(), Attach::Auto) {
                Ok(program) => {
                    let mode =
                        if program.runs() == Attach::Native { "in the driver" } else { "in the kernel" };
                    eprintln!("{name}: AF_XDP, its program runs {mode}, queues: {}", interface.queues);
                    if let Some(reason) = program.why_not_native() {
                        eprintln!("{name}: the driver can't run the program: {reason}");
                    }
                    if takes == Takes::All && interface.offload(Offload::TagStripping) == Some(true) {
                        eprintln!(
                            "{name}: if the hardware takes VLAN tags off frames, the switch can't see them: \
                             ethtool -K {name} rxvlan off"
                        );
                    }
                    let by = By::Xdp(Arc::new(program));
                    return Ok(Taken { interface, local, takes, by, _promiscuous: promiscuous });
                }
                // Frames that it takes or sends would not come here, or come twice.
                Err(error @ Error::OtherXdp { .. }) if options.driver() == Driver::Auto => {
                    bail!("{error}: end it, or take what it passes on with --driver packet")
                }
                Err(error) => Some(error.to_string()),
            },
        },
    };
    match why_not {
        Some(reason) if options.driver() == Driver::Xdp => bail!("{name}: AF_XDP can't be used: {reason}"),
        Some(reason) => eprintln!("{name}: AF_PACKET, because AF_XDP can't be used: {reason}"),
        None => eprintln!("{name}: AF_PACKET"),
    }
    if interface.offload(Offload::GenericReceive) == Some(true) {
        eprintln!(
            "{name}: generic receive offload is on, and joined segments are refused, which makes TCP very slow: ethtool -K {name} gro off"
        );
    }
    let by = match (Withheld::at(&interface, &local, takes.clone()), &takes) {
        (Ok(withheld), _) => By::Packet { _off: None, _withheld: Some(withheld) },
        // Packets that are forwarded do no harm in a kernel that does not forward. What other applications
        // take, it might answer.
        (Err(error), Takes::Transit(_)) => {
            eprintln!(
                "{error}; so the kernel forwards neither {name}'s IPv4 nor any IPv6 of this host meanwhile, nor after this program is killed"
            );
            By::Packet { _off: Some(ForwardingOff::at(&interface)?), _withheld: None }
        }
        (Err(error), _) => return Err(error.into()),
    };
    Ok(Taken { interface, local, takes, by, _promiscuous: promiscuous })
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

/// The number of workers: each has a queue of every interface of AF_XDP. By default there are as many as the
/// interface with the fewest queues has, and no more than cores.
fn workers(options: &Options, taken: &[Taken]) -> Result<usize> {
    let queues =
        taken.iter().filter(|taken| matches!(taken.by, By::Xdp(_))).map(|taken| taken.interface.queues);
    let fewest = queues.min().map(|queues| queues as usize);
    Ok(match (options.live_threads(), fewest) {
        (Some(asked), Some(fewest)) if asked > fewest => {
            bail!("--threads {asked} is more than the interface with the fewest queues has: {fewest}")
        }
        (Some(asked), _) => asked,
        (None, Some(fewest)) => fewest.min(options.live_cores()?),
        (None, None) => 1,
    })
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
    for Taken { interface, local, takes, by, .. } in taken {
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
                packet.transit = Some(local.transit(interface, takes.clone()));
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
