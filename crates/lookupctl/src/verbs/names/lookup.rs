//! `names lookup`: the longest matching prefix and the result of names.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use serde::Serialize;
use wirespeed::names::engine::{Visitor, visit};
use wirespeed::names::image_file::NameImageFile;
use wirespeed::names::read::{Labels, NameFib, NameFormat};
use wirespeed::names::{Name, NameBuf, NameRib};
use wirespeed_fib::Step;
use wirespeed_namelookup::{BuildOptions, NameEngine, NameLpm};

use super::engine::{self, Choice};
use super::source::{ReadArguments, format_parser};
use crate::Outcome;
use crate::output::Output;
use crate::source::MemoryArgument;
use crate::verbs::lookup::StepLine;

/// Looks names up: the longest prefix that matches each, and its result.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    /// Names, domains or URLs, each by its own look; from standard input, one a line, where none are given
    #[arg(value_name = "NAME", value_parser = OsStringValueParser::new().map(OsString::into_encoded_bytes))]
    names: Vec<Vec<u8>>,

    /// The table; - is standard input
    #[arg(long, value_name = "FILE", required_unless_present = "image")]
    table: Option<OsString>,

    /// A compiled table (see build), in place of compiling one
    #[arg(long, value_name = "IMG", conflicts_with = "engine")]
    image: Option<PathBuf>,

    /// How the names to look up are written; by default each is recognised by itself: /com/parc, ndn:/com/parc, www.parc.com or
    /// www.parc.com/a
    #[arg(long = "as", value_name = "FORMAT", value_parser = format_parser())]
    form: Option<NameFormat>,

    /// The engine that looks up
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = engine::choice())]
    engine: Choice,

    /// Show each element that a lookup reads
    #[arg(long)]
    explain: bool,

    /// One JSON object for each name: {"name","prefix","result"}, prefix and result null where nothing matches
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    memory: MemoryArgument,
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

Every answer of the engine is checked against the table, where that is at hand.
Exit status 1 says that some name matches nothing, or that an answer is wrong.";

pub(super) fn run(options: Options) -> Result<Outcome> {
    let from_stdin = options.names.is_empty();
    if from_stdin && options.table.as_ref().is_some_and(|table| table == "-") {
        bail!("the table and the names can't both come from standard input");
    }
    let fib = options.table.as_ref().map(|table| options.read.load(table)).transpose()?;
    let build = BuildOptions { memory_cap: options.memory.cap(1), ..BuildOptions::default() };
    let (table, rib, labels) = match (options.image, fib) {
        (Some(path), fib) => {
            let image = NameImageFile::open(&path)?;
            let (rib, labels) = match fib {
                Some(NameFib { names, labels }) => (Some(names), labels),
                None => (None, image.labels()?),
            };
            (visit(image.engine(), Adopt(image))?, rib, labels)
        }
        (None, Some(NameFib { names, labels })) => {
            let table = visit(options.engine.resolve(&names), Compile { names: &names, build: &build })?;
            (table, Some(names), labels)
        }
        (None, None) => bail!("neither a table nor an image"),
    };
    let mut session = Session {
        table,
        rib,
        labels,
        form: options.form,
        output: Output::new(),
        explain: options.explain,
        json: options.json,
        outcome: Outcome::Done,
    };
    if from_stdin {
        session.answer_lines()?;
    } else {
        options.names.iter().try_for_each(|name| session.answer(name))?;
    }
    session.output.finish()?;
    Ok(session.outcome)
}

/// A compiled table and its engine.
struct Compiled {
    table: Box<dyn NameLpm>,
    engine: &'static str,
}

struct Adopt(NameImageFile);

impl Visitor for Adopt {
    type Output = Result<Compiled>;

    fn visit<E: NameEngine>(self) -> Result<Compiled> {
        Ok(Compiled { table: Box::new(self.0.into_table::<E::Table>()?), engine: E::NAME })
    }
}

struct Compile<'a> {
    names: &'a NameRib,
    build: &'a BuildOptions,
}

impl Visitor for Compile<'_> {
    type Output = Result<Compiled>;

    fn visit<E: NameEngine>(self) -> Result<Compiled> {
        let built = E::build(self.names, self.build);
        let (_, table) = built.with_context(|| format!("{} can't be built", E::NAME))?;
        Ok(Compiled { table: Box::new(table), engine: E::NAME })
    }
}

/// One line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    name: String,
    /// As it was asked for, where that is another form of the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<&'a str>,
    prefix: Option<String>,
    result: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<StepLine>>,
}

/// Answers on their way to stdout.
struct Session {
    table: Compiled,
    /// The names, where they are at hand.
    rib: Option<NameRib>,
    labels: Labels,
    form: Option<NameFormat>,
    output: Output,
    explain: bool,
    json: bool,
    outcome: Outcome,
}

impl Session {
    /// Answers the names on standard input, each as soon as nothing more is there to read.
    fn answer_lines(&mut self) -> Result<()> {
        let mut input = BufReader::with_capacity(1 << 16, std::io::stdin().lock());
        let (mut line, mut number) = (Vec::new(), 0u64);
        loop {
            line.clear();
            number += 1;
            if input.by_ref().take(LONGEST).read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            let word = line.trim_ascii().split(u8::is_ascii_whitespace).next().unwrap_or_default();
            if !word.is_empty() && word[0] != b'#' {
                self.answer(word).with_context(|| format!("standard input:{number}"))?;
            }
            if !input.buffer().contains(&b'\n') {
                self.output.flush()?;
            }
        }
    }

    fn answer(&mut self, word: &[u8]) -> Result<()> {
        let name = self.parse(word)?;
        let found = self.table.table.lookup(&name);
        let wrong = self.rib.as_ref().and_then(|rib| {
            let (right, engine) = (rib.lookup(&name), self.table.engine);
            (right != found)
                .then(|| format!("{engine}: {name} leads to {found:?}, by the table to {right:?}"))
        });
        let steps = self.explain.then(|| self.table.table.explain(&name));
        if !found.is_some() || wrong.is_some() {
            self.outcome = Outcome::Differs;
        }
        // A wrong length may be over the name's.
        let prefix = if wrong.is_some() { None } else { found.prefix(&name) };
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

    /// The name of a word.
    fn parse(&self, word: &[u8]) -> Result<NameBuf> {
        let shown = || format!("\"{}\"", String::from_utf8_lossy(&word[..word.len().min(60)]).escape_debug());
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
        for Step { section, index, value, meaning } in steps.unwrap_or_default() {
            self.output.line(format_args!("  {section}[{index}] = {value:#x}: {meaning}"))?;
        }
        Ok(())
    }
}

/// No line with a name is longer: the longest name, and an end of line.
const LONGEST: u64 = Name::MAX_LEN as u64 + 2;
