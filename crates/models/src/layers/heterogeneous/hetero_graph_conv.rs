//! Applies one layer per edge type, and aggregates the results per node type.

use burn::config::Config;
use burn::module::Module;
use burn::tensor::Tensor;
use burn_gnn_graph::{EdgeType, Schema};
use burn_gnn_ops::{EdgeTypes, Endpoints, Reduce, div_by};

use crate::layers::conv::{Conv, check_options, check_sizes};
use crate::layers::heterogeneous::hetero_layer::{HeteroLayer, LayerTypes, exchange};
use crate::layers::type_map::{NodeTensors, TypeMap, of_read_types};
use crate::pretrained::buffers::Buffer;
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained, indexed, pyg_key};

/// Describes a [`HeteroGraphConv`].
#[derive(Config, Debug)]
pub struct HeteroGraphConvConfig {
    /// How the results of edge types into one node type are aggregated.
    #[config(default = "Reduce::Sum")]
    pub aggregate: Reduce,
}

/// Container of one layer per edge type, which aggregates their results per node type. It is PyG's `HeteroConv` and DGL's
/// `HeteroGraphConv`.
///
/// `y[v] = AGG over relations r into type(v) of conv_r(x)[v]`
///
/// Layers are of any type that implements [`Conv`]: layers of this library, and custom layers with an
/// `impl MessagePassing` ([`MessagePassing`](burn_gnn_ops::MessagePassing)).
///
/// # Shapes
/// `x[t]: [num_input of type t, d_t]` for every node type that a layer reads. All layers into a node type have the same
/// output feature size. A node type without incoming relations has no result.
///
/// # Corner cases
/// Every relation contributes to every node of its destination type, even if it has no edges: a layer may add a bias or a
/// term of the node itself. A mean divides by the number of relations.
///
/// # Differences from DGL and PyG
/// All layers have the same Rust type; for layers of different types, define an enum that implements [`Conv`]. Features
/// of destinations may be omitted if no layer reads them.
///
/// # Cost
/// One halo exchange for all relations. Each layer runs once.
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
    /// Creates a container of the layers that `make` returns, one per edge type.
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
    /// Computes features of every node type with an incoming relation.
    ///
    /// # Panics
    /// Shapes or edge types differ from those of the graph, or edges have weights or features that their layer does not
    /// read.
    #[track_caller]
    fn forward<'a>(
        &self,
        edges: impl Into<EdgeTypes<'a>>,
        x: impl Into<NodeTensors>,
    ) -> NodeTensors {
        self.results(edges, x).map(|_, results| aggregate(results, self.aggregate))
    }
}

impl<M: Conv> HeteroGraphConv<M> {
    /// Computes the results of the relations into every node type, in the order of the schema, without aggregating them:
    /// to stack them (`Tensor::stack`) or to aggregate them in another way.
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
        let types = LayerTypes {
            layer: "hetero_graph_conv",
            ntypes: &[],
            etypes: &self.etypes,
            num_ntypes: None,
            num_etypes: None,
        };
        types.check(schema);
        let x: NodeTensors = x.into();
        let ntypes_of_x: Vec<String> = x.iter().map(|(ntype, _)| ntype.to_owned()).collect();
        let x = of_read_types(types.layer, g, x);
        let num_ntypes = x.len();
        let [src, dst] = exchange(types.layer, g, x);
        let result = |r: usize| {
            let ((s, d), conv, edges) = (schema.endpoints(r), &self.mods[r], edges.at(r));
            check_options::<M>(&edges);
            let from = &schema.ntypes()[s];
            // A layer that accepts any size may not read source features at all.
            assert!(
                conv.input_sizes()[0].is_none()
                    || ntypes_of_x.len() == num_ntypes
                    || ntypes_of_x.contains(from),
                "hetero_graph_conv: edge type `{}`: expected features of its source type `{from}`, got those of {ntypes_of_x:?}; \
                 add them to `x`",
                edges.edge_type()
            );
            check_sizes(conv, &edges, &src[s], &dst[d]);
            let rows = Endpoints {
                src: conv.project(&edges, src[s].clone()),
                dst: dst[d].clone(),
                shared: s == d,
            };
            conv.aggregate(&edges, rows)
        };
        let into = |t: usize| schema.etypes_into(t).map(&result).collect::<Vec<_>>();
        TypeMap::from_list(
            schema,
            (0..num_ntypes).map(|t| Some(into(t)).filter(|results| !results.is_empty())),
        )
    }
}

/// Aggregates the results of one or more edge types.
fn aggregate(results: Vec<Tensor<2>>, by: Reduce) -> Tensor<2> {
    let n = results.len() as f64;
    let all = results.into_iter().reduce(|a, b| match by {
        Reduce::Sum | Reduce::Mean => a + b,
        Reduce::Max => a.max_pair(b),
        Reduce::Min => a.min_pair(b),
    });
    match all {
        Some(sum) if by == Reduce::Mean => div_by(sum, n),
        Some(one) => one,
        None => unreachable!("node types without incoming relations have no entry"),
    }
}

impl<M: Pretrained> Pretrained for HeteroGraphConv<M> {
    /// DGL names layers by canonical edge type, or by relation if edge types of one relation share a layer. Here every
    /// edge type has a layer: all of them are loaded from the shared one, and saved by canonical edge type.
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
    /// Prefixes of the names of layer `i`; the first one is used for saving.
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
            // PyG before 2.3 writes the second prefix.
            Framework::Pyg => {
                let types = [src, relation, dst].map(|t| pyg_key(t));
                [format!("convs.<{}>.", types.join("___")), format!("convs.{}.", types.join("__"))]
            }
        }
    }
}

/// Formats a string as Python does in a tuple.
fn python(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let escaped = text.replace('\\', "\\\\");
    let escaped = if quote == '\'' { escaped.replace('\'', "\\'") } else { escaped };
    format!("{quote}{escaped}{quote}")
}
