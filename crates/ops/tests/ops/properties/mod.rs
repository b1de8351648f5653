//! Properties that hold for all operators.

pub(crate) mod all_operators;
mod bits;
mod finite_differences;
mod instruction_sets;
mod invariance;
mod random_graphs;
mod stars;
mod stress;
