//! Columns on the host: type inference from cells, conversion to f32, copies to a device.

pub(crate) mod data_column;
pub(crate) mod host_column;
pub(crate) mod interner;
pub(crate) mod narrow;
