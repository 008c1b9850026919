//! `route --app esp`: a capture sealed and opened again, and files that are refused. Where tshark is
//! installed it decrypts what was sealed.

#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;

use crate::common::Folder;
use crate::route::{frame, pcap};

const SUITES: [&str; 2] = [
    "aead 'rfc4106(gcm(aes))' 0x00112233445566778899aabbccddeeff01020304 128",
    "enc 'rfc3686(ctr(aes))' 0x00112233445566778899aabbccddeeff01020304 \
     auth-trunc 'hmac(sha1)' 0x000102030405060708090a0b0c0d0e0f10111213 96",
];

/// Writes a file of keys that only its owner can read.
fn write_secret(folder: &Folder, name: &str, text: &str) {
    let path = folder.write(name, text);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// The lines of a tunnel, with a policy of a direction.
fn lines(dir: &str, suite: &str) -> String {
    format!(
        "ip xfrm state add src 192.0.2.1 dst 10.9.0.2 proto esp spi 0x1000 reqid 1 mode tunnel {suite}\n\
         ip xfrm policy add src 192.0.2.0/24 dst 10.1.0.0/16 dir {dir} \
         tmpl src 192.0.2.1 dst 10.9.0.2 proto esp reqid 1 mode tunnel\n"
    )
}

fn json(folder: &Folder, arguments: &str) -> Value {
    serde_json::from_str(&folder.run(arguments).ok().stdout).unwrap()
}

#[test]
fn a_capture_is_sealed_and_opened() {
    let folder = Folder::new();
    folder.write("in.pcap", pcap(&vec![frame([10, 1, 2, 9], 64); 20]));
    for suite in SUITES {
        write_secret(&folder, "out.sad", &lines("out", suite));
        write_secret(&folder, "in.sad", &lines("in", suite));
        let sealed =
            json(&folder, "route --app esp --sad out.sad --fib v4 --in in.pcap --out sealed.pcap --json");
        assert_eq!(
            (&sealed["frames_out"], &sealed["counters"]["esp_sealed"]),
            (&20.into(), &20.into()),
            "{sealed}"
        );
        let opened =
            json(&folder, "route --app esp --sad in.sad --fib v4 --in sealed.pcap --out opened.pcap --json");
        assert_eq!(
            (&opened["frames_out"], &opened["counters"]["esp_opened"]),
            (&20.into(), &20.into()),
            "{opened}"
        );
        // With the policies of the other end nothing is taken in the clear.
        let refused = json(&folder, "route --app esp --sad in.sad --fib v4 --in in.pcap --json");
        assert_eq!(refused["dropped"]["esp_unprotected"], 20, "{refused}");
        let told = folder.run("route --app esp --sad out.sad --fib v4 --in in.pcap").ok().stderr;
        assert!(
            told.contains(
                "association 0x1000 to 10.9.0.2: 20 packets, 560 bytes; it goes on with replay-oseq 20"
            ),
            "{told}"
        );
    }
    decrypt(&folder);
    // More errors than may be sent: each buffer is still found at the end.
    let made =
        json(&folder, "route --app esp --sad out.sad --fib v4 --in gen:imix --count 20k --threads 1 --json");
    assert_eq!(made["frames_in"], 20_000, "{made}");
    assert!(made["counters"]["esp_errors_held"].as_u64().unwrap() > 0, "{made}");
}

/// Lets tshark decrypt the capture that was sealed last, with the keys of the second suite.
fn decrypt(folder: &Folder) {
    let sa = "uat:esp_sa:\"IPv4\",\"*\",\"*\",\"0x00001000\",\"AES-CTR [RFC3686]\",\
              \"0x00112233445566778899aabbccddeeff01020304\",\"HMAC-SHA-1-96 [RFC2404]\",\
              \"0x000102030405060708090a0b0c0d0e0f10111213\"";
    let options = ["esp.enable_encryption_decode:TRUE", "esp.enable_authentication_check:TRUE", sa];
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(folder.path("sealed.pcap"));
    for option in options {
        tshark.args(["-o", option]);
    }
    tshark.args(["-T", "fields", "-e", "ip.dst", "-e", "esp.icv_good", "-e", "udp.dstport"]);
    let Ok(said) = tshark.output() else {
        eprintln!("skipped: tshark is not installed");
        return;
    };
    let text = String::from_utf8_lossy(&said.stdout);
    let errors = String::from_utf8_lossy(&said.stderr);
    assert_eq!(text.lines().count(), 20, "{text}{errors}");
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        assert_eq!((fields[0], fields[2]), ("10.9.0.2,10.1.2.9", "53"), "{text}{errors}");
        assert!(matches!(fields[1], "1" | "True"), "{text}{errors}");
    }
}

#[test]
fn files_that_can_not_be_used_are_refused() {
    let folder = Folder::new();
    folder.write("in.pcap", pcap(&[frame([10, 1, 2, 9], 64)]));
    let run = |sad: &str| folder.run(&format!("route --app esp --sad {sad} --fib v4 --in in.pcap"));
    folder.run("route --app esp --fib v4 --in in.pcap").refused(&["--sad FILE"]);
    folder.run("route --sad sad --fib v4 --in in.pcap").refused(&["--app esp"]);
    run("none").refused(&["none"]);
    let path = folder.write("open.sad", lines("out", SUITES[0]));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
    run("open.sad").refused(&["open.sad", "others", "chmod 600"]);
    write_secret(&folder, "wrong.sad", &(lines("out", SUITES[0]) + "ip xfrm policy add nonsense\n"));
    run("wrong.sad").refused(&["wrong.sad", "line 3", "unknown word: nonsense"]);
    write_secret(&folder, "twice.sad", &lines("out", SUITES[0]).repeat(2));
    run("twice.sad").refused(&["twice.sad", "0x1000", "already"]);
}
