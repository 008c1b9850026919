//! The recognition of a list's format by its first lines.

use wirespeed_fib::read::parts::split_word;

use super::format::ListFormat;
use super::{address, dnsmasq, rpz};

impl ListFormat {
    /// Recognises the format of a file by its first bytes; `ends` says that they are the whole file. `None`
    /// if it may be something else: a plain list of domains is none of these formats, though some of them
    /// allow such lines.
    ///
    /// The Public Suffix List is known by its section marks, a filter list by its heading or by a first rule
    /// with `||` and `^`, a zone by its SOA record or its rules. A hosts file has an address and a name on
    /// most lines, and a configuration of dnsmasq only options with domains.
    ///
    /// ```
    /// use wirespeed_namelookup::read::lists::ListFormat;
    ///
    /// assert_eq!(ListFormat::recognise(b"127.0.0.1 localhost\n", true), Some(ListFormat::Hosts));
    /// assert_eq!(ListFormat::recognise(b"! mine\n||ads.example^\n", true), Some(ListFormat::Adblock));
    /// assert_eq!(ListFormat::recognise(b"example.com\n", true), None);
    /// ```
    pub fn recognise(start: &[u8], ends: bool) -> Option<Self> {
        let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
        let whole = match start.iter().rposition(|&b| b == b'\n') {
            Some(last) if !ends => &start[..last],
            _ => start,
        };
        let lines = || whole.split(|&b| b == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
        if lines().any(|line| line.starts_with(b"// ===BEGIN ") && line.ends_with(b" DOMAINS===")) {
            return Some(Self::Psl);
        }
        let first = lines().next()?;
        let is_rule =
            |line: &[u8]| (line.starts_with(b"||") || line.starts_with(b"@@||")) && line.contains(&b'^');
        let rule = lines().find(|line| !matches!(line[0], b'!' | b'#'));
        if first.to_ascii_lowercase().starts_with(b"[adblock") || rule.is_some_and(is_rule) {
            return Some(Self::Adblock);
        }
        if rpz::is_zone(whole) {
            return Some(Self::Rpz);
        }
        let (mut count, mut hosts, mut options) = (0, 0, 0);
        for line in lines().filter(|line| !line.starts_with(b"#")) {
            let (word, rest) = split_word(line);
            let name = split_word(rest).0;
            count += 1;
            hosts += usize::from(!matches!(name.first(), None | Some(b'#')) && address(word).is_some());
            options += usize::from(dnsmasq::is_option(line));
        }
        // Lines of hosts are lines of nothing else here, so a few others are its errors, to be told as such.
        if 2 * hosts > count {
            Some(Self::Hosts)
        } else {
            (count > 0 && options == count).then_some(Self::Dnsmasq)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_line_leaves_a_hosts_file_what_it_is() {
        let of = |text: &str| ListFormat::recognise(text.as_bytes(), true);
        let hosts = Some(ListFormat::Hosts);
        assert_eq!(of("300.0.0.1 bad.example\n0.0.0.0 ads.example\n0.0.0.0 more.example\n"), hosts);
        assert_eq!(of("# none\n0.0.0.0 ads.example\n0.0.0.0\n::1 localhost\n"), hosts);
        assert_eq!(of("ads.example\n0.0.0.0 more.example\n"), None, "as many of both kinds");
        assert_eq!(of("# nothing\n"), None);
        assert_eq!(of("address=/ads.example/\nads.example\n"), None);
    }
}
