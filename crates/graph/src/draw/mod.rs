//! Draws small graphs as SVG, web pages and Graphviz text.

mod dot;
pub(crate) mod drawing;
mod layout;
mod page;
mod svg;
#[cfg(test)]
mod tests;
