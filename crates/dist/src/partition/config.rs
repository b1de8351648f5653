//! Defines the settings of a partitioning.

use std::collections::BTreeMap;

use burn_gnn_graph::{Graph, GraphError};

use crate::error::DistError;

/// Nodes and edges from which progress is drawn.
const LONG: usize = 1 << 20;

/// How nodes are assigned to parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionMethod {
    /// METIS (Karypis and Kumar, SIAM J. Sci. Comput. 1998): few cut edges, balanced parts. Recursive bisection up to 8
    /// pieces where only the number of nodes is balanced, else k-way. Its numbers have 32 bits: at most 2^31 - 2 nodes
    /// and as many edges, both directions counted and parallel ones merged.
    Metis,
    /// Every node on its own, keyed by seed and original id. Where node types or classes are to be balanced, the nodes
    /// of each are put into an order drawn from the seed and dealt out in equal shares.
    Random,
    /// Linear deterministic greedy (Stanton and Kliot, KDD 2012): nodes come one by one in an order drawn from the
    /// seed, each goes to the part `p` with the largest `|N(v) ∩ p| · (1 - |p| / capacity)`. Further passes stream the
    /// nodes again, with the neighbours' parts of the pass before (Nishimura and Ugander, KDD 2013); ten are enough for
    /// most graphs.
    Ldg {
        /// At least 1.
        passes: usize,
    },
    /// Fennel (Tsourakakis et al., WSDM 2014): as [`Ldg`](Self::Ldg) with the score
    /// `|N(v) ∩ p| - α γ |p|^(γ - 1)`, `γ = 3/2`, `α = √parts · E / V^γ`.
    Fennel {
        /// At least 1.
        passes: usize,
    },
    /// By the name of a node type, the part of each of its nodes, by original id; parts may be empty. With several
    /// trainers per machine it is the trainer, below `num_parts · num_trainers_per_machine`. [`custom`](Self::custom)
    /// makes it of a list.
    Custom(BTreeMap<String, Vec<u32>>),
}

impl PartitionMethod {
    /// [`Custom`](Self::Custom): every node type with the part of each of its nodes.
    ///
    /// ```
    /// use burn_gnn_dist::{PartitionConfig, PartitionMethod, partition_graph};
    /// use burn_gnn_graph::Graph;
    /// let g = Graph::builder().nodes("paper", 3).nodes("author", 1).edges(("author", "writes", "paper"), vec![0], vec![2]).build()?;
    /// let method = PartitionMethod::custom([("paper", vec![0, 1, 1]), ("author", vec![1])]);
    /// let parts = partition_graph(&g, &PartitionConfig::new("papers", 2).with_method(method))?;
    /// assert_eq!((parts.assignment("paper"), parts.edge_cut()), (&[0, 1, 1][..], 0));
    /// # Ok::<(), burn_gnn_dist::DistError>(())
    /// ```
    pub fn custom(
        assignment: impl IntoIterator<Item = (impl Into<String>, impl Into<Vec<u32>>)>,
    ) -> Self {
        Self::Custom(
            assignment.into_iter().map(|(ntype, parts)| (ntype.into(), parts.into())).collect(),
        )
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Metis => "metis",
            Self::Random => "random",
            Self::Ldg { .. } => "ldg",
            Self::Fennel { .. } => "fennel",
            Self::Custom(_) => "custom",
        }
    }
}

/// What METIS makes small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Objective {
    /// Edges between parts.
    #[default]
    Cut,
    /// Copies of nodes in other parts: what a halo exchange sends. METIS' search for it is the weaker one: where
    /// communities are strong, [`Cut`](Self::Cut) often ends with fewer copies too; compare the tables.
    Volume,
}

/// How long METIS tries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetisEffort {
    /// METIS' own settings; where cut edges are to be few, nodes alone are balanced and there are at most 8 parts, the
    /// better of two bisections at each step instead of k-way, with parallel edges counted as one unless more than an
    /// eighth of the edges are parallel to others.
    #[default]
    Full,
    /// As DGL calls it: k-way, one initial partition, one iteration of refinement, light edges dropped from coarse
    /// graphs. Faster, with more cut edges.
    Fast,
}

/// Settings of [`partition_graph`](crate::partition_graph).
///
/// What DGL's `return_mapping` returns is always there:
/// [`PartitionedGraph::original_nids`](crate::PartitionedGraph::original_nids) and
/// [`original_eids`](crate::PartitionedGraph::original_eids).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionConfig {
    /// Name of the graph and of its metadata file.
    pub graph_name: String,
    /// Number of parts, at least 1 and, unless empty parts are allowed or the method is custom, at most the number of
    /// nodes.
    pub num_parts: usize,
    /// How nodes are assigned.
    pub method: PartitionMethod,
    /// Depth of the halo. 0: a part holds its nodes and their in-edges, which is all that full-graph training uses; the
    /// sources that others own are included as endpoints of edges. 1, as in DGL: also the edges from its nodes to
    /// others. Each hop more: the in-edges of the sources before.
    pub num_hops: usize,
    /// Same seed, same parts, for any number of threads.
    pub seed: u64,
    /// Whether every node type is spread evenly (up to 15 classes of nodes; smaller ones are balanced together): no part
    /// has more of a class than 1.05 times the mean or the mean rounded up. With any method but a custom assignment no
    /// part is empty where there are at least as many nodes. With several trainers both hold for each trainer's nodes.
    /// `None`: METIS, LDG and Fennel do it, `Random` gives every part the same expected number of nodes. Not with a
    /// custom assignment.
    pub balance_ntypes: Option<bool>,
    /// The classes of nodes of a type, by original id, are each spread evenly: training nodes and others, for example.
    /// Not with a custom assignment.
    pub balance_classes: BTreeMap<String, Vec<u32>>,
    /// METIS, LDG, Fennel only: no part has over 5 % more in-edges than the mean where single nodes allow it, at some
    /// price in cut edges.
    pub balance_edges: bool,
    /// METIS only: what is minimized.
    pub objective: Objective,
    /// METIS only: how long it tries.
    pub effort: MetisEffort,
    /// Whether nodes and edges are renumbered part by part. If not, ids stay those of the input graph, and the files
    /// `node_map.npy` and `edge_map.npy` say who owns what.
    pub reshuffle: bool,
    /// Trainers that share a part, each with nodes of its own (`trainer_id`): the graph is cut into `num_parts` times
    /// as many pieces, of which consecutive ones make a part.
    pub num_trainers_per_machine: usize,
    /// Whether there may be more parts than nodes; some are empty then.
    pub allow_empty_parts: bool,
    /// Whether long work draws its progress (on a terminal): assigning the nodes of large graphs, and writing parts.
    pub progress: bool,
}

impl PartitionConfig {
    /// METIS with a halo of one hop, node types balanced, ids reshuffled, seed 0. An option that the method cannot
    /// follow is an error of [`partition_graph`](crate::partition_graph).
    pub fn new(graph_name: impl Into<String>, num_parts: usize) -> Self {
        Self {
            graph_name: graph_name.into(),
            num_parts,
            method: PartitionMethod::Metis,
            num_hops: 1,
            seed: 0,
            balance_ntypes: None,
            balance_classes: BTreeMap::new(),
            balance_edges: false,
            objective: Objective::Cut,
            effort: MetisEffort::Full,
            reshuffle: true,
            num_trainers_per_machine: 1,
            allow_empty_parts: false,
            progress: true,
        }
    }
    /// Another method.
    #[must_use]
    pub fn with_method(mut self, method: PartitionMethod) -> Self {
        self.method = method;
        self
    }
    /// Another seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
    /// Another depth of the halo.
    #[must_use]
    pub fn with_num_hops(mut self, num_hops: usize) -> Self {
        self.num_hops = num_hops;
        self
    }
    /// Whether every node type is spread evenly.
    #[must_use]
    pub fn with_balance_ntypes(mut self, balance_ntypes: bool) -> Self {
        self.balance_ntypes = Some(balance_ntypes);
        self
    }
    /// The class of each node of a type, by original id; each is spread evenly.
    #[must_use]
    pub fn with_balance_classes(mut self, ntype: impl Into<String>, classes: Vec<u32>) -> Self {
        self.balance_classes.insert(ntype.into(), classes);
        self
    }
    /// Spreads the nodes of a type where `mask` is true evenly, and those where it is not: the training nodes.
    #[must_use]
    pub fn with_balance_mask(self, ntype: impl Into<String>, mask: &[bool]) -> Self {
        self.with_balance_classes(ntype, mask.iter().map(|&m| u32::from(m)).collect())
    }
    /// Whether in-edges are spread evenly too.
    #[must_use]
    pub fn with_balance_edges(mut self, balance_edges: bool) -> Self {
        self.balance_edges = balance_edges;
        self
    }
    /// What METIS makes small.
    #[must_use]
    pub fn with_objective(mut self, objective: Objective) -> Self {
        self.objective = objective;
        self
    }
    /// How long METIS tries.
    #[must_use]
    pub fn with_effort(mut self, effort: MetisEffort) -> Self {
        self.effort = effort;
        self
    }
    /// Whether nodes and edges are renumbered part by part.
    #[must_use]
    pub fn with_reshuffle(mut self, reshuffle: bool) -> Self {
        self.reshuffle = reshuffle;
        self
    }
    /// Trainers that share a part.
    #[must_use]
    pub fn with_num_trainers_per_machine(mut self, trainers: usize) -> Self {
        self.num_trainers_per_machine = trainers;
        self
    }
    /// Whether there may be more parts than nodes.
    #[must_use]
    pub fn with_empty_parts(mut self, allow: bool) -> Self {
        self.allow_empty_parts = allow;
        self
    }

    /// With or without progress.
    #[must_use]
    pub fn with_progress(mut self, progress: bool) -> Self {
        self.progress = progress;
        self
    }

    /// Whether work over so many nodes and edges draws its progress.
    pub(crate) fn draws(&self, things: usize) -> bool {
        self.progress && things >= LONG
    }

    /// Whether node types are balanced where the method balances at all.
    pub(crate) fn balances_ntypes(&self) -> bool {
        self.balance_ntypes.unwrap_or(!matches!(self.method, PartitionMethod::Random))
    }

    /// Pieces the graph is cut into: trainers of all parts.
    pub(crate) fn pieces(&self) -> usize {
        self.num_parts * self.num_trainers_per_machine
    }

    /// Refuses more parts than memory has counters for, before a part of them is made.
    pub(crate) fn check_memory(&self, graph: &Graph) -> Result<(), DistError> {
        let (ntypes, etypes) =
            (graph.schema().ntypes().len() as u128, graph.schema().etypes().len() as u128);
        // Counts, numberings and lists of crossing edges, as they are with empty parts.
        let bytes = self.num_parts as u128 * (64 + 40 * ntypes + 88 * etypes);
        let fits = usize::try_from(bytes)
            .is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
        if fits {
            return Ok(());
        }
        let (what, remedy) =
            (format!("`num_parts`: the tables of {} parts", self.num_parts), "ask for fewer parts");
        Err(GraphError::OutOfMemory { what, bytes, remedy }.into())
    }

    pub(crate) fn validate(&self, graph: &Graph) -> Result<(), DistError> {
        let bad = |arg, expected: &str, found: String| {
            Err(DistError::Config { arg, expected: expected.into(), found })
        };
        let name = &self.graph_name;
        if name.is_empty()
            || name.starts_with('.')
            || name.contains(['/', '\\', ':', '\0'])
            || name.chars().any(char::is_control)
        {
            return bad(
                "graph_name",
                "a name that can be a file's: not empty, no leading dot, no `/`, `\\`, `:`",
                format!("{name:?}"),
            );
        }
        let limit = i32::MAX as usize;
        if self.num_parts == 0 || self.num_parts > limit {
            return bad("num_parts", "at least 1 and below 2^31", self.num_parts.to_string());
        }
        let trainers = self.num_trainers_per_machine;
        if trainers == 0 || self.num_parts.checked_mul(trainers).is_none_or(|n| n > limit) {
            let found = format!("{trainers} for each of {} parts", self.num_parts);
            return bad(
                "num_trainers_per_machine",
                "at least 1, and below 2^31 over all parts",
                found,
            );
        }
        if let PartitionMethod::Ldg { passes: 0 } | PartitionMethod::Fennel { passes: 0 } =
            self.method
        {
            return bad("passes", "at least 1", "0".into());
        }
        self.check_options()?;
        if graph.schema().ntypes().is_empty() {
            return bad("graph", "at least one node type", "none".into());
        }
        for (ntype, classes) in &self.balance_classes {
            let nodes = graph.num_nodes(ntype)?;
            if classes.len() != nodes {
                let expected = format!("one class for each of {nodes} nodes of `{ntype}`");
                return bad("balance_classes", &expected, classes.len().to_string());
            }
        }
        let nodes = graph.total_nodes();
        let free = self.allow_empty_parts || matches!(self.method, PartitionMethod::Custom(_));
        if self.pieces() > nodes.max(1) && !free {
            return Err(DistError::TooManyParts { parts: self.pieces(), nodes });
        }
        Ok(())
    }

    /// Refuses options that the method would ignore.
    fn check_options(&self) -> Result<(), DistError> {
        let (is_metis, is_custom) = (
            matches!(self.method, PartitionMethod::Metis),
            matches!(self.method, PartitionMethod::Custom(_)),
        );
        let is_streaming =
            matches!(self.method, PartitionMethod::Ldg { .. } | PartitionMethod::Fennel { .. });
        let balance = "balance in the assignment itself, or use the method `metis`, `ldg`, `fennel` or `random`";
        let classes = format!("classes of {:?}", self.balance_classes.keys().collect::<Vec<_>>());
        let options = [
            (
                "balance_ntypes",
                self.balance_ntypes == Some(true) && is_custom,
                "Some(true)".to_owned(),
                balance,
            ),
            ("balance_classes", !self.balance_classes.is_empty() && is_custom, classes, balance),
            (
                "balance_edges",
                self.balance_edges && !is_metis && !is_streaming,
                "true".to_owned(),
                "use the method `metis`, `ldg` or `fennel`",
            ),
            (
                "objective",
                self.objective != Objective::Cut && !is_metis,
                format!("{:?}", self.objective),
                "use the method `metis`",
            ),
            (
                "effort",
                self.effort != MetisEffort::Full && !is_metis,
                format!("{:?}", self.effort),
                "use the method `metis`",
            ),
        ];
        match options.into_iter().find(|o| o.1) {
            None => Ok(()),
            Some((arg, _, found, remedy)) => {
                let expected = format!(
                    "the default, since the method `{}` has no such option ({remedy})",
                    self.method.name()
                );
                Err(DistError::Config { arg, expected, found })
            }
        }
    }
}
