//! 16-bit results are those of 32 bits, rounded once.

use burn::backend::{Backend, DTypeUsage};
use burn::tensor::{DType, Shape, TensorData};
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_cube::*;
use burn_gnn_graph::{Relation, Stream};
use burn_gnn_plan::*;
use burn_gnn_testutil::{Kind, NO_F16, skip};

use crate::dropout::dropout;
use crate::support::*;

/// The types that the device calculates with.
fn narrow() -> Vec<DType> {
    let calculates = |dtype: &DType| CubeBackend::dtype_usage(&device(), *dtype).contains(DTypeUsage::Arithmetic);
    let found: Vec<DType> = [DType::F16, DType::BF16].into_iter().filter(calculates).collect();
    if found.is_empty() {
        skip(Kind::F16, NO_F16);
    }
    found
}

fn rounded(values: &[f64], dtype: DType) -> Vec<f64> {
    let data = TensorData::new(values.to_vec(), [values.len()]).convert_dtype(dtype);
    data.convert_dtype(DType::F64).try_to_vec().unwrap()
}

/// `run` gets a maker of tensors, whose numbers fit 8 bits.
fn check(what: &str, run: impl Fn(&dyn Fn(usize, &[usize]) -> CubeTensor) -> Vec<CubeTensor>) {
    for dtype in narrow() {
        let make = |dtype: DType| {
            move |seed: usize, shape: &[usize]| {
                let numbers = Numbers::new(seed as u64).divisors(size(shape));
                tensor_of(&numbers.iter().map(|x| (x * 32.0).round() / 32.0).collect::<Vec<_>>(), shape, dtype)
            }
        };
        let (wide, got) = (run(&make(DType::F32)), run(&make(dtype)));
        for (i, (wide, got)) in wide.iter().zip(&got).enumerate() {
            let what = format!("{what}, result {i}, {dtype:?}");
            if got.dtype == dtype {
                assert_eq!(read(got), rounded(&read(wide), dtype), "{what}");
            } else {
                assert_eq!((got.dtype, bytes(got)), (DType::F32, bytes(wide)), "{what}");
            }
        }
    }
}

fn graph() -> Relation {
    random(20, 15, 1500, 5)
}

#[test]
fn messages() {
    let Some(()) = adapter() else { return };
    let relation = graph();
    for op in [BinaryOp::Mul, BinaryOp::Div, BinaryOp::Add] {
        for reduce in [Reduce::Sum, Reduce::Mean] {
            let call = GspmmPlan::new(&relation, op, reduce, &[2, 8], &[2, 1]).unwrap();
            check("gspmm", |x| {
                let (l, r, g) = (x(1, &[20, 2, 8]), x(2, &[1500, 2, 1]), x(3, &[15, 2, 8]));
                let grad = |side| gspmm_grad(&call, side, g.clone(), None, Some(l.clone()), Some(r.clone()));
                vec![gspmm(&call, Some(l.clone()), Some(r.clone())), grad(Side::Lhs), grad(Side::Rhs)]
            });
        }
    }
    let call = GspmmPlan::new(&relation, BinaryOp::CopyLhs, Reduce::Max, &[5], &[5]).unwrap();
    check("max", |x| {
        let (out, arg) = gspmm_select(&call, Some(x(1, &[20, 5])), None);
        vec![out, gspmm_grad(&call, Side::Lhs, x(2, &[15, 5]), Some(arg), None, None)]
    });
    let call = GsddmmPlan::new(&relation, SddmmOp::Dot, [Target::Src, Target::Dst], [&[2, 40], &[2, 40]]).unwrap();
    check("dot", |x| {
        let (l, r, g) = (x(1, &[20, 2, 40]), x(2, &[15, 2, 40]), x(3, &[1500, 2, 1]));
        let grad = |side| gsddmm_grad(&call, side, g.clone(), Some(l.clone()), Some(r.clone()));
        vec![gsddmm(&call, Some(l.clone()), Some(r.clone())), grad(Side::Lhs), grad(Side::Rhs)]
    });
}

#[test]
fn softmax_and_attention() {
    let Some(()) = adapter() else { return };
    let relation = graph();
    check("softmax", |x| {
        let (y, g) = (edge_softmax(&relation, x(1, &[1500, 3])), x(2, &[1500, 3]));
        vec![y, edge_softmax_grad(&relation, x(3, &[1500, 3]), g)]
    });
    let stream = Stream::new(1, "halves", 2);
    let call = Attention { relation: &relation, heads: 2, dim: 8, slope: Some(0.25), dropout: Some(dropout(0.5, &stream, None)) };
    check("attention", |x| {
        let (z, scores) = (x(1, &[20, 2, 8]), AttentionScores::Ends(x(2, &[20, 2]), x(3, &[15, 2])));
        let (out, stats) = attention(&call, z.clone(), scores.clone());
        // A result of its own type each time, so that both runs read the same numbers.
        let kept = AttentionKept { out: x(4, &[15, 2, 8]), stats: stats.clone(), z, scores };
        let wants = AttentionWants { z: true, first: true, second: true };
        let (dz, first, second) = attention_grad(&call, x(5, &[15, 2, 8]), kept, wants);
        vec![out, stats, dz, first, second]
    });
}

#[test]
fn products() {
    let Some(()) = adapter() else { return };
    let index = TypedRows::upload(&[0, 70, 70, 100], None, &device());
    check("typed", |x| {
        let (a, b, g) = (x(1, &[100, 20]), x(2, &[3, 20, 9]), x(3, &[100, 9]));
        vec![
            typed_mm(a.clone(), b.clone(), &index, false),
            typed_mm(g.clone(), b, &index, true),
            typed_mm_grad_b(g, a, &index, Shape::from([3, 20, 9])),
        ]
    });
    let relation = graph();
    let types: Vec<u32> = (0..1500).map(|e| e % 3).collect();
    let rows = RelationalRows::new(&relation, &types, 3, true);
    check("relational", |x| {
        let (w, n, g) = (x(2, &[3, 6, 5]), x(3, &[1500]), x(4, &[15, 5]));
        let input = x(1, &[20, 6]);
        vec![
            relational(input.clone(), w.clone(), Some(n.clone()), &rows),
            relational_grad_x(g.clone(), w.clone(), Some(n.clone()), &rows),
            relational_grad_weight(g.clone(), input.clone(), Some(n), &rows, Shape::from([3, 6, 5])),
            relational_grad_norm(g, input, w, &rows),
        ]
    });
}

#[test]
fn the_rest() {
    let Some(()) = adapter() else { return };
    let relation = graph();
    check("aggregate", |x| {
        let call =
            Aggregate { relation: &relation, scale: Some(x(1, &[20])), after: Some(x(2, &[15])), activation: Activation::LeakyRelu(0.25) };
        let (input, weight, g, out) = (x(3, &[20, 8]), x(4, &[1500]), x(5, &[15, 8]), x(6, &[15, 8]));
        let result = aggregate(&call, input.clone(), Some(weight.clone()), Some(x(7, &[8])));
        let (dx, db) = aggregate_grad(&call, g.clone(), Some(out.clone()), Some(weight), true, true);
        vec![result, dx.unwrap(), db.unwrap(), aggregate_grad_weight(&call, g, Some(out), input)]
    });
    let rows = LossRows::new(&[3, 1, 3], &[0, 6, 2], 5).unwrap();
    check("cross entropy", |x| {
        let logits = x(1, &[5, 7]);
        let (loss, stats) = cross_entropy(logits.clone(), &rows, 0.5);
        vec![loss, cross_entropy_grad(x(2, &[1]), stats.clone(), logits, &rows, 0.5), stats]
    });
    check("dropout", |x| vec![dropout_rows(x(1, &[9, 7]), &dropout(0.5, &Stream::new(1, "a", 2), None))]);
    let form = AdamForm::AdamW { keep: 0.5, first: 0.5, second: 0.25, epsilon: 0.125 };
    let factors = AdamFactors { lr: 0.25, beta: [0.75, 0.5], rest: [0.25, 0.5], penalty: None, form };
    check("adam", |x| {
        let second = dropout_rows(x(4, &[33]), &Dropout { key: [0; 2], threshold: 1 << 32, scale: 1.0, ids: None });
        let (p, m, v) = adam_step(x(1, &[33]), x(2, &[33]), [x(3, &[33]), second], &factors);
        vec![p, m, v]
    });
}
