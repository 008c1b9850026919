//! Changes that controllers ask for, one by one and in bundles.

use super::bundles::Messages;
use crate::pipeline::control::Control;
use crate::pipeline::state::TABLES;
use crate::switch::Shared;
use crate::wire::number::ALL_TABLES;
use crate::wire::{Failure, PacketOut, Request};

/// Makes a change that workers do not see yet. A packet that is to be sent is checked, and comes back.
pub(super) fn change(
    shared: &Shared,
    control: &mut Control,
    asked: Request,
    now: u64,
) -> Result<Option<PacketOut>, Failure> {
    match asked {
        Request::FlowMod(asked) => control.flow_mod(&asked, now)?,
        Request::GroupMod(asked) => control.group_mod(&asked, now)?,
        Request::MeterMod(asked) => control.meter_mod(&asked, now)?,
        Request::PortMod { port, address, config, mask } => {
            let at = shared.options.numbering().place(port);
            let info = at.and_then(|at| shared.options.port(at)).ok_or(Failure::PORT_BAD)?;
            if info.mac.0 != address {
                return Err(Failure::PORT_ADDRESS);
            }
            control.port_mod(port, config, mask)?;
        }
        Request::TableMod { table, .. } if table >= TABLES && table != ALL_TABLES => {
            return Err(Failure::TABLE_BAD);
        }
        Request::TableMod { config, .. } if config & !3 != 0 => return Err(Failure::TABLE_CONFIG),
        // The bits are deprecated, and say nothing.
        Request::TableMod { .. } => {}
        Request::PacketOut(asked) => {
            shared.check_packet_out(control, &asked)?;
            return Ok(Some(asked));
        }
        _ => return Err(Failure::BUNDLE_MSG_UNSUP),
    }
    Ok(None)
}

/// Makes all changes of a bundle, which workers do not see yet, or none: the message that fails, and why.
/// Packets go as they would behind the last change.
pub(super) fn commit<'m>(
    shared: &Shared,
    control: &mut Control,
    messages: &'m Messages,
    now: u64,
) -> Result<(), (Failure, &'m [u8])> {
    let packets = control.all_or_none(|control| {
        let mut packets = Vec::new();
        for message in messages.iter() {
            let made = Request::read(message).and_then(|asked| change(shared, control, asked, now));
            packets.extend(made.map_err(|failure| (failure, message))?);
        }
        Ok(packets)
    })?;
    packets.iter().for_each(|packet| shared.packet_out(control, packet));
    Ok(())
}
