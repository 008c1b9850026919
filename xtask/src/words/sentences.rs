//! Sentences of docs and of Markdown, and texts of errors.

use super::lines::Block;
use super::wrap::{Kind, Part, parts};

/// The most words of a sentence.
const WORDS: usize = 40;

/// Sentences of a block that are too long: the line from 0 that their paragraph begins at, and their words.
pub(super) fn long(block: &Block<'_>) -> Vec<(usize, usize)> {
    let is_text = |part: &Part| {
        // A comment of Markdown is for the programs that make its tables.
        matches!(part.kind, Kind::Text(_)) && !block.content(part.from).starts_with("<!--")
    };
    let found = parts(block).into_iter().filter(is_text).flat_map(|part| {
        let mut sentences = vec![0];
        for word in (part.from..part.to).flat_map(|at| block.content(at).split_whitespace()) {
            if let Some(words) = sentences.last_mut() {
                *words += 1;
            }
            if word.trim_end_matches([')', '"', '*', '`']).ends_with(['.', ':', ';', '?', '!']) {
                sentences.push(0);
            }
        }
        sentences.into_iter().filter(|&words| words > WORDS).map(move |words| (part.from, words))
    });
    found.collect()
}

/// Errors whose text begins with a capital or ends with a full stop: the line from 1, and what is wrong. A
/// text goes on behind the name of a file and a colon, and other texts go on behind it.
pub(super) fn of_errors(text: &str) -> Vec<(usize, String)> {
    let starts = text.match_indices("#[error(\"").map(|(at, mark)| at + mark.len());
    let found = starts.filter_map(|from| {
        let end = from + text[from..].replace("\\\"", "__").find('"')?;
        let said = &text[from..end];
        let first = said.split([' ', ':', '\'']).next().unwrap_or_default();
        let is_capital = first.len() > 1
            && first.starts_with(|letter: char| letter.is_ascii_uppercase())
            && first[1..].bytes().all(|byte| byte.is_ascii_lowercase());
        let fault = if is_capital {
            format!("an error that begins with {first:?}")
        } else if said.ends_with('.') {
            "an error that ends with a full stop".into()
        } else {
            return None;
        };
        Some((text[..from].matches('\n').count() + 1, fault))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::super::lines::blocks;
    use super::*;

    #[test]
    fn sentences_are_counted_by_paragraph() {
        let count = |text: &str| -> usize { blocks(text).iter().map(|block| long(block).len()).sum() };
        let words = |count: usize| "word ".repeat(count).trim_end().to_owned();
        assert_eq!(count(&format!("/// {}\n/// {}\n", words(30), words(11))), 1);
        for good in [
            format!("/// {}.\n/// {}\n", words(40), words(40)),
            format!("/// {} (of `f`.)\n/// {}\n", words(20), words(30)),
            format!("/// {}\n///\n/// {}\n", words(40), words(40)),
            format!("/// - {}\n/// - {}\n", words(39), words(39)),
            format!("/// | {} |\n", words(60)),
            format!("/// ```text\n/// {}\n/// ```\n", words(60)),
        ] {
            assert_eq!(count(&good), 0, "{good}");
        }
    }

    #[test]
    fn errors_go_on_behind_a_colon() {
        let at = |text: &str| of_errors(text).into_iter().map(|(line, _)| line).collect::<Vec<_>>();
        assert_eq!(
            at("enum E {\n    #[error(\"The file\")]\n    A,\n    #[error(\"a \\\"b\\\".\")]\n"),
            [2, 4]
        );
        for good in
            ["{0:?} is none", "IP version {found}", "EtherType {0}", "a name ends with \\\".\\\"", "A"]
        {
            assert!(of_errors(&format!("#[error(\"{good}\")]")).is_empty(), "{good}");
        }
    }
}
