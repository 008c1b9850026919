//! [`Parsed`]: the options of a rule, each known and with all of its arguments.
//!
//! Options come in any order, as `-s V`, `-sV`, `--source V` or `--source=V`, with `!` before them or before
//! their first argument. After a word that isn't known nothing more is said of the line: what follows may be
//! its arguments.

use super::options::{self, BASE, Known};

/// A rule's options.
#[derive(Clone, Debug, Default)]
pub(super) struct Parsed {
    /// Options of the rule itself.
    pub(super) base: Vec<Given>,
    /// Options of its matches, in order.
    pub(super) matches: Vec<Match>,
    /// The target, and its options.
    pub(super) target: Option<(String, Vec<Given>)>,
    pub(super) goto: Option<String>,
    /// The family that alone it is for.
    pub(super) family: Option<u8>,
    /// What isn't known: there may be more conditions, and another target.
    pub(super) unknown: Option<String>,
}

/// An option that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) name: &'static str,
    pub(super) is_negated: bool,
    pub(super) arguments: Vec<String>,
}

/// A match, and its options.
#[derive(Clone, Debug)]
pub(super) struct Match {
    pub(super) name: String,
    pub(super) options: Vec<Given>,
}

impl Given {
    /// The first argument; empty of one without.
    pub(super) fn value(&self) -> &str {
        self.arguments.first().map_or("", String::as_str)
    }
}

impl std::fmt::Display for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let not = if self.is_negated { "! " } else { "" };
        write!(f, "{not}{}", self.name)?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {argument}"))
    }
}

impl Match {
    /// Its option of a name.
    pub(super) fn option(&self, name: &str) -> Option<&Given> {
        self.options.iter().find(|given| given.name == name)
    }
}

impl Parsed {
    /// The options of a rule's words, after `-A CHAIN`; an error where iptables would take none of it.
    pub(super) fn of(words: &[String]) -> Result<Self, String> {
        let mut parsed = Self::default();
        let mut words = words.iter().map(String::as_str).peekable();
        let mut is_negated = false;
        while let Some(word) = words.next() {
            if word == "!" {
                if std::mem::replace(&mut is_negated, true) {
                    return Err("two negations".to_owned());
                }
                continue;
            }
            let (name, mut joined) = split(word)?;
            let Some((place, known)) = parsed.find(name)? else {
                parsed.unknown = Some(format!("an option that isn't known ({name})"));
                return Ok(parsed);
            };
            let mut is_negated = std::mem::take(&mut is_negated);
            let mut arguments = Vec::new();
            for at in 0..known.arguments {
                let mut next = || joined.take().or_else(|| words.next());
                let mut argument = next();
                if at == 0 && known.may_be_negated && argument == Some("!") {
                    if std::mem::replace(&mut is_negated, true) {
                        return Err("two negations".to_owned());
                    }
                    argument = next();
                }
                let argument = argument.ok_or_else(|| format!("{name} without its value"))?;
                arguments.push(argument.to_owned());
            }
            if joined.is_some() {
                return Err(format!("{name} takes no value"));
            }
            if is_negated && !known.may_be_negated {
                return Err(format!("{name} can't be negated"));
            }
            if !parsed.take(place, Given { name: known.name, is_negated, arguments })? {
                return Ok(parsed);
            }
        }
        if is_negated {
            return Err("a negation of nothing".to_owned());
        }
        Ok(parsed)
    }

    /// The name of the protocol that is wanted, as it is written.
    pub(super) fn protocol(&self) -> Option<&str> {
        let given = self.base.iter().find(|given| given.name == "--protocol" && !given.is_negated)?;
        Some(given.value())
    }

    /// Whose option a name is. A match of the protocol is there without `-m`, too.
    fn find(&mut self, name: &str) -> Result<Option<(Place, Known)>, String> {
        let mut found = Vec::new();
        found.extend(options::find(BASE, name).map(|known| (Place::Base, known)));
        if let Some((target, _)) = &self.target
            && let Some((options, _)) = options::of_target(target)
        {
            found.extend(options::find(options, name).map(|known| (Place::Target, known)));
        }
        for (at, one) in self.matches.iter().enumerate().rev() {
            let is_later = |(place, _): &(Place, _)| match place {
                Place::Match(later) => self.matches[*later].name == one.name,
                _ => false,
            };
            // Of a match that is there twice, the later one has what follows.
            if !found.iter().any(is_later) {
                let options = options::of_match(&one.name).unwrap_or_default();
                found.extend(options::find(options, name).map(|known| (Place::Match(at), known)));
            }
        }
        if let (true, Some(protocol)) = (found.is_empty(), self.protocol()) {
            let protocol = match protocol {
                "6" | "TCP" => "tcp",
                "17" | "UDP" => "udp",
                "132" => "sctp",
                "33" => "dccp",
                "1" => "icmp",
                "58" => "icmp6",
                other => options::plain_match(other),
            };
            let is_one =
                matches!(protocol, "tcp" | "udp" | "sctp" | "dccp" | "icmp" | "icmp6" | "esp" | "ah" | "mh");
            let options = if is_one { options::of_match(protocol) } else { None };
            if let Some(known) = options.and_then(|options| options::find(options, name)) {
                self.matches.push(Match { name: protocol.to_owned(), options: Vec::new() });
                return Ok(Some((Place::Match(self.matches.len() - 1), known)));
            }
        }
        match found.len() {
            0 | 1 => Ok(found.pop()),
            // Of two matches, or a match and the target: which of them iptables means is not for us to say.
            _ => Ok(None),
        }
    }

    /// Takes an option; whether more of the line can be understood.
    fn take(&mut self, place: Place, given: Given) -> Result<bool, String> {
        let options = match place {
            Place::Base => match given.name {
                "--match" => {
                    let name = options::plain_match(given.value()).to_owned();
                    if options::of_match(&name).is_none() {
                        self.unknown = Some(format!("a match that isn't known ({name})"));
                        return Ok(false);
                    }
                    self.matches.push(Match { name, options: Vec::new() });
                    return Ok(true);
                }
                "--jump" | "--goto" if self.target.is_some() || self.goto.is_some() => {
                    return Err("two targets".to_owned());
                }
                "--jump" => {
                    self.target = Some((given.value().to_owned(), Vec::new()));
                    return Ok(true);
                }
                "--goto" => {
                    self.goto = Some(given.value().to_owned());
                    return Ok(true);
                }
                "--set-counters" => return Ok(true),
                "--ipv4" => {
                    self.family = Some(4);
                    return Ok(true);
                }
                "--ipv6" => {
                    self.family = Some(6);
                    return Ok(true);
                }
                _ => &mut self.base,
            },
            Place::Target => &mut self.target.as_mut().expect("an option of it was found").1,
            Place::Match(at) => &mut self.matches[at].options,
        };
        // Elements of a policy come one after the other.
        if options.iter().any(|before| before.name == given.name) && !is_of_policy(given.name) {
            return Err(format!("{} twice", given.name));
        }
        options.push(given);
        Ok(true)
    }
}

/// Whether an option may be there for each element of a policy.
fn is_of_policy(name: &str) -> bool {
    matches!(name, "--reqid" | "--spi" | "--tunnel-src" | "--tunnel-dst" | "--mode" | "--proto" | "--next")
}

/// Whose option it is.
#[derive(Clone, Copy)]
enum Place {
    Base,
    Target,
    /// A match, by its place.
    Match(usize),
}

/// An option's name, and the value that is joined to it.
fn split(word: &str) -> Result<(&str, Option<&str>), String> {
    if word.len() > 2 && word.starts_with("--") {
        return Ok(word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value))));
    }
    let is_short = word.starts_with('-') && word[1..].starts_with(|c: char| c.is_ascii_alphanumeric());
    if !is_short {
        return Err(format!("{word:?} is no option"));
    }
    let (name, value) = word.split_at(2);
    Ok((name, Some(value).filter(|value| !value.is_empty())))
}

/// The words of a line; what is in quotes is one.
pub(super) fn words(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut is_word, mut is_quoted) = (Vec::new(), String::new(), false, false);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => (is_quoted, is_word) = (!is_quoted, true),
            '\\' if is_quoted => word.extend(chars.next()),
            c if c.is_ascii_whitespace() && !is_quoted => {
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
        return Err("a quotation that doesn't end".to_owned());
    }
    if is_word {
        words.push(word);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Parsed, String> {
        Parsed::of(&words(line)?)
    }

    fn shown(line: &str) -> String {
        let parsed = parsed(line).expect(line);
        let mut all: Vec<String> = parsed.base.iter().map(ToString::to_string).collect();
        for one in &parsed.matches {
            all.push(format!("[{}]", one.name));
            all.extend(one.options.iter().map(ToString::to_string));
        }
        if let Some((target, options)) = &parsed.target {
            all.push(format!("-> {target}"));
            all.extend(options.iter().map(ToString::to_string));
        }
        all.extend(parsed.unknown.map(|unknown| format!("?? {unknown}")));
        all.join(" ")
    }

    #[test]
    fn options_in_any_order_and_form() {
        for (line, wanted) in [
            ("-j ACCEPT -s10.1.1.1", "--source 10.1.1.1 -> ACCEPT"),
            ("-j ACCEPT --protocol=gre", "--protocol gre -> ACCEPT"),
            ("-p tcp -j ACCEPT --syn", "--protocol tcp [tcp] --syn -> ACCEPT"),
            ("-p tcp -j DROP --tcp-flags ALL NONE", "--protocol tcp [tcp] --tcp-flags ALL NONE -> DROP"),
            ("-j ACCEPT -p udp -m multiport --ports 53", "--protocol udp [multiport] --ports 53 -> ACCEPT"),
            ("-p tcp ! --dport 22 -jDROP", "--protocol tcp [tcp] ! --destination-port 22 -> DROP"),
            ("-s ! 10.0.0.0/8", "! --source 10.0.0.0/8"),
            ("-j REJECT --reject-with tcp-reset -p tcp", "--protocol tcp -> REJECT --reject-with tcp-reset"),
            ("-m comment --comment \"a \\\"b\\\" -j\" -j ACCEPT", "[comment] --comment a \"b\" -j -> ACCEPT"),
            ("-m comment --comment \"\" -j A", "[comment] --comment  -> A"),
            ("-m mark --mark 1 -m mark ! --mark 2", "[mark] --mark 1 [mark] ! --mark 2"),
            ("-p 58 --icmpv6-type 1", "--protocol 58 [icmp6] --icmpv6-type 1"),
            (
                "-j ACCEPT --reject-with x -s 1.1.1.1",
                "-> ACCEPT ?? an option that isn't known (--reject-with)",
            ),
            ("-m geoip --cc DE -j ACCEPT", "?? a match that isn't known (geoip)"),
            ("--dport 22 -p tcp", "?? an option that isn't known (--dport)"),
            (
                "-m connmark --mark 1 -m mark --mark 1 --mark 2",
                "[connmark] --mark 1 [mark] ?? an option that isn't known (--mark)",
            ),
        ] {
            assert_eq!(shown(line), wanted, "{line}");
        }
        for wrong in [
            "-s",
            "10.0.0.1",
            "! ! -s 1.1.1.1",
            "! -s ! 1.1.1.1",
            "! -j ACCEPT",
            "-j A -j B",
            "-s 1.1.1.1 -s 2.2.2.2",
            "!",
            "-p tcp --dport 1 --dport 2",
            "-p tcp --syn=1",
            "-fx",
            "- -s",
            "--",
            "-j A -g B",
            "-m comment --comment \"x",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
