//! Lists of prefixes as a set of ipset or nft.
//!
//! A set has members of one family and no values, so both families in one table and a next hop other than
//! [`MEMBER`](crate::read::MEMBER) are refused.
//!
//! A prefix within another adds no address to a set. `ipset` takes it. `nft` calls it a conflict in JSON,
//! also in a set that merges its elements by itself (1.0.6), so it is left out there.

use std::io::Write;

use serde_json::json;

use super::{Routes, WriteError, refuse};
use crate::read::any_prefix::AnyPrefix;
use crate::read::{Format, MEMBER};

/// The names of a set that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetOptions {
    /// The set: letters, digits, `_`, `-` and `.`, not more than 31.
    pub name: String,
    /// The table of nft that the set is in, of the family inet.
    pub table: String,
}

impl Default for SetOptions {
    fn default() -> Self {
        Self { name: "prefixes".into(), table: "wirespeed".into() }
    }
}

/// Writes commands for `ipset restore`.
pub(super) fn ipset(
    routes: &mut Routes<'_>,
    options: &SetOptions,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    /// The number of members that a set has by default at most.
    const USUAL: usize = 65_536;
    let (is_v4, name) = start(routes, options)?;
    let most = USUAL.max(routes.fib.v4.len() + routes.fib.v6.len());
    let family = if is_v4 { "inet" } else { "inet6" };
    writeln!(out, "create {name} hash:net family {family} maxelem {most}")?;
    members(routes, |_, _, len, prefix| match len {
        "0" => Err(WriteError::WholeFamily { format: Format::Ipset }),
        _ => Ok(writeln!(out, "add {name} {prefix}")?),
    })
}

/// Writes a table with a set, as `nft -j list ruleset` shows it and `nft -j -f` reads it.
pub(super) fn nft(
    routes: &mut Routes<'_>,
    options: &SetOptions,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let (is_v4, name) = start(routes, options)?;
    let table = check(&options.table)?;
    let kind = if is_v4 { "ipv4_addr" } else { "ipv6_addr" };
    writeln!(out, "{{\"nftables\": [{},", json!({"table": {"family": "inet", "name": table}}))?;
    // Both names are checked: they need no escapes.
    let names = format!(r#""family": "inet", "table": "{table}", "name": "{name}", "type": "{kind}""#);
    write!(out, r#"{{"set": {{{names}, "flags": ["interval"], "auto-merge": true, "elem": ["#)?;
    let (mut comma, mut around) = ("\n", None);
    members(routes, |prefix, address, len, _| {
        // A prefix comes after those around it.
        if around.is_some_and(|around: AnyPrefix| around.covers(prefix)) {
            return Ok(());
        }
        around = Some(prefix);
        write!(out, r#"{comma}{{"prefix": {{"addr": "{address}", "len": {len}}}}}"#)?;
        comma = ",\n";
        Ok(())
    })?;
    Ok(writeln!(out, "]}}}}]}}")?)
}

/// Whether the members are of IPv4, and the name of the set.
fn start<'o>(routes: &Routes<'_>, options: &'o SetOptions) -> Result<(bool, &'o str), WriteError> {
    let (has_v4, has_v6) = (!routes.fib.v4.is_empty(), !routes.fib.v6.is_empty());
    if has_v4 && has_v6 {
        return Err(WriteError::BothFamilies { format: routes.format });
    }
    Ok((!has_v6, check(&options.name)?))
}

fn check(name: &str) -> Result<&str, WriteError> {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    // Nft names begin with a letter; a dash would begin an option.
    let starts = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    match starts && name.len() <= 31 && name.bytes().all(is_fit) {
        true => Ok(name),
        false => Err(WriteError::SetName { name: name.to_owned() }),
    }
}

/// Gives each member, its address, its length and its whole text to `write`.
fn members(
    routes: &mut Routes<'_>,
    mut write: impl FnMut(AnyPrefix, &str, &str, &str) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    let format = routes.format;
    routes.each(|prefix, next_hop| match next_hop {
        MEMBER => {
            let text = prefix.to_string();
            let (address, len) = text.split_once('/').expect("a prefix is shown with its length");
            write(prefix, address, len, &text)
        }
        value => Err(refuse(format, prefix, value)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::Fib;
    use crate::read::tests::text_of;
    use crate::read::{ReadOptions, read_fib_from};
    use crate::write::{write_fib, write_set};

    fn fib(text: &str) -> Fib {
        read_fib_from(text.as_bytes(), "test", &ReadOptions::default()).unwrap().0
    }

    #[test]
    fn sets_read_back_equal() {
        // Nft takes no prefix within another.
        let within = ["10.1.0.0/16 member", "10.1.2.0/24 member", "2001:db8::7/128 member"];
        for text in [
            "9.0.0.0/8\n10.0.0.0/8\n10.1.0.0/16\n10.1.2.0/24\n11.0.0.0/8\n192.0.2.7/32\n",
            "2001:db8::/32\n2001:db8::7/128\n2001:db9::/32\n",
        ] {
            let list = fib(text);
            for format in [Format::Ipset, Format::NftSets] {
                let mut written = Vec::new();
                write_fib(&list, format, &mut written).unwrap();
                assert_eq!(Format::recognise(&written), Some(format));
                let again = fib(&String::from_utf8(written).unwrap());
                let nested = |line: &&str| format == Format::NftSets && within.contains(line);
                let list = text_of(&list);
                let list: Vec<_> = list.lines().filter(|line| !nested(line)).collect();
                assert_eq!(text_of(&again).lines().collect::<Vec<_>>(), list, "{format}");
            }
        }
        let mut written = Vec::new();
        let own = SetOptions { name: "bad".into(), table: "filter".into() };
        write_set(&fib("10.0.0.0/8\n"), Format::Ipset, &own, &mut written).unwrap();
        assert_eq!(
            String::from_utf8(written).unwrap(),
            "create bad hash:net family inet maxelem 65536\nadd bad 10.0.0.0/8\n"
        );
    }

    #[test]
    fn what_a_set_can_not_hold_is_refused() {
        let said = |text: &str, format, name: &str| {
            let options = SetOptions { name: name.into(), ..SetOptions::default() };
            write_set(&fib(text), format, &options, &mut Vec::new()).unwrap_err().to_string()
        };
        for format in [Format::Ipset, Format::NftSets] {
            assert!(said("10.0.0.0/8\n2001:db8::/32\n", format, "a").contains("one family"));
            assert!(said("10.0.0.0/8 core\n", format, "a").contains("10.0.0.0/8 with the next hop \"core\""));
            for name in ["", "a b", "1a", "-a", &"a".repeat(32)] {
                assert!(said("10.0.0.0/8\n", format, name).contains("no name of a set"), "{name}");
            }
        }
        assert!(said("0.0.0.0/0\n", Format::Ipset, "a").contains("length 0"));
        let nowhere = write_set(&fib("10.0.0.0/8\n"), Format::Csv, &SetOptions::default(), &mut Vec::new());
        assert!(nowhere.unwrap_err().to_string().contains("holds no set"));
    }
}
