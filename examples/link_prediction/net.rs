//! The model, and the messages it passes.

use anyhow::Result;
use burn::module::Module;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_gnn::graph::{Graph, KnowledgeGraph, Triple};
use burn_gnn::models::{
    LinkScore, LinkScorer, LinkScorerConfig, Mode, NodeEmbedding, RelGraphConv, RelGraphConvConfig, RelNorm, RelWeights,
};

use crate::fit::Settings;

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
        let (heads, relations): (Vec<i64>, Vec<i64>) = queries.map(|(h, r)| (i64::from(h), i64::from(r))).unzip();
        let ids = |v: Vec<i64>| {
            let n = v.len();
            Tensor::<1, Int>::from_data(TensorData::new(v, [n]), &entities.device())
        };
        self.scorer.against_all(entities.clone().select(0, ids(heads)), ids(relations), entities.clone())
    }
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
