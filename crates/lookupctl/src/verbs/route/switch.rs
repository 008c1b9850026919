//! `route --app openflow`: a switch, its flows from a file or from controllers.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use wirespeed_openflow::flows::{self, Loaded};
use wirespeed_openflow::{Channel, Fail, PortInfo, Switch, SwitchOptions, Target};

use super::options::Options;
use crate::device::Device;
use crate::interrupt::is_interrupted;

/// A switch with its controllers.
pub(super) struct OpenFlow {
    pub(super) switch: Switch,
    channel: Channel,
}

impl OpenFlow {
    /// Makes the switch for so many workers with these ports, whose numbers are 1, 2 and so on, and LOCAL.
    pub(super) fn open(
        options: &Options,
        ports: Vec<PortInfo>,
        local: Option<PortInfo>,
        workers: usize,
    ) -> Result<Self> {
        let usual = SwitchOptions::default();
        let or_usual =
            |most: Option<u64>, usual| most.map_or(usual, |most| usize::try_from(most).unwrap_or(usize::MAX));
        let switch = Switch::new(SwitchOptions {
            most_flows: options.most_flows.unwrap_or(usual.most_flows),
            most_bytes: or_usual(options.most_action_bytes, usual.most_bytes),
            most_bundle_bytes: or_usual(options.most_bundle_bytes, usual.most_bundle_bytes),
            ports,
            local,
            datapath: options.datapath(),
            workers,
            device: match options.device() {
                Device::Gpu => wirespeed::Device::Gpu,
                Device::Auto | Device::IfAny => wirespeed::Device::Auto,
                Device::Cpu => wirespeed::Device::Cpu,
            },
            fail: if options.standalone { Fail::Standalone } else { Fail::Secure },
            ..usual
        })?;
        if let Some(file) = &options.flows {
            let name = file.display();
            let text = std::fs::read_to_string(file).with_context(|| format!("{name}"))?;
            let Loaded { flows, groups, meters, .. } =
                flows::load(&switch, &text).with_context(|| format!("{name}"))?;
            switch.settle();
            eprintln!("flows from {name}: {flows}, groups: {groups}, meters: {meters}");
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
        Ok(Self { switch, channel })
    }

    /// Waits for a controller, which has to add flows before frames come if no flows are there otherwise: a
    /// capture is read only once.
    pub(super) fn wait(&self, options: &Options) {
        if options.flows.is_some() || options.standalone {
            return;
        }
        let has_none = || self.channel.controllers() == 0;
        let until = Instant::now() + options.wait();
        while has_none() && Instant::now() < until && !is_interrupted() {
            std::thread::sleep(Duration::from_millis(20));
        }
        if has_none() {
            eprintln!("no controller within {} s: the switch drops all frames", options.wait().as_secs_f64());
            return;
        }
        // Its first flows are on their way.
        std::thread::sleep(Duration::from_millis(500));
    }
}
