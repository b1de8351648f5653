//! Cases of fused operators that tests of all operators do not cover: masks, steps of Adam, masks saved as bits, second
//! derivatives.

use std::sync::Arc;

use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::{Device, FloatTensor};
use burn::backend::{Autodiff, Flex};
use burn::tensor::{Shape, TensorData};
use burn_gnn_cpu::dense::matmul::Transposed;
use burn_gnn_graph::{Relation, Stream};
use burn_gnn_plan::{Activation, AttentionPlan, EpiloguePlan};

use crate::attention::GatOptions;
use crate::attention::call::AttentionGrad;
use crate::dense::adam::{AdamDecay, AdamStep};
use crate::dense::dropout::KeyedDropout;
use crate::dense::epilogue::Epilogue;
use crate::dense::matmul::call::Product;
use crate::fallback_tests::{compare_operator, numbers};
use crate::operator::GnnBackend;

fn dropout(prob: Option<f64>, rows: usize) -> Option<KeyedDropout> {
    let ids: Arc<[u64]> = (0..rows as u64).map(|r| 5000 - r).collect();
    prob.map(|prob| KeyedDropout { prob, stream: Stream::new(3, "fallback", 1), ids: Some(ids) })
}

/// `slope`: `None` for given scores.
fn attention(
    relation: &Relation,
    heads: usize,
    dim: usize,
    slope: Option<f64>,
    dropout: Option<KeyedDropout>,
) -> AttentionPlan {
    match slope {
        Some(slope) => {
            AttentionPlan::gat("attention", relation, heads, dim, &GatOptions { slope, dropout })
        }
        None => AttentionPlan::edges("attention", relation, heads, dim, dropout.as_ref()),
    }
    .unwrap()
}

fn compare_gradients<B: GnnBackend>(what: &str, plan: &AttentionPlan, inputs: Vec<FloatTensor<B>>) {
    let device = Device::<B>::default();
    compare_operator::<B, _>(what, plan, inputs.clone());
    let results = B::run(inputs.clone().into(), plan.clone()).floats;
    for wanted in 0..8u32 {
        let [z, first, second] =
            [wanted & 1 != 0, wanted & 2 != 0, plan.scoring().reads_nodes() && wanted & 4 != 0];
        let grad = numbers::<B>(5, &plan.out_shape(), &device);
        let given = std::iter::once(grad).chain(results.clone()).chain(inputs.clone()).collect();
        compare_operator::<B, _>(
            &format!("{what}, gradients {wanted}"),
            &AttentionGrad { plan: plan.clone(), z, first, second },
            given,
        );
    }
}

/// The fallback's gradient of a destination with masks only is 0, and not NaN from `0 · 1 / 0`.
fn masked_attention<B: GnnBackend>(backend: &str) {
    let device = Device::<B>::default();
    let relation =
        burn_gnn_graph::Relation::from_coo(2, 2, vec![0, 1, 0, 1], vec![0, 0, 1, 1]).unwrap();
    let plan = attention(&relation, 1, 3, None, None);
    let masks = TensorData::new(vec![f64::NEG_INFINITY, f64::NEG_INFINITY, 0.0, 1.0], [4, 1]);
    let inputs =
        vec![numbers::<B>(1, &Shape::from([2, 1, 3]), &device), B::float_from_data(masks, &device)];
    compare_gradients::<B>(backend, &plan, inputs);
}

#[test]
fn attention_of_masks_only() {
    on_cpu_backends!(masked_attention);
}

fn compare_adam<B: GnnBackend>(backend: &str) {
    let device = Device::<B>::default();
    for decay in [AdamDecay::None, AdamDecay::L2(0.1), AdamDecay::Decoupled(0.1)] {
        for time in [1, 7] {
            let step = AdamStep { lr: 0.1, beta_1: 0.9, beta_2: 0.99, epsilon: 1e-6, time, decay };
            let make = |seed| numbers::<B>(seed, &Shape::from([3, 4]), &device);
            let square = |seed| B::float_mul(make(seed), make(seed));
            compare_operator::<B, _>(
                &format!("{backend}, {step:?}"),
                &step,
                vec![make(1), make(2), make(3), square(4)],
            );
        }
    }
}

#[test]
fn steps_of_adam() {
    on_cpu_backends!(compare_adam);
}

type Ad = Autodiff<Flex, NoCheckpointing>;

fn leaf(shape: &[usize], tracked: bool) -> FloatTensor<Ad> {
    let n = shape.iter().product::<usize>();
    let data =
        TensorData::new((0..n).map(|i| (i as f32).sin()).collect::<Vec<_>>(), shape.to_vec());
    let x = FloatTensor::<Ad>::new(FlexTensor::from_data(data));
    if tracked { x.require_grad() } else { x }
}

/// Counts references to buffers after the call: only saved tensors are held.
#[test]
fn what_an_epilogue_keeps() {
    // A ReLU saves bits and not its result, so that the following matrix product can free it.
    for (activation, keeps) in
        [(Activation::None, false), (Activation::Relu, false), (Activation::Elu(1.0), true)]
    {
        for tracked in [true, false] {
            let x = leaf(&[4, 3], tracked);
            let data = x.primitive().data_arc();
            let op = Epilogue {
                plan: EpiloguePlan::new([4, 3], activation, dropout(Some(0.5), 4).as_ref())
                    .unwrap(),
                biased: false,
                open: false,
            };
            let out = Ad::run(vec![x].into(), op).read().float();
            assert_eq!(Arc::strong_count(&data), 1, "{activation:?}: the argument is held");
            let out_data = out.primitive().data_arc();
            // References: the tensor, this handle, and the saved tensor.
            assert_eq!(
                Arc::strong_count(&out_data),
                if keeps && tracked { 3 } else { 2 },
                "{activation:?}, tracked {tracked}"
            );
        }
    }
}

/// Backward of a product runs these products. Since they are differentiable, so is the gradient.
#[test]
fn transposed_products_are_differentiable() {
    let (l, r) = (leaf(&[3, 2], true), leaf(&[4, 3], true));
    let grads =
        Ad::run(vec![l.clone(), r.clone()].into(), Product(Transposed { left: true, right: true }))
            .read()
            .float()
            .backward();
    let values =
        |t: &FloatTensor<Ad>| t.clone().into_primitive().as_slice::<f32>().unwrap().to_vec();
    let (lv, rv) = (values(&l), values(&r));
    let d_l: Vec<f32> = (0..6).map(|i| (0..4).map(|n| rv[n * 3 + i / 2]).sum()).collect();
    let d_r: Vec<f32> = (0..12).map(|i| (0..2).map(|m| lv[i % 3 * 2 + m]).sum()).collect();
    // Gradients may be views of a transposed product.
    let found = |t: Option<FloatTensor<Flex>>| {
        t.unwrap().to_contiguous().as_slice::<f32>().unwrap().to_vec()
    };
    assert_eq!((found(l.grad(&grads)), found(r.grad(&grads))), (d_l, d_r));
}
