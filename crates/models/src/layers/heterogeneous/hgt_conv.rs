//! Implements the heterogeneous graph transformer layer (HGT).

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::{Initializer, LayerNorm, LayerNormConfig};
use burn::tensor::{Device, Tensor};
use burn_gnn_graph::EdgeType;
use burn_gnn_ops::{
    Activation, DropoutKey, EdgeTypes, GraphView, attention, bias_activation, div_by, matmul_rows,
    u_dot_v,
};

use crate::error::ModelError;
use crate::layers::attention::heads::split;
use crate::layers::dense::mlp::{add_bias, gelu, normalise, sigmoid};
use crate::layers::heterogeneous::hetero_layer::{HeteroLayer, LayerTypes};
use crate::layers::heterogeneous::stacked_relations::{
    IncomingRelations, StackedRelations, cat_rows,
};
use crate::layers::type_map::NodeTensors;
use crate::params::init::{Init, panicking_init};
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained, pyg_key};

/// Describes an [`HgtConv`].
#[derive(Config, Debug)]
pub struct HgtConvConfig {
    /// Input feature size of every node type.
    pub d_input: usize,
    /// Output feature size of each head.
    pub d_head: usize,
    /// Number of heads.
    pub num_heads: usize,
    /// Number of node types of the schema.
    pub num_ntypes: usize,
    /// Number of edge types of the schema.
    pub num_etypes: usize,
    /// Relation of each edge type. Edge types of one relation share weights. `None`: every edge type is a relation.
    pub relations: Option<Vec<usize>>,
    /// Dropout probability of the result, before it is mixed with the input.
    #[config(default = 0.2)]
    pub dropout: f64,
    /// Whether layer normalisation is applied to the result.
    #[config(default = false)]
    pub layer_norm: bool,
    /// Whether keys, queries, values and results have biases, as in PyTorch Geometric.
    #[config(default = false)]
    pub bias: bool,
    /// Whether GELU is applied before `L`, as in the paper and in PyTorch Geometric.
    #[config(default = false)]
    pub gelu: bool,
    /// Whether the input is multiplied by a weight before it is mixed in, if feature sizes differ. Otherwise an input of
    /// another size is not mixed in, as in PyTorch Geometric.
    #[config(default = true)]
    pub residual_weight: bool,
    /// Names of the node types, which loading weights of PyTorch Geometric requires ([`from_graph`](Self::from_graph)
    /// sets them).
    #[config(default = "vec![]")]
    pub ntypes: Vec<String>,
    /// The edge types, in the order of the schema.
    #[config(default = "vec![]")]
    pub etypes: Vec<EdgeType>,
    /// Initializer of weights. Biases start at 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Heterogeneous graph transformer layer (HGT): dot-product attention over the neighbours of all edge types, with weights
/// by node type and by relation.
///
/// Per head, with `k, q, v = x K_t, x Q_t, x V_t` by the node type `t` and for an edge of relation `r`:
///
/// ```text
/// s[e] = (k[u] A_r) · q[v] · μ_r / √d_head
/// h[v] = Σ_(u,v,e) softmax(s)[e] · v[u] M_r            softmax over the in-edges of all relations
/// y[v] = σ(skip_t) · h[v] L_t + (1 - σ(skip_t)) · x[v]
/// ```
/// If feature sizes differ, `x[v] W` replaces `x[v]`. With `layer_norm`, layer normalisation follows. `bias` adds a bias
/// per node type to `k`, `q`, `v` and to the product with `L`; `gelu` applies GELU to `h`.
///
/// # Shapes
/// `x[t]: [num_input of type t, d_input]`, result `[num_dst of type t, num_heads · d_head]` per node type. A node
/// without in-edges has `h = 0`.
///
/// # Differences from the paper and from other libraries
/// As in DGL, `μ` belongs to relations; the paper has one per triple of node type, relation, node type, which edge types
/// express. There is no activation before `L` unless `gelu` is set (PyG has it), and no relative temporal encoding.
///
/// # Cost
/// `K_t A_r μ_r / √d` and `V_t M_r` are multiplied to one matrix per edge type, so that a source row is multiplied once
/// per relation. Each node type needs one dot product per edge and head, and one softmax with weighted sum over all
/// relations; nothing of the size edges × features is allocated. One halo exchange moves input features of all types.
/// Edge types without edges on any rank are skipped.
///
/// # Paper
/// Hu, Dong, Wang, Sun, "Heterogeneous graph transformer", WWW 2020.
#[derive(Module, Debug)]
pub struct HgtConv {
    /// `[node types, d_input, num_heads · d_head]`.
    pub linear_k: Param<Tensor<3>>,
    /// As `linear_k`.
    pub linear_q: Param<Tensor<3>>,
    /// As `linear_k`.
    pub linear_v: Param<Tensor<3>>,
    /// `[node types, num_heads · d_head, num_heads · d_head]`.
    pub linear_a: Param<Tensor<3>>,
    /// `[node types, num_heads · d_head]`, with `bias`.
    pub bias_k: Option<Param<Tensor<2>>>,
    /// As `bias_k`.
    pub bias_q: Option<Param<Tensor<2>>>,
    /// As `bias_k`.
    pub bias_v: Option<Param<Tensor<2>>>,
    /// As `bias_k`.
    pub bias_a: Option<Param<Tensor<2>>>,
    /// `μ`: per head `[relations]`.
    pub relation_pri: Vec<Param<Tensor<1>>>,
    /// `A`: per head `[relations, d_head, d_head]`.
    pub relation_att: Vec<Param<Tensor<3>>>,
    /// `M`: per head `[relations, d_head, d_head]`.
    pub relation_msg: Vec<Param<Tensor<3>>>,
    /// `[node types]`.
    pub skip: Param<Tensor<1>>,
    /// `[d_input, num_heads · d_head]` where feature sizes differ.
    pub residual_w: Option<Param<Tensor<2>>>,
    /// `[num_heads · d_head]` each.
    pub norm: Option<LayerNorm>,
    key: DropoutKey,
    #[module(skip)]
    config: HgtConvConfig,
    #[module(skip)]
    relations: StackedRelations,
}

impl HgtConvConfig {
    /// Describes a layer for all types of `g`.
    pub fn from_graph<G: GraphView + ?Sized>(
        g: &G,
        d_input: usize,
        d_head: usize,
        num_heads: usize,
    ) -> Self {
        let (ntypes, etypes) = (g.schema().ntypes(), g.schema().etypes());
        let sizes = Self::new(d_input, d_head, num_heads, ntypes.len(), etypes.len());
        sizes.with_ntypes(ntypes.to_vec()).with_etypes(etypes.to_vec())
    }

    /// The relation of every edge type.
    fn relation_ids(&self) -> Vec<usize> {
        self.relations.clone().unwrap_or_else(|| (0..self.num_etypes).collect())
    }

    /// Initializes a layer: weights by [`initializer`](Self::initializer) (Glorot by default), `μ` and `skip` 1.
    ///
    /// # Errors
    /// `num_heads` or `d_head` is 0, `dropout` is not in `0.0..1.0`, or `relations` does not have `num_etypes` entries.
    pub fn try_init(&self, device: &Device) -> Result<HgtConv, ModelError> {
        ModelError::check_heads(self.num_heads, self.d_head, self.dropout)?;
        let relations = self.relation_ids();
        let why = "one per edge type";
        ModelError::check_length("relations", why, self.num_etypes, relations.len())?;
        let (width, r) =
            (self.num_heads * self.d_head, relations.iter().max().map_or(0, |m| m + 1));
        let init = Init { initializer: &self.initializer, device };
        let glorot = |n: usize, [i, o]: [usize; 2]| init.weight::<3>([n, i, o], (i, o));
        let per_type = |d| glorot(self.num_ntypes, [d, width]);
        let per_head =
            || (0..self.num_heads).map(|_| glorot(r, [self.d_head, self.d_head])).collect();
        let ones = |n| Param::from_tensor(Tensor::<1>::ones([n], device));
        let bias = || {
            self.bias.then(|| Param::from_tensor(Tensor::zeros([self.num_ntypes, width], device)))
        };
        Ok(HgtConv {
            linear_k: per_type(self.d_input),
            linear_q: per_type(self.d_input),
            linear_v: per_type(self.d_input),
            linear_a: per_type(width),
            bias_k: bias(),
            bias_q: bias(),
            bias_v: bias(),
            bias_a: bias(),
            relation_pri: (0..self.num_heads).map(|_| ones(r)).collect(),
            relation_att: per_head(),
            relation_msg: per_head(),
            skip: ones(self.num_ntypes),
            residual_w: (self.residual_weight && self.d_input != width)
                .then(|| init.matrix([self.d_input, width])),
            norm: self.layer_norm.then(|| LayerNormConfig::new(width).init(device)),
            key: DropoutKey::new(device),
            config: self.clone(),
            relations: StackedRelations::per_relation(),
        })
    }
}

panicking_init!(HgtConvConfig => HgtConv);

/// A matrix and a bias.
type Affine = (Tensor<2>, Option<Tensor<1>>);

/// Computes `x W + b`.
fn affine(x: Tensor<2>, (weight, bias): Affine) -> Tensor<2> {
    add_bias(matmul_rows(x, weight), bias)
}

/// Returns matrix `i` of a stack.
fn at<const D: usize, const E: usize>(stack: Tensor<D>, i: usize) -> Tensor<E> {
    stack.slice_dim(0, i..i + 1).squeeze_dim(0)
}

impl HeteroLayer for HgtConv {
    /// Computes features of every node type from features of every node type.
    ///
    /// # Panics
    /// Shapes or types differ from those of the graph, or edges have weights or features.
    #[track_caller]
    fn forward<'a>(
        &self,
        edges: impl Into<EdgeTypes<'a>>,
        x: impl Into<NodeTensors>,
    ) -> NodeTensors {
        let edges = edges.into();
        edges.expect_bare("hgt_conv");
        let g = edges.view();
        let config = &self.config;
        let types = LayerTypes {
            layer: "hgt_conv",
            ntypes: &config.ntypes,
            etypes: &config.etypes,
            num_ntypes: Some(("`num_ntypes`", config.num_ntypes)),
            num_etypes: Some(("`num_etypes`", config.num_etypes)),
        };
        let x = types.inputs(g, x.into(), |_| config.d_input);
        let src = g.src_rows("hgt_conv", x.clone());
        let [keys, values] = self.composed(g);
        let relations = self.relations.of(&g);
        let mix = sigmoid(self.skip.val());
        let finish = |(t, x): (usize, Tensor<2>)| {
            let x = g.dst_rows(t, x);
            let mix = mix.clone().slice_dim(0, t..t + 1).unsqueeze::<2>();
            let (rows, device, dtype) = (x.dims()[0], x.device(), x.dtype());
            let width = config.num_heads * config.d_head;
            let zeros = || Tensor::zeros([rows, width], (&device, dtype));
            let residual = match &self.residual_w {
                Some(w) => Some(matmul_rows(x.clone(), w.val())),
                None => (config.d_input == width).then(|| x.clone()),
            };
            let layer = |stack: &Param<Tensor<3>>, bias: &Option<Param<Tensor<2>>>| -> Affine {
                (at(stack.val(), t), bias.as_ref().map(|b| at(b.val(), t)))
            };
            let h = match &relations[t] {
                Some(incoming) => {
                    let q = affine(x, layer(&self.linear_q, &self.bias_q));
                    let h = self.attend(g, incoming, &src, q, [&keys, &values]);
                    let h = if config.gelu { gelu(h) } else { h };
                    Some(affine(h, layer(&self.linear_a, &self.bias_a)))
                }
                // Without messages `h` is 0, and `h L` is the bias.
                None => self.bias_a.as_ref().map(|b| add_bias(zeros(), Some(at(b.val(), t)))),
            };
            let h = h.map(|h| {
                let dropout = self.key.of_outputs(g, t, config.dropout, &h);
                bias_activation(h, None, Activation::None, dropout.as_ref())
            });
            let y = match (h, residual) {
                (Some(h), Some(x)) => h * mix.clone() + x * (mix.neg() + 1.0),
                (Some(h), None) => h,
                (None, Some(x)) => x * (mix.neg() + 1.0),
                (None, None) => zeros(),
            };
            normalise(self.norm.as_ref(), y)
        };
        NodeTensors::from_list(g.schema(), x.into_iter().enumerate().map(finish).map(Some))
    }
}

impl HgtConv {
    pub(crate) fn num_etypes(&self) -> usize {
        self.config.num_etypes
    }

    /// Shares the stacked relations of another layer, so that they are computed once per model.
    pub(crate) fn share_relations(&mut self, other: &Self) {
        self.relations = other.relations.clone();
    }

    /// Computes `K_t A_r μ_r / √d_head` and `V_t M_r`, `[d_input, num_heads · d_head]`, and the products of their biases,
    /// for every edge type.
    fn composed(&self, g: &dyn GraphView) -> [Vec<Affine>; 2] {
        let HgtConvConfig { num_heads: heads, d_head, .. } = self.config;
        let stack = |per_head: &[Param<Tensor<3>>]| {
            Tensor::stack::<4>(per_head.iter().map(Param::val).collect(), 1)
        };
        let pri = Tensor::stack::<2>(self.relation_pri.iter().map(Param::val).collect(), 1);
        let pri = div_by(pri, (d_head as f64).sqrt());
        let relations = pri.dims()[0];
        let att = stack(&self.relation_att) * pri.reshape([relations, heads, 1, 1]);
        let msg = stack(&self.relation_msg);
        let compose = |linear: &Param<Tensor<3>>,
                       bias: &Option<Param<Tensor<2>>>,
                       by: &Tensor<4>| {
            let ids = self.config.relation_ids();
            let of = |etype: usize| {
                let t = g.schema().endpoints(etype).0;
                let through = |x: Tensor<2>| {
                    let [rows, width] = x.dims();
                    let x = split(x, [heads, d_head]).swap_dims(0, 1);
                    x.matmul(at::<4, 3>(by.clone(), ids[etype]))
                        .swap_dims(0, 1)
                        .reshape([rows, width])
                };
                let bias =
                    bias.as_ref().map(|b| through(b.val().slice_dim(0, t..t + 1)).squeeze_dim(0));
                (through(at(linear.val(), t)), bias)
            };
            (0..ids.len()).map(of).collect()
        };
        [compose(&self.linear_k, &self.bias_k, &att), compose(&self.linear_v, &self.bias_v, &msg)]
    }

    /// Computes attention over all relations into one node type, `[num_dst, num_heads · d_head]`.
    fn attend(
        &self,
        g: &dyn GraphView,
        incoming: &IncomingRelations,
        src: &[Tensor<2>],
        q: Tensor<2>,
        [keys, values]: [&[Affine]; 2],
    ) -> Tensor<2> {
        let HgtConvConfig { num_heads: heads, d_head, .. } = self.config;
        let relation = incoming.index.relation();
        let rows = |by: &[Affine]| {
            let table = |&r: &usize| affine(src[g.schema().endpoints(r).0].clone(), by[r].clone());
            split(cat_rows(incoming.etypes.iter().map(table)), [heads, d_head])
        };
        let logits: Tensor<3> = u_dot_v(relation, rows(keys), split(q, [heads, d_head]));
        let logits = logits.reshape([relation.num_edges(), heads]);
        attention(relation, logits, rows(values), None)
            .reshape([relation.num_dst(), heads * d_head])
    }
}

impl Pretrained for HgtConv {
    /// PyG's layer (`HGTConv` of 2.4 and later) has `bias` and `gelu`, no `residual_weight`, and tensors named by type, so
    /// describe the layer by [`from_graph`](HgtConvConfig::from_graph). PyG replaces a dot in the name of a type by `#`.
    /// Node types and relations of DGL, and edge types of PyG (its `metadata`), must be in the order of the schema.
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        if from == Framework::Pyg {
            return self.of_pyg(path);
        }
        match path.split_once('.') {
            Some(("relation_att" | "relation_msg", _)) => ParamMapping::same(format!("{path}.W")),
            None if path.starts_with("linear_") => ParamMapping::same(format!("{path}.W")),
            _ => ParamMapping::same(path),
        }
    }
}

impl HgtConv {
    /// Where PyG keeps a parameter.
    fn of_pyg(&self, path: &str) -> ParamMapping {
        let HgtConvConfig {
            num_heads: heads, d_head, num_ntypes, num_etypes, ntypes, etypes, ..
        } = &self.config;
        let width = heads * d_head;
        let name = |names: &[String], i: usize| {
            names.get(i).map_or_else(|| i.to_string(), |name| pyg_key(name))
        };
        let etypes: Vec<String> =
            etypes.iter().map(|e| format!("{}__{}__{}", e.src, e.relation, e.dst)).collect();
        let by_type = |start: &str, end: &str| {
            (0..*num_ntypes).map(|t| format!("{start}{}{end}", name(ntypes, t))).collect::<Vec<_>>()
        };
        let head =
            path.split_once('.').and_then(|(field, h)| Some((field, h.parse::<usize>().ok()?)));
        // There every edge type has matrices of its own.
        if path.starts_with("relation_")
            && self.config.relation_ids().into_iter().ne(0..*num_etypes)
        {
            return ParamMapping::same(path);
        }
        match (path, head) {
            (_, Some(("relation_att", h))) => ParamMapping::same("k_rel.weight")
                .rows(h * num_etypes..(h + 1) * num_etypes, heads * num_etypes),
            (_, Some(("relation_msg", h))) => ParamMapping::same("v_rel.weight")
                .rows(h * num_etypes..(h + 1) * num_etypes, heads * num_etypes),
            (_, Some(("relation_pri", h))) => {
                let names = (0..*num_etypes).map(|r| format!("p_rel.{}", name(&etypes, r)));
                ParamMapping::stacked(names, h..h + 1, *heads).shaped([1, *heads])
            }
            ("skip", _) => ParamMapping::stacked(by_type("skip.", ""), 0..1, 1),
            _ => {
                let Some((kind @ ("linear" | "bias"), part)) = path.split_once('_') else {
                    return ParamMapping::same(path);
                };
                // Keys, queries and values are columns of one matrix.
                let (module, columns, of) = match ["k", "q", "v"].iter().position(|p| *p == part) {
                    Some(i) => ("kqv_lin", i * width..(i + 1) * width, 3 * width),
                    None if part == "a" => ("out_lin", 0..width, width),
                    None => return ParamMapping::same(path),
                };
                let start = format!("{module}.lins.");
                match kind {
                    "linear" => {
                        ParamMapping::stacked(by_type(&start, ".weight"), columns, of).transpose()
                    }
                    _ => ParamMapping::stacked(by_type(&start, ".bias"), columns, of),
                }
            }
        }
    }
}
