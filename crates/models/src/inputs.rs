//! Rows of the first layer for many node types: features projected, or rows learned.

use burn::module::Param;
use burn::tensor::{Device, Tensor};
use burn_gnn_graph::Graph;
use burn_gnn_ops::{GraphView, matmul_rows};

use crate::autodiff::beside;
use crate::inference::feature;
use crate::pretrained::{Framework, ParamMapping, Pretrained, in_layers, pyg_key};
use crate::{LayerViews, ModelError, NodeEmbedding, init};

/// What a node type brings to the first layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeInput {
    /// Features with this many columns, projected to the hidden width.
    Features(usize),
    /// A learned row per node.
    Embedding,
}

/// How node types come to the hidden width.
pub(crate) struct Inputs {
    /// `[d, hidden]` per type of `projected`.
    pub(crate) projections: Vec<Param<Tensor<2>>>,
    /// Types with features.
    pub(crate) projected: Vec<usize>,
    /// Types with learned rows.
    pub(crate) embedded: Vec<usize>,
}

impl Inputs {
    /// One [`TypeInput`] per node type of `g`.
    pub(crate) fn new<G: GraphView + ?Sized>(g: &G, inputs: &[TypeInput], hidden: usize, device: &Device) -> Result<Self, ModelError> {
        let types = g.schema().ntypes().len();
        if inputs.len() != types {
            let (why, expected, actual) = ("one per node type".into(), types, inputs.len());
            return Err(ModelError::Length { arg: "inputs".into(), why, expected, actual });
        }
        let mut all = Self { projections: vec![], projected: vec![], embedded: vec![] };
        for (t, input) in inputs.iter().enumerate() {
            match *input {
                TypeInput::Features(d) => {
                    all.projections.push(init::glorot([d, hidden], (d, hidden), device));
                    all.projected.push(t);
                }
                TypeInput::Embedding => all.embedded.push(t),
            }
        }
        Ok(all)
    }
}

/// Rows of every node type in the hidden width that the first layer reads; `dropout` is what happens to features of a type before.
#[track_caller]
pub(crate) fn encode<V: LayerViews + ?Sized>(
    views: &V,
    x: &[Option<Tensor<2>>],
    (projected, projections): (&[usize], &[Param<Tensor<2>>]),
    embedding: &NodeEmbedding,
    dropout: impl Fn(usize, Tensor<2>) -> Tensor<2>,
) -> Vec<Tensor<2>> {
    let embedded = |t: usize| match views.input_nodes(t) {
        Some(nodes) => embedding.rows_of(t, nodes),
        None => embedding.rows(t),
    };
    (0..views.view(0).schema().ntypes().len())
        .map(|t| match projected.iter().position(|&p| p == t) {
            Some(i) => {
                let x = x[t].clone().unwrap_or_else(|| panic!("node type {t} was built with features, got none"));
                matmul_rows(dropout(t, beside(x, &projections[i].val())), projections[i].val())
            }
            None => embedded(t).unwrap_or_else(|| panic!("node type {t} has neither features nor embedding")),
        })
        .collect()
}

/// What [`encode_rows`] reads of every node type: features, or the rows that are learned.
pub(crate) fn encoder_inputs(
    g: &Graph,
    features: &[Option<Tensor<2>>],
    (projected, projections): (&[usize], &[Param<Tensor<2>>]),
    embedding: &NodeEmbedding,
) -> Result<Vec<Tensor<2>>, ModelError> {
    let input = |t: usize| match projected.iter().position(|&p| p == t) {
        Some(i) => feature(g, features, t, projections[i].val().dims()[0]),
        None => embedding.rows(t).ok_or_else(|| ModelError::Input { ntype: t, message: "the model has no learned rows for it".into() }),
    };
    (0..g.schema().ntypes().len()).map(input).collect()
}

/// [`encode`] without dropout, of some nodes of each type.
pub(crate) fn encode_rows<G: GraphView + ?Sized>(
    g: &G,
    x: Vec<Tensor<2>>,
    (projected, projections): (&[usize], &[Param<Tensor<2>>]),
) -> Vec<Tensor<2>> {
    let row = |(t, x): (usize, Tensor<2>)| match projected.iter().position(|&p| p == t) {
        Some(i) => matmul_rows(g.dst_rows(t, x), projections[i].val()),
        None => g.dst_rows(t, x),
    };
    x.into_iter().enumerate().map(row).collect()
}

/// Where a state dict keeps a parameter of a model of several node types: projections and learned rows by the names of types, as DGL's
/// `HeteroLinear` and `HeteroEmbedding` and PyG's `HeteroDictLinear` have them, layers in a list.
pub(crate) fn param_mapping_of_types<M: Pretrained>(
    from: Framework,
    path: &str,
    ntypes: &[String],
    [projected, embedded]: [&[usize]; 2],
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
    let of_type = |start: &str, types: &[usize]| {
        let t = types.get(path.strip_prefix(start)?.parse::<usize>().ok()?)?;
        ntypes.get(*t)
    };
    if let Some(ntype) = of_type("net.projections.", projected) {
        return ParamMapping::transposed(format!("{project}.{}.weight", key(ntype)));
    }
    if let Some(ntype) = of_type("embedding.weights.", embedded) {
        return ParamMapping::same(format!("{embed}.{}.weight", key(ntype)));
    }
    let path = path.strip_prefix("net.").unwrap_or(path);
    let layer = path.strip_prefix("convs.").and_then(|rest| in_layers(convs, from, &format!("layers.{rest}")));
    layer.unwrap_or_else(|| ParamMapping::same(path))
}
