//! Compiles loops for several instruction sets and unrolls them.

pub(crate) mod instruction_sets;
pub(crate) mod unroll;
