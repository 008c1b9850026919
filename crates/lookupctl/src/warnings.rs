//! Warnings of the libraries for the user, such as a lost GPU: one line each on stderr.

use std::fmt::{Debug, Write};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Prints warnings and errors from now on.
pub(crate) fn print() {
    // This fails if there is a subscriber already, which then prints them.
    let _ = tracing::subscriber::set_global_default(Printer(|warning| eprintln!("warning: {warning}")));
}

struct Printer(fn(&str));

impl Subscriber for Printer {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = String::new();
        event.record(&mut Text(&mut line));
        (self.0)(&line.replace('\n', " "));
    }

    // Spans carry nothing that is printed.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// An event's message, and its fields after it.
struct Text<'a>(&'a mut String);

impl Visit for Text<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let space = if self.0.is_empty() { "" } else { " " };
        // Writing to a String does not fail.
        let _ = match field.name() {
            "message" => write!(self.0, "{space}{value:?}"),
            name => write!(self.0, "{space}{name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn warnings_are_lines_and_talk_is_nothing() {
        static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
        let note = |line: &str| LINES.lock().unwrap().push(line.to_owned());
        tracing::subscriber::with_default(Printer(note), || {
            tracing::warn!("GPU {} is lost:\nno answer", 3);
            tracing::info!("talk");
            tracing::error!(device = 1, "gone");
        });
        assert_eq!(*LINES.lock().unwrap(), ["GPU 3 is lost: no answer", "gone device=1"]);
    }
}
