//! Scores triples by DistMult over entity embeddings, plain or transformed by R-GCN layers.

use anyhow::Result;
use burn::module::Module;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};
use burn_gnn::data::Triple;
use burn_gnn::graph::{Graph, Relation};
use burn_gnn::models::{
    DropoutKey, HeteroLayer, NodeEmbedding, RelGraphConv, RelGraphConvConfig, RelNorm, RelWeights,
    id_tensor, select_rows,
};
use burn_gnn::ops::{
    EdgeTypes, GraphView, LossReduction, RowDropout, copy_u_mean, cross_entropy_rows, dropout,
};
use burn_gnn::sampling::Block;
use burn_gnn_links::{Decoder, DistMult, DistMultConfig, Side};

use super::fit::Settings;
use super::messages::{Messages, over_degrees, vector};

/// A triple and its number among the train triples.
pub(crate) type Fact = (Triple, u32);

/// Learned rows of entities, R-GCN layers over them (none: the rows themselves), and DistMult.
#[derive(Module, Debug)]
pub(crate) struct Net {
    rows: NodeEmbedding,
    convs: Vec<RelGraphConv>,
    scorer: DistMult,
    #[module(skip)]
    dropout: f64,
    key: DropoutKey,
}

impl Net {
    pub(crate) fn new(graph: &Graph, s: &Settings, device: &Device) -> Result<Self> {
        let relations = graph.relations().len();
        let conv = |_| {
            // Messages carry their weights themselves: one over the in-degree in all relations, as the paper has it
            // here.
            RelGraphConvConfig::new(s.dim, s.dim, relations)
                .with_weights(RelWeights::BlockDiagonal(s.blocks))
                .with_norm(RelNorm::None)
                .try_init(device)
        };
        Ok(Self {
            rows: NodeEmbedding::new(graph, [..], s.dim, device)?,
            convs: (0..s.layers).map(conv).collect::<Result<_, _>>()?,
            scorer: DistMultConfig::new(relations, s.dim).try_init(device)?,
            dropout: s.dropout,
            key: DropoutKey::new(device),
        })
    }

    /// Features of all entities, `[entities, dim]`; messages go along all edges but those of the train triples
    /// `hidden`. Dropout, of a model that trains, is that of `step`.
    pub(crate) fn entities(
        &self,
        messages: &Messages,
        hidden: &[u32],
        (seed, step): (u64, u64),
    ) -> Tensor<2> {
        let Some(rows) = self.rows.rows(&self.rows.ntypes()[0]) else {
            unreachable!("entities have rows")
        };
        let weights =
            if self.convs.is_empty() { vec![] } else { messages.weights(hidden, &rows.device()) };
        let view = messages.graph.at_step(seed, step);
        self.over(|_| &view, rows, |_| weights.clone())
    }

    /// Features of the seeds of a batch; a node takes the mean of the messages that were drawn for it.
    pub(crate) fn over_blocks(&self, blocks: &[Block]) -> Tensor<2> {
        let Some(rows) = self.rows.rows_of(&self.rows.ntypes()[0], blocks[0].src_nodes(0)) else {
            unreachable!("entities have rows")
        };
        let device = rows.device();
        let weights = |i: usize| {
            over_degrees(blocks[i].relations()).into_iter().map(|w| vector(w, &device)).collect()
        };
        self.over(|i| &blocks[i], rows, weights)
    }

    fn over<'a, G: GraphView + 'a>(
        &self,
        view: impl Fn(usize) -> &'a G,
        rows: Tensor<2>,
        weights: impl Fn(usize) -> Vec<Tensor<1>>,
    ) -> Tensor<2> {
        let x = self.key.at(0).dropout(view(0), 0, self.dropout, rows);
        self.convs.iter().enumerate().fold(x, |x, (i, conv)| {
            let x = if i == 0 { x } else { relu(x) };
            let weighted = |edges: EdgeTypes<'a>, (r, w)| {
                edges.with_weight(r, w).unwrap_or_else(|e| unreachable!("one per edge type: {e}"))
            };
            let edges = weights(i).into_iter().enumerate().fold(view(i).edge_types(), weighted);
            let y = conv.forward(&edges, x).into_values().swap_remove(0);
            match self.key.at(i + 1).of_outputs(view(i), 0, self.dropout, &y) {
                Some(RowDropout { prob, stream, ids }) => dropout(y, prob, stream, ids),
                None => y,
            }
        })
    }

    pub(crate) fn scorer(&self) -> &DistMult {
        &self.scorer
    }

    /// Scores of all entities as tails, `[queries, entities]`.
    pub(crate) fn scores(
        &self,
        entities: &Tensor<2>,
        queries: impl Iterator<Item = (u32, u32)>,
    ) -> Tensor<2> {
        let (heads, relations): (Vec<u32>, Vec<u32>) = queries.unzip();
        let heads = select_rows(entities.clone(), heads);
        let relations = id_tensor(relations, &entities.device());
        let queries = self.scorer.query(heads, Some(relations), Side::Tail);
        self.scorer.score_all(queries, entities.clone(), Side::Tail)
    }

    /// Cross entropy between the softmax over all entities and the uniform distribution over the tails that a query
    /// (the facts of one head and relation) has, mean over queries:
    /// `log Σ_e exp s[e] - mean_t s[t] = (log Σ_e exp s[e] - s[t0]) + (s[t0] - mean_t s[t])` with any one tail `t0`.
    pub(crate) fn loss(&self, entities: &Tensor<2>, asked: &[&[Fact]]) -> Result<Tensor<1>> {
        let device = entities.device();
        let queries = || asked.iter().map(|q| (q[0].0.head, q[0].0.relation));
        let first: Vec<u32> = asked.iter().map(|q| q[0].0.tail).collect();
        let rows: Vec<u32> = (0..asked.len() as u32).collect();
        let of_first = cross_entropy_rows(
            self.scores(entities, queries()),
            &rows.into(),
            &first.clone().into(),
            LossReduction::Mean,
        );
        // The second bracket is linear in the row of a tail, so a mean over rows replaces one over scores.
        let tails =
            asked.iter().enumerate().flat_map(|(i, q)| q.iter().map(move |f| (f.0.tail, i as u32)));
        let (src, dst) = tails.unzip();
        let tails = Relation::from_coo(entities.dims()[0], asked.len(), src, dst)?;
        let gap = select_rows(entities.clone(), first) - copy_u_mean(&tails, entities.clone());
        let (heads, relations): (Vec<u32>, Vec<u32>) = queries().unzip();
        let heads = select_rows(entities.clone(), heads);
        let relations = Some(id_tensor(relations, &device));
        Ok(of_first + self.scorer.score(heads, relations, gap).mean())
    }
}
