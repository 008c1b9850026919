//! Tables in CSV, tables that are merged, and tables and lists that are written for other programs.

use crate::common::Folder;

const CSV: &str = "Domain,category,risk\nads.example,ads,3\n\"*.news.example\",\"a, b\",\n";

#[test]
fn csv_is_read_by_every_verb() {
    let folder = Folder::new();
    folder.write("t.csv", CSV);
    folder.write("odd.tsv", "what\tn\nads.example\t7\n");
    for (table, name, found) in [
        ("t.csv", "x.ads.example", "category=ads,risk=3"),
        ("t.csv --value-columns category", "news.example", "a,%20b"),
        ("t.csv --value-columns risk", "news.example", "-"),
        ("odd.tsv --name-column what", "ads.example", "7"),
    ] {
        let ran = folder.run(&format!("names lookup --table {table} {name} --json")).ok();
        assert_eq!(ran.json()[0]["result"], found, "{table}");
        folder.run(&format!("names build --table {table} -o t.img")).ok();
        let ran = folder.run(&format!("names lookup --image t.img {name} --json")).ok();
        assert_eq!(ran.json()[0]["result"], found, "{table}");
    }
    folder.run("names verify --table t.csv").ok();
    folder.run("names info t.csv").ok();
    folder.write("one.csv", "what\nads.example\n");
    let ran = folder.run("names lookup --table one.csv --name-column what ads.example").ok();
    assert_eq!(ran.stdout, "ads.example  /example/ads  member\n");
    assert!(ran.stderr.contains("each its own result") && !ran.stderr.contains("next hop"), "{ran:?}");
    folder.write("hosts", "0.0.0.0 a.example\n");
    folder.write("bad.csv", "domain,v\na.example,1\na..b,2\n");
    for (arguments, said) in [
        (
            "lookup --table t.csv --value-columns nosuch a.b",
            "t.csv:1: no column nosuch; the columns are Domain",
        ),
        ("lookup --table bad.csv a.b", "bad.csv:3: a label is empty"),
        ("lookup --table hosts --format hosts --name-column x a.b", "not for lists of domains"),
        ("lookup --image t.img --name-column x a.b", "--name-column is for a table that is read"),
        ("build --table hosts --table hosts --value-columns x -o x.img", "not for lists of domains"),
    ] {
        folder.run(&format!("names {arguments}")).refused(&[said]);
    }
}

/// A name of a table without results is a member, as in columns of enrich.
#[test]
fn names_without_results_are_members() {
    let folder = Folder::new();
    folder.write("list", "a.example\nb.example\n");
    folder.run("names build --table list -o list.img").ok();
    for table in ["--table list", "--image list.img"] {
        let ran = folder.run(&format!("names lookup {table} x.b.example")).ok();
        assert_eq!(ran.stdout, "x.b.example  /example/b  member\n");
    }
}

#[test]
fn the_longest_name_inherits_what_it_lacks() {
    let folder = Folder::new();
    folder.write("own.csv", "domain,site,rack\nads.example,Kiel,7\n");
    folder.write("list", "bad.ads.example\n");
    folder.write("risk", "example 3\n");
    let merge = "--merge own:site=own.csv --merge blocked=list --merge risk=risk";
    let found = "own=Kiel,blocked=true,risk=3";
    let ran = folder.run(&format!("names lookup {merge} x.bad.ads.example example --json")).ok();
    let results: Vec<_> = ran.json().iter().map(|line| line["result"].clone()).collect();
    assert_eq!(results, [found, "risk=3"]);
    folder.run(&format!("names build {merge} -o all.img")).ok();
    let ran = folder.run("names lookup --image all.img x.bad.ads.example --json").ok();
    assert_eq!(ran.json()[0]["result"], found);
    let log = b"query\nx.bad.ads.example\nads.example\nnone.org\n";
    let sources = "--merge-names d=own:site=own.csv --merge-names d=blocked=list --merge-names d=risk=risk";
    for tables in [sources, "--names d=all.img"] {
        let ran = folder.run_with(&format!("enrich {tables} --fields d=own,blocked,risk"), log).ok();
        assert_eq!(
            ran.stdout,
            "query,query_d_own,query_d_blocked,query_d_risk\nx.bad.ads.example,Kiel,true,3\n\
             ads.example,Kiel,,3\nnone.org,,,\n"
        );
    }
    folder.write("hosts", "0.0.0.0 a.example\n");
    for (arguments, said) in [
        ("names lookup --merge a=hosts x.y", "hosts: a list of domains (hosts): its scopes"),
        ("names lookup --merge a=list --table list x.y", "cannot be used with"),
        ("names build --merge hosts -o x.img", "a source is NAME=FILE"),
        ("names build -o x.img", "--table"),
        ("names lookup --merge a=- --merge b=-", "- twice"),
        ("enrich --merge-names d=a=list --names d=list", "has a file, and sources to merge"),
        ("enrich --merge-names d=a=list --fields d=b", "no field b; there are a"),
        ("enrich --merge-names list", "TABLE=NAME=FILE"),
    ] {
        folder.run_with(arguments, log).refused(&[said]);
    }
}

#[test]
fn enrich_reads_names_in_csv_and_in_the_form_that_is_named() {
    let folder = Folder::new();
    folder.write("t.csv", CSV);
    folder.write("odd.csv", "what,n\nads.example,7\n");
    folder.write("list", "ads.example\n");
    let log = b"query\nwww.ads.example\nnews.example\n";
    for (tables, header, right) in [
        ("--names t=t.csv --fields t=risk", "query_t_risk", ["3", ""]),
        ("--names t=t.csv --fields t=risk,category", "query_t_risk,query_t_category", ["3,ads", ",\"a, b\""]),
        ("--names t=t.csv", "query_t", ["\"category=ads,risk=3\"", "category=a%2C%20b"]),
        ("--names o=odd.csv --names-column o=what", "query_o", ["7", ""]),
        ("--names o=odd.csv --names-column what --fields o=n", "query_o_n", ["7", ""]),
        ("--names l=list --names-format l=domains", "query_l", ["member", ""]),
    ] {
        let ran = folder.run_with(&format!("enrich {tables}"), log).ok();
        let right = format!("query,{header}\nwww.ads.example,{}\nnews.example,{}\n", right[0], right[1]);
        assert_eq!(ran.stdout, right, "{tables}");
    }
    folder.run("names build --table list -o list.img").ok();
    for (tables, said) in [
        ("--names l=list --names-format l=hosts", "list:1: "),
        ("--names l=list --names-format nosuch", "l: no format of names is called \"nosuch\""),
        ("--names l=list --names-format hosts --names-format l=psl --names-format l=psl", "stated twice"),
        ("--names l=list.img --names-format domains", "list.img is an image"),
        ("--names t=t.csv --fields t=nosuch", "no column nosuch"),
        ("--table t=v4 --names-column x", "--names-column is for --names"),
    ] {
        folder.run_with(&format!("enrich {tables}"), log).refused(&[said]);
    }
}

#[test]
fn tables_and_lists_are_written_for_other_programs() {
    let folder = Folder::new();
    folder.write("list", "ads.example\nb.example\n");
    folder.write("filter", "||ads.example^\n@@||good.ads.example^\n");
    folder.write("t", "/com/parc core\n");
    for (from, format, right) in [
        ("list", "domains", "ads.example\nb.example\n"),
        ("list", "names", "/example/ads\n/example/b\n"),
        ("t", "domains", "parc.com core\n"),
        ("list", "adblock", "[Adblock Plus]\n||ads.example^\n||b.example^\n"),
        ("list", "dnsmasq", "address=/ads.example/#\naddress=/b.example/#\n"),
        ("filter", "dnsmasq", "address=/ads.example/#\nserver=/good.ads.example/#\n"),
    ] {
        let ran = folder.run(&format!("names build --table {from} --to {format} -o -")).ok();
        assert_eq!(ran.stdout, right, "{from} {format}");
    }
    folder.run("names build --table filter --to rpz -o zone").ok();
    let ran =
        folder.run("names lookup --table zone a.ads.example a.good.ads.example --json").status(1).json();
    assert_eq!((&ran[0]["result"], &ran[1]["exception"]), (&"blocked".into(), &true.into()));
    folder.write("out", "old");
    for (arguments, said) in [
        ("--table filter --to hosts", "hosts can't say what the list says of ads.example (subtree, blocked)"),
        ("--table filter --to domains", "no scopes and exceptions"),
        ("--table t --to rpz", "rpz can't say what the list says of parc.com (subtree, core)"),
        ("--table list --to adblock --engine acta", "--engine is for images"),
        ("--table list --to adblock --json", "--json is for images"),
        ("--table list --to adblock --aggregate", "--aggregate is for images"),
        ("--table out --to adblock", "the output is the input"),
    ] {
        folder.run(&format!("names build {arguments} -o out")).refused(&[said]);
        assert_eq!(std::fs::read_to_string(folder.path("out")).unwrap(), "old");
    }
}
