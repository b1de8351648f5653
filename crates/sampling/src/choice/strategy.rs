//! Defines the strategies by which edges are chosen.

/// How edges are chosen where a node has more than its fan-out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// Every candidate is equally likely.
    #[default]
    Uniform,
    /// In proportion to weights. Without replacement: one draw after the other from what is left (exactly, by
    /// exponential keys: Efraimidis and Spirakis, IPL 2006), `O(degree)` per node. With replacement: by alias tables,
    /// `O(fan-out)`.
    Weighted,
    /// In proportion to how many edges of the relation lead to the neighbour from this side: its degree there. These
    /// degrees count all edges, later ones too, so edges with times cannot be drawn this way.
    InDegree,
    /// The candidates of the largest weights, of equal ones the first in edge-id order.
    TopK,
    /// The candidates of the latest times, of equal ones the last in edge-id order, as if edges had been added in the
    /// order of their ids (PyG: `temporal_strategy="last"`).
    Latest,
    /// LABOR (Balın and Çatalyürek, NeurIPS 2023): a node draws one number for all who may choose it, so destinations
    /// agree on their neighbours and a batch has fewer nodes. Each destination takes the candidates of the smallest
    /// numbers (sequential Poisson sampling), so its neighbours are distributed as under `Uniform`, or under `Weighted`
    /// where there are weights. `O(degree)` per node.
    Labor {
        /// Whether all layers share the numbers, which makes batches smaller still.
        layer_dependent: bool,
    },
}

impl Strategy {
    pub(crate) fn needs_weights(self) -> bool {
        matches!(self, Self::Weighted | Self::TopK)
    }
    pub(crate) fn can_replace(self) -> bool {
        matches!(self, Self::Uniform | Self::Weighted | Self::InDegree)
    }
}
