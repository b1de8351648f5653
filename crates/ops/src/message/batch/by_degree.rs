//! Calls reduce functions once per degree bucket.

use std::collections::BTreeMap;
use std::rc::Rc;

use burn_gnn_graph::Column;

use crate::error::OpsError;
use crate::message::batch::degree_buckets::DegreeBuckets;
use crate::message::batch::node_batch::{NodeBatch, NodeFn, REDUCE, Rows};
use crate::message::columns::features;
use crate::message::fields::Fields;

/// Calls `f` for the nodes of each degree, and concatenates the results in this order.
pub(crate) fn by_degree(
    op: &'static str,
    f: NodeFn<'_>,
    sorted: DegreeBuckets,
) -> Result<Fields, OpsError> {
    let sorted = Rc::new(sorted);
    let (order, ids) = (&sorted.order, sorted.nodes.src());
    let mut made: BTreeMap<String, Vec<Column>> = BTreeMap::new();
    for (i, (range, &(degree, _))) in order.node_bounds.windows(2).zip(&order.buckets).enumerate() {
        let batch = NodeBatch {
            rows: Rows::Bucket(sorted.clone(), i),
            ids: ids[range[0]..range[1]].to_vec(),
        };
        let fields = batch.call(op, REDUCE, f)?;
        if i > 0 && made.keys().map(String::as_str).ne(fields.names()) {
            let expected = made.keys().cloned().collect();
            let actual = fields.owned_names();
            return Err(OpsError::BucketFields { op, degree, expected, actual });
        }
        for (name, column) in fields.iter() {
            made.entry(name.to_owned()).or_default().push(column.clone());
        }
    }
    let mut out = Fields::default();
    for (name, columns) in made {
        let kind = |c: &Column| format!("{name}: {:?} {:?}", c.dtype(), features(c));
        if let Some(i) = columns.iter().position(|c| kind(c) != kind(&columns[0])) {
            let (expected, actual) = (vec![kind(&columns[0])], vec![kind(&columns[i])]);
            return Err(OpsError::BucketFields {
                op,
                degree: order.buckets[i].0,
                expected,
                actual,
            });
        }
        out = out.with_column(name, Column::cat(&columns));
    }
    Ok(out)
}
