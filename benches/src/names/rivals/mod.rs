//! What names are looked up with elsewhere: hash tables by number of components, written here as forwarders
//! have them, a radix trie and a double array from the Rust registry. All match by components: `/com/ab` is
//! no prefix of `/com/abc`.
//!
//! | here | who has it |
//! |---|---|
//! | [`LinearHash`] | NFD, and most forwarders: from the longest prefix down |
//! | [`TwoStageHash`] | NDN-DPDK: So, Narayanan, Oran, "Named data networking on a router: fast and DoS-resistant forwarding with hash tables", ANCS 2013 |
//! | [`Patricia`] | `patricia_tree`, a radix trie of bytes that takes updates |
//! | [`DoubleArray`] | `yada`, a double array after Darts-clone, without updates |

mod by_depth;
mod double_array;
mod linear;
mod patricia;
mod two_stage;

pub use double_array::DoubleArray;
pub use linear::LinearHash;
pub use patricia::Patricia;
pub use two_stage::TwoStageHash;

use wirespeed_namelookup::Name;

/// Whether a prefix of so many bytes ends where a component of the name does.
fn ends_a_component(name: &Name, length: usize) -> bool {
    name.as_bytes().get(length).is_none_or(|&next| next == b'/')
}

#[cfg(test)]
mod tests {
    use wirespeed_namelookup::generate::{self, Load, Paths, TableSpec, TraceSpec};
    use wirespeed_namelookup::{NameBuf, NameTable, NameUpdate};

    use super::*;
    use crate::names::OfNames;
    use crate::table::Contestant;

    type Rival = Box<dyn Contestant<OfNames, Answer = u32>>;

    fn all(names: &NameTable) -> [(&'static str, Rival); 4] {
        [
            ("linear", Box::new(LinearHash::build(names).unwrap())),
            ("two-stage", Box::new(TwoStageHash::build(names).unwrap())),
            ("patricia", Box::new(Patricia::build(names))),
            ("double array", Box::new(DoubleArray::build(names).unwrap())),
        ]
    }

    #[test]
    fn answers_are_those_of_the_table() {
        let mut fib = generate::table(&TableSpec { names: 3000, results: 9, seed: 1 }).unwrap();
        for with_root in [false, true] {
            if with_root {
                fib.names.insert(Name::ROOT, 7);
            }
            for (load, misses) in [(Load::Average, 0.3), (Load::Heavy, 0.0)] {
                let spec = TraceSpec { load, misses, seed: 2 };
                let trace = generate::trace(&fib.names, Paths::made(), &spec, 3000).unwrap();
                for (which, rival) in all(&fib.names) {
                    for name in trace.names().iter().flat_map(Name::prefixes) {
                        assert_eq!(rival.one(name), fib.names.lookup(name).result, "{which} {name}");
                    }
                }
            }
        }
    }

    #[test]
    fn prefixes_end_with_components() {
        let name = |text: &str| NameBuf::new(text).unwrap();
        let entries =
            [("/com/ab", 1), ("/com/a", 2), ("/com/abc/d/e/f", 3), ("/org", 4), ("/com/ab/c/x/y", 5)];
        let names: NameTable = entries.iter().map(|&(text, result)| (name(text), result)).collect();
        let asked =
            ["/com/abc", "/com/ab/c", "/com/abc/d/e", "/com/abc/d/e/f/g", "/org/a", "/or", "/com", "/"];
        for (which, rival) in all(&names) {
            for text in asked.iter().chain(entries.iter().map(|(text, _)| text)) {
                let name = name(text);
                assert_eq!(rival.one(&name), names.lookup(&name).result, "{which} {name}");
            }
        }
    }

    #[test]
    fn updates_are_applied() {
        let mut fib = generate::table(&TableSpec { names: 2000, results: 9, seed: 3 }).unwrap();
        let before = fib.names.clone();
        let updates: Vec<NameUpdate> =
            generate::Churn::new(&fib.names, &generate::ChurnSpec { results: 9, ..Default::default() })
                .unwrap()
                .take(2000)
                .map(|timed| timed.update)
                .collect();
        for update in &updates {
            fib.names.apply(update);
        }
        let mut linear = LinearHash::build(&before).unwrap();
        let mut patricia = Patricia::build(&before);
        assert!(linear.update(&updates) && patricia.update(&updates));
        for name in updates.iter().map(NameUpdate::name).flat_map(Name::prefixes) {
            assert_eq!(linear.one(name), fib.names.lookup(name).result, "{name}");
            assert_eq!(patricia.one(name), fib.names.lookup(name).result, "{name}");
        }
    }
}
