//! Defines the settings of a partitioning.

use std::collections::BTreeMap;

use burn_gnn_graph::{Graph, GraphError};

use crate::error::DistError;

/// Progress bars are shown for graphs of at least this many nodes and edges.
const PROGRESS_FROM: usize = 1 << 20;

/// How nodes are assigned to parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionMethod {
    /// METIS (Karypis and Kumar, SIAM J. Sci. Comput. 1998): few cut edges, balanced parts. Up to 8 pieces are made by
    /// recursive bisection if only the number of nodes is balanced; k-way partitioning makes all others. METIS uses
    /// 32-bit integers: at most 2^31 - 2 nodes and as many edges, after both directions are counted and parallel edges
    /// are merged.
    Metis,
    /// Each node is assigned independently by a random number keyed by the seed and the node's original id. If node
    /// types or classes are balanced, the nodes of each class are shuffled by the seed and divided into equal shares.
    Random,
    /// Linear deterministic greedy (Stanton and Kliot, KDD 2012): nodes are streamed in a random order given by the
    /// seed. Each is assigned to the part `p` with the largest `|N(v) ∩ p| · (1 - |p| / capacity)`. Further passes
    /// stream the nodes again and use the neighbours' parts of the previous pass (Nishimura and Ugander, KDD 2013).
    /// Ten passes are enough for most graphs.
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
    /// A user-defined assignment: for each node type, by name, the part of every node by original id. Parts may be
    /// empty. With several trainers per machine, the values are trainers below
    /// `num_parts · num_trainers_per_machine`. [`custom`](Self::custom) builds it from a list.
    Custom(BTreeMap<String, Vec<u32>>),
}

impl PartitionMethod {
    /// Builds a [`Custom`](Self::Custom) assignment from pairs of a node type and the parts of its nodes.
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

/// What METIS minimises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Objective {
    /// The number of edges between parts.
    #[default]
    Cut,
    /// The number of copies of nodes in other parts, which is what a halo exchange sends. METIS optimises this
    /// objective less well than the edge cut. On graphs with strong communities [`Cut`](Self::Cut) often yields fewer
    /// copies too: compare the tables ([`PartitionedGraph::table`](crate::PartitionedGraph::table)).
    Volume,
}

/// How much work METIS does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetisEffort {
    /// METIS' default settings. If the objective is the cut, only nodes are balanced and there are at most 8 parts,
    /// the graph is bisected recursively: each step keeps the better of two bisections. Parallel edges then count as
    /// one, unless more than an eighth of the edges are parallel to others.
    #[default]
    Full,
    /// The settings that DGL uses: k-way, one initial partition, one iteration of refinement, light edges dropped from
    /// coarse graphs. Faster, with more cut edges.
    Fast,
}

/// Settings of [`partition_graph`](crate::partition_graph).
///
/// The mappings that DGL returns for `return_mapping` are always available as
/// [`PartitionedGraph::original_nids`](crate::PartitionedGraph::original_nids) and
/// [`original_eids`](crate::PartitionedGraph::original_eids).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionConfig {
    /// Name of the graph, which is also the name of the metadata file.
    pub graph_name: String,
    /// Number of parts, at least 1. It is at most the number of nodes, unless empty parts are allowed or the method is
    /// custom.
    pub num_parts: usize,
    /// How nodes are assigned.
    pub method: PartitionMethod,
    /// Depth of the halo.
    ///
    /// * 0: a part holds its own nodes and their in-edges, which is all that full-graph training needs. Sources that
    ///   other parts own are included as endpoints of these edges.
    /// * 1, as in DGL: a part also holds the edges from its own nodes to nodes of other parts.
    /// * Each further hop adds the in-edges of the sources that the previous hop reached.
    pub num_hops: usize,
    /// Seed of all random choices. Equal seeds give equal parts for any number of threads.
    pub seed: u64,
    /// Whether every node type is spread evenly over parts: no part has more nodes of a class than 1.05 times the mean,
    /// or the mean rounded up. Up to 15 classes are balanced separately; all smaller classes are balanced as one.
    /// Unless the assignment is custom, no part is empty if there are at least as many nodes as parts. With several
    /// trainers per part, both bounds hold for the nodes of each trainer.
    ///
    /// `None` means yes for METIS, LDG and Fennel; `Random` then gives every part the same expected number of nodes.
    /// A custom assignment does not support this option.
    pub balance_ntypes: Option<bool>,
    /// Classes of nodes, by node type and original id, each of which is spread evenly over parts, for example training
    /// nodes and all others. A custom assignment does not support this option.
    pub balance_classes: BTreeMap<String, Vec<u32>>,
    /// METIS, LDG and Fennel only: bounds the in-edges of a part by 1.05 times the mean, unless single nodes have too
    /// many. More edges are cut.
    pub balance_edges: bool,
    /// METIS only: what is minimised.
    pub objective: Objective,
    /// METIS only: how much work it does.
    pub effort: MetisEffort,
    /// Whether nodes and edges are renumbered part by part. If not, ids stay those of the input graph, and the files
    /// `node_map.npy` and `edge_map.npy` store the owner of each id.
    pub reshuffle: bool,
    /// Number of trainers that share a part. Each trains on a disjoint set of its nodes (`trainer_id`). The graph is
    /// divided into `num_parts · num_trainers_per_machine` pieces, and consecutive pieces form a part.
    pub num_trainers_per_machine: usize,
    /// Whether more parts than nodes are allowed. Some parts are then empty.
    pub allow_empty_parts: bool,
    /// Whether a terminal shows a progress bar while the nodes of a large graph are assigned and parts are written.
    pub progress: bool,
}

impl PartitionConfig {
    /// Defaults: METIS, a halo of one hop, balanced node types, renumbered ids, seed 0. Options that the method does
    /// not support are an error of [`partition_graph`](crate::partition_graph).
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
    /// Sets the method.
    #[must_use]
    pub fn with_method(mut self, method: PartitionMethod) -> Self {
        self.method = method;
        self
    }
    /// Sets the seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
    /// Sets the depth of the halo.
    #[must_use]
    pub fn with_num_hops(mut self, num_hops: usize) -> Self {
        self.num_hops = num_hops;
        self
    }
    /// Sets whether every node type is spread evenly.
    #[must_use]
    pub fn with_balance_ntypes(mut self, balance_ntypes: bool) -> Self {
        self.balance_ntypes = Some(balance_ntypes);
        self
    }
    /// Sets the class of each node of a type, by original id. Each class is spread evenly.
    #[must_use]
    pub fn with_balance_classes(mut self, ntype: impl Into<String>, classes: Vec<u32>) -> Self {
        self.balance_classes.insert(ntype.into(), classes);
        self
    }
    /// Spreads the nodes of a type whose `mask` is true, such as the training nodes, and the remaining nodes evenly.
    #[must_use]
    pub fn with_balance_mask(self, ntype: impl Into<String>, mask: &[bool]) -> Self {
        self.with_balance_classes(ntype, mask.iter().map(|&m| u32::from(m)).collect())
    }
    /// Sets whether in-edges are spread evenly too.
    #[must_use]
    pub fn with_balance_edges(mut self, balance_edges: bool) -> Self {
        self.balance_edges = balance_edges;
        self
    }
    /// Sets what METIS minimises.
    #[must_use]
    pub fn with_objective(mut self, objective: Objective) -> Self {
        self.objective = objective;
        self
    }
    /// Sets how much work METIS does.
    #[must_use]
    pub fn with_effort(mut self, effort: MetisEffort) -> Self {
        self.effort = effort;
        self
    }
    /// Sets whether nodes and edges are renumbered part by part.
    #[must_use]
    pub fn with_reshuffle(mut self, reshuffle: bool) -> Self {
        self.reshuffle = reshuffle;
        self
    }
    /// Sets the number of trainers that share a part.
    #[must_use]
    pub fn with_num_trainers_per_machine(mut self, trainers: usize) -> Self {
        self.num_trainers_per_machine = trainers;
        self
    }
    /// Sets whether more parts than nodes are allowed.
    #[must_use]
    pub fn with_empty_parts(mut self, allow: bool) -> Self {
        self.allow_empty_parts = allow;
        self
    }

    /// Sets whether progress bars are shown.
    #[must_use]
    pub fn with_progress(mut self, progress: bool) -> Self {
        self.progress = progress;
        self
    }

    /// Whether work over `items` nodes and edges shows a progress bar.
    pub(crate) fn shows_progress(&self, items: usize) -> bool {
        self.progress && items >= PROGRESS_FROM
    }

    /// Whether node types are balanced, if the method supports balancing.
    pub(crate) fn balances_ntypes(&self) -> bool {
        self.balance_ntypes.unwrap_or(!matches!(self.method, PartitionMethod::Random))
    }

    /// Number of pieces that the graph is divided into: the trainers of all parts.
    pub(crate) fn pieces(&self) -> usize {
        self.num_parts * self.num_trainers_per_machine
    }

    /// Returns an error before any table is allocated if the tables of all parts do not fit into memory.
    pub(crate) fn check_memory(&self, graph: &Graph) -> Result<(), DistError> {
        let (ntypes, etypes) =
            (graph.schema().ntypes().len() as u128, graph.schema().etypes().len() as u128);
        // The size of counts, numberings and lists of cross-part edges if all parts are empty.
        let bytes = self.num_parts as u128 * (64 + 40 * ntypes + 88 * etypes);
        let fits = usize::try_from(bytes)
            .is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
        if fits {
            return Ok(());
        }
        let (what, remedy) =
            (format!("`num_parts`: the tables of {} parts", self.num_parts), "use fewer parts");
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
                "a valid file name: not empty, without a leading dot, `/`, `\\` or `:`",
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

    /// Returns an error for options that the method would ignore.
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
