//! What a backend without kernels runs, against the kernels of the CPU backends; and what backward keeps.
// Burn has deprecated its ndarray backend; people still use it.
#![allow(deprecated)]

use std::sync::Arc;

use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex, NdArray};
use burn::tensor::{Shape, TensorData};
use burn_gnn_graph::Relation;

use super::backend::RelationalBackend;
use super::plan::{EdgeNorm, RelationalPlan};
use super::{RelationalIndex, cpu, reference};
use crate::Stream;
use crate::cpu::Host;

type Ad = Autodiff<Flex, NoCheckpointing>;

fn numbers(seed: u64, n: usize) -> Vec<f64> {
    let stream = Stream::new(seed, "relational", 0);
    (0..n as u64).map(|i| 2.0 * stream.uniform(i, 0) - 1.0).collect()
}

fn tensor<B: Host>(seed: u64, shape: &Shape) -> FloatTensor<B> {
    B::from_floats(numbers(seed, shape.num_elements()), shape.clone())
}

#[track_caller]
fn near(what: &str, a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len(), "{what}: lengths");
    assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-12 * (1.0 + b.abs())), "{what}: {a:?} against {b:?}");
}

fn indices() -> Vec<RelationalIndex> {
    let edges = |src, dst, n: u32| {
        let relation =
            Relation::from_coo(src, dst, (0..n).map(|i| i * 7 % src as u32).collect(), (0..n).map(|i| i * i % dst as u32).collect());
        RelationalIndex::new(&relation.unwrap(), &(0..n).map(|i| i * 5 % 4).collect::<Vec<_>>(), 6)
    };
    let some = edges(6, 5, 40);
    vec![some.mean(), some, edges(3, 70, 200), edges(2, 2, 0)]
}

fn compare<B: RelationalBackend + Host>(backend: &str) {
    for index in indices() {
        for shape in [&[3usize, 4][..], &[4, 3], &[2, 3, 2], &[0, 2], &[2, 0], &[20, 17]] {
            let plan = RelationalPlan::new(&index, shape);
            let edges = Shape::from(vec![index.relation().num_edges()]);
            let (x, w) = (|| tensor::<B>(1, &plan.x_shape()), || tensor::<B>(2, &plan.weight_shape()));
            let grad = || tensor::<B>(3, &plan.out_shape());
            for scaled in [false, true] {
                let norm = || if scaled { EdgeNorm::Each(tensor::<B>(4, &edges)) } else { EdgeNorm::One };
                let what = |name: &str| format!("{backend}, {:?}, {shape:?}, norm {scaled}, {name}", index.relation());
                let check =
                    |name: &str, a: FloatTensor<B>, b: FloatTensor<B>| near(&what(name), &B::floats::<f64>(&a), &B::floats::<f64>(&b));
                check("out", B::relational(x(), w(), norm(), plan.clone()), reference::forward::<B>(x(), w(), norm(), &plan));
                let d_x = || reference::grad_x::<B>(grad(), w(), norm(), &plan);
                let d_w = || reference::grad_weight::<B>(grad(), x(), norm(), &plan);
                let both = B::relational_grad_both(grad(), x(), w(), norm(), plan.clone());
                check("d x of both", both.0, d_x());
                check("d w of both", both.1, d_w());
                check("d x", B::relational_grad_x(grad(), w(), norm(), plan.clone()), d_x());
                check("d w", B::relational_grad_weight(grad(), x(), norm(), plan.clone()), d_w());
            }
            let a = B::relational_grad_norm(grad(), x(), w(), plan.clone());
            near(
                &format!("{backend}, d norm"),
                &B::floats::<f64>(&a),
                &B::floats::<f64>(&reference::grad_norm::<B>(grad(), x(), w(), &plan)),
            );
        }
    }
}

#[test]
fn fallback_on_cpu_backends() {
    compare::<Flex>("flex");
    compare::<NdArray>("ndarray");
}

/// Whichever way the costs say, the other one has the same result.
#[test]
fn multiplying_first_or_last() {
    for index in indices().into_iter().filter(|i| i.relation().num_edges() > 0) {
        for shape in [&[5usize, 3][..], &[3, 5], &[2, 17, 2], &[64, 20]] {
            let plan = RelationalPlan::new(&index, shape);
            let (x, w) = (numbers(1, plan.x_shape().num_elements()), numbers(2, plan.weight_shape().num_elements()));
            let norm = numbers(3, index.relation().num_edges());
            for norm in [None, Some(&norm[..])] {
                let [last, first] = [false, true].map(|first| cpu::aggregate(&plan, &x, &w, norm, first));
                near(&format!("{shape:?}"), &first, &last);
            }
        }
    }
}

/// After the call the operands are dropped; whose buffers are still held is what was kept.
#[test]
fn keeps_only_what_a_tracked_input_needs() {
    let plan = RelationalPlan::new(&indices()[1], &[2, 2]);
    let edges = Shape::from(vec![plan.index().relation().num_edges()]);
    for bits in 0..16u32 {
        let [x_tracked, w_tracked, norm_tracked, scaled] = [1, 2, 4, 8].map(|b| bits & b != 0);
        if norm_tracked && !scaled {
            continue;
        }
        let leaf = |shape: &Shape, tracked: bool| {
            let data = vec![1.0f32; shape.num_elements()];
            let x = FloatTensor::<Ad>::new(FlexTensor::from_data(TensorData::new(data, shape.clone())));
            if tracked { x.require_grad() } else { x }
        };
        let (x, w) = (leaf(&plan.x_shape(), x_tracked), leaf(&plan.weight_shape(), w_tracked));
        let norm = leaf(&edges, norm_tracked);
        let buffers = [&x, &w, &norm].map(|t| t.primitive().data_arc());
        // The operand that is not given is dropped here too.
        let norm = Some(norm).filter(|_| scaled).map_or(EdgeNorm::One, EdgeNorm::Each);
        let out = Ad::relational(x, w, norm, plan.clone());
        let held = buffers.map(|b| Arc::strong_count(&b) > 1);
        let want = [w_tracked || norm_tracked, x_tracked || norm_tracked, scaled && (x_tracked || w_tracked)];
        assert_eq!(held, want, "x {x_tracked}, w {w_tracked}, norm {norm_tracked}, scaled {scaled}");
        assert_eq!(out.is_tracked(), x_tracked || w_tracked || norm_tracked);
    }
}

#[test]
#[should_panic(expected = "the gradient of a gradient is not implemented")]
fn second_order_is_refused() {
    let plan = RelationalPlan::new(&indices()[1], &[2, 2]);
    let ones = |shape: Shape| FloatTensor::<Ad>::new(FlexTensor::from_data(TensorData::new(vec![1.0f32; shape.num_elements()], shape)));
    let _ = Ad::relational_grad_x(ones(plan.out_shape()).require_grad(), ones(plan.weight_shape()), EdgeNorm::One, plan);
}
