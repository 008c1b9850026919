//! Security groups as `aws ec2 describe-security-groups` writes them.
//!
//! ```text
//! {"SecurityGroups": [{"GroupId": "sg-1", "GroupName": "web",
//!    "IpPermissions": [{"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443,
//!       "IpRanges": [{"CidrIp": "0.0.0.0/0"}], "Ipv6Ranges": [], "PrefixListIds": [], "UserIdGroupPairs": []}],
//!    "IpPermissionsEgress": […]}]}
//! ```
//!
//! The groups are chosen as a chain, by their ids or names, several with commas between: an interface allows
//! what any of its groups allows. The direction is chosen as a table. Members of other groups and of prefix
//! lists are not in the file: such rules are left out, and stay as doubts. A type and a code of ICMP are the
//! ports of a tuple.
//! Ranges of the other family are counted. What AWS never filters (its DNS, DHCP, instance metadata) is not
//! in the rules.

use serde_json::Value;
use wirespeed_input::Input;

use super::super::ReadOptions;
use super::super::chains::{FieldSet, Out, Region};
use super::super::list::{Element, Shape, each_element};
use super::super::report::{Place, ReadError, Reading};
use super::{Condition, Direction, Elements, Lines, array, block, number, object, text, too_many};
use crate::tuple::Fields;

const LIST: Shape = Shape {
    list: "SecurityGroups",
    beside: &[],
    alone: &[],
    rules: &["IpPermissions", "IpPermissionsEgress"],
};
const GROUP: [&str; 9] = [
    "Description",
    "GroupName",
    "IpPermissions",
    "OwnerId",
    "GroupId",
    "IpPermissionsEgress",
    "Tags",
    "VpcId",
    "SecurityGroupArn",
];
const PERMISSION: [&str; 7] =
    ["FromPort", "IpProtocol", "IpRanges", "Ipv6Ranges", "PrefixListIds", "ToPort", "UserIdGroupPairs"];
const PAIR: [&str; 7] =
    ["Description", "GroupId", "GroupName", "PeeringStatus", "UserId", "VpcId", "VpcPeeringConnectionId"];
const ICMP: [u8; 2] = [1, 58];
const WITH_PORTS: [u8; 2] = [6, 17];

/// A group as it came.
struct Group {
    id: String,
    name: String,
    /// The places of its rules.
    at: Vec<Place>,
    /// The permissions of the direction in JSON, which takes less memory than what it says.
    json: String,
}

pub(in crate::read) fn read(
    input: &mut Input<'_>,
    reading: &mut Reading,
    (file, fields): (&mut dyn Out, Fields),
    options: &ReadOptions,
) -> Result<(), ReadError> {
    let direction = Direction::of(options, reading)?;
    let mut elements = Elements::new();
    each_element(input, LIST, &mut |element| {
        let at = element.place("", reading.report.records + 1);
        elements.take(&element.value, at, reading, |_, reading| group(&element, direction, reading))
    })?;
    let Elements { taken: groups, lost } = elements;
    let name = reading.report.name.clone();
    let chosen = choose(&groups, options.chain.as_deref())
        .map_err(|why| ReadError::Choice { name: name.clone(), why })?;
    let mut lines = Lines::new(fields, None);
    if let Some((at, why)) = lost {
        // It could have been a chosen one.
        lines.unknown(at, "", &why);
    }
    let mut own = 0;
    for group in chosen {
        let permissions: Vec<Value> = serde_json::from_str(&group.json).expect("it was written from values");
        own += permissions.len() as u64;
        for (&at, permission) in group.at.iter().zip(&permissions) {
            let mut other_family = 0;
            lines.rule(at, permission, reading, |lines, text| {
                rule(lines, direction, permission, at, text, &mut other_family)
            })?;
            reading.report.other_family += other_family;
        }
    }
    reading.report.elsewhere += reading.report.records - own;
    lines.finish(options, reading, file)
}

fn group(whole: &Element, direction: Direction, reading: &mut Reading) -> Result<Group, String> {
    let element = &whole.value;
    object(element, &GROUP)?;
    let own = |key| text(element, key).map(|text| text.unwrap_or_default().to_owned());
    let (id, name) = (own("GroupId")?, own("GroupName")?);
    if id.is_empty() {
        return Err("a group without an id".to_owned());
    }
    let (inward, outward) = (array(element, "IpPermissions")?, array(element, "IpPermissionsEgress")?);
    let (permissions, key) = match direction {
        Direction::In => (inward, "IpPermissions"),
        Direction::Out => (outward, "IpPermissionsEgress"),
    };
    let numbers = reading.report.records + 1..;
    let at =
        (0..permissions.len()).zip(numbers).map(|(at, number)| whole.place(&format!("/{key}/{at}"), number));
    let at = at.collect();
    reading.report.records += permissions.len() as u64;
    let json = Value::Array(permissions.to_vec()).to_string();
    Ok(Group { id, name, at, json })
}

/// The groups that are asked for, or the only one.
fn choose<'g>(groups: &'g [Group], wanted: Option<&str>) -> Result<Vec<&'g Group>, String> {
    let there = || {
        let all: Vec<_> = groups.iter().map(|group| format!("{} ({})", group.id, group.name)).collect();
        all.join(", ")
    };
    let Some(wanted) = wanted else {
        return match groups {
            [] => Err("no security group".to_owned()),
            [one] => Ok(vec![one]),
            _ => Err(format!(
                "several security groups, choose by lookupctl classify build --chain, one or more: {}",
                there()
            )),
        };
    };
    let one = |wanted: &str| {
        let by_id = groups.iter().filter(|group| group.id == wanted);
        let found: Vec<_> = match by_id.clone().next() {
            Some(_) => by_id.collect(),
            None => groups.iter().filter(|group| group.name == wanted).collect(),
        };
        match found[..] {
            [one] => Ok(one),
            [] => Err(format!("no security group {wanted}; there are: {}", there())),
            _ => Err(format!("several security groups are called {wanted}: {}", there())),
        }
    };
    let mut chosen: Vec<&Group> = Vec::new();
    for wanted in wanted.split(',') {
        let group = one(wanted)?;
        if chosen.iter().any(|other| std::ptr::eq(*other, group)) {
            return Err(format!("the security group {wanted} is chosen twice"));
        }
        chosen.push(group);
    }
    Ok(chosen)
}

/// Reads a permission.
fn rule(
    lines: &mut Lines,
    direction: Direction,
    permission: &Value,
    at: Place,
    shown: &str,
    other_family: &mut u64,
) -> Result<(), String> {
    object(permission, &PERMISSION)?;
    let what = traffic(permission, lines.fields)?;
    let far = direction.far(lines.fields);
    let mut ranges = FieldSet::none(far);
    for (list, key) in [("IpRanges", "CidrIp"), ("Ipv6Ranges", "CidrIpv6")] {
        for range in array(permission, list)? {
            object(range, &[key, "Description"])?;
            let cidr = text(range, key)?.ok_or_else(|| format!("a range without {key}"))?;
            if cidr.contains(':') != (key == "CidrIpv6") {
                return Err(format!("{cidr:?} is of the other family"));
            }
            match block(far, cidr)? {
                Some(addresses) => ranges = ranges.or(&addresses).map_err(too_many)?,
                None => *other_family += 1,
            }
        }
    }
    let from = Condition { region: Region::of(far, ranges), fact: None, is_transport: false };
    lines.allow(at, shown, &[&what, &from]).map_err(too_many)?;
    for pair in array(permission, "UserIdGroupPairs")? {
        object(pair, &PAIR)?;
        let id = text(pair, "GroupId")?.or(text(pair, "GroupName")?).unwrap_or("of another account");
        let members = Condition::unknown(Region::all(), format!("members of the group {id}"));
        lines.allow(at, shown, &[&what, &members]).map_err(too_many)?;
    }
    for list in array(permission, "PrefixListIds")? {
        object(list, &["PrefixListId", "Description"])?;
        let id = text(list, "PrefixListId")?.ok_or("a prefix list without an id")?;
        let members = Condition::unknown(Region::all(), format!("members of the prefix list {id}"));
        lines.allow(at, shown, &[&what, &members]).map_err(too_many)?;
    }
    Ok(())
}

/// The protocol and the ports of a permission.
fn traffic(permission: &Value, fields: Fields) -> Result<Condition, String> {
    let (from, to) = (number(permission, "FromPort")?, number(permission, "ToPort")?);
    let any = |number: Option<i64>| number.is_none_or(|number| number == -1);
    let protocol = match text(permission, "IpProtocol")?.ok_or("a permission without a protocol")? {
        "-1" if any(from) && any(to) => return Ok(Condition::always()),
        "-1" => return Err("ports of all protocols".to_owned()),
        "tcp" => 6,
        "udp" => 17,
        "icmp" => 1,
        "icmpv6" => 58,
        other => {
            let is_number = !other.is_empty() && other.bytes().all(|b| b.is_ascii_digit());
            let number = other.parse::<u8>().ok().filter(|_| is_number);
            number.ok_or_else(|| format!("{other:?} is no protocol"))?
        }
    };
    if any(from) && any(to) {
        return Ok(Condition::of_protocol(fields, protocol));
    }
    if ICMP.contains(&protocol) {
        // The type comes first, and -1 is any code.
        let octet = |number: Option<i64>| number.and_then(|number| u8::try_from(number).ok());
        return match (octet(from), octet(to)) {
            (Some(kind), code) if code.is_some() || any(to) => {
                Condition::of_message(fields, protocol, kind, code).map_err(too_many)
            }
            _ => Err("not a type and a code of ICMP".to_owned()),
        };
    }
    let port = |number: Option<i64>| number.and_then(|number| u16::try_from(number).ok());
    match (port(from), port(to)) {
        (Some(from), Some(to)) if from <= to && WITH_PORTS.contains(&protocol) => {
            Condition::of_ports(fields, protocol, from, to).map_err(too_many)
        }
        _ => Err("not a range of ports".to_owned()),
    }
}
