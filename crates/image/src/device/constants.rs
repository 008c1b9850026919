//! [`Constants`]: values that a kernel's source and an engine must agree upon.

/// The constants of a kernel's source, with the engine's values. A test of `wirespeed-gpu` compares these
/// constants with those of the sources, by namespace and both ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constants {
    /// The namespace.
    pub namespace: &'static str,
    /// Names and values.
    pub values: Vec<(&'static str, u64)>,
}

impl Constants {
    /// Makes an empty list for a namespace.
    pub const fn of(namespace: &'static str) -> Self {
        Self { namespace, values: Vec::new() }
    }

    /// Adds a constant at the end. Panics if the value is negative.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl TryInto<u64>) -> Self {
        let Ok(value) = value.try_into() else { panic!("{name} is negative") };
        self.values.push((name, value));
        self
    }
}
