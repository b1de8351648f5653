//! What a device refuses.

use burn_gnn_cube::{CubeError, check_device};

use crate::support::*;

#[test]
fn a_graph_that_fits_is_taken() {
    assert_eq!(check_device(&star(10), &device()), Ok(()));
}

#[test]
fn the_text_names_bytes_and_limit() {
    let error = CubeError::TooLarge { what: "edge ids", entries: 3 << 30, bytes: 12 << 30, limit: 4 << 30, device: "Wgpu".into() };
    let text = error.to_string();
    for part in ["edge ids", "12884901888 bytes", "3221225472 entries", "4294967296 bytes", "Wgpu"] {
        assert!(text.contains(part), "{text}");
    }
}
