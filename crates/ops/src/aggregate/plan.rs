//! What one weighted aggregation does, as a plain value.

use std::sync::Arc;

use burn::tensor::Shape;
use burn_gnn_graph::Relation;

use super::AggregateOptions;
use crate::Activation;

/// The factor `max(degree, 1)^power` of every node.
///
/// Degrees are given, not counted: a source in a partition or in a block has more edges in the whole graph
/// than are seen here. A clone costs one reference count.
#[derive(Clone, Debug, PartialEq)]
pub struct DegreeScale {
    degrees: Arc<[u32]>,
    power: f64,
}

impl DegreeScale {
    /// One degree for every row.
    pub fn new(degrees: &[u32], power: f64) -> Self {
        Self { degrees: degrees.into(), power }
    }
    /// The degrees.
    pub fn degrees(&self) -> &[u32] {
        &self.degrees
    }
    /// The factors.
    pub(crate) fn factors<A>(&self, of: impl Fn(f64) -> A) -> Vec<A> {
        // Two roots are frequent, and exact where the general power need not be.
        let root: fn(f64, f64) -> f64 = match self.power {
            -0.5 => |d, _| 1.0 / d.sqrt(),
            -1.0 => |d, _| 1.0 / d,
            _ => f64::powf,
        };
        self.degrees.iter().map(|&d| of(root(f64::from(d.max(1)), self.power))).collect()
    }
}

#[derive(Debug)]
struct Inner {
    relation: Relation,
    width: usize,
    options: AggregateOptions,
    weighted: bool,
    biased: bool,
}

/// Relation, factors and epilogue of one weighted aggregation; a clone costs one reference count.
#[derive(Clone, Debug)]
pub struct AggregatePlan(Arc<Inner>);

impl AggregatePlan {
    pub(crate) fn new(relation: &Relation, width: usize, options: AggregateOptions, weighted: bool, biased: bool) -> Self {
        Self(Arc::new(Inner { relation: relation.clone(), width, options, weighted, biased }))
    }
    /// The edges.
    pub fn relation(&self) -> &Relation {
        &self.0.relation
    }
    /// Columns.
    pub fn width(&self) -> usize {
        self.0.width
    }
    /// Whether there are edge weights; if not, that operand has no entries.
    pub fn weighted(&self) -> bool {
        self.0.weighted
    }
    /// Whether there is a bias; if not, that operand has no entries.
    pub fn biased(&self) -> bool {
        self.0.biased
    }
    /// Applied at the end.
    pub fn activation(&self) -> Activation {
        self.0.options.activation
    }
    /// Factors of source rows.
    pub fn source(&self) -> Option<&DegreeScale> {
        self.0.options.source.as_ref()
    }
    /// Factors of destination rows.
    pub fn destination(&self) -> Option<&DegreeScale> {
        self.0.options.destination.as_ref()
    }
    /// Shape of the result.
    pub fn out_shape(&self) -> Shape {
        Shape::from(vec![self.0.relation.num_dst(), self.0.width])
    }
    /// Shape of `x`.
    pub fn in_shape(&self) -> Shape {
        Shape::from(vec![self.0.relation.num_src(), self.0.width])
    }
}
