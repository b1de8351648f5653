//! Measures the overhead of one call: operators on a graph of one edge, 1000 calls per measurement.

use burn::tensor::{Device, Tensor};
use burn_gnn::graph::Relation;
use burn_gnn::ops::{
    Activation, NormBy, bias_activation, copy_u_max, copy_u_sum, edge_softmax, u_mul_e_sum,
};
use serde_json::json;

use crate::measure::{Entry, bench, device};

const CALLS: usize = 1000;

pub(crate) fn run() {
    let relation = match Relation::from_coo(1, 1, vec![0], vec![0]) {
        Ok(relation) => relation,
        Err(e) => unreachable!("one edge between one node and itself: {e}"),
    };
    let plain = device();
    one(&relation, &plain, "fwd", drop);
    one(&relation, &plain.clone().autodiff(), "fwd+bwd", |y| drop(y.sum().backward()));
}

fn one(relation: &Relation, device: &Device, how: &str, end: impl Fn(Tensor<1>)) {
    let leaf = || {
        let x = Tensor::<1>::ones([1], device);
        if device.is_autodiff() { x.require_grad() } else { x }
    };
    let (x, w) = (leaf(), leaf());
    let entry = |op: &str, f: &dyn Fn() -> Tensor<1>| {
        let name = format!("{op}.{how}");
        let entry = Entry { group: "calls", graph: "one-edge", op: &name };
        bench(entry, &[("calls", json!(CALLS))], || (0..CALLS).for_each(|_| end(f())));
    };
    entry("nothing", &|| x.clone());
    entry("copy_u_sum", &|| copy_u_sum(relation, x.clone()));
    entry("copy_u_max", &|| copy_u_max(relation, x.clone()));
    entry("u_mul_e_sum", &|| u_mul_e_sum(relation, x.clone(), w.clone()));
    entry("edge_softmax", &|| edge_softmax(relation, x.clone(), NormBy::Dst));
    entry("bias_activation", &|| {
        bias_activation(x.clone().unsqueeze::<2>(), Some(w.clone()), Activation::Relu, None)
            .reshape([1])
    });
}
