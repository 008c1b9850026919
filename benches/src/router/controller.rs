//! [`add_flows`]: a controller of OpenFlow 1.3 that adds exact flows as fast as a switch takes them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// How long a switch may be silent.
const PATIENCE: Duration = Duration::from_secs(60);

/// Kinds of messages.
const HELLO: u8 = 0;
const ERROR: u8 = 1;
const FLOW_MOD: u8 = 14;
const BARRIER_REQUEST: u8 = 20;
const BARRIER_REPLY: u8 = 21;

/// Adds so many flows of nine exact fields to a switch in one stream. Returns the time from the first byte to
/// the answer of the barrier behind them. Fails if the switch refuses one.
pub(super) fn add_flows(mut stream: TcpStream, count: u32) -> Result<Duration> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut bytes = message(HELLO, 1, &[]);
    (0..count).for_each(|number| bytes.extend(flow(number)));
    bytes.extend(message(BARRIER_REQUEST, u32::MAX, &[]));
    let begin = Instant::now();
    stream.write_all(&bytes).context("the switch reads no more")?;
    loop {
        let mut head = [0; 8];
        stream.read_exact(&mut head).context("no answer to the barrier")?;
        let [version, kind, high, low, ..] = head;
        let mut rest = vec![0; usize::from(u16::from_be_bytes([high, low])).saturating_sub(head.len())];
        stream.read_exact(&mut rest)?;
        ensure!(version == 4, "the switch speaks version {version}");
        match kind {
            BARRIER_REPLY => return Ok(begin.elapsed()),
            ERROR => bail!("the switch refuses a change: {:?}", rest.get(..4)),
            _ => {}
        }
    }
}

fn message(kind: u8, number: u32, body: &[u8]) -> Vec<u8> {
    let len = u16::try_from(8 + body.len()).expect("a message is short");
    [&[4, kind][..], &len.to_be_bytes(), &number.to_be_bytes(), body].concat()
}

/// Adds the flow of a number to table 0: it outputs to port 2.
fn flow(number: u32) -> Vec<u8> {
    let [a, b, c, d] = number.to_be_bytes();
    let fields: [(u8, &[u8]); 9] = [
        (0, &[0, 0, 0, 1]),
        (3, &[2, 0, 0, 0, c, d]),
        (4, &[2, 0, 0, 1, a, b]),
        (5, &[8, 0]),
        (10, &[17]),
        (11, &[10, b, c, d]),
        (12, &[11, d, c, b]),
        (15, &[c, d]),
        (16, &[b, c]),
    ];
    let mut matched = vec![0, 1, 0, 0];
    for (field, value) in fields {
        matched.extend([0x80, 0, field << 1, u8::try_from(value.len()).expect("six at most")]);
        matched.extend(value);
    }
    // The length is without what fills it up to a multiple of eight bytes.
    matched[3] = u8::try_from(matched.len()).expect("nine short fields");
    matched.resize(matched.len().next_multiple_of(8), 0);
    // No cookie; table, command and timeouts of 0; a priority; no buffer, any port and group; no flags.
    let head = [&[0; 22][..], &40_000_u16.to_be_bytes(), &[0xff; 12], &[0; 4]].concat();
    // Apply actions: output to port 2.
    let instructions = [0, 4, 0, 24, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0];
    message(FLOW_MOD, number, &[&head[..], &matched, &instructions].concat())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// A switch that counts changes and answers the barrier, after an error if it is to refuse.
    fn switch(refuses: bool) -> (TcpStream, std::thread::JoinHandle<Vec<usize>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut counts, mut head) = (vec![0; 256], [0; 8]);
            while stream.read_exact(&mut head).is_ok() {
                let len = usize::from(u16::from_be_bytes([head[2], head[3]]));
                assert!(head[0] == 4 && len.is_multiple_of(8));
                stream.read_exact(&mut vec![0; len - 8]).unwrap();
                counts[usize::from(head[1])] += 1;
                if head[1] == BARRIER_REQUEST {
                    let error = message(ERROR, 7, &[0, 5, 0, 1]);
                    stream.write_all(&message(HELLO, 1, &[])).unwrap();
                    stream.write_all(if refuses { &error } else { &[] }).unwrap();
                    stream.write_all(&message(BARRIER_REPLY, u32::MAX, &[])).unwrap();
                }
            }
            counts
        });
        (stream, thread)
    }

    #[test]
    fn all_flows_come_before_the_barrier_is_answered() {
        let (stream, thread) = switch(false);
        assert!(add_flows(stream, 1000).unwrap() > Duration::ZERO);
        let counts = thread.join().unwrap();
        let of = [HELLO, FLOW_MOD, BARRIER_REQUEST].map(|kind| counts[usize::from(kind)]);
        assert_eq!(of, [1, 1000, 1]);
        let (stream, thread) = switch(true);
        let error = add_flows(stream, 3).unwrap_err().to_string();
        assert!(error.contains("refuses a change"), "{error}");
        drop(thread.join());
        let different: std::collections::BTreeSet<Vec<u8>> =
            (0..70_000).map(|at| flow(at)[48..].to_vec()).collect();
        assert_eq!(different.len(), 70_000);
    }
}
