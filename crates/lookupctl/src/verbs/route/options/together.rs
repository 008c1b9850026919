//! The options of the router that do not go together: each is refused with its reason.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::{AppName, From, LEAST_MTU, Options};
use crate::followed::Followed;
use crate::output::is_no_input;

/// Whether an address is one of a host, so that packets may come from it.
fn is_of_host(address: IpAddr) -> bool {
    let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !(address.is_unspecified() || address.is_loopback() || address.is_multicast() || is_broadcast)
}

impl Options {
    /// Refuses options that do not go together.
    pub(in crate::verbs::route) fn check(&self) -> Result<()> {
        if self.buffers > 1 << 24 {
            bail!("--buffers {} is too many: at most {} fit the numbers of buffers", self.buffers, 1 << 24)
        }
        if self.mtu() < LEAST_MTU {
            bail!("--mtu {} is too small: each link takes {LEAST_MTU} bytes of IPv4 (RFC 791)", self.mtu())
        }
        if !is_of_host(self.own().into()) || !is_of_host(self.own6().into()) {
            bail!("--own and --own6 are the addresses of a host: errors come from them")
        }
        if self.out.len() > 1000 {
            bail!("--out is given {} times, and the most is 1000", self.out.len())
        }
        if !self.interfaces.is_empty() {
            return self.check_live();
        }
        self.check_app()?;
        self.check_heeded()?;
        self.check_files()?;
        match &self.r#in {
            From::File(_) if self.threads.is_some_and(|threads| threads > 1) => {
                bail!("--threads is for frames that are made: a capture keeps its order with one worker")
            }
            From::File(_) if self.count.is_some() => bail!("--count is for frames that are made"),
            From::File(_) if self.load.is_some() => bail!("--load is for frames that are made"),
            _ if self.writes() && self.threads.is_some_and(|threads| threads > 1) => {
                bail!("--threads is for sinks: a capture that is written keeps its order with one worker")
            }
            From::Made(_) | From::Again(_)
                if self.writes() && self.count.is_none() && self.seconds.is_none() =>
            {
                bail!("--out FILE of frames from memory has no end: give --count, or --seconds")
            }
            From::Made(_) if self.app == AppName::Names => {
                bail!("--app names needs a capture of Interests: --in FILE")
            }
            _ => {}
        }
        Ok(())
    }

    /// Refuses options of other applications, and an application without what it works by.
    fn check_app(&self) -> Result<()> {
        use AppName::{Acl, Esp, Ip, Names, Openflow};
        let has_rules = self.rules.is_some() || self.rules6.is_some();
        let has_controllers = !self.controller.is_empty() || !self.listen.is_empty();
        let is_switch = self.flows.is_some() || has_controllers || self.standalone;
        match self.app {
            Names if self.table.is_none() => bail!("--app names needs a table of names: --table FILE"),
            Acl if !has_rules => bail!("--app acl needs rules: --rules FILE, or --rules6 FILE"),
            Esp if self.sad.is_none() => bail!("--app esp needs associations and policies: --sad FILE"),
            Openflow if !is_switch => {
                bail!("--app openflow needs --flows FILE, --controller, --listen, or --standalone")
            }
            Openflow if self.standalone && self.flows.is_some() && !has_controllers => bail!(
                "--flows with --standalone needs --controller or --listen: \
                 a switch that stands alone learns addresses, and no flow holds"
            ),
            _ => {}
        }
        let options: [(bool, &str, &[AppName]); 13] = [
            (self.table.is_some(), "--table is for --app names", &[Names]),
            (self.pending.is_some(), "--pending is for --app names", &[Names]),
            (self.local.is_some(), "--local is for --app openflow", &[Openflow]),
            (self.host_device.is_some(), "--host-device is for --app esp", &[Esp]),
            (self.otherwise.is_some(), "--otherwise is for --app acl", &[Acl]),
            (self.datapath.is_some(), "--datapath is for --app openflow", &[Openflow]),
            (self.most_flows.is_some(), "--most-flows is for --app openflow", &[Openflow]),
            (self.most_action_bytes.is_some(), "--most-action-bytes is for --app openflow", &[Openflow]),
            (self.most_bundle_bytes.is_some(), "--most-bundle-bytes is for --app openflow", &[Openflow]),
            (has_rules, "--rules and --rules6 are for --app acl", &[Acl]),
            (self.sad.is_some(), "--sad is for --app esp", &[Esp]),
            (
                is_switch,
                "--flows, --controller, --listen and --standalone are for --app openflow",
                &[Openflow],
            ),
            (
                self.fib.is_some(),
                "--fib is for --app ip, acl and esp: names have --table, and the switch has flows",
                &[Ip, Acl, Esp],
            ),
        ];
        for (is_given, what, apps) in options {
            if is_given && !apps.contains(&self.app) {
                bail!("{what}");
            }
        }
        Ok(())
    }

    /// Refuses a file that is read and written, or written twice: frames or a table would be lost.
    fn check_files(&self) -> Result<()> {
        let mut seen: Vec<PathBuf> = Vec::new();
        let read = match &self.r#in {
            From::File(file) | From::Again(file) => Some(Path::new(file)),
            From::Made(_) => None,
        };
        let written = self.out.iter().filter(|out| *out != "sink").map(Path::new);
        for file in read.into_iter().chain(written).chain(self.drops.as_deref()) {
            // Pipes and devices take what they get.
            if file == Path::new("-") || file.metadata().is_ok_and(|file| !file.is_file()) {
                continue;
            }
            // A file that is not there yet is known by its folder.
            let folder =
                file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let whole = file.canonicalize().or_else(|_| {
                folder.canonicalize().map(|folder| folder.join(file.file_name().unwrap_or_default()))
            });
            let Ok(whole) = whole else { continue };
            if seen.contains(&whole) {
                bail!(
                    "{}: given twice among --in, --out and --drops, and frames would be lost",
                    file.display()
                );
            }
            seen.push(whole);
        }
        let tables = [&self.table, &self.rules, &self.rules6, &self.sad, &self.flows];
        let tables =
            || tables.into_iter().flatten().map(PathBuf::as_path).chain(self.fib.as_deref().map(Path::new));
        self.out
            .iter()
            .map(Path::new)
            .chain(self.drops.as_deref())
            .try_for_each(|out| is_no_input(Some(out), tables()))
    }

    /// Refuses options that do not go together with interfaces.
    fn check_live(&self) -> Result<()> {
        for (at, name) in self.interfaces.iter().enumerate() {
            if self.interfaces[..at].contains(name) {
                bail!("the interface {name} is given twice");
            }
        }
        self.check_app()?;
        self.check_heeded()?;
        self.check_files()?;
        let has_source = self.feed.is_some() || self.kernel_table.is_some();
        if has_source && matches!(self.app, AppName::Names | AppName::Openflow) {
            bail!("--feed and --kernel-table are for --app ip, acl and esp: they give routes of IP")
        }
        if self.kernel_table.is_some() && matches!(self.feed, Some(Followed::Bmp(_))) {
            bail!("--kernel-table is for routes of the kernel and of FPM: BMP has one table")
        }
        Ok(())
    }
}
