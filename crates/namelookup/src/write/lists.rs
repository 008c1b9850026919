//! Lists of domains in the formats that [`read::lists`](crate::read::lists) reads.
//!
//! Formats differ in what they can say: hosts files have no entry for the names beneath, Adblock has one
//! value, and exceptions rank differently. So each list is read again once it is made, and compared with what
//! was meant: at each name of the list, one label beneath it and deeper, which is all that answers depend on.
//! A list that would answer otherwise is an error that names the domain, and nothing is written.

use std::fmt::Write as _;
use std::io::Write;
use std::net::IpAddr;

use super::WriteError;
use crate::list::{Entries, Precedence, Resolved, Scope, Verdict};
use crate::name::{Name, NameBuf};
use crate::read::lists::{BLOCKED, ListFormat, ListOptions, read_list_from};
use crate::read::{Label, Labels};
use crate::table::NameTable;

/// Writes the entries of a list, sorted by name. `labels` are the texts of their values.
///
/// Takes the memory of the list twice, and that of its text.
///
/// ```
/// use wirespeed_namelookup::read::lists::{ListFormat, ListOptions, read_list_from};
/// use wirespeed_namelookup::write::write_list;
///
/// let (read, _) = read_list_from(&b"||ads.example^\n"[..], "list", &ListOptions::default())?;
/// let mut text = Vec::new();
/// write_list(&read.list, &read.labels, ListFormat::Dnsmasq, &mut text)?;
/// assert_eq!(text, b"address=/ads.example/#\n");
/// // A hosts file has no entries for the names beneath.
/// assert!(write_list(&read.list, &read.labels, ListFormat::Hosts, &mut text).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_list(
    list: &Entries,
    labels: &Labels,
    format: ListFormat,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let mut entries: Vec<_> = list.iter().collect();
    entries.sort_by(|(one, of_one, ..), (other, of_other, ..)| {
        one.components().cmp(other.components()).then(of_one.cmp(of_other))
    });
    let mut text = String::new();
    match format {
        ListFormat::Rpz => {
            text.push_str("$TTL 60\n@ SOA localhost. root.localhost. 1 3600 600 86400 60\n@ NS localhost.\n");
        }
        ListFormat::Adblock => text.push_str("[Adblock Plus]\n"),
        _ => {}
    }
    // Each entry of public suffixes is in the section that is its value, and exceptions are in the first.
    let sections: &[&str] = if format == ListFormat::Psl { &["icann", "private", "listed"] } else { &[""] };
    for (at, &section) in sections.iter().enumerate() {
        let mark = |end: &str| match section {
            "icann" | "private" => format!("// ==={end} {} DOMAINS===\n", section.to_ascii_uppercase()),
            _ => String::new(),
        };
        text.push_str(&mark("BEGIN"));
        for entry in &entries {
            let entry = Entry::new(entry, labels)?;
            let is_here =
                section.is_empty() || entry.value.as_deref().map_or(at == 0, |value| value == section);
            if is_here && entry.write(format, &mut text).is_some() {
                continue;
            }
            if is_here || !sections.contains(&entry.value.as_deref().unwrap_or(section)) {
                let (name, scope, value) = (domain(entry.name), entry.scope, entry.value);
                return Err(WriteError::Entry { format, name, scope, value });
            }
        }
        text.push_str(&mark("END"));
    }
    check(list, labels, format, &text)?;
    Ok(out.write_all(text.as_bytes())?)
}

/// Writes a table of names as a list: each name with all names beneath it. Names of a table without results
/// are [`BLOCKED`].
pub fn write_table_as_list(
    names: &NameTable,
    labels: &Labels,
    format: ListFormat,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let (mut list, mut values) = (Entries::new(), Labels::new());
    for (name, result) in names.iter() {
        let no_label = || WriteError::Label { name: name.to_string(), result };
        let value = match labels.label(result).ok_or_else(no_label)? {
            Label::Line(_) => BLOCKED,
            Label::Word(word) => word,
        };
        let value = values.intern(value).ok().and_then(Verdict::value).ok_or_else(no_label)?;
        list.insert(&name, Scope::Subtree, Precedence::default(), value);
    }
    write_list(&list, &values, format, out)
}

/// Writes a table of domains, each with its result, or without any if the table is a list.
pub fn write_domains(names: &NameTable, labels: &Labels, out: &mut dyn Write) -> Result<(), WriteError> {
    use crate::read::{NameFormat, ReadOptions, read_table_from};

    let mut text = String::new();
    super::each_line(names, labels, |name, label| {
        let mut line = domain(name);
        if let Some(label) = label {
            let _ = write!(line, " {label}");
        }
        text.push_str(&line);
        text.push('\n');
        Ok(())
    })?;
    // A name that is no domain, or another one once it is read.
    let options = ReadOptions { format: Some(NameFormat::Domains), ..ReadOptions::default() };
    let again = read_table_from(text.as_bytes(), "the list", &options);
    let (again, _) = again.map_err(|error| WriteError::Unreadable { what: error.to_string() })?;
    if let Some((name, _)) = names.iter().find(|(name, result)| {
        let of = |labels: &Labels, result| labels.label(result).map(|label| label.to_string());
        let found = again.names.result(name);
        let is_list = again.labels.lines() > 0;
        found == 0 || (!is_list && of(&again.labels, found) != of(labels, *result))
    }) {
        return Err(WriteError::Domain { name: name.to_string() });
    }
    Ok(out.write_all(text.as_bytes())?)
}

/// An entry to write. Its value is `None` for an exception.
struct Entry<'e> {
    name: &'e Name,
    scope: Scope,
    precedence: Precedence,
    value: Option<String>,
}

impl<'e> Entry<'e> {
    fn new(
        (name, scope, precedence, verdict): &'e (NameBuf, Scope, Precedence, Verdict),
        labels: &Labels,
    ) -> Result<Self, WriteError> {
        let value = match verdict {
            Verdict::Exception => None,
            Verdict::Value(value) => {
                let no_label = || WriteError::Label { name: name.to_string(), result: value.get() };
                Some(labels.label(value.get()).ok_or_else(no_label)?.to_string())
            }
        };
        Ok(Self { name, scope: *scope, precedence: *precedence, value })
    }

    /// Writes the lines of the entry. `None` if the format has none for it.
    fn write(&self, format: ListFormat, into: &mut String) -> Option<()> {
        match format {
            ListFormat::Hosts => self.hosts(into),
            ListFormat::Adblock => self.adblock(into),
            ListFormat::Dnsmasq => self.dnsmasq(into),
            ListFormat::Rpz => self.rpz(into),
            ListFormat::Psl => self.psl(into),
        }
    }

    fn hosts(&self, into: &mut String) -> Option<()> {
        let value = self.value.as_deref().filter(|_| self.scope == Scope::Exact)?;
        for address in addresses(value)? {
            let address = address.map_or("0.0.0.0", |address| address);
            writeln!(into, "{address} {}", domain(self.name)).ok()?;
        }
        Some(())
    }

    fn adblock(&self, into: &mut String) -> Option<()> {
        let start = match self.value.as_deref() {
            None => "@@",
            Some(BLOCKED) => "",
            Some(_) => return None,
        };
        let anchor = match self.scope {
            Scope::Exact => "|",
            Scope::Subtree => "||",
            Scope::Beneath => "||*.",
            Scope::OneLabel => return None,
        };
        let end = if self.precedence.level >= 2 { "$important" } else { "" };
        writeln!(into, "{start}{anchor}{}^{end}", domain(self.name)).ok()
    }

    fn dnsmasq(&self, into: &mut String) -> Option<()> {
        let domains = match (self.scope, self.name.is_empty()) {
            (Scope::Subtree, true) => "#".to_owned(),
            (Scope::OneLabel, true) => String::new(),
            (Scope::Subtree, false) => domain(self.name),
            (Scope::Beneath, false) => format!("*.{}", domain(self.name)),
            _ => return None,
        };
        let Some(value) = self.value.as_deref() else { return writeln!(into, "server=/{domains}/#").ok() };
        if value == "nxdomain" {
            return writeln!(into, "address=/{domains}/").ok();
        }
        if value.starts_with("server=") {
            return value.split(',').try_for_each(|server| {
                writeln!(into, "server=/{domains}/{}", server.strip_prefix("server=")?).ok()
            });
        }
        for address in addresses(value)? {
            writeln!(into, "address=/{domains}/{}", address.unwrap_or("#")).ok()?;
        }
        Some(())
    }

    fn rpz(&self, into: &mut String) -> Option<()> {
        let name = domain(self.name);
        let owners = match (self.scope, self.name.is_empty()) {
            (Scope::Exact, false) => vec![name],
            (Scope::Beneath, false) => vec![format!("*.{name}")],
            (Scope::Subtree, false) => vec![format!("*.{name}"), name],
            (Scope::Beneath, true) => vec!["*".to_owned()],
            _ => return None,
        };
        let mut records = Vec::new();
        match self.value.as_deref() {
            None => records.push("CNAME rpz-passthru.".to_owned()),
            Some("nxdomain") => records.push("CNAME .".to_owned()),
            Some("nodata") => records.push("CNAME *.".to_owned()),
            Some("drop") => records.push("CNAME rpz-drop.".to_owned()),
            Some("tcp-only") => records.push("CNAME rpz-tcp-only.".to_owned()),
            Some(value) => match value.strip_prefix("cname=") {
                Some(target) => records.push(format!("CNAME {target}.")),
                None => {
                    for address in addresses(value)? {
                        match address {
                            None => records.extend(["A 0.0.0.0".to_owned(), "AAAA ::".to_owned()]),
                            Some(address) if address.contains(':') => records.push(format!("AAAA {address}")),
                            Some(address) => records.push(format!("A {address}")),
                        }
                    }
                }
            },
        }
        for owner in owners {
            records.iter().try_for_each(|record| writeln!(into, "{owner} {record}").ok())?;
        }
        Some(())
    }

    fn psl(&self, into: &mut String) -> Option<()> {
        let name = domain(self.name);
        match (self.value.as_deref(), self.scope, self.name.is_empty()) {
            (None, Scope::Subtree, false) => writeln!(into, "!{name}").ok(),
            (Some(_), Scope::Beneath, true) => writeln!(into, "*").ok(),
            (Some(_), Scope::Beneath, false) => writeln!(into, "*.{name}").ok(),
            (Some(_), Scope::Subtree, false) => writeln!(into, "{name}").ok(),
            _ => None,
        }
    }
}

/// The addresses of a value, and `None` for [`BLOCKED`]. `None` if it is no such value.
fn addresses(value: &str) -> Option<Vec<Option<&str>>> {
    let address = |text| match text {
        BLOCKED => Some(None),
        text => text.parse::<IpAddr>().ok().map(|_| Some(text)),
    };
    value.split(',').map(address).collect()
}

fn domain(name: &Name) -> String {
    let mut text = String::new();
    name.append_domain(&mut text);
    text
}

/// Checks that the text of a list answers as the list does.
fn check(list: &Entries, labels: &Labels, format: ListFormat, text: &str) -> Result<(), WriteError> {
    if list.is_empty() {
        return Ok(());
    }
    let options = ListOptions { format: Some(format), ..ListOptions::default() };
    let again = read_list_from(text.as_bytes(), "the list", &options);
    let (again, _) = again.map_err(|error| WriteError::Unreadable { what: error.to_string() })?;
    let (meant, read) = (list.clone().resolve(), again.list.resolve());
    let mut names: Vec<NameBuf> = list.iter().map(|(name, ..)| name).collect();
    names.push(NameBuf::root());
    for name in names {
        let mut asked = name.clone();
        for _ in 0..3 {
            let of = |list: &Resolved, labels: &Labels| {
                let value = |verdict: Verdict| labels.label(verdict.result()).map(|label| label.to_string());
                list.lookup(&asked).map(|found| value(found.verdict))
            };
            if of(&meant, labels) != of(&read, &again.labels) {
                return Err(WriteError::Differs { format, name: domain(&name) });
            }
            // No domain has such a label.
            if asked.push(b"*").is_err() {
                break;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{ReadOptions, read_table_from};

    fn converted(text: &str, from: ListFormat, to: ListFormat) -> Result<String, String> {
        let options = ListOptions { format: Some(from), ..ListOptions::default() };
        let (read, _) = read_list_from(text.as_bytes(), "test", &options).unwrap();
        let mut out = Vec::new();
        write_list(&read.list, &read.labels, to, &mut out).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn each_format_is_written_as_it_was_read() {
        for (text, format) in [
            ("0.0.0.0 ads.example\n192.0.2.1 www.example\n2001:db8::1 www.example\n", ListFormat::Hosts),
            (
                "[Adblock Plus]\n||ads.example^\n@@||good.ads.example^\n||*.good.ads.example^$important\n|one.example^\n",
                ListFormat::Adblock,
            ),
            (
                "address=/ads.example/#\nserver=/good.ads.example/#\naddress=/*.new.example/192.0.2.1\n\
                 address=/nx.example/\nserver=/own.example/192.0.2.2#53\n",
                ListFormat::Dnsmasq,
            ),
            (
                "$TTL 60\n@ SOA localhost. root.localhost. 1 3600 600 86400 60\n@ NS localhost.\n\
                 a.example CNAME .\n*.a.example CNAME rpz-passthru.\nb.example CNAME www.example.\n\
                 c.example A 192.0.2.1\nd.example CNAME *.\ne.example CNAME rpz-drop.\n",
                ListFormat::Rpz,
            ),
            (
                "// ===BEGIN ICANN DOMAINS===\n*.ck\n!www.ck\nuk\nco.uk\n// ===END ICANN DOMAINS===\n\
                 // ===BEGIN PRIVATE DOMAINS===\nblog.example\n// ===END PRIVATE DOMAINS===\n",
                ListFormat::Psl,
            ),
        ] {
            let sorted = |text: &str| {
                let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
                lines.sort();
                lines
            };
            assert_eq!(sorted(&converted(text, format, format).unwrap()), sorted(text), "{format}");
        }
    }

    #[test]
    fn what_another_format_can_say_is_converted_and_the_rest_refused() {
        use ListFormat::{Adblock, Dnsmasq, Hosts, Psl, Rpz};
        assert_eq!(
            converted("0.0.0.0 ads.example\n", Hosts, Adblock).unwrap(),
            "[Adblock Plus]\n|ads.example^\n"
        );
        let rpz = converted("||ads.example^\n", Adblock, Rpz).unwrap();
        assert!(
            rpz.ends_with(
                "*.ads.example A 0.0.0.0\n*.ads.example AAAA ::\nads.example A 0.0.0.0\nads.example AAAA ::\n"
            ),
            "{rpz}"
        );
        for (text, from, to, said) in [
            (
                "||ads.example^\n",
                Adblock,
                Hosts,
                "hosts can't say what the list says of ads.example (subtree, blocked)",
            ),
            ("192.0.2.1 a.example\n", Hosts, Adblock, "(exact, 192.0.2.1)"),
            ("@@|a.example^\n", Adblock, Hosts, "(exact, an exception)"),
            // An exception of Adblock wins over blocks beneath it, as nowhere else.
            (
                "@@||example^\n||ads.example^\n",
                Adblock,
                Dnsmasq,
                "dnsmasq would answer otherwise for ads.example",
            ),
            (
                "server=/good.ads.example/#\naddress=/ads.example/#\naddress=/x.good.ads.example/#\n",
                Dnsmasq,
                Adblock,
                "adblock would answer otherwise for x.good.ads.example",
            ),
            ("0.0.0.0 a.example\n", Hosts, Psl, "psl can't say"),
        ] {
            let error = converted(text, from, to).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn tables_as_lists_and_domains() {
        let table = |text: &str| read_table_from(text.as_bytes(), "test", &ReadOptions::default()).unwrap().0;
        let written = |text: &str, format: Option<ListFormat>| {
            let (fib, mut out) = (table(text), Vec::new());
            match format {
                Some(format) => write_table_as_list(&fib.names, &fib.labels, format, &mut out),
                None => write_domains(&fib.names, &fib.labels, &mut out),
            }
            .map_err(|error| error.to_string())?;
            Ok::<_, String>(String::from_utf8(out).unwrap())
        };
        let list = "ads.example\nb.example\n";
        assert_eq!(written(list, None).unwrap(), list);
        assert_eq!(written("/example/ads x\n/org y\n", None).unwrap(), "ads.example x\norg y\n");
        assert_eq!(
            written(list, Some(ListFormat::Adblock)).unwrap(),
            "[Adblock Plus]\n||ads.example^\n||b.example^\n"
        );
        assert_eq!(
            written("ads.example nxdomain\n", Some(ListFormat::Dnsmasq)).unwrap(),
            "address=/ads.example/\n"
        );
        assert!(written("ads.example 7\n", Some(ListFormat::Rpz)).unwrap_err().contains("(subtree, 7)"));
        for odd in ["/example/A x\n", "/example/a.b x\n", "/a/b%c x\n"] {
            assert!(written(odd, None).is_err(), "{odd}");
        }
        assert!(written("/example/A blocked\n", Some(ListFormat::Adblock)).is_err());
    }
}
