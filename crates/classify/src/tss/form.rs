//! [`Form`]: the difference between tuple search and Bloom search of classes in cuckoo tables.

use std::fmt::Debug;

/// A form of search through classes.
pub trait Form: Copy + Debug + Default + Send + Sync + 'static {
    /// The name that users choose the engine by.
    const NAME: &'static str;
    /// The kind of its images.
    const KIND: &'static str;
    /// Whether each class has a Bloom filter, and its table is only looked up in where that says so.
    const FILTERED: bool;
}
