//! Sizes beyond 32 bits are errors before memory is allocated.

use burn::tensor::{Device, Tensor};
use burn_gnn_ops::*;
use burn_gnn_testutil::graphs;

const HUGE: usize = 1 << 40;

fn zeros<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    Tensor::zeros(shape, &Device::flex())
}

#[track_caller]
fn too_wide<const D: usize>(result: Result<Tensor<D>, OpsError>, op: &str, shape: &[usize]) {
    let text = result.err().map(|e| e.to_string());
    let want = format!(
        "{op}: a row of feature shape {shape:?} (first axis left out) must have at most 4294967295 entries; split the features"
    );
    assert_eq!(text, Some(want));
}

/// Matrices without rows give result rows of any length.
#[test]
fn typed_products() {
    let none = Segments::from_lengths(&[]);
    too_wide(try_segment_mm(zeros([0, HUGE]), zeros([0, HUGE, 1]), &none), "segment_mm", &[HUGE]);
    too_wide(
        try_segment_mm(zeros([2, 0]), zeros([1, 0, HUGE]), &Segments::from_lengths(&[2])),
        "segment_mm",
        &[HUGE],
    );
    too_wide(
        try_gather_mm(zeros([2, 0]), zeros([1, 0, HUGE]), &TypeIndex::new(&[0u8; 2], 1)),
        "gather_mm",
        &[HUGE],
    );
}

#[test]
fn relational() {
    const OP: &str = "relational_aggregate";
    let index =
        |relations| RelationalIndex::new(&graphs::relation(2, 2, &[]), &[0u8; 0], relations);
    let full = |shape| RelationalWeight::Full(zeros(shape));
    too_wide(
        try_relational_aggregate(&index(1), zeros([2, 0]), full([1, 0, HUGE]), None),
        OP,
        &[HUGE],
    );
    let none = RelationalIndex::new(&graphs::relation(0, 2, &[]), &[0u8; 0], 0);
    too_wide(
        try_relational_aggregate(&none, zeros([0, HUGE]), full([0, HUGE, 1]), None),
        OP,
        &[HUGE],
    );
    let basis = RelationalWeight::Basis { bases: zeros([0, 0, HUGE]), coeff: zeros([1, 0]) };
    too_wide(try_relational_aggregate(&index(1), zeros([2, 0]), basis, None), OP, &[HUGE]);
    let blocks = |shape| RelationalWeight::BlockDiagonal(zeros(shape));
    too_wide(
        try_relational_aggregate(&index(1), zeros([2, 0]), blocks([1, 1 << 20, 0, 1 << 20]), None),
        OP,
        &[1 << 20, 1 << 20],
    );
    too_wide(
        try_relational_aggregate(&index(0), zeros([2, 0]), blocks([0, 1 << 20, 1 << 20, 1]), None),
        OP,
        &[1 << 20, 1 << 20],
    );
}

#[test]
fn aggregates_and_segments() {
    let none = graphs::relation(0, 2, &[]);
    too_wide(
        try_weighted_aggregate(&none, zeros([0, HUGE]), None, None, &Default::default()),
        "weighted_aggregate",
        &[HUGE],
    );
    let segments = Segments::from_lengths(&[0]);
    let wide = || zeros([0, 1 << 20, 1 << 20]);
    too_wide(try_segment_softmax(wide(), &segments), "segment_softmax", &[1 << 20, 1 << 20]);
    too_wide(
        try_segment_reduce(wide(), &segments, SegmentReduce::Max),
        "segment_reduce",
        &[1 << 20, 1 << 20],
    );
}

#[test]
fn numbers_of_types() {
    let edges = graphs::relation(1, 1, &[]);
    for n in [u32::MAX as usize, usize::MAX] {
        let error = RelationalIndex::try_new(&edges, &[0u8; 0], n).unwrap_err().to_string();
        assert!(
            error.starts_with("relational_index: `num_relations` must be at most 4294967294, got "),
            "{error}"
        );
        let error = TypeIndex::try_new(&[0u8; 0], n).unwrap_err().to_string();
        assert!(
            error.starts_with("type_index: `num_types` must be at most 4294967294, got "),
            "{error}"
        );
    }
}
