//! The options that are known: of rules themselves, of matches (`-m`), and of targets (`-j`), as iptables 1.8
//! has them.
//!
//! Each is written `--name|--other|-x:N`: its names and how many arguments it takes; with `!` before it where
//! it may be negated.

/// Options of rules themselves.
pub(super) const BASE: &str = "!--source|--src|-s:1 !--destination|--dst|-d:1 !--protocol|--proto|-p:1 !--in-interface|-i:1 \
    !--out-interface|-o:1 !--fragment|-f:0 --match|-m:1 --jump|-j:1 --goto|-g:1 --set-counters|-c:2 --ipv4|-4:0 --ipv6|-6:0";

/// An option that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// The first of its names.
    pub(super) name: &'static str,
    pub(super) arguments: usize,
    pub(super) may_be_negated: bool,
}

/// Finds an option among those of a list.
pub(super) fn find(options: &'static str, name: &str) -> Option<Known> {
    options.split_whitespace().find_map(|option| {
        let (names, arguments) = option.rsplit_once(':')?;
        let plain = names.trim_start_matches('!');
        let mut all = plain.split('|');
        all.clone().any(|known| known == name).then(|| Known {
            name: all.next().unwrap_or(plain),
            arguments: arguments.parse().unwrap_or(0),
            may_be_negated: names.starts_with('!'),
        })
    })
}

/// The one name of a match that has several.
pub(super) fn plain_match(name: &str) -> &str {
    match name {
        "icmpv6" | "ipv6-icmp" => "icmp6",
        name => name,
    }
}

/// The options of a match; `None` of one that isn't known.
pub(super) fn of_match(name: &str) -> Option<&'static str> {
    Some(match name {
        "tcp" => {
            "!--source-port|--sport:1 !--destination-port|--dport:1 !--tcp-flags:2 !--syn:0 !--tcp-option:1"
        }
        "udp" => "!--source-port|--sport:1 !--destination-port|--dport:1",
        "sctp" => "!--source-port|--sport:1 !--destination-port|--dport:1 !--chunk-types:2",
        "dccp" => "!--source-port|--sport:1 !--destination-port|--dport:1 !--dccp-types:1 !--dccp-option:1",
        "multiport" => "!--source-ports|--sports:1 !--destination-ports|--dports:1 !--ports:1",
        "icmp" => "!--icmp-type:1",
        "icmp6" => "!--icmpv6-type:1",
        "comment" => "--comment:1",
        "iprange" => "!--src-range:1 !--dst-range:1",
        "conntrack" => {
            "!--ctstate:1 !--ctproto:1 !--ctorigsrc:1 !--ctorigdst:1 !--ctreplsrc:1 !--ctrepldst:1 !--ctorigsrcport:1 \
            !--ctorigdstport:1 !--ctreplsrcport:1 !--ctrepldstport:1 !--ctstatus:1 !--ctexpire:1 --ctdir:1"
        }
        "state" => "!--state:1",
        "mark" | "connmark" => "!--mark:1",
        "limit" => "--limit:1 --limit-burst:1",
        "hashlimit" => {
            "!--hashlimit-upto|--hashlimit:1 --hashlimit-above:1 --hashlimit-burst:1 --hashlimit-mode:1 --hashlimit-name:1 \
            --hashlimit-srcmask:1 --hashlimit-dstmask:1 --hashlimit-htable-size:1 --hashlimit-htable-max:1 \
            --hashlimit-htable-expire:1 --hashlimit-htable-gcinterval:1 --hashlimit-rate-match:0 --hashlimit-rate-interval:1"
        }
        "recent" => {
            "!--set:0 !--rcheck:0 !--update:0 !--remove:0 --seconds:1 --reap:0 --hitcount:1 --rttl:0 --name:1 --rsource:0 \
            --rdest:0 --mask:1"
        }
        "owner" => "!--uid-owner:1 !--gid-owner:1 !--socket-exists:0 --suppl-groups:0",
        "addrtype" => "!--src-type:1 !--dst-type:1 --limit-iface-in:0 --limit-iface-out:0",
        "string" => "--from:1 --to:1 --algo:1 --icase:0 !--string:1 !--hex-string:1",
        "time" => {
            "--timestart:1 --timestop:1 !--monthdays:1 !--weekdays:1 --datestart:1 --datestop:1 --kerneltz:0 --utc:0 --localtz:0 \
            --contiguous:0"
        }
        "physdev" => {
            "!--physdev-in:1 !--physdev-out:1 !--physdev-is-in:0 !--physdev-is-out:0 !--physdev-is-bridged:0"
        }
        "pkttype" => "!--pkt-type:1",
        "mac" => "!--mac-source:1",
        "set" => {
            "!--match-set:2 --return-nomatch:0 !--update-counters:0 !--update-subcounters:0 !--packets-eq:1 --packets-lt:1 \
            --packets-gt:1 !--bytes-eq:1 --bytes-lt:1 --bytes-gt:1"
        }
        "length" => "!--length:1",
        "ttl" => "!--ttl-eq|--ttl:1 --ttl-lt:1 --ttl-gt:1",
        "hl" => "!--hl-eq|--hl:1 --hl-lt:1 --hl-gt:1",
        "dscp" => "!--dscp:1 !--dscp-class:1",
        "tos" => "!--tos:1",
        "rpfilter" => "--loose:0 --validmark:0 --accept-local:0 --invert:0",
        "socket" => "--transparent:0 --nowildcard:0 --restore-skmark:0",
        "policy" => {
            "--dir:1 --pol:1 --strict:0 !--reqid:1 !--spi:1 !--tunnel-src:1 !--tunnel-dst:1 !--mode:1 !--proto:1 --next:0"
        }
        "u32" => "!--u32:1",
        "bpf" => "--bytecode:1 --object-pinned:1",
        "statistic" => "--mode:1 !--probability:1 !--every:1 --packet:1",
        "connlimit" => {
            "--connlimit-upto:1 !--connlimit-above:1 --connlimit-mask:1 --connlimit-saddr:0 --connlimit-daddr:0"
        }
        "connbytes" => "!--connbytes:1 --connbytes-dir:1 --connbytes-mode:1",
        "connlabel" => "!--label:1 --set:0",
        "helper" => "!--helper:1",
        "realm" => "!--realm:1",
        "nfacct" => "--nfacct-name:1",
        "quota" => "!--quota:1",
        "cpu" => "!--cpu:1",
        "devgroup" => "!--src-group:1 !--dst-group:1",
        "cgroup" => "!--path:1 !--cgroup:1",
        "esp" => "!--espspi:1",
        "ah" => "!--ahspi:1 !--ahlen:1 --ahres:0",
        "ecn" => "!--ecn-tcp-cwr:0 !--ecn-tcp-ece:0 !--ecn-ip-ect:1",
        "tcpmss" => "!--mss:1",
        "frag" => "!--fragid:1 !--fraglen:1 --fragres:0 --fragfirst:0 --fragmore:0 --fraglast:0",
        "hbh" => "!--hbh-len:1 --hbh-opts:1",
        "dst" => "!--dst-len:1 --dst-opts:1",
        "rt" => "!--rt-type:1 !--rt-segsleft:1 !--rt-len:1 --rt-0-res:0 --rt-0-addrs:1 --rt-0-not-strict:0",
        "mh" => "!--mh-type:1",
        "ipv6header" => "!--header:1 --soft:0",
        "eui64" => "",
        _ => return None,
    })
}

/// What a target does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// Decides.
    Decides,
    /// Decides in the table `nat`, which is the only one that has it.
    Translates,
    /// Goes to the end of the chain.
    Returns,
    /// Nothing that a rule looks at.
    Nothing,
    /// Changes the packet's mark or that of its connection.
    Marks,
    /// Changes what connection tracking makes of the packet.
    Tracks,
    /// Adds to a set of addresses, or takes from one.
    FillsSet,
    /// Changes the type of service.
    ChangesTos,
    /// Something that nobody can say without the packet.
    Depends,
}

/// A target's options, and what it does; `None` of one that isn't known.
pub(super) fn of_target(name: &str) -> Option<(&'static str, Does)> {
    Some(match name {
        "ACCEPT" | "DROP" | "QUEUE" => ("", Does::Decides),
        "REJECT" => ("--reject-with:1", Does::Decides),
        "NFQUEUE" => ("--queue-num:1 --queue-balance:1 --queue-bypass:0 --queue-cpu-fanout:0", Does::Decides),
        "RETURN" => ("", Does::Returns),
        "LOG" => (
            "--log-level:1 --log-prefix:1 --log-tcp-sequence:0 --log-tcp-options:0 --log-ip-options:0 --log-uid:0 \
            --log-macdecode:0",
            Does::Nothing,
        ),
        "NFLOG" => (
            "--nflog-group:1 --nflog-prefix:1 --nflog-range:1 --nflog-size:1 --nflog-threshold:1",
            Does::Nothing,
        ),
        "ULOG" => ("--ulog-nlgroup:1 --ulog-prefix:1 --ulog-cprange:1 --ulog-qthreshold:1", Does::Nothing),
        "AUDIT" => ("--type:1", Does::Nothing),
        "TRACE" => ("", Does::Nothing),
        "TEE" => ("--gateway:1 --oif:1", Does::Nothing),
        "CLASSIFY" => ("--set-class:1", Does::Nothing),
        "CHECKSUM" => ("--checksum-fill:0", Does::Nothing),
        "TCPMSS" => ("--set-mss:1 --clamp-mss-to-pmtu:0", Does::Nothing),
        "TCPOPTSTRIP" => ("--strip-options:1", Does::Nothing),
        "SECMARK" => ("--selctx:1", Does::Nothing),
        "CONNSECMARK" => ("--save:0 --restore:0", Does::Nothing),
        "IDLETIMER" => ("--timeout:1 --label:1 --alarm:0", Does::Nothing),
        "LED" => ("--led-trigger-id:1 --led-delay:1 --led-always-blink:0", Does::Nothing),
        "TTL" => ("--ttl-set:1 --ttl-dec:1 --ttl-inc:1", Does::Nothing),
        "HL" => ("--hl-set:1 --hl-dec:1 --hl-inc:1", Does::Nothing),
        "MARK" => ("--set-xmark:1 --set-mark:1 --and-mark:1 --or-mark:1 --xor-mark:1", Does::Marks),
        "CONNMARK" => (
            "--set-xmark:1 --set-mark:1 --and-mark:1 --or-mark:1 --xor-mark:1 --save-mark:0 --restore-mark:0 --nfmask:1 --ctmask:1 \
            --mask:1 --left-shift-mark:1 --right-shift-mark:1",
            Does::Marks,
        ),
        "HMARK" => (
            "--hmark-tuple:1 --hmark-mod:1 --hmark-offset:1 --hmark-src-prefix:1 --hmark-dst-prefix:1 --hmark-sport-mask:1 \
            --hmark-dport-mask:1 --hmark-spi-mask:1 --hmark-proto-mask:1 --hmark-rnd:1 --hmark-spi:1 --hmark-sport:1 --hmark-dport:1",
            Does::Marks,
        ),
        "CT" => (
            "--notrack:0 --helper:1 --ctevents:1 --expevents:1 --zone:1 --zone-orig:1 --zone-reply:1 --timeout:1",
            Does::Tracks,
        ),
        "NOTRACK" => ("", Does::Tracks),
        "SET" => (
            "--add-set:2 --del-set:2 --map-set:2 --exist:0 --timeout:1 --map-mark:0 --map-prio:0 --map-queue:0",
            Does::FillsSet,
        ),
        "DSCP" => ("--set-dscp:1 --set-dscp-class:1", Does::ChangesTos),
        "TOS" => ("--set-tos:1 --and-tos:1 --or-tos:1 --xor-tos:1", Does::ChangesTos),
        "ECN" => ("--ecn-tcp-remove:0", Does::Nothing),
        "DNAT" => ("--to-destination:1 --random:0 --persistent:0", Does::Translates),
        "SNAT" => ("--to-source:1 --random:0 --random-fully:0 --persistent:0", Does::Translates),
        "MASQUERADE" => ("--to-ports:1 --random:0 --random-fully:0", Does::Translates),
        "REDIRECT" => ("--to-ports:1 --random:0", Does::Translates),
        "NETMAP" => ("--to:1", Does::Translates),
        "TPROXY" => ("--on-port:1 --on-ip:1 --tproxy-mark:1", Does::Depends),
        "SYNPROXY" => ("--sack-perm:0 --timestamp:0 --wscale:1 --mss:1 --ecn:0", Does::Depends),
        "CLUSTERIP" => (
            "--new:0 --hashmode:1 --clustermac:1 --total-nodes:1 --local-node:1 --hash-init:1",
            Does::Depends,
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_by_their_names() {
        let tcp = of_match("tcp").expect("known");
        assert_eq!(find(tcp, "--dport"), find(tcp, "--destination-port"));
        let flags = Known { name: "--tcp-flags", arguments: 2, may_be_negated: true };
        assert_eq!((find(tcp, "--tcp-flags"), find(tcp, "--tcp")), (Some(flags), None));
        assert_eq!(find(BASE, "-s").map(|known| known.name), Some("--source"));
        assert_eq!(find(BASE, "--jump").map(|known| known.may_be_negated), Some(false));
        assert_eq!((of_match("geoip"), of_target("ROUTE")), (None, None));
    }
}
