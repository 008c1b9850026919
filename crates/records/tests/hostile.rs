//! Hostile streams of every format. The fuzz target makes the same checks.

mod pieces;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        pieces::check(&bytes);
    }

    #[test]
    fn any_marks(size: u8, marks in r#"[",\n\r\t{}:a#\\ ;|-]{0,64}"#) {
        pieces::check(&[&[size], marks.as_bytes()].concat());
    }

    #[test]
    fn any_headers(size: u8, words in prop::collection::vec(prop::sample::select(WORDS), 0..16)) {
        pieces::check(&[&[size], words.concat().as_bytes()].concat());
    }
}

const WORDS: &[&str] = &[
    "#separator \\x09\n",
    "#fields\ta\tb\n",
    "#types\ta\tb\n",
    "#unset_field\t?\n",
    "#close\n",
    "1\t2\n",
    "Summary\n",
    "a,b\n",
    "\"a\",b\r\n",
    "\"",
    "{\"a\":\"b\"}\n",
    "{\"a\":{\"b\":null}}",
    "{}",
    "\u{feff}",
    "\n",
];
