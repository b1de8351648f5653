//! GSpMM kernels against the reference: named graphs, feature sizes around vector widths, random graphs.

use burn_gnn_ops::{BinaryOp, Reduce};
use proptest::prelude::*;

use crate::KINDS;
use crate::calls::{Call, Gspmm};
use burn_gnn_testutil::{assert_close, graphs};

#[test]
fn named_graphs() {
    for (name, relation) in graphs::named() {
        for operation in Gspmm::all() {
            for (kind, lhs, rhs) in KINDS {
                Call::new(&relation, operation, (lhs, rhs), 3).agree(&format!("{name}, {kind}"));
            }
        }
    }
}

#[test]
fn widths() {
    let relation = graphs::random(20, 15, 90, 2.0);
    for width in [0, 1, 4, 7, 8, 9, 24, 31, 32, 33, 130] {
        for operation in Gspmm::all() {
            for (kind, lhs, rhs) in [
                ("rows", vec![width], vec![width]),
                ("row and [1]", vec![width], vec![1]),
                ("[1] and row", vec![1], vec![width]),
                ("heads", vec![2, width], vec![2, 1]),
            ] {
                Call::new(&relation, operation, (&lhs, &rhs), 4)
                    .agree(&format!("width {width}, {kind}"));
            }
        }
    }
}

proptest! {
    #[test]
    fn any_graph_and_call(
        relation in graphs::any_relation(0..40),
        op in proptest::sample::select(BinaryOp::ALL.to_vec()),
        reduce in proptest::sample::select(Reduce::ALL.to_vec()),
        kind in 0..KINDS.len(),
        seed in 0u64..1000,
    ) {
        let (name, lhs, rhs) = KINDS[kind];
        Call::new(&relation, Gspmm(op, reduce), (lhs, rhs), seed).agree(name);
    }

    /// Without ties, the order of edges does not matter.
    #[test]
    fn edge_order_does_not_matter(relation in graphs::any_relation(0..40), seed in 0u64..1000) {
        let n = relation.num_edges();
        let flipped: Vec<(u32, u32)> = (0..n).rev().map(|e| (relation.src()[e], relation.dst()[e])).collect();
        let flipped = graphs::relation(relation.num_src(), relation.num_dst(), &flipped);
        for reduce in Reduce::ALL {
            let call = Call::new(&relation, Gspmm(BinaryOp::Mul, reduce), (&[2], &[2]), seed);
            let mut other = Call { relation: flipped.clone(), ..call.clone() };
            let rows: Vec<f64> = call.rhs.try_to_vec().unwrap();
            let reversed = rows.chunks(2).rev().flatten().copied().collect();
            other.rhs = burn::tensor::TensorData::new(reversed, [n, 2]);
            let (a, b) = (call.kernel(&burn::tensor::Device::flex()), other.kernel(&burn::tensor::Device::flex()));
            assert_close("out", &a.out, &b.out, 1e-12);
            assert_close("d lhs", &a.lhs, &b.lhs, 1e-12);
        }
    }
}
