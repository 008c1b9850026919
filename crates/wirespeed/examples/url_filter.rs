//! A filter of domains and URLs: lists in, and for each URL on standard input whether it is let through.
//!
//! `cargo run --release -p wirespeed --example url_filter -- --block ads.txt --block malware.txt --allow own.txt < urls.txt`
//!
//! A line of a list is a domain, which covers all beneath it (`example.com`, `*.example.com`), or a URL,
//! which covers all beneath its path (`example.com/ads`). The longest prefix decides; of equal ones the list
//! that comes last. Without lists there is a small one.

use std::io::{BufRead, Write};

use wirespeed::names::NameBuilder;
use wirespeed::names::read::{Former, NameFormat};
use wirespeed::prelude::*;

/// URLs that are looked up at a time.
const BATCH: usize = 1024;

/// What becomes of a URL, and by which list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Verdict {
    Block(String),
    Allow(String),
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let verdicts = Labels::new();
    let mut builder = NameTable::builder();
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.peek().is_none() {
        builder = examples(builder, &verdicts)?;
    }
    while let Some(option) = arguments.next() {
        let list = arguments.next().ok_or("a list is to follow")?;
        builder = match option.as_str() {
            "--block" => builder.list(&list, &verdicts, Verdict::Block(list.clone())),
            "--allow" => builder.list(&list, &verdicts, Verdict::Allow(list.clone())),
            _ => return Err(format!("--block LIST or --allow LIST, not {option}").into()),
        };
    }
    let table = builder.build()?;
    eprintln!("{} entries, {} KiB", table.len(), table.memory_usage() >> 10);
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    filter(&table.reader(), &verdicts, std::io::stdin().lock(), &mut output)?;
    Ok(output.flush()?)
}

/// The table of no lists.
fn examples(
    builder: NameBuilder,
    verdicts: &Labels<Verdict>,
) -> Result<NameBuilder, Box<dyn std::error::Error>> {
    let block = || Verdict::Block("examples".to_owned());
    let domain = NameFormat::Domains.parse(b"*.tracker.example")?;
    let path = NameFormat::Urls.parse(b"news.example/ads")?;
    let but = NameFormat::Urls.parse(b"news.example/ads/about.html")?;
    let allow = Verdict::Allow("examples".to_owned());
    Ok(builder.labelled_names(verdicts, [(domain, block()), (path, block()), (but, allow)]))
}

/// Says for each line what becomes of it.
fn filter(
    reader: &NameReader,
    verdicts: &Labels<Verdict>,
    input: impl BufRead,
    output: &mut impl Write,
) -> Result<(), Box<dyn std::error::Error>> {
    let (mut former, mut names) = (Former::default(), NameBatch::new());
    let (mut urls, mut found) = (Vec::with_capacity(BATCH), vec![NextHop::NONE; BATCH]);
    let mut answer = |urls: &mut Vec<String>| -> Result<(), Box<dyn std::error::Error>> {
        names.clear();
        let mut is_name = Vec::with_capacity(urls.len());
        for url in urls.iter() {
            let name = former.form(url.as_bytes(), NameFormat::Urls);
            is_name.push(name.is_ok());
            names.push(name.unwrap_or(Name::ROOT))?;
        }
        let found = &mut found[..names.len()];
        let known = verdicts.enter();
        reader.lookup_batch(&names, found);
        for ((url, is_name), &found) in urls.drain(..).zip(is_name).zip(&*found) {
            match known.get(found) {
                _ if !is_name => writeln!(output, "invalid {url}")?,
                Some(Verdict::Block(list)) => writeln!(output, "block   {url}  ({list})")?,
                Some(Verdict::Allow(_)) | None => writeln!(output, "pass    {url}")?,
            }
        }
        Ok(())
    };
    for line in input.lines() {
        urls.push(line?);
        if urls.len() == BATCH {
            answer(&mut urls)?;
        }
    }
    answer(&mut urls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_are_longer_prefixes() {
        let verdicts = Labels::new();
        let table = examples(NameTable::builder(), &verdicts).unwrap().build().unwrap();
        let mut output = Vec::new();
        let urls = "http://a.tracker.example/x\ntracker.example\nnews.example/ads/1\nnews.example/ads/about.html\n\
                    news.example/adsl\n\nhttp://\n";
        filter(&table.reader(), &verdicts, urls.as_bytes(), &mut output).unwrap();
        let words: Vec<_> =
            String::from_utf8(output).unwrap().lines().map(|line| line[..7].trim().to_owned()).collect();
        assert_eq!(words, ["block", "block", "block", "pass", "pass", "invalid", "invalid"]);
    }

    #[test]
    fn lists_from_files() -> Result<(), wirespeed::Error> {
        let dir = tempfile::tempdir().unwrap();
        let (block, allow) = (dir.path().join("block"), dir.path().join("allow"));
        std::fs::write(&block, "# ads\n*.ads.example\nshop.example\n").unwrap();
        std::fs::write(&allow, "shop.example\n").unwrap();
        let verdicts = Labels::new();
        let (ads, own) = (Verdict::Block("ads".to_owned()), Verdict::Allow("own".to_owned()));
        let table =
            NameTable::builder().list(&block, &verdicts, ads).list(&allow, &verdicts, own.clone()).build()?;
        let found = table.reader().lookup(NameBuf::from_domain(b"www.shop.example").unwrap());
        assert_eq!((table.len(), verdicts.get(found).as_deref()), (2, Some(&own)), "the later list");
        std::fs::write(&allow, "shop..example\n").unwrap();
        let error = NameTable::builder().list(&allow, &verdicts, own).build().unwrap_err().to_string();
        assert!(error.contains("allow:1: "), "{error}");
        Ok(())
    }
}
