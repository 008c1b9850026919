//! A cluster of real processes on 127.0.0.1: scheduler, executors and clients are this crate's program.

#![allow(clippy::unwrap_used)] // a test's helpers may panic like the test

mod data;
mod process;
mod readme;
mod s3;

use std::io::BufRead;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use ballista_core::extension::SessionConfigExt;
use datafusion::prelude::SessionConfig;
use wirespeed_ballista::{ImageCache, Stores, executor_config, run_executor};

use data::{Data, image_of};
use process::{Cluster, Running, program, wait_for};

/// What a program wrote, and that it succeeded.
fn output(mut command: Command) -> String {
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// The one line of error that a program ended with.
fn refusal(mut command: Command) -> String {
    let output = command.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{command:?}: {out} {error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.starts_with("wirespeed-ballista: "), "{error}");
    error
}

/// Publishes files as one table. Returns the places, a line each.
fn publish(files: &[&Path], to: &Path, name: &str) -> String {
    let mut publish = program("publish");
    publish.args(files).arg("--to").arg(to).args(["--name", name]);
    output(publish)
}

/// A client on `at`, which is `--local` or the scheduler, with the flows and the published tables of `data`.
fn client(at: &[&str], data: &Data, sql: &str) -> Command {
    let mut client = program("sql");
    client.args(at).args(["--format", "csv", "--set", "datafusion.execution.target_partitions=4"]);
    for name in ["ris", "rpki", "names", "acl"] {
        client.arg("--table").arg(format!("{name}={}@latest", data.shared.join(name).display()));
    }
    client.arg("--parquet").arg(format!("flows={}", data.flows.display())).args(["--command", sql]);
    client
}

const BY_LABEL: &str = "SELECT lpm_label('ris', dst) AS label, count(*) AS flows, sum(bytes) AS bytes
    FROM flows GROUP BY label ORDER BY label NULLS FIRST";

/// All functions, over a shuffle.
const ALL: &str = "SELECT lpm('ris', dst) AS i, lpm_label('ris', text) AS label, lpm_asn('ris', ip) AS asn,
        lpm_prefix('ris', ip) AS prefix, lpm_len('ris', text) AS len,
        array_to_string(lpm_all('ris', dst), '+') AS around, rov('rpki', route, origin) AS state,
        name_lookup('names', name) AS n, name_label('names', name) AS list,
        classify('acl', dst, dst, 6, 1, port) AS rule, classify_action('acl', ip, ip, 6, 1, port) AS action,
        count(*) AS flows, sum(bytes) AS bytes
    FROM flows GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11";

/// All functions, row by row. The rows are slices of longer arrays, which the limit leaves behind the sort.
const EACH: &str =
    "SELECT id, lpm('ris', dst) AS i, lpm_label('ris', text) AS label, lpm_asn('ris', ip) AS asn,
        lpm_prefix('ris', ip) AS prefix, lpm_len('ris', text) AS len,
        array_to_string(lpm_all('ris', dst), '+') AS around, rov('rpki', route, origin) AS state,
        name_lookup('names', name) AS n, name_label('names', name) AS list,
        classify('acl', dst, dst, 6, 1, port) AS rule, classify_action('acl', ip, ip, 6, 1, port) AS action
    FROM (SELECT id, dst, text, ip, route, origin, name, port FROM flows ORDER BY id LIMIT 700 OFFSET 5)
    ORDER BY id";

#[test]
fn every_function_answers_as_a_slow_walk_for_every_type_of_column() {
    let data = Data::new(300);
    let cluster = Cluster::start(2, 60);
    let by_dictionary = BY_LABEL.replace("dst)", "dictionary)");
    assert_ne!(by_dictionary, BY_LABEL);
    for adaptive in ["true", "false"] {
        let set = format!("ballista.planner.adaptive.enabled={adaptive}");
        for at in [&["--local"][..], &["--scheduler", &cluster.address, "--set", &set]] {
            let ask = |sql| output(client(at, &data, sql));
            assert_eq!(ask(EACH), data.by_every_function(5..705), "{at:?}");
            assert_eq!(ask(&by_dictionary), data.by_label("AS"), "{at:?}");
        }
    }
}

/// An executor that lacks the option's extension drops the option, and tells so, rather than give nulls.
#[test]
fn an_executor_without_the_option_names_it() {
    let data = Data::new(50);
    let cluster = Cluster::start(0, 60);
    let work_dir = data.dir("work");
    let stores = Stores::default();
    let cache = ImageCache::new(stores.clone(), None);
    let mut config = executor_config(&cache, &stores, work_dir.to_str().unwrap());
    config.override_config_producer = Some(std::sync::Arc::new(SessionConfig::new_with_ballista));
    let (host, port) = cluster.address.rsplit_once(':').unwrap();
    (config.scheduler_host, config.scheduler_port) = (host.to_owned(), port.parse().unwrap());
    config.vcores = 1;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.thread_stack_size(32 << 20).enable_all().build().unwrap();
    let address = "127.0.0.1:0".parse().unwrap();
    runtime.spawn(run_executor(config, address, Duration::from_secs(30)));
    let error = refusal(client(&["--scheduler", &cluster.address], &data, BY_LABEL));
    assert!(error.contains("there is no table \"ris\"") && error.contains("wirespeed.tables"), "{error}");
    runtime.shutdown_background();
}

#[test]
fn a_followed_file_reaches_the_next_query_while_one_runs() {
    let data = Data::new(1500);
    let cluster = Cluster::start(2, 60);
    let at = ["--scheduler", &cluster.address];
    let routes = data.dir("followed").join("routes.txt");
    let write = |text: &str| {
        let next = routes.with_extension("next");
        std::fs::write(&next, text).unwrap();
        std::fs::rename(&next, &routes).unwrap();
    };
    write(&data.routes("AS"));
    let mut follow = program("publish");
    follow.arg(&routes).arg("--to").arg(&data.shared).args(["--name", "ris", "--follow", "--every", "0.05"]);
    follow.stderr(std::process::Stdio::piped());
    let mut follow = Running::new(follow);
    let (mut places, mut warnings) = (follow.lines(), follow.warnings());
    let next = |of: &mut dyn BufRead| {
        let mut line = String::new();
        of.read_line(&mut line).unwrap();
        line
    };
    let first = next(&mut places);
    assert!(first.contains("ris-") && first.ends_with(".img\n"), "{first}");

    let sql = slow("lpm_label('ris', dst) AS label, count(lpm_label('ris', ip)) AS flows");
    let here = output(client(&["--local"], &data, &sql));
    assert!(here.contains("AS64496"), "{here}");
    // The first query of the cluster: what its stages have written is a sign that it runs.
    let mut query = Running::new(client(&at, &data, &sql));
    wait_for("output of a stage", || cluster.executors.iter().any(|executor| has_file(&executor.work_dir)));
    write(&data.routes("New"));
    assert_ne!(next(&mut places), first);
    assert!(query.is_running(), "the query ended before the file was published");
    assert_eq!(output(client(&at, &data, BY_LABEL)), data.by_label("New"));
    assert_eq!(query.output(), here, "one state of the table");

    // A state that is wrong is told, and the one before it stays.
    write("10.0.0.0/8 X\n10.0.0.0/33 X\n");
    let warning = next(&mut warnings);
    assert!(warning.contains("ris: the last state stays") && warning.contains("routes.txt:2"), "{warning}");
    assert_eq!(output(client(&at, &data, BY_LABEL)), data.by_label("New"));
    write(&data.routes("Newer"));
    next(&mut places);
    assert_eq!(output(client(&at, &data, BY_LABEL)), data.by_label("Newer"));
    assert!(follow.terminate());
}

#[test]
fn functions_over_a_shuffle_and_tables_that_are_missing() {
    let data = Data::new(2000);
    let mut cluster = Cluster::start(2, 60);
    let address = cluster.address.clone();
    let at = ["--scheduler", &address];

    // The oracle: for each flow a scan of all routes.
    assert_eq!(output(client(&["--local"], &data, BY_LABEL)), data.by_label("AS"));
    let all = output(client(&["--local"], &data, ALL));
    assert!(all.lines().count() > 20, "{all}");
    for adaptive in ["true", "false"] {
        let set = format!("ballista.planner.adaptive.enabled={adaptive}");
        let on_cluster = |sql| {
            let mut client = client(&at, &data, sql);
            client.args(["--set", &set]);
            output(client)
        };
        assert_eq!(on_cluster(BY_LABEL), data.by_label("AS"), "{set}");
        assert_eq!(on_cluster(ALL), all, "{set}");
        // Executors answer, not the process that plans: it has not the tables.
        let literal = "SELECT DISTINCT lpm_label('ris', '10.0.0.1') AS label FROM flows";
        assert_eq!(on_cluster(literal), "label\nAS64496\n", "{set}");
    }
    // A join, and a filter on an answer.
    let joined = "SELECT a.asn, count(*) AS pairs FROM
            (SELECT DISTINCT lpm_asn('ris', dst) AS asn FROM flows WHERE lpm_len('ris', dst) > 8) a
        JOIN (SELECT lpm_asn('ris', ip) AS asn FROM flows) b ON a.asn = b.asn GROUP BY 1 ORDER BY 1";
    let here = output(client(&["--local"], &data, joined));
    assert!(here.lines().count() > 2, "{here}");
    assert_eq!(output(client(&at, &data, joined)), here);

    // Options reach executors: text that is no address.
    let wrong = "SELECT count(lpm('ris', name)) AS n, count(*) AS all FROM flows";
    let error = refusal(client(&at, &data, wrong));
    assert!(error.contains("lpm: the table \"ris\"") && error.contains("parc.com"), "{error}");
    let mut null = client(&at, &data, wrong);
    null.args(["--set", "wirespeed.invalid=null"]);
    assert_eq!(output(null), "n,all\n0,8000\n");

    // A table that nobody listed; a place that is gone, damaged, or can change; a name without a table.
    let call = |table| format!("SELECT count(lpm('{table}', dst)) AS n FROM flows");
    let error = refusal(client(&at, &data, &call("geo")));
    assert!(error.contains("there is no table \"geo\"; there are: acl, names, ris, rpki"), "{error}");
    let with = |place: &Path| {
        let mut client = client(&at, &data, &call("geo"));
        client.arg("--table").arg(format!("geo={}", place.display()));
        refusal(client)
    };
    let image = data.shared.join(publish(&[&image_of(&data.dir("gone"), "X")], &data.shared, "gone").trim());
    let bytes = std::fs::read(&image).unwrap();
    std::fs::remove_file(&image).unwrap();
    let error = with(&image);
    let place = image.display().to_string();
    assert!(error.contains("the table \"geo\"") && error.contains(&place), "{error}");
    assert!(error.to_lowercase().contains("no such file"), "{error}");
    std::fs::write(&image, &bytes[1..]).unwrap();
    let error = with(&image);
    assert!(error.contains("the table \"geo\"") && error.contains("is damaged"), "{error}");
    // It comes, and the next query has it.
    std::fs::write(&image, &bytes).unwrap();
    let mut repaired = client(&at, &data, &call("geo"));
    repaired.arg("--table").arg(format!("geo={place}"));
    assert!(output(repaired).starts_with("n\n"));
    let error = with(&data.shared.join("other@latest"));
    assert!(error.contains("other.latest: no such file"), "{error}");
    let error = with(&image_of(&data.dir("plain"), "X"));
    assert!(error.contains("publish the file"), "{error}");

    // Several statements of a file, one of which lists the tables.
    let file = data.dir("sql").join("flows.sql");
    let listed = data.shared.join("ris@latest");
    std::fs::write(&file, format!("SET wirespeed.tables = 'one={}'; {};", listed.display(), call("one")))
        .unwrap();
    let mut sql = program("sql");
    sql.args(at).args(["--format", "json"]).arg("--file").arg(&file);
    sql.arg("--parquet").arg(format!("flows={}", data.flows.display()));
    let counted = output(sql);
    assert!(counted.starts_with("{\"n\":"), "{counted}");
    let error = refusal(client(&at, &data, "PREPARE p AS SELECT 1"));
    assert!(error.contains("PREPARE is refused"), "{error}");

    // An executor ends when it is told to, and the other goes on.
    assert!(cluster.executors.remove(0).process.terminate());
    assert_eq!(output(client(&at, &data, BY_LABEL)), data.by_label("AS"));
}

/// A query that takes seconds without optimisation: each row is hashed many times.
fn slow(columns: &str) -> String {
    let hashed = (0..20).fold("text".to_owned(), |inner, _| format!("encode(sha512({inner}), 'hex')"));
    format!("SELECT {columns}, min({hashed}) AS hash FROM flows GROUP BY 1 ORDER BY 1 NULLS FIRST")
}

#[test]
fn an_executor_is_killed_in_mid_job() {
    let data = Data::new(1500);
    let sql = slow("lpm('ris', dst) AS i, count(*) AS flows, sum(bytes) AS bytes");
    let here = output(client(&["--local"], &data, &sql));
    let mut cluster = Cluster::start(2, 8);
    let mut query = Running::new(client(&["--scheduler", &cluster.address], &data, &sql));
    // Its first output between stages is there: it works on the job.
    let victim = cluster.executors.remove(0);
    wait_for("output of a stage", || has_file(&victim.work_dir));
    assert!(query.is_running(), "the job ended before the executor was killed");
    victim.process.kill();
    assert_eq!(query.output(), here);
}

#[test]
fn a_table_is_swapped_under_a_running_query() {
    let data = Data::new(1500);
    let cluster = Cluster::start(2, 60);
    let at = ["--scheduler", &cluster.address];
    let sql = slow("lpm_label('ris', dst) AS label, count(lpm_label('ris', ip)) AS flows");
    let counts =
        |text: &str| text.lines().map(|line| line.rsplit_once(',').unwrap().0.to_owned()).collect::<Vec<_>>();
    let before = counts(&output(client(&["--local"], &data, &sql)));
    let states = ["New", "Newer"].map(|label| image_of(&data.dir(label), label));

    let mut query = Running::new(client(&at, &data, &sql));
    wait_for("output of a stage", || cluster.executors.iter().any(|executor| has_file(&executor.work_dir)));
    let mut swaps = 0;
    while query.is_running() {
        publish(&[&states[swaps % 2]], &data.shared, "ris");
        if swaps == 0 {
            // The next query has the new table, though another runs with the old one.
            assert_eq!(output(client(&at, &data, BY_LABEL)), data.by_label("New"));
        }
        swaps += 1;
    }
    assert!(swaps > 0, "the query ended before a table was swapped");
    let during = counts(&query.output());
    assert_eq!(during, before);
    assert!(during.iter().any(|row| row.starts_with("AS64496")), "{during:?}");

    publish(&[&states[1]], &data.shared, "ris");
    assert_eq!(output(client(&at, &data, BY_LABEL)), data.by_label("Newer"));
}

#[test]
fn processes_that_cannot_start_say_why() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut scheduler = program("scheduler");
    scheduler.args(["--bind", &address]);
    let error = refusal(scheduler);
    assert!(error.contains(&address) && error.contains("in use"), "{error}");
    let mut scheduler = program("scheduler");
    scheduler.args(["--bind", "0.0.0.0:0"]);
    assert!(refusal(scheduler).contains("external host"));
    let mut executor = program("executor");
    executor.args(["--scheduler", &address, "--bind", &address]);
    assert!(refusal(executor).contains(&address));
    drop(taken);
    let mut executor = program("executor");
    executor.args(["--scheduler", &address, "--bind", "127.0.0.1:0", "--wait", "0"]);
    let error = refusal(executor);
    assert!(error.contains(&address) && error.contains("no scheduler"), "{error}");
    let data = Data::new(10);
    let begin = Instant::now();
    refusal(client(&["--scheduler", &address], &data, BY_LABEL));
    assert!(begin.elapsed() < Duration::from_secs(30));
    // What is no table is not published.
    let mut publish = program("publish");
    let file = data.dir("wrong").join("routes.txt");
    std::fs::write(&file, "10.0.0.0/8 1\n10.0.0.0/33 1\n").unwrap();
    publish.arg(&file).arg("--to").arg(&data.shared).args(["--name", "wrong"]);
    let error = refusal(publish);
    assert!(error.contains("routes.txt") && error.contains('2'), "{error}");
    assert!(!data.shared.join("wrong.latest").exists());
    for name in ["", "../x", "a b", "a,b", "a@b"] {
        let mut publish = program("publish");
        publish.arg(&file).arg("--to").arg(&data.shared).args(["--name", name]);
        assert!(refusal(publish).contains("is no name of a table"));
    }
}

/// Whether a directory, or one within it, has a file that is not empty.
fn has_file(directory: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else { return false };
    entries.flatten().any(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => has_file(&entry.path()),
        Ok(metadata) => metadata.len() > 0,
        Err(_) => false,
    })
}
