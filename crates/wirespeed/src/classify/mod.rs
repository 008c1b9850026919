//! Packet classification: finds the rule that a packet's header fields match.
//!
//! ```text
//! rules, files, images ──► builder ──► Classifier      one writer: apply, insert, set, remove, save
//!                                          └─ reader() ──► RuleReader      shared by threads: lookup, find, lookup_batch, match_batch, match_frames
//! values ──► Labels::intern ──► index ─ ─ a rule's action ─ ─ ► RuleMatch { number, action } ──► Labels::get ──► &value
//! ```
//!
//! A packet's header fields are a [`Tuple`]: the 5-tuple of [`Ipv4Tuple`] or [`Ipv6Tuple`], the 12 fields of
//! [`OpenFlowTuple`], or the fields of OpenFlow 1.3 in an [`OpenFlow13Tuple`]. A [`Rule`] tests them by masks
//! and ranges, and has a priority and an action. A lookup finds the best rule that matches: the highest
//! priority, and among equals the lowest number. The result is the rule's number, from 1, and its action in
//! the same state of the rules. The action is an index, [`NextHop`](crate::NextHop), as with addresses;
//! [`Labels`](crate::Labels) map it to a value.
//!
//! # An access list in a proxy
//!
//! The program checks connections of IPv4 and IPv6 against a firewall's rules. A connection that no rule
//! allows is denied. `examples/acl_proxy.rs` is a complete program.
//!
//! ```
//! use std::net::SocketAddr;
//! use std::str::FromStr;
//!
//! use wirespeed::prelude::*;
//!
//! #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
//! enum Verdict {
//!     Allow,
//!     Deny,
//! }
//!
//! impl FromStr for Verdict {
//!     type Err = String;
//!
//!     fn from_str(action: &str) -> Result<Self, String> {
//!         match action {
//!             "ACCEPT" | "accept" => Ok(Self::Allow),
//!             "DROP" | "REJECT" | "drop" | "reject" => Ok(Self::Deny),
//!             other => Err(format!("{other} is no verdict")),
//!         }
//!     }
//! }
//!
//! # let dir = tempfile::tempdir()?;
//! # let saved = dir.path().join("rules.v4");
//! std::fs::write(
//!     &saved,
//!     "*filter\n:INPUT DROP [0:0]\n-A INPUT -i lo -j ACCEPT\n-A INPUT -s 192.0.2.66 -j DROP\n\
//!      -A INPUT -s 192.0.2.0/24 -p tcp -m multiport --dports 80,8000:8080 -j ACCEPT\nCOMMIT\n",
//! )?;
//!
//! let verdicts = Labels::new();
//! let mut v4 = Classifier::<Ipv4Tuple>::builder()
//!     .assume("in=eth0") // no address tells the interface: connections come from outside
//!     .file(&saved, &verdicts) // what `iptables-save` wrote
//!     .build()?;
//! let allowed: Rule<Ipv6Tuple> = "src=2001:db8::/32 dport=443 proto=tcp".parse()?;
//! let v6 = Classifier::<Ipv6Tuple>::builder().labelled_rules(&verdicts, [(allowed, Verdict::Allow)]).build()?;
//!
//! let (v4_reader, v6_reader) = (v4.reader(), v6.reader()); // for all threads of the proxy
//! let check = |from: &str, to: &str| -> Result<Verdict, std::net::AddrParseError> {
//!     const TCP: u8 = 6;
//!     let (from, to): (SocketAddr, SocketAddr) = (from.parse()?, to.parse()?);
//!     let (sport, dport) = (from.port(), to.port());
//!     // Canonical: on a socket of IPv6 those of IPv4 are mapped, and are to meet the rules of IPv4.
//!     let found = match (from.ip().to_canonical(), to.ip().to_canonical()) {
//!         (IpAddr::V4(from), IpAddr::V4(to)) => v4_reader.find(&Ipv4Tuple::new(from, to, sport, dport, TCP)),
//!         (IpAddr::V6(from), IpAddr::V6(to)) => v6_reader.find(&Ipv6Tuple::new(from, to, sport, dport, TCP)),
//!         _ => None,
//!     };
//!     let verdict = found.and_then(|found| verdicts.get(found.action));
//!     Ok(verdict.map_or(Verdict::Deny, |verdict| *verdict))
//! };
//! assert_eq!(check("192.0.2.7:40000", "198.51.100.1:8001")?, Verdict::Allow);
//! assert_eq!(check("[::ffff:192.0.2.66]:40000", "198.51.100.1:80")?, Verdict::Deny);
//! assert_eq!(check("192.0.2.7:40000", "198.51.100.1:22")?, Verdict::Deny); // by the chain's policy
//! assert_eq!(check("[2001:db8::7]:40000", "[2001:db8:1::1]:443")?, Verdict::Allow);
//! assert_eq!(check("[2001:db9::7]:40000", "[2001:db8:1::1]:443")?, Verdict::Deny); // by no rule
//!
//! // The administrator bans an address. Higher priorities come first, whatever the number.
//! let deny = verdicts.intern(Verdict::Deny)?;
//! let ban = v4.insert("src=192.0.2.7 priority=1".parse::<Rule<_>>()?.with_action(deny.0))?;
//! assert_eq!(check("192.0.2.7:40000", "198.51.100.1:8001")?, Verdict::Deny);
//! v4.remove(ban)?;
//! assert_eq!(check("192.0.2.7:40000", "198.51.100.1:8001")?, Verdict::Allow);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Rules that a packet's fields don't decide
//!
//! Firewalls test more than a tuple holds: the state of a connection, an interface, a mark. A file with such
//! a rule is refused, with the line and the reason. A fact that holds for all packets, for example `ct=new`
//! or `in=eth0`, can be [assumed](ClassifierBuilder::assume), and decides such rules.
//! [`leave_out`](ClassifierBuilder::leave_out) leaves the undecided rules out, and keeps them as
//! [doubts](Classifier::doubts). Then ask for [`verdict`](RuleReader::verdict)s. A verdict is
//! [uncertain](RuleVerdict::Uncertain) if a rule that was left out could change it.
//!
//! # An OpenFlow-like switch
//!
//! Frames arrive on ports in bursts. Flows say how to handle them, and change while traffic runs.
//! `examples/openflow_switch.rs` is a complete program.
//!
//! ```
//! use wirespeed::prelude::*;
//!
//! # let dir = tempfile::tempdir()?;
//! # let dumped = dir.path().join("flows.txt");
//! std::fs::write(
//!     &dumped,
//!     "priority=200,tcp,tp_dst=23 actions=drop\n\
//!      priority=100,dl_dst=02:00:00:00:00:01 actions=output:1\n\
//!      priority=100,dl_dst=02:00:00:00:00:02 actions=output:2\n\
//!      priority=0 actions=CONTROLLER:65535\n",
//! )?;
//! let actions = Labels::<String>::new();
//! let mut flows = Classifier::<OpenFlowTuple>::builder()
//!     .file(&dumped, &actions) // what `ovs-ofctl dump-flows` wrote
//!     .build()?;
//! let reader = flows.reader(); // one a forwarding thread
//!
//! let mut telnet = vec![0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x08, 0x00]; // to, from, IPv4
//! telnet.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]); // TCP
//! telnet.extend([0x9c, 0x40, 0, 23, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0]); // 40000 to 23
//! let mut web = telnet.clone();
//! web[37] = 80;
//! let burst = [(1, &telnet[..]), (1, &web), (3, &web[..14])];
//! let mut found = vec![Ok(None); burst.len()];
//! let mut forward = || {
//!     let known = actions.enter(); // before the lookup: then what it finds resolves
//!     reader.match_frames(&burst, &mut found); // all of a burst by one state of the flows
//!     let action = |found: &Result<Option<RuleMatch>, _>| {
//!         let found = found.as_ref().ok()?.as_ref()?; // a frame that is none, or that no flow is for
//!         known.get(found.action).cloned()
//!     };
//!     found.iter().map(action).collect::<Vec<_>>()
//! };
//! let some = |action: &str| Some(action.to_owned());
//! assert_eq!(forward(), [some("drop"), some("output:2"), some("output:2")]);
//!
//! // The controller moves a host to another port and takes the first flow out. Frames see both or neither.
//! let host = RuleNumber::new(3).ok_or("no number")?;
//! let moved = flows.rules().rule(3).ok_or("no flow")?.clone();
//! let elsewhere = actions.intern("output:7".to_owned())?;
//! flows.apply(&[RuleUpdate::Set(host.get(), moved.with_action(elsewhere.0)), RuleUpdate::Remove(1)])?;
//! assert_eq!(forward(), [some("output:7"), some("output:7"), some("output:7")]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Images
//!
//! A compiled table can be saved as an image, with its rules and labels. A service that opens an image starts
//! at once.
//!
//! ```
//! use wirespeed::prelude::*;
//!
//! # let dir = tempfile::tempdir()?;
//! # let image = dir.path().join("rules.img");
//! let labels = Labels::new();
//! let rule: Rule<Ipv4Tuple> = "dport=443 proto=tcp".parse()?;
//! Classifier::builder().labelled_rules(&labels, [(rule, "web".to_owned())]).build()?.save_labelled(&image, &labels)?;
//!
//! let packet: Ipv4Tuple = "dport=443 proto=tcp".parse()?;
//! let (reader, labels) = (RuleReader::open(&image)?, Labels::<String>::open(&image)?); // looks up alone
//! let found = reader.find(&packet).ok_or("nothing")?;
//! assert_eq!(labels.get(found.action).as_deref().map(String::as_str), Some("web"));
//! let mut classifier = Classifier::<Ipv4Tuple>::open(&image)?; // takes updates too
//! classifier.remove(found.number)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A file that changes
//!
//! [`load`](Classifier::load) replaces all rules and their actions in one step, from a file or an image;
//! [`replace`](Classifier::replace) does it from memory. A [`Reloader`](crate::Reloader) calls `load` when
//! the file has changed.
//!
//! # On a GPU
//!
//! One call of the builder brings rules to GPUs, as with addresses and names:
//! [`device`](ClassifierBuilder::device). Batches go to the CPU or to a GPU. Updates reach both. If a GPU
//! fails, the CPU answers.
//!
//! # What it costs
//!
//! [`match_batch`](RuleReader::match_batch) looks up every number's action in a hash map. On one core of a
//! Zen 4 it reached 70 to 85 % of the rate of [`lookup_batch`](RuleReader::lookup_batch), on ClassBench sets
//! in batches of 1,024: 85 instead of 109 M/s for acl1 of 1 K rules, 35 instead of 50 for 100 K. Single
//! lookups run at 5 to 15 M/s there. Updates change the actions of both copies: 2.5 M/s at 1 K and 10 K
//! rules, 1.3 M/s at 100 K, in calls of 2,048. An image of 100 K rules opens in 83 ms.

mod builder;
mod classifier;
mod facts;
mod found;
pub mod image_file;
mod reader;
mod replace;
pub mod tuple_name;
mod tuple_start;
mod verdict;

pub use crate::batches::RuleMatches;
pub use builder::ClassifierBuilder;
#[cfg(all(feature = "names", feature = "text"))]
pub(crate) use builder::read_file;
pub use classifier::Classifier;
pub use facts::{Facts, RuleFacts};
pub use found::RuleMatch;
pub use reader::{RuleGuard, RuleReader};
pub use tuple_name::TupleName;
pub use verdict::RuleVerdict;

/// A queue of batches of tuples, several under way at once.
pub type RulePipeline<'k, T> = crate::Pipeline<'k, T>;

pub use wirespeed_classify::{
    Applied, BuildError, Engine, FieldRange, FrameError, Ipv4Tuple, Ipv6Tuple, Lookup, OpenFlow13Tuple,
    OpenFlowTuple, Pattern, Rule, RuleError, RuleNumber, RuleSet, RuleTextError, RuleUpdate, Step, Tuple,
    TupleError, UpdateError, VLAN_NONE, oracle, read, tuple, write,
};

#[cfg(feature = "synth")]
pub use wirespeed_classify::generate;

wirespeed_table::one_copy! {
    T: crate::engine::RuleTuple = Ipv4Tuple, Ipv6Tuple, OpenFlowTuple, OpenFlow13Tuple;
    ClassifierBuilder::<T>::build, image_file::save::<T>, image_file::RuleImageFile::rules::<T>,
}
