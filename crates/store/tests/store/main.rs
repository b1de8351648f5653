//! Graphs and features in files, as a program uses them.

mod build;
mod partition;
#[cfg(feature = "sampling")]
mod ranks;
#[cfg(feature = "sampling")]
mod renumber;
mod resume;
mod rows;
#[cfg(feature = "sampling")]
mod sampling;
