//! DIR-24-8: one direct table for the first 24 bits, chunks of 256 entries for what is longer.
