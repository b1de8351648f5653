//! Calls reduce functions per degree bucket.

use std::collections::BTreeMap;
use std::rc::Rc;

use burn::tensor::kind::Basic;
use burn::tensor::{Bool, Float, Int, Tensor};
use burn_gnn_graph::{Column, ColumnKind};

use super::Fields;
use super::batch::{NodeBatch, NodeFn, REDUCE, Rows};
use super::degree_buckets::DegreeBuckets;
use super::dynamic_rank::{features, ranked};
use crate::OpsError;
use crate::split_rows::split_rows;

/// Consecutive rows of a column, cut at `bounds`, which begin with 0.
pub(super) fn cut(x: &Column, bounds: &[usize]) -> Vec<Column> {
    // Burn's `narrow` takes no empty run; there is one only where there are no rows at all.
    if bounds.len() == 2 {
        return vec![x.clone()];
    }
    let runs = || bounds.windows(2);
    let parts = ranked!(x.shape().num_dims(), D => match x.kind() {
        ColumnKind::Float => x
            .tensor::<D, Float>()
            .map(|x| split_rows(x, bounds).into_iter().map(Column::new).collect()),
        ColumnKind::Int => x.tensor::<D, Int>().map(|x| narrowed(&x, bounds)),
        ColumnKind::Bool => x.tensor::<D, Bool>().map(|x| narrowed(&x, bounds)),
    });
    // Ranks beyond those that columns are made for.
    let select = |b: &[usize]| x.select(&(b[0] as u32..b[1] as u32).collect::<Vec<_>>());
    parts.unwrap_or_else(|| runs().map(select).collect())
}

fn narrowed<const D: usize, K: Basic>(x: &Tensor<D, K>, bounds: &[usize]) -> Vec<Column> {
    let run = |b: &[usize]| Column::new(x.clone().narrow(0, b[0], b[1] - b[0]));
    bounds.windows(2).map(run).collect()
}

/// Calls `f` for the nodes of each degree; rows of the results come in that order.
pub(super) fn by_degree(
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
