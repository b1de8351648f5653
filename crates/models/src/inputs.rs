//! Rows of the first layer for many node types: features projected, or rows learned.

use burn::module::Param;
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{GraphView, matmul_rows};

use crate::{ModelError, init};

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
    /// One [`TypeInput`] per node type of `g`; `model` keys the weights.
    pub(crate) fn new<G: GraphView + ?Sized>(
        g: &G,
        inputs: &[TypeInput],
        hidden: usize,
        seed: u64,
        model: &str,
        device: &Device,
    ) -> Result<Self, ModelError> {
        let ntypes = g.schema().ntypes();
        if inputs.len() != ntypes.len() {
            let (why, expected, actual) = ("one per node type".into(), ntypes.len(), inputs.len());
            return Err(ModelError::Length { arg: "inputs".into(), why, expected, actual });
        }
        let mut all = Self { projections: vec![], projected: vec![], embedded: vec![] };
        for (t, input) in inputs.iter().enumerate() {
            match *input {
                TypeInput::Features(d) => {
                    let name = format!("{model}/projection/{}", ntypes[t]);
                    all.projections.push(init::glorot(seed, &name, [d, hidden], (d, hidden), device));
                    all.projected.push(t);
                }
                TypeInput::Embedding => all.embedded.push(t),
            }
        }
        Ok(all)
    }
}

/// Rows of every node type in the hidden width; `embedded` gives those of types without features, `dropout` is what happens to
/// features of a type before.
#[track_caller]
pub(crate) fn encode<G: GraphView + ?Sized>(
    g: &G,
    x: &[Option<Tensor<2>>],
    (projected, projections): (&[usize], &[Param<Tensor<2>>]),
    embedded: impl Fn(usize) -> Option<Tensor<2>>,
    dropout: impl Fn(usize, Tensor<2>) -> Tensor<2>,
) -> Vec<Tensor<2>> {
    (0..g.schema().ntypes().len())
        .map(|t| match projected.iter().position(|&p| p == t) {
            Some(i) => {
                let x = x[t].clone().unwrap_or_else(|| panic!("node type {t} was built with features, got none"));
                matmul_rows(dropout(t, x), projections[i].val())
            }
            None => embedded(t).unwrap_or_else(|| panic!("node type {t} has neither features nor embedding")),
        })
        .collect()
}
