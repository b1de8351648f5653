//! Normalises edge weights.

use burn::config::Config;
use burn::tensor::{Tensor, TensorData};
use burn_gnn_graph::internal::OrPanic;
use burn_gnn_ops::{
    AggregateOptions, Edges, Precision, copy_e_sum, copy_u, copy_v, with_precision,
};

use crate::error::ModelError;
use crate::layers::convolution::gcn_conv::DegreeNorm;

/// Normalises edge weights by sums of edge weights, the weighted form of [`DegreeNorm`]. Use the result with
/// [`GcnConv`](crate::GcnConv) and [`DegreeNorm::None`].
///
/// ```text
/// both      w_e / sqrt(Σ w out of u · Σ w into v)
/// both in   w_e / sqrt(Σ w into u · Σ w into v), 0 if u has no in-edges
/// right     w_e / Σ w into v
/// left      w_e / Σ w out of u
/// none      w_e
/// ```
///
/// # Corner cases
/// Weights must not be negative. If a sum is 0, that is if all its weights are 0, the normalised weight of its edges is 0
/// with gradient 0.
///
/// # Differences from other libraries
/// PyG's `gcn_norm` adds self loops; this function does not. DGL's `EdgeWeightNorm` rejects weights of 0. In a
/// mini-batch both sum over the sampled edges. Here the weights of the whole graph are normalised before sampling and
/// selected by edge id.
///
/// # Source
/// `EdgeWeightNorm` of DGL, and for "both in" `gcn_norm` of PyTorch Geometric.
#[derive(Config, Debug)]
pub struct EdgeWeightNorm {
    /// Sums to divide by.
    #[config(default = "DegreeNorm::Both")]
    pub norm: DegreeNorm,
    /// Added to every sum.
    #[config(default = 0.0)]
    pub eps: f64,
}

impl EdgeWeightNorm {
    /// Normalises the weights `[num_edges]` of the edges of one type.
    ///
    /// # Gradients
    /// Gradients flow through the weight itself and through the sums.
    ///
    /// # Errors
    /// * `weight` does not have one entry per edge, or an entry is negative or NaN.
    /// * A sum over out-edges, and the view does not contain all out-edges of its nodes (a block or a partition), or a sum
    ///   over in-edges of sources, and the view does not contain them (a block). Normalise the weights of the whole graph
    ///   before it is partitioned or sampled.
    /// * [`DegreeNorm::BothIn`] on an edge type of two node types.
    ///
    /// # Cost
    /// Three passes over the weights, which are copied to the host for validation. [`DegreeNorm::BothIn`] makes one halo
    /// exchange. All ranks take part in it, even a rank that returns an error; other ranks then read NaN from that rank.
    ///
    /// # Panics
    /// `edges` is a view of several edge types.
    #[track_caller]
    pub fn forward<'a>(
        &self,
        edges: impl Into<Edges<'a>>,
        weight: Tensor<1>,
    ) -> Result<Tensor<1>, ModelError> {
        let edges = &edges.into();
        let in_at_src = self.norm == DegreeNorm::BothIn;
        let (s, d) = edges.endpoints();
        if in_at_src && s != d {
            let range = "None, Left, Right or Both on an edge type of two node types";
            return Err(ModelError::out_of_range("norm", range, format!("{:?}", self.norm)));
        }
        let (relation, computed) = (edges.relation(), edges.num_dst());
        let on = (&weight.device().without_autodiff(), weight.dtype());
        if let Err(e) = self.check(edges, &weight) {
            if in_at_src {
                // Other ranks may have valid weights and wait in the exchange.
                edges.src_rows("edge_weight_norm", Tensor::full([computed, 1], f64::NAN, on));
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
        let factor = |sum: Tensor<1>| {
            let sum = sum + self.eps;
            let is_zero = sum.clone().equal_elem(0.0);
            sum.mask_fill(is_zero.clone(), 1.0).powf_scalar(power).mask_fill(is_zero, 0.0)
        };
        let mut out = weight.clone();
        if by_src {
            out = out * copy_u(relation, factor(copy_e_sum(&relation.reverse(), weight.clone())));
        }
        if in_at_src {
            // The factor of a node without in-edges is 0, also if `eps` is not.
            let has_in_edges: Vec<f64> =
                relation.in_degrees().map(|n| f64::from(u8::from(n > 0))).collect();
            let has_in_edges =
                Tensor::<1>::from_data(TensorData::new(has_in_edges, [computed]), on);
            let factors = factor(copy_e_sum(relation, weight.clone())) * has_in_edges;
            let factors = edges.src_rows("edge_weight_norm", factors.unsqueeze_dim(1));
            out = out * copy_u(relation, factors.squeeze_dim::<1>(1));
        }
        if by_dst {
            out = out * copy_v(relation, factor(copy_e_sum(relation, weight)));
        }
        Ok(out)
    }

    /// Validates what may differ between ranks.
    fn check(&self, edges: &Edges<'_>, weight: &Tensor<1>) -> Result<(), ModelError> {
        let (relation, g) = (edges.relation(), edges.view());
        let why = "one per edge of the relation";
        ModelError::check_length("weight", why, relation.num_edges(), weight.dims()[0])?;
        let values = weight.clone().detach().into_data();
        if let Some((e, w)) = values.iter::<f64>().enumerate().find(|(_, w)| w.is_nan() || *w < 0.0)
        {
            let arg = format!("weight of edge {e}");
            return Err(ModelError::out_of_range(arg, "numbers not below 0", w));
        }
        let of_all_sources =
            || g.original_ids(edges.endpoints().0).is_none_or(|ids| ids.len() == edges.num_dst());
        let all_in = || relation.in_degrees().eq(edges.in_degrees().iter().copied());
        let all_out = || relation.out_degrees().eq(edges.out_degrees().iter().copied());
        let whole = match self.norm {
            DegreeNorm::None | DegreeNorm::Right => true,
            DegreeNorm::Left => all_out(),
            DegreeNorm::Both => all_out() && all_in(),
            DegreeNorm::BothIn => of_all_sources() && all_in(),
        };
        let range = "Right or None on a part of a graph (normalise the weights of the whole graph before it is cut)";
        ModelError::check_range("norm", range, format!("{:?}", self.norm), whole)
    }
}

/// One hop of a layer with several hops.
#[derive(Clone)]
pub(crate) struct Hop<'h, 'a> {
    pub(crate) edges: &'h Edges<'a>,
    /// Edge weights, normalised with `weighted_norm`.
    pub(crate) weight: Option<Tensor<1>>,
    /// Normalisation by degree; `None` if `weight` is normalised.
    pub(crate) norm: DegreeNorm,
    pub(crate) options: AggregateOptions,
}

/// Prepares `count` hops on separate edges, or on the same edges if `edges` has one entry. With `weighted`, edge weights
/// are normalised by sums of weights instead of degrees.
#[track_caller]
pub(crate) fn hops_of<'h, 'a>(
    call: &str,
    count: usize,
    edges: &'h [Edges<'a>],
    (norm, weighted): (DegreeNorm, bool),
) -> Vec<Hop<'h, 'a>> {
    let found = edges.len();
    assert!(
        found == 1 || found == count,
        "{call}: expected one block per layer or hop, {count}, got {found}; sample {count} hops"
    );
    let hop = |edges: &'h Edges<'a>| {
        let (weight, norm) = match edges.weight() {
            // TF32 or half precision would change the sums of weights.
            Some(w) if weighted => {
                let w = with_precision(Precision::Full, || {
                    EdgeWeightNorm::new().with_norm(norm).forward(edges, w)
                });
                (Some(w.map_err(|e| format!("{call}: {e}")).or_panic()), DegreeNorm::None)
            }
            weight => (weight, norm),
        };
        Hop { edges, weight, norm, options: norm.options(edges) }
    };
    // Edges that all hops share are normalised once.
    let hops: Vec<_> = edges.iter().take(count).map(hop).collect();
    (0..count).map(|k| hops[k.min(found - 1)].clone()).collect()
}

/// Prepares the hop of a layer that runs inside `HeteroGraphConv`, which has one exchange and hence supports one hop.
#[track_caller]
pub(crate) fn only_hop<'h, 'a>(
    call: &str,
    count: usize,
    edges: &'h Edges<'a>,
    norm: (DegreeNorm, bool),
) -> Hop<'h, 'a> {
    assert!(
        count == 1,
        "{call}: expected 1 hop inside `HeteroGraphConv`, which exchanges features once, got {count}; call `forward`"
    );
    hops_of(call, 1, std::slice::from_ref(edges), norm).swap_remove(0)
}
