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
use crate::layers::heterogeneous::hetero_layer::{
    HeteroLayer, check_graph_types, check_num_etypes,
};
use crate::layers::heterogeneous::stacked_relations::{Incoming, Sorted};
use crate::layers::layer_views::{LayerViews, Whole};
use crate::layers::type_map::{NodeTensors, list_of};
use crate::params::init::{Init, panicking_init};
use crate::pretrained::{Framework, ParamMapping, Pretrained, indexed};

/// Describes a [`GatedGraphConv`].
#[derive(Config, Debug)]
pub struct GatedGraphConvConfig {
    /// Hidden size of states; smaller input is padded with zeros.
    pub hidden: usize,
    /// Number of steps (`num_layers` of PyTorch Geometric, `n_steps` of DGL).
    #[doc(alias = "num_layers")]
    #[doc(alias = "n_steps")]
    pub steps: usize,
    /// Number of edge types.
    #[config(default = 1)]
    pub num_etypes: usize,
    /// The edge types in the order of the schema, so that a graph of others is refused;
    /// [`from_graph`](Self::from_graph) knows them. Empty: any graph of `num_etypes` edge types.
    #[config(default = "vec![]")]
    pub etypes: Vec<EdgeType>,
    /// Whether every step has weights of its own, as in PyTorch Geometric.
    #[config(default = false)]
    pub weight_per_step: bool,
    /// Whether messages have a bias, as in DGL.
    #[config(default = true)]
    pub bias: bool,
    /// How weights are drawn; biases begin with 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Gated graph convolution. With `h⁰ = [x, 0]` and the same weights in every step (unless `weight_per_step`),
///
/// ```text
/// a[v] = Σ_r Σ_(u,v) in r (hᵗ[u] W_r + b_r)
/// hᵗ⁺¹ = GRU(a, hᵗ)
/// ```
///
/// # Shapes
/// A graph of one node type and any number of edge types; `x: [num_input, up to hidden]`, output `[num_dst, hidden]`.
/// With more than one step all input rows must be computed rows, on a whole graph or a partition, or every step has a
/// block ([`forward_blocks`](Self::forward_blocks)). A node without in-edges reads `a = 0`.
///
/// # Departures from the paper
/// Edges run one way; the paper's second direction is an edge type (`Graph::with_inverse_relations`).
///
/// # Cost
/// One [`relational_aggregate`] over all edge types and one exchange per step.
///
/// # Paper
/// Li, Tarlow, Brockschmidt, Zemel, "Gated graph sequence neural networks", ICLR 2016.
#[derive(Module, Debug)]
pub struct GatedGraphConv {
    /// `W_r: [hidden, hidden]` and `b_r`, per edge type; with `weight_per_step` those of the first step before those of
    /// the next.
    pub linears: Vec<Linear>,
    /// `[hidden, 3 · hidden]` and a bias: reset, update and new gate of messages.
    pub ih: Linear,
    /// The same of states.
    pub hh: Linear,
    #[module(skip)]
    config: GatedGraphConvConfig,
    #[module(skip)]
    sorted: Sorted,
}

impl GatedGraphConvConfig {
    /// A layer for all edge types of `g`.
    pub fn from_graph<G: GraphView + ?Sized>(g: &G, hidden: usize, steps: usize) -> Self {
        let etypes = g.schema().etypes();
        Self::new(hidden, steps).with_num_etypes(etypes.len()).with_etypes(etypes.to_vec())
    }

    /// Weights by [`initializer`](Self::initializer), Glorot's rule by default, biases 0.
    ///
    /// # Errors
    /// No features.
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
            sorted: Sorted::default(),
        })
    }
}

panicking_init!(GatedGraphConvConfig => GatedGraphConv);

impl HeteroLayer for GatedGraphConv {
    /// States after all steps.
    ///
    /// # Panics
    /// A graph of several node types, another number of edge types, a block under several steps, an input wider than
    /// `hidden`, edge weights or features.
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
    /// States of the seeds of a [`MiniBatch`](burn_gnn_sampling::MiniBatch), step `i` on block `i`; `x` are the rows of
    /// its input nodes. With all neighbours these are the states of the graph.
    ///
    /// # Panics
    /// Not one block per step; as [`forward`](Self::forward).
    #[track_caller]
    pub fn forward_blocks(&self, blocks: &[Block], x: Tensor<2>) -> Tensor<2> {
        self.over(blocks, x)
    }

    /// Step `i` on view `i`.
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
            // Concatenations of no rows leave the autodiff graph, products do not.
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
        check_graph_types("gated_graph_conv", schema, &[], &self.config.etypes);
        check_num_etypes("`num_etypes`", schema, num_etypes);
        if count < steps {
            check_computed("gated_graph_conv", views.view(0).num_dst(0), &h);
        }
        let sorted: Vec<_> = (0..count).map(|t| self.sorted.of(views.view(t))).collect();
        let incoming: Vec<&Incoming> = sorted.iter().filter_map(|of| of[0].as_ref()).collect();
        // Edge types with edges anywhere are those of the whole graph, the same on every view.
        let Some(Incoming { etypes, .. }) = incoming.first() else {
            return (0..steps).fold(h, |h, t| {
                let own = views.view(t).dst_rows(0, h);
                self.unit(Tensor::zeros([own.dims()[0], d], (&device, dtype)), own)
            });
        };
        // Every message brings its bias: as many as the node has in-edges of the type.
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
        // Weight and bias of all messages into a node, for every step that has others than the one before.
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
            let (h, own) = g.with_dst_rows(0, h);
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
            self.unit(a, own)
        })
    }

    /// A gated recurrent unit (Cho et al., 2014) with PyTorch's gates: `r`, `z`, `n`.
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
    /// PyG's layer has a matrix for every step, all in one tensor, and no bias: take `weight_per_step` and no `bias`.
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
