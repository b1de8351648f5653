//! Segments whose entries are all masked, in the kernel and in what a backend without kernels runs.

use burn_gnn_plan::{Segments, SoftmaxPlan};

use crate::operator::Operator;
use crate::operator::cpu::Host;

fn masks<B: Host>(backend: &str) {
    const INF: f64 = f64::INFINITY;
    let plan =
        SoftmaxPlan::segments("segment_softmax", &Segments::from_lengths(&[2, 0, 3, 2]), &[])
            .unwrap();
    let x = || B::from_floats(vec![-INF, -INF, 3.0, -INF, 3.0, -INF, f64::NAN], plan.shape());
    let x = || vec![x()].into();
    for (name, y) in [("kernel", B::run(x(), plan.clone())), ("fallback", plan.reference::<B>(x()))]
    {
        let y = B::floats::<f64>(&y.floats[0]);
        assert!(
            y[..5] == [0.0, 0.0, 0.5, 0.0, 0.5] && y[5].is_nan() && y[6].is_nan(),
            "{backend}, {name}: {y:?}"
        );
    }
}

#[test]
fn groups_of_masks() {
    on_cpu_backends!(masks);
}
