//! Training as the examples do it: parts against one machine, accuracy on real data.

#![allow(deprecated)] // `Device::ndarray`: Burn has deprecated the backend, users still ask for it

#[path = "../../examples/common/mod.rs"]
mod common;

mod accuracy;
mod gpu;
mod layers;
mod parts;
mod report;

use std::io::Write;
use std::path::PathBuf;

use burn::tensor::Device;
use burn_gnn::graph::{Dataset, load_dataset};

/// A set of `../shared/data`, or `None` with a line that says so.
fn shared(name: &str) -> Option<Dataset> {
    let dir = PathBuf::from("../../shared/data").join(name);
    if !dir.exists() {
        // Past the capture of passing tests.
        let _ = writeln!(std::io::stderr(), "skipped: no data set ../shared/data/{name}");
        return None;
    }
    Some(load_dataset(dir).unwrap())
}

/// A device of the wgpu backend, or `None` with a line that says so.
fn wgpu() -> Option<Device> {
    let device = common::wgpu();
    if device.is_none() {
        let _ = writeln!(std::io::stderr(), "skipped: built without the feature `wgpu`, or no adapter here");
    }
    device
}
