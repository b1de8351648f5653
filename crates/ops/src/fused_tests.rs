//! Fused operators: what a backend without kernels runs, against the kernels of the CPU backends; what is kept
//! for backward; gradients of gradients.

use std::sync::Arc;

use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::{Device, FloatTensor, IntTensor};
use burn::backend::{Autodiff, Flex, NdArray, TensorMetadata};
use burn::tensor::{Shape, TensorData};

use crate::adam::{AdamBackend, AdamDecay, AdamStep};
use crate::attention::{AttentionBackend, AttentionKept, AttentionPlan, AttentionWants, ScoreKind, reference as attention};
use crate::cross_entropy::{CrossEntropyBackend, CrossEntropyPlan, LossReduction, reference as cross_entropy};
use crate::dropout::DropoutPlan;
use crate::epilogue::{EpilogueBackend, EpilogueKept, EpiloguePlan, reference as epilogue};
use crate::fallback_tests::{assert_near, graphs, numbers};
use crate::matmul::{MatmulBackend, Transpose};
use crate::{Activation, Stream};

fn dropout(prob: Option<f64>, rows: usize) -> Option<DropoutPlan> {
    let ids: Arc<[u64]> = (0..rows as u64).map(|r| 5000 - r).collect();
    prob.map(|prob| DropoutPlan::new(prob, Stream::new(3, "fallback", 1), Some(ids)))
}

fn compare_attention<B: AttentionBackend>(backend: &str) {
    let device = Device::<B>::default();
    for relation in graphs() {
        for (heads, dim) in [(1, 1), (8, 8), (1, 40), (3, 5), (0, 2), (2, 0)] {
            for (kind, prob) in
                [(ScoreKind::Gat { slope: 0.2 }, None), (ScoreKind::Gat { slope: 0.0 }, Some(0.4)), (ScoreKind::Edges, Some(0.4))]
            {
                let plan = AttentionPlan::new(&relation, heads, dim, kind, dropout(prob, relation.num_edges()));
                let what = format!("{backend}, {relation:?}, {heads} x {dim}, {kind:?}, {prob:?}");
                let make = |seed, shape: &[usize]| numbers::<B>(seed, &Shape::from(shape.to_vec()), &device);
                let z = make(1, &[relation.num_src(), heads, dim]);
                let (a_src, a_dst) = (make(2, &[relation.num_src(), heads]), make(3, &[relation.num_dst(), heads]));
                let logits = make(4, &[relation.num_edges(), heads]);
                let gat = plan.slope().is_some();
                let ((out, stats), (fallback, other)) = if gat {
                    (
                        B::attention_gat(z.clone(), a_src.clone(), a_dst.clone(), plan.clone()),
                        attention::gat::<B>(z.clone(), a_src.clone(), a_dst.clone(), &plan),
                    )
                } else {
                    (B::attention_edges(z.clone(), logits.clone(), plan.clone()), attention::edges::<B>(z.clone(), logits.clone(), &plan))
                };
                assert_eq!((out.shape(), stats.shape()), (plan.out_shape(), plan.stats_shape()), "{what}");
                assert_near::<B>(&what, out.clone(), fallback);
                assert_near::<B>(&format!("{what}, statistics"), stats.clone(), other);
                for wanted in 0..8u32 {
                    let wants = AttentionWants { z: wanted & 1 != 0, first: wanted & 2 != 0, second: gat && wanted & 4 != 0 };
                    let kept = || {
                        let (out, stats, z) = (out.clone(), stats.clone(), z.clone());
                        if gat {
                            AttentionKept::Gat(out, stats, z, a_src.clone(), a_dst.clone())
                        } else {
                            AttentionKept::Edges(out, stats, z, logits.clone())
                        }
                    };
                    let grad = || numbers::<B>(5, &plan.out_shape(), &device);
                    let (a, b, c) = B::attention_grad(grad(), kept(), plan.clone(), wants);
                    let (x, y, w) = attention::gradient::<B>(grad(), kept(), &plan, wants);
                    for (name, kernel, fallback) in [("z", a, x), ("first", b, y), ("second", c, w)] {
                        assert_near::<B>(&format!("{what}, {wants:?}, d {name}"), kernel, fallback);
                    }
                }
            }
        }
    }
}

/// A destination of masks only, in the fallback's gradient: zeros, and no NaN from `0 · 1 / 0`.
fn masked_attention<B: AttentionBackend>(backend: &str) {
    let device = Device::<B>::default();
    let relation = burn_gnn_graph::Relation::from_coo(2, 2, vec![0, 1, 0, 1], vec![0, 0, 1, 1]).unwrap();
    let plan = AttentionPlan::new(&relation, 1, 3, ScoreKind::Edges, None);
    let masks = TensorData::new(vec![f64::NEG_INFINITY, f64::NEG_INFINITY, 0.0, 1.0], [4, 1]);
    let (z, logits) = (numbers::<B>(1, &Shape::from([2, 1, 3]), &device), B::float_from_data(masks, &device));
    let (out, stats) = B::attention_edges(z.clone(), logits.clone(), plan.clone());
    let (fallback, other) = attention::edges::<B>(z.clone(), logits.clone(), &plan);
    assert_near::<B>(&format!("{backend}, out"), out.clone(), fallback);
    assert_near::<B>(&format!("{backend}, statistics"), stats.clone(), other);
    let wants = AttentionWants { z: true, first: true, second: false };
    let kept = || AttentionKept::Edges(out.clone(), stats.clone(), z.clone(), logits.clone());
    let grad = || numbers::<B>(5, &plan.out_shape(), &device);
    let (a, b, _) = B::attention_grad(grad(), kept(), plan.clone(), wants);
    let (x, y, _) = attention::gradient::<B>(grad(), kept(), &plan, wants);
    assert_near::<B>(&format!("{backend}, d z"), a, x);
    assert_near::<B>(&format!("{backend}, d logits"), b, y);
}

#[test]
fn attention_of_masks_only() {
    masked_attention::<Flex>("flex");
    #[allow(deprecated)]
    masked_attention::<NdArray>("ndarray");
}

fn compare_cross_entropy<B: CrossEntropyBackend>(backend: &str) {
    let device = Device::<B>::default();
    for (n, classes, rows, targets) in [(4, 3, vec![2, 0, 2], vec![1, 0, 2]), (2, 33, vec![1], vec![32]), (3, 2, vec![], vec![])] {
        for reduction in [LossReduction::Sum, LossReduction::Mean] {
            let plan = CrossEntropyPlan::new([n, classes], rows.clone().into(), targets.clone().into(), reduction);
            let what = format!("{backend}, {n} x {classes}, {rows:?}, {reduction:?}");
            let x = || numbers::<B>(1, &Shape::from([n, classes]), &device);
            let (loss, stats) = B::cross_entropy(x(), plan.clone());
            let (fallback, other) = cross_entropy::forward::<B>(x(), &plan);
            assert_near::<B>(&what, loss, fallback);
            assert_near::<B>(&format!("{what}, statistics"), stats.clone(), other);
            let grad = || numbers::<B>(2, &Shape::from([1]), &device);
            let kernel = B::cross_entropy_grad(grad(), stats.clone(), x(), plan.clone());
            assert_near::<B>(&format!("{what}, gradient"), kernel, cross_entropy::gradient::<B>(grad(), stats, x(), &plan));
        }
    }
}

fn compare_epilogue<B: EpilogueBackend>(backend: &str) {
    let device = Device::<B>::default();
    for (rows, columns) in [(5, 7), (300, 3), (1, 70), (0, 2), (2, 0)] {
        for activation in [Activation::None, Activation::Relu, Activation::LeakyRelu(0.2), Activation::Elu(0.8)] {
            for prob in [None, Some(0.3)] {
                let plan = EpiloguePlan::new(rows, columns, activation, dropout(prob, rows));
                let what = format!("{backend}, {rows} x {columns}, {activation:?}, {prob:?}");
                let make = |seed, shape: &[usize]| numbers::<B>(seed, &Shape::from(shape.to_vec()), &device);
                let (x, bias) = (make(1, &[rows, columns]), make(2, &[columns]));
                assert_near::<B>(&what, B::epilogue(x.clone(), plan.clone()), epilogue::forward::<B>(x.clone(), &plan));
                let out = B::epilogue_bias(x.clone(), bias.clone(), plan.clone());
                assert_near::<B>(&format!("{what}, bias"), out.clone(), epilogue::biased::<B>(x.clone(), bias.clone(), &plan));
                let (open, fallback_open) = (
                    B::epilogue_bias_open(x.clone(), bias.clone(), plan.clone()),
                    epilogue::with_open::<B>(epilogue::biased::<B>(x, bias, &plan)),
                );
                if plan.keeps_open() {
                    assert_near::<B>(&format!("{what}, open"), open.0, fallback_open.0);
                }
                for bias in [false, true] {
                    let kept = |open: &IntTensor<B>| {
                        if plan.keeps_open() {
                            EpilogueKept::Open(open.clone())
                        } else if plan.keeps_output() {
                            EpilogueKept::Out(out.clone())
                        } else {
                            EpilogueKept::Nothing
                        }
                    };
                    let grad = || make(3, &[rows, columns]);
                    let (a, b) = B::epilogue_grad(grad(), kept(&open.1), plan.clone(), bias);
                    let (x, y) = epilogue::gradient::<B>(grad(), kept(&fallback_open.1), &plan, bias);
                    assert_near::<B>(&format!("{what}, d x"), a, x);
                    assert_near::<B>(&format!("{what}, d bias {bias}"), b, y);
                }
            }
        }
    }
}

fn compare_adam<B: AdamBackend>(backend: &str) {
    let device = Device::<B>::default();
    for decay in [AdamDecay::None, AdamDecay::L2(0.1), AdamDecay::Decoupled(0.1)] {
        for time in [1, 7] {
            let step = AdamStep { lr: 0.1, beta_1: 0.9, beta_2: 0.99, epsilon: 1e-6, time, decay };
            let make = |seed| numbers::<B>(seed, &Shape::from([3, 4]), &device);
            let square = |seed| B::float_mul(make(seed), make(seed));
            let (a, b, c) = B::adam_step(make(1), make(2), make(3), square(4), step);
            let (x, y, z) = crate::adam::reference::step::<B>(make(1), make(2), make(3), square(4), &step.factors());
            for (kernel, fallback) in [(a, x), (b, y), (c, z)] {
                assert_near::<B>(&format!("{backend}, {step:?}"), kernel, fallback);
            }
        }
    }
}

#[test]
fn fallbacks_on_flex() {
    compare_attention::<Flex>("flex");
    compare_cross_entropy::<Flex>("flex");
    compare_epilogue::<Flex>("flex");
    compare_adam::<Flex>("flex");
}

#[test]
fn fallbacks_on_ndarray() {
    compare_attention::<NdArray>("ndarray");
    compare_cross_entropy::<NdArray>("ndarray");
    compare_epilogue::<NdArray>("ndarray");
    compare_adam::<NdArray>("ndarray");
}

type Ad = Autodiff<Flex, NoCheckpointing>;

fn leaf(shape: &[usize], tracked: bool) -> FloatTensor<Ad> {
    let n = shape.iter().product::<usize>();
    let data = TensorData::new((0..n).map(|i| (i as f32).sin()).collect::<Vec<_>>(), shape.to_vec());
    let x = FloatTensor::<Ad>::new(FlexTensor::from_data(data));
    if tracked { x.require_grad() } else { x }
}

/// Who still holds a buffer after the call has dropped its operands.
#[test]
fn what_an_epilogue_keeps() {
    // Of a relu bits, not its result: the matrix product that follows can give it up.
    for (activation, keeps) in [(Activation::None, false), (Activation::Relu, false), (Activation::Elu(1.0), true)] {
        for tracked in [true, false] {
            let x = leaf(&[4, 3], tracked);
            let data = x.primitive().data_arc();
            let out = Ad::epilogue(x, EpiloguePlan::new(4, 3, activation, dropout(Some(0.5), 4)));
            assert_eq!(Arc::strong_count(&data), 1, "{activation:?}: the argument is held");
            let out_data = out.primitive().data_arc();
            // The tensor, this handle, and what is kept.
            assert_eq!(Arc::strong_count(&out_data), if keeps && tracked { 3 } else { 2 }, "{activation:?}, tracked {tracked}");
        }
    }
}

#[test]
fn untracked_attention_keeps_nothing() {
    let relation = &graphs()[0];
    let plan = AttentionPlan::new(relation, 2, 3, ScoreKind::Gat { slope: 0.2 }, None);
    for tracked in [true, false] {
        let z = leaf(&[5, 2, 3], tracked);
        let data = z.primitive().data_arc();
        let (out, stats) = Ad::attention_gat(z, leaf(&[5, 2], false), leaf(&[4, 2], false), plan.clone());
        assert_eq!((out.is_tracked(), stats.is_tracked()), (tracked, false));
        assert_eq!(Arc::strong_count(&data) > 1, tracked);
    }
}

#[test]
#[should_panic(expected = "attention: the gradient of a gradient is not implemented")]
fn second_order_attention_is_refused() {
    let plan = AttentionPlan::new(&graphs()[0], 1, 1, ScoreKind::Edges, None);
    let x = |shape: &[usize]| leaf(shape, false);
    let kept = AttentionKept::Edges(x(&[4, 1, 1]), x(&[4, 2, 1]), x(&[5, 1, 1]), x(&[8, 1]));
    let _ = Ad::attention_grad(leaf(&[4, 1, 1], true), kept, plan, AttentionWants { z: true, first: true, second: false });
}

#[test]
#[should_panic(expected = "cross_entropy_rows: the gradient of a gradient is not implemented")]
fn second_order_cross_entropy_is_refused() {
    let plan = CrossEntropyPlan::new([2, 2], [0].into(), [1].into(), LossReduction::Sum);
    let _ = Ad::cross_entropy_grad(leaf(&[1], false), leaf(&[1, 2], false), leaf(&[2, 2], true), plan);
}

#[test]
#[should_panic(expected = "bias_activation: the gradient of a gradient is not implemented")]
fn second_order_epilogues_are_refused() {
    let plan = EpiloguePlan::new(2, 2, Activation::None, None);
    let _ = Ad::epilogue_grad(leaf(&[2, 2], true), EpilogueKept::Nothing, plan, true);
}

/// The backward of a product calls these: with them differentiable, so is the gradient.
#[test]
fn transposed_products_are_differentiable() {
    let (l, r) = (leaf(&[3, 2], true), leaf(&[4, 3], true));
    let grads = Ad::matmul_transposed(l.clone(), r.clone(), Transpose { left: true, right: true }).backward();
    let values = |t: &FloatTensor<Ad>| t.clone().into_primitive().as_slice::<f32>().unwrap().to_vec();
    let (lv, rv) = (values(&l), values(&r));
    let d_l: Vec<f32> = (0..6).map(|i| (0..4).map(|n| rv[n * 3 + i / 2]).sum()).collect();
    let d_r: Vec<f32> = (0..12).map(|i| (0..2).map(|m| lv[i % 3 * 2 + m]).sum()).collect();
    // Gradients may be views of a transposed product.
    let found = |t: Option<FloatTensor<Flex>>| t.unwrap().to_contiguous().as_slice::<f32>().unwrap().to_vec();
    assert_eq!((found(l.grad(&grads)), found(r.grad(&grads))), (d_l, d_r));
}
