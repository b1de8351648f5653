//! Hand-written gradients against central differences in f64.

use crate::calls::{Call, Gspmm};
use crate::{KINDS, graphs};

#[test]
fn every_op_reducer_and_broadcast() {
    let relation = graphs::small();
    for operation in Gspmm::all() {
        for (i, (kind, lhs, rhs)) in KINDS.into_iter().enumerate() {
            Call::new(&relation, operation, (lhs, rhs), i as u64 + 1).check_gradients(kind);
        }
    }
}
