//! [`push_name`]: the names of cells.

use std::net::IpAddr;

use wirespeed::names::read::{Former, NameFormat};
use wirespeed::names::{Name, NameBatch};
use wirespeed_records::{address, host, is_unset};

use super::table::Kind;

/// Adds the name of a cell without blanks around it. Returns its place. `None` if there is none, or if a
/// table of this kind has no such names. Fails if the cell is no name.
#[allow(clippy::result_unit_err)] // the cell is the reason
pub fn push_name(
    names: &mut NameBatch,
    kind: Kind,
    cell: &[u8],
    former: &mut Former,
) -> Result<Option<u32>, ()> {
    if is_unset(cell) {
        return Ok(None);
    }
    let cell = if kind == Kind::Domains { host(cell) } else { cell };
    if kind == Kind::Domains && address(cell).is_some() {
        return Ok(None);
    }
    let place = u32::try_from(names.len()).map_err(drop)?;
    names.push(name(cell, former).ok_or(())?).map_err(drop)?;
    Ok(Some(place))
}

/// Parses a name, a domain or a URL. An address is the host of a URL, because no domain is an address.
fn name<'f>(cell: &'f [u8], former: &'f mut Former) -> Option<&'f Name> {
    let form = match address(cell) {
        Some(IpAddr::V4(_)) => NameFormat::Urls,
        // Without brackets it is no host.
        Some(IpAddr::V6(_)) => return None,
        None => NameFormat::recognise([cell])?,
    };
    former.form(cell, form).ok()
}
