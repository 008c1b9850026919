//! [`lanes`]: OpenFlow switches by numbers of flows and of masks: ours from memory to memory, and ours beside
//! Open vSwitch in userspace between virtual interfaces. There a controller adds flows to both over loopback,
//! too, while frames come: then the rate is that of the flows.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;

use anyhow::{Context, Result};
use wirespeed_fib::synth::rng::Rng;

use super::live::{self, CONTROLLER, Measure, Running, World, says};
use super::memory;
use super::programs::{Programs, good};
use super::race::Lane;

/// Flows and masks of the switches from memory to memory.
const GRID: [(usize, usize); 9] = [
    (1_000, 8),
    (1_000, 64),
    (1_000, 512),
    (16_384, 8),
    (16_384, 64),
    (16_384, 512),
    (131_072, 8),
    (131_072, 64),
    (131_072, 512),
];
/// Exact flows of the switch from memory to memory, and flows and masks beneath them.
const EXACT: u32 = 1 << 20;
const WILDCARDS: (usize, usize) = (1_000, 64);
/// Flows and masks of the switches between interfaces.
const LIVE: (usize, usize) = (1_000, 64);

/// The switches. Files of flows go to the folder.
pub fn lanes(programs: &Programs, folder: &Path, seconds: f64) -> Result<Vec<Lane>> {
    let mut lanes = Vec::new();
    for (flows, masks) in GRID {
        let path = write(folder, (flows, masks), "IN_PORT")?;
        let words = format!("--in gen:64 --app openflow --flows {}", path.display());
        lanes.push(memory::ours(programs, format!("wirespeed-{flows}-flows-{masks}-masks"), &words, seconds));
    }
    lanes.push(exact_flows(programs, folder, seconds)?);
    let path = write(folder, LIVE, "output:2")?;
    let shown = format!("flows-{}-{}-output", LIVE.0, LIVE.1);
    let rate = move |world: &World, programs: &Programs| world.rate(&programs.blast, seconds);
    let changes = |world: &World, programs: &Programs| world.changes(&programs.blast);
    let measures: [(&str, Box<Measure>, [&str; 2]); 2] = [
        ("", Box::new(rate), ["wirespeed-af_packet", "ovs-netdev"]),
        (" with a controller that adds flows", Box::new(changes), ["wirespeed-flow-mods", "ovs-flow-mods"]),
    ];
    for (how, measure, [our_name, their_name]) in measures {
        let measure: Rc<Measure> = measure.into();
        let flows = path.clone();
        let ours = move |world: &World, programs: &Programs| {
            let mut command = world.command("middle", &programs.lookupctl);
            command.args(["route", "ml", "mr", "--driver", "packet", "--app", "openflow", "--flows"]);
            command.arg(&flows).arg(format!("--listen=127.0.0.1:{CONTROLLER}"));
            let mut switch = Running(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?);
            let output = switch.0.stderr.take().context("piped")?;
            Ok(says(output, "mr: ").map(|()| vec![switch]))
        };
        let (flows, folder) = (path.clone(), folder.join("ovs"));
        let theirs = move |world: &World, _: &Programs| open_vswitch(world, &folder, &flows);
        let words = "lookupctl route ml mr --driver packet --app openflow --flows";
        let command = format!("{words} {shown} --listen 127.0.0.1:{CONTROLLER}{how}");
        let (one, other) = (Rc::clone(&measure), measure);
        let of = |measure: Rc<Measure>| {
            Box::new(move |world: &World, programs: &Programs| measure(world, programs))
        };
        lanes.push(live::lane(programs, our_name, command, Box::new(ours), of(one)));
        let command = format!("ovs-ofctl add-flows br0 {shown}{how}");
        lanes.push(live::lane(programs, their_name, command, Box::new(theirs), of(other)));
    }
    Ok(lanes)
}

/// A million exact flows, one for each destination of as many frames, above a thousand wildcards.
fn exact_flows(programs: &Programs, folder: &Path, seconds: f64) -> Result<Lane> {
    let path = folder.join("flows-exact");
    let mut text = flows(WILDCARDS.0, WILDCARDS.1, "IN_PORT");
    for number in 0..EXACT {
        let to = std::net::Ipv4Addr::from_bits(10 << 24 | number);
        let links = "in_port=1,dl_src=02:00:00:00:ff:fe,dl_dst=02:00:00:00:00:00";
        writeln!(text, "priority=65000,udp,{links},nw_src=192.0.2.1,nw_dst={to},tp_dst=53 actions=IN_PORT")
            .expect("a string takes all");
    }
    std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    let words = format!("--in gen:64 --buffers {EXACT} --app openflow --flows {}", path.display());
    Ok(memory::ours(programs, format!("wirespeed-{EXACT}-exact-flows"), &words, seconds))
}

/// Starts Open vSwitch with a bridge in userspace between both interfaces, or says why it does not start.
fn open_vswitch(world: &World, folder: &Path, flows: &Path) -> Result<Result<Vec<Running>, String>> {
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !["ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl"].into_iter().all(is_there) {
        return Ok(Err("it needs the package openvswitch-switch".to_owned()));
    }
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    let file = |name: &str| folder.join(name).display().to_string();
    let command = |program: &str, words: &[&str]| {
        let mut command = world.command("middle", Path::new(program));
        command.envs([("OVS_RUNDIR", folder), ("OVS_DBDIR", folder), ("OVS_LOGDIR", folder)]).args(words);
        command
    };
    let start = |program: &str, words: &[&str]| -> Result<Running> {
        let mut command = command(program, words);
        Ok(Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?))
    };
    let (base, socket) = (file("conf.db"), format!("unix:{}", file("db.sock")));
    let schema = "/usr/share/openvswitch/vswitch.ovsschema";
    good(&mut command("ovsdb-tool", &["create", &base, schema]))?;
    let server = start("ovsdb-server", &[&base, &format!("--remote=p{socket}")])?;
    let vsctl = |words: &str| -> Result<()> {
        let words: Vec<&str> = words.split_whitespace().collect();
        let database = format!("--db={socket}");
        good(&mut command("ovs-vsctl", &[&[&database, "--retry", "--timeout=20"][..], &words].concat()))?;
        Ok(())
    };
    vsctl("--no-wait init")?;
    let switch = start("ovs-vswitchd", &[&socket])?;
    // The kernel must not forward, too.
    world.forward("middle", false)?;
    let ports = "-- add-port br0 ml -- set interface ml ofport_request=1 \
                 -- add-port br0 mr -- set interface mr ofport_request=2";
    vsctl(&format!("add-br br0 -- set bridge br0 datapath_type=netdev protocols=OpenFlow13 {ports}"))?;
    // Without a controller it goes on with its flows, and a controller may come.
    vsctl(&format!("set-fail-mode br0 secure -- set-controller br0 ptcp:{CONTROLLER}:127.0.0.1"))?;
    let flows = flows.display().to_string();
    good(&mut command("ovs-ofctl", &["-O", "OpenFlow13", "add-flows", "br0", &flows]))?;
    Ok(Ok(vec![switch, server]))
}

/// Writes flows to a file of the folder.
fn write(folder: &Path, (count, masks): (usize, usize), action: &str) -> Result<PathBuf> {
    let name = action.split(':').next().unwrap_or(action).to_lowercase();
    let path = folder.join(format!("flows-{count}-{masks}-{name}"));
    std::fs::write(&path, flows(count, masks, action)).with_context(|| path.display().to_string())?;
    Ok(path)
}

/// So many flows of so many masks that match the frames which `lookupctl` makes, at many priorities, and one
/// for all frames: UDP from 192.0.2.1 to 10.0.0.0/15, port 53.
fn flows(count: usize, masks: usize, action: &str) -> String {
    let macs = ["", "02:00:00:00:00:00/ff:00:00:00:00:00", "02:00:00:00:00:00/ff:ff:00:00:00:00"];
    let macs = macs.into_iter().chain(["02:00:00:00:00:00/ff:ff:ff:00:00:00"]).map(str::to_owned);
    let macs: Vec<String> = macs.collect();
    let mut all = Vec::new();
    for to in 16..32 {
        for from in [0, 8, 16, 24, 32] {
            for has_port in [false, true] {
                all.extend(macs.iter().map(|mac| (to, from, has_port, mac)));
            }
        }
    }
    let mut rng = Rng::new((count * 1000 + masks) as u64);
    for last in (1..all.len()).rev() {
        all.swap(last, usize::try_from(rng.below(last as u64 + 1)).expect("an index"));
    }
    let prefix = |address: u32, length: u32| {
        let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
        format!("{}/{length}", std::net::Ipv4Addr::from_bits(address & mask))
    };
    let mut text = String::new();
    for at in 0..count {
        let (to, from, has_port, mac) = all[at % masks.min(all.len())];
        let address = 10 << 24 | u32::try_from(rng.below(1 << 17)).expect("17 bits");
        write!(text, "priority={},udp,nw_dst={}", 2 + rng.below(59_998), prefix(address, to))
            .expect("a string takes all");
        if from > 0 {
            write!(text, ",nw_src={}", prefix(0xc000_0201, from)).expect("a string takes all");
        }
        text.push_str(if has_port { ",tp_dst=53" } else { "" });
        if !mac.is_empty() {
            write!(text, ",dl_dst={mac}").expect("a string takes all");
        }
        writeln!(text, " actions={action}").expect("a string takes all");
    }
    writeln!(text, "priority=1 actions={action}").expect("a string takes all");
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn flows_have_as_many_masks_as_wanted() {
        for (count, masks) in [(1_000, 8), (1_000, 64), (16_384, 512)] {
            let text = flows(count, masks, "IN_PORT");
            assert_eq!(text.lines().count(), count + 1);
            // Lengths of prefixes, and which fields there are.
            let mask = |line: &str| {
                let fields = line.split(' ').next().unwrap_or_default().split(',').skip(1);
                let of = |field: &str| match field.split_once('/') {
                    Some((name, mask)) => format!("{}/{mask}", &name[..6]),
                    None => field.to_owned(),
                };
                fields.map(of).collect::<Vec<_>>().join(",")
            };
            let found: BTreeSet<String> = text.lines().take(count).map(mask).collect();
            assert_eq!(found.len(), masks);
        }
    }
}
