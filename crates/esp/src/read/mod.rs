//! Reading: lines as `ip xfrm state` and `ip xfrm policy` take them become [`Change`]s.
//!
//! ```text
//! ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x100 reqid 1 mode tunnel \
//!     replay-window 128 flag esn aead 'rfc4106(gcm(aes))' 0x00112233445566778899aabbccddeeff01020304 128
//! ip xfrm policy add src 10.1.0.0/16 dst 10.2.0.0/16 dir out tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid 1 mode tunnel
//! ```
//!
//! `ip` and `xfrm` may be left out, `#` begins a comment, and a line ends with `\` if it goes on. A line with
//! a word that means nothing here is skipped, and counted by its reason: half of an association would be a
//! wrong one. What is read differs from `ip` in three points: a replay window is 64 packets if none is given;
//! `dir fwd` is `dir in`, because a router forwards what comes in; keys are in hexadecimal.

mod association;
mod policy;
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
}

impl Lines {
    /// Reads text.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let mut all = Self::default();
        let mut lines = text.lines().enumerate();
        while let Some((at, line)) = lines.next() {
            let mut whole = Zeroizing::new(String::with_capacity(text.len().min(1 << 12)));
            whole.push_str(line);
            while whole.ends_with('\\') {
                whole.pop();
                let Some((_, more)) = lines.next() else { break };
                whole.push(' ');
                whole.push_str(more);
            }
            match read_line(&whole) {
                Ok(changes) => all.changes.extend(changes),
                Err((skip, word)) => all.skipped.push(Skipped { line: at + 1, skip, word: harmless(word) }),
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

fn read_line(line: &str) -> Result<Vec<Change>, Skipping> {
    let line = line.split_once('#').map_or(line, |(before, _)| before);
    let mut words = Words::of(line);
    let mut word = words.next();
    while matches!(word, Some("ip" | "-4" | "-6" | "xfrm")) {
        word = words.next();
    }
    match word {
        None => Ok(Vec::new()),
        Some("state") => association::read(&mut words),
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
