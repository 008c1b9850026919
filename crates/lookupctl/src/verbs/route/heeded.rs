//! Options that nothing would heed are refused.

use anyhow::Result;

use super::options::{AppName, From, Options};
use crate::device::Device;
use crate::refuse::refuse;

impl Options {
    /// Refuses options that are for interfaces, for frames of a source, for another application or for
    /// another device than what is asked for.
    pub(super) fn check_heeded(&self) -> Result<()> {
        match self.interfaces.is_empty() {
            true => self.check_without_interfaces()?,
            false => {
                let own =
                    [("mtu", self.mtu.is_some()), ("own", self.own.is_some()), ("own6", self.own6.is_some())];
                refuse(&own, "is for frames of --in: interfaces have addresses and an MTU of their own")?;
                let wait = [("wait", self.wait.is_some())];
                refuse(&wait, "is for frames of --in: those of interfaces don't wait")?;
            }
        }
        if self.controller.is_empty() && self.listen.is_empty() {
            let bundles = [("most-bundle-bytes", self.most_bundle_bytes.is_some())];
            refuse(&bundles, "is for bundles of controllers: with --controller or --listen")?;
        }
        if self.fib.is_none() {
            refuse(&self.read.given(), "is for a table that --fib names, and none is given")?;
        }
        let origins = [("origins", self.read.takes_origins())];
        refuse(&origins, "is for lookups: frames are sent to next hops")?;
        let of_gpu = [("gpu-chunk", self.gpu_chunk.is_some())];
        match self.device() {
            Device::Cpu => refuse(&of_gpu, "is for a GPU: it means nothing with --device cpu"),
            Device::Auto | Device::Gpu | Device::IfAny => Ok(()),
        }
    }

    fn check_without_interfaces(&self) -> Result<()> {
        // The parser takes it that whoever gives --in wants no interfaces, so it can't ask for them.
        let of_interfaces = [
            ("driver", self.driver.is_some()),
            ("feed", self.feed.is_some()),
            ("kernel-table", self.kernel_table.is_some()),
            ("local", self.local.is_some()),
            ("host-device", self.host_device.is_some()),
            ("busy-poll", self.busy_poll),
        ];
        refuse(&of_interfaces, "is for forwarding between interfaces, and no IF is given")?;
        if matches!(self.r#in, From::File(_)) {
            let seconds = [("seconds", self.seconds.is_some())];
            refuse(&seconds, "is for frames that are made, and interfaces: a capture is read to its end")?;
        }
        let own = [("own", self.own.is_some()), ("own6", self.own6.is_some())];
        match self.app {
            AppName::Ip | AppName::Acl | AppName::Esp => Ok(()),
            AppName::Names => refuse(&own, "is for --app ip, acl and esp: names have no ICMP errors"),
            AppName::Openflow => {
                let none = "is for --app ip, acl and esp: a switch has no address and no MTU";
                refuse(&[own[0], own[1], ("mtu", self.mtu.is_some())], none)?;
                let has_flows = self.flows.is_some() || self.standalone;
                let wait = [("wait", self.wait.is_some() && has_flows)];
                refuse(
                    &wait,
                    "is for a switch that has to wait for a controller: not with --flows or --standalone",
                )
            }
        }
    }
}
