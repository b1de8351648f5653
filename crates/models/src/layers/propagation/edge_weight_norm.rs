//! Normalises edge weights.

use burn::config::Config;
use burn::tensor::{Tensor, TensorData};
use burn_gnn_graph::internal::OrPanic;
use burn_gnn_ops::{
    AggregateOptions, Edges, Precision, copy_e_sum, copy_u, copy_v, with_precision,
};

use crate::error::ModelError;
use crate::layers::convolution::gcn_conv::DegreeNorm;

/// Edge weights divided by sums of edge weights, for [`GcnConv`](crate::GcnConv) with [`DegreeNorm::None`].
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
/// `EdgeWeightNorm` of DGL, and for "both in" `gcn_norm` of PyTorch Geometric without the self loops that it adds; with
/// weights of 1, the normalisations of [`DegreeNorm`]. Both take sums over all edges of a node, in a mini-batch over
/// those that were sampled; here weights of the whole graph are normalised before it is sampled, and taken by edge ids.
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
    /// Not one weight per edge; a weight that is not positive (its sum may be 0, and the root of a negative sum is no
    /// number); sums over edges out of a node where this view does not hold all of them (a block or a partition:
    /// normalise weights of the whole graph before it is cut), over edges into a source where it does not (a block);
    /// "both in" on an edge type of two node types.
    ///
    /// # Cost
    /// Three passes over the weights, which are copied to the host to be checked. "Both in" has one exchange, which all
    /// ranks make, also one that returns an error; the sources that other ranks read of it are NaN then.
    ///
    /// # Panics
    /// A view of several edge types in place of the edges of one.
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
                // What is wrong here may be right on other ranks, which are in the exchange.
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
        let factor = |sum: Tensor<1>| (sum + self.eps).powf_scalar(power);
        let mut out = weight.clone();
        if by_src {
            out = out * copy_u(relation, factor(copy_e_sum(&relation.reverse(), weight.clone())));
        }
        if in_at_src {
            // A sum of no weights becomes 1 before the root and 0 behind it.
            let none: Vec<f64> =
                relation.in_degrees().map(|n| f64::from(u8::from(n == 0))).collect();
            let none = Tensor::<1>::from_data(TensorData::new(none, [computed]), on);
            let own =
                factor(copy_e_sum(relation, weight.clone()) + none.clone()) * (none.neg() + 1.0);
            let all = edges.src_rows("edge_weight_norm", own.unsqueeze_dim(1));
            out = out * copy_u(relation, all.squeeze_dim::<1>(1));
        }
        if by_dst {
            out = out * copy_v(relation, factor(copy_e_sum(relation, weight)));
        }
        Ok(out)
    }

    /// What may be wrong on one rank and right on another.
    fn check(&self, edges: &Edges<'_>, weight: &Tensor<1>) -> Result<(), ModelError> {
        let (relation, g) = (edges.relation(), edges.view());
        let why = "one per edge of the relation";
        ModelError::check_length("weight", why, relation.num_edges(), weight.dims()[0])?;
        let values = weight.clone().detach().into_data();
        if let Some((e, w)) =
            values.iter::<f64>().enumerate().find(|(_, w)| w.is_nan() || *w <= 0.0)
        {
            let arg = format!("weight of edge {e}");
            return Err(ModelError::out_of_range(arg, "numbers above 0", w));
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

/// One hop of a layer of several: its edges, the weights they have now, and what is left to normalise by degrees.
#[derive(Clone)]
pub(crate) struct Hop<'h, 'a> {
    pub(crate) edges: &'h Edges<'a>,
    pub(crate) weight: Option<Tensor<1>>,
    pub(crate) norm: DegreeNorm,
    pub(crate) options: AggregateOptions,
}

/// Each of `count` hops, on edges of its own or on the same; where degrees are sums of weights (`weighted`), weights
/// are normalised and nothing is left for degrees.
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
            // Sums of weights in the precision of the weights.
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
    // Edges that serve all hops are normalised once.
    let own: Vec<_> = edges.iter().take(count).map(hop).collect();
    (0..count).map(|k| own[k.min(found - 1)].clone()).collect()
}

/// The only hop of a layer of `count` that is called where relations share an exchange.
#[track_caller]
pub(crate) fn only_hop<'h, 'a>(
    call: &str,
    count: usize,
    edges: &'h Edges<'a>,
    norm: (DegreeNorm, bool),
) -> Hop<'h, 'a> {
    assert!(
        count == 1,
        "{call}: expected 1 hop where relations share an exchange, got {count}; call `forward`"
    );
    hops_of(call, 1, std::slice::from_ref(edges), norm).swap_remove(0)
}
