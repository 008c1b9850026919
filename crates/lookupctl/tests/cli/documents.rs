//! The commands of the documents, run as they stand there on small files of the names that they use.

use std::path::Path;
use std::process::Command;

use crate::common::{Folder, UPDATES, V4};
use crate::route::{frame, pcap};

const DOCUMENTS: [&str; 4] = ["README.md", "BENCHMARKS.md", "ENGINES.md", "CONTRIBUTING.md"];

/// What lies in the folder that the commands are run in.
fn folder() -> Folder {
    let folder = Folder::new();
    for name in ["rib.mrt.bz2", "table.txt"] {
        // Formats are told by content.
        folder.write(name, [V4, "192.0.2.0/24 core-1\n"].concat());
    }
    folder.write("updates.mrt.gz", UPDATES);
    folder.write("domains.txt", "example.com\nwww.example.net\n");
    folder.write(
        "firewall.rules",
        "*filter\n:INPUT DROP [0:0]\n-A INPUT -i lo -j ACCEPT\n-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
         -A INPUT -p tcp -m tcp --dport 443 -j ACCEPT\nCOMMIT\n",
    );
    folder.write("flows.csv", "src_ip,bytes\n10.1.2.9,64\n");
    folder.write("traffic.pcap", pcap(&[frame([10, 1, 2, 9], 64)]));
    folder
}

/// The lines of the blocks that a shell runs, without their comments.
fn commands(text: &str) -> Vec<String> {
    let (mut lines, mut is_block) = (Vec::new(), false);
    for line in text.lines() {
        match line {
            "```sh" => is_block = true,
            "```" => is_block = false,
            line if is_block => {
                let command = line.split(" #").next().unwrap_or_default().trim();
                lines.extend((!command.is_empty()).then(|| command.to_owned()));
            }
            _ => {}
        }
    }
    lines
}

#[test]
fn the_commands_of_the_documents_run() {
    let binary = Path::new(env!("CARGO_BIN_EXE_lookupctl"));
    let folder = folder();
    let path = std::env::join_paths(
        [binary.parent().unwrap().to_owned()]
            .into_iter()
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    )
    .unwrap();
    let mut ran = 0;
    for document in DOCUMENTS {
        let text =
            std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document))
                .unwrap();
        for command in commands(&text) {
            // Those of cargo are held against what there is by xtask's tests; its default main job is run
            // here.
            let line = match command.strip_prefix("cargo run --release -- ") {
                Some(rest) => format!("lookupctl {rest} --seconds 0.01"),
                None if command.starts_with("cargo ") => continue,
                // A machine may have these interfaces. That the command is one is enough here: other tests
                // forward.
                None if command.starts_with("lookupctl route eth") => {
                    let line = command.strip_prefix("lookupctl ").unwrap().replace("eth", "absent");
                    folder.run(&line).refused(&["absent"]);
                    continue;
                }
                None => command.clone(),
            };
            let output = Command::new("sh")
                .args(["-c", &line])
                .env("PATH", &path)
                .current_dir(folder.path(""))
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{document}: {command}\n{told}");
            assert!(
                !told.contains("panicked") && !output.stdout.is_empty() || line.contains(" build "),
                "{document}: {command}\n{told}"
            );
            ran += 1;
        }
    }
    assert!(ran >= 7, "{ran} commands found");
}
