//! [`add_path`]: what two BGP OPEN messages agree on about path identifiers (RFC 7911).

use super::fault::{Bytes, Fault};

/// The families in whose routes a prefix has a path identifier before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AddPath {
    pub(crate) v4: bool,
    pub(crate) v6: bool,
}

const OPEN: u8 = 1;
const CAPABILITIES: u8 = 2;
const ADD_PATH: u8 = 69;
const RECEIVE: u8 = 1;
const SEND: u8 = 2;

/// What the OPEN messages that the router sent and received agree on, of routes that it receives.
pub(super) fn add_path(sent: &[u8], received: &[u8]) -> Result<AddPath, Fault> {
    let (ours, theirs) = (offered(sent)?, offered(received)?);
    let agreed = |family: usize| ours[family] & RECEIVE != 0 && theirs[family] & SEND != 0;
    Ok(AddPath { v4: agreed(0), v6: agreed(1) })
}

/// What an OPEN message offers for IPv4 and IPv6.
fn offered(message: &[u8]) -> Result<[u8; 2], Fault> {
    let mut bytes = Bytes::new(message, "a BGP OPEN that ends too early");
    let mut offered = [0; 2];
    bytes.take(18)?;
    if bytes.u8()? != OPEN {
        return Err(Fault("a BGP message that is not an OPEN"));
    }
    // Version, AS, hold time, identifier.
    bytes.take(9)?;
    let count = bytes.u8()?;
    // Parameters of more than 255 bytes have lengths of two bytes (RFC 9072).
    let is_extended = count == 255 && bytes.rest().first() == Some(&255);
    let parameters = if is_extended {
        bytes.u8()?;
        bytes.counted()?
    } else {
        bytes.take(usize::from(count))?
    };
    let mut parameters = Bytes::new(parameters, "a parameter of a BGP OPEN that ends too early");
    while !parameters.is_empty() {
        let kind = parameters.u8()?;
        let value = if is_extended {
            parameters.counted()?
        } else {
            let count = parameters.u8()?;
            parameters.take(usize::from(count))?
        };
        if kind != CAPABILITIES {
            continue;
        }
        let mut capabilities = Bytes::new(value, "a capability of a BGP OPEN that ends too early");
        while !capabilities.is_empty() {
            let [code, count] = capabilities.array()?;
            let value = capabilities.take(usize::from(count))?;
            if code == ADD_PATH {
                for family in value.as_chunks::<4>().0 {
                    match *family {
                        [0, 1, 1, offer] => offered[0] = offer,
                        [0, 2, 1, offer] => offered[1] = offer,
                        _ => {}
                    }
                }
            }
        }
    }
    Ok(offered)
}
