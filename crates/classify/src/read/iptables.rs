//! One chain as `iptables-save` and `ip6tables-save` write it.
//!
//! ```text
//! *filter
//! :INPUT DROP [0:0]
//! -A INPUT -s 10.0.0.0/8 -p tcp -m multiport --dports 22,80:90 -m comment --comment "a b" -j ACCEPT
//! COMMIT
//! ```
//!
//! A list of ports becomes a rule for each; the chain's policy is a last rule that matches all.

use wirespeed_input::Input;

use super::RuleFile;
use super::report::{Fault, ReadError, Reading};
use crate::rule::{Pattern, Rule, RuleError};
use crate::text::{Parts, RuleTextError};
use crate::tuple::{Tuple, TupleError, ValueError};

/// The chain that is read where none is given.
const CHAIN: &str = "INPUT";

pub(super) fn read<T: Tuple>(
    input: &mut Input<'_>,
    reading: &mut Reading,
    file: &mut RuleFile<T>,
    chain: Option<&str>,
) -> Result<(), ReadError> {
    let chain = chain.unwrap_or(CHAIN);
    let mut policy = None;
    let mut is_filter = true;
    reading.each_line(input, |line, report| {
        match line.as_bytes()[0] {
            b'*' => is_filter = line == "*filter",
            b':' => {
                let mut words = line[1..].split_whitespace();
                if is_filter && words.next() == Some(chain) {
                    policy = words.next().filter(|policy| *policy != "-").map(str::to_owned);
                }
            }
            b'-' | b'[' => {
                let words = words(line)?;
                // Counters may come before a rule.
                let counters = usize::from(line.starts_with('['));
                let [add, of, rest @ ..] = &words[counters..] else { return Err(Fault::bad("not a rule")) };
                if !matches!(add.as_str(), "-A" | "--append") {
                    return Err(Fault::bad("neither a rule (-A) nor a chain"));
                }
                if !is_filter || of != chain {
                    report.elsewhere += 1;
                    return Ok(());
                }
                for rule in rules(rest, file)? {
                    file.add(rule).map_err(Fault::Bad)?;
                }
            }
            _ if line == "COMMIT" => {}
            _ => return Err(Fault::bad("not a line of iptables-save")),
        }
        Ok(())
    })?;
    if let Some(policy) = policy {
        let action = file.intern(&policy);
        // As many numbers as rules.
        let _ = file.rules.insert(Rule::new(Pattern::all(), 0, action));
    }
    Ok(())
}

/// The words of a line; what is in quotes is one.
fn words(line: &str) -> Result<Vec<String>, Fault> {
    let (mut words, mut word, mut is_word, mut is_quoted) = (Vec::new(), String::new(), false, false);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => (is_quoted, is_word) = (!is_quoted, true),
            '\\' if is_quoted => word.extend(chars.next()),
            c if c.is_whitespace() && !is_quoted => {
                if std::mem::take(&mut is_word) {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => {
                word.push(c);
                is_word = true;
            }
        }
    }
    if is_quoted {
        return Err(Fault::bad("a quotation that doesn't end"));
    }
    if is_word {
        words.push(word);
    }
    Ok(words)
}

/// The rules of a line: one for each port of its lists.
fn rules<T: Tuple>(words: &[String], file: &mut RuleFile<T>) -> Result<Vec<Rule<T>>, Fault> {
    let mut fields: Vec<(&'static str, String)> = Vec::new();
    let mut lists: Vec<(&'static str, Vec<String>)> = Vec::new();
    let mut target = None;
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| Fault::bad(format!("{word} without a value")));
        match word {
            "!" => return Err(Fault::left_out("a negation")),
            "-s" | "--source" | "--src" => fields.push(("src", value()?.to_owned())),
            "-d" | "--destination" | "--dst" => fields.push(("dst", value()?.to_owned())),
            "-p" | "--protocol" => match value()? {
                "all" | "0" => {}
                proto => fields.push(("proto", proto.to_owned())),
            },
            "--sport" | "--source-port" => fields.push(("sport", range(value()?))),
            "--dport" | "--destination-port" => fields.push(("dport", range(value()?))),
            "--sports" | "--source-ports" => lists.push(("sport", value()?.split(',').map(range).collect())),
            "--dports" | "--destination-ports" => {
                lists.push(("dport", value()?.split(',').map(range).collect()));
            }
            "--icmp-type" | "--icmpv6-type" => fields.extend(icmp(value()?)?),
            "-m" | "--match" => match value()? {
                "tcp" | "udp" | "sctp" | "dccp" | "udplite" | "icmp" | "icmp6" | "icmpv6" | "comment"
                | "multiport" => {}
                other => return Err(Fault::left_out(format!("a match of {other}"))),
            },
            "--comment" => _ = value()?,
            "-i" | "--in-interface" | "-o" | "--out-interface" => {
                return Err(Fault::left_out(format!("an interface ({word})")));
            }
            "-f" | "--fragment" => return Err(Fault::left_out("a match of fragments")),
            "-j" | "--jump" => target = Some(value()?),
            "-g" | "--goto" => return Err(Fault::left_out("a jump to another chain")),
            // What a target is told belongs to it.
            _ if target.is_some() => {}
            _ => return Err(Fault::left_out(format!("a match by {word}"))),
        }
    }
    let action = match target {
        Some(target @ ("ACCEPT" | "DROP" | "REJECT" | "RETURN" | "QUEUE" | "NFQUEUE")) => file.intern(target),
        Some(target) if target.chars().any(|c| c.is_ascii_lowercase()) => {
            return Err(Fault::left_out("a jump to another chain"));
        }
        Some(target) => return Err(Fault::left_out(format!("a target that decides nothing ({target})"))),
        None => return Err(Fault::left_out("no target: it only counts")),
    };
    let mut all = vec![fields];
    for (name, list) in lists {
        let with = |fields: &Vec<(&'static str, String)>| {
            let one = |value: &String| fields.iter().cloned().chain([(name, value.clone())]).collect();
            list.iter().map(one).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    all.iter().map(|fields| rule(fields, action)).collect()
}

fn range(ports: &str) -> String {
    match ports.split_once(':') {
        Some(("", to)) => format!("0-{to}"),
        Some((from, "")) => format!("{from}-65535"),
        Some((from, to)) => format!("{from}-{to}"),
        None => ports.to_owned(),
    }
}

/// Type and code of an ICMP message stand for the ports.
fn icmp(text: &str) -> Result<Vec<(&'static str, String)>, Fault> {
    let (kind, code) = match text.split_once('/') {
        Some((kind, code)) => (kind, Some(code)),
        None => (text, None),
    };
    let number = match kind {
        "any" => return Ok(Vec::new()),
        "echo-request" | "ping" => "8",
        "echo-reply" | "pong" => "0",
        "destination-unreachable" => "3",
        "source-quench" => "4",
        "redirect" => "5",
        "time-exceeded" | "ttl-exceeded" => "11",
        "parameter-problem" => "12",
        number if number.bytes().all(|b| b.is_ascii_digit()) && !number.is_empty() => number,
        other => return Err(Fault::left_out(format!("an ICMP type by its name ({other})"))),
    };
    let code = code.map(|code| ("dport", code.to_owned()));
    Ok([("sport", number.to_owned())].into_iter().chain(code).collect())
}

/// The rule of fields and their values.
pub(super) fn rule<T: Tuple>(fields: &[(&str, String)], action: u32) -> Result<Rule<T>, Fault> {
    let mut parts = Parts::<T>::default();
    parts.action = action;
    for (at, (name, value)) in fields.iter().enumerate() {
        match fields[..at].iter().find(|(before, _)| before == name) {
            Some((_, before)) if before == value => continue,
            Some(_) => return Err(Fault::left_out(format!("two demands of {name}"))),
            None => {}
        }
        parts.field(name, value).map_err(|error| match error {
            RuleTextError::Tuple(TupleError::Field { field, .. }) => {
                Fault::left_out(format!("no field of a tuple ({field})"))
            }
            // A name of a port or a protocol of the system, and an address of the other family.
            RuleTextError::Tuple(TupleError::Value(ValueError::Form { field, text })) => {
                Fault::left_out(format!("{text} as {field}"))
            }
            error => Fault::bad(error),
        })?;
    }
    parts.rule().map_err(|error| match error {
        RuleTextError::Rule(RuleError::Patterns { .. }) => Fault::left_out(error.to_string()),
        error => Fault::bad(error),
    })
}
