//! Tests training as in the examples: parts compared with a single machine, accuracy on real data.

#[path = "../../examples/reproduce/src/common/mod.rs"]
mod common;

mod accuracy;
mod distributed;
mod errors;
mod gpu;
mod layers;
mod links;
mod no_future;
mod parts;
mod plans;
mod prelude;
mod report;
mod sparse_adam;
mod stored;
mod stored_types;

use burn::tensor::Device;
use burn_gnn::data::{Dataset, load_dataset};
use burn_gnn_testutil::{Kind, NO_ADAPTER, NO_GPU_BACKEND, data, skip};

/// A data set; if it is `None`, the test is skipped.
fn dataset(name: &str) -> Option<Dataset> {
    Some(load_dataset(data(name)?).unwrap())
}

/// A GPU or software Vulkan; if it is `None`, the test is skipped.
fn gpu() -> Option<Device> {
    let device = common::cuda().or_else(common::wgpu);
    if device.is_none() {
        let built = cfg!(any(feature = "wgpu", feature = "cuda"));
        skip(Kind::Gpu, if built { NO_ADAPTER } else { NO_GPU_BACKEND });
    }
    device
}
