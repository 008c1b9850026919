//! [`Options`]: what the router was asked for.

mod together;

use std::ffi::OsString;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
#[cfg(target_os = "linux")]
use wirespeed_router::Cores;
use wirespeed_router::apps::Decision;
use wirespeed_router::io::traffic::Sizes;
use wirespeed_router::{CHUNK, Settings};

use crate::device::Device;
use crate::followed::Followed;
use crate::number::{parse_count, parse_positive, parse_size};
use crate::source::ReadArguments;
use crate::threads;
use crate::verbs::replay::{parse_seconds, parse_time};

/// Forwards packets between Linux interfaces, or frames from a source to a sink: IPv4 and IPv6 by the longest
/// prefix, behind an access list or a gateway of IPsec tunnels, NDN Interests by name, or as the flows of
/// OpenFlow controllers say.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Linux interfaces to forward between: by the kernel's own routes and neighbours, by names, or as the
    /// ports 1, 2 and so on of a switch. Without any, frames come from --in and go to --out
    #[arg(value_name = "IF", conflicts_with_all = ["in", "out", "count"])]
    pub(super) interfaces: Vec<String>,

    /// The way that frames of interfaces are taken. The default is auto
    #[arg(long, value_name = "DRIVER")]
    pub(super) driver: Option<Driver>,

    /// The application: the work that is done on frames
    #[arg(long, value_name = "NAME", default_value = "ip")]
    pub(super) app: AppName,

    /// The source of frames: a capture (pcap, pcapng, compressed or not; - is standard input), or frames that
    /// are made in memory to addresses of the table: gen:SIZE in bytes, gen:imix. loop:FILE keeps a capture
    /// in memory, and gives its frames round and round
    #[arg(long, value_name = "FILE|loop:FILE|gen:SIZE", default_value = "gen:64", value_parser = parse_source)]
    pub(super) r#in: From,

    /// The destination of frames: a capture (.pcap, else pcapng; .gz and .zst compress it), or sink, which
    /// counts them. Next hops take several sinks in turns
    #[arg(long, value_name = "FILE|sink", default_value = "sink")]
    pub(super) out: Vec<OsString>,

    /// The table of routes. By default it is a synthetic one as large as today's full IPv4 table, and between
    /// interfaces the kernel's. Between interfaces its next hops have to be addresses: the kernel finds them
    #[arg(long, value_name = "FILE")]
    pub(super) fib: Option<OsString>,

    /// The source of the routes between interfaces, instead of the kernel: FRR, which connects to this
    /// address by FPM, or routers, by BMP
    #[arg(long, value_name = "fpm:ADDR:PORT|bmp:ADDR:PORT", conflicts_with = "fib", value_parser = parse_feed)]
    pub(super) feed: Option<Followed>,

    /// The kernel's table that interfaces outside of VRFs forward by: a number, or main, the default
    #[arg(long, value_name = "N", conflicts_with = "fib", value_parser = parse_kernel_table)]
    pub(super) kernel_table: Option<u32>,

    /// The table of names, for --app names. Between interfaces a next hop is an interface, to its group of
    /// NDN forwarders, a neighbour of one, as ADDRESS%IF with a link-layer address, or several of these with
    /// commas between
    #[arg(long, value_name = "FILE")]
    pub(super) table: Option<PathBuf>,

    /// Interests that may wait for their Data, for --app names: Data in Ethernet frames then goes back to all
    /// who asked for it. Without this Data is the operating system's
    #[arg(long, value_name = "N", value_parser = parse_positive)]
    pub(super) pending: Option<usize>,

    /// Rules of the access list, for --app acl. Their actions are permit, accept, allow or pass, and deny,
    /// drop, reject or block; formats whose actions are numbers have 1 to permit and 2 to deny
    #[arg(long, value_name = "FILE")]
    pub(super) rules: Option<PathBuf>,

    /// Rules of the access list for IPv6
    #[arg(long, value_name = "FILE")]
    pub(super) rules6: Option<PathBuf>,

    /// Security associations and policies of IPsec, for --app esp: lines as ip xfrm state and ip xfrm policy
    /// take them, or what these print. Nobody but its owner, you or root, may be able to read it. It is read
    /// again when it changes, and at SIGHUP
    #[arg(long, value_name = "FILE")]
    pub(super) sad: Option<PathBuf>,

    /// Flows of the switch, for --app openflow, and its groups and meters, as ovs-ofctl dump-flows,
    /// dump-groups and dump-meters write them, in one file in any order
    #[arg(long, value_name = "FILE")]
    pub(super) flows: Option<PathBuf>,

    /// A controller of the switch, tcp:HOST:PORT, for --app openflow; may be given several times
    #[arg(long, value_name = "tcp:HOST:PORT")]
    pub(super) controller: Vec<String>,

    /// Addresses where the switch listens for controllers, for --app openflow
    #[arg(long, value_name = "ADDR:PORT")]
    pub(super) listen: Vec<String>,

    /// The port LOCAL of the switch, for --app openflow between interfaces: an Ethernet device of this name
    /// is made, by which the host itself sends and receives
    #[arg(long, value_name = "NAME")]
    pub(super) local: Option<String>,

    /// The way of the host's own packets into tunnels, for --app esp between interfaces: a device of this
    /// name is made, and what the host routes to it is sealed as policies say, or dropped
    #[arg(long, value_name = "NAME")]
    pub(super) host_device: Option<String>,

    /// The number that controllers know the switch by, for --app openflow. The default is 1
    #[arg(long, value_name = "N")]
    pub(super) datapath: Option<u64>,

    /// The most flows of the switch, for --app openflow. The default is 4M
    #[arg(long, value_name = "N", value_parser = parse_positive)]
    pub(super) most_flows: Option<usize>,

    /// The most memory for the actions of all flows and groups of the switch, for --app openflow. A flow or a
    /// group over it is refused. The default is 1G
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(super) most_action_bytes: Option<u64>,

    /// The most memory for bundles of changes that controllers have not committed yet, for --app openflow. A
    /// message over it is refused. The default is 256M
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(super) most_bundle_bytes: Option<u64>,

    /// The switch learns addresses and floods while it has no controller. No flow holds then, so --flows
    /// beside it needs --controller or --listen
    #[arg(long)]
    pub(super) standalone: bool,

    /// Seconds that the switch waits for a controller before frames of --in come, without --flows and
    /// --standalone. The default is 30
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(super) wait: Option<Duration>,

    /// The decision on packets that match no rule, or a rule without an action, for --app acl. The default is
    /// permit
    #[arg(long, value_name = "permit|deny", value_parser = parse_otherwise)]
    otherwise: Option<Decision>,

    /// The device that looks up, and with --app esp the one that seals and opens packets. With auto, the
    /// default, a worker that is behind tries both, and keeps the faster
    #[arg(long, value_name = "DEVICE")]
    device: Option<Device>,

    /// Number of workers, each a thread with buffers of its own. The default is 1 for captures, and all cores
    /// for frames that are made. Between interfaces it is one for each queue of the interface with the fewest
    /// queues, as far as there are cores, and 1 with AF_PACKET
    #[arg(long, value_name = "N", value_parser = threads::parser())]
    threads: Option<usize>,

    /// Pins each worker to a core of its own, in the order of the cores that this process may use
    #[arg(long)]
    pin: bool,

    /// Pins workers to these cores, in this order, such as 2,4-7
    #[arg(long, value_name = "LIST", conflicts_with = "pin")]
    cores: Option<String>,

    /// Lets workers do the work of AF_XDP's drivers, in place of interrupts: for cores that do nothing else.
    /// Set napi_defer_hard_irqs and gro_flush_timeout of the interfaces (under /sys/class/net), or interrupts
    /// come too
    #[arg(long)]
    pub(super) busy_poll: bool,

    /// Serves counters, sizes of chunks and latencies for Prometheus, at http://ADDRESS:PORT/metrics.
    /// Without an address at 127.0.0.1; whoever reaches another one can read them
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = parse_metrics)]
    pub(super) metrics: Option<SocketAddr>,

    /// Seconds that frames are made at most, 3 by default without --count, or forwarded between interfaces,
    /// until Ctrl-C or SIGTERM by default
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(super) seconds: Option<Duration>,

    /// Ends after this number of frames that are made, all workers together
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(super) count: Option<u64>,

    /// Frames that are made a second, in millions, all workers together. By default there are always more
    #[arg(long, value_name = "MPPS", value_parser = parse_load, conflicts_with = "interfaces")]
    pub(super) load: Option<f64>,

    /// The time that a frame may stay in the router: chunks are started in time
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = parse_time)]
    deadline: Duration,

    /// Frames of a chunk for the CPU
    #[arg(long, value_name = "N", default_value_t = CHUNK, value_parser = parse_positive)]
    chunk: usize,

    /// Frames of a chunk for a GPU, as far as there are buffers. By default the number that was measured as
    /// the best; with auto a worker without buffers for 8,192 stays on the CPU
    #[arg(long, value_name = "N", value_parser = parse_positive)]
    pub(super) gpu_chunk: Option<usize>,

    /// Buffers of a worker, 2,112 bytes each
    #[arg(long, value_name = "N", default_value = "64k", value_parser = parse_positive)]
    pub(super) buffers: usize,

    /// Largest packet that links take, in bytes from the IP header on. The default is 1500. Interfaces have
    /// their own
    #[arg(long, value_name = "BYTES")]
    pub(super) mtu: Option<u16>,

    /// The router's own IPv4 address: the source of ICMP errors. The default is 192.0.2.254. Interfaces have
    /// their own
    #[arg(long, value_name = "ADDRESS")]
    pub(super) own: Option<Ipv4Addr>,

    /// The router's own IPv6 address. The default is 2001:db8::fe. Interfaces have their own
    #[arg(long, value_name = "ADDRESS")]
    pub(super) own6: Option<Ipv6Addr>,

    /// Tells the ways of the first frames, stage by stage
    #[arg(long, value_name = "N", default_value_t = 0)]
    trace: u64,

    /// Writes frames that are dropped to a capture, an interface for each reason
    #[arg(long, value_name = "FILE")]
    pub(super) drops: Option<PathBuf>,

    /// One JSON object at the end
    #[arg(long)]
    pub(super) json: bool,

    #[command(flatten)]
    pub(super) read: ReadArguments,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl route                              64-byte frames from memory to memory, a synthetic table
  lookupctl route eth0 eth1                    between Linux interfaces, by the kernel's routes
  lookupctl route eth0 eth1 --feed fpm:127.0.0.1:2620
  lookupctl route eth0 eth1 --fib rib.mrt.bz2
  lookupctl route eth0 eth1 --app acl --rules acl.txt
  lookupctl route eth0 eth1 --app esp --sad tunnels.txt
  lookupctl route eth0 eth1 eth2 --app openflow --controller tcp:127.0.0.1:6653
  lookupctl route eth0 eth1 --app names --table names.txt --pending 1m
  lookupctl route --fib rib.mrt.bz2 --in gen:imix --threads 1
  lookupctl route --fib fib.txt --in traffic.pcap --out forwarded.pcapng --drops dropped.pcapng
  lookupctl route --fib fib.txt --in traffic.pcap --trace 3
  lookupctl route --fib fib.txt --in loop:traffic.pcap --threads 1 --seconds 10
  lookupctl route --app acl --rules acl.txt --fib fib.txt --in traffic.pcap
  lookupctl route --app esp --sad tunnels.txt --fib fib.txt --in clear.pcap --out sealed.pcapng
  lookupctl route --app names --table names.txt --in interests.pcap --out out.pcapng
  lookupctl route --app openflow --flows flows.txt --in traffic.pcap --out a.pcapng --out b.pcapng
  lookupctl route --app openflow --controller tcp:127.0.0.1:6653 --in gen:64 --seconds 60

Between interfaces transit is forwarded here; packets for the host itself, ARP, multicast and everything else stay the kernel's, and \
so do packets whose next hop it has not resolved yet. The kernel forwards again as soon as this program ends, however it ends. \
With AF_PACKET on a kernel before Linux 6.6 its own forwarding is off meanwhile, IPv4's at these interfaces and IPv6's of the whole host, \
and kill -9 leaves it off. \
The kernel's firewall, NAT, rp_filter and ip_forward say nothing about what is forwarded here: --app acl filters it. \
With --drops a flood that is dropped fills the disk. Of the rights of root those stay that interfaces need. \
An interface that belongs to a VRF forwards by the VRF's table alone, the others by the tables local and main (--kernel-table). They are followed \
live, and so are interfaces that join a VRF. Rules of policy routing are not followed: with others than the usual ones nothing starts, and \
a warning names one that comes later. Routes for one type of service or from one source are passed over, and a route's own MTU is: a warning \
tells, and the statistics count them.
Routes of --feed fpm take the place of the kernel's in all tables, those of --fib and --feed bmp in the table of interfaces outside of VRFs. \
Links, addresses, neighbours and the links' own routes are the kernel's in any case. A next hop without an interface is where the kernel's \
routes lead to its address; until the kernel has found it, packets are dropped as unresolved. When a feed is lost its routes stay, and age.
With --app esp packets of IPsec to the host are taken, too, and the kernel gets what they are not for. What the host itself sends goes \
into tunnels if it routes it to --host-device: ip route add 10.2.0.0/16 dev NAME src 10.1.0.1. With --app names Interests and link \
packets are taken. Data stays the kernel's, or with --pending goes back to who asked. With --app openflow all frames belong to the \
switch: give its interfaces no addresses, and --local instead. For these three AF_PACKET needs Linux 6.6.
The file of --sad is looked at once a second, and is read again once it has changed and then stayed for a second, or at once at SIGHUP. \
Associations that stay in it, with their keys, keep their sequence numbers and replay windows, others begin or end. A file that can't be \
used, or that others can read, changes nothing, and stderr tells why. So does one with a UDP port that no association had at the start, \
between interfaces.
Each next hop of a table in a file is a neighbour behind one of the sinks: its link-layer address is 02:00:01 and the number of the \
next hop. ICMP errors go back to the source; in pcapng that is the interface in.
The switch's port 1 is the first interface, or the source, whose sinks are ports 2, 3 and so on. Without --flows it waits for a controller before a capture is read. \
A file for --flows of another switch: for WHAT in groups meters flows; do ovs-ofctl -O OpenFlow13 dump-$WHAT BRIDGE; done > flows.txt
Frames that are made come round again, so no more are made than there are buffers.
Each second, and at the end with --json too, the reports say how many chunks the CPU and a GPU got, and why: no_gpu, low_load (ports ran dry), \
trial (both are tried), faster (the one that forwarded more), deadline (a GPU was late too often).
At the end each frame that came in is out, dropped for a reason, with the operating system or controllers, or still queued.
Ctrl-C or SIGTERM ends the run: what was done until then is told, and the exit status is 130 or 143.";

/// The least MTU of IPv4.
const LEAST_MTU: u16 = 68;

/// Frames of a chunk if a GPU looks up everything.
const LARGE: usize = 1 << 14;

/// How frames of interfaces are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Driver {
    /// AF_XDP where it can be used, else AF_PACKET
    Auto,
    /// AF_XDP: no copy by this program, and the kernel forwards again when this program ends
    Xdp,
    /// AF_PACKET: any interface, with a copy each way
    Packet,
}

/// An application: the work that is done on frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum AppName {
    /// Forwards IPv4 and IPv6
    Ip,
    /// Forwards IPv4 and IPv6 behind an access list
    Acl,
    /// Forwards IPv4 and IPv6 through IPsec tunnels: what policies protect is sealed, and what comes through
    /// a tunnel is opened
    Esp,
    /// Forwards NDN Interests
    Names,
    /// A switch that controllers of OpenFlow 1.3 program
    Openflow,
}

impl AppName {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Acl => "acl",
            Self::Esp => "esp",
            Self::Names => "names",
            Self::Openflow => "openflow",
        }
    }
}

/// Where frames come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// Frames made in memory.
    Made(Sizes),
    /// A capture.
    File(PathBuf),
    /// A capture that is kept in memory, round and round.
    Again(PathBuf),
}

fn parse_otherwise(text: &str) -> Result<Decision, String> {
    match text.parse() {
        Ok(decision @ (Decision::Permit | Decision::Deny)) => Ok(decision),
        _ => Err("permit or deny".to_owned()),
    }
}

/// The number of the kernel's main table.
const MAIN: u32 = 254;

fn parse_kernel_table(text: &str) -> Result<u32, String> {
    match text.parse() {
        _ if text == "main" => Ok(MAIN),
        Ok(number @ 1..) => Ok(number),
        _ => Err("not the number of a table, from 1 on, nor main".to_owned()),
    }
}

fn parse_feed(text: &str) -> Result<Followed, String> {
    match text.parse() {
        Ok(feed @ (Followed::Fpm(_) | Followed::Bmp(_))) => Ok(feed),
        _ => Err("fpm:ADDRESS:PORT or bmp:ADDRESS:PORT".to_owned()),
    }
}

/// A rate in millions a second: how many a second that is.
fn parse_load(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(load) if load > 0.0 && load <= 1e6 => Ok(load * 1e6),
        _ => Err(format!("{text:?} is no rate in millions a second, such as 2.5")),
    }
}

/// An address and a port, or a port of this host alone.
fn parse_metrics(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.trim_start_matches(':').parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse().map_err(|_| format!("{text:?} is no port and no ADDRESS:PORT, such as 9464 or [::1]:9464"))
}

fn parse_source(text: &str) -> Result<From, String> {
    match text.strip_prefix("gen:") {
        Some(sizes) => sizes
            .parse()
            .map(From::Made)
            .map_err(|error: wirespeed_router::io::traffic::NoSizes| error.to_string()),
        None => Ok(match text.strip_prefix("loop:") {
            Some(file) => From::Again(file.into()),
            None => From::File(text.into()),
        }),
    }
}

impl Options {
    /// The way that frames of interfaces are taken.
    #[cfg(target_os = "linux")]
    pub(super) fn driver(&self) -> Driver {
        self.driver.unwrap_or(Driver::Auto)
    }

    /// The kernel's table that interfaces outside of VRFs forward by.
    #[cfg(target_os = "linux")]
    pub(super) fn kernel_table(&self) -> u32 {
        self.kernel_table.unwrap_or(MAIN)
    }

    /// The number of the switch.
    pub(super) fn datapath(&self) -> u64 {
        self.datapath.unwrap_or(1)
    }

    /// How long the switch waits for a controller.
    pub(super) fn wait(&self) -> Duration {
        self.wait.unwrap_or(Duration::from_secs(30))
    }

    /// What happens to packets that no rule decides.
    pub(super) fn otherwise(&self) -> Decision {
        self.otherwise.unwrap_or(Decision::Permit)
    }

    /// The largest packet of links.
    pub(super) fn mtu(&self) -> u16 {
        self.mtu.unwrap_or(1500)
    }

    /// The router's own IPv4 address.
    pub(super) fn own(&self) -> Ipv4Addr {
        self.own.unwrap_or(Ipv4Addr::new(192, 0, 2, 254))
    }

    /// The router's own IPv6 address.
    pub(super) fn own6(&self) -> Ipv6Addr {
        self.own6.unwrap_or(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0xfe))
    }

    /// Buffers of a worker.
    pub(super) fn buffers(&self) -> u32 {
        // `check` refuses more.
        u32::try_from(self.buffers).unwrap_or(u32::MAX)
    }

    /// The number of sinks.
    pub(super) fn sinks(&self) -> u16 {
        // `check` refuses more.
        u16::try_from(self.out.len().max(1)).unwrap_or(u16::MAX)
    }

    /// The device that looks up.
    pub(super) fn device(&self) -> Device {
        self.device.unwrap_or(Device::IfAny)
    }

    /// Whether frames come from a capture that is read once.
    pub(super) const fn reads_capture(&self) -> bool {
        self.interfaces.is_empty() && matches!(self.r#in, From::File(_))
    }

    /// Whether frames go to files.
    fn writes(&self) -> bool {
        self.out.iter().any(|out| out != "sink")
    }

    /// Whether frames are made in memory.
    pub(super) fn makes_frames(&self) -> bool {
        matches!(self.r#in, From::Made(_))
    }

    /// The number of workers that don't take frames of interfaces.
    pub(super) fn threads(&self) -> usize {
        match self.r#in {
            From::File(_) => 1,
            _ if self.writes() => 1,
            From::Made(_) | From::Again(_) => self.threads.unwrap_or_else(threads::all_cores),
        }
    }

    /// How long the workers run at most.
    pub(super) fn seconds(&self) -> Duration {
        match self.r#in {
            // To the end of the capture.
            From::File(_) => Duration::MAX,
            From::Made(_) | From::Again(_) => {
                let or_else = if self.count.is_some() { Duration::MAX } else { Duration::from_secs(3) };
                self.seconds.unwrap_or(or_else)
            }
        }
    }

    /// How long frames are forwarded between interfaces; without an end if `None`.
    pub(super) fn live_seconds(&self) -> Option<Duration> {
        self.seconds
    }

    /// The number of workers that was asked for.
    pub(super) fn live_threads(&self) -> Option<usize> {
        self.threads
    }

    /// The cores that workers may have.
    #[cfg(target_os = "linux")]
    pub(super) fn live_cores(&self) -> Result<usize> {
        Ok(self.cores(1)?.map_or_else(threads::all_cores, |cores| cores.len()))
    }

    /// Whether workers are pinned.
    #[cfg(not(target_os = "linux"))]
    pub(super) const fn pins(&self) -> bool {
        self.pin || self.cores.is_some()
    }

    /// The cores that this number of workers is pinned to, if they are.
    #[cfg(target_os = "linux")]
    pub(super) fn cores(&self, workers: usize) -> Result<Option<Cores>> {
        let cores = match &self.cores {
            Some(list) => list.parse::<Cores>().with_context(|| format!("--cores {list}"))?,
            None if self.pin => Cores::allowed()?,
            None => return Ok(None),
        };
        cores.check()?;
        if cores.len() < workers {
            bail!(
                "{workers} workers need a core each, and there are {} ({cores}): see --threads",
                cores.len()
            );
        }
        Ok(Some(cores))
    }

    pub(super) fn settings(&self) -> Settings {
        Settings {
            chunk: self.chunk,
            gpu_chunk: match self.device() {
                Device::Cpu => None,
                // Tunnels have packets to fill a GPU with, not keys: the application knows how many.
                Device::Gpu if self.app == AppName::Esp => self.gpu_chunk,
                Device::Gpu => Some(self.gpu_chunk.unwrap_or(LARGE)),
                Device::Auto | Device::IfAny => self.gpu_chunk,
            },
            deadline: self.deadline,
            trace: self.trace,
        }
    }
}
