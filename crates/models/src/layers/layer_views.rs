//! Chooses the view that each layer of a model runs on.

use burn_gnn_ops::{EdgeTypes, GraphView};
use burn_gnn_sampling::Block;

/// What the layers of a model run on: one view for all of them ([`Whole`]), or one block for each, as a
/// [`MiniBatch`](burn_gnn_sampling::MiniBatch) has them (`[Block]`).
///
/// A model states its forward once, over any `LayerViews`: layer `i` on [`view(i)`](Self::view). Rows after layer `i`
/// are the destinations of view `i`, which are the source rows of view `i + 1`; the seeds are the first of all of them.
///
/// On blocks with all neighbours (`Fanouts::all`) the rows of the seeds are those that the whole graph gives, dropout
/// included, as degrees and draws are those of the graph.
pub trait LayerViews {
    /// The view of a layer.
    type View: GraphView + ?Sized;

    /// The view of layer `layer`.
    ///
    /// # Panics
    /// There is no such layer.
    fn view(&self, layer: usize) -> &Self::View;

    /// Number of different views among those of `layers` layers of `model`: one for all, or one for each.
    ///
    /// # Panics
    /// Not one block for each layer.
    fn count(&self, model: &str, layers: usize) -> usize;

    /// Nodes of a type that the first layer reads, as numbers of the graph that was sampled; `None` if all rows that a
    /// model has.
    fn input_nodes(&self, ntype: usize) -> Option<&[u32]>;

    /// Number of nodes of a type that the first layer reads, which features must have as rows; `None` if all rows that a
    /// model has.
    fn input_rows(&self, ntype: usize) -> Option<usize>;
}

/// One view under all layers: a graph, or a partition.
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
            "learned rows on a batch of several machines: read them by original ids (`DistEmbedding`) and pass them as features"
        );
        Some(first.src_nodes(ntype))
    }
    #[track_caller]
    fn input_rows(&self, ntype: usize) -> Option<usize> {
        Some(self.view(0).src_nodes(ntype).len())
    }
}

/// The blocks of a batch with weights or features of their edges, for [`NodeClassifier::logits_over`]: what
/// [`EdgeTypes`] is for a graph.
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
    /// `edges` gives those of a block.
    ///
    /// # Errors
    /// That of `edges`.
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
