//! [`Constants`]: what a kernel's source and an engine have to agree upon.

/// The constants of a kernel's source, each with what an engine has in its place. The sources keep theirs by
/// namespace; a test of `wirespeed-gpu` holds those against these, each of which must be in the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constants {
    /// The namespace.
    pub namespace: &'static str,
    /// Names and values.
    pub values: Vec<(&'static str, u64)>,
}

impl Constants {
    /// An empty list for a namespace.
    pub const fn of(namespace: &'static str) -> Self {
        Self { namespace, values: Vec::new() }
    }

    /// The list with one more at its end. Panics where the value is negative.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl TryInto<u64>) -> Self {
        let Ok(value) = value.try_into() else { panic!("{name} is negative") };
        self.values.push((name, value));
        self
    }
}
