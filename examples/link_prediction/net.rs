//! The model, and the messages it passes.

use anyhow::Result;
use burn::module::Module;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_gnn::graph::{Graph, KnowledgeGraph, Relation, Triple};
use burn_gnn::models::{
    LinkScore, LinkScorer, LinkScorerConfig, Mode, NodeEmbedding, RelGraphConv, RelGraphConvConfig, RelNorm, RelWeights,
};
use burn_gnn::ops::{LossReduction, copy_u_mean, cross_entropy_rows};

use crate::fit::Settings;

/// A triple and its number among the train triples.
pub(crate) type Fact = (Triple, u32);

/// Learned rows of entities, R-GCN layers over them (none: the rows themselves), and DistMult.
#[derive(Module, Debug)]
pub(crate) struct Net {
    rows: NodeEmbedding,
    convs: Vec<RelGraphConv>,
    scorer: LinkScorer,
    #[module(skip)]
    dropout: f64,
}

impl Net {
    pub(crate) fn new(graph: &Graph, s: &Settings, device: &Device) -> Result<Self> {
        let relations = graph.relations().len();
        let conv = |i| {
            // Messages carry their weights themselves: one over the in-degree in all relations, as the paper has it here.
            RelGraphConvConfig::new(s.dim, s.dim, relations)
                .with_weights(RelWeights::BlockDiagonal(s.blocks))
                .with_norm(RelNorm::None)
                .with_seed(s.seed)
                .with_name(format!("link/{i}"))
                .try_init(device)
        };
        Ok(Self {
            rows: NodeEmbedding::new(graph, vec![0], s.dim, s.seed, device),
            convs: (0..s.layers).map(conv).collect::<Result<_, _>>()?,
            scorer: LinkScorerConfig::new(LinkScore::DistMult, relations, s.dim).with_seed(s.seed).try_init(device)?,
            dropout: s.dropout,
        })
    }

    /// Rows of all entities, `[entities, dim]`; messages go along all edges but those of the train triples `hidden`.
    pub(crate) fn entities(&self, messages: &Messages, hidden: &[u32], mode: Mode) -> Tensor<2> {
        let Some(rows) = self.rows.rows(0) else { unreachable!("entities have rows") };
        let g = &messages.graph;
        let weights = if self.convs.is_empty() { vec![] } else { messages.weights(hidden, &rows.device()) };
        let x = mode.dropout(g, 0, "link/rows", self.dropout, rows);
        self.convs.iter().enumerate().fold(x, |x, (i, conv)| {
            let x = if i == 0 { x } else { relu(x) };
            let y = conv.forward_weighted(g, vec![x], &weights).swap_remove(0);
            mode.dropout(g, 0, &format!("link/{i}"), self.dropout, y)
        })
    }

    /// Scores of all entities as tails, `[queries, entities]`.
    pub(crate) fn scores(&self, entities: &Tensor<2>, queries: impl Iterator<Item = (u32, u32)>) -> Tensor<2> {
        let (heads, relations) = queries.unzip();
        let heads = entities.clone().select(0, ids(heads, &entities.device()));
        self.scorer.against_all(heads, ids(relations, &entities.device()), entities.clone())
    }

    /// Cross entropy between the softmax over all entities and the uniform distribution over the tails that a query (the facts
    /// of one head and relation) has, mean over queries:
    /// `log Σ_e exp s[e] - mean_t s[t] = (log Σ_e exp s[e] - s[t0]) + (s[t0] - mean_t s[t])` with any one tail `t0`.
    pub(crate) fn loss(&self, entities: &Tensor<2>, asked: &[&[Fact]]) -> Result<Tensor<1>> {
        let device = entities.device();
        let queries = || asked.iter().map(|q| (q[0].0.head, q[0].0.relation));
        let first: Vec<u32> = asked.iter().map(|q| q[0].0.tail).collect();
        let rows: Vec<u32> = (0..asked.len() as u32).collect();
        let of_first = cross_entropy_rows(self.scores(entities, queries()), &rows.into(), &first.clone().into(), LossReduction::Mean);
        // The second bracket is linear in the row of a tail, so a mean over rows replaces one over scores.
        let tails = asked.iter().enumerate().flat_map(|(i, q)| q.iter().map(move |f| (f.0.tail, i as u32)));
        let (src, dst) = tails.unzip();
        let tails = Relation::from_coo(entities.dims()[0], asked.len(), src, dst)?;
        let gap = entities.clone().select(0, ids(first, &device)) - copy_u_mean(&tails, entities.clone());
        let (heads, relations) = queries().unzip();
        let heads = entities.clone().select(0, ids(heads, &device));
        Ok(of_first + self.scorer.forward(heads, ids(relations, &device), gap).mean())
    }
}

fn ids(v: Vec<u32>, device: &Device) -> Tensor<1, Int> {
    let (n, v) = (v.len(), v.into_iter().map(i64::from).collect::<Vec<_>>());
    Tensor::from_data(TensorData::new(v, [n]), device)
}

/// The graph of train triples both ways, and what each message weighs.
pub(crate) struct Messages {
    pub(crate) graph: Graph,
    /// One over the in-degree in all relations, per edge type.
    full: Vec<Vec<f32>>,
    /// Relation of each train triple, and its edge there.
    place: Vec<(usize, usize)>,
}

impl Messages {
    pub(crate) fn new(kg: &KnowledgeGraph) -> Result<Self> {
        let graph = kg.train_graph()?;
        let mut degree = vec![0f32; kg.entities.len()];
        graph.relations().iter().flat_map(|r| r.dst()).for_each(|&v| degree[v as usize] += 1.0);
        let full = graph.relations().iter().map(|r| r.dst().iter().map(|&v| 1.0 / degree[v as usize]).collect()).collect();
        let mut seen = vec![0; kg.relations.len()];
        let place = |t: &Triple| {
            let r = t.relation as usize;
            seen[r] += 1;
            (r, seen[r] - 1)
        };
        Ok(Self { graph, full, place: kg.train.iter().map(place).collect() })
    }

    /// Weights per edge type, 0 both ways for the train triples `hidden`.
    fn weights(&self, hidden: &[u32], device: &Device) -> Vec<Option<Tensor<1>>> {
        let mut weights = self.full.clone();
        for &i in hidden {
            let (r, edge) = self.place[i as usize];
            weights[2 * r][edge] = 0.0;
            weights[2 * r + 1][edge] = 0.0;
        }
        let tensor = |w: Vec<f32>| {
            let n = w.len();
            Some(Tensor::from_data(TensorData::new(w, [n]), device))
        };
        weights.into_iter().map(tensor).collect()
    }
}
