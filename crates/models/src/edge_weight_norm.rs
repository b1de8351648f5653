//! Normalisation of edge weights.

use burn::config::Config;
use burn::tensor::Tensor;
use burn_gnn_ops::{GraphView, copy_e_sum, copy_u, copy_v};

use crate::{DegreeNorm, ModelError};

/// Edge weights divided by sums of edge weights, for [`GraphConv`](crate::GraphConv) with [`DegreeNorm::None`].
///
/// ```text
/// both    w_e / sqrt(Σ w out of u · Σ w into v)
/// right   w_e / Σ w into v
/// left    w_e / Σ w out of u
/// none    w_e
/// ```
///
/// # Source
/// `EdgeWeightNorm` of DGL; with weights of 1, the normalisations of [`DegreeNorm`].
#[derive(Config, Debug)]
pub struct EdgeWeightNorm {
    /// What is divided by.
    #[config(default = "DegreeNorm::Both")]
    pub norm: DegreeNorm,
    /// Added to every sum.
    #[config(default = 0.0)]
    pub eps: f64,
}

impl EdgeWeightNorm {
    /// Normalised weights `[num_edges]` of the edges of one type.
    ///
    /// # Gradients
    /// Through the weight and through the sums.
    ///
    /// # Errors
    /// No such edge type; not one weight per edge; a weight that is not positive (its sum may be 0, and the root of a negative sum is
    /// no number); sums over edges out of a node where this view does not hold all of them (a block or a partition:
    /// normalise weights of the whole graph before it is cut).
    pub fn forward<G: GraphView + ?Sized>(&self, g: &G, etype: usize, weight: Tensor<1>) -> Result<Tensor<1>, ModelError> {
        let etypes = g.schema().etypes().len();
        if etype >= etypes {
            return Err(ModelError::OutOfRange { arg: "etype".into(), range: format!("0..{etypes}"), value: etype.to_string() });
        }
        let relation = g.relation(etype);
        let [actual] = weight.dims();
        if actual != relation.num_edges() {
            let (why, expected) = ("one per edge of the relation".into(), relation.num_edges());
            return Err(ModelError::Length { arg: "weight".into(), why, expected, actual });
        }
        let values = weight.clone().detach().into_data();
        if let Some((e, w)) = values.iter::<f64>().enumerate().find(|(_, w)| w.is_nan() || *w <= 0.0) {
            return Err(ModelError::OutOfRange {
                arg: format!("weight of edge {e}"),
                range: "numbers above 0".into(),
                value: w.to_string(),
            });
        }
        let (by_src, by_dst, power) = match self.norm {
            DegreeNorm::None => return Ok(weight),
            DegreeNorm::Left => (true, false, -1.0),
            DegreeNorm::Right => (false, true, -1.0),
            DegreeNorm::Both => (true, true, -0.5),
        };
        if by_src && relation.out_degrees().ne(g.out_degrees(etype).iter().copied()) {
            return Err(ModelError::OutOfRange {
                arg: "norm".into(),
                range: "Right or None on a part of a graph (normalise the weights of the whole graph before it is cut)".into(),
                value: format!("{:?}", self.norm),
            });
        }
        let factor = |sum: Tensor<1>| (sum + self.eps).powf_scalar(power);
        let mut out = weight.clone();
        if by_src {
            out = out * copy_u(relation, factor(copy_e_sum(&relation.reverse(), weight.clone())));
        }
        if by_dst {
            out = out * copy_v(relation, factor(copy_e_sum(relation, weight)));
        }
        Ok(out)
    }
}
