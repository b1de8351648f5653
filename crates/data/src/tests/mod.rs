//! Tests that use several readers.

mod faults;
mod migration;
