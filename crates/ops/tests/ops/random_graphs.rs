//! Kernels against the reference: named graphs, feature widths round the vector widths, random graphs.

use burn_gnn_graph::Relation;
use burn_gnn_ops::{BinaryOp, Reduce};
use proptest::prelude::*;

use crate::{Call, KINDS, devices, graphs};

/// Sums of up to a few hundred terms in f64, in another order.
const TOLERANCE: f64 = 1e-12;

fn agree(what: &str, call: &Call) {
    for (backend, device) in devices() {
        let what = format!("{what}, {backend}, {:?} {:?}", call.op, call.reduce);
        call.kernel(&device).assert_near(&what, &call.reference(&device), TOLERANCE);
    }
}

#[test]
fn named_graphs() {
    for (name, relation) in graphs::named() {
        for op in BinaryOp::ALL {
            for reduce in Reduce::ALL {
                for (kind, lhs, rhs) in KINDS {
                    agree(
                        &format!("{name}, {kind}"),
                        &Call::new(&relation, op, reduce, lhs, rhs, 3),
                    );
                }
            }
        }
    }
}

#[test]
fn widths() {
    let relation = graphs::random(20, 15, 90, 2.0);
    for width in [0, 1, 4, 7, 8, 9, 24, 31, 32, 33, 130] {
        for op in BinaryOp::ALL {
            for reduce in Reduce::ALL {
                for (kind, lhs, rhs) in [
                    ("rows", vec![width], vec![width]),
                    ("row and [1]", vec![width], vec![1]),
                    ("[1] and row", vec![1], vec![width]),
                    ("heads", vec![2, width], vec![2, 1]),
                ] {
                    agree(
                        &format!("width {width}, {kind}"),
                        &Call::new(&relation, op, reduce, &lhs, &rhs, 4),
                    );
                }
            }
        }
    }
}

fn any_graph() -> impl Strategy<Value = Relation> {
    (1usize..9, 1usize..9, any::<bool>()).prop_flat_map(|(a, b, square)| {
        let b = if square { a } else { b };
        // A third of the edges end in node 0: skewed degrees, parallel edges and (if square) self loops.
        let edge = (0..a as u32, prop_oneof![1 => Just(0), 2 => 0..b as u32]);
        proptest::collection::vec(edge, 0..40).prop_map(move |edges| graphs::relation(a, b, &edges))
    })
}

proptest! {
    #[test]
    fn any_graph_and_call(
        relation in any_graph(),
        op in proptest::sample::select(BinaryOp::ALL.to_vec()),
        reduce in proptest::sample::select(Reduce::ALL.to_vec()),
        kind in 0..KINDS.len(),
        seed in 0u64..1000,
    ) {
        agree(KINDS[kind].0, &Call::new(&relation, op, reduce, KINDS[kind].1, KINDS[kind].2, seed));
    }

    /// Without ties, the order of edges does not matter.
    #[test]
    fn edge_order_does_not_matter(relation in any_graph(), seed in 0u64..1000) {
        let n = relation.num_edges();
        let flipped: Vec<(u32, u32)> = (0..n).rev().map(|e| (relation.src()[e], relation.dst()[e])).collect();
        let flipped = graphs::relation(relation.num_src(), relation.num_dst(), &flipped);
        for reduce in Reduce::ALL {
            let call = Call::new(&relation, BinaryOp::Mul, reduce, &[2], &[2], seed);
            let mut other = Call { relation: flipped.clone(), ..call.clone() };
            let rows: Vec<f64> = call.rhs.try_to_vec().unwrap();
            let reversed = rows.chunks(2).rev().flatten().copied().collect();
            other.rhs = burn::tensor::TensorData::new(reversed, [n, 2]);
            let (a, b) = (call.kernel(&burn::tensor::Device::flex()), other.kernel(&burn::tensor::Device::flex()));
            crate::assert_near("out", &a.out, &b.out, TOLERANCE);
            crate::assert_near("d lhs", &a.lhs, &b.lhs, TOLERANCE);
        }
    }
}
