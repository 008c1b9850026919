//! Errors of tables.

use std::convert::Infallible;
use std::path::{Path, PathBuf};

#[cfg(feature = "rules")]
use wirespeed_classify as classify;
#[cfg(feature = "text")]
use wirespeed_fib::read::ReadError;
use wirespeed_fib::{BuildError, Family, HostBits, NextHop, TooManyNextHops};
use wirespeed_forest::{FibId, FibsError};
use wirespeed_image::ImageError;
#[cfg(feature = "names")]
use wirespeed_namelookup as names;

use crate::engine::{BOTH_FAMILIES, EngineName, Engines, UnknownEngine, VRFS};
use crate::gpu::GpuError;
use crate::memory::Cap;

/// The reason why a table could not be built, changed, saved or opened. The text of an error tells its
/// causes, so `source` gives none that the text has already.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The table's domain has no such engine. The message lists its engines.
    #[error(transparent)]
    UnknownEngine(#[from] UnknownEngine),
    /// The compiled table takes more bytes than its cap.
    #[error(
        "the compiled {} takes {needed} bytes in its two copies, over the cap of {cap}: raise the cap or choose a smaller engine",
        table_of(what)
    )]
    MemoryCap {
        /// The content of the table: a family, names or rules.
        what: &'static str,
        /// Bytes that both copies take.
        needed: u64,
        /// The cap in bytes, for both copies.
        cap: u64,
    },
    /// The compiled table takes more bytes than the default cap.
    #[error(
        "the compiled {} takes {needed} bytes in its two copies with the engine {engine}, the default cap is {cap}: build it \
         anew, choose another engine (`engine`), or state a cap (`memory_cap`)",
        table_of(what)
    )]
    DefaultMemoryCap {
        /// The content of the table: a family, names or rules.
        what: &'static str,
        /// Its engine.
        engine: EngineName,
        /// Bytes that both copies take.
        needed: u64,
        /// The default cap in bytes, for both copies: see
        /// [`Builder::memory_cap`](crate::Builder::memory_cap).
        cap: u64,
    },
    /// The engine can't hold the table, or there is no memory for it.
    #[error("the {} can't be built: {cause}", table_of(what))]
    Build {
        /// The content of the table: a family, names or rules.
        what: &'static str,
        /// The reason.
        cause: BuildError,
    },
    /// A route was added with [`NextHop::NONE`](crate::NextHop::NONE). Withdraw a route to remove it.
    #[error("the route {prefix} has no next hop: indexes start at 1")]
    RouteWithoutNextHop {
        /// The prefix.
        prefix: String,
    },
    /// A route has a longer prefix than the table was built for:
    /// [`longest_prefix`](crate::Builder::longest_prefix).
    #[error(
        "the prefix {prefix} is longer than /{longest}, the longest that the table was built for (`longest_prefix`)"
    )]
    LongerPrefix {
        /// The prefix.
        prefix: String,
        /// The length that was stated.
        longest: u8,
    },
    /// A prefix has host bits: `10.1.2.3/8`. `trunc` of `ipnet` clears them.
    #[error(transparent)]
    HostBits(#[from] HostBits),
    /// A VRF is not there, or its number is too large.
    #[error("{}", of_vrfs(.0))]
    Vrf(FibsError),
    /// A name was added with [`NextHop::NONE`](crate::NextHop::NONE). Remove a name to take it out.
    #[cfg(feature = "names")]
    #[error("the name {name} has no result: indexes start at 1")]
    NameWithoutResult {
        /// The name.
        name: String,
    },
    /// A file of names can't be read; the message names file and line.
    #[cfg(feature = "names")]
    #[error(transparent)]
    ReadNames(#[from] names::read::ReadError),
    /// A list of domains can't be read; the message names file and line.
    #[cfg(feature = "names")]
    #[error(transparent)]
    ReadList(#[from] Box<names::read::lists::ListError>),
    /// A rule is not valid, or can't have the number that was asked for.
    #[cfg(feature = "rules")]
    #[error(transparent)]
    Rule(#[from] classify::RuleError),
    /// Rules can't be updated.
    #[cfg(feature = "rules")]
    #[error("the rules can't be updated: {cause}")]
    UpdateRules {
        /// The reason.
        cause: classify::UpdateError,
    },
    /// A file of rules can't be read; the message names file and line.
    #[cfg(feature = "rules")]
    #[error(transparent)]
    ReadRules(#[from] classify::read::ReadError),
    /// A file has rules that header fields alone can't decide.
    #[cfg(feature = "rules")]
    #[error(
        "{}: {} can't be told from a packet's fields ({}); `assume` states what they depend on, `leave_out` builds without them \
         and keeps what is then in doubt",
        .report.name, counted(.report.left_out.len()), first(.report)
    )]
    RulesLeftOut {
        /// The report of the file, with all such rules and the reasons.
        report: Box<classify::read::RuleReport>,
    },
    /// An image lacks rules that could change answers, and is to be loaded into a classifier that was built
    /// without [`leave_out`](crate::classify::ClassifierBuilder::leave_out).
    #[cfg(feature = "rules")]
    #[error(
        "{}: {rules} rules that were left out of this image could change answers; a classifier that is built with \
         `leave_out` loads it",
        .path.display()
    )]
    RulesInDoubt {
        /// The file.
        path: PathBuf,
        /// The number of rules that were left out.
        rules: usize,
    },
    /// An assumption is not valid, or contradicts another one.
    #[cfg(feature = "rules")]
    #[error(transparent)]
    Assumption(#[from] classify::read::AssumptionError),
    /// An assumption was stated after a file was read without it.
    #[cfg(feature = "rules")]
    #[error("{fact} is assumed after {file} was read: assume it before")]
    AssumedLate {
        /// The assumption.
        fact: String,
        /// The file.
        file: String,
    },
    /// A chain or a table was chosen of rules whose format has none.
    #[cfg(feature = "rules")]
    #[error("{file}: rules in the format {format} have no chains and tables to choose from")]
    NoChains {
        /// The file.
        file: String,
        /// Its format.
        format: classify::read::RuleFormat,
    },
    /// A GPU was asked for, and lookups can't run on one.
    #[error("no lookups on a GPU: {0}")]
    Gpu(GpuError),
    /// Keys on a GPU were to be looked up, and the table is not on GPUs.
    #[cfg(feature = "gpu")]
    #[error("no GPU has the table: build it with `Device::Gpu`, or see `device_note` after `Device::Auto`")]
    NotOnGpu,
    /// A file of routes can't be read; the message names file and line.
    #[cfg(feature = "text")]
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file has no route of the family that a table is for.
    #[cfg(feature = "text")]
    #[error("{}: no {wanted} routes, only those of the other family", path.display())]
    NoRoutesOfFamily {
        /// The file.
        path: PathBuf,
        /// The table's family.
        wanted: Family,
    },
    /// A prefix was asked for, and the table keeps none for lookups.
    #[error("the table gives no prefixes: build it with `prefix_lookups`")]
    NoPrefixLookups,
    /// The image holds tables of both families, and a table of one family was wanted.
    #[error("{}: holds an IPv4 and an IPv6 table; open it as `IpReader` or `IpTable`, or name a family", path.display())]
    ImageOfBoth {
        /// The file.
        path: PathBuf,
    },
    /// The image was made for lookups of prefixes, and something else was wanted.
    #[error("{}: made for lookups of prefixes (`prefix_lookups`): its own results are no next hops", path.display())]
    ForPrefixLookups {
        /// The file.
        path: PathBuf,
    },
    /// A next hop of a source, the result of a name or the action of a rule can't be parsed as a label.
    #[error("{}{text:?} is no label: {reason}", in_file(.file.as_deref()))]
    Label {
        /// The file, if it was read from one.
        file: Option<PathBuf>,
        /// The text in the source.
        text: String,
        /// The error of the label's parser.
        reason: String,
    },
    /// An index stands for no label, so its value can't be replaced.
    #[error("index {next_hop} has no label")]
    NoLabel {
        /// The index.
        next_hop: NextHop,
    },
    /// A label can't be written as JSON.
    #[cfg(feature = "serde")]
    #[error("a label can't be written as JSON: {reason}")]
    LabelNotJson {
        /// The error of the serializer.
        reason: String,
    },
    /// The labels of an image are of another type.
    #[error("{}: the labels are {found}, and {wanted} is wanted", path.display())]
    LabelType {
        /// The file.
        path: PathBuf,
        /// The type of the labels in the file: text, or JSON of a type.
        found: String,
        /// The type that is wanted.
        wanted: String,
    },
    /// Two different labels have the same text, so they can't be saved as text.
    #[error("two labels are written {text:?}")]
    LabelsAlike {
        /// The text.
        text: String,
    },
    /// There are more distinct labels than indexes.
    #[error(transparent)]
    TooManyLabels(#[from] TooManyNextHops),
    /// An image file can't be written or read, or is damaged.
    #[error("{}: {cause}", path.display())]
    Image {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: ImageError,
    },
    /// No engine of this build reads the image.
    #[error("{}: no engine of this build reads images of kind {kind:?}{}", path.display(), left_out())]
    ImageKind {
        /// The file.
        path: PathBuf,
        /// Its kind.
        kind: String,
    },
    /// The image holds a table with other keys.
    #[error("{}: the image holds a table of {found}, a table of {wanted} is wanted", path.display())]
    ImageOf {
        /// The file.
        path: PathBuf,
        /// The content of the image: addresses, VRFs, names, lists of domains or rules.
        found: &'static str,
        /// The content that is wanted.
        wanted: &'static str,
    },
    /// The names are no list of public suffixes.
    #[cfg(feature = "names")]
    #[error("the names are no list of public suffixes, which registrable domains are found by")]
    NoSuffixes,
    /// The image holds rules of another type of tuple.
    #[error("{}: the image holds rules of tuple {found}, rules of tuple {wanted} are wanted", path.display())]
    ImageTuple {
        /// The file.
        path: PathBuf,
        /// The image's tuple.
        found: &'static str,
        /// The classifier's tuple.
        wanted: &'static str,
    },
    /// The image holds a table of the other family.
    #[error("{}: the image holds an {found} table, an {wanted} table is wanted", path.display())]
    ImageFamily {
        /// The file.
        path: PathBuf,
        /// The image's family.
        found: Family,
        /// The table's family.
        wanted: Family,
    },
    /// The image holds the compiled table alone. A table that takes updates needs the routes, names or rules
    /// of the image, a reader of rules needs their actions, and a call that loads entries needs their labels.
    #[error("{}: the image holds no {what} beside its table{}", path.display(), advice(what))]
    ImageWithout {
        /// The file.
        path: PathBuf,
        /// The missing content: routes, names, rules or labels.
        what: &'static str,
    },
}

impl From<Infallible> for Error {
    /// Never happens: a [`Prefix`](crate::Prefix) has no host bits.
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl From<GpuError> for Error {
    fn from(cause: GpuError) -> Self {
        Self::Gpu(cause)
    }
}

impl Error {
    /// The error with the file that the label was read from.
    #[cfg(any(feature = "text", feature = "names", feature = "rules"))]
    pub(crate) fn in_file(self, path: &Path) -> Self {
        match self {
            Self::Label { file: None, text, reason } => {
                Self::Label { file: Some(path.to_owned()), text, reason }
            }
            other => other,
        }
    }

    /// The error of an image file.
    pub(crate) fn in_image(path: &Path, cause: ImageError) -> Self {
        Self::Image { path: path.to_owned(), cause }
    }

    /// The error of an image file with an attachment that is not valid.
    pub(crate) fn attachment(path: &Path, name: &str) -> Self {
        Self::in_image(path, ImageError::Malformed(format!("the attachment {name}")))
    }

    /// The error for an image of a kind that no engine of a domain reads.
    pub(crate) fn of_kind(path: PathBuf, kind: &str, wanted: &'static str) -> Self {
        match kind {
            BOTH_FAMILIES => Self::ImageOf { path, found: "addresses", wanted },
            VRFS => Self::ImageOf { path, found: "VRFs", wanted },
            kind => Self::ImageKind { path, kind: kind.to_owned() },
        }
    }

    /// Converts an error of a build or rebuild under this cap.
    pub(crate) fn of_build<D: Engines>(engine: EngineName, source: BuildError, cap: Cap) -> Self {
        Self::of_build_of(D::WHAT, engine, source, cap)
    }

    /// Converts an error of a build or rebuild of this content.
    pub(crate) fn of_build_of(what: &'static str, engine: EngineName, source: BuildError, cap: Cap) -> Self {
        let both = |bytes: u64| bytes.saturating_mul(2);
        match (source, cap) {
            (BuildError::Image(ImageError::OverCap { needed, .. }), Cap::Stated(cap)) => {
                Self::MemoryCap { what, needed: both(needed), cap }
            }
            (BuildError::Image(ImageError::OverCap { needed, cap }), Cap::Auto | Cap::Named) => {
                Self::DefaultMemoryCap { what, engine, needed: both(needed), cap: both(cap) }
            }
            (cause, _) => Self::Build { what, cause },
        }
    }

    /// Returns the error for a file that holds the compiled table alone.
    pub(crate) fn without(path: &Path, what: &'static str) -> Self {
        Self::ImageWithout { path: path.to_owned(), what }
    }
}

/// The text of an error of VRFs, which are tables of a forest.
fn of_vrfs(error: &FibsError) -> String {
    match error {
        FibsError::NoFib(id) => format!("there is no VRF {id}"),
        FibsError::TooLarge(id) => format!("a VRF has number {id}, the largest is {}", FibId::MAX),
        other => other.to_string(),
    }
}

/// The file of an error, for the beginning of its text.
fn in_file(path: Option<&Path>) -> String {
    path.map(|path| format!("{}: ", path.display())).unwrap_or_default()
}

/// Names a table by its content.
fn table_of(what: &str) -> String {
    match what {
        "names" | "rules" | "VRFs" => format!("table of {what}"),
        family => format!("{family} table"),
    }
}

/// The note of an error about features that the build leaves out.
fn left_out() -> String {
    let features = [
        ("names", cfg!(feature = "names")),
        ("rules", cfg!(feature = "rules")),
        ("papers", cfg!(feature = "papers")),
    ];
    let missing: Vec<_> =
        features.into_iter().filter(|&(_, is_on)| !is_on).map(|(name, _)| format!("`{name}`")).collect();
    match &missing[..] {
        [] => String::new(),
        [one] => format!("; it may need the feature {one}"),
        several => format!("; it may need one of the features {}", several.join(", ")),
    }
}

/// Advice for an image that lacks this content.
fn advice(what: &str) -> &'static str {
    match what {
        "rules" => "",
        "labels" => ", and entries are loaded with their labels: save it with `save_labelled`",
        _ => " to update: open it with a reader",
    }
}

#[cfg(feature = "rules")]
fn counted(rules: usize) -> String {
    if rules == 1 { "a rule".to_owned() } else { format!("{rules} rules") }
}

/// Lists the first rules that were left out, and counts the others.
#[cfg(feature = "rules")]
fn first(report: &classify::read::RuleReport) -> String {
    const SHOWN: usize = 3;
    let mut all: Vec<_> = report.left_out.iter().take(SHOWN).map(ToString::to_string).collect();
    match report.left_out.len().checked_sub(SHOWN) {
        Some(more) if more > 0 => all.push(format!("and {more} more")),
        _ => {}
    }
    all.join("; ")
}
