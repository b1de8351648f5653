//! What a backend without kernels runs, against the kernels of the CPU backends; and the gradients that
//! run as a GSpMM against those that do not.

use burn::backend::tensor::{Device, FloatTensor};
use burn::backend::{Flex, NdArray};
use burn_gnn_graph::Relation;

use super::plan::{Gather, opposite};
use super::{GsddmmBackend, GsddmmPlan, SddmmOp, Target, reference};
use crate::backend::Kept;
use crate::edge_softmax::{EdgeSoftmaxBackend, EdgeSoftmaxPlan, NormBy};
use crate::fallback_tests::{assert_near, graphs, numbers};
use crate::gspmm::Side;

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

fn compare<B: GsddmmBackend>(backend: &str) {
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
    SddmmOp::ALL.into_iter().flat_map(move |op| pairs().flat_map(move |t| KINDS.map(|k| (op, t, k))))
}

fn one<B: GsddmmBackend>(backend: &str, device: &Device<B>, relation: &Relation, op: SddmmOp, targets: [Target; 2], (lhs, rhs): Kind) {
    let (targets, features) = match op {
        SddmmOp::CopyLhs => ([targets[0]; 2], [lhs, lhs]),
        SddmmOp::CopyRhs => ([targets[1]; 2], [rhs, rhs]),
        _ => (targets, [lhs, rhs]),
    };
    let what = format!("{backend}, {relation:?}, {op:?} {targets:?}, {features:?}");
    let plan = GsddmmPlan::new(relation, op, targets, features).unwrap();
    let l = || numbers::<B>(1, &plan.operand_shape(Side::Lhs), device);
    let r = || numbers::<B>(2, &plan.operand_shape(Side::Rhs), device);
    let (kernel, fallback) = match op {
        SddmmOp::CopyLhs => (B::gsddmm_copy(l(), plan.clone()), reference::copy::<B>(l(), &plan)),
        SddmmOp::CopyRhs => (B::gsddmm_copy(r(), plan.clone()), reference::copy::<B>(r(), &plan)),
        _ => (B::gsddmm_binary(l(), r(), plan.clone()), reference::binary::<B>(l(), r(), &plan)),
    };
    assert_near::<B>(&what, kernel, fallback);
    for side in [Side::Lhs, Side::Rhs] {
        if !(if side == Side::Lhs { op.uses_lhs() } else { op.uses_rhs() }) {
            continue;
        }
        let kept = || match op.gradient_reads(side) {
            (false, false) => Kept::Nothing,
            (true, false) => Kept::Lhs(l()),
            (false, true) => Kept::Rhs(r()),
            (true, true) => Kept::Both(l(), r()),
        };
        let grad = || numbers::<B>(3, &plan.out_shape(), device);
        let what = format!("{what}, gradient of {side:?}");
        let want: FloatTensor<B> = reference::gradient::<B>(grad(), kept(), &plan, side);
        assert_near::<B>(&what, B::gsddmm_grad(grad(), kept(), plan.clone(), side), want.clone());
        let gathered = match plan.as_gspmm(side) {
            None => continue,
            Some(Gather::Plain(p)) => B::gspmm_copy(grad(), p),
            Some(Gather::Negated(p)) => B::float_neg(B::gspmm_copy(grad(), p)),
            Some(Gather::Weighted(p)) => B::gspmm_binary(if opposite(side) == Side::Lhs { l() } else { r() }, grad(), p),
        };
        assert_near::<B>(&format!("{what} as GSpMM"), gathered, want);
    }
}

#[test]
fn on_flex() {
    compare::<Flex>("flex");
}

#[test]
fn on_ndarray() {
    compare::<NdArray>("ndarray");
}

fn compare_softmax<B: EdgeSoftmaxBackend>(backend: &str) {
    let device = Device::<B>::default();
    for relation in graphs() {
        for (norm_by, features) in [NormBy::Dst, NormBy::Src]
            .into_iter()
            .flat_map(|n| [&[][..], &[1], &[3], &[4], &[8], &[13], &[2, 17], &[0], &[3, 0]].map(|f| (n, f)))
        {
            let plan = EdgeSoftmaxPlan::new(&relation, norm_by, features).unwrap();
            let what = format!("{backend}, {relation:?}, {norm_by:?}, {features:?}");
            let x = |seed| numbers::<B>(seed, &plan.shape(), &device);
            let y = crate::edge_softmax::reference::forward::<B>(x(1), &plan);
            assert_near::<B>(&what, B::edge_softmax(x(1), plan.clone()), y.clone());
            let want = crate::edge_softmax::reference::gradient::<B>(y.clone(), x(2), &plan);
            assert_near::<B>(&format!("{what}, gradient"), B::edge_softmax_grad(y, x(2), plan), want);
        }
    }
}

#[test]
fn softmax_on_cpu_backends() {
    compare_softmax::<Flex>("flex");
    compare_softmax::<NdArray>("ndarray");
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
                <B as burn::backend::ops::FloatTensorOps<B>>::float_from_data(burn::tensor::TensorData::new(vec![x], [1]), &device)
            };
            let kept = || Kept::Both(one(x), one(w));
            for d in
                [B::gsddmm_grad(one(1.0), kept(), plan.clone(), Side::Rhs), reference::gradient::<B>(one(1.0), kept(), &plan, Side::Rhs)]
            {
                let got = f64::from(d.as_slice::<f32>().unwrap()[0]);
                assert!((got - want).abs() <= 1e-5 * want.abs(), "x {x:e}, w {w:e}: {got:e}");
            }
        }
    }
}
