//! Implements the message passing of the relational baseline: one GraphSAGE layer per foreign key and direction.

use burn::module::Module;
use burn::nn::{LayerNorm, LayerNormConfig};
use burn::tensor::{Device, Tensor};
use burn_gnn_graph::Schema;
use burn_gnn_ops::{Activation, GraphView, Reduce, bias_activation};
use burn_gnn_sampling::Block;

use crate::layers::convolution::sage_conv::{SageAggregator, SageConv, SageConvConfig};
use crate::layers::dense::mlp::normalise;
use crate::layers::heterogeneous::hetero_graph_conv::{HeteroGraphConv, HeteroGraphConvConfig};
use crate::layers::heterogeneous::hetero_layer::HeteroLayer;
use crate::layers::type_map::NodeTensors;

/// GraphSAGE layers per edge type, whose results are averaged per node type:
///
/// ```text
/// h[v] = h[v] + relu(layer_norm(mean over relations r into type(v) of sage_r(h)[v]))
/// ```
/// A node type without incoming relations keeps its rows.
#[derive(Module, Debug)]
pub struct TypedSage {
    /// One per hop, input first.
    pub layers: Vec<TypedSageLayer>,
}

/// A layer of a [`TypedSage`].
#[derive(Module, Debug)]
pub struct TypedSageLayer {
    /// A layer per edge type.
    pub conv: HeteroGraphConv<SageConv>,
    /// A layer normalisation per node type.
    pub norms: Vec<LayerNorm>,
}

impl TypedSage {
    /// Initializes `layers` layers.
    pub(crate) fn new(
        schema: &Schema,
        hidden: usize,
        layers: usize,
        aggregator: SageAggregator,
        device: &Device,
    ) -> Self {
        let sage = SageConvConfig::new(hidden, hidden).with_aggregator(aggregator);
        let layer = |_| TypedSageLayer {
            conv: HeteroGraphConvConfig::new()
                .with_aggregate(Reduce::Mean)
                .init(schema, |_| sage.init(device)),
            norms: schema
                .ntypes()
                .iter()
                .map(|_| LayerNormConfig::new(hidden).init(device))
                .collect(),
        };
        Self { layers: (0..layers).map(layer).collect() }
    }

    /// Rows of type `target` that the last block computes.
    #[track_caller]
    pub(crate) fn forward(&self, blocks: &[Block], x: NodeTensors, target: &str) -> Tensor<2> {
        assert!(
            blocks.len() == self.layers.len(),
            "relational model: expected one block per layer, {}, got {}; sample as many hops as the model has layers",
            self.layers.len(),
            blocks.len()
        );
        let mut h = x;
        for (layer, block) in self.layers.iter().zip(blocks) {
            let schema = block.schema();
            let results = layer.conv.forward(block, h.clone());
            let next = schema.ntypes().iter().enumerate().map(|(t, ntype)| {
                let own = block.dst_rows(t, h.get(ntype)?.clone());
                let Some(y) = results.get(ntype) else { return Some(own) };
                let y = normalise(Some(&layer.norms[t]), y.clone());
                Some(own + bias_activation(y, None, Activation::Relu, None))
            });
            h = NodeTensors::from_list(schema, next.collect::<Vec<_>>());
        }
        h[target].clone()
    }
}
