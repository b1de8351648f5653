//! 16-bit results equal 32-bit results, rounded once.

use burn::backend::{Backend, DTypeUsage};
use burn::tensor::{DType, TensorData};
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_cube::*;
use burn_gnn_graph::{Relation, Stream};
use burn_gnn_plan::*;
use burn_gnn_testutil::{Kind, NO_F16, skip};

use crate::operators::attention::attention_plan;
use crate::operators::dropout::dropout;
use crate::operators::edge_softmax::softmax;
use crate::support::*;
use burn_gnn_testutil::graphs::with_hub;

/// The 16-bit types that the device supports.
fn narrow() -> Vec<DType> {
    let calculates = |dtype: &DType| {
        CubeBackend::dtype_usage(&device(), *dtype).contains(DTypeUsage::Arithmetic)
    };
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

/// Calls `run` with a constructor of tensors, whose numbers have 8 significant bits.
fn check(what: &str, run: impl Fn(&dyn Fn(usize, &[usize]) -> CubeTensor) -> Vec<CubeTensor>) {
    for dtype in narrow() {
        let make = |dtype: DType| {
            move |seed: usize, shape: &[usize]| {
                let numbers = Numbers::new(seed as u64).divisors(size(shape));
                tensor_of(
                    &numbers.iter().map(|x| (x * 32.0).round() / 32.0).collect::<Vec<_>>(),
                    shape,
                    dtype,
                )
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
    with_hub(20, 15, 1500, 5)
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
                let grad = |side| {
                    gspmm_grad(&call, side, g.clone(), None, Some(l.clone()), Some(r.clone()))
                };
                vec![
                    gspmm(&call, Some(l.clone()), Some(r.clone())),
                    grad(Side::Lhs),
                    grad(Side::Rhs),
                ]
            });
        }
    }
    let call = GspmmPlan::new(&relation, BinaryOp::CopyLhs, Reduce::Max, &[5], &[5]).unwrap();
    check("max", |x| {
        let (out, arg) = gspmm_select(&call, Some(x(1, &[20, 5])), None);
        vec![out, gspmm_grad(&call, Side::Lhs, x(2, &[15, 5]), Some(arg), None, None)]
    });
    let call =
        GsddmmPlan::new(&relation, SddmmOp::Dot, [Target::Src, Target::Dst], [&[2, 40], &[2, 40]])
            .unwrap();
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
    let plan = softmax(&relation, &[3]);
    check("softmax", |x| {
        let (y, g) = (edge_softmax(&plan, x(1, &[1500, 3])), x(2, &[1500, 3]));
        vec![y, edge_softmax_grad(&plan, x(3, &[1500, 3]), g)]
    });
    let stream = Stream::new(1, "halves", 2);
    let dropped = KeyedDropout { prob: 0.5, stream, ids: None };
    let plan = attention_plan(&relation, 2, 8, Some(0.25), Some(dropped));
    check("attention", |x| {
        let (z, scores) =
            (x(1, &[20, 2, 8]), AttentionScores::Nodes(x(2, &[20, 2]), x(3, &[15, 2])));
        let (out, stats) = attention(&plan, z.clone(), scores.clone());
        // The result is rounded to 16 bits in both runs, so that both gradients read the same numbers.
        let kept = AttentionKept { out: x(4, &[15, 2, 8]), stats: stats.clone(), z, scores };
        let wants = AttentionGradMask { z: true, first: true, second: true };
        let (dz, first, second) = attention_grad(&plan, x(5, &[15, 2, 8]), kept, wants);
        vec![out, stats, dz, first, second]
    });
}

#[test]
fn products() {
    let Some(()) = adapter() else { return };
    let plan = TypedPlan::segments(&Segments::from_offsets(&[0, 70, 70, 100]), 20, 9).unwrap();
    check("typed", |x| {
        let (a, b, g) = (x(1, &[100, 20]), x(2, &[3, 20, 9]), x(3, &[100, 9]));
        vec![
            typed_mm(&plan, a.clone(), b.clone(), false),
            typed_mm(&plan, g.clone(), b, true),
            typed_mm_grad_b(&plan, g, a),
        ]
    });
    let relation = graph();
    let types: Vec<u32> = (0..1500).map(|e| e % 3).collect();
    let plan =
        RelationalPlan::new(&RelationalIndex::new(&relation, &types, 3).mean(), &[6, 5]).unwrap();
    check("relational", |x| {
        let (w, n, g) = (x(2, &[3, 6, 5]), x(3, &[1500]), x(4, &[15, 5]));
        let input = x(1, &[20, 6]);
        vec![
            relational(&plan, input.clone(), w.clone(), Some(n.clone())),
            relational_grad_x(&plan, g.clone(), w.clone(), Some(n.clone())),
            relational_grad_weight(&plan, g.clone(), input.clone(), Some(n)),
            relational_grad_norm(&plan, g, input, w),
        ]
    });
}

#[test]
fn dense_operators_and_rows() {
    let Some(()) = adapter() else { return };
    let relation = graph();
    let scale = |n: u32| Some(DegreeScale::new(&(0..n).collect::<Vec<_>>(), -0.5));
    let options = AggregateOptions {
        source: scale(20),
        destination: scale(15),
        activation: Activation::LeakyRelu(0.25),
    };
    let plan = AggregatePlan::new(&relation, 8, options, true, true).unwrap();
    check("aggregate", |x| {
        let (input, weight, g, out) =
            (x(3, &[20, 8]), x(4, &[1500]), x(5, &[15, 8]), x(6, &[15, 8]));
        let result = aggregate(&plan, input.clone(), Some(weight.clone()), Some(x(7, &[8])));
        let (dx, db) =
            aggregate_grad(&plan, g.clone(), Some(out.clone()), Some(weight), true, true);
        vec![result, dx.unwrap(), db.unwrap(), aggregate_grad_weight(&plan, g, Some(out), input)]
    });
    let plan =
        CrossEntropyPlan::new([5, 7], &[3, 1, 3].into(), &[0, 6, 2].into(), LossReduction::Over(2))
            .unwrap();
    check("cross entropy", |x| {
        let logits = x(1, &[5, 7]);
        let (loss, stats) = cross_entropy(&plan, logits.clone());
        vec![loss, cross_entropy_grad(&plan, x(2, &[1]), stats.clone(), logits), stats]
    });
    check("dropout", |x| {
        vec![dropout_rows(&dropout(0.5, &Stream::new(1, "a", 2), None, 9), x(1, &[9, 7]))]
    });
    let form = AdamForm::AdamW { keep: 0.5, first: 0.5, second: 0.25, epsilon: 0.125 };
    let factors =
        AdamFactors { lr: 0.25, beta: [0.75, 0.5], rest: [0.25, 0.5], penalty: None, form };
    check("adam", |x| {
        let second = dropout_rows(
            &dropout(1.0 - f64::EPSILON / 2.0, &Stream::new(1, "a", 2), None, 33),
            x(4, &[33]),
        );
        let (p, m, v) = adam_step(x(1, &[33]), x(2, &[33]), [x(3, &[33]), second], &factors);
        vec![p, m, v]
    });
}
