//! [`ForwardingOff`]: the kernel's own forwarding, switched off where a port of AF_PACKET forwards.

use std::fs;
use std::path::PathBuf;

use super::interface::Interface;
use super::sys::denied;
use crate::Error;

/// The kernel's forwarding of packets that come at an interface, switched off as long as this is kept. A port
/// of AF_PACKET needs it where [`Withheld`](super::Withheld) can't be used, or else each packet is forwarded
/// twice.
///
/// For IPv6 the kernel knows one switch for all interfaces, so it goes off for all.
///
/// A process that is killed leaves forwarding off. With [`Withheld`](super::Withheld) the kernel goes on
/// then.
#[derive(Debug)]
#[must_use = "forwarding is on again when this is dropped"]
pub struct ForwardingOff {
    /// Switches that were on, with what they said.
    saved: Vec<(PathBuf, String)>,
}

impl ForwardingOff {
    /// Switches forwarding off at an interface.
    pub fn at(interface: &Interface) -> Result<Self, Error> {
        let name = &interface.name;
        let mut off = Self { saved: Vec::new() };
        for path in [format!("net/ipv4/conf/{name}/forwarding"), "net/ipv6/conf/all/forwarding".to_owned()] {
            let path = PathBuf::from("/proc/sys").join(path);
            // A kernel without this family forwards none of its packets.
            let Ok(old) = fs::read_to_string(&path) else { continue };
            if old.trim() != "0" {
                fs::write(&path, "0").map_err(|cause| {
                    denied(name, "the kernel's forwarding can't be switched off", "CAP_NET_ADMIN", cause)
                })?;
                off.saved.push((path, old));
            }
        }
        Ok(off)
    }
}

impl Drop for ForwardingOff {
    fn drop(&mut self) {
        for (path, old) in &self.saved {
            // An interface that is gone needs no switch.
            let _ = fs::write(path, old);
        }
    }
}
