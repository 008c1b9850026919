//! Pipes that stay open, tables that change, signals, and another program for Parquet.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::Folder;

/// Runs `enrich` on a pipe that stays open.
#[test]
fn a_live_pipe_and_a_table_that_changes() {
    let folder = Folder::new();
    folder.write("routes", "10.0.0.0/8 old\n");
    let mut child = Command::new(env!("CARGO_BIN_EXE_lookupctl"))
        .args(["enrich", "--table", "a=routes", "--threads", "2"])
        .current_dir(folder.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut ask = |input: &str| {
        stdin.write_all(input.as_bytes()).unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        line
    };
    assert_eq!(ask("src\n"), "src,src_a\n");
    // The record's last byte has not come, so it has to wait.
    assert_eq!(ask("10.0.0.1\n10.0."), "10.0.0.1,old\n");
    assert_eq!(ask("0.2\n"), "10.0.0.2,old\n");
    let replace = |text: &str| {
        folder.write("new", text);
        std::fs::rename(folder.path("new"), folder.path("routes")).unwrap();
    };
    replace("10.0.0.0/8 new way\n10.0.0.0/33 x\n");
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(ask("10.0.0.3\n"), "10.0.0.3,old\n", "a file that does not read changes nothing");
    replace("10.0.0.0/8 new\n");
    let (began, mut asked) = (Instant::now(), 3);
    loop {
        asked += 1;
        match &*ask("10.0.0.4\n") {
            "10.0.0.4,new\n" => break,
            other => assert_eq!(other, "10.0.0.4,old\n"),
        }
        assert!(began.elapsed() < Duration::from_secs(60), "the new version answers");
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    let last = asked - 1;
    assert!(stderr.contains("a: version 1 stays: "), "{stderr}");
    let says =
        format!("a: version 1 answered records 1 to {last}, version 2 answered records {asked} to {asked}");
    assert!(stderr.contains(&says), "{stderr}");
}

#[test]
fn signals_end_it_after_whole_records() {
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let folder = Folder::new();
        let mut child = Command::new(env!("CARGO_BIN_EXE_lookupctl"))
            .args(["enrich", "--table", "a=v4", "-o", "out"])
            .current_dir(folder.path("."))
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"src\n10.1.2.3\n10.1.").unwrap();
        let part = folder.path(&format!("out.part-{}", child.id()));
        let right = "src,src_a\n10.1.2.3,core-7\n";
        let began = Instant::now();
        while std::fs::read_to_string(&part).ok().as_deref() != Some(right) {
            assert!(began.elapsed() < Duration::from_secs(60), "the records leave");
            std::thread::sleep(Duration::from_millis(20));
        }
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        assert_eq!(std::fs::read_to_string(folder.path("out")).unwrap(), right);
        assert!(!part.exists());
        drop(stdin);
    }
}

#[cfg(unix)]
#[test]
fn parquet_goes_to_another_program() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new();
    // By content, whatever the name.
    folder.write("flows", "PAR1\u{15}");
    folder.write("flows.parquet", "src\n10.1.1.1\n");
    folder.write("v4", "10.0.0.0/8 a\n");
    let run = |arguments: &str, path: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lookupctl"));
        command.args(arguments.split_whitespace()).env("PATH", folder.path(path));
        folder.run_command(command, b"given")
    };
    let says = "flows: Parquet is for another program, wirespeed-parquet enrich";
    run("enrich --table a=v4 flows -o out", "nowhere").refused(&[says, "nor on the PATH"]);
    // A stand-in, which says what it got.
    std::fs::create_dir(folder.path("bin")).unwrap();
    let stand_in = folder.write(
        "bin/wirespeed-parquet",
        "#!/bin/sh\nread -r line\necho \"out: $line\"\nfor word; do echo \"[$word]\"; done >&2\nexit 7\n",
    );
    std::fs::set_permissions(&stand_in, PermissionsExt::from_mode(0o755)).unwrap();
    let ran = run("enrich flows --table a=v4 --domain x --lenient -o out", "bin");
    assert_eq!(ran.status, Some(7), "{ran:?}");
    assert_eq!(ran.stdout, "out: given\n");
    assert_eq!(
        ran.stderr,
        "[enrich]\n[flows]\n[--table]\n[a=v4]\n[--domain]\n[x]\n[--lenient]\n[-o]\n[out]\n"
    );
    for option in ["--format csv", "--copy", "--block 7"] {
        let name = option.split(' ').next().unwrap();
        let says = format!("{name} is not for Parquet: flows is a file of Parquet");
        run(&format!("enrich flows -o out {option}"), "bin").refused(&[&says]);
    }
    run("enrich flows --table a=v4", "bin").refused(&["flows: the output of Parquet is a file"]);
    // What only has the name is no Parquet.
    let ran = run("enrich flows.parquet --table a=v4", "bin").ok();
    assert_eq!(ran.stdout, "src,src_a\n10.1.1.1,a\n");
    // A program that can't be run is told.
    std::fs::set_permissions(&stand_in, PermissionsExt::from_mode(0o644)).unwrap();
    let ran = run("enrich flows --table a=v4 -o out", "bin");
    assert!(ran.status == Some(2) && ran.stderr.contains("wirespeed-parquet: "), "{ran:?}");
}
