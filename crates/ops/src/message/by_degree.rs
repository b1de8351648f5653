//! Reduce functions that see nodes of one degree at a time.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use burn::tensor::{Bool, Int, Tensor};
use burn_gnn_graph::{Column, ColumnKind, Relation};

use super::Fields;
use super::batch::{Buckets, NodeBatch, Rows};
use super::reduce::{Mail, NodeFn};
use super::rows::{features, picked, picking};
use crate::OpsError;

/// Consecutive rows of a column, cut at `bounds`.
///
/// Cut in halves again and again: backward of a cut fills a gradient as large as what was cut, so one cut per part
/// would cost parts × rows, halves cost rows × log(parts).
pub(super) fn cut(x: &Column, bounds: &[usize]) -> Vec<Column> {
    if bounds.len() == 2 {
        return vec![x.clone()];
    }
    let middle = bounds.len() / 2;
    let (first, at, last) = (bounds[0], bounds[middle], bounds[bounds.len() - 1]);
    let mut parts = cut(&narrow(x, 0, at - first), &bounds[..=middle]);
    parts.extend(cut(&narrow(x, at - first, last - at), &bounds[middle..]));
    parts
}

fn narrow(x: &Column, start: usize, len: usize) -> Column {
    macro_rules! by_rank {
        ($kind:ty, $($rank:literal)*) => {
            match x.shape().num_dims() {
                $($rank => x.tensor::<$rank, $kind>().map(|t: Tensor<$rank, $kind>| Column::new(t.narrow(0, start, len))),)*
                _ => None,
            }
        };
    }
    let part = match x.kind() {
        ColumnKind::Float => by_rank!(burn::tensor::Float, 1 2 3 4 5),
        ColumnKind::Int => by_rank!(Int, 1 2 3 4 5),
        ColumnKind::Bool => by_rank!(Bool, 1 2 3 4 5),
    };
    // Ranks beyond those that columns are made for.
    part.unwrap_or_else(|| x.select(&(start as u32..(start + len) as u32).collect::<Vec<_>>()))
}

/// Calls `f` for the nodes of each degree, and puts the rows that it returns in the order of the nodes.
pub(super) fn by_degree(op: &'static str, f: NodeFn<'_>, mail: &Mail) -> Result<Fields, OpsError> {
    let csc = mail.relation.csc();
    let degree = |v: u32| csc.row(v as usize).len();
    // Nodes by degree, in their order inside a degree.
    let mut nodes: Vec<u32> = (0..mail.relation.num_dst() as u32).collect();
    nodes.sort_by_key(|&v| degree(v));
    let mut bounds: Vec<usize> = (0..nodes.len()).filter(|&i| i == 0 || degree(nodes[i - 1]) != degree(nodes[i])).collect();
    // Without nodes one empty bucket tells the shapes of the results.
    if bounds.is_empty() {
        bounds.push(0);
    }
    bounds.push(nodes.len());
    let degrees: Vec<usize> = bounds[..bounds.len() - 1].iter().map(|&i| nodes.get(i).map_or(1, |&v| degree(v))).collect();

    let positions: Vec<u32> = nodes.iter().flat_map(|&v| csc.row(v as usize)).map(|p| p as u32).collect();
    let order = picking(positions.len(), positions)?;
    let mut at = 0;
    let starts = bounds.windows(2).zip(&degrees).map(|(b, d)| {
        at += (b[1] - b[0]) * d;
        at
    });
    let message_bounds: Vec<usize> = std::iter::once(0).chain(starts).collect();
    let mut messages = BTreeMap::new();
    for (name, column) in mail.messages.iter() {
        messages.insert(name, cut(&picked(column, Some(&order)), &message_bounds));
    }

    let ids = mail.ids();
    let ids: Vec<u32> = nodes.iter().map(|&v| ids[v as usize]).collect();
    let pick = picking(mail.frame.len(), ids.clone())?;
    let buckets = Rc::new(Buckets { frame: mail.frame.clone(), pick, bounds: bounds.clone(), read: RefCell::default() });
    let mut made: BTreeMap<String, Vec<Column>> = BTreeMap::new();
    for (i, range) in bounds.windows(2).enumerate() {
        let n = range[1] - range[0];
        let dst: Vec<u32> = (0..n as u32).flat_map(|v| std::iter::repeat_n(v, degrees[i])).collect();
        let relation = Relation::from_coo(1, n, vec![0; dst.len()], dst)?;
        let fields = messages.iter().fold(Fields::default(), |f, (name, parts)| f.with_column(*name, parts[i].clone()));
        let rows = Rows::Bucket(buckets.clone(), i);
        let batch = NodeBatch { rows, ids: ids[range[0]..range[1]].to_vec(), mailbox: Some((relation, fields)) };
        let fields = f(&batch)?.checked(&format!("{op}: reduce function"), "one row per node of the batch", n)?;
        if i > 0 && made.keys().map(String::as_str).ne(fields.names()) {
            let expected = made.keys().cloned().collect();
            return Err(OpsError::BucketFields { op, degree: degrees[i], expected, actual: names(&fields) });
        }
        for (name, column) in fields.iter() {
            made.entry(name.to_owned()).or_default().push(column.clone());
        }
    }
    let mut place = vec![0; nodes.len()];
    nodes.iter().enumerate().for_each(|(i, &v)| place[v as usize] = i as u32);
    let back = picking(nodes.len(), place)?;
    let mut out = Fields::default();
    for (name, columns) in made {
        let kind = |c: &Column| format!("{name}: {:?} {:?}", c.dtype(), features(c));
        if let Some(i) = columns.iter().position(|c| kind(c) != kind(&columns[0])) {
            let (expected, actual) = (vec![kind(&columns[0])], vec![kind(&columns[i])]);
            return Err(OpsError::BucketFields { op, degree: degrees[i], expected, actual });
        }
        out = out.with_column(name, picked(&Column::cat(&columns), Some(&back)));
    }
    Ok(out)
}

fn names(fields: &Fields) -> Vec<String> {
    fields.names().into_iter().map(str::to_owned).collect()
}
