//! Packet classification: which of many rules a packet's header fields match.

pub mod engine;
pub mod image_file;
pub mod tuple_name;

pub use tuple_name::TupleName;
pub use wirespeed_classify::{
    Applied, BuildError, Classify, ClassifyEngine, FieldRange, FrameError, Ipv4Tuple, Ipv6Tuple,
    OpenFlowTuple, Pattern, Rule, RuleError, RuleNumber, RuleSet, RuleTextError, RuleUpdate, Tuple,
    TupleError, generate, oracle, read, tuple, write,
};
