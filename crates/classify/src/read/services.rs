//! Ports by the names of their services.
//!
//! The names, protocols and numbers are from the registry of IANA ("Service Name and Transport Protocol Port
//! Number Registry", RFC 6335), which is also the source of `/etc/services`. Each name has one number for all
//! of its protocols. A name that is not here may belong to the machine.

const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;
const SCTP: u8 = 132;

/// Services: their name, the protocols that they are registered for, their port.
const SERVICES: [(&str, &[u8], u16); 83] = [
    ("echo", &[TCP, UDP], 7),
    ("discard", &[TCP, UDP, SCTP, DCCP], 9),
    ("daytime", &[TCP, UDP], 13),
    ("chargen", &[TCP, UDP], 19),
    ("ftp-data", &[TCP, UDP, SCTP], 20),
    ("ftp", &[TCP, UDP, SCTP], 21),
    ("ssh", &[TCP, UDP, SCTP], 22),
    ("telnet", &[TCP, UDP], 23),
    ("smtp", &[TCP, UDP], 25),
    ("time", &[TCP, UDP], 37),
    ("tacacs", &[TCP, UDP], 49),
    ("domain", &[TCP, UDP], 53),
    ("bootps", &[TCP, UDP], 67),
    ("bootpc", &[TCP, UDP], 68),
    ("tftp", &[TCP, UDP], 69),
    ("gopher", &[TCP, UDP], 70),
    ("finger", &[TCP, UDP], 79),
    ("http", &[TCP, UDP, SCTP], 80),
    ("www", &[TCP, UDP], 80),
    ("kerberos", &[TCP, UDP], 88),
    ("pop3", &[TCP, UDP], 110),
    ("sunrpc", &[TCP, UDP], 111),
    ("auth", &[TCP, UDP], 113),
    ("nntp", &[TCP, UDP], 119),
    ("ntp", &[TCP, UDP], 123),
    ("epmap", &[TCP, UDP], 135),
    ("netbios-ns", &[TCP, UDP], 137),
    ("netbios-dgm", &[TCP, UDP], 138),
    ("netbios-ssn", &[TCP, UDP], 139),
    ("imap", &[TCP, UDP], 143),
    ("snmp", &[TCP, UDP], 161),
    ("snmptrap", &[TCP, UDP], 162),
    ("bgp", &[TCP, UDP, SCTP], 179),
    ("irc", &[TCP, UDP], 194),
    ("ldap", &[TCP, UDP], 389),
    ("https", &[TCP, UDP, SCTP], 443),
    ("microsoft-ds", &[TCP, UDP], 445),
    ("kpasswd", &[TCP, UDP], 464),
    ("submissions", &[TCP], 465),
    ("isakmp", &[TCP, UDP], 500),
    ("exec", &[TCP], 512),
    ("login", &[TCP], 513),
    ("shell", &[TCP], 514),
    ("syslog", &[UDP], 514),
    ("printer", &[TCP, UDP], 515),
    ("dhcpv6-client", &[TCP, UDP], 546),
    ("dhcpv6-server", &[TCP, UDP], 547),
    ("rtsp", &[TCP, UDP], 554),
    ("nntps", &[TCP, UDP], 563),
    ("submission", &[TCP, UDP], 587),
    ("ipp", &[TCP, UDP], 631),
    ("ldaps", &[TCP, UDP], 636),
    ("domain-s", &[TCP, UDP], 853),
    ("rsync", &[TCP, UDP], 873),
    ("ftps-data", &[TCP, UDP], 989),
    ("ftps", &[TCP, UDP], 990),
    ("telnets", &[TCP, UDP], 992),
    ("imaps", &[TCP, UDP], 993),
    ("pop3s", &[TCP, UDP], 995),
    ("socks", &[TCP, UDP], 1080),
    ("openvpn", &[TCP, UDP], 1194),
    ("ms-sql-s", &[TCP, UDP], 1433),
    ("ms-sql-m", &[TCP, UDP], 1434),
    ("l2tp", &[TCP, UDP], 1701),
    ("radius", &[TCP, UDP], 1812),
    ("radius-acct", &[TCP, UDP], 1813),
    ("nfs", &[TCP, UDP, SCTP], 2049),
    ("iscsi-target", &[TCP, UDP], 3260),
    ("mysql", &[TCP, UDP], 3306),
    ("ms-wbt-server", &[TCP, UDP], 3389),
    ("svn", &[TCP, UDP], 3690),
    ("ipsec-nat-t", &[TCP, UDP], 4500),
    ("sip", &[TCP, UDP, SCTP], 5060),
    ("xmpp-client", &[TCP], 5222),
    ("xmpp-server", &[TCP], 5269),
    ("mdns", &[TCP, UDP], 5353),
    ("postgresql", &[TCP, UDP], 5432),
    ("amqps", &[TCP, UDP], 5671),
    ("amqp", &[TCP, UDP, SCTP], 5672),
    ("redis", &[TCP], 6379),
    ("syslog-tls", &[TCP, UDP, DCCP], 6514),
    ("http-alt", &[TCP, UDP], 8080),
    ("git", &[TCP, UDP], 9418),
];

/// The port of a service, if it is registered for the protocol; without a protocol, for any.
pub(super) fn port(name: &str, protocol: Option<u8>) -> Option<u16> {
    let (_, protocols, port) = SERVICES.iter().find(|(known, ..)| *known == name)?;
    protocol.is_none_or(|wanted| protocols.contains(&wanted)).then_some(*port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_services() {
        for (name, protocol, wanted) in [
            ("ssh", Some(TCP), Some(22)),
            ("domain", Some(UDP), Some(53)),
            ("syslog", Some(UDP), Some(514)),
            ("syslog", Some(TCP), None),
            ("shell", None, Some(514)),
            ("SSH", Some(TCP), None),
            ("ssh ", Some(TCP), None),
            ("", None, None),
            ("ours", Some(TCP), None),
        ] {
            assert_eq!(port(name, protocol), wanted, "{name} of {protocol:?}");
        }
        let is_ascending = SERVICES.is_sorted_by_key(|(_, _, port)| port);
        let names: std::collections::BTreeSet<_> = SERVICES.iter().map(|(name, ..)| name).collect();
        assert!(is_ascending && names.len() == SERVICES.len());
    }

    /// A machine may have names of its own, and none of these for another port.
    #[test]
    fn this_machine_has_the_same_ports() {
        let Ok(text) = std::fs::read_to_string("/etc/services") else {
            eprintln!("skipped: there is no /etc/services");
            return;
        };
        for line in text.lines() {
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            let (Some(name), Some((number, protocol))) =
                (words.next(), words.next().and_then(|place| place.split_once('/')))
            else {
                continue;
            };
            let Some(protocol) = ["tcp", "udp"].iter().position(|known| *known == protocol) else { continue };
            for name in std::iter::once(name).chain(words) {
                if let Some(known) = port(name, Some([TCP, UDP][protocol])) {
                    assert_eq!(number, known.to_string(), "{line}");
                }
            }
        }
    }
}
