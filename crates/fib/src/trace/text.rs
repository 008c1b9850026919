//! Traces as text: one address on each line.
//!
//! Columns after the first (a weight, a count), empty lines and text after `#` are ignored.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::IpAddr;

use super::addresses::Trace;
use super::error::TraceError;
use crate::address::Address;

/// The longest text of an address. A longer first column is not an address.
const LONGEST: usize = 45;

/// The most bytes of a line that are read, so that a file without line ends takes no memory.
const LINE: u64 = 4096;

/// Reads one address on each line. Addresses of the other family are counted. A line that is not an address
/// is an error.
pub fn from_text<A: Address>(source: impl Read, name: &str) -> Result<Trace<A>, TraceError> {
    let mut source = BufReader::with_capacity(1 << 16, source);
    let mut trace = Trace::default();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = source.by_ref().take(LINE).read_until(b'\n', &mut line);
        if read.map_err(|error| TraceError::io(name, error))? == 0 {
            break;
        }
        if line.last() != Some(&b'\n') {
            source.skip_until(b'\n').map_err(|error| TraceError::io(name, error))?;
        }
        let column = first_column(&line);
        if column.is_empty() {
            continue;
        }
        match std::str::from_utf8(column).ok().and_then(|text| text.parse::<IpAddr>().ok()) {
            Some(address) => trace.take(address),
            None => {
                let text = String::from_utf8_lossy(&column[..column.len().min(LONGEST)]).into_owned();
                return Err(TraceError::NotAnAddress { name: name.to_owned(), line: number, text });
            }
        }
    }
    trace.checked(name)
}

/// The text before the first blank, separator or comment.
fn first_column(line: &[u8]) -> &[u8] {
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b';' | b'#');
    let line = line.trim_ascii_start();
    &line[..line.iter().position(is_end).unwrap_or(line.len())]
}

/// Writes one address on each line.
pub fn write_text<A: Address>(keys: &[A], target: impl Write) -> io::Result<()> {
    let mut target = io::BufWriter::with_capacity(1 << 16, target);
    for key in keys {
        writeln!(target, "{key}")?;
    }
    target.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{V4, V6};

    #[test]
    fn reads_addresses_and_ignores_the_rest() {
        let text = "# hosts\n#\n\n1.2.3.4\t10\r\n  5.6.7.8 # note\n::1 2\n9.9.9.9,3";
        let trace = from_text::<V4>(text.as_bytes(), "t").unwrap();
        assert_eq!(trace.keys, [V4(0x0102_0304), V4(0x0506_0708), V4(0x0909_0909)]);
        assert_eq!(trace.other_family, 1);
    }

    #[test]
    fn an_error_names_the_line() {
        let error = from_text::<V4>(&b"1.1.1.1\n1.1.1\n"[..], "a.txt").unwrap_err();
        assert_eq!(error.to_string(), "a.txt:2: \"1.1.1\" is not an address");
        let endless = vec![b'1'; 3 << 20];
        let error = from_text::<V4>(&endless[..], "a.txt").unwrap_err();
        assert!(error.to_string().len() < 100, "{error}");
        assert!(from_text::<V4>(&b"\xff\xfe\n"[..], "a.txt").is_err());
    }

    #[test]
    fn written_is_read() {
        let keys = [V6(0), V6(1), V6(u128::MAX)];
        let mut text = Vec::new();
        write_text(&keys, &mut text).unwrap();
        assert_eq!(text, b"::\n::1\nffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff\n");
        assert_eq!(from_text::<V6>(&text[..], "t").unwrap().keys, keys);
    }
}
