//! Chooses the view that each layer of a model runs on.

use burn_gnn_ops::GraphView;
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
