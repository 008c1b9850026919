//! [`ListFormat`]: the formats of lists, by name.

use std::fmt;
use std::str::FromStr;

/// A format of lists of domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ListFormat {
    /// Hosts files: an address and the names that have it, `0.0.0.0 ads.example.com`.
    ///
    /// Each name is an [exact](crate::list::Scope::Exact) entry; what is beneath it is another name. The
    /// value is the address, or [`BLOCKED`](super::BLOCKED). The names that a machine has for itself
    /// (`localhost`, `ip6-allnodes` and the like) keep their address. Several addresses of a name are all its
    /// value, in order, each once: `127.0.0.1,::1`.
    Hosts,
    /// Adblock filter lists, as far as they are about domains, in the meaning that DNS filters (AdGuard Home,
    /// Pi-hole) give to them.
    ///
    /// `||example.com^` is a domain and all names beneath it, `||*.example.com^` the names beneath it alone,
    /// `|example.com^` and a line with nothing but a domain are the domain alone. Their value is
    /// [`BLOCKED`](super::BLOCKED). `@@` before a rule makes it an exception. An exception wins over all
    /// blocks, of names above and beneath its own. `$important` makes a block win over these exceptions, and
    /// an exception win over everything. Lines of hosts files are read, too. Rules for elements of pages,
    /// paths, ports, regular expressions and all other modifiers are left out with a reason, because a DNS
    /// filter that took them for the whole domain would block too much.
    Adblock,
    /// Configurations of dnsmasq: `address=/example.com/0.0.0.0`, `server=/example.com/192.0.2.1`,
    /// `local=/example.com/`.
    ///
    /// A domain counts for itself and all names beneath it; `*.example.com` for the names beneath it alone,
    /// after one without `*.`; nothing (`//`) for names of one label, and `#` for every name. The longest
    /// domain wins; of equal ones `address` wins over no server, and this over a server, as in dnsmasq from
    /// 2.86 on. The value is the address or [`BLOCKED`](super::BLOCKED), `nxdomain` if there is none, and
    /// `server=ADDRESS` for a server; several addresses or servers of a domain with commas between.
    /// `server=/example.com/#` is an exception: the domain goes where all others go.
    Dnsmasq,
    /// Response policy zones (RPZ), as master files or as the output of a zone transfer, with rules for names
    /// of queries.
    ///
    /// `example.com` is the name alone, `*.example.com` the names beneath it. The longest name wins, and a
    /// name alone over a wildcard. Names with rules do not hide a wildcard from the names beneath them, as
    /// they would in a zone of answers. Values are `nxdomain` (`CNAME .`), `nodata` (`CNAME *.`), `drop`,
    /// `tcp-only`, `cname=TARGET`, an address ([`BLOCKED`](super::BLOCKED) for loopback ones), several with
    /// commas between, or `local-data` for records of other types; of several records of a name, CNAME stays
    /// before A and AAAA, and these before others. `rpz-passthru.`, and a CNAME to the name itself, are
    /// exceptions.
    Rpz,
    /// The Public Suffix List.
    ///
    /// `com` is the name and all names beneath it, `*.ck` the names beneath it, `!www.ck` an exception, which
    /// wins over all other rules. Values are the sections, `icann` and `private`, or `listed` for rules in
    /// none.
    Psl,
}

impl ListFormat {
    /// All formats.
    pub const ALL: [Self; 5] = [Self::Hosts, Self::Adblock, Self::Dnsmasq, Self::Rpz, Self::Psl];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hosts => "hosts",
            Self::Adblock => "adblock",
            Self::Dnsmasq => "dnsmasq",
            Self::Rpz => "rpz",
            Self::Psl => "psl",
        }
    }
}

impl fmt::Display for ListFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names no format of lists.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no format of lists is called {0:?}: there are hosts, adblock, dnsmasq, rpz and psl")]
pub struct UnknownListFormat(String);

impl FromStr for ListFormat {
    type Err = UnknownListFormat;

    fn from_str(text: &str) -> Result<Self, UnknownListFormat> {
        Self::ALL
            .into_iter()
            .find(|format| format.name() == text)
            .ok_or_else(|| UnknownListFormat(text.to_owned()))
    }
}
