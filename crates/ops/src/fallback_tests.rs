//! Compares the reference implementations with the kernels of the CPU backends.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use burn::backend::tensor::{Device, FloatTensor, IntTensor};
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{DType, Shape, TensorData};
use burn_gnn_graph::{Relation, Stream};
use burn_gnn_plan::{BinaryOp, GspmmPlan, Reduce, Side};
use burn_gnn_testutil::graphs::{relation, small};

use crate::dense::dropout::KeyedDropout;
use crate::gspmm::operator::{Gspmm, GspmmGrad};
use crate::operator::{GnnBackend, Operator, Tensors};

/// Numbers in ±[0.5, 1.5).
pub(crate) fn numbers<B: Backend>(seed: u64, shape: &Shape, device: &Device<B>) -> FloatTensor<B> {
    let stream = Stream::new(seed, "fallback", 0);
    let number = |i| {
        let x = 2.0 * stream.uniform(i, 0) - 1.0;
        x + 0.5f64.copysign(x)
    };
    let values: Vec<f64> = (0..shape.num_elements() as u64).map(number).collect();
    B::float_from_data(TensorData::new(values, shape.clone()), device)
}

/// The result of a future of a CPU backend, which is always ready.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a CPU backend made us wait"),
    }
}

pub(crate) fn floats<B: Backend>(x: FloatTensor<B>) -> (Vec<usize>, Vec<f64>) {
    let shape = x.shape().to_vec();
    (shape, now(B::float_into_data(x)).unwrap().convert_dtype(DType::F64).try_into_vec().unwrap())
}

fn ints<B: Backend>(x: IntTensor<B>) -> (Vec<usize>, Vec<i64>) {
    let shape = x.shape().to_vec();
    (shape, now(B::int_into_data(x)).unwrap().convert_dtype(DType::I64).try_into_vec().unwrap())
}

#[track_caller]
pub(crate) fn assert_near<B: Backend>(
    what: &str,
    kernel: FloatTensor<B>,
    fallback: FloatTensor<B>,
) {
    assert_eq!(kernel.dtype(), fallback.dtype(), "{what}");
    let ((shape, a), (other, b)) = (floats::<B>(kernel), floats::<B>(fallback));
    assert_eq!(shape, other, "{what}: shapes");
    assert!(
        a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-12 * (1.0 + b.abs())),
        "{what}: {a:?} against {b:?}"
    );
}

#[track_caller]
pub(crate) fn assert_near_all<B: Backend>(what: &str, kernel: Tensors<B>, fallback: Tensors<B>) {
    assert_eq!(kernel.floats.len(), fallback.floats.len(), "{what}: results");
    kernel.floats.into_iter().zip(fallback.floats).for_each(|(a, b)| assert_near::<B>(what, a, b));
}

/// Compares kernels and reference of an operator, and returns the results of the reference.
#[track_caller]
pub(crate) fn compare_operator<B: GnnBackend, O: Operator>(
    what: &str,
    op: &O,
    floats: Vec<FloatTensor<B>>,
) -> Tensors<B> {
    let want = op.reference::<B>(floats.clone().into());
    assert_near_all::<B>(what, B::run(floats.into(), op.clone()), want.clone());
    want
}

#[track_caller]
fn assert_same<B: Backend>(what: &str, a: FloatTensor<B>, b: FloatTensor<B>) {
    assert_eq!(floats::<B>(a), floats::<B>(b), "{what}: with and without argmax");
}

pub(crate) fn graphs() -> Vec<Relation> {
    vec![
        small(),
        relation(9, 2, &[(8, 1), (7, 1), (6, 1), (5, 1), (4, 1), (3, 1), (2, 1), (1, 1), (0, 1)]),
        relation(3, 2, &[]),
        relation(0, 2, &[]),
        relation(2, 0, &[]),
    ]
}

const KINDS: [(&[usize], &[usize]); 13] = [
    (&[], &[]),
    (&[3], &[3]),
    (&[3], &[]),
    (&[], &[3]),
    (&[9], &[1]),
    (&[1], &[9]),
    (&[2, 1], &[1, 3]),
    (&[3], &[2, 3]),
    (&[0], &[1]),
    (&[1], &[0]),
    (&[0], &[0]),
    // A feature size at which the argmax is saved as bits.
    (&[64], &[64]),
    (&[12, 12], &[12, 12]),
];

fn compare<B: GnnBackend>(backend: &str) {
    let device = Device::<B>::default();
    for (relation, op, reduce, (lhs, rhs)) in graphs().iter().flat_map(|g| {
        BinaryOp::ALL.into_iter().flat_map(move |op| {
            Reduce::ALL.into_iter().flat_map(move |r| KINDS.map(|k| (g, op, r, k)))
        })
    }) {
        let (lhs, rhs) = match op {
            BinaryOp::CopyLhs => (lhs, lhs),
            BinaryOp::CopyRhs => (rhs, rhs),
            _ => (lhs, rhs),
        };
        let what = format!("{backend}, {relation:?}, {op:?} {reduce:?}, {lhs:?} {rhs:?}");
        let plan = GspmmPlan::new(relation, op, reduce, lhs, rhs).unwrap();
        let l = || numbers::<B>(1, &plan.operand_shape(Side::Lhs), &device);
        let r = || numbers::<B>(2, &plan.operand_shape(Side::Rhs), &device);
        let inputs = || match op {
            BinaryOp::CopyLhs => vec![l()],
            BinaryOp::CopyRhs => vec![r()],
            _ => vec![l(), r()],
        };
        let selects = reduce.selects();
        let fallback = compare_operator::<B, _>(
            &what,
            &Gspmm { plan: plan.clone(), argmax: selects },
            inputs(),
        );
        let kernel = B::run(inputs().into(), Gspmm { plan: plan.clone(), argmax: selects });
        if selects {
            assert_same::<B>(
                &what,
                B::run(inputs().into(), Gspmm::new(plan.clone())).read().float(),
                kernel.floats[0].clone(),
            );
        }
        if burn_gnn_cpu::gspmm::bit_words(&plan).is_none() {
            let all = |x: &Tensors<B>| x.ints.iter().cloned().map(ints::<B>).collect::<Vec<_>>();
            assert_eq!(all(&kernel), all(&fallback), "{what}: argmax");
        }
        for wants in [[true, false], [false, true], [true, true]] {
            if (wants[0] && !op.uses_lhs()) || (wants[1] && !op.uses_rhs()) {
                continue;
            }
            let grad = GspmmGrad { plan: plan.clone(), wants };
            let reads = grad.reads();
            let floats: Vec<_> = std::iter::once(numbers::<B>(3, &plan.out_shape(), &device))
                .chain(reads.0.then(l))
                .chain(reads.1.then(r))
                .collect();
            let given =
                |ints: &[IntTensor<B>]| Tensors { floats: floats.clone(), ints: ints.to_vec() };
            // Kernel and reference have different forms of the argmax.
            let (a, b) = (
                B::run(given(&kernel.ints), grad.clone()),
                grad.reference::<B>(given(&fallback.ints)),
            );
            assert_near_all::<B>(&format!("{what}, gradients {wants:?}"), a, b);
        }
    }
}

#[test]
fn gspmm_on_cpu_backends() {
    on_cpu_backends!(compare);
}

fn compare_dropout<B: GnnBackend>(backend: &str) {
    let device = Device::<B>::default();
    for (rows, width) in [(7, 9), (1, 4), (5, 1), (0, 3), (3, 0)] {
        for (prob, ids) in [
            (0.1, None),
            (0.5, Some((0..rows as u64).map(|r| 1000 - 3 * r).collect())),
            (0.9, None),
        ] {
            let dropout = KeyedDropout { prob, stream: Stream::new(4, "dropout", 2), ids };
            let plan = dropout.plan("dropout", ["prob", "ids"], "rows", rows).unwrap().unwrap();
            let x = || numbers::<B>(6, &Shape::from(vec![rows, width]), &device);
            let what = format!("{backend}, {rows} x {width}, {prob}");
            compare_operator::<B, _>(&what, &plan, vec![x()]);
        }
    }
}

#[test]
fn dropout_on_cpu_backends() {
    on_cpu_backends!(compare_dropout);
}

/// Gradients of `x / w` for `w`, where `w²` is out of the range of f32 and the gradient is not.
fn quotient<B: GnnBackend>(backend: &str) {
    let device = Device::<B>::default();
    let relation = Relation::from_coo(1, 1, vec![0], vec![0]).unwrap();
    let plan = GspmmPlan::new(&relation, BinaryOp::Div, Reduce::Sum, &[], &[]).unwrap();
    for (x, w, want) in [(1e-20f32, 1e-23f32, -1e26f64), (1e25, 1e20, -1e-15), (0.0, 1e-30, 0.0)] {
        let one = |x: f32| B::float_from_data(TensorData::new(vec![x], [1]), &device);
        let (op, inputs) = (GspmmGrad { plan: plan.clone(), wants: [false, true] }, || {
            vec![one(1.0), one(x), one(w)].into()
        });
        for (path, d) in
            [("kernel", B::run(inputs(), op.clone())), ("fallback", op.reference::<B>(inputs()))]
        {
            let [d] = d.take();
            let got = floats::<B>(d).1[0];
            assert!(
                (got - want).abs() <= 1e-5 * want.abs(),
                "{backend}, {path}, x {x:e}, w {w:e}: {got:e}"
            );
        }
    }
}

#[test]
fn quotients_stay_in_range() {
    on_cpu_backends!(quotient);
}
