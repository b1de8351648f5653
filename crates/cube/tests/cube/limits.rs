//! Limits of device memory.

use burn::backend::DispatchDevice;
use burn::tensor::Device;
use burn_gnn_cube::{CubeError, check_device, edges_to_device};
use burn_gnn_graph::Graph;

use crate::support::*;
use burn_gnn_testutil::graphs::star;

#[test]
fn a_graph_that_fits_is_accepted() {
    let Some(()) = adapter() else { return };
    assert_eq!(check_device(&star(10), &device()), Ok(()));
}

/// The bytes of 5 nodes and 7 edges that are sorted by destination: CSC without edge ids, CSR with edge ids, and endpoints.
#[test]
fn edges_to_device_returns_the_bytes() {
    let Some(()) = adapter() else { return };
    let (src, dst) = (vec![1, 2, 3, 4, 0, 2, 1], vec![0, 0, 0, 1, 1, 3, 4]);
    let g = Graph::homogeneous(5, src, dst).unwrap();
    let cube = Device::new(DispatchDevice::Cube(device()));
    for _ in 0..2 {
        assert_eq!(edges_to_device(&g, &cube), Ok(4 * ((6 + 7) + (6 + 7 + 7) + 2 * 7)));
    }
    assert_eq!(edges_to_device(&g, &Device::flex()), Ok(0));
}

#[test]
fn the_error_names_bytes_and_limit() {
    let error = CubeError::TooLarge {
        what: "edge ids",
        entries: 3 << 30,
        bytes: 12 << 30,
        limit: 4 << 30,
        device: "Wgpu".into(),
    };
    let text = error.to_string();
    for part in ["edge ids", "12884901888 bytes", "3221225472 entries", "4294967296 bytes", "Wgpu"]
    {
        assert!(text.contains(part), "{text}");
    }
}
