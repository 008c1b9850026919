//! Wrapping comments: paragraphs with a line that is too long are filled anew. No word changes, and nothing
//! changes the second time.

use super::WIDTH;
use super::lines::{Block, blocks};

/// A text whose comments are as narrow as they are to be.
pub(super) fn wrapped(text: &str) -> String {
    let old: Vec<&str> = text.lines().collect();
    let (mut new, mut next) = (Vec::new(), 0);
    let kept = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
    for block in blocks(text) {
        new.extend(kept(&old[next..block.first]));
        next = block.first + block.lines.len();
        for part in parts(&block) {
            new.extend(filled(&block, &part).unwrap_or_else(|| kept(&block.lines[part.from..part.to])));
        }
    }
    new.extend(kept(&old[next..]));
    let end = if text.ends_with('\n') { "\n" } else { "" };
    new.join("\n") + end
}

/// Lines of a block that are wider than they have to be.
pub(super) fn too_long(block: &Block<'_>) -> Vec<usize> {
    let mut found = Vec::new();
    for part in parts(block).into_iter().filter(|part| part.kind != Kind::Verbatim) {
        let is_as_filled = filled(block, &part).is_some_and(|new| new == block.lines[part.from..part.to]);
        found.extend((part.from..part.to).filter(|&at| !is_as_filled && is_wide(block.lines[at])));
    }
    found
}

/// Lines of a block that belong together.
pub(super) struct Part {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// Code, a drawing, a row of a table, an empty line: left as it is.
    Verbatim,
    Heading,
    /// A paragraph or an item of a list. Its lines after the first begin with so many blanks.
    Text(usize),
}

pub(super) fn parts(block: &Block<'_>) -> Vec<Part> {
    let (mut parts, mut fence): (Vec<Part>, Option<&str>) = (Vec::new(), None);
    for at in 0..block.lines.len() {
        let content = block.content(at);
        let kind = match fence {
            Some(mark) => {
                fence = fence.filter(|_| !content.trim_start().starts_with(mark));
                Kind::Verbatim
            }
            None => {
                fence = ["```", "~~~"].into_iter().find(|mark| content.trim_start().starts_with(mark));
                if fence.is_some() { Kind::Verbatim } else { kind_of(content) }
            }
        };
        let goes_on = at > 0 && !begins(content) && !block.content(at - 1).ends_with('\\');
        match parts.last_mut() {
            Some(part) if goes_on && matches!(kind, Kind::Text(_)) && part.kind == kind => part.to = at + 1,
            _ => parts.push(Part { from: at, to: at + 1, kind }),
        }
    }
    // What is aligned is a drawing.
    for part in &mut parts {
        let is_aligned = |at: usize| block.content(at).trim_start().contains("  ");
        if matches!(part.kind, Kind::Text(_)) && (part.from..part.to).any(is_aligned) {
            part.kind = Kind::Verbatim;
        }
    }
    parts
}

/// What a line outside of fences is.
fn kind_of(content: &str) -> Kind {
    let text = content.trim_start();
    let indent = content.len() - text.len();
    let is_definition =
        text.starts_with('[') && text.split_once("]: ").is_some_and(|(_, rest)| !rest.trim().contains(' '));
    let first = text.split(' ').next().unwrap_or_default();
    if is_item(first) && text.contains(' ') {
        Kind::Text(indent + first.len() + 1)
    } else if text.is_empty() || text.starts_with(['|', '>']) || is_definition || indent >= 4 {
        Kind::Verbatim
    } else if !first.is_empty() && first.chars().all(|character| character == '#') {
        Kind::Heading
    } else {
        Kind::Text(indent)
    }
}

/// Whether a word, before a blank, makes an item of a list.
fn is_item(word: &str) -> bool {
    let number = word.strip_suffix(['.', ')']).unwrap_or_default();
    ["-", "*", "+"].contains(&word)
        || !number.is_empty() && number.len() < 4 && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a line begins something, whatever is before it: an item, or words such as `SAFETY:` that tools
/// look for.
fn begins(content: &str) -> bool {
    let first = content.trim_start().split(' ').next().unwrap_or_default();
    let label = first.strip_suffix(':').unwrap_or_default();
    is_item(first) || label.len() > 1 && label.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// Whether a word would be something else at the beginning of a line.
fn stays_behind(word: &str) -> bool {
    begins(word) || word.starts_with(['|', '>', '#']) || word.starts_with("```") || word.starts_with("~~~")
}

fn is_wide(line: &str) -> bool {
    line.chars().count() > WIDTH
}

/// The lines of a part with a line that is too long, filled anew; `None` of others, and of code spans without
/// an end.
fn filled(block: &Block<'_>, part: &Part) -> Option<Vec<String>> {
    let Kind::Text(hang) = part.kind else { return None };
    if !block.lines[part.from..part.to].iter().any(|line| is_wide(line)) {
        return None;
    }
    let text: Vec<&str> = (part.from..part.to).map(|at| block.content(at).trim_start()).collect();
    let item = &block.content(part.from)[..hang];
    let text = text.join(" ");
    let pieces = pieces(text.strip_prefix(item.trim_start()).unwrap_or(&text))?;
    let start = format!("{}{} ", block.indent, block.mark);
    let (mut lines, mut line) = (Vec::new(), format!("{start}{item}"));
    let mut is_empty = true;
    for piece in pieces {
        if !is_empty && line.chars().count() + 1 + piece.chars().count() > WIDTH {
            lines.push(std::mem::replace(&mut line, format!("{start}{}", " ".repeat(hang))));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(&piece);
        is_empty = false;
    }
    lines.push(line);
    Some(lines)
}

/// The pieces of a text that stay whole: words, and code spans. `None` where a span has no end.
fn pieces(text: &str) -> Option<Vec<String>> {
    let (mut pieces, mut span): (Vec<String>, Option<usize>) = (Vec::new(), None);
    for word in text.split_whitespace() {
        let is_whole = span.is_none() && !stays_behind(word);
        let mut rest = word;
        while let Some(at) = rest.find('`') {
            let ticks = rest[at..].len() - rest[at..].trim_start_matches('`').len();
            match span {
                None => span = Some(ticks),
                Some(open) if open == ticks => span = None,
                Some(_) => {}
            }
            rest = &rest[at + ticks..];
        }
        match pieces.last_mut() {
            Some(piece) if !is_whole => {
                piece.push(' ');
                piece.push_str(word);
            }
            _ => pieces.push(word.to_owned()),
        }
    }
    span.is_none().then_some(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of comments, without the marks.
    fn words(text: &str) -> Vec<&str> {
        text.split_whitespace().filter(|word| !["//", "///", "//!"].contains(word)).collect()
    }

    /// Wraps a text, and holds the result to what is to be true of all.
    fn checked(text: &str) -> String {
        let new = wrapped(text);
        assert_eq!(words(&new), words(text));
        assert_eq!(wrapped(&new), new, "a second time");
        assert!(blocks(&new).iter().all(|block| too_long(block).is_empty()), "{new}");
        new
    }

    #[test]
    fn paragraphs_are_filled_and_no_word_changes() {
        let long =
            "many words and `a span that stays whole` and [a link](of::it) - with a dash, 24. ".repeat(9);
        for (mark, indent) in [("//", ""), ("///", "    "), ("//!", "")] {
            let text =
                format!("{indent}{mark} {}\n{indent}{mark} and more\n{indent}{mark}\n", long.trim_end());
            let new = checked(&text);
            assert!(new.lines().count() > 7 && new.lines().all(|line| !is_wide(line)), "{new}");
            assert!(new.lines().all(|line| line.matches('`').count() % 2 == 0), "{new}");
            assert!(new.lines().all(|line| !line.contains(&format!("{mark} -"))), "{new}");
        }
    }

    #[test]
    fn items_keep_their_indent() {
        let text = format!(
            "/// - one {}\n///   more\n/// - two\n///\n/// 1. three {}\n",
            "a ".repeat(60),
            "b ".repeat(60)
        );
        let text = text.replace(" \n", "\n");
        let new = checked(&text);
        let starts: Vec<&str> = new.lines().map(|line| &line[..line.len().min(8)]).collect();
        assert_eq!(starts, ["/// - on", "///   a ", "/// - tw", "///", "/// 1. t", "///    b"]);
    }

    #[test]
    fn what_is_not_a_paragraph_stays() {
        let long = "word ".repeat(30);
        let long = long.trim_end();
        for text in [
            format!("/// ```text\n/// {long}\n/// ```\n"),
            format!("/// | {long} |\n"),
            format!("/// [`a`]: https://{}\n", "a".repeat(120)),
            format!("/// https://{}\n", "a".repeat(120)),
            format!("// a   b {long}\n"),
            format!("const A: &str = \"\n// {long}\";\n"),
            "// Short.\n// And short.\n".to_owned(),
        ] {
            assert_eq!(checked(&text), text);
        }
        let safety = format!("// {long}\n// SAFETY: {long}\n");
        assert!(checked(&safety).contains("\n// SAFETY: word"));
        assert!(wrapped(&format!("// # {long}\n")).contains(long) && !faults_of_heading(long).is_empty());
    }

    fn faults_of_heading(long: &str) -> Vec<usize> {
        let text = format!("/// # {long}\n");
        blocks(&text).iter().flat_map(too_long).collect()
    }
}
