//! Columns on the host: typed by their cells, narrowed to f32, moved to a device.

pub(crate) mod data_column;
pub(crate) mod host_column;
pub(crate) mod interner;
pub(crate) mod narrow;
