//! Defines `Strategy`: how edges are chosen.

/// How edges are chosen if a node has more candidates than its fan-out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// All candidates are equally likely.
    #[default]
    Uniform,
    /// Probabilities are proportional to weights. Without replacement, edges are drawn sequentially from the remaining
    /// ones (exactly, by exponential keys: Efraimidis and Spirakis, IPL 2006), `O(degree)` per node. With replacement,
    /// edges are drawn from alias tables, `O(fan-out)` per node.
    Weighted,
    /// Probabilities are proportional to the out-degree of the neighbour in the relation. Degrees count all edges, so
    /// that this strategy is not available for edges with times.
    InDegree,
    /// The candidates of the largest weights. Among equal weights the smaller edge id wins.
    TopK,
    /// The candidates of the latest times. Among equal times the larger edge id wins, as if edges had been added in the
    /// order of their ids (PyG: `temporal_strategy="last"`).
    Latest,
    /// LABOR (Balın and Çatalyürek, NeurIPS 2023): every source draws one random number, and each destination takes the
    /// candidates of the smallest numbers (sequential Poisson sampling). The neighbours of one destination are
    /// distributed as under `Uniform`, or `Weighted` if there are weights. But destinations share neighbours, so that a
    /// batch has fewer nodes. `O(degree)` per node.
    Labor {
        /// Whether all layers use the same random numbers, which reduces the number of nodes further.
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
