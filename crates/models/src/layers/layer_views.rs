//! Defines `LayerViews`, which selects the view that each layer of a model runs on.

use burn_gnn_ops::{EdgeTypes, GraphView};
use burn_gnn_sampling::Block;

/// The views that the layers of a model run on: one view for all layers ([`Whole`]), or the blocks of a
/// [`MiniBatch`](burn_gnn_sampling::MiniBatch), one per layer (`[Block]`).
///
/// A model implements its forward pass once for any `LayerViews`, with layer `i` on [`view(i)`](Self::view). The output
/// rows of layer `i` are the destinations of view `i`, which are the source rows of view `i + 1`. Seeds are always the
/// first rows.
///
/// On blocks with all neighbours (`Fanouts::all`), the results of the seeds equal those on the whole graph, including
/// dropout, because degrees and random numbers are those of the whole graph.
pub trait LayerViews {
    /// The view of a layer.
    type View: GraphView + ?Sized;

    /// Returns the view of a layer.
    ///
    /// # Panics
    /// There is no view for this layer.
    fn view(&self, layer: usize) -> &Self::View;

    /// Returns the number of different views for a model of `layers` layers: 1, or `layers`. Errors name `model`.
    ///
    /// # Panics
    /// There is not one block per layer.
    fn count(&self, model: &str, layers: usize) -> usize;

    /// Returns the nodes of a type that the first layer reads, as node ids of the sampled graph. `None`: all nodes of the
    /// view.
    fn input_nodes(&self, ntype: usize) -> Option<&[u32]>;

    /// Returns the number of nodes of a type that the first layer reads, which is the expected number of feature rows.
    /// `None`: all nodes of the view.
    fn input_rows(&self, ntype: usize) -> Option<usize>;
}

/// One view for all layers: a graph or a partition.
#[derive(Debug)]
pub struct Whole<'a, G: ?Sized>(pub &'a G);

impl<G: GraphView + ?Sized> LayerViews for Whole<'_, G> {
    type View = G;
    fn view(&self, _layer: usize) -> &G {
        self.0
    }
    fn count(&self, _model: &str, _layers: usize) -> usize {
        1
    }
    fn input_nodes(&self, _ntype: usize) -> Option<&[u32]> {
        None
    }
    fn input_rows(&self, _ntype: usize) -> Option<usize> {
        None
    }
}

impl LayerViews for [Block] {
    type View = Block;
    #[track_caller]
    fn view(&self, layer: usize) -> &Block {
        match self.get(layer) {
            Some(block) => block,
            None => panic!(
                "`layer` must lie in 0..{} (one block per layer), got {layer}; sample more hops",
                self.len()
            ),
        }
    }
    #[track_caller]
    fn count(&self, model: &str, layers: usize) -> usize {
        let blocks = self.len();
        assert!(
            blocks == layers,
            "{model}: expected one block per layer or hop, {layers}, got {blocks}; sample {layers} hops"
        );
        layers
    }
    #[track_caller]
    fn input_nodes(&self, ntype: usize) -> Option<&[u32]> {
        let first = self.view(0);
        assert!(
            first.holds_graph(),
            "embeddings are not supported on a batch sampled from several ranks; read rows by original ids (`DistEmbedding`) and \
             pass them as features"
        );
        Some(first.src_nodes(ntype))
    }
    #[track_caller]
    fn input_rows(&self, ntype: usize) -> Option<usize> {
        Some(self.view(0).src_nodes(ntype).len())
    }
}

impl<V: LayerViews + ?Sized> LayerViews for &V {
    type View = V::View;
    #[track_caller]
    fn view(&self, layer: usize) -> &V::View {
        (**self).view(layer)
    }
    #[track_caller]
    fn count(&self, model: &str, layers: usize) -> usize {
        (**self).count(model, layers)
    }
    #[track_caller]
    fn input_nodes(&self, ntype: usize) -> Option<&[u32]> {
        (**self).input_nodes(ntype)
    }
    #[track_caller]
    fn input_rows(&self, ntype: usize) -> Option<usize> {
        (**self).input_rows(ntype)
    }
}

/// The blocks of a batch with edge weights or edge features, for [`NodeClassifier::logits_over`]. [`EdgeTypes`] is the
/// corresponding type for a graph.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::{Graph, GraphError};
/// use burn_gnn_models::{EdgeBlocks, GcnConfig, NodeClassifier, NodeTensors, select_rows};
/// use burn_gnn_ops::GraphView;
/// use burn_gnn_sampling::{NeighborSampler, SampleKey};
/// let device = Device::flex();
/// let g = Graph::homogeneous(3, vec![0, 1, 2], vec![1, 2, 0])?;
/// let (x, w) = (Tensor::<2>::ones([3, 4], &device), Tensor::<1>::from_data([0.5, 1.0, 2.0], &device));
/// let model = GcnConfig::new(4, 2).init(&device);
/// let batch = NeighborSampler::new(&g, [-1, -1])?.sample([("_N", [2])], SampleKey::new(0))?;
/// let views = EdgeBlocks::new(&batch.blocks, |block| {
///     block.edge_types().with_weight(.., select_rows(w.clone(), block.edge_ids("_E")))
/// })?;
/// let input = NodeTensors::from([("_N", select_rows(x.clone(), batch.blocks[0].src_nodes("_N")))]);
/// let logits = model.logits_over(&views, &input, "_N");
/// let whole = model.forward(&g.edge_types().with_weight(.., w)?, x);
/// whole.slice_dim(0, 2..3).into_data().assert_approx_eq::<f32>(&logits.into_data(), Default::default());
/// # Ok::<(), GraphError>(())
/// ```
///
/// [`NodeClassifier::logits_over`]: crate::NodeClassifier::logits_over
#[derive(Debug)]
pub struct EdgeBlocks<'a> {
    blocks: &'a [Block],
    edges: Vec<EdgeTypes<'a>>,
}

impl<'a> EdgeBlocks<'a> {
    /// Creates views from blocks; `edges` returns the edges of a block with their weights and features.
    ///
    /// # Errors
    /// `edges` returns an error.
    pub fn new<E>(
        blocks: &'a [Block],
        edges: impl FnMut(&'a Block) -> Result<EdgeTypes<'a>, E>,
    ) -> Result<Self, E> {
        Ok(Self { blocks, edges: blocks.iter().map(edges).collect::<Result<_, _>>()? })
    }
}

impl<'a> LayerViews for EdgeBlocks<'a> {
    type View = EdgeTypes<'a>;
    #[track_caller]
    fn view(&self, layer: usize) -> &EdgeTypes<'a> {
        self.blocks.view(layer);
        &self.edges[layer]
    }
    #[track_caller]
    fn count(&self, model: &str, layers: usize) -> usize {
        self.blocks.count(model, layers)
    }
    #[track_caller]
    fn input_nodes(&self, ntype: usize) -> Option<&[u32]> {
        self.blocks.input_nodes(ntype)
    }
    #[track_caller]
    fn input_rows(&self, ntype: usize) -> Option<usize> {
        self.blocks.input_rows(ntype)
    }
}
