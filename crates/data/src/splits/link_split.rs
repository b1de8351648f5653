//! Splits edges into training, validation and test sets for link prediction, as PyG does.

use burn_gnn_files::DataError;
use burn_gnn_graph::{EdgeName, EdgeType, Graph, Relabel, Relation, Stream};
use burn_gnn_sampling::{NegativeSampler, SampleKey};

use crate::files::duplicate;
use crate::splits::node_split::{Share, shuffled, wrong};

/// How edges are shared out for link prediction, with the rules of PyG's transform of this name.
///
/// The pairs of nodes that edges of each type named join are put in a random order (a function of seed, type and the
/// pair's first edge id) and cut into training, validation and test pairs. What is to be predicted does not carry
/// messages:
///
/// | part | edges that carry messages | edges to predict |
/// | --- | --- | --- |
/// | train | training edges (but for the disjoint share) | the same, or the disjoint share alone |
/// | validation | all training edges | validation edges |
/// | test | training and validation edges | test edges |
///
/// Parallel edges stay together: all edges of a pair fall into the part of the pair, where each is predicted, so counts
/// and ratios are those of pairs. Edges of a reverse type follow those of their type, so that no part sees an edge from
/// its other endpoint; edges of types that are not named stay in every part. In an undirected relation an edge and its
/// reverse are one, which falls into one part and is predicted once, from the endpoint with the smaller id. Negatives
/// are pairs without an edge in the **whole** relation, never self loops, all different over all three parts; of an
/// undirected relation pairs without direction, from the smaller id to the larger.
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_data::RandomLinkSplit;
/// let likes: Vec<u32> = (0..10).collect();
/// let g = Graph::builder()
///     .edges(("user", "likes", "item"), likes.clone(), likes.clone())
///     .edges(("item", "liked by", "user"), likes.clone(), likes)
///     .build()?;
/// let how = RandomLinkSplit::new().with_val(2).with_test(3);
/// let split = how.with_edges(("user", "likes", "item")).with_reverse(("item", "liked by", "user")).split(&g, 7)?;
/// let test = &split.test.links[0];
/// assert_eq!((test.edge_ids.len(), test.negative_src.len()), (3, 3));
/// assert_eq!((split.train.graph.num_edges("liked by")?, split.test.graph.num_edges("likes")?), (5, 7));
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RandomLinkSplit {
    /// Validation edges, counted as pairs of nodes; a tenth by default.
    pub val: Share,
    /// Test edges, counted as pairs of nodes; a fifth by default.
    pub test: Share,
    /// Whether each edge is stored in both directions in one relation.
    pub is_undirected: bool,
    /// Whether there are negatives to train with, too.
    pub add_negative_train_samples: bool,
    /// Negatives for each edge to predict; 1 by default, rounded down over a part.
    pub neg_sampling_ratio: f64,
    /// Share of the training edges, counted as pairs of nodes, that is predicted in training and carries no messages
    /// there; 0 by default: all are predicted, and carry messages.
    pub disjoint_train: Share,
    /// The types to split, each with its reverse type; empty for the only type of a graph.
    pub edge_types: Vec<(EdgeName, Option<EdgeName>)>,
}

impl Default for RandomLinkSplit {
    fn default() -> Self {
        Self {
            val: Share::Ratio(0.1),
            test: Share::Ratio(0.2),
            is_undirected: false,
            add_negative_train_samples: true,
            neg_sampling_ratio: 1.0,
            disjoint_train: Share::Ratio(0.0),
            edge_types: vec![],
        }
    }
}

/// A graph's edges shared out.
#[derive(Clone, Debug)]
pub struct LinkSplit {
    /// Training edges.
    pub train: LinkPart,
    /// Validation edges.
    pub val: LinkPart,
    /// Test edges.
    pub test: LinkPart,
}

/// One part of a split.
#[derive(Clone, Debug)]
pub struct LinkPart {
    /// All nodes, and the edges that carry messages, in their order, with their features.
    pub graph: Graph,
    /// What is to be predicted, for each type that was split, in their order.
    pub links: Vec<Links>,
}

/// Pairs of one edge type to predict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    /// The type.
    pub etype: EdgeType,
    /// Sources of the edges.
    pub src: Vec<u32>,
    /// Destinations of the edges.
    pub dst: Vec<u32>,
    /// Their ids in the graph that was split, ascending.
    pub edge_ids: Vec<u32>,
    /// Sources of the pairs without an edge.
    pub negative_src: Vec<u32>,
    /// Destinations of the pairs without an edge.
    pub negative_dst: Vec<u32>,
}

impl Links {
    /// Sources, destinations and labels of all pairs: edges with 1, then negatives with 0 (PyG: `edge_label_index`,
    /// `edge_label`).
    pub fn labelled(&self) -> (Vec<u32>, Vec<u32>, Vec<f32>) {
        let joined = |a: &[u32], b: &[u32]| [a, b].concat();
        let mut labels = vec![1.0; self.src.len()];
        labels.resize(self.src.len() + self.negative_src.len(), 0.0);
        (joined(&self.src, &self.negative_src), joined(&self.dst, &self.negative_dst), labels)
    }
}

/// Edge ids of one type, part by part, and its negatives.
struct Cut {
    t: usize,
    reverse: Option<usize>,
    /// Whether an edge stands for its reverse, too.
    paired: bool,
    parts: [Vec<u32>; 3],
    /// Of the training edges those that are predicted only; empty where all are.
    disjoint: Vec<u32>,
    negatives: [(Vec<u32>, Vec<u32>); 3],
}

/// Sources and destinations.
type Pairs = (Vec<u32>, Vec<u32>);

impl RandomLinkSplit {
    /// PyG's defaults: a tenth validates, a fifth tests, one negative for each edge.
    pub fn new() -> Self {
        Self::default()
    }
    /// With another number (`500`) or share (`0.1`) of validation edges.
    #[must_use]
    pub fn with_val(mut self, val: impl Into<Share>) -> Self {
        self.val = val.into();
        self
    }
    /// With another number or share of test edges.
    #[must_use]
    pub fn with_test(mut self, test: impl Into<Share>) -> Self {
        self.test = test.into();
        self
    }
    /// For relations that store each edge in both directions.
    #[must_use]
    pub fn undirected(mut self) -> Self {
        self.is_undirected = true;
        self
    }
    /// Without negatives in training; those of validation and test stay.
    #[must_use]
    pub fn without_negative_train_samples(mut self) -> Self {
        self.add_negative_train_samples = false;
        self
    }
    /// With another number of negatives for each edge.
    #[must_use]
    pub fn with_neg_sampling_ratio(mut self, ratio: f64) -> Self {
        self.neg_sampling_ratio = ratio;
        self
    }
    /// With a number or share of training edges that are predicted and carry no messages.
    #[must_use]
    pub fn with_disjoint_train(mut self, share: impl Into<Share>) -> Self {
        self.disjoint_train = share.into();
        self
    }
    /// Splits the edges of one more type, named by its triple or, where that is unique, by the relation alone.
    #[must_use]
    pub fn with_edges(mut self, etype: impl Into<EdgeName>) -> Self {
        self.edge_types.push((etype.into(), None));
        self
    }
    /// Says which type holds the reverses of the edges of the type named last.
    #[must_use]
    pub fn with_reverse(mut self, etype: impl Into<EdgeName>) -> Self {
        if let Some(last) = self.edge_types.last_mut() {
            last.1 = Some(etype.into());
        }
        self
    }

    /// Shares out the edges of a graph. The same seed gives the same parts. `O(E log E)` per type.
    ///
    /// # Errors
    /// Unknown types, a type named twice; [`DataError::Split`] for shares that leave no training edge, a ratio outside
    /// its range, a relation declared undirected and has an edge without its reverse, a reverse type whose
    /// edges are not the reverses, several types and none named, more negatives than there are pairs without an edge.
    pub fn split(&self, graph: &Graph, seed: u64) -> Result<LinkSplit, DataError> {
        let cuts = self
            .types(graph)?
            .into_iter()
            .map(|(t, reverse)| self.cut(graph, t, reverse, seed))
            .collect::<Result<Vec<_>, _>>()?;
        let part = |which: usize| -> Result<LinkPart, DataError> {
            // Ids of an undirected relation are those of edges from the smaller endpoint; their reverses are added.
            let kept = |c: &Cut| match which {
                0 => c.parts[0]
                    .iter()
                    .copied()
                    .filter(|e| c.disjoint.binary_search(e).is_err())
                    .collect(),
                1 => c.parts[0].clone(),
                _ => {
                    let mut both = [&c.parts[0][..], &c.parts[1]].concat();
                    both.sort_unstable();
                    both
                }
            };
            let graph_of_part = messages(graph, &cuts, kept)?;
            let links = cuts.iter().map(|c| {
                let edge_ids = if which == 0 && !c.disjoint.is_empty() {
                    c.disjoint.clone()
                } else {
                    c.parts[which].clone()
                };
                let r = &graph.relations()[c.t];
                let endpoints = |of: &[u32]| edge_ids.iter().map(|&e| of[e as usize]).collect();
                let (negative_src, negative_dst) = c.negatives[which].clone();
                let etype = graph.schema().etypes()[c.t].clone();
                Links {
                    etype,
                    src: endpoints(r.src()),
                    dst: endpoints(r.dst()),
                    negative_src,
                    negative_dst,
                    edge_ids: edge_ids.clone(),
                }
            });
            Ok(LinkPart { graph: graph_of_part, links: links.collect() })
        };
        Ok(LinkSplit { train: part(0)?, val: part(1)?, test: part(2)? })
    }

    /// Numbers of the types to split and of their reverses.
    fn types(&self, graph: &Graph) -> Result<Vec<(usize, Option<usize>)>, DataError> {
        if self.edge_types.is_empty() {
            return match graph.relations().len() {
                1 => Ok(vec![(0, None)]),
                n => Err(wrong(
                    "edge_types",
                    format!("the types to split, as the graph has {n}, got none"),
                )),
            };
        }
        let mut seen = vec![false; graph.relations().len()];
        let mut number = |etype: &EdgeName| -> Result<usize, DataError> {
            let t = graph.schema().etype(etype)?;
            if std::mem::replace(&mut seen[t], true) {
                return Err(duplicate("edge type", etype.to_string()));
            }
            Ok(t)
        };
        self.edge_types
            .iter()
            .map(|(etype, reverse)| {
                Ok((number(etype)?, reverse.as_ref().map(&mut number).transpose()?))
            })
            .collect()
    }

    fn cut(
        &self,
        graph: &Graph,
        t: usize,
        reverse: Option<usize>,
        seed: u64,
    ) -> Result<Cut, DataError> {
        let (r, name) = (&graph.relations()[t], &graph.schema().etypes()[t]);
        let (s, d) = graph.schema().endpoints(t);
        let paired = self.is_undirected && reverse.is_none();
        if paired && s != d {
            return Err(wrong(
                "is_undirected",
                format!("the reverse type of `{name}`, which joins two node types, got none"),
            ));
        }
        if paired {
            check_symmetric(r, name)?;
        }
        if let Some(back) = reverse {
            let other = &graph.relations()[back];
            if graph.schema().endpoints(back) != (d, s) {
                let found = &graph.schema().etypes()[back];
                return Err(wrong(
                    "edge_types",
                    format!(
                        "a reverse type of `{name}` from its destinations to its sources, got `{found}`"
                    ),
                ));
            }
            if pairs(r.src(), r.dst(), false) != pairs(other.dst(), other.src(), false) {
                let found = &graph.schema().etypes()[back];
                return Err(wrong(
                    "edge_types",
                    format!(
                        "in `{found}` the reverse of every edge of `{name}` and no others, got other edges"
                    ),
                ));
            }
        }
        let stands = |&e: &u32| !paired || r.src()[e as usize] <= r.dst()[e as usize];
        // Types with equal numbers of edges are split differently.
        let seed =
            seed ^ u64::from(Stream::new(seed, &format!("link split/{name}"), 0).words(0, 0)[0]);
        let first = first_of_pairs(r);
        let is_first = |e: &u32| first[*e as usize] == *e;
        let edges = || (0..r.num_edges() as u32).filter(stands);
        let pairs = shuffled(edges().filter(is_first), seed);
        let n = pairs.len();
        let (val, test) = (self.val.of("val", n)?, self.test.of("test", n)?);
        let train = n.checked_sub(val.saturating_add(test)).filter(|&train| train > 0);
        let train = train.ok_or_else(|| {
            wrong(
                "val and test",
                format!(
                    "fewer than the {n} pairs with an edge of `{name}` together, got {}",
                    val.saturating_add(test)
                ),
            )
        })?;
        let disjoint = self.disjoint_train.of("disjoint_train", train)?;
        if disjoint == train {
            return Err(wrong(
                "disjoint_train",
                format!("fewer than the {train} training pairs of `{name}`, got {disjoint}"),
            ));
        }
        // Each edge goes where the first one of its pair goes.
        const DISJOINT: u8 = 3;
        let mut part_of = vec![0u8; r.num_edges()];
        pairs[..disjoint].iter().for_each(|&e| part_of[e as usize] = DISJOINT);
        pairs[train..train + val].iter().for_each(|&e| part_of[e as usize] = 1);
        pairs[train + val..].iter().for_each(|&e| part_of[e as usize] = 2);
        let (mut parts, mut disjoint) = ([vec![], vec![], vec![]], vec![]);
        for e in edges() {
            let part = part_of[first[e as usize] as usize];
            if part == DISJOINT {
                disjoint.push(e);
            }
            parts[usize::from(part % DISJOINT)].push(e);
        }
        let predicted = if disjoint.is_empty() { &parts[0] } else { &disjoint };
        let predicted = [predicted, &parts[1], &parts[2]].map(Vec::len);
        let negatives = self.negatives(graph, t, paired, predicted, seed)?;
        Ok(Cut { t, reverse, paired, parts, disjoint, negatives })
    }

    fn negatives(
        &self,
        graph: &Graph,
        t: usize,
        paired: bool,
        predicted: [usize; 3],
        seed: u64,
    ) -> Result<[Pairs; 3], DataError> {
        let ratio = self.neg_sampling_ratio;
        if !(0.0..=1e9).contains(&ratio) {
            return Err(wrong(
                "neg_sampling_ratio",
                format!("a number that is not negative, got {ratio}"),
            ));
        }
        let of = |n: usize| (n as f64 * ratio) as usize;
        let [train, val, test] = predicted;
        let counts =
            [if self.add_negative_train_samples { of(train) } else { 0 }, of(val), of(test)];
        let total: usize = counts.iter().sum();
        if total == 0 {
            return Ok(Default::default());
        }
        let (s, d) = graph.schema().endpoints(t);
        let sampler = NegativeSampler::new(graph, t)?.with_unique(true);
        let sampler = if s == d { sampler.without_self_loops()? } else { sampler };
        let sampler = if paired { sampler.undirected()? } else { sampler };
        let drawn = sampler.global(total, SampleKey::new(seed))?;
        let enough = drawn.is_strict.iter().filter(|&&s| s).count();
        if enough < total {
            let name = &graph.schema().etypes()[t];
            return Err(wrong(
                "neg_sampling_ratio",
                format!("at most {enough} pairs without an edge of `{name}`, got {total}"),
            ));
        }
        let mut from = 0;
        Ok(counts.map(|n| {
            let range = from..from + n;
            from += n;
            (drawn.src[range.clone()].to_vec(), drawn.dst[range].to_vec())
        }))
    }
}

/// Of each edge the first one from the same source to the same destination.
fn first_of_pairs(r: &Relation) -> Vec<u32> {
    let pair = |e: &u32| (r.src()[*e as usize], r.dst()[*e as usize]);
    let mut order: Vec<u32> = (0..r.num_edges() as u32).collect();
    order.sort_unstable_by_key(|e| (pair(e), *e));
    let mut first = vec![0; order.len()];
    for parallel in order.chunk_by(|a, b| pair(a) == pair(b)) {
        parallel.iter().for_each(|&e| first[e as usize] = parallel[0]);
    }
    first
}

/// The pairs of nodes that edges join, sorted.
fn pairs(u: &[u32], v: &[u32], without_loops: bool) -> Vec<(u32, u32)> {
    let mut all: Vec<(u32, u32)> = u
        .iter()
        .copied()
        .zip(v.iter().copied())
        .filter(|(u, v)| !without_loops || u != v)
        .collect();
    all.sort_unstable();
    all
}

/// Refuses a relation that does not hold the reverse of every edge, as often as the edge.
fn check_symmetric(r: &Relation, name: &EdgeType) -> Result<(), DataError> {
    let (there, back) = (pairs(r.src(), r.dst(), true), pairs(r.dst(), r.src(), true));
    match there.iter().zip(&back).find(|(a, b)| a != b) {
        None => Ok(()),
        Some((a, b)) => {
            let (u, v) = a.min(b);
            Err(wrong(
                "is_undirected",
                format!(
                    "the reverse of every edge of `{name}`, got one between {u} and {v} in one direction only"
                ),
            ))
        }
    }
}

/// The graph with the edges `kept` of each type that is split, and of its reverse.
fn messages(
    graph: &Graph,
    cuts: &[Cut],
    kept: impl Fn(&Cut) -> Vec<u32>,
) -> Result<Graph, DataError> {
    let edges =
        graph.relations().iter().enumerate().map(|(t, r)| match cuts.iter().find(|c| c.t == t) {
            Some(c) => (t, kept(c)),
            None => (t, (0..r.num_edges() as u32).collect()),
        });
    let mut out = graph.edge_subgraph(edges, Relabel::No)?.graph;
    for c in cuts {
        if c.paired {
            out = out.add_reverse_edges(c.t)?;
        } else if let Some(back) = c.reverse {
            // Their features are those of the edges.
            let mut both = out.with_relation(back, out.relations()[c.t].reverse());
            both.edges_mut(back)?.copy_rows(&out.edge_frames()[c.t])?;
            out = both;
        }
    }
    Ok(out)
}
