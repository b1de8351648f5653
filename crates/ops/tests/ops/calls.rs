//! Calls of GSpMM and GSDDMM with any broadcasting, and the checks that their tests share.

use std::fmt::Debug;

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_graph::Relation;
use burn_gnn_ops::*;

use crate::numerics::half_types::HALVES;
use crate::{devices, f64s, numbers, with_rows};
use burn_gnn_testutil::{
    assert_close, assert_close_to_largest, assert_same_bits_on_threads, central_differences,
};

/// An operator on two operands.
pub(crate) trait Operation: Copy + Debug + Sync {
    /// Numbers of rows of `lhs` and `rhs`.
    fn rows(self, relation: &Relation) -> [usize; 2];
    /// Whether `lhs` and `rhs` are read.
    fn uses(self) -> [bool; 2];
    fn apply<const L: usize, const R: usize, const O: usize>(
        self,
        relation: &Relation,
        lhs: Tensor<L>,
        rhs: Tensor<R>,
        reference: bool,
    ) -> Tensor<O>;
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Gspmm(pub(crate) BinaryOp, pub(crate) Reduce);

impl Gspmm {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        BinaryOp::ALL.into_iter().flat_map(|op| Reduce::ALL.map(|reduce| Self(op, reduce)))
    }
}

impl Operation for Gspmm {
    fn rows(self, relation: &Relation) -> [usize; 2] {
        [relation.num_src(), relation.num_edges()]
    }
    fn uses(self) -> [bool; 2] {
        [self.0.uses_lhs(), self.0.uses_rhs()]
    }
    fn apply<const L: usize, const R: usize, const O: usize>(
        self,
        relation: &Relation,
        lhs: Tensor<L>,
        rhs: Tensor<R>,
        reference: bool,
    ) -> Tensor<O> {
        let f = if reference { gspmm_reference } else { gspmm };
        f(relation, self.0, self.1, lhs, rhs)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Gsddmm(pub(crate) SddmmOp, pub(crate) [Target; 2]);

impl Gsddmm {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        SddmmOp::ALL.into_iter().flat_map(Self::all_of)
    }
    pub(crate) fn all_of(op: SddmmOp) -> impl Iterator<Item = Self> {
        Target::ALL.into_iter().flat_map(move |l| Target::ALL.map(|r| Self(op, [l, r])))
    }
}

impl Operation for Gsddmm {
    fn rows(self, relation: &Relation) -> [usize; 2] {
        self.1.map(|target| target.rows(relation))
    }
    fn uses(self) -> [bool; 2] {
        [self.0.uses_lhs(), self.0.uses_rhs()]
    }
    fn apply<const L: usize, const R: usize, const O: usize>(
        self,
        relation: &Relation,
        lhs: Tensor<L>,
        rhs: Tensor<R>,
        reference: bool,
    ) -> Tensor<O> {
        let f = if reference { gsddmm_reference } else { gsddmm };
        f(relation, self.0, self.1[0], self.1[1], lhs, rhs)
    }
}

/// One call: operator, operands, element type.
#[derive(Clone, Debug)]
pub(crate) struct Call<P> {
    pub(crate) relation: Relation,
    pub(crate) operation: P,
    pub(crate) lhs: TensorData,
    pub(crate) rhs: TensorData,
    pub(crate) dtype: DType,
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Kernel,
    /// Runs the kernel without gradients.
    Forward,
    Reference,
}

/// Result and gradients, as f64.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) out: Vec<f64>,
    pub(crate) lhs: Vec<f64>,
    pub(crate) rhs: Vec<f64>,
}

impl Outcome {
    #[track_caller]
    pub(crate) fn assert_near(&self, what: &str, other: &Self, tolerance: f64) {
        assert_close(&format!("{what}, out"), &self.out, &other.out, tolerance);
        assert_close(&format!("{what}, d lhs"), &self.lhs, &other.lhs, tolerance);
        assert_close(&format!("{what}, d rhs"), &self.rhs, &other.rhs, tolerance);
    }
}

impl<P: Operation> Call<P> {
    /// `lhs` and `rhs` are feature shapes (all axes but the first).
    pub(crate) fn new(
        relation: &Relation,
        operation: P,
        (lhs, rhs): (&[usize], &[usize]),
        seed: u64,
    ) -> Self {
        let data = |seed, rows, features: &[usize]| {
            let shape = with_rows(rows, features);
            TensorData::new(numbers(seed, shape.iter().product()), shape)
        };
        let [l, r] = operation.rows(relation);
        let (lhs, rhs) = (data(2 * seed, l, lhs), data(2 * seed + 1, r, rhs));
        Self { relation: relation.clone(), operation, lhs, rhs, dtype: DType::F64 }
    }

    pub(crate) fn kernel(&self, device: &Device) -> Outcome {
        self.by_rank(device, Mode::Kernel)
    }

    /// The loss: a weighted sum of the result.
    fn loss(&self, device: &Device) -> f64 {
        let out = self.by_rank(device, Mode::Forward).out;
        let cotangent = numbers(99, out.len());
        out.iter().zip(cotangent).map(|(a, b)| a * b).sum()
    }

    fn by_rank(&self, device: &Device, mode: Mode) -> Outcome {
        let ranks = (self.lhs.shape().num_dims(), self.rhs.shape().num_dims());
        match (ranks, self.operation.uses()) {
            ((1, 1), _) => self.run::<1, 1, 1>(device, mode),
            ((2, 2), _) => self.run::<2, 2, 2>(device, mode),
            ((3, 3), _) => self.run::<3, 3, 3>(device, mode),
            ((2, 1), [false, _]) => self.run::<2, 1, 1>(device, mode),
            ((2, 1), _) => self.run::<2, 1, 2>(device, mode),
            ((1, 2), [_, false]) => self.run::<1, 2, 1>(device, mode),
            ((1, 2), _) => self.run::<1, 2, 2>(device, mode),
            ((3, 1), [false, _]) => self.run::<3, 1, 1>(device, mode),
            ((3, 1), _) => self.run::<3, 1, 3>(device, mode),
            ((2, 3), [_, false]) => self.run::<2, 3, 2>(device, mode),
            ((2, 3), _) => self.run::<2, 3, 3>(device, mode),
            other => panic!("no run for {other:?}"),
        }
    }

    fn run<const L: usize, const R: usize, const O: usize>(
        &self,
        device: &Device,
        mode: Mode,
    ) -> Outcome {
        let device = device.clone().autodiff();
        let lhs = Tensor::<L>::from_data(self.lhs.clone(), (&device, self.dtype)).require_grad();
        let rhs = Tensor::<R>::from_data(self.rhs.clone(), (&device, self.dtype)).require_grad();
        let reference = mode == Mode::Reference;
        let out: Tensor<O> =
            self.operation.apply(&self.relation, lhs.clone(), rhs.clone(), reference);
        if mode == Mode::Forward {
            return Outcome { out: f64s(out), lhs: vec![], rhs: vec![] };
        }
        let cotangent = TensorData::new(numbers(99, out.shape().num_elements()), out.shape());
        let mut loss = (out.clone() * Tensor::from_data(cotangent, (&device, self.dtype))).sum();
        if reference {
            // The reference on a relation without edges, and the ignored operand of a copy, are not in the autodiff graph.
            loss = loss + (lhs.clone() * 0.0).sum() + (rhs.clone() * 0.0).sum();
        }
        let grads = loss.backward();
        // A kernel computes a gradient for every operand that it reads.
        let zeros = |data: &TensorData, used| {
            if used { panic!("no gradient") } else { vec![0.0; data.num_elements()] }
        };
        let uses = self.operation.uses();
        Outcome {
            out: f64s(out),
            lhs: lhs.grad(&grads).map_or_else(|| zeros(&self.lhs, uses[0]), f64s),
            rhs: rhs.grad(&grads).map_or_else(|| zeros(&self.rhs, uses[1]), f64s),
        }
    }

    /// Compares kernel and reference. Sums of up to a few hundred terms in f64 run in different orders.
    #[track_caller]
    pub(crate) fn agree(&self, what: &str) {
        for (backend, device) in devices() {
            let what = format!("{what}, {backend}, {:?}", self.operation);
            let reference = self.by_rank(&device, Mode::Reference);
            self.kernel(&device).assert_near(&what, &reference, 1e-12);
        }
    }

    /// Central differences of the loss for every entry of one operand.
    fn differences(&self, device: &Device, side: fn(&mut Self) -> &mut TensorData) -> Vec<f64> {
        central_differences(side(&mut self.clone()).num_elements(), 1e-5, |i, by| {
            let mut call = self.clone();
            side(&mut call).as_mut_slice::<f64>().unwrap()[i] += by;
            call.loss(device)
        })
    }

    /// Compares gradients with finite differences, and checks that they are not zeros only.
    #[track_caller]
    pub(crate) fn check_gradients(&self, what: &str) {
        for (backend, device) in devices() {
            let what = format!("{what}, {backend}, {:?}", self.operation);
            let got = self.kernel(&device);
            let (d_lhs, d_rhs) = (
                self.differences(&device, |c| &mut c.lhs),
                self.differences(&device, |c| &mut c.rhs),
            );
            assert_close(&format!("{what}, d lhs"), &got.lhs, &d_lhs, 1e-7);
            assert_close(&format!("{what}, d rhs"), &got.rhs, &d_rhs, 1e-7);
            for (used, d) in self.operation.uses().into_iter().zip([&got.lhs, &got.rhs]) {
                let seen = !used || d.iter().any(|&g| g != 0.0);
                assert!(seen, "{what}: a gradient of zeros proves nothing");
            }
        }
    }

    /// Checks that results in f32 have the same bits for any number of threads.
    #[track_caller]
    pub(crate) fn check_threads(&self, what: &str) {
        let call = Self { dtype: DType::F32, ..self.clone() };
        for (backend, device) in devices() {
            assert_same_bits_on_threads(
                format_args!("{what}, {backend}, {:?}", self.operation),
                || {
                    let Outcome { out, lhs, rhs } = call.kernel(&device);
                    [out, lhs, rhs].concat()
                },
            );
        }
    }

    /// Checks that results in 16-bit types are results in f32, rounded once.
    #[track_caller]
    pub(crate) fn check_halves(&self, what: &str) {
        let device = Device::flex();
        for (dtype, ulp) in HALVES {
            // The same call in f32, on operands that are exact in the smaller type.
            let [half, single] = [dtype, DType::F32].map(|to| Self {
                lhs: self.lhs.clone().convert_dtype(dtype).convert_dtype(to),
                rhs: self.rhs.clone().convert_dtype(dtype).convert_dtype(to),
                dtype: to,
                ..self.clone()
            });
            let what = format!("{what}, {dtype:?}, {:?}", self.operation);
            let (a, b) = (half.kernel(&device), single.kernel(&device));
            assert_close(&format!("{what}, out"), &a.out, &b.out, ulp);
            // The cotangent of `single` is not rounded.
            assert_close_to_largest(format_args!("{what}, d lhs"), &a.lhs, &b.lhs, 4.0 * ulp);
            assert_close_to_largest(format_args!("{what}, d rhs"), &a.rhs, &b.rhs, 4.0 * ulp);
        }
    }
}
