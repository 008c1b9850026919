//! Lines of `ip xfrm`, and files of them.

use wirespeed_esp::read::{Lines, Skip};
use wirespeed_esp::{Action, Change, Direction, Error};

const KEY: &str = "0x00112233445566778899aabbccddeeff01020304";

fn one(text: &str) -> Change {
    let mut lines = Lines::read(text);
    assert_eq!((&lines.skipped[..], lines.changes.len()), (&[][..], 1), "{text}");
    lines.changes.remove(0)
}

#[test]
fn associations_are_read() {
    let text = format!(
        "ip -6 xfrm state add src 2001:db8::1 dst 2001:db8::2 proto esp spi 0x2000 reqid 7 mode tunnel \\\n\
         replay-window 300 flag esn aead 'rfc4106(gcm(aes))' {KEY} 128 encap espinudp 4500 4501 :: \
         sel src 10.0.0.0/8 dst 10.2.0.0/16 proto tcp dport 80 replay-oseq 0x5 replay-oseq-hi 1 replay-seq 9 \
         limit packet-hard 1000 limit byte-hard 5000 path-mtu 1400 # a comment"
    );
    let Change::AddSa(config) = one(&text) else { panic!() };
    assert_eq!((config.spi, config.reqid, config.window, config.is_extended), (0x2000, 7, 300, true));
    assert_eq!((config.sent, config.received, config.path_mtu), (1 << 32 | 5, 9, 1400));
    assert_eq!((config.most_packets, config.most_bytes), (Some(1000), Some(5000)));
    assert_eq!(config.ports.unwrap().dst, 4501);
    let selector = config.selector.unwrap();
    assert_eq!((selector.protocol, selector.destination_port), (Some(6), Some(80)));
    assert!(matches!(one("state delete dst 192.0.2.1 spi 256 proto esp"), Change::RemoveSa(_, 256)));
    assert_eq!(one("xfrm state flush"), Change::FlushSas);
}

#[test]
fn policies_are_read() {
    let text = "policy update src any dst 10.2.0.0/16 proto udp sport 53 dir fwd priority 9 ptype main \
                tmpl src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x100 reqid 3 mode tunnel level required";
    let Change::SetPolicy(policy) = one(text) else { panic!() };
    assert_eq!((policy.direction, policy.priority), (Direction::In, 9));
    assert_eq!(policy.selector.src.to_string(), "0.0.0.0/0");
    assert!(
        matches!(policy.action, Action::Protect(template) if (template.reqid, template.spi) == (3, 0x100))
    );
    let Change::AddPolicy(policy) = one("policy add dst fd00::/8 dir out action block") else { panic!() };
    assert_eq!(policy.action, Action::Discard);
    let lines = Lines::read("policy setdefault in block out accept\npolicy flush\n");
    assert_eq!(lines.changes.len(), 3);
}

/// Records as iproute2 prints them, without `-s` and with it, and lines that say the same.
const PRINTED: [(&str, &str); 6] = [
    (
        "src 192.0.2.1 dst 192.0.2.2\n\
         \tproto esp spi 0x00001000 reqid 1 mode tunnel\n\
         \treplay-window 32 flag af-unspec\n\
         \taead rfc4106(gcm(aes)) KEY 128\n\
         \tanti-replay context: seq 0x9, oseq 0x5, bitmap 0x00000001\n\
         \tlastused 2026-11-29 15:00:00\n\
         \tdir out\n",
        "state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x1000 reqid 1 mode tunnel dir out replay-window 32 \
         flag af-unspec aead rfc4106(gcm(aes)) KEY 128 replay-seq 9 replay-oseq 5",
    ),
    (
        "src 192.0.2.1 dst 192.0.2.2\n\
         \tproto esp spi 0x00001000(4096) reqid 1(0x00000001) mode tunnel\n\
         \treplay-window 0 seq 0x00000000 flag  esn (0x10000000)\n\
         \taead rfc4106(gcm(aes)) KEY (160 bits) 128\n\
         \tencap type espinudp sport 4500 dport 4501 addr 0.0.0.0\n\
         \tanti-replay esn context:\n\
         \t seq-hi 0x1, seq 0x2, oseq-hi 0x3, oseq 0x4\n\
         \t replay_window 128, bitmap-length 4\n\
         \t 00000000 00000000 00000000 ffffffff \n\
         \tsel src 10.1.0.0/16 dst 10.2.0.0/16 proto udp sport 53 uid 0\n\
         \tlifetime config:\n\
         \t  limit: soft (INF)(bytes), hard 5000(bytes)\n\
         \t  limit: soft 70(packets), hard (INF)(packets)\n\
         \t  expire add: soft 0(sec), hard 3600(sec)\n\
         \t  expire use: soft 0(sec), hard 60(sec)\n\
         \tlifetime current:\n\
         \t  84(bytes), 1(packets)\n\
         \t  add 2026-11-29 15:00:00 use -\n\
         \tstats:\n\
         \t  replay-window 0 replay 0 failed 0\n",
        "state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x1000 reqid 1 mode tunnel replay-window 128 flag esn \
         aead rfc4106(gcm(aes)) KEY 128 encap espinudp 4500 4501 0.0.0.0 replay-seq 2 replay-seq-hi 1 \
         replay-oseq 4 replay-oseq-hi 3 sel src 10.1.0.0/16 dst 10.2.0.0/16 proto udp sport 53 \
         limit byte-hard 5000 limit packet-soft 70 limit time-hard 3600 limit time-use-hard 60",
    ),
    (
        "src 2001:db8::1 dst 2001:db8::2\n\
         \tproto esp spi 0x00001001 reqid 0 mode tunnel\n\
         \treplay-window 64 \n\
         \tauth-trunc hmac(sha1) KEY 96\n\
         \tenc ecb(cipher_null) \n\
         \tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000\n",
        "state add src 2001:db8::1 dst 2001:db8::2 proto esp spi 0x1001 mode tunnel auth-trunc hmac(sha1) KEY 96 \
         enc ecb(cipher_null)",
    ),
    (
        "src 10.1.0.0/16 dst 10.2.0.0/16 \n\
         \tdir out priority 7 ptype main \n\
         \ttmpl src 192.0.2.1 dst 192.0.2.2\n\
         \t\tproto esp reqid 1 mode tunnel\n",
        "policy add src 10.1.0.0/16 dst 10.2.0.0/16 dir out priority 7 \
         tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid 1 mode tunnel",
    ),
    (
        "src fd00:1::/32 dst fd00:2::/32 proto tcp dport 80 uid 0\n\
         \tdir fwd action allow index 90 priority 0 ptype main share any flag  (0x00000000)\n\
         \tlifetime config:\n\
         \t  limit: soft (INF)(bytes), hard (INF)(bytes)\n\
         \t  limit: soft (INF)(packets), hard (INF)(packets)\n\
         \t  expire add: soft 0(sec), hard 0(sec)\n\
         \t  expire use: soft 0(sec), hard 0(sec)\n\
         \tlifetime current:\n\
         \t  0(bytes), 0(packets)\n\
         \t  add 2026-11-29 15:00:00 use -\n\
         \ttmpl src 2001:db8::1 dst 2001:db8::2\n\
         \t\tproto esp spi 0x00000000(0) reqid 1(0x00000001) mode tunnel\n\
         \t\tlevel required share any \n\
         \t\tenc-mask ffffffff auth-mask ffffffff comp-mask ffffffff\n",
        "policy add src fd00:1::/32 dst fd00:2::/32 proto tcp dport 80 dir fwd \
         tmpl src 2001:db8::1 dst 2001:db8::2 proto esp reqid 1 mode tunnel",
    ),
    (
        "src 10.1.0.0/16 dst 10.66.0.0/16 \n\tdir out action block priority 3 \n",
        "policy add src 10.1.0.0/16 dst 10.66.0.0/16 dir out action block priority 3",
    ),
];

#[test]
fn printed_records_are_read_like_lines() {
    let with_key = |text: &str| text.replace("KEY", KEY);
    for (printed, line) in PRINTED {
        assert_eq!(one(&with_key(printed)), one(&with_key(line)), "{printed}");
    }
    // All of a file, with lines between.
    let file: String = PRINTED.iter().map(|(printed, line)| format!("{printed}{line}\n# and\n")).collect();
    let lines = Lines::read(&with_key(&file));
    assert_eq!((lines.skipped, lines.changes.len()), (vec![], 2 * PRINTED.len()));
    let of_sockets = "src 0.0.0.0/0 dst 0.0.0.0/0 \n\tsocket in priority 0 ptype main \n";
    let lines = Lines::read(&format!("policy flush\n{of_sockets}policy flush\n"));
    assert_eq!((lines.skipped, lines.changes.len()), (vec![], 2));
    assert_eq!(lines.passed_over[0].to_string(), "line 2: no effect here: a policy of a socket");
}

#[test]
fn printed_records_that_are_not_known_are_refused_whole() {
    let state = PRINTED[1].0.replace("KEY", KEY);
    let (policy, hidden) = (PRINTED[4].0, PRINTED[0].0.replace("KEY", "<<Keys hidden>>"));
    for (record, skip) in [
        (state.replace("mode tunnel", "mode transport"), Skip::Unsupported),
        (state.replace("\tsel", "\tmark 0x1/0xffffffff\n\tsel"), Skip::Word),
        (state.replace("\tsel", "\tif_id 0x9\n\tsel"), Skip::Word),
        (state.replace("type espinudp", "type espintcp"), Skip::Unsupported),
        (state.replace("5000(bytes)", "5000(apples)"), Skip::Value),
        (state.replace("oseq 0x4", "oseq"), Skip::End),
        (state.replace(" replay_window", " window"), Skip::Word),
        (state.replace("esn (0x1", "wildrecv (0x0"), Skip::Unsupported),
        (hidden, Skip::Key),
        (policy.replace("share any flag", "share unique flag"), Skip::Word),
        (policy.replace("flag  (0x00000000)", "flag localok (0x00000001)"), Skip::Word),
        (policy.replace("enc-mask ffffffff", "enc-mask 00000001"), Skip::Word),
        (policy.replace("level required", "level use"), Skip::Unsupported),
        ("src 10.1.0.0/16 dst 10.2.0.0/16\n".to_owned(), Skip::Missing),
    ] {
        let lines = Lines::read(&format!("policy flush\n{record}policy flush\n"));
        assert_eq!(lines.changes.len(), 2, "{record}");
        let [skipped] = &lines.skipped[..] else { panic!("{record}: {:?}", lines.skipped) };
        assert_eq!((skipped.line, skipped.skip), (2, skip), "{record}: {skipped}");
        assert!(!skipped.to_string().contains("2233"), "a key is told: {skipped}");
    }
}

#[test]
fn limits_of_time_are_read_and_soft_ones_are_told() {
    let text = format!(
        "state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 256 mode tunnel aead rfc4106(gcm(aes)) {KEY} 128 \
         limit time-hard 3600 limit time-use-hard 0 limit time-soft 3000 limit byte-soft 9"
    );
    let mut lines = Lines::read(&text);
    assert_eq!(lines.skipped, []);
    let Change::AddSa(config) = lines.changes.remove(0) else { panic!() };
    assert_eq!((config.most_seconds, config.most_seconds_of_use), (Some(3600), None));
    let told: Vec<String> = lines.passed_over.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["line 1: no effect here: limit time-soft", "line 1: no effect here: limit byte-soft"]);
}

#[test]
fn keepalives_need_ports() {
    let line = |more: &str| {
        format!(
            "state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 256 mode tunnel aead rfc4106(gcm(aes)) {KEY} 128 {more}"
        )
    };
    let Change::AddSa(config) = one(&line("encap espinudp 4500 4500 0.0.0.0 nat-keepalive 20")) else {
        panic!()
    };
    assert_eq!(config.nat_keepalive, Some(20));
    let Change::AddSa(config) = one(&line("nat-keepalive 0")) else { panic!() };
    assert_eq!(config.nat_keepalive, None);
    let Change::AddSa(config) = one(&line("encap espinudp 4500 4500 0.0.0.0 nat-follow")) else { panic!() };
    assert!(config.nat_follow);
    assert_eq!(Lines::read(&line("nat-follow")).skipped.len(), 1);
    let lines = Lines::read(&line("nat-keepalive 20"));
    assert_eq!((lines.skipped[0].skip, lines.changes), (Skip::Value, vec![]));
}

#[test]
fn lines_are_skipped_for_a_reason() {
    let head = "state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 256";
    let aead = format!("aead 'rfc4106(gcm(aes))' {KEY} 128");
    for (line, skip) in [
        (format!("{head} {aead}"), Skip::Missing),
        (format!("{head} mode transport {aead}"), Skip::Unsupported),
        (format!("{head} mode tunnel"), Skip::Missing),
        (format!("{head} mode tunnel {aead} colour blue"), Skip::Word),
        (format!("{head} mode tunnel replay-window"), Skip::End),
        (format!("{head} mode tunnel replay-window 5000 {aead}"), Skip::Value),
        (format!("{head} mode tunnel flag nopmtudisc {aead}"), Skip::Unsupported),
        (format!("{head} mode tunnel flag esn replay-window 0 {aead}"), Skip::Value),
        (format!("{head} mode tunnel aead 'rfc4106(gcm(aes))' {KEY} 96"), Skip::Unsupported),
        (format!("{head} mode tunnel aead 'rfc4106(gcm(aes))' {KEY} {KEY}"), Skip::Unsupported),
        (format!("{head} mode tunnel aead 'rfc4106(gcm(aes))' {} 128", &KEY[2..]), Skip::Key),
        (format!("{head} mode tunnel aead 'rfc4106(gcm(aes))' {KEY}00 128"), Skip::Value),
        (format!("{head} mode tunnel enc cbc(aes) {KEY}"), Skip::Unsupported),
        (format!("{head} mode tunnel enc cipher_null {KEY}"), Skip::Word),
        (
            format!("state add src 192.0.2.1 dst 2001:db8::1 proto esp spi 256 mode tunnel {aead}"),
            Skip::Value,
        ),
        (format!("state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 255 mode tunnel {aead}"), Skip::Value),
        ("state explode".to_owned(), Skip::Word),
        ("route add".to_owned(), Skip::Word),
        ("policy add dir out".to_owned(), Skip::Missing),
        ("policy add src 10.0.0.0/8 dst fd00::/8 dir out".to_owned(), Skip::Value),
        ("policy add src 10.0.0.0/8".to_owned(), Skip::Missing),
        ("policy add src 10.0.0.0/8 dir out tmpl src 192.0.2.1 mode tunnel".to_owned(), Skip::Missing),
    ] {
        let lines = Lines::read(&format!("# first\n{line}\n"));
        assert_eq!(lines.changes, [], "{line}");
        let [skipped] = &lines.skipped[..] else { panic!("{line}") };
        assert_eq!((skipped.line, skipped.skip), (2, skip), "{line}");
        assert!(!skipped.to_string().contains("2233"), "a key is told: {skipped}");
    }
}

#[test]
fn any_text_is_read() {
    let mut rng = wirespeed_rng::Rng::new(1);
    let words: Vec<&str> = "ip xfrm state policy add delete update flush src dst any 10.0.0.0/8 ::1 0x0 0x \\ \n ' \" # proto \
        esp spi 0x100 mode tunnel aead rfc4106(gcm(aes)) 128 enc auth-trunc hmac(sha1) encap espinudp 4500 sel flag esn \
        dir in out fwd tmpl priority action block limit byte-hard setdefault accept é \
        \nsrc \n\tproto \n\tanti-replay context: seq oseq \n\tlifetime config: \n\tlimit: soft hard (INF)(bytes), 5(packets) \n\tsocket"
        .split(' ')
        .collect();
    for _ in 0..3000 {
        let count = rng.bits() as usize % 30;
        let text: Vec<&str> = (0..count).map(|_| words[rng.bits() as usize % words.len()]).collect();
        let _ = Lines::read(&text.join(" "));
    }
}

#[cfg(unix)]
#[test]
fn files_that_others_can_read_are_refused() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sad");
    std::fs::write(&path, "state flush\n").unwrap();
    for (mode, is_right) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o660, false)] {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        match Lines::read_file(&path) {
            Ok(lines) => assert!(is_right && lines.changes.len() == 1, "{mode:o}"),
            Err(Error::Exposed { mode: told, .. }) => assert!(!is_right && told == mode),
            Err(other) => panic!("{other}"),
        }
    }
    assert!(matches!(Lines::read_file(&folder.path().join("none")), Err(Error::Read { .. })));
}

#[cfg(unix)]
#[test]
fn files_of_other_users_are_refused() {
    use std::os::unix::fs::{PermissionsExt, chown};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sad");
    std::fs::write(&path, "state flush\n").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    assert!(Lines::read_file(&path).is_ok());
    if chown(&path, Some(1000), None).is_err() {
        return eprintln!("skipped: only root can give a file to another user");
    }
    let error = Lines::read_file(&path).unwrap_err();
    assert!(matches!(error, Error::Owner { owner: 1000, own: 0, .. }), "{error}");
    assert!(error.to_string().contains("belongs to user 1000") && error.to_string().contains("chown 0"));
}
