//! Writes the parts of a graph and their metadata.

mod attributes;
mod parts;
mod replace;
mod tensors;
