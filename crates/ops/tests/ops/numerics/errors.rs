//! One test per error variant, from invalid input. Panics have the same text.

use burn::tensor::{DType, Device, Tensor};
use burn_gnn_ops::*;
use burn_gnn_testutil::graphs;

fn zeros<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    Tensor::zeros(shape, &Device::flex())
}

fn mul<const L: usize, const R: usize, const O: usize>(lhs: Tensor<L>, rhs: Tensor<R>) -> String {
    let error =
        try_gspmm::<L, R, O>(&graphs::small(), BinaryOp::Mul, Reduce::Sum, lhs, rhs).unwrap_err();
    error.to_string()
}

#[test]
fn rows() {
    let text = mul::<2, 2, 2>(zeros([4, 3]), zeros([8, 3]));
    assert_eq!(
        text,
        "gspmm: `lhs` must have 5 rows (one per source node of the relation), got 4; give as many rows"
    );
    let text = mul::<2, 2, 2>(zeros([5, 3]), zeros([5, 3]));
    assert_eq!(
        text,
        "gspmm: `rhs` must have 8 rows (one per edge of the relation), got 5; give as many rows"
    );
    let error = try_gspmm_copy(&graphs::small(), Side::Rhs, Reduce::Max, zeros([5])).unwrap_err();
    assert!(matches!(
        error,
        OpsError::Plan(PlanError::Rows { arg: "rhs", expected: 8, actual: 5, .. })
    ));
}

#[test]
fn broadcast() {
    let text = mul::<3, 2, 3>(zeros([5, 2, 3]), zeros([8, 2]));
    let want = "gspmm: feature shapes [2, 3] of `lhs` and [2] of `rhs` (first axis left out) do not broadcast: \
                aligned at the end, axes must be equal or 1; reshape one of them";
    assert_eq!(text, want);
}

#[test]
fn too_wide() {
    // 2^40 features and no rows: the check runs before memory is allocated.
    let (lhs, rhs) = (zeros([0, 1 << 20, 1]), zeros([0, 1, 1 << 20]));
    let none = graphs::relation(0, 2, &[]);
    let error = try_gspmm::<3, 3, 3>(&none, BinaryOp::Mul, Reduce::Sum, lhs, rhs).unwrap_err();
    let want = "gspmm: a row of feature shape [1048576, 1048576] (first axis left out) must have at most 4294967295 entries; \
                split the features";
    assert_eq!(error.to_string(), want);
    // 2^30 features without rows are allowed.
    let (lhs, rhs) = (zeros([0, 1 << 15, 1]), zeros([0, 1, 1 << 15]));
    for reduce in Reduce::ALL {
        let y = try_gspmm::<3, 3, 3>(
            &graphs::relation(0, 0, &[]),
            BinaryOp::Div,
            reduce,
            lhs.clone(),
            rhs.clone(),
        )
        .unwrap();
        assert_eq!(y.dims(), [0, 1 << 15, 1 << 15]);
    }
}

#[test]
fn rank() {
    let text = mul::<2, 1, 3>(zeros([5, 2]), zeros([8]));
    assert_eq!(
        text,
        "gspmm: the result has rank 2, the output type has rank 3; change the rank parameter of the output"
    );
}

#[test]
fn dtype() {
    let text = mul::<1, 1, 1>(zeros([5]), Tensor::zeros([8], (&Device::flex(), DType::F64)));
    assert_eq!(text, "gspmm: `lhs` is F32 and `rhs` is F64; cast one of them");
}

#[test]
fn device() {
    let rhs = Tensor::<1>::zeros([8], &burn_gnn_testutil::other_device());
    let error = try_gspmm::<1, 1, 1>(&graphs::small(), BinaryOp::Add, Reduce::Sum, zeros([5]), rhs)
        .unwrap_err();
    assert!(matches!(error, OpsError::Device { .. }), "{error}");
    assert!(error.to_string().ends_with("move one of them"), "{error}");
}

#[test]
fn probability() {
    let stream = Stream::new(0, "d", 0);
    for value in [1.0, -0.1, f64::NAN, 2.0] {
        let error = try_dropout(zeros([2, 2]), value, stream, None).unwrap_err();
        assert!(
            matches!(error, OpsError::Plan(PlanError::Probability { arg: "prob", .. })),
            "{error}"
        );
    }
    let text = try_dropout(zeros([2, 2]), 1.5, stream, None).unwrap_err().to_string();
    assert_eq!(text, "dropout: `prob` must lie in [0, 1), got 1.5; give 0 for no dropout");
    let text = try_dropout(zeros([2, 2]), 0.5, stream, Some([1].into())).unwrap_err().to_string();
    assert_eq!(
        text,
        "dropout: `ids` must have 2 rows (one per row of `x`), got 1; give as many rows"
    );
}

#[test]
fn a_copy_does_not_look_at_the_other_operand() {
    let wrong = Tensor::<1>::zeros([77], (&burn_gnn_testutil::other_device(), DType::F64));
    let y: Tensor<2> =
        gspmm(&graphs::small(), BinaryOp::CopyLhs, Reduce::Sum, zeros([5, 2]), wrong);
    assert_eq!(y.dims(), [4, 2]);
}

#[test]
#[should_panic(
    expected = "gspmm: `lhs` must have 5 rows (one per source node of the relation), got 4"
)]
fn the_panic_says_the_same() {
    let _ = copy_u_sum(&graphs::small(), zeros([4, 1]));
}

#[test]
fn the_panic_points_at_the_caller() {
    let place = std::sync::Arc::new(std::sync::Mutex::new(None));
    let seen = place.clone();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload_as_str().is_some_and(|s| s.contains("got 3")) {
            *seen.lock().unwrap() = info.location().map(|l| l.file().to_owned());
        }
    }));
    let caught = std::panic::catch_unwind(|| copy_u_mean(&graphs::small(), zeros([3, 1])));
    std::panic::set_hook(before);
    assert!(caught.is_err());
    assert!(
        place.lock().unwrap().as_deref().is_some_and(|f| f.ends_with("errors.rs")),
        "{place:?}"
    );
}
