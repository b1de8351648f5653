//! Implements gated graph convolution: messages update a gated recurrent unit.

use burn::config::Config;
use burn::module::Module;
use burn::nn::{Initializer, Linear};
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_graph::EdgeType;
use burn_gnn_graph::internal::OrPanic;
use burn_gnn_ops::{EdgeTypes, GraphView, RelationalWeight, matmul_rows, relational_aggregate};
use burn_gnn_sampling::Block;

use crate::error::ModelError;
use crate::layers::conv::check_computed;
use crate::layers::dense::mlp::{apply, sigmoid};
use crate::layers::heterogeneous::hetero_layer::{HeteroLayer, LayerTypes};
use crate::layers::heterogeneous::stacked_relations::{IncomingRelations, StackedRelations};
use crate::layers::layer_views::{LayerViews, Whole};
use crate::layers::type_map::{NodeTensors, list_of};
use crate::params::init::{Init, panicking_init};
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained, indexed};

/// Describes a [`GatedGraphConv`].
#[derive(Config, Debug)]
pub struct GatedGraphConvConfig {
    /// Hidden size of states. Input features of a smaller size are padded with zeros.
    pub hidden: usize,
    /// Number of steps (`num_layers` of PyTorch Geometric, `n_steps` of DGL).
    #[doc(alias = "num_layers")]
    #[doc(alias = "n_steps")]
    pub steps: usize,
    /// Number of edge types.
    #[config(default = 1)]
    pub num_etypes: usize,
    /// The edge types, in the order of the schema, that graphs must have ([`from_graph`](Self::from_graph) sets them).
    /// Empty: any `num_etypes` edge types.
    #[config(default = "vec![]")]
    pub etypes: Vec<EdgeType>,
    /// Whether every step has separate weights, as in PyTorch Geometric.
    #[config(default = false)]
    pub weight_per_step: bool,
    /// Whether messages have a bias, as in DGL.
    #[config(default = true)]
    pub bias: bool,
    /// Initializer of weights. Biases start at 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Gated graph convolution: several steps of message passing that update node states by a gated recurrent unit.
///
/// With `h⁰ = [x, 0]` and the same weights in every step (unless `weight_per_step`):
///
/// ```text
/// a[v] = Σ_r Σ_(u,v) in r (hᵗ[u] W_r + b_r)
/// hᵗ⁺¹ = GRU(a, hᵗ)
/// ```
///
/// # Shapes
/// A graph of one node type and any number of edge types; `x: [num_input, d]` with `d` at most `hidden`, output
/// `[num_dst, hidden]`. More than one step needs a view that computes all its input rows (a whole graph or a partition),
/// or a block per step ([`forward_blocks`](Self::forward_blocks)). A node without in-edges has `a = 0`.
///
/// # Differences from the paper and from other libraries
/// Messages follow the direction of edges. The second direction of the paper is a separate edge type
/// (`Graph::with_inverse_relations`). Defaults are those of DGL; PyG has `weight_per_step` and no `bias`.
///
/// # Cost
/// One [`relational_aggregate`] over all edge types and one halo exchange per step.
///
/// # Paper
/// Li, Tarlow, Brockschmidt, Zemel, "Gated graph sequence neural networks", ICLR 2016.
#[derive(Module, Debug)]
pub struct GatedGraphConv {
    /// `W_r: [hidden, hidden]` and `b_r` per edge type; with `weight_per_step`, per step and edge type.
    pub linears: Vec<Linear>,
    /// `[hidden, 3 · hidden]` and a bias: input of the reset, update and new gate from messages.
    pub ih: Linear,
    /// `[hidden, 3 · hidden]` and a bias: input of the same gates from states.
    pub hh: Linear,
    #[module(skip)]
    config: GatedGraphConvConfig,
    #[module(skip)]
    relations: StackedRelations,
}

impl GatedGraphConvConfig {
    /// Describes a layer for all edge types of `g`.
    pub fn from_graph<G: GraphView + ?Sized>(g: &G, hidden: usize, steps: usize) -> Self {
        let etypes = g.schema().etypes();
        Self::new(hidden, steps).with_num_etypes(etypes.len()).with_etypes(etypes.to_vec())
    }

    /// Initializes a layer: weights by [`initializer`](Self::initializer) (Glorot by default), biases 0.
    ///
    /// # Errors
    /// `hidden` is 0.
    pub fn try_init(&self, device: &Device) -> Result<GatedGraphConv, ModelError> {
        ModelError::check_sizes(&[("hidden", self.hidden)], 0.0)?;
        let d = self.hidden;
        let init = Init { initializer: &self.initializer, device };
        let linear = |o, bias| init.linear([d, o], bias);
        let weights = self.num_etypes * if self.weight_per_step { self.steps } else { 1 };
        Ok(GatedGraphConv {
            linears: (0..weights).map(|_| linear(d, self.bias)).collect(),
            ih: linear(3 * d, true),
            hh: linear(3 * d, true),
            config: self.clone(),
            relations: StackedRelations::default(),
        })
    }
}

panicking_init!(GatedGraphConvConfig => GatedGraphConv);

impl HeteroLayer for GatedGraphConv {
    /// Computes the states after all steps.
    ///
    /// # Panics
    /// The graph has several node types or other edge types, the input is wider than `hidden`, a block is used for
    /// several steps, or edges have weights or features.
    #[track_caller]
    fn forward<'a>(
        &self,
        edges: impl Into<EdgeTypes<'a>>,
        x: impl Into<NodeTensors>,
    ) -> NodeTensors {
        let edges = edges.into();
        edges.expect_bare("gated_graph_conv");
        let (g, schema) = (edges.view(), edges.view().schema());
        assert_eq!(schema.ntypes().len(), 1, "gated_graph_conv: node types of the graph");
        let x = list_of("gated_graph_conv", schema, x.into()).swap_remove(0);
        let ntype = &schema.ntypes()[0];
        let none = || format!("gated_graph_conv: `x` has no entry for node type `{ntype}`");
        let x = x.ok_or_else(none).or_panic();
        NodeTensors::from_list(schema, [Some(self.over(&Whole(g), x))])
    }
}

impl GatedGraphConv {
    /// Computes the states of the seeds of a [`MiniBatch`](burn_gnn_sampling::MiniBatch): step `i` runs on block `i`, and
    /// `x` are the features of the input nodes. If the blocks contain all neighbours, the states equal those of the whole
    /// graph.
    ///
    /// # Panics
    /// There is not one block per step; as [`forward`](Self::forward).
    #[track_caller]
    pub fn forward_blocks(&self, blocks: &[Block], x: Tensor<2>) -> Tensor<2> {
        self.over(blocks, x)
    }

    /// Computes step `i` on view `i`.
    #[track_caller]
    fn over<V: LayerViews + ?Sized>(&self, views: &V, x: Tensor<2>) -> Tensor<2> {
        let GatedGraphConvConfig { steps, num_etypes, .. } = self.config;
        let [d, _] = self.hh.weight.val().dims();
        let [rows, columns] = x.dims();
        assert!(
            columns <= d,
            "gated_graph_conv: `x`: expected at most {d} features (`hidden`), got {columns}"
        );
        let (device, dtype) = (x.device().without_autodiff(), x.dtype());
        let fill = Tensor::<2>::zeros([rows, d - columns], (&device, dtype));
        let h = if columns == d {
            x
        } else if rows == 0 {
            // `Tensor::cat` drops tensors without rows from the autodiff graph; a product does not.
            matmul_rows(x, Tensor::zeros([columns, d], (&device, dtype)))
        } else {
            Tensor::cat(vec![x, fill], 1)
        };
        let count = views.count("gated_graph_conv", steps);
        if steps == 0 {
            return h;
        }
        let schema = views.view(0).schema();
        assert_eq!(schema.ntypes().len(), 1, "gated_graph_conv: node types of the graph");
        let types = LayerTypes {
            layer: "gated_graph_conv",
            ntypes: &[],
            etypes: &self.config.etypes,
            num_ntypes: None,
            num_etypes: Some(("`num_etypes`", num_etypes)),
        };
        types.check(schema);
        if count < steps {
            check_computed("gated_graph_conv", views.view(0).num_dst(0), &h);
        }
        let relations: Vec<_> = (0..count).map(|t| self.relations.of(views.view(t))).collect();
        let incoming: Vec<&IncomingRelations> =
            relations.iter().filter_map(|of| of[0].as_ref()).collect();
        // Edge types with edges on any rank are the same on every view.
        let Some(IncomingRelations { etypes, .. }) = incoming.first() else {
            return (0..steps).fold(h, |h, t| {
                let dst = views.view(t).dst_rows(0, h);
                self.unit(Tensor::zeros([dst.dims()[0], d], (&device, dtype)), dst)
            });
        };
        // A node adds the bias of an edge type once per in-edge of the type.
        let counts = |g: &V::View| {
            let counts: Vec<Vec<u32>> =
                etypes.iter().map(|&r| g.relation(r).in_degrees().collect()).collect();
            let counts: Vec<f64> = (0..g.num_dst(0))
                .flat_map(|v| counts.iter().map(move |c| f64::from(c[v])))
                .collect();
            Tensor::<2>::from_data(
                TensorData::new(counts, [g.num_dst(0), etypes.len()]),
                (&device, dtype),
            )
        };
        let counts: Vec<_> = (0..count).map(|t| counts(views.view(t))).collect();
        // Weights and summed biases of the messages, for every step whose view or weights differ.
        let weights = self.linears.len() / num_etypes;
        let of_step = |t: usize| {
            let linears =
                || etypes.iter().map(|&r| &self.linears[t.min(weights - 1) * num_etypes + r]);
            let weight: Tensor<3> = Tensor::stack(linears().map(|l| l.weight.val()).collect(), 0);
            let biases: Vec<_> =
                linears().filter_map(|l| l.bias.as_ref()).map(|b| b.val()).collect();
            (
                weight,
                (!biases.is_empty()).then(|| {
                    matmul_rows(counts[t.min(count - 1)].clone(), Tensor::stack(biases, 0))
                }),
            )
        };
        let terms: Vec<_> = (0..count.max(weights)).map(of_step).collect();
        (0..steps).fold(h, |h, t| {
            let (g, (weight, bias)) = (views.view(t), &terms[t.min(terms.len() - 1)]);
            let (h, dst) = g.with_dst_rows(0, h);
            let src = g.src_rows("gated_graph_conv", vec![h]).swap_remove(0);
            let a = relational_aggregate(
                &incoming[t.min(count - 1)].index,
                src,
                RelationalWeight::Full(weight.clone()),
                None,
            );
            let a = match bias {
                Some(bias) => a + bias.clone(),
                None => a,
            };
            self.unit(a, dst)
        })
    }

    /// Computes a gated recurrent unit (Cho et al., 2014) with the gates of PyTorch, in the order `r`, `z`, `n`.
    fn unit(&self, a: Tensor<2>, h: Tensor<2>) -> Tensor<2> {
        let d = h.dims()[1];
        let (a, b) = (apply(&self.ih, a), apply(&self.hh, h.clone()));
        let gate = |x: &Tensor<2>, k: usize| x.clone().slice_dim(1, k * d..(k + 1) * d);
        let r = sigmoid(gate(&a, 0) + gate(&b, 0));
        let z = sigmoid(gate(&a, 1) + gate(&b, 1));
        let n = (gate(&a, 2) + r * gate(&b, 2)).tanh();
        (z.clone().neg() + 1.0) * n + z * h
    }
}

impl Pretrained for GatedGraphConv {
    /// PyG's layer has a matrix for every step, all in one tensor, and no bias: set `weight_per_step` to true and `bias`
    /// to false.
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        let unit = if from == Framework::Dgl { "gru" } else { "rnn" };
        if let Some((part @ ("ih" | "hh"), field)) = path.split_once('.') {
            return ParamMapping::same(format!("{unit}.{field}_{part}"));
        }
        match indexed(path) {
            Some(("linears", i, "weight")) if from == Framework::Pyg => {
                let ([d, _], n) = (self.hh.weight.val().dims(), self.linears.len());
                ParamMapping::same("weight")
                    .untransposed()
                    .shaped([n, d, d])
                    .rows(i * d..(i + 1) * d, n * d)
            }
            _ => ParamMapping::same(path),
        }
    }
}
