//! Fuzz target of the OpenFlow codec: a session gets any bytes, and what it reads it can write.

use wirespeed_openflow::wire::{Header, Request};
use wirespeed_openflow::{Session, Switch, SwitchOptions};

/// Gives bytes to a session in two parts, after a greeting. Answers are whole messages of the right version,
/// and a flow that is read is written as the flow that it is.
pub fn session(bytes: &[u8]) {
    let (&cut, bytes) = bytes.split_first().unwrap_or((&0, &[]));
    if let Some(header) = Header::of(bytes)
        && let Some(message) = bytes.get(..usize::from(header.len))
        && let Ok(Request::FlowMod(flow)) = Request::read(message)
    {
        let again = Request::read(&flow.to_message(header.xid));
        assert_eq!(again, Ok(Request::FlowMod(flow)), "what is read is written as it is");
    }
    let options =
        SwitchOptions { most_flows: 64, most_groups: 16, most_meters: 16, ..SwitchOptions::with_ports(["a", "b"]) };
    let Ok(switch) = Switch::new(options) else { return };
    let mut session = Session::new(&switch);
    let (first, second) = bytes.split_at(usize::from(cut).min(bytes.len()));
    for part in [&[4, 0, 0, 8, 0, 0, 0, 1], first, second] {
        let Some(answers) = session.receive(part) else { return };
        let mut rest = &answers[..];
        while !rest.is_empty() {
            let header = Header::of(rest).expect("a header");
            assert!(header.version == 4 && usize::from(header.len) <= rest.len());
            rest = &rest[usize::from(header.len)..];
        }
    }
}
