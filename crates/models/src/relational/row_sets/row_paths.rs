//! Enumerates the paths of foreign keys from a table along which a model reads sets of rows.

use burn::serde::{Deserialize, Serialize};
use burn_gnn_data::{DatabaseGraph, KeyCount};
use burn_gnn_graph::{EdgeType, GraphError, Schema};

use crate::error::ModelError;

/// A step along a foreign key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "burn::serde")]
pub struct RowStep {
    /// Table with the foreign key.
    pub table: String,
    /// Columns of the foreign key, joined by `+`.
    pub columns: String,
    /// Table to which it refers.
    pub refers_to: String,
    /// Whether the step leads to the rows that refer to a row, of which it takes the latest `limit`; otherwise to the
    /// row that it refers to.
    pub limit: Option<usize>,
}

/// A path from an entity to a set of rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "burn::serde")]
pub struct RowPath {
    /// Steps from the entity; none: the entity itself.
    pub steps: Vec<RowStep>,
    /// Table at the end.
    pub table: String,
    /// Paths of references from a row at the end, whose rows join it: a message of a row contains the rows to which it
    /// refers.
    pub joined: Vec<Vec<RowStep>>,
}

/// Limits of the rows of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathLimits {
    /// Rows that refer to the entity.
    pub(crate) rows: usize,
    /// Rows of a longer path.
    pub(crate) far_rows: usize,
}

impl RowStep {
    fn new(key: &KeyCount, limit: Option<usize>) -> Self {
        Self {
            table: key.table.clone(),
            columns: key.columns.clone(),
            refers_to: key.refers_to.clone(),
            limit,
        }
    }

    /// Number of the edge type of the step, whose destinations are the rows that it starts from.
    pub(crate) fn etype(&self, schema: &Schema) -> Result<usize, GraphError> {
        let Self { table, columns, refers_to, limit } = self;
        let etype = match limit {
            Some(_) => EdgeType::from((table.as_str(), columns.as_str(), refers_to.as_str())),
            None => {
                let back = format!("rev_{columns}");
                EdgeType::from((refers_to.as_str(), back.as_str(), table.as_str()))
            }
        };
        schema.etype(&etype)
    }

    /// Table that the step leads to.
    fn end(&self) -> &str {
        if self.limit.is_some() { &self.table } else { &self.refers_to }
    }

    fn is_key(&self, key: &KeyCount) -> bool {
        self.table == key.table && self.columns == key.columns && self.refers_to == key.refers_to
    }
}

/// The paths from a table:
///
/// * the entity itself;
/// * rows that refer to it;
/// * rows that refer to these;
/// * rows that refer to a row without a time to which the entity, or the latest row that refers to it, refers: what
///   happened lately at the driver's constructor. Of several tables whose rows refer to the entity and to that
///   table, the one with the most rows before `before` leads there.
pub(crate) fn row_paths(
    graph: &DatabaseGraph,
    entity: &str,
    limits: PathLimits,
    before: i64,
) -> Result<Vec<RowPath>, ModelError> {
    let keys = graph.keys();
    let path = |steps: Vec<RowStep>| {
        let table = steps.last().map_or(entity, |step| step.end()).to_owned();
        let joined = joined(keys, &table, steps.last());
        RowPath { steps, table, joined }
    };
    let many = |key: &KeyCount, limit: usize| RowStep::new(key, Some(limit));
    let mut all = vec![path(vec![])];
    for key in children(keys, entity) {
        all.push(path(vec![many(key, limits.rows)]));
    }
    for key in children(keys, entity) {
        for far in children(keys, &key.table) {
            all.push(path(vec![many(key, limits.far_rows), many(far, limits.far_rows)]));
        }
    }
    // Tables without times that a bridge leads to, with the steps there.
    let mut bridges: Vec<Vec<RowStep>> = vec![];
    for key in keys.iter().filter(|key| key.table == entity) {
        bridges.push(vec![RowStep::new(key, None)]);
    }
    // Later rows must not change the choice.
    let past = |key| {
        let [etype, _] = KeyCount::etypes(key);
        Ok(graph.edge_times(&etype)?.iter().filter(|&&time| time < before).count())
    };
    let by_rows = children(keys, entity).into_iter().map(|key| Ok((past(key)?, key)));
    let mut by_rows = by_rows.collect::<Result<Vec<_>, GraphError>>()?;
    by_rows.sort_by_key(|&(rows, _)| std::cmp::Reverse(rows));
    for (_, key) in by_rows {
        for other in keys.iter().filter(|other| other.table == key.table) {
            let is_same = other.columns == key.columns;
            let is_known = bridges
                .iter()
                .flat_map(|steps| steps.last())
                .any(|step| step.refers_to == other.refers_to);
            if !is_same && !is_known && graph.row_times(other.refers_to.as_str())?.is_none() {
                bridges.push(vec![many(key, 1), RowStep::new(other, None)]);
            }
        }
    }
    for bridge in bridges {
        let Some(last) = bridge.last() else { continue };
        for key in children(keys, &last.refers_to) {
            let mut steps = bridge.clone();
            steps.push(many(key, limits.far_rows));
            all.push(path(steps));
        }
    }
    Ok(all)
}

/// Foreign keys that refer to a table.
fn children<'a>(keys: &'a [KeyCount], table: &str) -> Vec<&'a KeyCount> {
    keys.iter().filter(|key| key.refers_to == table).collect()
}

/// Paths of one or two references from the rows of a table, without the one that leads back.
fn joined(keys: &[KeyCount], table: &str, last: Option<&RowStep>) -> Vec<Vec<RowStep>> {
    let mut all = vec![];
    let leads_back =
        |key: &KeyCount| last.is_some_and(|step| step.limit.is_some() && step.is_key(key));
    for key in keys.iter().filter(|key| key.table == table && !leads_back(key)) {
        let first = RowStep::new(key, None);
        all.push(vec![first.clone()]);
        for next in keys.iter().filter(|next| next.table == key.refers_to) {
            all.push(vec![first.clone(), RowStep::new(next, None)]);
        }
    }
    all
}
