//! Actions and instructions of flows in texts.

use super::fields::{field, port, value};
use super::{number, small};
use crate::wire::number::{WHOLE, port};
use crate::wire::{Action, Field, Instructions, Match};

/// Words with their arguments: `name`, `name:argument` or `name(argument)`, between commas.
pub(super) fn words(text: &str) -> Result<Vec<(&str, &str)>, String> {
    let (mut words, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, letter) in text.char_indices().chain([(text.len(), ',')]) {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1).ok_or("a bracket that was not opened")?,
            ',' if depth == 0 => {
                let word = text[start..at].trim();
                start = at + 1;
                if !word.is_empty() {
                    let end = word.find([':', '(']).unwrap_or(word.len());
                    let argument = match word[end..].strip_prefix('(') {
                        Some(rest) => rest.strip_suffix(')').ok_or("something behind a bracket")?,
                        None => word[end..].strip_prefix(':').unwrap_or_default(),
                    };
                    words.push((&word[..end], argument));
                }
            }
            _ => {}
        }
    }
    if depth > 0 { Err("a bracket that is not closed".to_owned()) } else { Ok(words) }
}

/// The instructions behind `actions=`.
pub(super) fn instructions(text: &str, by: &Match) -> Result<Instructions, String> {
    let mut read = Instructions::default();
    let mut by = *by;
    for (name, argument) in words(text)? {
        match name {
            "drop" => {}
            "meter" => read.meter = Some(small(argument)?),
            "goto_table" => read.goto = Some(small(argument)?),
            "clear_actions" => read.clear = true,
            "write_metadata" => {
                let (value, mask) = argument.split_once('/').unwrap_or((argument, "0xffffffffffffffff"));
                let mask = number(mask)?;
                read.metadata = Some((number(value)? & mask, mask));
            }
            "write_actions" => {
                read.has_write = true;
                let mut by = by;
                for (name, argument) in words(argument)? {
                    read.write.push(action(name, argument, &mut by)?);
                }
            }
            "apply_actions" => {
                for (name, argument) in words(argument)? {
                    read.apply.push(action(name, argument, &mut by)?);
                }
            }
            name => read.apply.push(action(name, argument, &mut by)?),
        }
    }
    read.has_apply = !read.apply.is_empty();
    Ok(read)
}

/// One action, for packets of which so much is known.
pub(super) fn action(name: &str, argument: &str, by: &mut Match) -> Result<Action, String> {
    let output = |port| Action::Output { port, max_len: WHOLE };
    let set = |name: &str, text: &str, by: &Match| {
        let field = field(name, by)?;
        if field == Field::VlanVid && by.mask.and(&by.value).of(field) & 0x1000 == 0 {
            // The switch would send a frame without a tag as it is.
            return Err(format!("{name} of frames that may have no tag: match one, or push_vlan before it"));
        }
        Ok::<_, String>(Action::SetField(field, value(name, field, text)?))
    };
    let lower = name.to_ascii_lowercase();
    Ok(match lower.as_str() {
        "output" => output(port(argument).map_or_else(|| small(argument), Ok)?),
        "controller" => {
            let max_len = match argument.strip_prefix("max_len=").unwrap_or(argument) {
                "" => WHOLE,
                text => small(text)?,
            };
            Action::Output { port: port::CONTROLLER, max_len }
        }
        "group" => Action::Group(small(argument)?),
        "set_queue" => Action::SetQueue(small(argument)?),
        "push_vlan" => {
            *by = by.with_masked(Field::VlanVid, 0x1000, 0x1000);
            Action::PushVlan(small(argument)?)
        }
        "pop_vlan" | "strip_vlan" => Action::PopVlan,
        "push_mpls" => {
            *by = by.with(Field::EthType, number(argument)?.into());
            Action::PushMpls(small(argument)?)
        }
        "pop_mpls" => {
            *by = by.with(Field::EthType, number(argument)?.into());
            Action::PopMpls(small(argument)?)
        }
        "push_pbb" => Action::PushPbb(small(argument)?),
        "pop_pbb" => Action::PopPbb,
        "dec_ttl" => Action::DecNwTtl,
        "mod_nw_ttl" => Action::SetNwTtl(small(argument)?),
        "dec_mpls_ttl" => Action::DecMplsTtl,
        "set_mpls_ttl" => Action::SetMplsTtl(small(argument)?),
        "copy_ttl_in" => Action::CopyTtlIn,
        "copy_ttl_out" => Action::CopyTtlOut,
        "mod_dl_src" => set("dl_src", argument, by)?,
        "mod_dl_dst" => set("dl_dst", argument, by)?,
        "mod_nw_src" => set("nw_src", argument, by)?,
        "mod_nw_dst" => set("nw_dst", argument, by)?,
        "mod_nw_tos" => set("nw_tos", argument, by)?,
        "mod_tp_src" => set("tp_src", argument, by)?,
        "mod_tp_dst" => set("tp_dst", argument, by)?,
        "mod_vlan_vid" | "set_vlan_vid" => set("dl_vlan", argument, by)?,
        "mod_vlan_pcp" | "set_vlan_pcp" => set("dl_vlan_pcp", argument, by)?,
        "set_field" => {
            let (text, name) = argument.split_once("->").ok_or("set_field:VALUE->FIELD")?;
            set(name.trim(), text.trim(), by)?
        }
        other => match port(other) {
            Some(port) => output(port),
            None => output(small(other).map_err(|_| format!("{name:?} is no action of OpenFlow 1.3"))?),
        },
    })
}
