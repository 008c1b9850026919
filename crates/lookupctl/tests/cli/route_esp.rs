//! `route --app esp`: a capture sealed and opened again, and files that are refused. Where tshark is
//! installed it decrypts what was sealed.

#![cfg(unix)]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

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

/// A gateway that opens what comes on its standard input, frame by frame.
struct Gateway {
    child: Child,
    /// What it says.
    lines: Receiver<String>,
}

impl Gateway {
    fn start(folder: &Folder, arguments: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lookupctl"))
            .args(arguments.split_whitespace())
            .current_dir(folder.path("."))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let (said, lines) = channel();
        std::thread::spawn(move || errors.lines().map_while(Result::ok).try_for_each(|line| said.send(line)));
        Self { child, lines }
    }

    fn give(&mut self, bytes: &[u8]) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    }

    /// Waits until it says a line with this in it.
    #[track_caller]
    fn says(&self, part: &str) -> String {
        let mut said = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(Duration::from_secs(60)) {
            if line.contains(part) {
                return line;
            }
            said.push(line);
        }
        panic!("{part:?} is not in {said:?}");
    }

    fn hang_up(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    }

    /// Ends its input. Returns its report, and what it said behind the last line that was waited for.
    fn end(mut self) -> (Value, Vec<String>) {
        drop(self.child.stdin.take());
        let report = self.child.wait_with_output().unwrap();
        assert!(report.status.success(), "{report:?}");
        (serde_json::from_slice(&report.stdout).unwrap(), self.lines.iter().collect())
    }
}

/// The frames of a capture that was sealed by the association of these lines.
fn sealed_frames(folder: &Folder, text: &str) -> Vec<u8> {
    write_secret(folder, "sealing.sad", text);
    json(folder, "route --app esp --sad sealing.sad --fib v4 --in in.pcap --out sealed.pcap --json");
    // Behind the header of the file.
    std::fs::read(folder.path("sealed.pcap")).unwrap()[24..].to_vec()
}

/// Puts a file in the place of another one.
fn rename_secret(folder: &Folder, name: &str, text: &str) {
    write_secret(folder, "new", text);
    std::fs::rename(folder.path("new"), folder.path(name)).unwrap();
}

#[test]
fn a_file_that_changes_is_taken_while_frames_come() {
    let folder = Folder::new();
    folder.write("in.pcap", pcap(&vec![frame([10, 1, 2, 9], 64); 20]));
    let header = pcap(&[]);
    let (key, keys) = ("0x00112233", ["0x00112233", "0xaaaaaaaa", "0xbbbbbbbb"]);
    let text = |dir: &str, spi: &str, key: &str, at: usize| {
        lines(dir, SUITES[0]).replace("0x1000", spi).replace(key, keys[at])
    };
    let first = sealed_frames(&folder, &text("out", "0x1000", key, 0));
    let second = sealed_frames(&folder, &text("out", "0x2000", key, 1));
    let third = sealed_frames(&folder, &text("out", "0x3000", key, 2));
    // Both associations of the line before, and the policy of the second.
    let both = |one: (&str, usize), other: (&str, usize)| {
        let policy = text("in", other.0, key, other.1);
        text("in", one.0, key, one.1).lines().next().unwrap().to_owned() + "\n" + &policy
    };
    write_secret(&folder, "sad", &text("in", "0x1000", key, 0));
    // Frame by frame, so that none waits for the next ones. It tells of each.
    let arguments = "route --app esp --sad sad --fib v4 --in - --chunk 1 --device cpu --trace 1000 --json";
    let mut gateway = Gateway::start(&folder, arguments);
    gateway.give(&[&header[..], &first, &second].concat());
    gateway.says("frame 40:");
    // The second one comes. Frames of the first that came before are still known, its next ones go on.
    rename_secret(&folder, "sad", &both(("0x1000", 0), ("0x2000", 1)));
    let said = gateway.says("sad: read again");
    assert!(
        said.contains("associations: 2, new: 1, changed: 0, ended: 0; policies that differ: 0"),
        "{said}"
    );
    gateway.give(&[&first[..], &second].concat());
    gateway.says("frame 80:");
    // What others can read, is no file, or has a wrong line, changes nothing and says no key.
    for (mode, more, part) in
        [(0o644, "", "chmod 600"), (0o600, "ip xfrm state add 0x00112233aabb\n", "line 3")]
    {
        folder.write(
            "new",
            both(("0x2000", 1), ("0x3000", 2)).lines().next().unwrap().to_owned() + "\n\n" + more,
        );
        std::fs::set_permissions(folder.path("new"), std::fs::Permissions::from_mode(mode)).unwrap();
        std::fs::rename(folder.path("new"), folder.path("sad")).unwrap();
        gateway.hang_up();
        let said = gateway.says(part);
        assert!(
            said.contains("tunnels stay as they are: ")
                && !said.contains("00112233")
                && !said.contains("bbbbbbbb"),
            "{said}"
        );
    }
    rename_secret(&folder, "sad", "# nothing yet\n");
    gateway.says("there is no line of an association or a policy in it");
    gateway.give(&second);
    gateway.says("frame 100:");
    // By a signal, at once: the first one ends, the third one begins.
    rename_secret(&folder, "sad", &both(("0x2000", 1), ("0x3000", 2)));
    gateway.hang_up();
    let said = gateway.says("sad: read again");
    assert!(said.contains("associations: 2, new: 1, changed: 0, ended: 1"), "{said}");
    gateway.give(&[&first[..], &second, &third].concat());
    let (report, said) = gateway.end();
    // Of each association 20, though all came again and again.
    assert_eq!(report["counters"]["esp_opened"], 60, "{report} {said:?}");
    let dropped = |reason: &str| report["dropped"][reason].as_u64().unwrap_or(0);
    assert_eq!((dropped("esp_no_sa"), dropped("esp_replay")), (20 + 20, 20 + 20 + 20), "{report}");
    assert!(
        said.iter().any(|line| line.contains("association 0x3000") && line.contains("replay-seq 20")),
        "{said:?}"
    );
}
