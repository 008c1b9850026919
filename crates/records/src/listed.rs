//! [`listed`]: the names of columns, for messages.

/// The first names, with commas between, for a message: at most 20, and of each at most 40 characters.
/// A line that is no header may be one name of a million bytes.
///
/// ```
/// use wirespeed_records::listed;
///
/// assert_eq!(listed(&["ts".to_owned(), "src_ip".to_owned()]), "ts, src_ip");
/// ```
#[must_use]
pub fn listed(names: &[String]) -> String {
    const SHOWN: usize = 20;
    const LONGEST: usize = 40;
    let short = |name: &String| match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.clone(),
    };
    let shown: Vec<String> = names.iter().take(SHOWN).map(short).collect();
    shown.join(", ") + if names.len() > SHOWN { ", …" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_and_long_ones_are_cut() {
        let names = |count: usize, len: usize| vec!["é".repeat(len); count];
        assert_eq!(listed(&names(20, 40)), names(20, 40).join(", "));
        assert_eq!(listed(&names(1, 41)), format!("{}…", "é".repeat(40)));
        assert!(listed(&names(21, 1)).ends_with("é, …"));
    }
}
