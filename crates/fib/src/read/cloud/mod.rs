//! Ranges of addresses that cloud providers publish as JSON.
//!
//! ```text
//! aws         {"syncToken":…,"createDate":…,"prefixes":[{"ip_prefix":P,"region":R,"service":S,
//!              "network_border_group":G},…],"ipv6_prefixes":[{"ipv6_prefix":P,…},…]}
//! gcp         {"syncToken":…,"creationTime":…,"prefixes":[{"ipv4Prefix":P,"service":S,"scope":R},…]}
//! azure       {"changeNumber":…,"cloud":…,"values":[{"name":T,"id":…,"properties":{"region":R,
//!              "systemService":S,"addressPrefixes":[P,…],…}},…]}
//! oracle      {"last_updated_timestamp":…,"regions":[{"region":R,"cidrs":[{"cidr":P,"tags":[S,…]},…]},…]}
//! cloudflare  {"result":{"ipv4_cidrs":[P,…],"ipv6_cidrs":[P,…],"etag":…},"success":true,…}
//! ```
//!
//! Each prefix has fields of the same names with all providers, as far as a provider tells them: `provider`,
//! `service`, `region`, and some of its own. Members that tell about the file alone (times, numbers of
//! changes) are counted as other records. An entry with a member that is not known is refused.
//!
//! **A prefix that stands several times has one label.** Services that cover a whole provider (AMAZON of AWS,
//! AzureCloud of Azure) give way to all others: they only fill fields that no other entry has. The values of
//! the other entries are joined in the order of the alphabet, each once, with `+` between: `EC2+S3`. So the
//! label does not depend on the order of the file. Of prefixes inside another, the longest counts, whatever
//! its service is.
//!
//! A prefix that has none of the fields that are named gives no route, and is counted: its addresses have the
//! values of the prefix around it. The prefixes are held until the end of the file, about 100 bytes each.

mod records;

use serde_json::{Map, Value};
use wirespeed_input::Input;

use self::records::{Record, Records};
use super::any_prefix::AnyPrefix;
use super::csv::Columns;
use super::error::{End, Fault, SkipReason};
use super::fields::Labels;
use super::format::Format;
use super::json::{Entry, Groups, array, each_entry, text};
use super::report::Ledger;
use super::table::Table;
use super::text::prefix_family;
use crate::address::Family;

/// The fields of each provider, in the order of labels.
const fn fields(format: Format) -> &'static [&'static str] {
    match format {
        Format::Aws => &["provider", "service", "region", "network_border_group"],
        Format::Azure => &["provider", "service", "region", "tag", "platform", "network_features"],
        Format::Cloudflare => &["provider", "service"],
        _ => &["provider", "service", "region"],
    }
}

pub(super) fn read(
    input: &mut Input<'_>,
    ledger: &mut Ledger,
    table: &mut Table,
    wanted: &Columns,
) -> Result<(), End> {
    let format = ledger.report.format;
    let mut labels = Labels::new(fields(format), wanted, ledger)?;
    let take = match format {
        Format::Aws => aws,
        Format::Gcp => gcp,
        Format::Azure => azure,
        Format::Oracle => oracle,
        _ => cloudflare,
    };
    let mut records = Records::default();
    each_entry(input, ledger, Groups::Arrays, |entry, ledger| take(&entry, &mut records, ledger))?;
    records.finish(&mut labels, table, ledger)
}

fn aws(entry: &Entry<'_>, records: &mut Records, ledger: &mut Ledger) -> Result<(), Fault> {
    let (key, family) = match (entry.group, entry.key) {
        (Some("prefixes"), None) => ("ip_prefix", Family::V4),
        (Some("ipv6_prefixes"), None) => ("ipv6_prefix", Family::V6),
        _ => return Err(beside(entry, &["syncToken", "createDate"], &["prefixes", "ipv6_prefixes"])),
    };
    object(entry.value, &[key, "region", "service", "network_border_group"])?;
    let word = text(entry.value, key)?.ok_or(SkipReason::Shape)?;
    let value = |key| value(entry.value, key);
    let service = value("service")?;
    let covers_all = service == "AMAZON";
    let values = vec!["aws".into(), service, value("region")?, value("network_border_group")?];
    let prefix = of_family(word, family, ledger)?;
    records.add(prefix, Record { covers_all, values }, entry.place, ledger);
    Ok(())
}

fn gcp(entry: &Entry<'_>, records: &mut Records, ledger: &mut Ledger) -> Result<(), Fault> {
    let (Some("prefixes"), None) = (entry.group, entry.key) else {
        return Err(beside(entry, &["syncToken", "creationTime"], &["prefixes"]));
    };
    object(entry.value, &["ipv4Prefix", "ipv6Prefix", "service", "scope"])?;
    let (word, family) = match (text(entry.value, "ipv4Prefix")?, text(entry.value, "ipv6Prefix")?) {
        (Some(word), None) => (word, Family::V4),
        (None, Some(word)) => (word, Family::V6),
        _ => return Err(SkipReason::Shape.into()),
    };
    let value = |key| value(entry.value, key);
    let values = vec!["gcp".into(), value("service")?, value("scope")?];
    let prefix = of_family(word, family, ledger)?;
    records.add(prefix, Record { covers_all: false, values }, entry.place, ledger);
    Ok(())
}

fn azure(entry: &Entry<'_>, records: &mut Records, ledger: &mut Ledger) -> Result<(), Fault> {
    const MEMBERS: [&str; 8] = [
        "changeNumber",
        "region",
        "regionId",
        "platform",
        "systemService",
        "addressPrefixes",
        "networkFeatures",
        "state",
    ];
    let (Some("values"), None) = (entry.group, entry.key) else {
        return Err(beside(entry, &["changeNumber", "cloud"], &["values"]));
    };
    object(entry.value, &["name", "id", "properties", "serviceTagChangeNumber"])?;
    let tag = text(entry.value, "name")?.ok_or(SkipReason::Shape)?;
    let properties = entry.value.get("properties").ok_or(SkipReason::Shape)?;
    object(properties, &MEMBERS)?;
    let value = |key| value(properties, key);
    let system = value("systemService")?;
    let features = texts(array(properties, "networkFeatures")?.unwrap_or_default())?.join("+");
    // Tags of a whole region have names such as AzureCloud.eastus.
    let whole = tag.split('.').next().unwrap_or(tag);
    let service = if system.is_empty() { whole.to_owned() } else { system };
    let values =
        vec!["azure".into(), service, value("region")?, tag.to_owned(), value("platform")?, features];
    let record = Record { covers_all: whole == "AzureCloud", values };
    let prefixes = array(properties, "addressPrefixes")?.ok_or(SkipReason::Shape)?;
    each_prefix(entry, prefixes, None, ledger, |prefix, ledger| {
        records.add(prefix, record.clone(), entry.place, ledger);
    })
}

fn oracle(entry: &Entry<'_>, records: &mut Records, ledger: &mut Ledger) -> Result<(), Fault> {
    let (Some("regions"), None) = (entry.group, entry.key) else {
        return Err(beside(entry, &["last_updated_timestamp"], &["regions"]));
    };
    object(entry.value, &["region", "cidrs"])?;
    let region = text(entry.value, "region")?.ok_or(SkipReason::Shape)?;
    for block in array(entry.value, "cidrs")?.ok_or(SkipReason::Shape)? {
        let taken = (|| -> Result<(), Fault> {
            object(block, &["cidr", "tags"])?;
            let word = text(block, "cidr")?.ok_or(SkipReason::Shape)?;
            let mut tags = texts(array(block, "tags")?.unwrap_or_default())?;
            tags.sort_unstable();
            tags.dedup();
            let values = vec!["oracle".into(), tags.join("+"), region.to_owned()];
            let prefix = ledger.prefix(word.as_bytes())?;
            records.add(prefix, Record { covers_all: false, values }, entry.place, ledger);
            Ok(())
        })();
        if let Err(fault) = taken {
            ledger.fault(fault, entry.place, block.to_string())?;
        }
    }
    Ok(())
}

fn cloudflare(entry: &Entry<'_>, records: &mut Records, ledger: &mut Ledger) -> Result<(), Fault> {
    match (entry.group, entry.key) {
        (None, Some("result")) => {}
        (None, Some("success")) if *entry.value == Value::Bool(true) => {
            return Err(SkipReason::OtherRecord.into());
        }
        (None, Some("success")) | (Some("errors"), None) => return Err(SkipReason::Failure.into()),
        (Some("messages"), None) | (None, Some("errors" | "messages")) => {
            return Err(SkipReason::OtherRecord.into());
        }
        _ => return Err(beside(entry, &[], &[])),
    }
    object(entry.value, &["ipv4_cidrs", "ipv6_cidrs", "jdcloud_cidrs", "etag"])?;
    let lists = [("ipv4_cidrs", Some(Family::V4)), ("ipv6_cidrs", Some(Family::V6)), ("jdcloud_cidrs", None)];
    for (key, family) in lists {
        let service = if family.is_none() { "jdcloud" } else { "" };
        let record = Record { covers_all: false, values: vec!["cloudflare".into(), service.into()] };
        let prefixes = array(entry.value, key)?.unwrap_or_default();
        each_prefix(entry, prefixes, family, ledger, |prefix, ledger| {
            records.add(prefix, record.clone(), entry.place, ledger);
        })?;
    }
    Ok(())
}

/// The reason why an entry is none of the prefixes: a member that tells about the file, an array of prefixes
/// that is none, or what is not known.
fn beside(entry: &Entry<'_>, about: &[&str], arrays: &[&str]) -> Fault {
    match (entry.group, entry.key) {
        (None, Some(key)) if about.contains(&key) => SkipReason::OtherRecord.into(),
        (None, Some(key)) if arrays.contains(&key) => SkipReason::Shape.into(),
        (None, None) => SkipReason::Shape.into(),
        _ => SkipReason::Member.into(),
    }
}

/// Checks that a value is an object of these members and no others.
fn object<'v>(value: &'v Value, members: &[&str]) -> Result<&'v Map<String, Value>, SkipReason> {
    let object = value.as_object().ok_or(SkipReason::Shape)?;
    match object.keys().all(|key| members.contains(&key.as_str())) {
        true => Ok(object),
        false => Err(SkipReason::Member),
    }
}

/// The value of a member that is text; empty if there is none.
fn value(object: &Value, key: &str) -> Result<String, SkipReason> {
    Ok(text(object, key)?.unwrap_or_default().to_owned())
}

fn texts(array: &[Value]) -> Result<Vec<&str>, SkipReason> {
    array.iter().map(|value| value.as_str().ok_or(SkipReason::Shape)).collect()
}

/// Parses a prefix of one family.
fn of_family(word: &str, wanted: Family, ledger: &mut Ledger) -> Result<AnyPrefix, SkipReason> {
    prefix_family(ledger.prefix(word.as_bytes())?, wanted)
}

/// Gives each prefix of an array to `take`. Each that is none is a fault of its own.
fn each_prefix(
    entry: &Entry<'_>,
    prefixes: &[Value],
    family: Option<Family>,
    ledger: &mut Ledger,
    mut take: impl FnMut(AnyPrefix, &mut Ledger),
) -> Result<(), Fault> {
    for value in prefixes {
        let prefix = value.as_str().ok_or(SkipReason::Shape).and_then(|word| match family {
            Some(family) => of_family(word, family, ledger),
            None => ledger.prefix(word.as_bytes()),
        });
        match prefix {
            Ok(prefix) => take(prefix, ledger),
            Err(reason) => ledger.fault(reason.into(), entry.place, value.to_string())?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
