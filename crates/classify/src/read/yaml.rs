//! Documents of YAML as values, each with the lines of its lists' elements.
//!
//! ```text
//! items:                       /items/0 is on line 2
//! - spec:
//!     ingress:
//!     - ports: [{port: 80}]    /items/0/spec/ingress/0 is on line 4
//! ```
//!
//! The crate `saphyr-parser` reads the text. A value is that of JSON: a plain `80` is a number, `true` a
//! truth value, `~`, `null` and nothing are null, and all else is text. A number in another form than the
//! decimal one is a [fault](Document::faults) of what it stands in, because versions of YAML differ: `010` is
//! 8 or 10. So is a scalar with a tag of one's own. Refused are keys that are there
//! twice, keys that are no text, merge keys (`<<`), and other tags of one's own.
//!
//! An object of JSON, which begins with `{`, is not read here: a tab in it is no blank of YAML.
//!
//! An alias is a copy of what its anchor names, so that a short text may be long. What is made of a file is
//! bounded by [`LARGEST`], and what is within what by [`DEEPEST`].

use std::collections::HashMap;
use std::io::Read;
use std::mem;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Value};
use wirespeed_input::Input;

use super::report::ReadError;

/// The longest text.
const LONGEST: u64 = if cfg!(fuzzing) { 64 << 10 } else { 64 << 20 };
/// The most that is made of a text: its bytes, and [`NODE`] for each value.
const LARGEST: usize = if cfg!(fuzzing) { 1 << 20 } else { 256 << 20 };
const NODE: usize = 64;
/// The most lists and objects within each other.
const DEEPEST: usize = 64;

/// The lines of a document's list elements, by their places: `/items/0/spec`.
pub(super) type Lines = HashMap<String, u64>;

/// The first scalar of a document that is not understood and stands as text in its value, with its line.
/// Those in an element of the outermost list are by the element's place, and all others by an empty one.
pub(super) type Faults = HashMap<String, (u64, String)>;

/// A document.
pub(super) struct Document {
    pub(super) value: Value,
    /// The line where it begins.
    pub(super) line: u64,
    pub(super) lines: Lines,
    pub(super) faults: Faults,
}

/// Gives every document that is not empty to `take`.
pub(super) fn each_document(
    input: &mut Input<'_>,
    mut take: impl FnMut(Document) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let name = input.name().to_owned();
    let bad = |line: u64, why: String| ReadError::Bad {
        name: name.clone(),
        place: line.into(),
        why,
        text: String::new(),
    };
    let mut bytes = Vec::new();
    if let Err(cause) = input.take(LONGEST + 1).read_to_end(&mut bytes) {
        return Err(ReadError::Io { name, cause });
    }
    let line_of = |at: usize| 1 + bytes[..at].iter().filter(|&&byte| byte == b'\n').count() as u64;
    if bytes.len() as u64 > LONGEST {
        return Err(bad(line_of(bytes.len()), format!("a file of over {LONGEST} bytes")));
    }
    let text = std::str::from_utf8(&bytes)
        .map_err(|error| bad(line_of(error.valid_up_to()), "not text in UTF-8".to_owned()))?;
    let mut parser = Parser::new_from_str(text.trim_start_matches('\u{feff}'));
    let mut made = Made::default();
    while let Some(event) = parser.next_event() {
        let (event, span) =
            event.map_err(|error| bad(error.marker().line() as u64, error.info().to_owned()))?;
        let line = span.start.line() as u64;
        let document = made.event(event, line).map_err(|why| bad(line, why))?;
        if let Some(document) = document.filter(|document| !document.value.is_null()) {
            take(document)?;
        }
    }
    Ok(())
}

/// A value, what it counts for, and how deep it is.
#[derive(Clone)]
struct Node {
    value: Value,
    size: usize,
    depth: usize,
}

/// A list or an object that has not ended.
struct Open {
    of: Of,
    anchor: usize,
    size: usize,
    depth: usize,
}

enum Of {
    List(Vec<Value>),
    Object(Map<String, Value>, Option<String>),
}

/// A value that the events of a text make.
#[derive(Default)]
struct Made {
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    /// What all values count for, anchored ones twice.
    size: usize,
    root: Option<Value>,
    line: u64,
    lines: Lines,
    faults: Faults,
}

impl Made {
    /// Takes an event. Returns the document that it ends.
    fn event(&mut self, event: Event<'_>, line: u64) -> Result<Option<Document>, String> {
        match event {
            Event::DocumentStart(_) => self.anchors.clear(),
            Event::DocumentEnd => {
                let (lines, faults) = (mem::take(&mut self.lines), mem::take(&mut self.faults));
                return Ok(self.root.take().map(|value| Document { value, line: self.line, lines, faults }));
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.note(line);
                let value = scalar(&text, style, tag.as_deref()).unwrap_or_else(|why| {
                    self.fault(line, why);
                    Value::String(text.clone().into_owned())
                });
                let size = NODE + text.len();
                if let Some(Open { of: Of::Object(object, key @ None), size: whole, .. }) =
                    self.open.last_mut()
                {
                    if &*text == "<<" && style == ScalarStyle::Plain {
                        return Err("a merge key (<<), which is not read".to_owned());
                    }
                    if object.contains_key(&*text) {
                        return Err(format!("a key twice in an object ({text})"));
                    }
                    *key = Some(text.into_owned());
                    *whole += size;
                    self.count(anchor, &Node { value, size, depth: 0 })?;
                } else {
                    self.put(anchor, Node { value, size, depth: 0 })?;
                }
            }
            Event::SequenceStart(anchor, tag) => {
                self.begin(Of::List(Vec::new()), anchor, line, tag.as_deref())?;
            }
            Event::MappingStart(anchor, tag) => {
                self.begin(Of::Object(Map::new(), None), anchor, line, tag.as_deref())?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(Open { of, anchor, size, depth }) = self.open.pop() {
                    let value = match of {
                        Of::List(list) => Value::Array(list),
                        Of::Object(object, _) => Value::Object(object),
                    };
                    // Its parts have been counted.
                    self.size -= size - NODE;
                    self.put(anchor, Node { value, size, depth: depth + 1 })?;
                }
            }
            Event::Alias(anchor) => {
                self.note(line);
                let node = self.anchors.get(&anchor).ok_or("an alias of what holds it")?;
                if self.size.saturating_add(node.size) > LARGEST {
                    return Err(too_large());
                }
                let node = node.clone();
                if matches!(self.open.last(), Some(Open { of: Of::Object(_, None), .. })) {
                    return Err("an alias as a key".to_owned());
                }
                self.put(0, node)?;
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd => {}
        }
        Ok(None)
    }

    /// Notes the line of a document, or of an element of a list.
    fn note(&mut self, line: u64) {
        if self.open.is_empty() {
            self.line = line;
        }
        let Some(Open { of: Of::List(_), .. }) = self.open.last() else { return };
        let mut place = String::new();
        for open in &self.open {
            place.push('/');
            match &open.of {
                Of::List(list) => place.push_str(&list.len().to_string()),
                Of::Object(_, key) => place.push_str(key.as_deref().unwrap_or_default()),
            }
        }
        self.size += place.len();
        self.lines.insert(place, line);
    }

    /// Notes a scalar that is not understood.
    fn fault(&mut self, line: u64, why: String) {
        let place = match &self.open[..] {
            [Open { of: Of::Object(_, Some(key)), .. }, Open { of: Of::List(list), .. }, ..] => {
                format!("/{key}/{}", list.len())
            }
            _ => String::new(),
        };
        self.size += place.len() + why.len();
        self.faults.entry(place).or_insert((line, why));
    }

    fn begin(&mut self, of: Of, anchor: usize, line: u64, tag: Option<&Tag>) -> Result<(), String> {
        if matches!(self.open.last(), Some(Open { of: Of::Object(_, None), .. })) {
            return Err("a key that is no text".to_owned());
        }
        if let Some(tag) = tag.filter(|tag| !is_known(tag, &["seq", "map"])) {
            return Err(format!("a tag that is not known ({tag})"));
        }
        if self.open.len() >= DEEPEST {
            return Err(format!("over {DEEPEST} lists and objects within each other"));
        }
        self.note(line);
        self.open.push(Open { of, anchor, size: NODE, depth: 0 });
        Ok(())
    }

    /// Counts a value, and keeps a copy for aliases if it has an anchor.
    fn count(&mut self, anchor: usize, node: &Node) -> Result<(), String> {
        let copies = if anchor == 0 { 1 } else { 2 };
        self.size = self.size.saturating_add(node.size.saturating_mul(copies));
        if self.size > LARGEST {
            return Err(too_large());
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(())
    }

    /// Puts a value into what is open, or makes it the document.
    fn put(&mut self, anchor: usize, node: Node) -> Result<(), String> {
        if self.open.len() + node.depth > DEEPEST {
            return Err(format!("over {DEEPEST} lists and objects within each other"));
        }
        self.count(anchor, &node)?;
        let Node { value, size, depth } = node;
        let Some(open) = self.open.last_mut() else {
            self.root = Some(value);
            return Ok(());
        };
        open.size += size;
        open.depth = open.depth.max(depth);
        match &mut open.of {
            Of::List(list) => list.push(value),
            Of::Object(object, key) => {
                object.insert(key.take().unwrap_or_default(), value);
            }
        }
        Ok(())
    }
}

fn too_large() -> String {
    format!("values of over {LARGEST} bytes, with what aliases stand for")
}

/// Whether a tag is one of YAML's own with such a name, or the one that says nothing.
fn is_known(tag: &Tag, names: &[&str]) -> bool {
    tag.is_yaml_core_schema() && names.contains(&&*tag.suffix) || (&*tag.handle, &*tag.suffix) == ("", "!")
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, String> {
    if let Some(tag) = tag {
        return match is_known(tag, &["str"]) {
            true => Ok(Value::String(text.to_owned())),
            false => Err(format!("a tag that is not known ({tag})")),
        };
    }
    if style != ScalarStyle::Plain {
        return Ok(Value::String(text.to_owned()));
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        _ => {}
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_decimal =
        digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    match text.parse::<i64>() {
        Ok(number) if is_decimal => Ok(number.into()),
        _ if is_other_number(digits) => {
            Err(format!("{text} is a number in another form than the decimal one"))
        }
        _ => Ok(Value::String(text.to_owned())),
    }
}

/// Whether some version of YAML reads it as a number: with a leading zero, a base, a point, an exponent or
/// `_`, or one that is too large.
fn is_other_number(digits: &str) -> bool {
    let digits = digits.replace('_', "");
    let is_of = |digits: &str, base| !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(base));
    let of_base = [("0x", 16), ("0o", 8), ("0b", 2)];
    let begins = digits.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    begins && digits.parse::<f64>().is_ok()
        || of_base
            .iter()
            .any(|(start, base)| digits.strip_prefix(start).is_some_and(|rest| is_of(rest, *base)))
}

/// Whether a text begins as documents of policies do: with a directive, a marker, or a key of an object.
pub(super) fn is_start(line: &str) -> bool {
    let key = line.split_once(':').map(|(key, _)| key.trim_matches(['"', '\'']));
    line.starts_with("%YAML")
        || line.split_whitespace().next() == Some("---")
        || matches!(key, Some("apiVersion" | "items" | "kind" | "metadata" | "spec"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Document>, String> {
        let mut input = Input::new(Box::new(text.as_bytes()), "t".into()).unwrap();
        let mut all = Vec::new();
        let read = each_document(&mut input, |document| {
            if let Some((line, why)) = document.faults.values().min() {
                let (name, place, why) = ("t".to_owned(), (*line).into(), why.clone());
                return Err(ReadError::Bad { name, place, why, text: String::new() });
            }
            all.push(document);
            Ok(())
        });
        read.map(|()| all).map_err(|error| error.to_string())
    }

    fn one(text: &str) -> Value {
        let [Document { value, .. }] = <[_; 1]>::try_from(read(text).unwrap()).ok().unwrap();
        value
    }

    #[test]
    fn values_are_those_of_json() {
        let text = "a: [80, -1, '80', \"x\\ty\", true, ~, null, , 10.0.0.0/8, 2001:db8::/32, no, !!str 7, 1.2.3.4]\n\
                    b: {c: |\n  two\n  lines\n}\nd:\n";
        let right = r#"{"a": [80, -1, "80", "x\ty", true, null, null, null, "10.0.0.0/8", "2001:db8::/32", "no", "7", "1.2.3.4"],
                        "b": {"c": "two\nlines\n"}, "d": null}"#;
        let text = text
            .replace(", ,", ", null,")
            .replace("{c: |\n  two\n  lines\n}", "\n  c: |\n    two\n    lines");
        assert_eq!(one(&text), serde_json::from_str::<Value>(right).unwrap());
        assert_eq!(one("&a x: &b [1, *b2]".replace(", *b2", "").as_str()), serde_json::json!({"x": [1]}));
        assert_eq!(one("x: &b [1]\ny: [*b, *b]"), serde_json::json!({"x": [1], "y": [[1], [1]]}));
    }

    #[test]
    fn documents_and_their_lines() {
        let text = "# one\n---\nitems:\n- a\n- spec:\n    in:\n    - x: 1\n    -\n      - y\n---\n---\n# two\n[1,\n2]\n";
        let documents = read(text).unwrap();
        assert_eq!(documents.len(), 2);
        let line = |of: usize, place: &str| documents[of].lines.get(place).copied();
        for (place, at) in
            [("/items/0", 4), ("/items/1", 5), ("/items/1/spec/in/0", 7), ("/items/1/spec/in/1/0", 9)]
        {
            assert_eq!(line(0, place), Some(at), "{place}");
        }
        assert_eq!((line(1, "/0"), line(1, "/1"), line(1, "/items/0")), (Some(13), Some(14), None));
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_line() {
        let deep = format!("{}x", "[".repeat(DEEPEST + 1));
        for (text, says) in [
            ("a: 1\na: 2\n", "t:2: a key twice in an object (a)"),
            ("a:\n  <<: {b: 1}\n", "t:2: a merge key (<<), which is not read"),
            ("a:\n- 010\n", "t:2: 010 is a number in another form than the decimal one"),
            ("a: 0x1f", "t:1: 0x1f is a number in another form"),
            ("a: 1_000", "t:1: 1_000 is a number"),
            ("a: 1.5", "t:1: 1.5 is a number"),
            ("a: 99999999999999999999", "t:1: 99999999999999999999 is a number"),
            ("a: !mine 1", "t:1: a tag that is not known"),
            ("a: !mine [1]", "t:1: a tag that is not known"),
            ("[a]: 1", "t:1: a key that is no text"),
            ("a: &x [1, *x]", "t:1: "),
            ("a: *none", "t:1: "),
            ("a: 1\nb: [1, 2\n", "t:"),
            ("a: 1\n- b\n", "t:2: "),
            (&deep, "t:1: over 64 lists and objects within each other"),
        ] {
            let error = read(text).err().unwrap_or_else(|| panic!("{text:?} is read"));
            assert!(error.starts_with(says), "{text:?}: {error}");
        }
        let mut input = Input::new(Box::new(&b"a: 1\nb: \xff\n"[..]), "t".into()).unwrap();
        let error = each_document(&mut input, |_| Ok(())).unwrap_err().to_string();
        assert!(error.starts_with("t:2: not text in UTF-8"), "{error}");
    }

    #[test]
    fn faults_are_of_the_outermost_element() {
        let text = "kind: List\nv: 0x1\nitems:\n- a: [1, 1.5, 0x2]\n- b: 1\n- c: {d: [!mine 1]}\n";
        let mut input = Input::new(Box::new(text.as_bytes()), "t".into()).unwrap();
        let mut faults = Faults::new();
        each_document(&mut input, |document| {
            faults = document.faults;
            Ok(())
        })
        .unwrap();
        let mut lines: Vec<_> = faults.iter().map(|(place, (line, why))| (&**place, *line, &**why)).collect();
        lines.sort_unstable();
        let number = "is a number in another form than the decimal one";
        assert_eq!(
            (lines[0], lines[1]),
            (("", 2, &*format!("0x1 {number}")), ("/items/0", 4, &*format!("1.5 {number}")))
        );
        assert_eq!((lines[2].0, lines[2].1, lines.len()), ("/items/2", 6, 3));
    }

    #[test]
    fn aliases_of_aliases_are_bounded() {
        // Ten times as many values a line, and deeper values a line.
        let mut wide = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        let mut deep = "a0: &a0 [x]\n".to_owned();
        for line in 1..70 {
            let before = line - 1;
            wide += &format!("a{line}: &a{line} [{}]\n", vec![format!("*a{before}"); 10].join(", "));
            deep += &format!("a{line}: &a{line} [*a{before}]\n");
        }
        let error = read(&wide).err().unwrap();
        assert!(
            error.contains("values of over ") && error.contains("with what aliases stand for"),
            "{error}"
        );
        assert!(read(&deep).err().unwrap().contains("within each other"));
        // Lines of lists with long keys around them count, too.
        let long = format!("{}: [{}]", "k".repeat(900), "1, ".repeat(LARGEST / 900));
        assert!(read(&long).err().unwrap().contains("values of over "));
    }
}
