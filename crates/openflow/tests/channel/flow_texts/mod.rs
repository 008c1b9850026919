//! Any text as flows, groups and meters: what is read is written as the messages that say the same, and an
//! error names a line of the text.

use wirespeed_openflow::wire::Request;
use wirespeed_openflow::{Error, Switch, SwitchOptions, flows};

/// Reads a text, and loads it into a switch.
pub(crate) fn check(text: &str) {
    let last = text.lines().count();
    let lines = match flows::read(text) {
        Ok(lines) => lines,
        Err(Error::Flow { line, why }) => {
            assert!((1..=last).contains(&line) && !why.is_empty(), "line {line}: {why}");
            return;
        }
        Err(error) => panic!("an error without a line: {error}"),
    };
    for (line, flow) in &lines.flows {
        assert!((1..=last).contains(line));
        let message = flow.to_message(1);
        // A message has a length of 16 bits.
        if message.len() <= usize::from(u16::MAX) {
            assert_eq!(Request::read(&message), Ok(Request::FlowMod(Box::new(flow.clone()))), "{text:?}");
        }
    }
    let options = SwitchOptions {
        most_flows: 64,
        most_groups: 16,
        most_meters: 16,
        ..SwitchOptions::with_ports(["a", "b"])
    };
    let switch = Switch::new(options).expect("a switch");
    match flows::load(&switch, text) {
        Ok(loaded) => assert_eq!(
            (loaded.flows, loaded.groups, loaded.meters),
            (lines.flows.len(), lines.groups.len(), lines.meters.len())
        ),
        Err(Error::Refused { line, .. }) => assert!((1..=last).contains(&line)),
        Err(error) => panic!("an error without a line: {error}"),
    }
}
