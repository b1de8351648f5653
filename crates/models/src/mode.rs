use burn::tensor::Tensor;
use burn_gnn_ops::{GraphView, RowDropout, Stream, dropout};

/// Whether random parts of a model are in force, and what they are keyed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Dropout draws are functions of (seed, step, layer, original node id, column).
    Train {
        /// Seed of the run.
        seed: u64,
        /// Global step (epoch, on full graphs).
        step: u64,
    },
    /// No dropout.
    Eval,
}

impl Mode {
    /// Dropout on input rows of a node type, keyed by original ids; the identity in [`Mode::Eval`] and for
    /// probability 0. `layer` names the place.
    pub fn dropout<G: GraphView + ?Sized>(self, g: &G, ntype: usize, layer: &str, prob: f64, x: Tensor<2>) -> Tensor<2> {
        match self.row_dropout(g, ntype, layer, prob) {
            Some(RowDropout { prob, stream, ids }) => dropout(x, prob, stream, ids),
            None => x,
        }
    }

    /// What [`dropout`](Self::dropout) does to input rows of a node type, for a layer that does it on the way;
    /// `None` where that is nothing.
    pub fn row_dropout<G: GraphView + ?Sized>(self, g: &G, ntype: usize, layer: &str, prob: f64) -> Option<RowDropout> {
        match self {
            Self::Train { seed, step } if prob > 0.0 => {
                let stream = Stream::new(seed, &format!("dropout/{layer}/{}", g.schema().ntypes()[ntype]), step);
                Some(RowDropout { prob, stream, ids: g.original_ids(ntype) })
            }
            _ => None,
        }
    }
}
