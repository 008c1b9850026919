//! The tuples by name. This list is the only one in the project, like the list of engines in
//! [`engine`](crate::engine).

use std::fmt;

use wirespeed_classify::Tuple;

tuples! {
    /// [`Ipv4Tuple`](wirespeed_classify::Ipv4Tuple): the 5-tuple of IPv4.
    Ipv4: wirespeed_classify::Ipv4Tuple,
    /// [`Ipv6Tuple`](wirespeed_classify::Ipv6Tuple): the 5-tuple of IPv6.
    Ipv6: wirespeed_classify::Ipv6Tuple,
    /// [`OpenFlowTuple`](wirespeed_classify::OpenFlowTuple): the 12 fields of OpenFlow.
    OpenFlow: wirespeed_classify::OpenFlowTuple,
    /// [`OpenFlow13Tuple`](wirespeed_classify::OpenFlow13Tuple): the fields of OpenFlow 1.3. Rules in words
    /// have the names of its fields; files of flows are not read into it.
    OpenFlow13: wirespeed_classify::OpenFlow13Tuple,
}

/// A function over tuple types, called for a tuple whose name is known at run time.
pub trait TupleVisitor {
    /// The type of the function's result.
    type Output;

    /// Calls the function.
    fn visit<T: RuleTuple>(self) -> Self::Output;
}

impl TupleName {
    /// The tuple with this name. `None` if there is none.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|tuple| tuple.as_str() == name)
    }
}

impl AsRef<str> for TupleName {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for TupleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Generates [`TupleName`] and the visit from the list of variants and types.
macro_rules! tuples {
    ($($(#[$doc:meta])* $variant:ident: $tuple:ty,)+) => {
        /// A type of tuple that has engines.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum TupleName {
            $($(#[$doc])* $variant,)+
        }

        impl TupleName {
            /// All tuples.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name that users choose it by.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => <$tuple as Tuple>::NAME,)+
                }
            }
        }

        /// Visits a tuple.
        pub fn visit<V: TupleVisitor>(tuple: TupleName, visitor: V) -> V::Output {
            match tuple {
                $(TupleName::$variant => visitor.visit::<$tuple>(),)+
            }
        }
    };
}
use tuples;

use crate::engine::RuleTuple;

#[cfg(test)]
mod tests {
    use super::*;

    struct Name;

    impl TupleVisitor for Name {
        type Output = &'static str;

        fn visit<T: RuleTuple>(self) -> &'static str {
            T::NAME
        }
    }

    #[test]
    fn every_name_is_found_again() {
        for &tuple in TupleName::ALL {
            assert_eq!(visit(tuple, Name), tuple.as_str());
            assert_eq!(TupleName::of(tuple.as_str()), Some(tuple));
        }
        assert_eq!(TupleName::of("ipv5"), None);
    }
}
