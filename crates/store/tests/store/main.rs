//! Graphs and features in files, through the public API.

mod build;
#[cfg(feature = "sampling")]
mod dropped_edges;
mod faults;
#[cfg(unix)]
mod opening;
mod partition;
#[cfg(feature = "sampling")]
mod ranks;
#[cfg(feature = "sampling")]
mod renumber;
mod resume;
mod rows;
#[cfg(feature = "sampling")]
mod sampling;
#[cfg(feature = "sampling")]
mod sampling_damage;
