//! Names of kernels: [`Stem`], the part that an engine gives; [`Kind`], the part that keys give; [`Kernel`],
//! both.
//!
//! ```text
//! fold_v4_i2_w1_k4     module fold     stem fold_v4_i2_w1     keys of 4 bytes
//! quilt_t10            module quilt    stem quilt             tuples of 10 words
//! ```
//!
//! A name is composed of parts that say what the kernel was compiled for. The kernels' sources compose names
//! in the same order. A test of `wirespeed-gpu` compares all names that engines can ask for with all names of
//! the sources.

use std::fmt;

use super::error::Unsupported;

/// The most parts of a stem after its module.
const MOST_PARTS: usize = 4;

/// Bytes of elements, chunk numbers or results that a kernel was compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    /// One byte.
    One,
    /// Two bytes.
    Two,
    /// Four bytes.
    Four,
}

impl Width {
    /// All widths, the narrowest first.
    pub const ALL: [Self; 3] = [Self::One, Self::Two, Self::Four];

    /// The width of a number of bytes. [`Unsupported`] for any number except 1, 2 and 4.
    pub fn of(bytes: usize) -> Result<Self, Unsupported> {
        let of = |width: &Self| width.bytes() == bytes;
        let width = Self::ALL.into_iter().find(of);
        width.ok_or_else(|| Unsupported(format!("elements of {bytes} bytes")))
    }

    /// The number of bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
        }
    }
}

/// A part of a stem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Part {
    Word(&'static str),
    Width(char, Width),
}

/// A kernel's name without the kind of its keys, and the kernel's module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stem {
    module: &'static str,
    parts: [Option<Part>; MOST_PARTS],
}

impl Stem {
    /// Makes the stem of a module's kernels. It begins with the module's name.
    pub const fn of(module: &'static str) -> Self {
        Self { module, parts: [None; MOST_PARTS] }
    }

    /// Adds a word at the end, such as `staged`. Panics after four parts.
    #[must_use]
    pub const fn word(self, word: &'static str) -> Self {
        self.with(Part::Word(word))
    }

    /// Adds a letter and a width at the end, such as `w2`. Panics after four parts.
    #[must_use]
    pub const fn width(self, letter: char, width: Width) -> Self {
        self.with(Part::Width(letter, width))
    }

    const fn with(mut self, part: Part) -> Self {
        let mut at = 0;
        while self.parts[at].is_some() {
            at += 1;
        }
        self.parts[at] = Some(part);
        self
    }

    /// The module.
    pub const fn module(&self) -> &'static str {
        self.module
    }

    /// The kernel for keys of this kind, or of this number of bytes.
    pub fn kernel(&self, kind: impl Into<Kind>) -> Kernel {
        Kernel { module: self.module, name: format!("{self}_{}", kind.into()) }
    }
}

impl fmt::Display for Stem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.module)?;
        self.parts.iter().flatten().try_for_each(|part| match part {
            Part::Word(word) => write!(f, "_{word}"),
            Part::Width(letter, width) => write!(f, "_{letter}{}", width.bytes()),
        })
    }
}

/// The keys of a kernel: the end of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Keys of this number of bytes each (`k4`).
    Bytes(usize),
    /// Keys of any length, in the layout of the kernels with this name (`packed`).
    Named(&'static str),
}

impl From<usize> for Kind {
    fn from(bytes: usize) -> Self {
        Self::Bytes(bytes)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "k{bytes}"),
            Self::Named(name) => f.write_str(name),
        }
    }
}

/// A kernel: its module and its name there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// The module: the name of its source.
    pub module: &'static str,
    /// The entry point.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_put_together_of_their_parts() {
        let stem = Stem::of("fold").word("v4").width('i', Width::Two).width('w', Width::One);
        assert_eq!(stem.to_string(), "fold_v4_i2_w1");
        let kernel = stem.kernel(4);
        assert_eq!((kernel.module, kernel.name.as_str()), ("fold", "fold_v4_i2_w1_k4"));
        assert_eq!(Stem::of("quilt").kernel(Kind::Named("t10")).name, "quilt_t10");
    }

    #[test]
    fn widths_are_those_of_kernels() {
        assert_eq!([1, 2, 4].map(Width::of), Width::ALL.map(Ok));
        for bytes in [0, 3, 5, 8, 1 << 32] {
            assert_eq!(Width::of(bytes), Err(Unsupported(format!("elements of {bytes} bytes"))));
        }
    }
}
