//! Tables and flows in S3: a server of its protocol on 127.0.0.1, moto, where it is installed.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::data::{Data, image_of};
use super::process::{Cluster, Running, program, wait_for};
use super::{BY_LABEL, output, refusal};

/// A server with a bucket of the name `bucket`.
struct Server {
    address: String,
    _process: Running,
}

impl Server {
    /// Starts one. `None` without moto, which `integrations/run` installs.
    fn start() -> Option<Self> {
        let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv/bin/moto_server");
        let given = std::env::var_os("MOTO_SERVER").map(PathBuf::from);
        let server = given.unwrap_or(installed);
        if !server.exists() {
            return None;
        }
        // Free until the server takes it.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut command = Command::new(server);
        command.args(["-H", "127.0.0.1", "-p", &address.port().to_string()]).stderr(Stdio::null());
        let server = Self { address: address.to_string(), _process: Running::new(command) };
        wait_for("the server", || TcpStream::connect(address).is_ok());
        server.put("/bucket", b"");
        Some(server)
    }

    fn put(&self, path: &str, bytes: &[u8]) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (host, len) = (&self.address, bytes.len());
        write!(
            stream,
            "PUT {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    /// The environment of processes that use the server.
    fn environment(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ENDPOINT", format!("http://{}", self.address)),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "any".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "any".to_owned()),
        ]
    }
}

#[test]
fn tables_and_flows_in_s3() {
    let Some(server) = Server::start() else {
        eprintln!("skipped: moto is not installed");
        return;
    };
    let data = Data::new(500);
    for entry in std::fs::read_dir(&data.flows).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        server.put(&format!("/bucket/flows/{name}"), &std::fs::read(entry.path()).unwrap());
    }
    let environment = server.environment();
    let with = |mut command: Command| {
        command.envs(environment.clone());
        command
    };
    let publish = |image: &Path, to: &str| {
        let mut publish = program("publish");
        publish.arg(image).args(["--to", to, "--name", "ris"]);
        with(publish)
    };
    let client = |at: &[&str], table: &str, flows: &str| {
        let mut client = program("sql");
        client.args(at).args(["--format", "csv", "--command", BY_LABEL]);
        client.args(["--table", &format!("ris={table}"), "--parquet", &format!("flows={flows}")]);
        with(client)
    };
    let (latest, flows) = ("s3://bucket/tables/ris@latest", "s3://bucket/flows/");

    let place = output(publish(&image_of(&data.dir("one"), "AS"), "s3://bucket/tables"));
    assert!(place.starts_with("s3://bucket/tables/ris-"), "{place}");
    let cluster = Cluster::start_with(2, 60, &environment);
    let remote = ["--scheduler", &cluster.address];
    for at in [&["--local"][..], &remote] {
        assert_eq!(output(client(at, latest, flows)), data.by_label("AS"), "{at:?}");
        assert_eq!(output(client(at, place.trim(), flows)), data.by_label("AS"), "{at:?}");
    }
    // The next query sees what is published next.
    output(publish(&image_of(&data.dir("two"), "X"), "s3://bucket/tables/"));
    assert_eq!(output(client(&remote, latest, flows)), data.by_label("X"));

    // What is not there, and a bucket that is none.
    for at in [&["--local"][..], &remote] {
        let error = refusal(client(at, "s3://bucket/tables/geo@latest", flows));
        assert!(error.contains("s3://bucket/tables/geo.latest: no such file"), "{error}");
        let error = refusal(client(at, "s3://none/ris@latest", flows));
        assert!(error.contains("s3://none/ris.latest"), "{error}");
        let error = refusal(client(at, latest, "s3://none/flows/"));
        assert!(error.contains("none"), "{error}");
    }
    let error = refusal(publish(&image_of(&data.dir("three"), "Y"), "s3://none/tables"));
    assert!(error.contains("s3://none/tables/ris"), "{error}");
    // A store that does not answer ends the query, too.
    drop(server);
    let error = refusal(client(&["--local"], latest, flows));
    assert!(error.contains("/bucket"), "{error}");
}
