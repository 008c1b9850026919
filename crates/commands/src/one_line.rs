//! [`one_line()`]: errors as messages.

/// An error and its causes in one line, without causes that only repeat it. A cause that begins with the name
/// of its file takes the place of that name.
#[must_use]
pub fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if line.is_empty() || cause.starts_with(&format!("{line}: ")) {
            line = cause;
        } else if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn what_is_repeated_is_said_once() {
        let file = anyhow!("flows.csv: line 3:\nno address").context("flows.csv");
        assert_eq!(
            one_line(&file.context("enriching")),
            "enriching: flows.csv: flows.csv: line 3: no address"
        );
        let file = anyhow!("flows.csv: line 3").context("flows.csv");
        assert_eq!(one_line(&file), "flows.csv: line 3");
        assert_eq!(one_line(&anyhow!("no routes").context("asn: x: no routes")), "asn: x: no routes");
    }
}
