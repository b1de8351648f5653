//! Every operator on every CPU backend: gradients against finite differences, values and gradients
//! against the reference in plain primitives, and the corners that the documentation promises.
// Burn has deprecated its ndarray backend; people still use it.
#![allow(deprecated)]

mod adam;
mod aggregate;
mod attention;
mod bits;
mod corners;
mod cross_entropy;
mod draws;
mod edge_softmax;
mod epilogue;
mod errors;
mod families;
mod finite_differences;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
mod gpu;
mod gsddmm;
mod halves;
mod instruction_sets;
mod invariance;
mod matmul;
mod message;
mod message_blocks;
mod message_closures;
mod message_cross;
mod message_errors;
mod message_layer;
mod multi;
mod multi_edges;
mod precision;
mod properties;
mod random_graphs;
mod ranks;
mod relational;
mod segments;
mod signed_zeros;
mod stars;
mod stress;
mod typed;
#[path = "../../../sampling/tests/sampling/watchdog.rs"]
mod watchdog;
mod widths;

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_graph::Relation;
use burn_gnn_ops::{BinaryOp, Reduce, gspmm, gspmm_reference};
#[cfg(not(any(feature = "wgpu", feature = "cuda")))]
use burn_gnn_testutil::{Kind, NO_GPU_BACKEND, skip};
use families::{assert_near, devices, f64s, graphs, numbers};

/// The tests of the module of this name are there with the feature only.
#[cfg(not(any(feature = "wgpu", feature = "cuda")))]
#[test]
fn gpu() {
    skip(Kind::Gpu, NO_GPU_BACKEND);
}

/// Feature shapes (first axis left out) of `lhs` and `rhs`, one pair for each way to broadcast.
const KINDS: [(&str, &[usize], &[usize]); 14] = [
    ("numbers", &[], &[]),
    ("rows", &[3], &[3]),
    ("row and number", &[3], &[]),
    ("number and row", &[], &[3]),
    ("row and [1]", &[3], &[1]),
    ("[1] and row", &[1], &[3]),
    ("matrices", &[2, 3], &[2, 3]),
    ("heads", &[2, 3], &[2, 1]),
    ("heads of 8", &[2, 8], &[2, 1]),
    ("heads of 24", &[2, 24], &[2, 1]),
    ("heads of 32", &[2, 32], &[2, 1]),
    ("outer", &[2, 1], &[1, 3]),
    ("matrix and number", &[2, 3], &[]),
    ("row and matrix", &[3], &[2, 3]),
];

fn with_rows(rows: usize, features: &[usize]) -> Vec<usize> {
    [&[rows], features].concat()
}

/// One call to compare: operands, cotangent of the result, element type.
#[derive(Clone, Debug)]
struct Call {
    relation: Relation,
    op: BinaryOp,
    reduce: Reduce,
    lhs: TensorData,
    rhs: TensorData,
    dtype: DType,
}

/// Result and gradients, in f64.
#[derive(Clone, Debug, PartialEq)]
struct Outcome {
    out: Vec<f64>,
    lhs: Vec<f64>,
    rhs: Vec<f64>,
}

impl Call {
    fn new(
        relation: &Relation,
        op: BinaryOp,
        reduce: Reduce,
        lhs: &[usize],
        rhs: &[usize],
        seed: u64,
    ) -> Self {
        let data = |seed, rows, features: &[usize]| {
            let shape = with_rows(rows, features);
            TensorData::new(numbers(seed, shape.iter().product()), shape)
        };
        Self {
            relation: relation.clone(),
            op,
            reduce,
            lhs: data(2 * seed, relation.num_src(), lhs),
            rhs: data(2 * seed + 1, relation.num_edges(), rhs),
            dtype: DType::F64,
        }
    }

    fn kernel(&self, device: &Device) -> Outcome {
        self.by_rank(device, false)
    }

    fn reference(&self, device: &Device) -> Outcome {
        self.by_rank(device, true)
    }

    /// The weighted sum of the result that gradients are taken of.
    fn loss(&self, device: &Device) -> f64 {
        let out = self.kernel(device).out;
        let cotangent = numbers(99, out.len());
        out.iter().zip(cotangent).map(|(a, b)| a * b).sum()
    }

    fn by_rank(&self, device: &Device, reference: bool) -> Outcome {
        match (self.lhs.shape().num_dims(), self.rhs.shape().num_dims(), self.op) {
            (1, 1, _) => self.run::<1, 1, 1>(device, reference),
            (2, 2, _) => self.run::<2, 2, 2>(device, reference),
            (3, 3, _) => self.run::<3, 3, 3>(device, reference),
            (2, 1, BinaryOp::CopyRhs) => self.run::<2, 1, 1>(device, reference),
            (2, 1, _) => self.run::<2, 1, 2>(device, reference),
            (1, 2, BinaryOp::CopyLhs) => self.run::<1, 2, 1>(device, reference),
            (1, 2, _) => self.run::<1, 2, 2>(device, reference),
            (3, 1, BinaryOp::CopyRhs) => self.run::<3, 1, 1>(device, reference),
            (3, 1, _) => self.run::<3, 1, 3>(device, reference),
            (2, 3, BinaryOp::CopyLhs) => self.run::<2, 3, 2>(device, reference),
            (2, 3, _) => self.run::<2, 3, 3>(device, reference),
            other => panic!("no run for {other:?}"),
        }
    }

    fn run<const L: usize, const R: usize, const O: usize>(
        &self,
        device: &Device,
        reference: bool,
    ) -> Outcome {
        let device = device.clone().autodiff();
        let lhs = Tensor::<L>::from_data(self.lhs.clone(), (&device, self.dtype)).require_grad();
        let rhs = Tensor::<R>::from_data(self.rhs.clone(), (&device, self.dtype)).require_grad();
        let f = if reference { gspmm_reference::<L, R, O> } else { gspmm::<L, R, O> };
        let out = f(&self.relation, self.op, self.reduce, lhs.clone(), rhs.clone());
        let cotangent = TensorData::new(numbers(99, out.shape().num_elements()), out.shape());
        let mut loss = (out.clone() * Tensor::from_data(cotangent, (&device, self.dtype))).sum();
        if reference {
            // The reference of a relation without edges, and a copy's other operand, are not in the graph.
            loss = loss + (lhs.clone() * 0.0).sum() + (rhs.clone() * 0.0).sum();
        }
        let grads = loss.backward();
        // A kernel gives every operand that it uses a gradient, if only zeros.
        let zeros = |data: &TensorData, used| {
            if used { panic!("no gradient") } else { vec![0.0; data.num_elements()] }
        };
        Outcome {
            out: f64s(out),
            lhs: lhs.grad(&grads).map_or_else(|| zeros(&self.lhs, self.op.uses_lhs()), f64s),
            rhs: rhs.grad(&grads).map_or_else(|| zeros(&self.rhs, self.op.uses_rhs()), f64s),
        }
    }
}

impl Outcome {
    #[track_caller]
    fn assert_near(&self, what: &str, other: &Self, tolerance: f64) {
        assert_near(&format!("{what}, out"), &self.out, &other.out, tolerance);
        assert_near(&format!("{what}, d lhs"), &self.lhs, &other.lhs, tolerance);
        assert_near(&format!("{what}, d rhs"), &self.rhs, &other.rhs, tolerance);
    }
}
