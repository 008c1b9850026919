//! Reading: lines as `ip xfrm state` and `ip xfrm policy` take them become [`Change`]s.
//!
//! ```text
//! ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x100 reqid 1 mode tunnel \
//!     replay-window 128 flag esn aead 'rfc4106(gcm(aes))' 0x00112233445566778899aabbccddeeff01020304 128
//! ip xfrm policy add src 10.1.0.0/16 dst 10.2.0.0/16 dir out tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid 1 mode tunnel
//! ```
//!
//! The printed form of `ip xfrm state` and `ip xfrm policy`, with `-s` or without, is read as well. A record
//! begins with `src` at the start of a line and goes on with indented lines. Policies of single sockets,
//! which the key daemon has for itself, are passed over and told.
//!
//! `ip` and `xfrm` may be left out, `#` begins a comment, and a line ends with `\` if it goes on. A line with
//! a word that means nothing here is skipped, and counted by its reason: half of an association would be a
//! wrong one. What is read differs from `ip` in these points: a replay window is 64 packets if none is given;
//! `dir fwd` is `dir in`, because a router forwards what comes in; keys are in hexadecimal; soft limits have
//! no effect, and are told. Three words are not Linux's. `path-mtu BYTES` is the largest outer packet.
//! `nat-keepalive SECONDS` sends a keepalive through address translation if nothing else was sent for so long
//! (of an association with `encap`, whose begin is behind the translation). `nat-follow` sends packets to
//! where the other end's newest authentic packet came from, if translation changes its address or port (of an
//! association with `encap`, whose end is behind the translation).

mod association;
mod policy;
mod printed;
mod skip;
mod words;

use std::io::Read as _;
use std::path::Path;

use zeroize::Zeroizing;

use crate::database::Change;
use crate::error::Error;
use skip::Skipping;
pub use skip::{Skip, Skipped};
use words::Words;

/// The lines of a file, as they were read.
#[derive(Debug, Default)]
pub struct Lines {
    /// The changes, in order.
    pub changes: Vec<Change>,
    /// The lines that were skipped.
    pub skipped: Vec<Skipped>,
    /// Words and records that have no effect here, such as soft limits. What they are in was read.
    pub passed_over: Vec<Skipped>,
}

impl Lines {
    /// Reads text.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let mut all = Self::default();
        let mut lines = text.lines().enumerate().peekable();
        while let Some((at, line)) = lines.next() {
            let mut whole = Zeroizing::new(String::with_capacity(text.len().min(1 << 12)));
            whole.push_str(line);
            while whole.ends_with('\\') {
                whole.pop();
                let Some((_, more)) = lines.next() else { break };
                whole.push(' ');
                whole.push_str(more);
            }
            let is_printed = printed::begins(line);
            while is_printed && let Some((_, more)) = lines.next_if(|(_, line)| printed::goes_on(line)) {
                whole.push('\n');
                whole.push_str(more);
            }
            let told = |(skip, word): Skipping| Skipped { line: at + 1, skip, word: harmless(word) };
            let mut passed_over = Vec::new();
            let changes = match is_printed {
                true => read_printed(&whole, &mut passed_over),
                false => read_line(&whole, &mut passed_over),
            };
            all.passed_over.extend(passed_over.into_iter().map(|word| told((Skip::NoEffect, word))));
            match changes {
                Ok(changes) => all.changes.extend(changes),
                Err(skipping) => all.skipped.push(told(skipping)),
            }
        }
        all
    }

    /// Reads a file of keys. Fails if others than its owner can read it, or if it belongs to another user
    /// than this one and root.
    pub fn read_file(path: &Path) -> Result<Self, Error> {
        let failed = |cause| Error::Read { path: path.to_owned(), cause };
        let mut file = std::fs::File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let (mode, owner, own) = (about.mode() & 0o777, about.uid(), rustix::process::geteuid().as_raw());
            if about.is_file() && mode & 0o077 != 0 {
                return Err(Error::Exposed { path: path.to_owned(), mode });
            }
            if about.is_file() && owner != own && owner != 0 {
                return Err(Error::Owner { path: path.to_owned(), owner, own });
            }
        }
        // As large as the file, so that no copy stays behind where the memory grows.
        let len = usize::try_from(about.len()).unwrap_or(0);
        let mut bytes = Zeroizing::new(Vec::with_capacity(len + 1));
        file.read_to_end(&mut bytes).map_err(failed)?;
        let text = std::str::from_utf8(&bytes);
        let text =
            text.map_err(|error| failed(std::io::Error::new(std::io::ErrorKind::InvalidData, error)))?;
        Ok(Self::read(text))
    }
}

/// Digits in a row that may be a part of a key. A SPI of as many is not told, either.
const OF_KEY: usize = 8;

/// A word to be told. What may be a key or a part of one, at a wrong place, is left out.
fn harmless(word: String) -> String {
    let mut runs = word.split(|letter: char| !letter.is_ascii_hexdigit());
    let may_be_key = runs.any(|run| run.len() >= OF_KEY);
    if may_be_key { "digits, perhaps of a key".to_owned() } else { word }
}

/// Reads a printed record.
fn read_printed(record: &str, passed_over: &mut Vec<String>) -> Result<Vec<Change>, Skipping> {
    let second = record.lines().nth(1).unwrap_or_default().trim_start();
    if second.starts_with("socket ") {
        passed_over.push("a policy of a socket".to_owned());
        return Ok(Vec::new());
    }
    read_line(&printed::line(record)?, passed_over)
}

/// Reads a line. What has no effect goes to `passed_over`.
fn read_line(line: &str, passed_over: &mut Vec<String>) -> Result<Vec<Change>, Skipping> {
    let line = line.split_once('#').map_or(line, |(before, _)| before);
    let mut words = Words::of(line);
    let mut word = words.next();
    while matches!(word, Some("ip" | "-4" | "-6" | "xfrm")) {
        word = words.next();
    }
    match word {
        None => Ok(Vec::new()),
        Some("state") => association::read(&mut words, passed_over),
        Some("policy") => policy::read(&mut words),
        Some(other) => Err((Skip::Word, other.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn no_part_of_a_key_is_told() {
        let key = "00112233445566778899aabbccddeeff01020304";
        for word in [
            format!("aead=0x{key}"),
            format!("aead:'rfc4106(gcm(aes))',0x{key},128"),
            "aead 44556677".to_owned(),
            format!("enc cbc(aes) 0X{key}"),
        ] {
            assert_eq!(harmless(word), "digits, perhaps of a key");
        }
        for word in ["hmac(sha256)", "reqid 1234567x", "2001:db8::1"] {
            assert_eq!(harmless(word.to_owned()), word);
        }
    }
}
