//! Engines that are each wrong in one way, and the tests of the suite that see it.
