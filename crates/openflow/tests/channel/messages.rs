//! Messages of a controller, and answers taken apart.

use wirespeed_openflow::wire::{Action, Instructions, number};
use wirespeed_openflow::{Session, Switch, SwitchOptions};

pub(crate) const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];

/// A message of a type with a body.
pub(crate) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![4, kind];
    bytes.extend((8 + body.len() as u16).to_be_bytes());
    bytes.extend([0, 0, 0, kind]);
    bytes.extend(body);
    bytes
}

/// A multipart request.
pub(crate) fn multipart(kind: u16, body: &[u8]) -> Vec<u8> {
    let [high, low] = kind.to_be_bytes();
    message(18, &[&[high, low, 0, 0, 0, 0, 0, 0], body].concat())
}

/// The body of a question for all flows of a table.
pub(crate) fn all_flows(table: u8) -> Vec<u8> {
    let mut body = vec![table, 0, 0, 0];
    body.extend([0xff; 8]);
    body.extend([0; 20]);
    body.extend([0, 1, 0, 4, 0, 0, 0, 0]);
    body
}

/// The messages of bytes: type and body. Panics if a length is wrong.
pub(crate) fn messages(bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let (mut at, mut messages) = (0, Vec::new());
    while at < bytes.len() {
        assert_eq!(bytes[at], 4, "the version");
        let len = usize::from(u16::from_be_bytes([bytes[at + 2], bytes[at + 3]]));
        messages.push((bytes[at + 1], bytes[at + 8..at + len].to_vec()));
        at += len;
    }
    messages
}

/// A switch of four ports, and a session that has greeted.
pub(crate) fn greeted() -> (Switch, Session) {
    let switch = Switch::new(SwitchOptions::with_ports(["a", "b", "c", "d"])).unwrap();
    let mut session = Session::new(&switch);
    assert_eq!(messages(&session.receive(&HELLO).unwrap())[0].0, 0, "a greeting");
    (switch, session)
}

/// The only answer to a message.
pub(crate) fn ask(session: &mut Session, asked: &[u8]) -> (u8, Vec<u8>) {
    let answers = messages(&session.receive(asked).unwrap());
    assert_eq!(answers.len(), 1, "{answers:?}");
    answers.into_iter().next().unwrap()
}

/// The type and the code of the error that a message leads to.
pub(crate) fn refused(session: &mut Session, asked: &[u8]) -> (u16, u16) {
    let (kind, body) = ask(session, asked);
    assert_eq!(kind, 1, "an error: {body:?}");
    assert_eq!(body[4..], asked[..asked.len().min(64)], "the message that it is about");
    (u16::from_be_bytes([body[0], body[1]]), u16::from_be_bytes([body[2], body[3]]))
}

/// Instructions that output to a port.
pub(crate) fn output(port: u32) -> Instructions {
    let apply = vec![Action::Output { port, max_len: number::WHOLE }];
    Instructions { apply, has_apply: true, ..Instructions::default() }
}
