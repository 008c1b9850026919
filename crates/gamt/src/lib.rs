//! GAMT: a multi-bit trie encoded as a state-jump table (Li et al., "GAMT: A Fast and Scalable IP Lookup Engine for GPU-based
//! Software Routers", ANCS 2013), with the update machinery of its control plane, and its mirror on the CPU, MAMT.

pub mod strides;
