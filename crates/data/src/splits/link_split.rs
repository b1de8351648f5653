//! Splits edges into training, validation and test edges for link prediction, as PyG's `RandomLinkSplit` does.

use burn_gnn_files::DataError;
use burn_gnn_graph::{EdgeName, EdgeType, Graph, Relation, Stream};

use crate::files::duplicate;
use crate::splits::link_parts::{
    LinkPart, LinkSplit, Pairs, TypeSplit, check_symmetric, draw_negatives, first_of_pairs,
    message_graph, pairs,
};
use crate::splits::node_split::{Share, shuffled, wrong};
use crate::splits::time_split::cut_between_times;

/// Random split of edges for link prediction, with the rules of PyG's transform of the same name.
///
/// For each edge type to split, the connected pairs of nodes are shuffled (by seed, type and the first edge id of the
/// pair) and cut into training, validation and test pairs. Validation and test edges never carry messages before they
/// are predicted:
///
/// | part | message edges | supervision edges (PyG: `edge_label_index`) |
/// | --- | --- | --- |
/// | train | training edges without the disjoint share | training edges, or only the disjoint share |
/// | validation | all training edges | validation edges |
/// | test | training and validation edges | test edges |
///
/// * **Parallel edges** are in the same part, and each of them is a supervision edge. Counts and ratios are numbers of
///   pairs.
/// * **Reverse types**: an edge of the reverse type is in the part of its forward edge, so that no part contains the
///   reverse of an edge to predict.
/// * **Undirected relations**: an edge and its reverse are one pair. It is a supervision edge once, from the endpoint
///   with the smaller id.
/// * **Other edge types** are message edges of every part.
/// * **Negatives** are distinct pairs without an edge in the **whole** relation, over all three parts, and never self
///   loops. In an undirected relation they are unordered pairs, from the smaller id to the larger.
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_data::RandomLinkSplit;
///
/// fn main() -> Result<(), burn_gnn_data::DataError> {
///     let likes: Vec<u32> = (0..10).collect();
///     let g = Graph::builder()
///         .edges(("user", "likes", "item"), likes.clone(), likes.clone())
///         .edges(("item", "liked by", "user"), likes.clone(), likes)
///         .build()?;
///     let how = RandomLinkSplit::new().with_val(2).with_test(3);
///     let split = how.with_edges(("user", "likes", "item")).with_reverse(("item", "liked by", "user")).split(&g, 7)?;
///     let test = &split.test.links[0];
///     assert_eq!((test.edge_ids.len(), test.negative_src.len()), (3, 3));
///     assert_eq!((split.train.graph.num_edges("liked by")?, split.test.graph.num_edges("likes")?), (5, 7));
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RandomLinkSplit {
    /// Number or ratio of validation pairs. Default: 0.1.
    pub val: Share,
    /// Number or ratio of test pairs. Default: 0.2.
    pub test: Share,
    /// Whether the relation stores each edge in both directions.
    pub is_undirected: bool,
    /// Whether negatives are drawn for training, too.
    pub add_negative_train_samples: bool,
    /// Negatives per supervision edge, rounded down for each part. Default: 1.
    pub neg_sampling_ratio: f64,
    /// Number or ratio of the training pairs that are supervision edges only and carry no messages in training. With
    /// 0, the default, all training edges are both.
    pub disjoint_train: Share,
    /// The edge types to split, each with its reverse type. May be empty if the graph has a single edge type.
    pub edge_types: Vec<(EdgeName, Option<EdgeName>)>,
    /// Order of the pairs. Default: random.
    pub order: LinkOrder,
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
            order: LinkOrder::Random,
        }
    }
}

/// Order of the pairs that a [`RandomLinkSplit`] cuts into training, validation and test.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LinkOrder {
    /// In random order.
    #[default]
    Random,
    /// By time, the latest pairs last: the future is predicted from the past. There is a time per edge of the one edge type
    /// that is split. A pair with parallel edges has the time of the latest, so that no training edge is later than an
    /// edge to predict; pairs of one time are in one part, the earlier one, so that later parts may be smaller than their
    /// shares. The disjoint share are the latest training pairs. Negatives of all parts have no edge at any time.
    Time(Vec<i64>),
    /// By degree, pairs of nodes with few edges last: the degree of a pair is the smaller one of its endpoints, edges in
    /// both directions counted. Pairs of equal degree are in random order. The disjoint share are the training pairs of
    /// lowest degree.
    Degree,
}

impl RandomLinkSplit {
    /// PyG's defaults: 10 % validation edges, 20 % test edges, one negative per supervision edge.
    pub fn new() -> Self {
        Self::default()
    }
    /// Sets the number (`500`) or ratio (`0.1`) of validation edges.
    #[must_use]
    pub fn with_val(mut self, val: impl Into<Share>) -> Self {
        self.val = val.into();
        self
    }
    /// Sets the number or ratio of test edges.
    #[must_use]
    pub fn with_test(mut self, test: impl Into<Share>) -> Self {
        self.test = test.into();
        self
    }
    /// Declares that the relation stores each edge in both directions.
    #[must_use]
    pub fn undirected(mut self) -> Self {
        self.is_undirected = true;
        self
    }
    /// Draws no negatives for training, only for validation and test.
    #[must_use]
    pub fn without_negative_train_samples(mut self) -> Self {
        self.add_negative_train_samples = false;
        self
    }
    /// Sets the number of negatives per supervision edge.
    #[must_use]
    pub fn with_neg_sampling_ratio(mut self, ratio: f64) -> Self {
        self.neg_sampling_ratio = ratio;
        self
    }
    /// Sets the number or ratio of training edges that are supervision edges only.
    #[must_use]
    pub fn with_disjoint_train(mut self, share: impl Into<Share>) -> Self {
        self.disjoint_train = share.into();
        self
    }
    /// Adds an edge type to split, named by its triple or, if that is unique, by its relation.
    #[must_use]
    pub fn with_edges(mut self, etype: impl Into<EdgeName>) -> Self {
        self.edge_types.push((etype.into(), None));
        self
    }
    /// Sets the reverse type of the edge type that was added last.
    #[must_use]
    pub fn with_reverse(mut self, etype: impl Into<EdgeName>) -> Self {
        if let Some(last) = self.edge_types.last_mut() {
            last.1 = Some(etype.into());
        }
        self
    }

    /// Cuts the pairs in another order than a random one.
    ///
    /// ```
    /// use burn_gnn_data::{LinkOrder, RandomLinkSplit};
    /// use burn_gnn_graph::Graph;
    /// let g = Graph::homogeneous(5, vec![0, 1, 2, 3], vec![1, 2, 3, 4])?;
    /// let by_time = RandomLinkSplit::new().with_order(LinkOrder::Time(vec![40, 10, 30, 20]));
    /// let split = by_time.with_val(1).with_test(1).split(&g, 0)?;
    /// assert_eq!((&split.val.links[0].edge_ids[..], &split.test.links[0].edge_ids[..]), (&[2][..], &[0][..]));
    /// # Ok::<(), burn_gnn_data::DataError>(())
    /// ```
    #[must_use]
    pub fn with_order(mut self, order: LinkOrder) -> Self {
        self.order = order;
        self
    }

    /// Splits the edges of a graph. The same seed returns the same split.
    ///
    /// # Errors
    /// * An unknown edge type, or one that occurs twice.
    /// * [`DataError::Split`] if no training edge remains; for a ratio outside its range; if the graph has several edge
    ///   types and none is named; if an edge of an undirected relation has no reverse, or the edges of a reverse type
    ///   are not the reversed edges; if there are fewer pairs without an edge than negatives.
    ///
    /// # Cost
    /// `O(E log E)` per edge type.
    pub fn split(&self, graph: &Graph, seed: u64) -> Result<LinkSplit, DataError> {
        let splits = self
            .types(graph)?
            .into_iter()
            .map(|(t, reverse)| self.split_type(graph, t, reverse, seed))
            .collect::<Result<Vec<_>, _>>()?;
        let part = |which: usize| -> Result<LinkPart, DataError> {
            let message_edges = |c: &TypeSplit| match which {
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
            let graph_of_part = message_graph(graph, &splits, message_edges)?;
            let links = splits.iter().map(|c| {
                let edge_ids = if which == 0 && !c.disjoint.is_empty() {
                    c.disjoint.clone()
                } else {
                    c.parts[which].clone()
                };
                c.links(graph, which, edge_ids)
            });
            Ok(LinkPart { graph: graph_of_part, links: links.collect() })
        };
        Ok(LinkSplit { train: part(0)?, val: part(1)?, test: part(2)? })
    }

    /// Numbers of the edge types to split and of their reverse types.
    fn types(&self, graph: &Graph) -> Result<Vec<(usize, Option<usize>)>, DataError> {
        if self.edge_types.is_empty() {
            return match graph.relations().len() {
                1 => Ok(vec![(0, None)]),
                n => Err(wrong(
                    "edge_types",
                    format!("the edge types to split, since the graph has {n}, got none"),
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

    fn split_type(
        &self,
        graph: &Graph,
        t: usize,
        reverse: Option<usize>,
        seed: u64,
    ) -> Result<TypeSplit, DataError> {
        let (r, name) = (&graph.relations()[t], &graph.schema().etypes()[t]);
        let (s, d) = graph.schema().endpoints(t);
        let is_undirected = self.is_undirected && reverse.is_none();
        if is_undirected && s != d {
            return Err(wrong(
                "is_undirected",
                format!("the reverse type of `{name}`, which connects two node types, got none"),
            ));
        }
        if is_undirected {
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
                        "`{found}` to contain exactly the reversed edges of `{name}`, got other edges"
                    ),
                ));
            }
        }
        let represents_pair =
            |&e: &u32| !is_undirected || r.src()[e as usize] <= r.dst()[e as usize];
        // The name is part of the seed, so that types with equal numbers of edges get different splits.
        let seed =
            seed ^ u64::from(Stream::new(seed, &format!("link split/{name}"), 0).words(0, 0)[0]);
        let first = first_of_pairs(r);
        let is_first = |e: &u32| first[*e as usize] == *e;
        let edges = || (0..r.num_edges() as u32).filter(represents_pair);
        let mut pairs = shuffled(edges().filter(is_first), seed);
        let n = pairs.len();
        let latest = self.sort_pairs(r, name, is_undirected, &first, &mut pairs)?;
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
        let time = |at: usize| latest[pairs[at] as usize];
        let (train, val) = if latest.is_empty() {
            (train, val)
        } else {
            let end = cut_between_times(train, n, time);
            (end, cut_between_times((train + val).max(end), n, time) - end)
        };
        let disjoint = self.disjoint_train.of("disjoint_train", train)?;
        if disjoint == train {
            return Err(wrong(
                "disjoint_train",
                format!("fewer than the {train} training pairs of `{name}`, got {disjoint}"),
            ));
        }
        // An edge is in the part of the first edge of its pair.
        const DISJOINT: u8 = 3;
        let mut part_of = vec![0u8; r.num_edges()];
        // Next to the pairs to predict, in an order that is not random.
        let supervised = match self.order {
            LinkOrder::Random => 0..disjoint,
            LinkOrder::Time(_) | LinkOrder::Degree => train - disjoint..train,
        };
        pairs[supervised].iter().for_each(|&e| part_of[e as usize] = DISJOINT);
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
        let negatives = self.negatives(graph, t, is_undirected, predicted, seed)?;
        Ok(TypeSplit { t, reverse, is_undirected, parts, disjoint, negatives })
    }

    /// Sorts the first edges of pairs, which are in random order. Returns the time of each pair at its first edge, if pairs
    /// are sorted by time.
    fn sort_pairs(
        &self,
        r: &Relation,
        name: &EdgeType,
        is_undirected: bool,
        first: &[u32],
        pairs: &mut [u32],
    ) -> Result<Vec<i64>, DataError> {
        match &self.order {
            LinkOrder::Random => Ok(vec![]),
            LinkOrder::Time(times) => {
                if times.len() != r.num_edges() || self.edge_types.len() > 1 {
                    let (edges, found) = (r.num_edges(), times.len());
                    return Err(wrong(
                        "order",
                        format!(
                            "one edge type and {edges} times, one per edge of `{name}`, got {found}"
                        ),
                    ));
                }
                let mut latest = vec![i64::MIN; times.len()];
                for (e, &time) in times.iter().enumerate() {
                    let slot = &mut latest[first[e] as usize];
                    *slot = time.max(*slot);
                }
                if is_undirected {
                    // The reverse of an edge may be later.
                    let mut of_pair: std::collections::HashMap<(u32, u32), i64> =
                        Default::default();
                    let key = |e: usize| {
                        let (u, v) = (r.src()[e], r.dst()[e]);
                        (u.min(v), u.max(v))
                    };
                    for (e, &time) in times.iter().enumerate() {
                        of_pair.entry(key(e)).and_modify(|t| *t = time.max(*t)).or_insert(time);
                    }
                    pairs.iter().for_each(|&e| latest[e as usize] = of_pair[&key(e as usize)]);
                }
                pairs.sort_by_key(|&e| latest[e as usize]);
                Ok(latest)
            }
            LinkOrder::Degree => {
                let (mut of_src, mut of_dst) = (vec![0u32; r.num_src()], vec![0u32; r.num_dst()]);
                for (&u, &v) in r.src().iter().zip(r.dst()) {
                    of_src[u as usize] += 1;
                    of_dst[v as usize] += 1;
                }
                if name.src == name.dst {
                    for (a, b) in of_src.iter_mut().zip(&mut of_dst) {
                        *a += *b;
                        *b = *a;
                    }
                }
                let degree = |e: u32| {
                    let (u, v) = (r.src()[e as usize], r.dst()[e as usize]);
                    of_src[u as usize].min(of_dst[v as usize])
                };
                pairs.sort_by_key(|&e| std::cmp::Reverse(degree(e)));
                Ok(vec![])
            }
        }
    }

    fn negatives(
        &self,
        graph: &Graph,
        t: usize,
        is_undirected: bool,
        predicted: [usize; 3],
        seed: u64,
    ) -> Result<[Pairs; 3], DataError> {
        let ratio = self.neg_sampling_ratio;
        if !(0.0..=1e9).contains(&ratio) {
            return Err(wrong("neg_sampling_ratio", format!("a number in 0.0..=1e9, got {ratio}")));
        }
        let of = |n: usize| (n as f64 * ratio) as usize;
        let [train, val, test] = predicted;
        let counts =
            [if self.add_negative_train_samples { of(train) } else { 0 }, of(val), of(test)];
        draw_negatives(graph, t, is_undirected, counts, seed)
    }
}
