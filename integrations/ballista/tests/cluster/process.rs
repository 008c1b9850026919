//! Processes that end with the test.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The program with a subcommand.
pub(crate) fn program(subcommand: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wirespeed-ballista"));
    command.arg(subcommand);
    command
}

/// A process whose output is read. Dropping kills it.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn new(mut command: Command) -> Self {
        Self(command.stdout(Stdio::piped()).spawn().unwrap())
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }

    /// The first line of its output.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines().read_line(&mut line).unwrap();
        line
    }

    /// Its output as it comes, once.
    pub(crate) fn lines(&mut self) -> BufReader<ChildStdout> {
        BufReader::new(self.0.stdout.take().unwrap())
    }

    /// What it writes to stderr, if that is a pipe, as it comes, once.
    pub(crate) fn warnings(&mut self) -> BufReader<ChildStderr> {
        BufReader::new(self.0.stderr.take().unwrap())
    }

    /// All of its output. The process has to succeed.
    pub(crate) fn output(&mut self) -> String {
        let mut text = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(self.0.wait().unwrap().success());
        text
    }

    /// Asks the process to end. Returns whether it succeeded.
    pub(crate) fn terminate(mut self) -> bool {
        let told = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status().unwrap();
        told.success() && self.0.wait().unwrap().success()
    }

    pub(crate) fn kill(self) {
        drop(self);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) struct Executor {
    pub(crate) process: Running,
    pub(crate) work_dir: PathBuf,
}

/// A scheduler and executors. The executors have the copies of their tables in a directory of their own.
pub(crate) struct Cluster {
    pub(crate) address: String,
    pub(crate) executors: Vec<Executor>,
    _scheduler: Running,
    _dir: tempfile::TempDir,
}

impl Cluster {
    pub(crate) fn start(executors: usize, timeout: u64) -> Self {
        Self::start_with(executors, timeout, &[])
    }

    /// Starts one whose processes have an environment, for tables that are not files.
    pub(crate) fn start_with(executors: usize, timeout: u64, environment: &[(&str, String)]) -> Self {
        let program = |subcommand| {
            let mut command = program(subcommand);
            command.envs(environment.iter().cloned());
            command
        };
        let dir = tempfile::tempdir().unwrap();
        let mut scheduler = program("scheduler");
        scheduler.args(["--bind", "127.0.0.1:0", "--executor-timeout", &timeout.to_string()]);
        let mut scheduler = Running::new(scheduler);
        let line = scheduler.line();
        let address = line.trim().strip_prefix("scheduler: ready on ").unwrap().to_owned();
        let start = |n| {
            let work_dir = dir.path().join(format!("work{n}"));
            let mut executor = program("executor");
            executor.args([
                "--scheduler",
                &address,
                "--bind",
                "127.0.0.1:0",
                "--vcores",
                "1",
                "--heartbeat",
                "1",
            ]);
            executor.arg("--work-dir").arg(&work_dir);
            // One opens tables where they are, if they are files.
            if n > 0 || !environment.is_empty() {
                executor.arg("--tables-cache").arg(dir.path().join(format!("tables{n}")));
            }
            Executor { process: Running::new(executor), work_dir }
        };
        let executors = (0..executors).map(start).collect();
        Self { address, executors, _scheduler: scheduler, _dir: dir }
    }
}

/// Waits until something is true.
pub(crate) fn wait_for(what: &str, mut is_true: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_true() {
        assert!(begin.elapsed() < Duration::from_secs(120), "{what}: not in two minutes");
        std::thread::sleep(Duration::from_millis(5));
    }
}
