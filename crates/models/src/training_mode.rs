use std::sync::Arc;

use burn::tensor::Tensor;
use burn_gnn_graph::{of_etype, of_ntype};
use burn_gnn_ops::{EdgeDropout, GraphView, RowDropout, Stream, dropout};

use crate::DropoutKey;

/// Whether dropout is in effect, and what its draws are keyed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Dropout draws are functions of (seed, step, key of the layer, original id, column).
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
    /// probability 0.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn dropout<G: GraphView + ?Sized>(self, g: &G, ntype: usize, key: DropoutKey, prob: f64, x: Tensor<2>) -> Tensor<2> {
        match self.row_dropout(g, ntype, key, prob) {
            Some(RowDropout { prob, stream, ids }) => dropout(x, prob, stream, ids),
            None => x,
        }
    }

    /// What [`dropout`](Self::dropout) does to input rows of a node type, for a layer that does it on the way;
    /// `None` where that is nothing.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn row_dropout<G: GraphView + ?Sized>(self, g: &G, ntype: usize, key: DropoutKey, prob: f64) -> Option<RowDropout> {
        let stream = self.stream(key, of_ntype(g.schema().ntypes(), ntype).as_str(), prob)?;
        Some(RowDropout { prob, stream, ids: g.original_ids(ntype) })
    }

    /// As [`row_dropout`](Self::row_dropout), for the destination rows that a layer computes: on a block the
    /// first of the input rows.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn output_dropout<G: GraphView + ?Sized>(self, g: &G, ntype: usize, key: DropoutKey, prob: f64) -> Option<RowDropout> {
        let mut dropout = self.row_dropout(g, ntype, key, prob)?;
        let rows = g.num_dst(ntype);
        dropout.ids = dropout.ids.map(|ids| if ids.len() > rows { Arc::from(&ids[..rows]) } else { ids });
        Some(dropout)
    }

    /// Dropout of weights on the edges of a type, keyed by original edge ids; `None` where that is nothing.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn edge_dropout<G: GraphView + ?Sized>(self, g: &G, etype: usize, key: DropoutKey, prob: f64) -> Option<EdgeDropout> {
        let stream = self.stream(key, &of_etype(g.schema().etypes(), etype).to_string(), prob)?;
        Some(EdgeDropout { prob, stream, ids: g.original_edge_ids(etype) })
    }

    fn stream(self, key: DropoutKey, of: &str, prob: f64) -> Option<Stream> {
        match self {
            Self::Train { seed, step } if prob > 0.0 => Some(Stream::new(seed, &format!("dropout/{key}/{of}"), step)),
            _ => None,
        }
    }
}
