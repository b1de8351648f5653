//! Applies one layer per edge type, and aggregates the results per node type.

use burn::config::Config;
use burn::module::Module;
use burn::tensor::Tensor;
use burn_gnn_graph::{EdgeType, Schema};
use burn_gnn_ops::{EdgeTypes, Reduce, div_by};

use crate::layers::conv::{Conv, Endpoints, check_options, check_sizes};
use crate::layers::heterogeneous::hetero_layer::{HeteroLayer, check_graph_types};
use crate::layers::type_map::{NodeTensors, TypeMap, of_read_types};
use crate::pretrained::{Buffer, Framework, ParamMapping, Pretrained, indexed, pyg_key};

/// Describes a [`HeteroGraphConv`].
#[derive(Config, Debug)]
pub struct HeteroGraphConvConfig {
    /// How the results of edge types are aggregated per destination node type.
    #[config(default = "Reduce::Sum")]
    pub aggregate: Reduce,
}

/// A separate layer for every edge type; results for one node type are aggregated:
/// `y[v] = AGG over relations r into type(v) of conv_r(x)[v]`.
///
/// # Shapes
/// `x[t]: [num_input of type t, d_t]` for every node type that a layer reads. All layers
/// into a node type have the same output feature size. A node type without incoming relations has no result.
///
/// # Semantics
/// Every relation takes part for every node, those without edges too: a bias or an own term of its layer counts.
/// Mean divides by the number of relations.
///
/// # Departures from DGL
/// Layers are of one kind (or an enum that implements [`Conv`]); features of destinations need not be given
/// to layers that do not read them.
///
/// # Cost
/// One exchange for all relations; each layer runs once.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::{GcnConvConfig, HeteroLayer, HeteroGraphConvConfig};
/// let device = Device::flex();
/// let g = Graph::builder()
///     .edges(("user", "buys", "item"), vec![0, 1], vec![0, 0])
///     .edges(("user", "follows", "user"), vec![0], vec![1])
///     .build()?;
/// let conv = HeteroGraphConvConfig::new()
///     .init(g.schema(), |_| GcnConvConfig::new(4, 2).init(&device));
/// let y = conv.forward(&g, [("user", Tensor::ones([2, 4], &device))]);
/// assert_eq!((y["user"].dims(), y["item"].dims()), ([2, 2], [1, 2]));
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// # Source
/// `HeteroGraphConv` of DGL (Wang et al., arXiv:1909.01315).
#[derive(Module, Debug)]
pub struct HeteroGraphConv<M: Module> {
    /// One layer per edge type, in the order of the schema.
    pub mods: Vec<M>,
    #[module(skip)]
    etypes: Vec<EdgeType>,
    #[module(skip)]
    aggregate: Reduce,
}

impl HeteroGraphConvConfig {
    /// `make` gives the layer of each edge type.
    pub fn init<M: Module>(
        &self,
        schema: &Schema,
        make: impl FnMut(&EdgeType) -> M,
    ) -> HeteroGraphConv<M> {
        HeteroGraphConv {
            mods: schema.etypes().iter().map(make).collect(),
            etypes: schema.etypes().to_vec(),
            aggregate: self.aggregate,
        }
    }
}

impl<M: Conv> HeteroLayer for HeteroGraphConv<M> {
    /// Features of every node type with an incoming relation.
    ///
    /// # Panics
    /// Shapes, or edge types, that disagree with the graph; edge weights or features that a layer does not read.
    #[track_caller]
    fn forward<'a>(
        &self,
        edges: impl Into<EdgeTypes<'a>>,
        x: impl Into<NodeTensors>,
    ) -> NodeTensors {
        self.results(edges, x).map(|_, results| join(results, self.aggregate))
    }
}

impl<M: Conv> HeteroGraphConv<M> {
    /// The results of the relations into every node type, relations in the order of the schema, before they are joined:
    /// to stack them (`Tensor::stack`) or to join them in another way.
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    #[track_caller]
    pub fn results<'a>(
        &self,
        edges: impl Into<EdgeTypes<'a>>,
        x: impl Into<NodeTensors>,
    ) -> TypeMap<Vec<Tensor<2>>> {
        let edges = edges.into();
        let (g, schema) = (edges.view(), edges.view().schema());
        check_graph_types("hetero_graph_conv", schema, &[], &self.etypes);
        let x: NodeTensors = x.into();
        let given: Vec<String> = x.iter().map(|(ntype, _)| ntype.to_owned()).collect();
        let x = of_read_types("hetero_graph_conv", g, x);
        let types = x.len();
        let (x, own): (Vec<_>, Vec<_>) =
            x.into_iter().enumerate().map(|(t, x)| g.with_dst_rows(t, x)).unzip();
        let src = g.src_rows("hetero_graph_conv", x);
        let result = |r: usize| {
            let ((s, d), conv, edges) = (schema.endpoints(r), &self.mods[r], edges.at(r));
            check_options::<M>(&edges);
            let from = &schema.ntypes()[s];
            // A layer that takes any size may read none of them.
            assert!(
                conv.input_sizes()[0].is_none() || given.len() == types || given.contains(from),
                "hetero_graph_conv: edge type `{}`: expected features of its source type `{from}`, got those of {given:?}; \
                 add them to `x`",
                edges.edge_type()
            );
            check_sizes(conv, &edges, &src[s], &own[d]);
            let rows = Endpoints {
                src: conv.project(&edges, src[s].clone()),
                dst: own[d].clone(),
                shared: s == d,
            };
            conv.aggregate(&edges, rows)
        };
        let into = |t: usize| schema.etypes_into(t).map(&result).collect::<Vec<_>>();
        TypeMap::from_list(
            schema,
            (0..types).map(|t| Some(into(t)).filter(|results| !results.is_empty())),
        )
    }
}

/// One result of several, at least one.
fn join(results: Vec<Tensor<2>>, by: Reduce) -> Tensor<2> {
    let n = results.len() as f64;
    let all = results.into_iter().reduce(|a, b| match by {
        Reduce::Sum | Reduce::Mean => a + b,
        Reduce::Max => a.max_pair(b),
        Reduce::Min => a.min_pair(b),
    });
    match all {
        Some(sum) if by == Reduce::Mean => div_by(sum, n),
        Some(one) => one,
        None => unreachable!("types without relations are left out"),
    }
}

impl<M: Pretrained> Pretrained for HeteroGraphConv<M> {
    /// DGL keys layers by canonical edge types or by relation names, under which edge types of one relation share a
    /// layer. Each has its own here: they are read from the shared one, and written by canonical edge types.
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        match indexed(path) {
            Some((_, i, rest)) if i < self.mods.len() => {
                self.mods[i].param_mapping(from, rest).under_any(&self.prefixes(from, i))
            }
            _ => ParamMapping::same(path),
        }
    }
    fn buffers(&self, from: Framework) -> Vec<Buffer> {
        let of = |(i, m): (usize, &M)| {
            let prefixes = self.prefixes(from, i);
            m.buffers(from).into_iter().map(move |b| b.under_any(&prefixes))
        };
        self.mods.iter().enumerate().flat_map(of).collect()
    }
}

impl<M: Module> HeteroGraphConv<M> {
    /// What names of layer `i` may begin with; the first is written.
    fn prefixes(&self, from: Framework, i: usize) -> [String; 2] {
        let EdgeType { src, relation, dst } = &self.etypes[i];
        match from {
            Framework::Dgl => {
                let canonical =
                    format!("mods.({}, {}, {}).", python(src), python(relation), python(dst));
                let short = format!("mods.{relation}.");
                let unique = self.etypes.iter().filter(|e| e.relation == *relation).count() == 1;
                if unique { [short, canonical] } else { [canonical, short] }
            }
            // The second before PyG 2.3.
            Framework::Pyg => {
                let types = [src, relation, dst].map(|t| pyg_key(t));
                [format!("convs.<{}>.", types.join("___")), format!("convs.{}.", types.join("__"))]
            }
        }
    }
}

/// A text as Python shows it in a tuple.
fn python(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let escaped = text.replace('\\', "\\\\");
    let escaped = if quote == '\'' { escaped.replace('\'', "\\'") } else { escaped };
    format!("{quote}{escaped}{quote}")
}
