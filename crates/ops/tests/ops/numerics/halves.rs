//! f16 and bf16 results have the bits of f32 results on the same numbers, rounded once, forward and backward.

use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use burn_gnn_graph::RelationStack;
use burn_gnn_ops::*;

use crate::{f64s, numbers};
use burn_gnn_testutil::graphs;

const TYPES: [FloatDType; 2] = [FloatDType::F16, FloatDType::BF16];

type Operator<'a> = &'a dyn Fn(&[Tensor<1>]) -> Tensor<1>;

fn device() -> Device {
    Device::flex().autodiff()
}

fn shaped<const D: usize>(x: &Tensor<1>, shape: [usize; D]) -> Tensor<D> {
    x.clone().reshape(shape)
}

fn flat<const D: usize>(x: Tensor<D>) -> Tensor<1> {
    let n = x.shape().num_elements();
    x.reshape([n])
}

/// Numbers that are exact in `dtype`.
fn operand(seed: u64, n: usize, dtype: FloatDType) -> Vec<f64> {
    f64s(Tensor::<1>::from_data(
        TensorData::new(numbers(seed, n), [n]),
        (&Device::flex(), DType::from(dtype)),
    ))
}

/// Result and gradients of every operand, computed in `dtype` and rounded to `round`.
fn run(
    f: Operator<'_>,
    operands: &[Vec<f64>],
    dtype: FloatDType,
    round: FloatDType,
) -> Vec<Vec<f64>> {
    let leaves: Vec<_> = operands
        .iter()
        .map(|x| {
            Tensor::<1>::from_data(
                TensorData::new(x.clone(), [x.len()]),
                (&device(), DType::from(dtype)),
            )
            .require_grad()
        })
        .collect();
    let y = f(&leaves);
    assert_eq!(y.dtype(), DType::from(dtype));
    let n = y.shape().num_elements();
    // Exact in 16 bits.
    let c = TensorData::new((0..n).map(|i| (i % 15) as f64 - 7.0).collect::<Vec<_>>(), [n]);
    let grads =
        (y.clone() * Tensor::from_data(c, (&device(), DType::from(dtype)))).sum().backward();
    let rounded = |x: Tensor<1>| f64s(x.cast(round));
    std::iter::once(rounded(y))
        .chain(leaves.iter().map(|x| rounded(x.grad(&grads).unwrap())))
        .collect()
}

/// `gradients`: whether to compare bits of gradients; backward must not read a rounded tensor.
fn check(what: &str, lengths: &[usize], gradients: bool, f: Operator<'_>) {
    for dtype in TYPES {
        let operands: Vec<_> =
            lengths.iter().zip(1..).map(|(&n, seed)| operand(seed, n, dtype)).collect();
        let (got, want) =
            (run(f, &operands, dtype, dtype), run(f, &operands, FloatDType::F32, dtype));
        let full = run(f, &operands, FloatDType::F32, FloatDType::F32);
        assert_ne!(full[0], want[0], "{what}, {dtype:?}: nothing was rounded");
        let compared = if gradients { got.len() } else { 1 };
        for i in 0..compared {
            assert_eq!(got[i], want[i], "{what}, {dtype:?}, result and gradients, number {i}");
        }
    }
}

/// Narrow and wide matrices, rows gathered by edge and by pair, either order of multiplication and sum.
#[test]
fn relational() {
    let relation = graphs::random(60, 50, 900, 2.0);
    let types: Vec<u32> = (0..900).map(|e| e * 7 % 5).collect();
    let index = RelationalIndex::new(&relation, &types, 5);
    for (i, o) in [(3, 5), (16, 16), (33, 7), (64, 4), (40, 48)] {
        for (mean, scaled) in [(false, false), (true, false), (true, true)] {
            let index = if mean { index.mean() } else { index.clone() };
            let lengths = [60 * i, 5 * i * o, 900];
            check(
                &format!("{i} x {o}, mean {mean}, scaled {scaled}"),
                &lengths[..if scaled { 3 } else { 2 }],
                true,
                &|x| {
                    let weight = RelationalWeight::Full(shaped(&x[1], [5, i, o]));
                    flat(relational_aggregate(
                        &index,
                        shaped(&x[0], [60, i]),
                        weight,
                        x.get(2).cloned(),
                    ))
                },
            );
        }
    }
    check("blocks", &[60 * 6, 5 * 2 * 3 * 4], true, &|x| {
        let weight = RelationalWeight::BlockDiagonal(shaped(&x[1], [5, 2, 3, 4]));
        flat(relational_aggregate(&index, shaped(&x[0], [60, 6]), weight, None))
    });
}

#[test]
fn typed_products() {
    let segments = Segments::from_lengths(&[30, 0, 257, 13]);
    let types: Vec<u8> = (0..300u32).map(|i| (i * i % 4) as u8).collect();
    let types = TypeIndex::new(&types, 4);
    for (i, o) in [(3, 5), (17, 33), (40, 48), (1, 1)] {
        let lengths = [300 * i, 4 * i * o];
        check(&format!("segments, {i} x {o}"), &lengths, true, &|x| {
            flat(segment_mm(shaped(&x[0], [300, i]), shaped(&x[1], [4, i, o]), &segments))
        });
        check(&format!("types, {i} x {o}"), &lengths, true, &|x| {
            flat(gather_mm(shaped(&x[0], [300, i]), shaped(&x[1], [4, i, o]), &types))
        });
    }
}

/// The gradient reads the rounded result.
#[test]
fn softmax_of_segments() {
    let segments = Segments::from_lengths(&[30, 0, 257, 13]);
    for width in [1, 7, 16] {
        check(&format!("width {width}"), &[300 * width], false, &|x| {
            flat(segment_softmax(shaped(&x[0], [300, width]), &segments))
        });
    }
}

#[test]
fn sums_over_relations() {
    let relations: Vec<_> =
        (0..3u32).map(|r| (0, graphs::random(20, 15, 40 + 30 * r as usize, 1.5))).collect();
    let stack = RelationStack::new(15, &[20], &relations).unwrap();
    for (reduce, cross) in [
        (Reduce::Mean, Reduce::Sum),
        (Reduce::Mean, Reduce::Mean),
        (Reduce::Sum, Reduce::Mean),
        (Reduce::Max, Reduce::Sum),
        (Reduce::Sum, Reduce::Max),
    ] {
        check(&format!("{reduce:?} then {cross:?}"), &[100], true, &|x| {
            flat(multi_gspmm_cross(&stack, vec![shaped(&x[0], [20, 5])], reduce, cross))
        });
        let edges = [40, 70, 100];
        check(
            &format!("{reduce:?} then {cross:?}, with edges"),
            &[100, 200, 350, 500],
            true,
            &|x| {
                let edges = edges.iter().zip(&x[1..]).map(|(&n, w)| shaped(w, [n, 5])).collect();
                let y: Tensor<2> = multi_gspmm_binary_cross(
                    &stack,
                    BinaryOp::Mul,
                    vec![shaped(&x[0], [20, 5])],
                    edges,
                    reduce,
                    cross,
                );
                flat(y)
            },
        );
    }
}

/// The number rounded to f16.
fn halves(x: Vec<f64>) -> Tensor<1> {
    let n = x.len();
    Tensor::from_data(TensorData::new(x, [n]), (&device(), DType::F16))
}

/// Every term is below the smallest f16, their sum is not.
#[test]
fn gradients_of_scores_are_summed_before_they_are_rounded() {
    const N: usize = 4096;
    let star = graphs::relation(N, 1, &(0..N as u32).map(|u| (u, 0)).collect::<Vec<_>>());
    let even = |u: usize| u.is_multiple_of(2);
    let z = halves((0..N).map(|u| f64::from(u8::from(even(u)))).collect()).reshape([N, 1, 1]);
    let a_src =
        halves((0..N).map(|u| if even(u) { 1e-3 } else { -1e-3 }).collect()).reshape([N, 1]);
    let a_dst = halves(vec![0.0]).reshape([1, 1]).require_grad();
    let y = gat_attention(&star, z, a_src, a_dst.clone(), &GatOptions::default());
    let small = 2f64.powi(-13);
    let grads = (y * halves(vec![small]).reshape([1, 1, 1])).sum().backward();
    // α (z - mean z) times the derivative of leaky_relu, 1 for one half of the edges and 0.2 for the other.
    let want = small * 0.5 * (0.5 - 0.2 * 0.5);
    let got = f64s(a_dst.grad(&grads).unwrap())[0];
    assert!((got / want - 1.0).abs() < 0.02, "{got:e} against {want:e}");
}

#[test]
fn gradients_behind_an_activation_are_summed_before_they_are_rounded() {
    const N: usize = 4096;
    let spread = graphs::relation(1, N, &(0..N as u32).map(|v| (0, v)).collect::<Vec<_>>());
    let leaves =
        || (halves(vec![-1.0]).reshape([1, 1]).require_grad(), halves(vec![0.0]).require_grad());
    let least = 2f64.powi(-24);
    let options = AggregateOptions { activation: Activation::LeakyRelu(0.3), ..Default::default() };
    let want = 0.3 * least * N as f64;
    let near = |what: &str, got: Tensor<1>| {
        let got = f64s(got)[0];
        assert!((got / want - 1.0).abs() < 0.02, "{what}: {got:e} against {want:e}");
    };
    let (x, bias) = leaves();
    let y = weighted_aggregate(&spread, x.clone(), None, Some(bias.clone()), &options);
    let grads = (y * halves(vec![least; N]).reshape([N, 1])).sum().backward();
    near("x", flat(x.grad(&grads).unwrap()));
    near("bias", bias.grad(&grads).unwrap());
}

/// A factor makes the source row too small for f16, and the gradient scales it back.
#[test]
fn gradients_of_weights_are_scaled_before_they_are_rounded() {
    let relation = graphs::relation(1, 1, &[(0, 0)]);
    let x = halves(vec![2f64.powi(-20)]).reshape([1, 1]);
    let weight = halves(vec![1.0]).require_grad();
    let options =
        AggregateOptions { source: Some(DegreeScale::new(&[1 << 16], -0.5)), ..Default::default() };
    let y = weighted_aggregate(&relation, x, Some(weight.clone()), None, &options);
    let grads = (y * halves(vec![1024.0]).reshape([1, 1])).sum().backward();
    assert_eq!(f64s(weight.grad(&grads).unwrap()), [2f64.powi(-18)]);
}
