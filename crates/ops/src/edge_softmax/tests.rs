//! What edge softmax keeps for backward.

use std::sync::Arc;

use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex};
use burn::tensor::TensorData;
use burn_gnn_graph::Relation;

use super::NormBy;
use super::{SoftmaxGrad, SoftmaxPlan};
use crate::operator::GnnBackend;

type Ad = Autodiff<Flex, NoCheckpointing>;

fn leaf(tracked: bool) -> FloatTensor<Ad> {
    let x = FloatTensor::<Ad>::new(FlexTensor::from_data(TensorData::new(vec![1.0f32, 2.0, 3.0], [3])));
    if tracked { x.require_grad() } else { x }
}

fn plan() -> SoftmaxPlan {
    let relation = Relation::from_coo(3, 2, vec![0, 1, 2], vec![0, 0, 1]).unwrap();
    SoftmaxPlan::edges("edge_softmax", &relation, NormBy::Dst, &[]).unwrap()
}

#[test]
fn keeps_its_result_only() {
    for tracked in [false, true] {
        let x = leaf(tracked);
        let data = x.primitive().data_arc();
        let [y] = Ad::run(vec![x].into(), plan()).take();
        assert_eq!(Arc::strong_count(&data), 1, "logits are not kept");
        // The tensor's own, the one just asked for, and the one that is kept.
        assert_eq!(Arc::strong_count(&y.primitive().data_arc()), if tracked { 3 } else { 2 });
    }
}

#[test]
#[should_panic(expected = "edge_softmax: the gradient of a gradient is not implemented")]
fn second_order_is_refused() {
    let _ = Ad::run(vec![leaf(true), leaf(false)].into(), SoftmaxGrad(plan()));
}
