//! Draws small graphs.

mod dot;
pub(crate) mod drawing;
mod layout;
mod page;
mod svg;
#[cfg(test)]
mod tests;
