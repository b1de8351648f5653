//! Hand-written gradients against central differences in f64.

use crate::KINDS;
use crate::calls::{Call, Gspmm};
use burn_gnn_testutil::graphs;

#[test]
fn every_op_reducer_and_broadcast() {
    let relation = graphs::small();
    for operation in Gspmm::all() {
        for (i, (kind, lhs, rhs)) in KINDS.into_iter().enumerate() {
            Call::new(&relation, operation, (lhs, rhs), i as u64 + 1).check_gradients(kind);
        }
    }
}
