//! Prepares the input of heterogeneous models: projected features, or learned embeddings.

use burn::module::Param;
use burn::tensor::{Device, Tensor};
use burn_gnn_graph::Graph;
use burn_gnn_graph::internal::OrPanic;
use burn_gnn_ops::{GraphView, matmul_rows};

use crate::autodiff::beside;
use crate::inference::feature;
use crate::pretrained::{Framework, ParamMapping, Pretrained, in_layers, pyg_key};
use crate::type_map::{NodeTensors, TypeMap};
use crate::{LayerViews, ModelError, NodeEmbedding, init};

/// The input of a node type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeInput {
    /// Features of this size, projected to the hidden size.
    Features(usize),
    /// A learned embedding per node.
    Embedding,
}

/// How the input of a node type is brought to the hidden size.
pub(crate) struct Inputs {
    /// `[d, hidden]` per type of `projected`.
    pub(crate) projections: Vec<Param<Tensor<2>>>,
    /// Types with features.
    pub(crate) projected: Vec<String>,
    /// Node types with learned embeddings.
    pub(crate) embedded: Vec<String>,
}

impl Inputs {
    /// What each node type of `g` brings; a learned embedding where `inputs` has no entry.
    pub(crate) fn new<G: GraphView + ?Sized>(
        g: &G,
        inputs: TypeMap<TypeInput>,
        hidden: usize,
        device: &Device,
    ) -> Result<Self, ModelError> {
        let mut all = Self { projections: vec![], projected: vec![], embedded: vec![] };
        for (ntype, input) in g.schema().ntypes().iter().zip(inputs.into_list(g.schema())?) {
            match input {
                Some(TypeInput::Features(d)) => {
                    all.projections.push(init::glorot([d, hidden], (d, hidden), device));
                    all.projected.push(ntype.clone());
                }
                Some(TypeInput::Embedding) | None => all.embedded.push(ntype.clone()),
            }
        }
        Ok(all)
    }
}

/// Input of the first layer, in the hidden size, per node type; `dropout` is what happens to features of a
/// type before.
#[track_caller]
pub(crate) fn encode<V: LayerViews + ?Sized>(
    views: &V,
    x: &NodeTensors,
    (projected, projections): (&[String], &[Param<Tensor<2>>]),
    embedding: &NodeEmbedding,
    dropout: impl Fn(&str, Tensor<2>) -> Tensor<2>,
) -> NodeTensors {
    let schema = views.view(0).schema();
    let embedded = |t: usize, ntype: &str| match views.input_nodes(t) {
        Some(nodes) => embedding.rows_of(ntype, nodes),
        None => embedding.rows(ntype),
    };
    let x = x.clone().into_list(schema).or_panic();
    let of_type = |(t, (ntype, x)): (usize, (&String, Option<Tensor<2>>))| {
        let Some(i) = projected.iter().position(|p| p == ntype) else {
            let none = || format!("node type `{ntype}` has neither features nor embedding");
            return embedded(t, ntype).ok_or_else(none).map(|x| (ntype.clone(), x));
        };
        let none = || {
            format!(
                "expected features of node type `{ntype}` (`TypeInput::Features`), got none; add them to `x`"
            )
        };
        let (x, w) = (x.ok_or_else(none)?, projections[i].val());
        let ([rows, size], expected) = (x.dims(), w.dims()[0]);
        if size != expected {
            return Err(format!(
                "node type `{ntype}`: expected features of size {expected}, got {:?}; make the model for features of size {size}",
                x.dims()
            ));
        }
        if let Some(n) = views.input_rows(t).filter(|&n| n != rows) {
            return Err(format!(
                "node type `{ntype}`: expected {n} rows (one per input node of the batch), got {rows}; \
                 give the features of the batch, not those of the graph"
            ));
        }
        Ok((ntype.clone(), matmul_rows(dropout(ntype, beside(x, &w)), w)))
    };
    let inputs = schema.ntypes().iter().zip(x).enumerate().map(of_type);
    inputs.collect::<Result<_, String>>().or_panic()
}

/// What [`encode_rows`] reads of every node type: features, or learned embeddings.
pub(crate) fn encoder_inputs(
    g: &Graph,
    features: &NodeTensors,
    (projected, projections): (&[String], &[Param<Tensor<2>>]),
    embedding: &NodeEmbedding,
) -> Result<NodeTensors, ModelError> {
    let input = |ntype: &String| {
        let x = match projected.iter().position(|p| p == ntype) {
            Some(i) => feature(g, features, ntype, projections[i].val().dims()[0])?,
            None => {
                let message = "the model has no embedding for it; build the model for a graph with this node type";
                embedding.rows(ntype).ok_or_else(|| ModelError::input(ntype, message))?
            }
        };
        Ok((ntype.clone(), x))
    };
    g.schema().ntypes().iter().map(input).collect()
}

/// Node types with features, and their sizes.
pub(crate) fn sizes(
    projected: &[String],
    projections: &[Param<Tensor<2>>],
) -> Vec<(String, usize)> {
    projected.iter().cloned().zip(projections.iter().map(|w| w.val().dims()[0])).collect()
}

/// [`encode`] without dropout, of some nodes of each type.
pub(crate) fn encode_rows<G: GraphView + ?Sized>(
    g: &G,
    x: NodeTensors,
    (projected, projections): (&[String], &[Param<Tensor<2>>]),
) -> NodeTensors {
    x.map(|ntype, x| {
        let t = g.schema().ntype(ntype).or_panic();
        match projected.iter().position(|p| p == ntype) {
            Some(i) => matmul_rows(g.dst_rows(t, x), projections[i].val()),
            None => g.dst_rows(t, x),
        }
    })
}

/// Where a state dict keeps a parameter of a model of several node types: projections and embeddings by the names of
/// types, as DGL's `HeteroLinear` and `HeteroEmbedding` and PyG's `HeteroDictLinear` have them, layers in a list.
pub(crate) fn param_mapping_of_types<M: Pretrained>(
    from: Framework,
    path: &str,
    [projected, embedded]: [&[String]; 2],
    convs: &[M],
) -> ParamMapping {
    let [project, embed] = match from {
        Framework::Dgl => ["project.linears", "embed.embeds"],
        Framework::Pyg => ["project.lins", "embed"],
    };
    let key = |ntype: &str| match from {
        Framework::Dgl => ntype.to_owned(),
        Framework::Pyg => pyg_key(ntype),
    };
    let of_type = |start: &str, types: &[String]| {
        let i = path.strip_prefix(start)?.parse::<usize>().ok()?;
        types.get(i).cloned()
    };
    if let Some(ntype) = of_type("net.projections.", projected) {
        return ParamMapping::transposed(format!("{project}.{}.weight", key(&ntype)));
    }
    if let Some(ntype) = of_type("embedding.weights.", embedded) {
        return ParamMapping::same(format!("{embed}.{}.weight", key(&ntype)));
    }
    let path = path.strip_prefix("net.").unwrap_or(path);
    match path.strip_prefix("convs.") {
        Some(rest) => in_layers(convs, from, &format!("layers.{rest}")),
        None => ParamMapping::same(path),
    }
}
