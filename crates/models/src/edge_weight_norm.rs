//! Normalisation of edge weights.

use burn::config::Config;
use burn::tensor::{Tensor, TensorData};
use burn_gnn_ops::{AggregateOptions, GraphView, Precision, copy_e_sum, copy_u, copy_v, with_precision};

use crate::conv::src_rows;
use crate::{DegreeNorm, LayerViews, ModelError};

/// Edge weights divided by sums of edge weights, for [`GraphConv`](crate::GraphConv) with [`DegreeNorm::None`].
///
/// ```text
/// both      w_e / sqrt(Σ w out of u · Σ w into v)
/// both in   w_e / sqrt(Σ w into u · Σ w into v), 0 where no edge leads into u
/// right     w_e / Σ w into v
/// left      w_e / Σ w out of u
/// none      w_e
/// ```
///
/// # Source
/// `EdgeWeightNorm` of DGL, and for "both in" `gcn_norm` of PyTorch Geometric without the self loops that it adds; with weights of 1,
/// the normalisations of [`DegreeNorm`]. Both take sums over all edges of a node, in a mini-batch over those that were sampled; here
/// weights of the whole graph are normalised before it is sampled, and taken by edge ids.
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
    /// normalise weights of the whole graph before it is cut), over edges into a source where it does not (a block); "both in" on an
    /// edge type of two node types.
    ///
    /// # Cost
    /// Three passes over the weights, which are copied to the host to be checked. "Both in" has one exchange, which all
    /// ranks make, also one that returns an error; the sources that other ranks read of it are NaN then.
    pub fn forward<G: GraphView + ?Sized>(&self, g: &G, etype: usize, weight: Tensor<1>) -> Result<Tensor<1>, ModelError> {
        let etypes = g.schema().etypes().len();
        if etype >= etypes {
            return Err(ModelError::OutOfRange { arg: "etype".into(), range: format!("0..{etypes}"), value: etype.to_string() });
        }
        let in_at_src = self.norm == DegreeNorm::BothIn;
        let (s, d) = g.schema().ends(etype);
        if in_at_src && s != d {
            let range = "None, Left, Right or Both on an edge type of two node types".into();
            return Err(ModelError::OutOfRange { arg: "norm".into(), range, value: format!("{:?}", self.norm) });
        }
        let (relation, computed) = (g.relation(etype), g.num_dst(d));
        if let Err(e) = self.check(g, etype, &weight) {
            if in_at_src {
                // What is wrong here may be right on other ranks, which are in the exchange.
                let none = Tensor::full([computed, 1], f64::NAN, (&weight.device().without_autodiff(), weight.dtype()));
                src_rows(g, "edge_weight_norm", s, none);
            }
            return Err(e);
        }
        let (by_src, by_dst, power) = match self.norm {
            DegreeNorm::None => return Ok(weight),
            DegreeNorm::Left => (true, false, -1.0),
            DegreeNorm::Right => (false, true, -1.0),
            DegreeNorm::Both => (true, true, -0.5),
            DegreeNorm::BothIn => (false, true, -0.5),
        };
        let factor = |sum: Tensor<1>| (sum + self.eps).powf_scalar(power);
        let mut out = weight.clone();
        if by_src {
            out = out * copy_u(relation, factor(copy_e_sum(&relation.reverse(), weight.clone())));
        }
        if in_at_src {
            // A sum of no weights becomes 1 before the root and 0 behind it.
            let none: Vec<f64> = relation.in_degrees().map(|n| f64::from(u8::from(n == 0))).collect();
            let none = Tensor::<1>::from_data(TensorData::new(none, [computed]), (&weight.device().without_autodiff(), weight.dtype()));
            let own = factor(copy_e_sum(relation, weight.clone()) + none.clone()) * (none.neg() + 1.0);
            let all = src_rows(g, "edge_weight_norm", s, own.unsqueeze_dim(1));
            out = out * copy_u(relation, all.squeeze_dim::<1>(1));
        }
        if by_dst {
            out = out * copy_v(relation, factor(copy_e_sum(relation, weight)));
        }
        Ok(out)
    }

    /// What may be wrong on one rank and right on another.
    fn check<G: GraphView + ?Sized>(&self, g: &G, etype: usize, weight: &Tensor<1>) -> Result<(), ModelError> {
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
        let (s, d) = g.schema().ends(etype);
        let of_all_sources = || g.original_ids(s).is_none_or(|ids| ids.len() == g.num_dst(d));
        let all_in = || relation.in_degrees().eq(g.in_degrees(etype).iter().copied());
        let all_out = || relation.out_degrees().eq(g.out_degrees(etype).iter().copied());
        let whole = match self.norm {
            DegreeNorm::None | DegreeNorm::Right => true,
            DegreeNorm::Left => all_out(),
            DegreeNorm::Both => all_out() && all_in(),
            DegreeNorm::BothIn => of_all_sources() && all_in(),
        };
        if whole {
            return Ok(());
        }
        Err(ModelError::OutOfRange {
            arg: "norm".into(),
            range: "Right or None on a part of a graph (normalise the weights of the whole graph before it is cut)".into(),
            value: format!("{:?}", self.norm),
        })
    }
}

/// Edge weights, and what is left to normalise by degrees: nothing where degrees are sums of weights.
#[track_caller]
pub(crate) fn edge_norm<G: GraphView + ?Sized>(
    g: &G,
    call: &str,
    etype: usize,
    (norm, weighted): (DegreeNorm, bool),
    weight: Option<Tensor<1>>,
) -> (Option<Tensor<1>>, DegreeNorm) {
    match weight {
        // Sums of weights in the precision of the weights.
        Some(w) if weighted => match with_precision(Precision::Full, || EdgeWeightNorm::new().with_norm(norm).forward(g, etype, w)) {
            Ok(w) => (Some(w), DegreeNorm::None),
            Err(e) => panic!("{call}: {e}"),
        },
        weight => (weight, norm),
    }
}

/// What each of `count` views aggregates with, [`edge_norm`] first; of each the edge weights, or none.
#[track_caller]
pub(crate) fn edge_norms<V: LayerViews + ?Sized>(
    views: &V,
    count: usize,
    call: &str,
    etype: usize,
    norm: (DegreeNorm, bool),
    weights: Option<&[Tensor<1>]>,
) -> Vec<(Option<Tensor<1>>, DegreeNorm, AggregateOptions)> {
    let of = |k: usize| {
        let (weight, norm) = edge_norm(views.view(k), call, etype, norm, weights.map(|w| w[k].clone()));
        (weight, norm, norm.options(views.view(k), etype))
    };
    (0..count).map(of).collect()
}
