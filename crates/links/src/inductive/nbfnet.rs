//! Implements NBFNet: representations of pairs (head, entity) by generalised Bellman-Ford.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::{Initializer, LayerNorm, LayerNormConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_graph::Relation;
use burn_gnn_models::{Mlp, MlpConfig, ModelError, select_rows};
use burn_gnn_ops::{BinaryOp, Reduce, copy_u_sum, gspmm, next_stream, normal_rows, u_mul_e_sum};

use crate::inductive::fact_graph::FactGraph;
use crate::inductive::query_paths::{DroppedFacts, HiddenFacts, PathStep, QueryPaths, TailQuery};

/// How the messages that an entity receives are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum PathAggregation {
    /// Sum.
    Sum,
    /// Mean, maximum, minimum and standard deviation, each also multiplied and divided by the logarithm of the number of
    /// messages (principal neighbourhood aggregation).
    Pna,
}

/// Describes an [`Nbfnet`].
#[derive(Config, Debug)]
pub struct NbfnetConfig {
    /// Number of relations without reciprocal ones.
    pub num_relations: usize,
    /// Size of states and relations.
    #[config(default = 32)]
    pub dim: usize,
    /// Number of steps: entities farther than this from the head are not reached.
    #[config(default = 4)]
    pub num_layers: usize,
    /// Combination of messages.
    #[config(default = "PathAggregation::Sum")]
    pub aggregation: PathAggregation,
    /// Whether relations are functions of the relation of the query: one linear map per layer instead of one table.
    #[config(default = true)]
    pub query_dependent: bool,
    /// Whether the score reads the relations of the edges that enter the candidate, which also describe a candidate that
    /// is not reached.
    #[config(default = true)]
    pub entering_relations: bool,
}

/// Neural Bellman-Ford network: scores the tails of `(h, r, ?)` by the paths from `h`.
///
/// ```text
/// x_0[h] = q_r,   x_0[v] = 0 for other entities
/// m_l[v] = aggregate over edges (u, r', v) of x_(l-1)[u] ∘ w_l[r, r'],  and x_0[v]
/// x_l[v] = x_(l-1)[v] + relu(norm(W_l [x_(l-1)[v], m_l[v]]))     for entities within l edges of h, otherwise 0
/// s(v)   = mlp([x_L[v], q_r, p[v]]),   p[v] = relu(norm(W_p Σ over edges (u, r', v) of w_p[r, r']))
/// ```
///
/// `w_l[r, ·]` are linear functions of `q_r`, or a table. Nothing is learned for an entity, so the model scores entities
/// that were not there in training. Differences from the paper: states of entities that are not reached are 0, so that
/// only pairs between a head and its candidates are computed (`s` is not changed by this); and `p` describes candidates
/// that no path reaches.
///
/// # Cost
/// For each query, the edges between entities that are within `l - 1` edges of the head and within `L - l` of a
/// candidate. Each of them takes `dim` multiplications and, until backward, `4 · dim` bytes.
///
/// # Source
/// Zhu, Zhang, Xhonneux, Tang, "Neural Bellman-Ford networks", NeurIPS 2021.
#[derive(Module, Debug)]
pub struct Nbfnet {
    /// `[2 R, dim]`.
    query: Param<Tensor<2>>,
    layers: Vec<NbfLayer>,
    entering: Option<NbfLayer>,
    score: Mlp,
    #[module(skip)]
    aggregation: PathAggregation,
    #[module(skip)]
    num_relations: usize,
}

/// One step, or the description of candidates.
#[derive(Module, Debug)]
struct NbfLayer {
    by_query: Option<Mlp>,
    table: Option<Param<Tensor<2>>>,
    linear: Mlp,
    norm: LayerNorm,
}

impl NbfnetConfig {
    /// Initializes the parameters.
    ///
    /// # Errors
    /// A size is 0, or there are more than 250 layers.
    pub fn try_init(&self, device: &Device) -> Result<Nbfnet, ModelError> {
        let sizes = [("num_relations", self.num_relations), ("dim", self.dim)];
        ModelError::check_sizes(&sizes, 0.0)?;
        let layers = self.num_layers;
        ModelError::check_range("num_layers", "1..=250", layers, (1..=250).contains(&layers))?;
        let (d, relations) = (self.dim, 2 * self.num_relations);
        let width = match self.aggregation {
            PathAggregation::Sum => d,
            PathAggregation::Pna => 12 * d,
        };
        let layer = |input: usize| -> Result<NbfLayer, ModelError> {
            let by_query = self.query_dependent.then(|| linear(d, relations * d, device));
            let table = (!self.query_dependent).then(|| table([relations, d], device));
            Ok(NbfLayer {
                by_query: by_query.transpose()?,
                table,
                linear: linear(input, d, device)?,
                norm: LayerNormConfig::new(d).init(device),
            })
        };
        let read = d * (2 + usize::from(self.entering_relations));
        Ok(Nbfnet {
            query: table([relations, d], device),
            layers: (0..self.num_layers).map(|_| layer(d + width)).collect::<Result<_, _>>()?,
            entering: self.entering_relations.then(|| layer(d)).transpose()?,
            score: MlpConfig::new(vec![read, read, 1]).try_init(device)?,
            aggregation: self.aggregation,
            num_relations: self.num_relations,
        })
    }

    /// As [`try_init`](Self::try_init), but panics.
    ///
    /// # Panics
    /// [`try_init`](Self::try_init) returns an error.
    #[track_caller]
    pub fn init(&self, device: &Device) -> Nbfnet {
        match self.try_init(device) {
            Ok(model) => model,
            Err(e) => panic!("{e}"),
        }
    }
}

/// A linear layer with torch's initial values, which do not shrink with the output size as Glorot's do.
fn linear(input: usize, output: usize, device: &Device) -> Result<Mlp, ModelError> {
    let bound = 1.0 / (input as f64).sqrt();
    MlpConfig::new(vec![input, output])
        .with_initializer(Initializer::Uniform { min: -bound, max: bound })
        .try_init(device)
}

/// Rows of standard normal values.
fn table(shape: [usize; 2], device: &Device) -> Param<Tensor<2>> {
    let rows = normal_rows(next_stream(device), None, shape[0], shape[1], 0.0, 1.0);
    Param::from_tensor(Tensor::from_data(rows, device))
}

impl NbfLayer {
    /// Relations as rows `query · 2 R + relation`, or `relation` if there is one table for all queries.
    fn relations(&self, queries: Tensor<2>, relations: usize) -> Tensor<2> {
        match (&self.by_query, &self.table) {
            (Some(map), _) => {
                let [n, d] = queries.dims();
                map.forward(queries).reshape([n * relations, d])
            }
            (None, Some(table)) => table.val(),
            (None, None) => unreachable!("relations are functions of the query or a table"),
        }
    }

    /// Row in [`relations`](Self::relations) of each type.
    fn rows(&self, types: &[u32], relations: usize) -> Vec<u32> {
        if self.by_query.is_some() {
            types.to_vec()
        } else {
            types.iter().map(|t| t % relations as u32).collect()
        }
    }

    fn combine(&self, x: Tensor<2>) -> Tensor<2> {
        if x.dims()[0] == 0 {
            return self.linear.forward(x);
        }
        relu(self.norm.forward(self.linear.forward(x)))
    }
}

impl Nbfnet {
    /// Number of relations without reciprocal ones.
    pub fn num_relations(&self) -> usize {
        self.num_relations
    }

    /// Scores of the candidates of all queries, concatenated in the order of the queries.
    ///
    /// # Shapes
    /// `[total number of candidates]`.
    ///
    /// # Errors
    /// The graph has another number of relations than the model, an entity or relation of a query is out of range, or
    /// the batch has too many edges.
    pub fn score(
        &self,
        graph: &FactGraph,
        queries: &[TailQuery],
        hidden: HiddenFacts,
    ) -> Result<Tensor<1>, ModelError> {
        self.score_with(graph, queries, hidden, None)
    }

    /// As [`score`](Self::score), without facts that are dropped at random.
    pub(super) fn score_with(
        &self,
        graph: &FactGraph,
        queries: &[TailQuery],
        hidden: HiddenFacts,
        dropped: Option<DroppedFacts>,
    ) -> Result<Tensor<1>, ModelError> {
        let relations = graph.num_relations();
        ModelError::check_range(
            "graph.num_relations",
            &self.num_relations.to_string(),
            relations,
            relations == self.num_relations,
        )?;
        let entities = graph.num_entities();
        for q in queries {
            let in_range = |arg: &str, id: u32, count: usize| match (id as usize) < count {
                true => Ok(()),
                false => Err(ModelError::out_of_range(arg, format!("0..{count}"), id)),
            };
            in_range("relation of a query", q.relation, 2 * relations)?;
            in_range("entity of a query", q.head, entities)?;
            q.candidates.iter().try_for_each(|&v| in_range("entity of a query", v, entities))?;
        }
        let paths = QueryPaths::new(graph, queries, hidden, dropped, self.layers.len())?;
        Ok(self.forward(&paths, queries))
    }

    fn forward(&self, paths: &QueryPaths, queries: &[TailQuery]) -> Tensor<1> {
        let relations = 2 * self.num_relations;
        let of_queries: Vec<u32> = queries.iter().map(|q| q.relation).collect();
        let query = select_rows(self.query.val(), &of_queries);
        let mut x = copy_u_sum(&paths.heads, query.clone());
        // Either every step has pairs or none has: a pair is on a path from a head to a candidate.
        let steps = if x.dims()[0] == 0 { &[][..] } else { &paths.steps[..] };
        for (layer, step) in self.layers.iter().zip(steps) {
            let rows = layer.rows(&step.types, relations);
            let edges = select_rows(layer.relations(query.clone(), relations), rows);
            let kept = copy_u_sum(&step.kept, x.clone());
            let start = copy_u_sum(&step.heads, query.clone());
            let messages = self.messages(step, x, edges, start);
            x = kept.clone() + layer.combine(Tensor::cat(vec![kept, messages], 1));
        }
        let mut read =
            vec![copy_u_sum(&paths.reached, x), select_rows(query.clone(), &paths.query_of)];
        if let Some(layer) = &self.entering {
            let table = layer.relations(query, relations);
            let sums = if layer.by_query.is_some() {
                copy_u_sum(&paths.entering, table)
            } else {
                burn_gnn_ops::copy_e_sum(
                    &paths.entering,
                    select_rows(table, layer.rows(paths.entering.src(), relations)),
                )
            };
            read.push(layer.combine(sums));
        }
        let read = Tensor::cat(read, 1);
        let rows = read.dims()[0];
        self.score.forward(read).reshape([rows])
    }

    /// Aggregates `x[u] ∘ edges[e]` and the boundary condition `start`.
    fn messages(
        &self,
        step: &PathStep,
        x: Tensor<2>,
        edges: Tensor<2>,
        start: Tensor<2>,
    ) -> Tensor<2> {
        let r = &step.edges;
        if self.aggregation == PathAggregation::Sum {
            let sum: Tensor<2> = u_mul_e_sum(r, x, edges);
            return sum + start;
        }
        let of = |reduce, x: Tensor<2>, e: Tensor<2>| -> Tensor<2> {
            gspmm(r, BinaryOp::Mul, reduce, x, e)
        };
        let counts = counts(r, &x);
        let sum = of(Reduce::Sum, x.clone(), edges.clone());
        let squares = of(Reduce::Sum, x.clone() * x.clone(), edges.clone() * edges.clone());
        let largest = of(Reduce::Max, x.clone(), edges.clone()).max_pair(start.clone());
        let smallest = of(Reduce::Min, x, edges).min_pair(start.clone());
        let mean = (sum + start.clone()) / counts.clone();
        let square = (squares + start.clone() * start) / counts.clone();
        let deviation = (square - mean.clone() * mean.clone()).clamp_min(1e-6).sqrt();
        let all = Tensor::cat(vec![mean, largest, smallest, deviation], 1);
        // With the start, an entity has two messages on a path, whose logarithm is about 1.
        let scale = counts.log() + 0.5;
        Tensor::cat(vec![all.clone(), all.clone() * scale.clone(), all / scale], 1)
    }
}

/// Number of in-edges plus one, `[num_dst, 1]`.
fn counts(r: &Relation, like: &Tensor<2>) -> Tensor<2> {
    let counts: Vec<f32> = r.in_degrees().map(|d| d as f32 + 1.0).collect();
    let rows = counts.len();
    let device = like.device().without_autodiff();
    Tensor::from_data(TensorData::new(counts, [rows, 1]), (&device, like.dtype()))
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::nn::Linear;
    use burn::tensor::DType;
    use burn_gnn_data::Triple;
    use burn_gnn_models::seeded;

    use super::*;

    fn values<const D: usize>(x: &Tensor<D>) -> Vec<f64> {
        x.clone().into_data_dtype(DType::F64).iter::<f64>().collect()
    }

    fn apply(layer: &Linear, x: &[f64]) -> Vec<f64> {
        let [inputs, outputs] = layer.weight.val().dims();
        assert_eq!(inputs, x.len());
        let (w, b) = (values(&layer.weight.val()), layer.bias.as_ref().map(|b| values(&b.val())));
        let at = |o: usize| -> f64 { (0..inputs).map(|i| x[i] * w[i * outputs + o]).sum() };
        (0..outputs).map(|o| at(o) + b.as_ref().map_or(0.0, |b| b[o])).collect()
    }

    fn perceptron(mlp: &Mlp, x: &[f64]) -> Vec<f64> {
        let mut x = x.to_vec();
        for (i, layer) in mlp.layers.iter().enumerate() {
            if i > 0 {
                x.iter_mut().for_each(|x| *x = x.max(0.0));
            }
            x = apply(layer, &x);
        }
        x
    }

    /// `relu(norm(W x))` with the initial scale and shift of the norm.
    fn combine(layer: &NbfLayer, x: &[f64]) -> Vec<f64> {
        let y = perceptron(&layer.linear, x);
        let n = y.len() as f64;
        let mean = y.iter().sum::<f64>() / n;
        let variance = y.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / n;
        y.iter().map(|y| ((y - mean) / (variance + 1e-5).sqrt()).max(0.0)).collect()
    }

    fn relations(layer: &NbfLayer, q: &[f64]) -> Vec<f64> {
        match (&layer.by_query, &layer.table) {
            (Some(map), _) => perceptron(map, q),
            (None, Some(table)) => values(&table.val()),
            (None, None) => panic!("no relations"),
        }
    }

    /// Scores of all entities by the definition, with a state for each of them; sums only.
    fn reference(
        model: &Nbfnet,
        graph: &FactGraph,
        query: &TailQuery,
        hidden: impl Fn(u32, u32, u32) -> bool,
    ) -> Vec<f64> {
        let [_, d] = model.query.val().dims();
        let (n, head) = (graph.num_entities(), query.head as usize);
        let q = values(&model.query.val())[query.relation as usize * d..][..d].to_vec();
        let edges: Vec<(u32, u32, u32)> = (0..n as u32)
            .flat_map(|u| graph.edges_of(u).iter().map(move |&(v, r)| (u, r, v)))
            .filter(|&(u, r, v)| !hidden(u, r, v))
            .collect();
        let mut x = vec![vec![0.0; d]; n];
        x[head].clone_from(&q);
        let mut reached = vec![false; n];
        reached[head] = true;
        for layer in &model.layers {
            let w = relations(layer, &q);
            let mut messages = vec![vec![0.0; d]; n];
            messages[head].clone_from(&q);
            let mut now = reached.clone();
            for &(u, r, v) in &edges {
                now[v as usize] |= reached[u as usize];
                for i in 0..d {
                    messages[v as usize][i] += x[u as usize][i] * w[r as usize * d + i];
                }
            }
            reached = now;
            for v in (0..n).filter(|&v| reached[v]) {
                let y = combine(layer, &[&x[v][..], &messages[v][..]].concat());
                x[v].iter_mut().zip(y).for_each(|(x, y)| *x += y);
            }
        }
        let entering = model.entering.as_ref().map(|layer| {
            let w = relations(layer, &q);
            let mut sums = vec![vec![0.0; d]; n];
            for &(_, r, v) in &edges {
                for i in 0..d {
                    sums[v as usize][i] += w[r as usize * d + i];
                }
            }
            sums.iter().map(|sum| combine(layer, sum)).collect::<Vec<_>>()
        });
        let score = |v: usize| {
            let p = entering.as_ref().map_or(&[][..], |p| &p[v]);
            perceptron(&model.score, &[&x[v][..], &q[..], p].concat())[0]
        };
        (0..n).map(score).collect()
    }

    #[test]
    fn scores_equal_those_of_a_computation_over_all_entities() {
        // A ring of eight entities with chords, one entity that is not reached, parallel facts and a loop.
        let mut facts: Vec<Triple> =
            (0..8).map(|i| Triple { head: i, relation: i % 3, tail: (i + 1) % 8 }).collect();
        facts.extend([(0, 2, 4), (0, 1, 4), (6, 0, 6)].map(|(head, relation, tail)| Triple {
            head,
            relation,
            tail,
        }));
        let graph = FactGraph::new(9, 3, &facts).unwrap();
        let queries = [
            TailQuery { head: 0, relation: 0, candidates: vec![1, 4, 8, 2, 4], hidden: vec![1] },
            TailQuery { head: 4, relation: 4, candidates: vec![0, 4, 6], hidden: vec![0] },
        ];
        for (query_dependent, entering, which) in [
            (true, true, HiddenFacts::AllBetween),
            (false, true, HiddenFacts::Answer),
            (true, false, HiddenFacts::Answer),
        ] {
            let config = NbfnetConfig::new(3)
                .with_dim(4)
                .with_num_layers(3)
                .with_query_dependent(query_dependent)
                .with_entering_relations(entering);
            let model = seeded(1, || config.init(&Device::flex()));
            let found = values(&model.score(&graph, &queries, which).unwrap());
            let mut expected = vec![];
            for q in &queries {
                let reciprocal = graph.reciprocal(q.relation);
                let all = which == HiddenFacts::AllBetween;
                let hidden = |u: u32, r: u32, v: u32| {
                    (u == q.head && q.hidden.contains(&v) && (all || r == q.relation))
                        || (v == q.head && q.hidden.contains(&u) && (all || r == reciprocal))
                };
                let scores = reference(&model, &graph, q, hidden);
                expected.extend(q.candidates.iter().map(|&v| scores[v as usize]));
            }
            for (found, expected) in found.iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-4, "{found} for {expected}");
            }
            assert_eq!(found.len(), 8);
        }
    }

    /// Without candidates, without paths to them, with a path of no edge, and among queries with paths.
    #[test]
    fn queries_without_paths_have_gradients() {
        let facts = [(0, 0, 1), (2, 0, 3), (4, 0, 1)];
        let facts = facts.map(|(head, relation, tail)| Triple { head, relation, tail });
        let graph = FactGraph::new(6, 1, &facts).unwrap();
        let query = |head, candidates: &[u32], hidden: &[u32]| TailQuery {
            head,
            relation: 0,
            candidates: candidates.into(),
            hidden: hidden.into(),
        };
        let far = query(0, &[2, 3], &[]);
        for (name, queries) in [
            ("far", vec![far.clone()]),
            ("a head without facts, and itself as candidate", vec![query(5, &[5], &[])]),
            ("no fact that may be read", vec![query(2, &[2, 3], &[3])]),
            ("some without paths", vec![far.clone(), query(5, &[5, 2], &[]), query(0, &[4], &[])]),
            ("some without candidates", vec![query(0, &[], &[]), far.clone()]),
            ("no candidates", vec![query(0, &[], &[])]),
            ("no queries", vec![]),
        ] {
            for aggregation in [PathAggregation::Sum, PathAggregation::Pna] {
                for (query_dependent, entering) in [(true, true), (false, true), (true, false)] {
                    let name = format!("{name}: {aggregation:?} {query_dependent} {entering}");
                    let config = NbfnetConfig::new(1)
                        .with_dim(4)
                        .with_num_layers(3)
                        .with_aggregation(aggregation)
                        .with_query_dependent(query_dependent)
                        .with_entering_relations(entering);
                    let model = seeded(2, || config.init(&Device::flex().autodiff()));
                    let scores = model.score(&graph, &queries, HiddenFacts::Answer).unwrap();
                    let count: usize = queries.iter().map(|q| q.candidates.len()).sum();
                    assert_eq!(scores.dims(), [count], "{name}");
                    let plain = model.valid();
                    let alone: Vec<f64> = queries
                        .iter()
                        .flat_map(|q| {
                            let q = std::slice::from_ref(q);
                            values(&plain.score(&graph, q, HiddenFacts::Answer).unwrap())
                        })
                        .collect();
                    for (found, expected) in values(&scores.clone().inner()).iter().zip(alone) {
                        assert!((found - expected).abs() < 1e-5, "{name}: {found} for {expected}");
                    }
                    let grads = scores.sum().backward();
                    let grad = model.query.val().grad(&grads);
                    let moved = grad.is_some_and(|g| values(&g).iter().any(|&g| g != 0.0));
                    assert_eq!(moved, count > 0, "{name}");
                }
            }
        }
    }

    #[test]
    fn unknown_numbers_are_errors() {
        let graph = FactGraph::new(2, 1, &[Triple { head: 0, relation: 0, tail: 1 }]).unwrap();
        let model = NbfnetConfig::new(1).with_dim(4).init(&Device::flex());
        let query = TailQuery { head: 0, relation: 0, candidates: vec![1], hidden: vec![] };
        let wrong = [
            TailQuery { head: 2, ..query.clone() },
            TailQuery { relation: 2, ..query.clone() },
            TailQuery { candidates: vec![1, 2], ..query.clone() },
        ];
        for q in wrong {
            let e = model.score(&graph, &[q], HiddenFacts::Answer).unwrap_err();
            assert!(matches!(e, ModelError::OutOfRange { .. }), "{e}");
        }
        let other = NbfnetConfig::new(2).with_dim(4).init(&Device::flex());
        let e = other.score(&graph, &[query], HiddenFacts::Answer).unwrap_err().to_string();
        assert!(e.contains("graph.num_relations"), "{e}");
        assert!(NbfnetConfig::new(1).with_num_layers(0).try_init(&Device::flex()).is_err());
    }
}
