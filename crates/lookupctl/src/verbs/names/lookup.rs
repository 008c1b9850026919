//! `names lookup`: the longest matching prefix and the result of names.

use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use serde::Serialize;
use wirespeed::Fleet;
use wirespeed::engine::{AnyTable, EngineName, Served};
use wirespeed::gpu::names::Offload;
use wirespeed::names::image_file::NameImageFile;
use wirespeed::names::lists::{Answers, Verdict};
use wirespeed::names::read::{Label, Labels, NameFib, NameFormat};
use wirespeed::names::{Match, Name, NameBatch, NameBuf, NameRib};
use wirespeed_fib::Step;
use wirespeed_fib::read::MEMBER;
use wirespeed_namelookup::{Aggregated, NameDomain, NameModel};

use super::source::{BuildArguments, Loaded, MergeArguments, NOT_AGGREGATED, ReadArguments, format_parser};
use crate::Outcome;
use crate::lines::{self, BadLine};
use crate::verbs::lookup::{
    LookupArguments, Printer, StepLine, is_none_left_out, print_steps, tell_left_out,
};
use crate::{stdin, tables};

/// Looks up names: shows the longest matching prefix of each, and its result
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    /// Names, domains or URLs, each recognised by its form. By default read from standard input, one on each
    /// line
    #[arg(value_name = "NAME", value_parser = OsStringValueParser::new().map(OsString::into_encoded_bytes))]
    names: Vec<Vec<u8>>,

    /// The table; - is standard input
    #[arg(long, value_name = "FILE", required_unless_present_any = ["image", "merge"])]
    table: Option<OsString>,

    #[command(flatten)]
    merged: MergeArguments,

    /// Compiled table (see build), instead of --table
    #[arg(long, value_name = "IMG", conflicts_with_all = ["engine", "aggregate", "memory_cap", "merge"])]
    image: Option<PathBuf>,

    /// Form of the names to look up. By default each name is recognised singly: /com/parc, ndn:/com/parc,
    /// www.parc.com or www.parc.com/a
    #[arg(long = "as", value_name = "FORMAT", value_parser = format_parser())]
    form: Option<NameFormat>,

    #[command(flatten)]
    lookup: LookupArguments<NameDomain>,

    #[command(flatten)]
    build: BuildArguments,
    #[command(flatten)]
    read: ReadArguments,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl names lookup --table fib.txt /com/parc/www/index.html
  lookupctl names lookup --table blocked.txt www.example.com https://example.org/ads/1
  lookupctl names lookup --table fib.txt --explain ndn:/com/parc/v=3
  lookupctl names lookup --table domains.txt.zst --json < urls | jq -r .result | sort
  lookupctl names lookup --image names.img --as domains < hosts
  lookupctl names lookup --table fib.txt --device gpu /com/parc/www
  lookupctl names lookup --table /etc/hosts localhost
  lookupctl names lookup --table domains.csv --value-columns category www.ads.example
  lookupctl names lookup --merge own=own.csv --merge blocked=list.txt www.ads.example
  lookupctl names lookup --table filter.txt --format adblock --lenient www.ads.example
  lookupctl names lookup --table public_suffix_list.dat www.example.co.uk

A name of a table without results is answered with member. A list of domains answers with the entry that wins, its scope (exact, one-label, beneath, subtree) and its value, or that it is an \
exception, which has no value. Several addresses of a name are one value, with commas between. The Public Suffix List answers with the suffix, the registrable domain and the section.
With --json an answer is {\"name\",\"prefix\",\"result\"}, prefix and result null if nothing matches. A list of domains adds \"scope\" and \
\"exception\", the Public Suffix List \"suffix\" and \"registrable\".
Every answer of the engine is checked against the table, if it is known. The prefix in the output is the longest of the table, also for an \
aggregated table, too.
Domains can be in any script, in queries and in tables: www.münchen.de and www.xn--mnchen-3ya.de are one name (UTS 46), and so are \
upper and lower case. The path of a URL follows its host, with = before its first segment: example.com/ads is /com/example/=ads. \
An entry *.example.com, or .example.com, matches example.com itself and all names beneath it.
The first line of standard input that is not a name ends the lookups. With --lenient such lines are reported by number, passed over and counted.
Exit status 1 says that a name matches nothing or an exception, or that an answer is wrong; 2 says that a line was not a name, even if other lines were answered.";

pub(super) fn run(options: Options) -> Result<Outcome> {
    let from_stdin = options.names.is_empty();
    let tables = options.table.iter().chain(options.merged.files());
    let tables = tables.map(|table| ("the table", Some(&**table)));
    stdin::at_most_one(tables.chain(from_stdin.then_some(("the names", Some("-".as_ref())))))?;
    if options.table.is_none() && options.merged.merge.is_empty() {
        options.read.refuse_without_table()?;
    }
    let fleet = options.lookup.fleet(&NameDomain::gpu_options())?;
    let loaded = match &options.table {
        Some(table) => Some(options.read.load_any(table)?),
        None if options.merged.merge.is_empty() => None,
        None => Some(options.read.load_merged(&options.merged.merge)?),
    };
    let (mut left_out, is_ndn) =
        loaded.as_ref().map_or((0, false), |loaded| (loaded.left_out(), loaded.is_ndn()));
    let list;
    let (table, rib, labels) = match (options.image, loaded) {
        (Some(path), loaded) => {
            let image = NameImageFile::open(&path)?;
            tell_left_out(&path, image.left_out()?);
            left_out += image.left_out()?;
            list = image.list()?;
            let fib = match (&list, loaded) {
                // Numbers of answers have no order, so another list's table can't check them.
                (Some(_), Some(_)) => {
                    bail!("{}: an image of a list is looked up without --table", path.display())
                }
                (None, Some(loaded)) => {
                    Some(loaded.without_list("a list, and the image holds a table of names")?)
                }
                (_, None) => None,
            };
            let (rib, labels) = match fib {
                Some(NameFib { names, labels }) => (Some(names), labels),
                // An aggregated table gives the match lengths of the names that are left.
                None if image.is_aggregated() => (image.names()?, image.labels()?),
                None => (None, image.labels()?),
            };
            let (engine, is_aggregated) = (image.engine(), image.is_aggregated());
            (Compiled::new(engine, image.into_table()?, is_aggregated, fleet.as_ref())?, rib, labels)
        }
        (None, Some(Loaded { fib: NameFib { names, labels }, list: of_list, .. })) => {
            if of_list.is_some() && options.build.aggregate {
                bail!(NOT_AGGREGATED);
            }
            list = of_list.map(|list| list.answers);
            let build = options.build.options(1, 0);
            let engine = options.lookup.engine.resolve::<NameDomain>(&names, false)?;
            let model = NameModel::new(names, options.build.aggregate);
            let table = tables::compile::<NameDomain>(engine, model.compiled(), &build)?.table;
            let table = Compiled::new(engine, table, model.is_aggregated(), fleet.as_ref())?;
            (table, Some(model.names().clone()), labels)
        }
        (None, None) => bail!("neither a table nor an image"),
    };
    let aggregated = rib.as_ref().filter(|_| table.is_aggregated).cloned().map(Aggregated::new);
    let mut session = Session {
        table,
        rib,
        aggregated,
        labels,
        list,
        form: options.form,
        is_ndn,
        left_out,
        printer: options.lookup.printer(),
    };
    if from_stdin {
        let lenient = options.read.is_lenient();
        lines::each_good(&mut session, LONGEST, lenient, Session::answer_line, |session| {
            Ok(session.printer.output.flush()?)
        })?;
    } else {
        for word in &options.names {
            let name = session.parse(word)?;
            session.answer(word, &name)?;
        }
    }
    session.printer.finish()
}

/// A compiled table and its engine.
struct Compiled {
    table: Box<dyn AnyTable<NameDomain>>,
    engine: EngineName,
    is_aggregated: bool,
    /// The table on GPUs, if they look up.
    offload: Option<Offload>,
}

impl Compiled {
    fn new(
        engine: EngineName,
        table: Box<dyn AnyTable<NameDomain>>,
        is_aggregated: bool,
        fleet: Option<&Fleet>,
    ) -> Result<Self> {
        let none = NameBatch::new();
        let on_gpus = |fleet| tables::on_gpus::<NameDomain>(engine, &*table, fleet, none.names());
        let offload = fleet.map(on_gpus).transpose()?;
        Ok(Self { table, engine, is_aggregated, offload })
    }

    fn lookup(&self, name: &Name) -> Match {
        let Some(offload) = &self.offload else { return self.table.lookup(name) };
        let (batch, mut found) = (NameBatch::from_iter([name]), [Match::NONE]);
        offload.lookup_batch(batch.names(), &mut found, |names, found| self.table.match_batch(names, found));
        found[0]
    }
}

/// One line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    name: String,
    /// The name as it was given, if that is another form.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<&'a str>,
    prefix: Option<String>,
    result: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<StepLine>>,
    /// Lines that lenient reading left out of the table: any of them could have changed the answer.
    #[serde(skip_serializing_if = "is_none_left_out")]
    left_out: u64,
}

/// One line of JSON for a name in a list.
#[derive(Serialize)]
struct ListLine<'a> {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<&'a str>,
    #[serde(flatten)]
    answer: &'a OfList,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<StepLine>>,
    #[serde(skip_serializing_if = "is_none_left_out")]
    left_out: u64,
}

/// The answer of a list for a name.
#[derive(Debug, Serialize)]
struct OfList {
    /// The name of the entry that wins.
    prefix: Option<String>,
    #[serde(rename = "result")]
    value: Option<String>,
    scope: Option<&'static str>,
    exception: bool,
    /// The public suffix, of a list of suffixes.
    #[serde(skip_serializing_if = "Option::is_none")]
    suffix: Option<String>,
    /// The registrable domain; null for a suffix itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    registrable: Option<Option<String>>,
}

impl OfList {
    fn new(list: &Answers, labels: &Labels, name: &Name, found: Match) -> Self {
        let (answer, suffix) = (list.answer(name, found), list.suffix(name, found));
        let label = answer.and_then(|answer| labels.label(answer.verdict.result()));
        Self {
            prefix: answer.map(|answer| answer.entry(name).to_string()),
            value: label.map(|label| label.to_string()),
            scope: answer.map(|answer| answer.scope.name()),
            exception: answer.is_some_and(|answer| answer.verdict == Verdict::Exception),
            suffix: suffix.map(|found| found.suffix.to_string()),
            registrable: suffix.map(|found| found.registrable.map(ToString::to_string)),
        }
    }
}

impl fmt::Display for OfList {
    /// The suffix, the registrable domain and the section, if the list is one of suffixes; otherwise the
    /// entry, its scope and its value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = match &self.value {
            Some(value) => value,
            None if self.exception => "exception",
            None if self.suffix.is_some() => "not listed",
            None => return f.write_str("no match"),
        };
        if let Some(suffix) = &self.suffix {
            let registrable = self.registrable.as_ref().and_then(Option::as_deref).unwrap_or("-");
            return write!(f, "{suffix}  {registrable}  {value}");
        }
        let (prefix, scope) = (self.prefix.as_deref().unwrap_or_default(), self.scope.unwrap_or_default());
        write!(f, "{prefix}  {scope}  {value}")
    }
}

/// A session that answers names on stdout.
struct Session {
    table: Compiled,
    /// The names, if they are known.
    rib: Option<NameRib>,
    /// All names and the compiled names, if some are left out.
    aggregated: Option<Aggregated>,
    labels: Labels,
    /// What the results of a list's table stand for.
    list: Option<Answers>,
    form: Option<NameFormat>,
    /// Whether the table's names are NDN URIs.
    is_ndn: bool,
    /// Lines that were left out of the table.
    left_out: u64,
    printer: Printer,
}

impl Session {
    /// Answers the name of a line, if there is one.
    fn answer_line(&mut self, line: &[u8]) -> Result<Result<(), BadLine>> {
        let word = line.trim_ascii().split(u8::is_ascii_whitespace).next().unwrap_or_default();
        if word.is_empty() || word[0] == b'#' {
            return Ok(Ok(()));
        }
        match self.parse(word) {
            Ok(name) => Ok(Ok(self.answer(word, &name)?)),
            Err(why) => Ok(Err(BadLine(why))),
        }
    }

    fn answer(&mut self, word: &[u8], name: &Name) -> Result<()> {
        let found = self.table.lookup(name);
        // The right answer of an aggregated table is the full table's result, with the length of a name that
        // is left.
        let right = self.rib.as_ref().map(|rib| rib.lookup(name));
        let compiled = self.aggregated.as_ref().map(|both| both.reduced().lookup(name));
        let wrong = right.zip(compiled.or(right)).and_then(|(right, compiled)| {
            let engine = self.table.engine;
            let is_right = found == compiled && found.result == right.result;
            (!is_right).then(|| format!("{engine}: {name} leads to {found:?}, by the table to {compiled:?}"))
        });
        let steps = self.printer.explain.then(|| self.table.table.explain(name));
        // A list's answer decides by itself: a match may stand for no entry.
        if wrong.is_some() || (self.list.is_none() && !found.is_some()) {
            self.printer.outcome = Outcome::Differs;
        }
        if let Some(list) = self.list.as_ref().filter(|_| wrong.is_none()) {
            let of_list = OfList::new(list, &self.labels, name, found);
            return self.print_of_list(&String::from_utf8_lossy(word), name, &of_list, steps);
        }
        // A wrong length may be larger than the name's.
        let prefix = if wrong.is_some() { None } else { right.unwrap_or(found).prefix(name) };
        let result = found.is_some().then(|| {
            match self.labels.label(found.result) {
                None => found.result.to_string(),
                // A list without results, like routes without next hops.
                Some(Label::Line(_)) => MEMBER.to_owned(),
                Some(Label::Word(word)) => word.to_owned(),
            }
        });
        let word = String::from_utf8_lossy(word);
        if self.printer.json {
            let name = name.to_string();
            let asked = (*word != name).then_some(&*word);
            let steps = steps.map(|steps| steps.into_iter().map(StepLine::from).collect());
            let prefix = prefix.map(ToString::to_string);
            self.printer.output.json(&Line {
                asked,
                name,
                prefix,
                result: result.as_deref(),
                steps,
                left_out: self.left_out,
            })?;
        } else {
            self.print(&word, prefix, result.as_deref(), steps.as_deref())?;
        }
        if let Some(wrong) = wrong {
            self.printer.wrong(&wrong)?;
        }
        Ok(())
    }

    /// Prints the answer of a list.
    fn print_of_list(
        &mut self,
        word: &str,
        name: &Name,
        found: &OfList,
        steps: Option<Vec<Step>>,
    ) -> Result<()> {
        // A name without a value is one that nothing has to be done for, as one that nothing matches.
        let has_none = found.suffix.is_none() && found.value.is_none();
        self.printer.outcome = if has_none { Outcome::Differs } else { self.printer.outcome };
        if self.printer.json {
            let name = name.to_string();
            let asked = (word != name).then_some(word);
            let steps = steps.map(|steps| steps.into_iter().map(StepLine::from).collect());
            return self.printer.output.json(&ListLine {
                asked,
                name,
                answer: found,
                steps,
                left_out: self.left_out,
            });
        }
        self.printer.output.line(format_args!("{word}  {found}"))?;
        print_steps(&mut self.printer.output, &steps.unwrap_or_default())
    }

    /// Parses the name of a word.
    fn parse(&self, word: &[u8]) -> Result<NameBuf> {
        let shown = || format!("\"{}\"", String::from_utf8_lossy(&word[..word.len().min(60)]).escape_debug());
        if self.form.is_none() && self.list.is_none() {
            // An address alone is looked up as the host of a URL, because no domain is an address.
            match std::str::from_utf8(word).ok().and_then(|word| word.parse().ok()) {
                Some(IpAddr::V4(_)) => return Ok(NameFormat::Urls.parse(word)?),
                Some(IpAddr::V6(_)) => return Ok(NameFormat::Urls.parse(&[b"[", word, b"]"].concat())?),
                None => {}
            }
        }
        // A table of NDN names is asked for NDN names.
        let found = || match NameFormat::recognise([word]) {
            Some(NameFormat::Names) if self.is_ndn => Some(NameFormat::Ndn),
            found => found,
        };
        let form = self.form.or_else(found);
        let form = form.ok_or_else(|| anyhow!("not a name, a domain or a URL: {}", shown()))?;
        if self.list.is_some() && form == NameFormat::Urls {
            bail!("a list is asked for domains, not for URLs: {}", shown());
        }
        form.parse(word).with_context(|| format!("not a name ({form}): {}", shown()))
    }

    fn print(
        &mut self,
        name: &str,
        prefix: Option<&Name>,
        result: Option<&str>,
        steps: Option<&[Step]>,
    ) -> Result<()> {
        let output = &mut self.printer.output;
        match (prefix, result) {
            (Some(prefix), Some(result)) => output.line(format_args!("{name}  {prefix}  {result}"))?,
            (None, Some(result)) => output.line(format_args!("{name}  {result}"))?,
            (_, None) => output.line(format_args!("{name}  no match"))?,
        }
        print_steps(output, steps.unwrap_or_default())
    }
}

/// The most bytes of a line with a name: the longest name, and an end of line.
const LONGEST: u64 = Name::MAX_LEN as u64 + 2;

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::on_host;

    #[test]
    fn a_gpu_answers_and_the_cpu_for_one_that_is_lost() {
        let Some((fleet, switch)) = on_host::fleet::<NameDomain>() else { return };
        let entries = [("/com", 1), ("/com/parc", 2), ("/com/parc/www", 2)];
        let names: NameRib = entries.iter().map(|&(name, to)| (Name::new(name).unwrap(), to)).collect();
        let (engine, model) = (EngineName::Acta, NameModel::new(names, true));
        let build = wirespeed_namelookup::BuildOptions::default();
        let table = tables::compile::<NameDomain>(engine, model.compiled(), &build).unwrap().table;
        let compiled = Compiled::new(engine, table, true, Some(&fleet)).unwrap();
        let found = |name| compiled.lookup(Name::new(name).unwrap());
        let counts = || compiled.offload.as_ref().unwrap().counts();
        assert_eq!(found("/com/parc/www/a"), Match { result: 2, length: 9 });
        assert_eq!(found("/org"), Match::NONE);
        assert_eq!((counts().gpu, counts().cpu), (2, 0));
        switch.store(true, Ordering::Relaxed);
        assert_eq!(found("/com/a"), Match { result: 1, length: 4 });
        assert_eq!(counts().cpu, 1);
    }
}
