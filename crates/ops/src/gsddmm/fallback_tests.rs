//! What a backend without kernels runs, against the kernels of the CPU backends; and the gradients that
//! run as a GSpMM against those that do not.

use burn::backend::Flex;
use burn::backend::tensor::{Device, FloatTensor};
use burn_gnn_graph::Relation;
use burn_gnn_plan::{Gather, GsddmmPlan, NormBy, SddmmOp, Side, SoftmaxPlan, Target};

use crate::edge_softmax::operator::SoftmaxGrad;
use crate::fallback_tests::{assert_near, compare_operator, graphs, numbers};
use crate::gsddmm::operator::GsddmmGrad;
use crate::gspmm::operator::gspmm_on;
use crate::operator::{GnnBackend, Operator};

const KINDS: [(&[usize], &[usize]); 13] = [
    (&[], &[]),
    (&[3], &[3]),
    (&[19], &[19]),
    (&[2, 17], &[2, 17]),
    (&[3], &[]),
    (&[], &[3]),
    (&[2, 1], &[1, 3]),
    (&[2, 9], &[2, 1]),
    (&[2, 1], &[2, 1]),
    (&[3], &[2, 3]),
    (&[0], &[1]),
    (&[0], &[0]),
    (&[2, 0], &[2, 1]),
];

fn compare<B: GnnBackend>(backend: &str) {
    let device = Device::<B>::default();
    for relation in graphs() {
        for (op, targets, kind) in calls() {
            one::<B>(backend, &device, &relation, op, targets, kind);
        }
    }
}

type Kind = (&'static [usize], &'static [usize]);

fn calls() -> impl Iterator<Item = (SddmmOp, [Target; 2], Kind)> {
    let pairs = || Target::ALL.into_iter().flat_map(|l| Target::ALL.map(|r| [l, r]));
    SddmmOp::ALL
        .into_iter()
        .flat_map(move |op| pairs().flat_map(move |t| KINDS.map(|k| (op, t, k))))
}

fn one<B: GnnBackend>(
    backend: &str,
    device: &Device<B>,
    relation: &Relation,
    op: SddmmOp,
    targets: [Target; 2],
    (lhs, rhs): Kind,
) {
    let (targets, features) = match op {
        SddmmOp::CopyLhs => ([targets[0]; 2], [lhs, lhs]),
        SddmmOp::CopyRhs => ([targets[1]; 2], [rhs, rhs]),
        _ => (targets, [lhs, rhs]),
    };
    let what = format!("{backend}, {relation:?}, {op:?} {targets:?}, {features:?}");
    let plan = GsddmmPlan::new(relation, op, targets, features).unwrap();
    let l = || numbers::<B>(1, &plan.operand_shape(Side::Lhs), device);
    let r = || numbers::<B>(2, &plan.operand_shape(Side::Rhs), device);
    let inputs = match op {
        SddmmOp::CopyLhs => vec![l()],
        SddmmOp::CopyRhs => vec![r()],
        _ => vec![l(), r()],
    };
    compare_operator::<B, _>(&what, &plan, inputs);
    for side in [Side::Lhs, Side::Rhs] {
        if !(if side == Side::Lhs { op.uses_lhs() } else { op.uses_rhs() }) {
            continue;
        }
        let reads = op.gradient_reads(side);
        let grad = || numbers::<B>(3, &plan.out_shape(), device);
        let what = format!("{what}, gradient of {side:?}");
        let inputs =
            std::iter::once(grad()).chain(reads.0.then(l)).chain(reads.1.then(r)).collect();
        let want: FloatTensor<B> =
            compare_operator::<B, _>(&what, &GsddmmGrad { plan: plan.clone(), side }, inputs)
                .read()
                .float();
        let gathered = match plan.as_gspmm(side) {
            None => continue,
            Some(Gather::Plain(p)) => gspmm_on::<B>(p, vec![grad()]),
            Some(Gather::Negated(p)) => B::float_neg(gspmm_on::<B>(p, vec![grad()])),
            Some(Gather::Weighted(p)) => {
                gspmm_on::<B>(p, vec![if side.opposite() == Side::Lhs { l() } else { r() }, grad()])
            }
        };
        assert_near::<B>(&format!("{what} as GSpMM"), gathered, want);
    }
}

#[test]
fn on_cpu_backends() {
    on_cpu_backends!(compare);
}

fn compare_softmax<B: GnnBackend>(backend: &str) {
    let device = Device::<B>::default();
    for relation in graphs() {
        for (norm_by, features) in [NormBy::Dst, NormBy::Src].into_iter().flat_map(|n| {
            [&[][..], &[1], &[3], &[4], &[8], &[13], &[2, 17], &[0], &[3, 0]].map(|f| (n, f))
        }) {
            let plan = SoftmaxPlan::edges("edge_softmax", &relation, norm_by, features).unwrap();
            let what = format!("{backend}, {relation:?}, {norm_by:?}, {features:?}");
            let x = |seed| numbers::<B>(seed, &plan.shape(), &device);
            let [y] = compare_operator::<B, _>(&what, &plan, vec![x(1)]).take();
            compare_operator::<B, _>(
                &format!("{what}, gradient"),
                &SoftmaxGrad(plan.clone()),
                vec![x(2), y],
            );
        }
    }
}

#[test]
fn softmax_on_cpu_backends() {
    on_cpu_backends!(compare_softmax);
}

/// Gradients of `x / w` for `w`, where `w²` is out of the range of f32 and the gradient is not.
#[test]
fn quotients_stay_in_range() {
    type B = Flex;
    let device = Device::<B>::default();
    let relation = Relation::from_coo(1, 1, vec![0], vec![0]).unwrap();
    for (x, w, want) in [(1e-20f32, 1e-23f32, -1e26f64), (1e25, 1e20, -1e-15), (0.0, 1e-30, 0.0)] {
        for targets in [[Target::Src, Target::Dst], [Target::Dst, Target::Edge]] {
            let plan = GsddmmPlan::new(&relation, SddmmOp::Div, targets, [&[], &[]]).unwrap();
            let one = |x: f32| {
                <B as burn::backend::ops::FloatTensorOps<B>>::float_from_data(
                    burn::tensor::TensorData::new(vec![x], [1]),
                    &device,
                )
            };
            let (op, inputs) =
                (GsddmmGrad { plan, side: Side::Rhs }, || vec![one(1.0), one(x), one(w)].into());
            for d in [B::run(inputs(), op.clone()), op.reference::<B>(inputs())] {
                let [d] = d.take();
                let got = f64::from(d.as_slice::<f32>().unwrap()[0]);
                assert!((got - want).abs() <= 1e-5 * want.abs(), "x {x:e}, w {w:e}: {got:e}");
            }
        }
    }
}
