//! Defines `NeighborSampler`: its graph, fan-outs and settings.

use std::sync::{Arc, Mutex};

use crate::batch::block::Source;
use crate::choice::edge_attributes::{EdgeAttributes, EdgeTimes};
use crate::choice::fanout::Fanouts;
use crate::choice::strategy::Strategy;
use crate::neighbor::memory::Memory;
use crate::random::alias::{AliasTables, check_weights};
use burn_gnn_graph::internal::setting;
use burn_gnn_graph::{EdgeKey, Graph, GraphError, OriginalIds, Subgraph, of_etype};

/// Samples the multi-hop neighbourhood of seed nodes: at each hop it draws some in-edges of every node found so far,
/// and makes one [`Block`](crate::Block) per hop (Hamilton, Ying, Leskovec, NeurIPS 2017; DGL's `NeighborSampler`,
/// PyG's `NeighborLoader`).
///
/// The book: [mini-batches](https://github.com/burn-gnn/burn-gnn/blob/main/docs/mini-batches.md).
///
/// * **Types.** A hop samples all relations, and seeds may be of several node types. A fan-out counts edges per node
///   and relation.
/// * **Direction.** Messages flow along sampled edges to the seeds. To follow out-edges instead, sample
///   [`graph.reverse()`](Graph::reverse), which shares all arrays.
/// * **Replacement.** Without replacement (the default) a node gets `min(fan-out, candidates)` distinct edges, and all
///   sets of that size are equally likely. With replacement it gets exactly `fan-out` edges, unless it has no
///   candidate. A fan-out of -1 takes every candidate once in both cases.
/// * **Candidates** are the edges that the mask allows, that are not excluded, that are earlier than the seed's time,
///   and whose weight is not 0. An edge that is no candidate is never drawn, and does not reduce the number of edges
///   drawn while candidates remain. A node without candidates, such as a node whose weights are all 0, gets no edges
///   but stays in the batch.
/// * **Repeatable.** See [`SampleKey`](crate::SampleKey).
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{NeighborSampler, SampleKey};
/// let g = Graph::homogeneous(5, vec![1, 2, 3, 4, 0], vec![0, 0, 0, 1, 4])?;
/// let sampler = NeighborSampler::new(&g, [2, -1])?; // two in-edges of each seed, then all
/// let batch = sampler.sample([("_N", [0])], SampleKey::new(7))?;
/// assert_eq!(batch.output_nodes(0), [0]);
/// assert_eq!(batch.blocks[1].relation("_E")?.num_edges(), 2);
/// assert_eq!(batch.blocks[0].dst_nodes(0), batch.blocks[1].src_nodes(0)); // blocks chain
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// # Cost
/// `O(edges sampled)` per batch for uniform sampling and for weighted sampling with replacement; `O(degrees of the
/// nodes found)` otherwise. In addition to the graph, the sampler keeps 4 bytes per node for each batch in progress,
/// and per edge 4 bytes for weights, 8 to 16 for times, 8 for alias tables and 1 for a mask, if these are set.
#[derive(Debug)]
pub struct NeighborSampler {
    pub(crate) source: Arc<Source>,
    /// `[hop][relation]`.
    pub(crate) fanouts: Arc<Vec<Vec<u32>>>,
    /// First hop to sample: the hop of the seeds. [`only_hop`](Self::only_hop) raises it.
    pub(crate) first: usize,
    pub(crate) strategy: Strategy,
    pub(crate) replace: bool,
    pub(crate) disjoint: bool,
    /// Whether edges at exactly the time of a seed are visible.
    pub(crate) at_seed_time: bool,
    pub(crate) parallel: bool,
    pub(crate) rules: Arc<Vec<EdgeAttributes>>,
    pub(super) memory: Mutex<Vec<Memory>>,
}

impl Clone for NeighborSampler {
    /// Shares the graph, weights and masks.
    fn clone(&self) -> Self {
        let (source, fanouts, rules) =
            (self.source.clone(), self.fanouts.clone(), self.rules.clone());
        Self { source, fanouts, rules, memory: Mutex::default(), ..*self }
    }
}

impl NeighborSampler {
    /// Uniform sampling without replacement.
    ///
    /// # Errors
    /// A fan-out below -1; a relation without a fan-out; relations with different numbers of hops.
    pub fn new(graph: &Graph, fanouts: impl Into<Fanouts>) -> Result<Self, GraphError> {
        let fanouts = Arc::new(fanouts.into().resolve(graph)?);
        let rules = Arc::new(graph.relations().iter().map(|_| EdgeAttributes::default()).collect());
        let source = Arc::new(Source::new(graph));
        Ok(Self {
            source,
            fanouts,
            first: 0,
            strategy: Strategy::Uniform,
            replace: false,
            disjoint: false,
            at_seed_time: false,
            parallel: true,
            rules,
            memory: Mutex::default(),
        })
    }

    /// The sampled graph.
    pub fn graph(&self) -> &Graph {
        &self.source.graph
    }
    /// Number of hops, and of blocks in a batch.
    pub fn hops(&self) -> usize {
        self.fanouts.len() - self.first
    }

    /// A sampler of hop `hop` only, where hop 0 is the hop of the seeds. Its batches have one block, with the edges
    /// that this sampler draws for the same nodes at that hop. With it, each hop of a batch can be sampled on another
    /// machine.
    ///
    /// # Errors
    /// `hop` is not below [`hops`](Self::hops).
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_sampling::{NeighborSampler, SampleKey};
    /// let g = Graph::homogeneous(5, vec![1, 2, 3, 4, 0], vec![0, 0, 0, 1, 4])?;
    /// let sampler = NeighborSampler::new(&g, [2, 1])?;
    /// let batch = sampler.sample([("_N", [0])], SampleKey::new(7))?;
    /// let second = sampler.only_hop(1)?.sample([("_N", batch.blocks[1].src_nodes(0))], SampleKey::new(7))?;
    /// assert_eq!(second.blocks[0].edge_ids(0), batch.blocks[0].edge_ids(0));
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    pub fn only_hop(&self, hop: usize) -> Result<Self, GraphError> {
        if hop >= self.hops() {
            let expected = format!("a hop in 0..{}", self.hops());
            return Err(setting("hop", &expected, &hop.to_string()));
        }
        let mut one = self.clone();
        one.first = self.first + hop;
        Arc::make_mut(&mut one.fanouts).truncate(one.first + 1);
        Ok(one)
    }

    /// Sets the ids that nodes and edges had before the graph was renumbered, for example by [`Graph::reorder`]. Random
    /// draws are keyed by original ids, so the sampler draws the same edges as on the original graph.
    ///
    /// # Errors
    /// Lists of other lengths than the graph has nodes or edges; in-edges of a node that are not in ascending order of
    /// their original ids; edges in a file that cannot be read.
    pub fn with_original_ids(mut self, of: &Subgraph) -> Result<Self, GraphError> {
        let g = &self.source.graph;
        let fits = |ids: &[OriginalIds], n: usize| ids.len() == n;
        if !fits(&of.node_ids, g.node_counts().len()) || !fits(&of.edge_ids, g.relations().len()) {
            let expected = "one list of ids for each type of the graph";
            return Err(setting("original_ids", expected, "other numbers of types"));
        }
        for (t, ids) in of.node_ids.iter().enumerate() {
            g.check_per_node("original_ids", "one per node", t, ids.len())?;
        }
        for (t, (ids, r)) in of.edge_ids.iter().zip(g.relations()).enumerate() {
            g.check_per_edge("original_ids", "one per edge", t, ids.len())?;
            // Unchanged ids ascend by definition: the check would read stored edges into memory.
            if ids.as_slice().is_none() {
                continue;
            }
            let csc = g.in_memory(t)?.csc();
            let ascends =
                |v: usize| csc.row(v).map(|p| ids.get(csc.edge_id(p) as usize)).is_sorted();
            if let Some(v) = (0..r.num_dst()).find(|&v| !ascends(v)) {
                let expected = format!(
                    "the in-edges of each node of `{}` in ascending order of original ids",
                    g.schema().etypes()[t]
                );
                let found = format!("another order at node {v}");
                return Err(setting("original_ids", &expected, &found));
            }
        }
        self.source = Arc::new(Source {
            graph: g.clone(),
            whole: None,
            node_ids: of.node_ids.clone(),
            edge_ids: of.edge_ids.clone(),
        });
        Ok(self)
    }

    /// Samples with replacement: an edge may be drawn several times.
    ///
    /// # Errors
    /// The strategy does not draw edges independently ([`Strategy::TopK`], [`Strategy::Latest`], [`Strategy::Labor`]).
    pub fn with_replacement(mut self) -> Result<Self, GraphError> {
        self.replace = true;
        self.checked()
    }

    /// Sets how edges are chosen. Weights and times that the strategy needs must be set before.
    ///
    /// # Errors
    /// A relation has no weights ([`Strategy::Weighted`], [`Strategy::TopK`]) or no times ([`Strategy::Latest`]); the
    /// sampler draws with replacement and the strategy does not support it; [`Strategy::InDegree`] if edges have times.
    pub fn with_strategy(mut self, strategy: Strategy) -> Result<Self, GraphError> {
        self.strategy = strategy;
        if strategy == Strategy::InDegree {
            if self.source.graph.relations().iter().any(|r| r.stored().is_some()) {
                return Err(setting(
                    "strategy",
                    "a strategy that needs no degrees, as the edges are in a file",
                    "InDegree",
                ));
            }
            for (rule, r) in
                Arc::make_mut(&mut self.rules).iter_mut().zip(self.source.graph.relations())
            {
                let degree: Vec<f32> = r.out_degrees().map(|d| d as f32).collect();
                rule.weights =
                    Some(r.csc().indices().iter().map(|&u| degree[u as usize]).collect());
                rule.alias = None;
            }
        }
        self.checked()
    }

    /// Sets the weight of each edge of a type, by edge id. Weights need not sum to 1; an edge of weight 0 is never
    /// drawn. [`Strategy::Weighted`] needs weights on every relation.
    ///
    /// # Errors
    /// Unknown type; a number of weights other than that of edges; a weight that is negative, infinite or NaN.
    pub fn with_weights(
        mut self,
        etype: impl EdgeKey,
        weights: &[f32],
    ) -> Result<Self, GraphError> {
        let t = self.source.graph.schema().etype(etype)?;
        self.check_edges("weights", t, weights.len())?;
        check_weights(
            "weights",
            || format!("edge type `{}`", self.source.graph.schema().etypes()[t]),
            weights,
        )?;
        let weights = Some(self.by_position(t, weights));
        let rule = &mut Arc::make_mut(&mut self.rules)[t];
        (rule.weights, rule.alias) = (weights, None);
        self.checked()
    }

    /// Sets the weights of every relation that has a float edge column `name`; see
    /// [`with_weights`](Self::with_weights).
    ///
    /// # Errors
    /// No relation has the column; as [`with_weights`](Self::with_weights).
    pub fn with_weight_column(mut self, name: &str) -> Result<Self, GraphError> {
        let g = self.source.graph.clone();
        let with: Vec<usize> =
            (0..g.relations().len()).filter(|&t| g.edge_frames()[t].column(name).is_ok()).collect();
        if with.is_empty() {
            return Err(setting(
                "name",
                "the name of an edge column",
                &format!("{name}, which no relation has"),
            ));
        }
        for t in with {
            let weights: Vec<f32> =
                g.edge_frames()[t].get::<1>(name)?.into_data().iter::<f32>().collect();
            self = self.with_weights(t, &weights)?;
        }
        Ok(self)
    }

    /// Sets which edges of a type may be drawn, by edge id.
    ///
    /// # Errors
    /// Unknown type; a number of entries other than that of edges.
    pub fn with_mask(mut self, etype: impl EdgeKey, mask: &[bool]) -> Result<Self, GraphError> {
        let t = self.source.graph.schema().etype(etype)?;
        self.check_edges("mask", t, mask.len())?;
        let mask = Some(self.by_position(t, mask));
        Arc::make_mut(&mut self.rules)[t].mask = mask;
        Ok(self)
    }

    /// Sets the time of each edge of a type, by edge id, for [`sample_before`](Self::sample_before) and
    /// [`Strategy::Latest`]. Relations without times are sampled at any time.
    ///
    /// Every seed of a sampler with times needs a time, so that no batch contains an edge later than its seed: in a
    /// loader by [`Seeds::nodes_before`](crate::Seeds::nodes_before), otherwise by
    /// [`sample_before`](Self::sample_before), [`induced_before`](Self::induced_before) or
    /// [`shadow_before`](Self::shadow_before). The time `i64::MAX` admits every edge of a smaller time. Edges are visible
    /// strictly before the time of a seed, or also at it ([`with_edges_at_seed_time`](Self::with_edges_at_seed_time)).
    /// For times in the file of a relation use [`with_stored_times`](Self::with_stored_times).
    ///
    /// # Errors
    /// Unknown type; a number of times other than that of edges; [`Strategy::InDegree`], whose degrees include later
    /// edges.
    pub fn with_times(self, etype: impl EdgeKey, times: &[i64]) -> Result<Self, GraphError> {
        self.with_shared_times(etype, times.into())
    }

    /// As [`with_times`](Self::with_times), for times that the caller shares: they are not copied.
    ///
    /// # Errors
    /// As [`with_times`](Self::with_times).
    ///
    /// # Cost
    /// 8 bytes per edge for times by position, unless edges are sorted by destination.
    pub fn with_shared_times(
        mut self,
        etype: impl EdgeKey,
        by_edge: Arc<[i64]>,
    ) -> Result<Self, GraphError> {
        let t = self.source.graph.schema().etype(etype)?;
        self.check_edges("times", t, by_edge.len())?;
        let permuted = self.source.graph.relations()[t].csc().edge_ids().is_some();
        let by_position =
            if permuted { self.by_position(t, &by_edge).into() } else { by_edge.clone() };
        Arc::make_mut(&mut self.rules)[t].times =
            Some(EdgeTimes::InMemory { by_edge, by_position });
        self.checked()
    }

    /// Makes edges at exactly the time of a seed visible, as in RelBench and PyG: edges of a time of at most the seed's.
    /// Without it, edges are visible strictly before the time of the seed. The time `i64::MAX` then means that an edge is
    /// never visible.
    ///
    /// Link samplers whose seeds have the times of their edges then also sample other edges of that time. They exclude the
    /// seed edge, but its reverse only by [`LinkExclusion`](crate::LinkExclusion). Random walks do not have this option:
    /// give starts a time that is greater by 1.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_sampling::{NeighborSampler, SampleKey};
    /// let g = Graph::homogeneous(4, vec![1, 2, 3], vec![0, 0, 0])?;
    /// let sampler = NeighborSampler::new(&g, [-1])?.with_times("_E", &[10, 20, i64::MAX])?;
    /// let edges = |s: &NeighborSampler, time| s.sample_before([("_N", [0], [time])], SampleKey::new(0)).map(|b| b.total_edges());
    /// assert_eq!((edges(&sampler, 20)?, edges(&sampler, 21)?), (1, 2));
    /// let sampler = sampler.with_edges_at_seed_time();
    /// assert_eq!((edges(&sampler, 20)?, edges(&sampler, i64::MAX)?), (2, 2));
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    #[must_use]
    pub fn with_edges_at_seed_time(mut self) -> Self {
        self.at_seed_time = true;
        self
    }

    /// Gives every seed a separate tree, whose rows it shares with no other seed.
    #[must_use]
    pub fn with_disjoint(mut self) -> Self {
        self.disjoint = true;
        self
    }

    /// Samples each batch on the calling thread only, instead of on all threads of the pool: for loaders whose workers
    /// already make several batches in parallel. Samples are the same.
    #[must_use]
    pub fn with_one_thread(mut self) -> Self {
        self.parallel = false;
        self
    }

    /// Whether the edges of at least one type have times.
    #[doc(hidden)]
    pub fn is_timed(&self) -> bool {
        self.rules.iter().any(|r| r.times.is_some())
    }
    /// Whether `self` and `other` share one graph, weights, masks and times: one is a clone of the other.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.source, &other.source) && Arc::ptr_eq(&self.rules, &other.rules)
    }
    /// Time of each edge of a type, by edge id; `None` without times, or if they are in a file.
    ///
    /// # Panics
    /// Unknown type.
    #[doc(hidden)]
    #[track_caller]
    pub fn times_of(&self, etype: usize) -> Option<&[i64]> {
        of_etype(&self.rules, etype).times.as_ref()?.in_memory().map(|times| &**times)
    }
    /// Whether edges of a type have times.
    #[track_caller]
    pub(crate) fn has_times(&self, etype: usize) -> bool {
        of_etype(&self.rules, etype).times.is_some()
    }
    /// Time of each edge of a type, by edge id. Reads times in a file into memory.
    #[track_caller]
    pub(crate) fn edge_times(&self, etype: usize) -> Result<Option<&Arc<[i64]>>, GraphError> {
        let relation = &self.source.graph.relations()[etype];
        let times = of_etype(&self.rules, etype).times.as_ref();
        times.map(|times| times.by_edge(relation)).transpose()
    }
    /// Time before which edges are visible for a seed of time `time`.
    #[doc(hidden)]
    pub fn visible_before(&self, time: i64) -> i64 {
        if self.at_seed_time { time.saturating_add(1) } else { time }
    }
    /// Checks that edges have times, before seeds with times are sampled.
    pub(crate) fn check_timed(&self) -> Result<(), GraphError> {
        if self.is_timed() {
            Ok(())
        } else {
            Err(setting("times", "times of at least one relation (`with_times`)", "none"))
        }
    }
    /// Checks that no edges have times, before seeds without times are sampled: otherwise a batch could contain edges
    /// later than its seeds. [`Sampler::check`](crate::Sampler::check) must call it if the seeds have no times.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_sampling::NeighborSampler;
    /// let g = Graph::homogeneous(3, vec![1, 2], vec![0, 0])?;
    /// let sampler = NeighborSampler::new(&g, [-1])?;
    /// assert!(sampler.check_untimed().is_ok());
    /// assert!(sampler.with_times("_E", &[10, 20])?.check_untimed().is_err());
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// The edges of at least one type have times.
    pub fn check_untimed(&self) -> Result<(), GraphError> {
        if !self.is_timed() {
            return Ok(());
        }
        let expected = "a time for every seed (`Seeds::nodes_before`, `sample_before`; `i64::MAX` for edges of any time), because the edges of the sampler have times";
        Err(setting("times", expected, "none"))
    }

    fn check_edges(&self, arg: &'static str, t: usize, len: usize) -> Result<(), GraphError> {
        let g = &self.source.graph;
        if g.relations()[t].stored().is_some() {
            let expected = "a relation in memory (for a relation in a file use `with_stored_weights` or `with_stored_times`)";
            return Err(setting(arg, expected, "a relation in a file"));
        }
        g.check_per_edge(arg, "one per edge", t, len)
    }

    /// Permutes values by edge id to values by position in CSC.
    fn by_position<T: Copy>(&self, t: usize, values: &[T]) -> Vec<T> {
        match self.source.graph.relations()[t].csc().edge_ids() {
            None => values.to_vec(),
            Some(ids) => ids.iter().map(|&e| values[e as usize]).collect(),
        }
    }

    /// Validates the combination of settings, and builds the alias tables that weighted draws need.
    pub(super) fn checked(mut self) -> Result<Self, GraphError> {
        let (g, strategy) = (&self.source.graph, self.strategy);
        if self.replace && !strategy.can_replace() {
            let expected =
                "a strategy that can draw with replacement (`Uniform`, `Weighted`, `InDegree`)";
            return Err(setting("strategy", expected, &format!("{strategy:?}")));
        }
        // Uniform draws have nothing to validate: with thousands of edge types each setter would loop over all.
        let rules = if strategy == Strategy::Uniform { None } else { Some(&mut self.rules) };
        let rules = rules.into_iter().flat_map(|rules| Arc::make_mut(rules).iter_mut());
        for (t, rule) in rules.enumerate() {
            let missing = |arg, remedy| {
                let relation = g.schema().etypes()[t].to_string();
                Err(GraphError::MissingRelation { arg, relation, remedy })
            };
            if strategy.needs_weights() && rule.weights.is_none() && !rule.stored_weights {
                return missing("weights", "call `with_weights` before `with_strategy`");
            }
            if strategy == Strategy::Latest && rule.times.is_none() {
                return missing("times", "call `with_times` before `with_strategy`");
            }
            if strategy == Strategy::InDegree && rule.times.is_some() {
                let expected = "a strategy without degrees, because edges have times and degrees include later edges";
                return Err(setting("strategy", expected, "InDegree"));
            }
            let draws = self.replace && matches!(strategy, Strategy::Weighted | Strategy::InDegree);
            if let (true, None, Some(weights)) = (draws, &rule.alias, &rule.weights) {
                rule.alias = Some(AliasTables::new(g.relations()[t].csc().indptr(), weights));
            }
        }
        Ok(self)
    }
}
