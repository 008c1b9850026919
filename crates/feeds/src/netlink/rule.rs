//! Rules of policy routing: `RTM_NEWRULE` and `RTM_DELRULE`.

use ipnet::IpNet;

use super::Fault;
use super::attributes::{AF_INET, AF_INET6, Attribute, Attributes, u32_at};
use super::link::text;
use crate::model::{Rule, RuleAction, TableId};

/// The fixed part: family, lengths of destination and source, type of service, table, two reserved bytes,
/// action, flags.
const FIXED: usize = 12;

const FRA_DST: u16 = 1;
const FRA_SRC: u16 = 2;
const FRA_IIFNAME: u16 = 3;
const FRA_GOTO: u16 = 4;
const FRA_PRIORITY: u16 = 6;
const FRA_FWMARK: u16 = 10;
const FRA_FLOW: u16 = 11;
const FRA_SUPPRESS_IFGROUP: u16 = 13;
const FRA_SUPPRESS_PREFIXLEN: u16 = 14;
const FRA_TABLE: u16 = 15;
const FRA_FWMASK: u16 = 16;
const FRA_OIFNAME: u16 = 17;
const FRA_PAD: u16 = 18;
const FRA_L3MDEV: u16 = 19;
const FRA_PROTOCOL: u16 = 21;

const FIB_RULE_INVERT: u32 = 2;

/// Reads a rule; `None` for one of another family, such as of multicast routing.
pub(super) fn read_rule(body: &[u8]) -> Result<Option<Rule>, Fault> {
    let attributes = Attributes::after(FIXED, body)?;
    let Some(&[family, to_length, from_length, tos, table, _, _, action]) = body.first_chunk::<8>() else {
        return Err(Fault::Truncated);
    };
    let flags = u32_at(body, 8).ok_or(Fault::Truncated)?;
    let is_v6 = match family {
        AF_INET => false,
        AF_INET6 => true,
        _ => return Ok(None),
    };
    let mut rule = Rule::of_all(is_v6, 0, RuleAction::Nothing);
    rule.is_inverted = flags & FIB_RULE_INVERT != 0;
    rule.has_more = tos != 0;
    let (mut table, mut target, mut is_of_vrf, mut mask) = (u32::from(table), 0, false, None);
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.number {
            FRA_DST => rule.to = Some(net(&attribute, to_length)?),
            FRA_SRC => rule.from = Some(net(&attribute, from_length)?),
            FRA_IIFNAME => rule.came_by = Some(text(attribute.value)),
            FRA_OIFNAME => rule.bound_to = Some(text(attribute.value)),
            FRA_GOTO => target = attribute.u32()?,
            FRA_PRIORITY => rule.priority = attribute.u32()?,
            FRA_FWMARK => rule.mark = Some((attribute.u32()?, u32::MAX)),
            FRA_FWMASK => mask = Some(attribute.u32()?),
            FRA_TABLE => table = attribute.u32()?,
            FRA_L3MDEV => is_of_vrf = attribute.value != [0],
            // All bits say that nothing is suppressed.
            FRA_SUPPRESS_IFGROUP | FRA_SUPPRESS_PREFIXLEN => rule.has_more |= attribute.u32()? != u32::MAX,
            // Who made the rule, and a realm for statistics, select nothing.
            FRA_FLOW | FRA_PAD | FRA_PROTOCOL => {}
            _ => rule.has_more = true,
        }
    }
    if let Some(mask) = mask.filter(|&mask| mask != 0) {
        rule.mark = Some((rule.mark.map_or(0, |(mark, _)| mark), mask));
    } else if mask == Some(0) {
        rule.mark = None;
    }
    rule.action = match action {
        1 if is_of_vrf => RuleAction::LookupInVrf,
        1 => RuleAction::Lookup(TableId(table)),
        2 => RuleAction::GoTo(target),
        3 => RuleAction::Nothing,
        6 => RuleAction::Blackhole,
        7 => RuleAction::Unreachable,
        8 => RuleAction::Prohibit,
        other => RuleAction::Other(other),
    };
    Ok(Some(rule))
}

fn net(attribute: &Attribute<'_>, length: u8) -> Result<IpNet, Fault> {
    Ok(IpNet::new(attribute.ip()?, length).map_err(|_| Fault::Malformed)?.trunc())
}
