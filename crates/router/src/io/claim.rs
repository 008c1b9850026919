//! [`Claim`]: the right to forward at an interface, which one program has at a time.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use super::interface::Interface;
use crate::Error;

/// The right to forward at an interface, for as long as this is kept. Two programs that forward at one
/// interface would send each packet twice, and the first that ends would let the kernel forward again.
///
/// The claim is a name in the network namespace: an abstract Unix address with the interface's number. It
/// needs no privilege and no file, and ends with the program, however that ends. Ports don't ask for it; a
/// program that opens them does, before.
///
/// ```no_run
/// use wirespeed_router::io::{Claim, Interface};
///
/// let interface = Interface::open("eth0")?;
/// let claim = Claim::of(&interface)?; // fails while another program has it
/// # Ok::<(), wirespeed_router::Error>(())
/// ```
#[derive(Debug)]
pub struct Claim {
    _socket: UnixDatagram,
}

impl Claim {
    /// Claims an interface. Fails with [`Error::Claimed`] while another program, or this one, has it.
    pub fn of(interface: &Interface) -> Result<Self, Error> {
        let Interface { name, index, .. } = interface;
        let failed = |cause| Error::port(name, "can't be claimed", cause);
        let address =
            SocketAddr::from_abstract_name(format!("wirespeed/interface/{index}")).map_err(failed)?;
        match UnixDatagram::bind_addr(&address) {
            Ok(socket) => Ok(Self { _socket: socket }),
            Err(cause) if cause.kind() == std::io::ErrorKind::AddrInUse => {
                Err(Error::Claimed { port: name.clone() })
            }
            Err(cause) => Err(failed(cause)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_claimed_once() {
        let Ok(loopback) = Interface::open("lo") else {
            println!("skipped: no loopback");
            return;
        };
        let claim = Claim::of(&loopback).unwrap();
        let error = Claim::of(&loopback).unwrap_err();
        assert!(matches!(&error, Error::Claimed { port } if port == "lo"), "{error}");
        drop(claim);
        assert!(Claim::of(&loopback).is_ok());
    }
}
