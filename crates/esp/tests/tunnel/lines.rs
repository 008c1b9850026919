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
        dir in out fwd tmpl priority action block limit byte-hard setdefault accept é"
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
