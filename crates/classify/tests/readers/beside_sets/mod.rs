//! Sets beside rules: any text as `ipset save` beside any as `iptables-save`.

use wirespeed_classify::read::{Doubts, ReadOptions, RuleFile, RuleFormat, read_rules_from};
use wirespeed_classify::write::write_rules;
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, OpenFlowTuple, Tuple};

/// The line between the sets and the rules.
pub(crate) const BETWEEN: &[u8] = b"\n--\n";

/// Reads rules beside sets, strictly and leniently. Strict reading takes no more than lenient reading, and
/// the same.
pub(crate) fn check(bytes: &[u8]) {
    let at = bytes.windows(BETWEEN.len()).position(|window| window == BETWEEN);
    let (sets, rules) = at.map_or((bytes, &b""[..]), |at| (&bytes[..at + 1], &bytes[at + BETWEEN.len()..]));
    let Ok(sets) = std::str::from_utf8(sets) else { return };
    of::<Ipv4Tuple>(sets, rules);
    of::<Ipv6Tuple>(sets, rules);
    of::<OpenFlowTuple>(sets, rules);
}

fn of<T: Tuple>(sets: &str, rules: &[u8]) {
    let read = |lenient| {
        let options = ReadOptions {
            format: Some(RuleFormat::Iptables),
            sets: Some(sets.to_owned()),
            lenient,
            ..ReadOptions::default()
        };
        read_rules_from::<T>(rules, "rules", &options)
    };
    match (read(false), read(true)) {
        (Ok((strict, of_strict)), Ok((lenient, of_lenient))) => {
            assert_eq!(of_strict.left_out, of_lenient.left_out);
            assert_eq!(plain(&strict), plain(&lenient));
            whole(&lenient);
        }
        (Err(_), Ok((lenient, _))) => whole(&lenient),
        (Ok(_), Err(error)) => panic!("strict reading took what lenient reading refused: {error}"),
        (Err(error), Err(_)) => assert!(!error.to_string().is_empty()),
    }
}

/// Every rule has its action, and what is in doubt is written as it is read.
fn whole<T: Tuple>(file: &RuleFile<T>) {
    assert!(file.rules.iter().all(|(number, _)| file.action(number.get()).is_some()));
    assert_eq!(Doubts::from_text(&file.doubts.to_text()), Ok(file.doubts.clone()));
}

fn plain<T: Tuple>(file: &RuleFile<T>) -> Vec<u8> {
    let mut text = Vec::new();
    write_rules(&file.rules, &mut text).expect("a Vec takes what is written");
    text
}
