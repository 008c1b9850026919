//! `names lookup`: the longest matching prefix and the result of names.

use std::ffi::OsString;
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
use wirespeed::names::read::{Labels, NameFib, NameFormat};
use wirespeed::names::{Match, Name, NameBatch, NameBuf, NameRib};
use wirespeed_fib::Step;
use wirespeed_namelookup::{Aggregated, NameDomain, NameModel};

use super::source::{BuildArguments, ReadArguments, format_parser};
use crate::Outcome;
use crate::device::On;
use crate::engine::{self, Choice};
use crate::lines::{self, BadLine};
use crate::output::Output;
use crate::tables;
use crate::verbs::lookup::{StepLine, print_steps};

/// Looks up names: shows the longest matching prefix of each, and its result
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    /// Names, domains or URLs, each recognised by its form. By default read from standard input, one on each
    /// line
    #[arg(value_name = "NAME", value_parser = OsStringValueParser::new().map(OsString::into_encoded_bytes))]
    names: Vec<Vec<u8>>,

    /// The table; - is standard input
    #[arg(long, value_name = "FILE", required_unless_present = "image")]
    table: Option<OsString>,

    /// Compiled table (see build), instead of --table
    #[arg(long, value_name = "IMG", conflicts_with_all = ["engine", "aggregate"])]
    image: Option<PathBuf>,

    /// Form of the names to look up. By default each name is recognised singly: /com/parc, ndn:/com/parc,
    /// www.parc.com or www.parc.com/a
    #[arg(long = "as", value_name = "FORMAT", value_parser = format_parser())]
    form: Option<NameFormat>,

    /// The engine that looks up
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = engine::choice_of::<NameDomain>())]
    engine: Choice,

    /// Device that looks up: the engine on this machine's cores, or its kernel on GPUs
    #[arg(long, default_value = "cpu")]
    device: On,

    /// Show each element that a lookup reads
    #[arg(long)]
    explain: bool,

    /// One JSON object for each name: {"name","prefix","result"}, prefix and result null if nothing matches
    #[arg(long)]
    json: bool,

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

Every answer of the engine is checked against the table, if it is known. The prefix in the output is the longest of the table, also for an \
aggregated table, too.
Domains can be in any script, in queries and in tables: www.münchen.de and www.xn--mnchen-3ya.de are one name (UTS 46), and so are \
upper and lower case. An entry *.example.com, or .example.com, matches example.com itself and all names beneath it.
The first line of standard input that is not a name ends the lookups. With --lenient such lines are reported by number, passed over and counted.
Exit status 1 says that a name matches nothing, or that an answer is wrong; 2 says that a line was not a name, even if other lines were answered.";

pub(super) fn run(options: Options) -> Result<Outcome> {
    let from_stdin = options.names.is_empty();
    if from_stdin && options.table.as_ref().is_some_and(|table| table == "-") {
        bail!("the table and the names can't both come from standard input");
    }
    let fleet = options.device.open_for_lookup(&NameDomain::gpu_options(), options.explain)?;
    let fib = options.table.as_ref().map(|table| options.read.load(table)).transpose()?;
    let (table, rib, labels) = match (options.image, fib) {
        (Some(path), fib) => {
            let image = NameImageFile::open(&path)?;
            let (rib, labels) = match fib {
                Some(NameFib { names, labels }) => (Some(names), labels),
                // An aggregated table gives the match lengths of the names that are left.
                None if image.is_aggregated() => (image.names()?, image.labels()?),
                None => (None, image.labels()?),
            };
            let (engine, is_aggregated) = (image.engine(), image.is_aggregated());
            (Compiled::new(engine, image.into_table()?, is_aggregated, fleet.as_ref())?, rib, labels)
        }
        (None, Some(NameFib { names, labels })) => {
            let build = options.build.options(1, 0);
            let engine = options.engine.resolve::<NameDomain>(&names, false)?;
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
        form: options.form,
        output: Output::new(),
        explain: options.explain,
        json: options.json,
        outcome: Outcome::Done,
    };
    if from_stdin {
        let lenient = options.read.is_lenient();
        lines::each_good(&mut session, LONGEST, lenient, Session::answer_line, |session| {
            Ok(session.output.flush()?)
        })?;
    } else {
        for word in &options.names {
            let name = session.parse(word)?;
            session.answer(word, &name)?;
        }
    }
    session.output.finish()?;
    Ok(session.outcome)
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
}

/// A session that answers names on stdout.
struct Session {
    table: Compiled,
    /// The names, if they are known.
    rib: Option<NameRib>,
    /// All names and the compiled names, if some are left out.
    aggregated: Option<Aggregated>,
    labels: Labels,
    form: Option<NameFormat>,
    output: Output,
    explain: bool,
    json: bool,
    outcome: Outcome,
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
        let steps = self.explain.then(|| self.table.table.explain(name));
        if !found.is_some() || wrong.is_some() {
            self.outcome = Outcome::Differs;
        }
        // A wrong length may be larger than the name's.
        let prefix = if wrong.is_some() { None } else { right.unwrap_or(found).prefix(name) };
        let result = found.is_some().then(|| {
            let label = self.labels.label(found.result);
            label.map_or_else(|| found.result.to_string(), |label| label.to_string())
        });
        let word = String::from_utf8_lossy(word);
        if self.json {
            let name = name.to_string();
            let asked = (*word != name).then_some(&*word);
            let steps = steps.map(|steps| steps.into_iter().map(StepLine::from).collect());
            let prefix = prefix.map(ToString::to_string);
            self.output.json(&Line { asked, name, prefix, result: result.as_deref(), steps })?;
        } else {
            self.print(&word, prefix, result.as_deref(), steps.as_deref())?;
        }
        if let Some(wrong) = wrong {
            self.output.flush()?;
            eprintln!("lookupctl: {wrong}");
        }
        Ok(())
    }

    /// Parses the name of a word.
    fn parse(&self, word: &[u8]) -> Result<NameBuf> {
        let shown = || format!("\"{}\"", String::from_utf8_lossy(&word[..word.len().min(60)]).escape_debug());
        if self.form.is_none() {
            // An address alone is looked up as the host of a URL, because no domain is an address.
            match std::str::from_utf8(word).ok().and_then(|word| word.parse().ok()) {
                Some(IpAddr::V4(_)) => return Ok(NameFormat::Urls.parse(word)?),
                Some(IpAddr::V6(_)) => return Ok(NameFormat::Urls.parse(&[b"[", word, b"]"].concat())?),
                None => {}
            }
        }
        let form = self.form.or_else(|| NameFormat::recognise([word]));
        let form = form.ok_or_else(|| anyhow!("not a name, a domain or a URL: {}", shown()))?;
        form.parse(word).with_context(|| format!("not a name ({form}): {}", shown()))
    }

    fn print(
        &mut self,
        name: &str,
        prefix: Option<&Name>,
        result: Option<&str>,
        steps: Option<&[Step]>,
    ) -> Result<()> {
        match (prefix, result) {
            (Some(prefix), Some(result)) => self.output.line(format_args!("{name}  {prefix}  {result}"))?,
            (None, Some(result)) => self.output.line(format_args!("{name}  {result}"))?,
            (_, None) => self.output.line(format_args!("{name}  no match"))?,
        }
        print_steps(&mut self.output, steps.unwrap_or_default())
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
