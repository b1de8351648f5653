//! Plans a weighted aggregation.

use std::sync::Arc;

use burn::tensor::Shape;
use burn_gnn_structure::{Attached, Bytes, CountBytes, Derived, Relation};
use rayon::prelude::*;

use crate::activation::Activation;
use crate::broadcast::check_width;
use crate::error::PlanError;
use crate::gsddmm::Target;
use crate::gspmm::{BinaryOp, GspmmPlan, Reduce};

/// Options of `weighted_aggregate`; the default is the plain sum.
#[derive(Clone, Debug, Default)]
pub struct AggregateOptions {
    /// Factor `l_u` that multiplies each source row.
    pub source: Option<DegreeScale>,
    /// Factor `r_v` that multiplies each destination row.
    pub destination: Option<DegreeScale>,
    /// Activation of the result.
    pub activation: Activation,
}

const NAME: &str = "weighted_aggregate";

/// Kind of degrees that a [`DegreeScale`] is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DegreesOf {
    /// Out-degrees of source nodes in the whole graph.
    Sources,
    /// In-degrees of destination nodes in the whole graph.
    Destinations,
    /// Numbers of messages that destination nodes receive in the view.
    Messages,
}

/// Normalisation factors of nodes, `max(degree, 1)^power`.
///
/// The caller supplies the degrees, because a node in a partition or in a block has more edges in the whole graph than
/// in the relation at hand. Factors are computed in parallel on first use and cached for all calls and their backward.
/// A clone costs one reference count and shares the cache.
#[derive(Clone)]
pub struct DegreeScale(Arc<Scale>);

struct Scale {
    degrees: Box<[u32]>,
    power: f64,
    double: Derived<Vec<f64>>,
    single: Derived<Vec<f32>>,
    /// Copies of the factors on devices.
    attached: Attached,
}

impl std::fmt::Debug for DegreeScale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DegreeScale({} degrees, to the power of {})", self.0.degrees.len(), self.0.power)
    }
}

impl PartialEq for DegreeScale {
    /// Equal degrees and powers.
    fn eq(&self, o: &Self) -> bool {
        self.0.degrees == o.0.degrees && self.0.power == o.0.power
    }
}

impl CountBytes for DegreeScale {
    fn bytes(&self) -> Bytes {
        Bytes::host(size_of_val(&*self.0.degrees))
            + self.0.double.bytes()
            + self.0.single.bytes()
            + self.0.attached.bytes()
    }
}

impl DegreeScale {
    /// One degree for every row.
    pub fn new(degrees: &[u32], power: f64) -> Self {
        Self(Arc::new(Scale {
            degrees: degrees.into(),
            power,
            double: Derived::new(),
            single: Derived::new(),
            attached: Attached::default(),
        }))
    }
    /// Whether both are clones of one value.
    #[doc(hidden)]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
    /// The degrees.
    pub fn degrees(&self) -> &[u32] {
        &self.0.degrees
    }
    /// The exponent.
    pub fn power(&self) -> f64 {
        self.0.power
    }
    /// Data that devices cache for these factors.
    #[doc(hidden)]
    pub fn attached(&self) -> &Attached {
        &self.0.attached
    }
    /// The factors.
    #[doc(hidden)]
    pub fn double(&self) -> &[f64] {
        self.0.double.get_or_compute(|| self.compute(|f| f))
    }
    /// The factors, rounded to f32.
    #[doc(hidden)]
    pub fn single(&self) -> &[f32] {
        self.0.single.get_or_compute(|| self.compute(|f| f as f32))
    }
    fn compute<A: Send>(&self, of: impl Fn(f64) -> A + Sync) -> Vec<A> {
        // `sqrt` and division are rounded correctly; `powf` need not be.
        let root: fn(f64, f64) -> f64 = match self.0.power {
            -0.5 => |d, _| 1.0 / d.sqrt(),
            -1.0 => |d, _| 1.0 / d,
            _ => f64::powf,
        };
        self.0
            .degrees
            .par_iter()
            .with_min_len(1 << 12)
            .map(|&d| of(root(f64::from(d.max(1)), self.0.power)))
            .collect()
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
    /// Aggregation of rows with `width` features, with one weight per edge if `weighted`, and with a bias if `biased`.
    ///
    /// # Errors
    /// Rows of more than `u32::MAX` entries; degrees that are not one per node of the relation; a parameter of the
    /// activation outside its range.
    pub fn new(
        relation: &Relation,
        width: usize,
        options: AggregateOptions,
        weighted: bool,
        biased: bool,
    ) -> Result<Self, PlanError> {
        check_width(NAME, &[width])?;
        let scales = [
            ("source degrees", Target::Src, &options.source),
            ("destination degrees", Target::Dst, &options.destination),
        ];
        for (arg, target, scale) in scales {
            if let Some(scale) = scale {
                target.check_rows(NAME, arg, relation, scale.degrees().len())?;
            }
        }
        options.activation.check(NAME)?;
        Ok(Self(Arc::new(Inner { relation: relation.clone(), width, options, weighted, biased })))
    }
    /// The edges.
    pub fn relation(&self) -> &Relation {
        &self.0.relation
    }
    /// Number of features.
    pub fn width(&self) -> usize {
        self.0.width
    }
    /// Whether there are edge weights. If not, the operand is an empty slice.
    pub fn weighted(&self) -> bool {
        self.0.weighted
    }
    /// Whether there is a bias. If not, the operand is an empty slice.
    pub fn biased(&self) -> bool {
        self.0.biased
    }
    /// Activation of the result.
    pub fn activation(&self) -> Activation {
        self.0.options.activation
    }
    /// Whether backward reads the result.
    pub fn keeps_result(&self) -> bool {
        self.activation() != Activation::None
    }
    /// Factors of source rows.
    pub fn source(&self) -> Option<&DegreeScale> {
        self.0.options.source.as_ref()
    }
    /// Factors of destination rows.
    pub fn destination(&self) -> Option<&DegreeScale> {
        self.0.options.destination.as_ref()
    }
    /// The sum before scaling, bias and activation, as a GSpMM.
    pub fn product(&self) -> GspmmPlan {
        let op = if self.weighted() { BinaryOp::Mul } else { BinaryOp::CopyLhs };
        let rhs: &[usize] = if self.weighted() { &[] } else { &[self.width()] };
        match GspmmPlan::new(self.relation(), op, Reduce::Sum, &[self.width()], rhs) {
            Ok(plan) => plan,
            Err(misfit) => unreachable!("one number per edge broadcasts with any row: {misfit:?}"),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each element type is computed once, and all clones share it.
    #[test]
    fn factors_are_kept() {
        let degrees: Vec<u32> = (0..10_000).collect();
        let scale = DegreeScale::new(&degrees, -0.5);
        let (single, clone) = (scale.single(), scale.clone());
        assert_eq!(single.as_ptr(), clone.single().as_ptr());
        assert_eq!(scale.double().as_ptr(), clone.double().as_ptr());
        for (i, &d) in degrees.iter().enumerate() {
            let want = 1.0 / f64::from(d.max(1)).sqrt();
            assert_eq!((scale.double()[i], single[i]), (want, want as f32));
        }
        assert_eq!(scale, DegreeScale::new(&degrees, -0.5));
        assert_ne!(scale, DegreeScale::new(&degrees, -1.0));
    }
}
