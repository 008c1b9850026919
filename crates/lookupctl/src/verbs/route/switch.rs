//! `route --app openflow`: a switch, its flows from a file or from controllers, and its frames from captures
//! or made in memory.

use anyhow::{Context, Result, bail};
use wirespeed_openflow::{Channel, Fail, Switch, SwitchOptions, Target, flows};

use super::options::Options;
use crate::device::Device;

/// A switch with its controllers.
pub(super) struct OpenFlow {
    pub(super) switch: Switch,
    _channel: Channel,
}

impl OpenFlow {
    /// Makes the switch: port 1 is the source, and the sinks follow.
    pub(super) fn open(options: &Options) -> Result<Self> {
        let names =
            (0..=options.sinks()).map(|at| if at == 0 { "in".to_owned() } else { format!("out{at}") });
        let switch = Switch::new(SwitchOptions {
            datapath: options.datapath,
            workers: options.threads(),
            device: match options.device() {
                Device::Gpu => wirespeed::Device::Gpu,
                Device::Auto | Device::IfAny => wirespeed::Device::Auto,
                Device::Cpu => wirespeed::Device::Cpu,
            },
            fail: if options.standalone { Fail::Standalone } else { Fail::Secure },
            ..SwitchOptions::with_ports(names)
        })?;
        if let Some(file) = &options.flows {
            let name = file.display();
            let text = std::fs::read_to_string(file).with_context(|| format!("{name}"))?;
            let count = flows::load(&switch, &text).with_context(|| format!("{name}"))?;
            eprintln!("{count} flows from {name}");
        }
        let mut targets = Vec::new();
        for address in &options.controller {
            match address.parse()? {
                target @ Target::Connect(_) => targets.push(target),
                Target::Listen(_) => {
                    bail!("--controller {address}: tcp:HOST:PORT; to listen there is --listen")
                }
            }
        }
        for address in &options.listen {
            targets.push(format!("listen:{address}").parse().with_context(|| format!("--listen {address}"))?);
        }
        let channel = Channel::open(&switch, &targets)?;
        for address in channel.listening() {
            eprintln!("controllers are listened for at {address}");
        }
        if options.flows.is_none() && !options.standalone {
            wait(options, &channel);
        }
        Ok(Self { switch, _channel: channel })
    }
}

/// Waits for a controller, which has to add flows before frames come: a capture is read only once.
fn wait(options: &Options, channel: &Channel) {
    use std::time::{Duration, Instant};
    let until = Instant::now() + options.wait;
    while channel.controllers() == 0 && Instant::now() < until && !crate::interrupt::is_interrupted() {
        std::thread::sleep(Duration::from_millis(20));
    }
    if channel.controllers() == 0 {
        eprintln!("no controller within {} s: the switch drops all frames", options.wait.as_secs_f64());
        return;
    }
    // Its first flows are on their way.
    std::thread::sleep(Duration::from_millis(500));
}
