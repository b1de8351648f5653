//! Training as the examples do it: parts against one machine, accuracy on real data.

#![allow(deprecated)] // `Device::ndarray`: Burn has deprecated the backend, users still ask for it

#[path = "../../examples/reproduce/common/mod.rs"]
mod common;

mod accuracy;
mod distributed;
mod errors;
mod gpu;
mod layers;
mod parts;
mod plans;
mod prelude;
mod report;
mod stored;

use burn::tensor::Device;
use burn_gnn::data::{Dataset, load_dataset};
use burn_gnn_testutil::{Kind, NO_ADAPTER, NO_WGPU, data, skip};

/// A data set; the test is skipped where it is `None`.
fn dataset(name: &str) -> Option<Dataset> {
    Some(load_dataset(data(name)?).unwrap())
}

/// A device of the wgpu backend; the test is skipped where it is `None`.
fn wgpu() -> Option<Device> {
    let device = common::wgpu();
    if device.is_none() {
        skip(Kind::Gpu, if cfg!(feature = "wgpu") { NO_ADAPTER } else { NO_WGPU });
    }
    device
}
