//! The commands of the README, run as they stand there.

use std::process::Command;

use super::data::{Data, image_of};
use super::process::{Running, wait_for};

#[test]
fn the_commands_of_the_readme_run() {
    let data = Data::new(50);
    let dir = data.dir("readme");
    image_of(&dir, "AS");
    std::fs::rename(dir.join("table.img"), dir.join("ris.img")).unwrap();
    std::fs::write(dir.join("routes.txt"), "10.0.0.0/8 64496\n").unwrap();
    std::os::unix::fs::symlink(&data.flows, dir.join("flows")).unwrap();

    // Its ports may be in use here.
    let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let scheduler = free();
    let readme = include_str!("../../README.md").replace("\\\n", " ").replace("127.0.0.1:50050", &scheduler);
    let mut blocks = readme.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()).peekable();
    assert!(blocks.peek().is_some());
    let (mut background, mut answers) = (Vec::new(), Vec::new());
    for line in blocks.flat_map(str::lines).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let line = line.replacen("wirespeed-ballista", env!("CARGO_BIN_EXE_wirespeed-ballista"), 1);
        let mut shell = Command::new("sh");
        shell.current_dir(&dir).env("TMPDIR", data.dir("temporary")).arg("-c");
        if let Some(line) = line.trim_end().strip_suffix('&') {
            // Ports of 5005x in other arguments.
            let line = ["127.0.0.1:50051", "127.0.0.1:50061"]
                .iter()
                .fold(line.to_owned(), |line, port| line.replace(port, "127.0.0.1:0"));
            shell.arg(format!("exec {line}"));
            background.push(Running::new(shell));
            if line.contains(" scheduler ") {
                wait_for("scheduler", || std::net::TcpStream::connect(&scheduler).is_ok());
            }
            continue;
        }
        shell.arg(&line);
        let output = shell.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && error.is_empty(), "{line}: {error}");
        answers.push(String::from_utf8(output.stdout).unwrap());
    }
    assert!(background.iter_mut().all(Running::is_running));
    assert!(background.len() >= 3);
    let labelled = answers.iter().filter(|answer| answer.contains("64496")).count();
    assert!(labelled >= 2, "{answers:?}");
}
