//! Finds the entities and edges that the scores of a batch of queries depend on.
//!
//! After `l` steps of Bellman-Ford from the head of a query, only entities within `l` edges of the head have a state, and
//! only those within `L - l` edges of a candidate influence its score. The states of a batch are therefore not
//! `[queries · entities]`, but the pairs (query, entity) that satisfy both:
//!
//! ```text
//! pairs[l] = { v : distance(head, v) ≤ l and distance(v, candidates) ≤ L - l }
//! edges[l] = { (u, r, v) : v in pairs[l], distance(head, u) ≤ l - 1 }          (u is then in pairs[l - 1])
//! ```
//!
//! The scores equal those of a computation over all entities in which the state of an entity that is not reached is 0.

use burn_gnn_graph::{GraphError, Relation, Stream};
use rayon::prelude::*;

use crate::inductive::fact_graph::FactGraph;

/// Which facts between the head of a query and its answers are hidden while training, so that the model cannot read the
/// answer from the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum HiddenFacts {
    /// The fact itself and its reciprocal.
    Answer,
    /// All facts between the head and the answer, of any relation.
    AllBetween,
}

/// A query `(head, relation, ?)` with the entities to score as its tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TailQuery {
    /// Head entity.
    pub head: u32,
    /// Relation in `0..2 · num_relations`. Relation `r + num_relations` is the reciprocal of `r`: `head` is then the tail of
    /// a fact, and the candidates are heads.
    pub relation: u32,
    /// Entities to score.
    pub candidates: Vec<u32>,
    /// True tails whose facts with the head are hidden while training. Empty otherwise.
    pub hidden: Vec<u32>,
}

/// Position of an entity that has no state.
const NONE: u32 = u32::MAX;
/// Distance of entities that are not reached.
const FAR: u8 = u8::MAX;

/// One step of Bellman-Ford for a batch: from the pairs before it to the pairs after it.
#[derive(Debug)]
pub(super) struct PathStep {
    /// Edges between pairs.
    pub(super) edges: Relation,
    /// `query · 2 R + relation` of each edge.
    pub(super) types: Vec<u32>,
    /// From each pair to itself, if it had a state before the step.
    pub(super) kept: Relation,
    /// From queries to their heads, if these are needed after the step.
    pub(super) heads: Relation,
}

/// The pairs and edges of a batch of queries.
#[derive(Debug)]
pub(super) struct QueryPaths {
    /// From queries to the pairs before the first step.
    pub(super) heads: Relation,
    pub(super) steps: Vec<PathStep>,
    /// From the pairs after the last step to candidates; a candidate that is not reached has no edge.
    pub(super) reached: Relation,
    /// From `query · 2 R + relation` to candidates, one edge per edge that enters the candidate.
    pub(super) entering: Relation,
    /// Query of each candidate.
    pub(super) query_of: Vec<u32>,
}

/// The same for one query, with local numbers.
#[derive(Default)]
struct Part {
    /// Number of pairs before the first step and after each step.
    sizes: Vec<u32>,
    /// Position of the head before the first step and after each step.
    heads: Vec<u32>,
    steps: Vec<PartStep>,
    /// Position after the last step of each candidate, or [`NONE`].
    reached: Vec<u32>,
    /// Number of entering edges of each candidate, and their relations.
    entering: (Vec<u32>, Vec<u32>),
}

#[derive(Default)]
struct PartStep {
    /// Number of edges for each pair.
    counts: Vec<u32>,
    src: Vec<u32>,
    relations: Vec<u32>,
    kept: Vec<u32>,
}

/// Arrays by entity that are reused from query to query.
struct Scratch {
    from_head: Vec<u8>,
    to_candidates: Vec<u8>,
    head_order: Vec<u32>,
    candidate_order: Vec<u32>,
    position: [Vec<u32>; 2],
}

impl Scratch {
    fn new(entities: usize) -> Self {
        Self {
            from_head: vec![FAR; entities],
            to_candidates: vec![FAR; entities],
            head_order: Vec::new(),
            candidate_order: Vec::new(),
            position: [vec![NONE; entities], vec![NONE; entities]],
        }
    }
}

/// Facts that are dropped at random, each for each query with this probability.
#[derive(Clone, Copy, Debug)]
pub(super) struct DroppedFacts {
    pub(super) prob: f64,
    pub(super) stream: Stream,
}

/// Facts that a query must not read.
struct Hidden<'a> {
    query: &'a TailQuery,
    which: HiddenFacts,
    reciprocal: u32,
    dropped: Option<DroppedFacts>,
    /// Number of the query in the batch, and number of relations.
    id: u64,
    num_relations: u32,
}

impl Hidden<'_> {
    /// Whether the edge from `from` to `to` is hidden.
    fn contains(&self, from: u32, relation: u32, to: u32) -> bool {
        let q = self.query;
        let between = |a: u32, b: u32, hidden: u32| {
            a == q.head
                && (self.which == HiddenFacts::AllBetween || relation == hidden)
                && q.hidden.contains(&b)
        };
        between(from, to, q.relation)
            || between(to, from, self.reciprocal)
            || self.dropped.is_some_and(|d| self.drops(d, from, relation, to))
    }

    /// Whether a fact is dropped; a fact and its reciprocal are dropped together.
    fn drops(&self, dropped: DroppedFacts, from: u32, relation: u32, to: u32) -> bool {
        let (head, relation, tail) = if relation < self.num_relations {
            (from, relation, to)
        } else {
            (to, relation - self.num_relations, from)
        };
        let key = u64::from(head) << 32 | u64::from(tail);
        let [word, ..] = dropped.stream.words(key, self.id << 32 | u64::from(relation));
        f64::from(word) < dropped.prob * 4_294_967_296.0
    }
}

/// Breadth-first search up to `depth` edges. `distance` is [`FAR`] everywhere; `order` receives the reached entities.
fn search(
    graph: &FactGraph,
    hidden: &Hidden<'_>,
    depth: usize,
    distance: &mut [u8],
    order: &mut Vec<u32>,
) {
    for &v in &*order {
        distance[v as usize] = 0;
    }
    let mut next = 0;
    while next < order.len() {
        let v = order[next];
        next += 1;
        let d = distance[v as usize];
        if usize::from(d) == depth {
            break;
        }
        for &(u, relation) in graph.edges_of(v) {
            if distance[u as usize] == FAR && !hidden.contains(v, relation, u) {
                distance[u as usize] = d + 1;
                order.push(u);
            }
        }
    }
}

impl Part {
    fn new(
        graph: &FactGraph,
        (id, query): (usize, &TailQuery),
        (which, dropped): (HiddenFacts, Option<DroppedFacts>),
        steps: usize,
        scratch: &mut Scratch,
    ) -> Self {
        let reciprocal = graph.reciprocal(query.relation);
        let num_relations = graph.num_relations() as u32;
        let hidden = Hidden { query, which, reciprocal, dropped, id: id as u64, num_relations };
        let Scratch { from_head, to_candidates, head_order, candidate_order, position } = scratch;
        head_order.push(query.head);
        search(graph, &hidden, steps, from_head, head_order);
        candidate_order.extend_from_slice(&query.candidates);
        candidate_order.sort_unstable();
        candidate_order.dedup();
        search(graph, &hidden, steps, to_candidates, candidate_order);
        let mut part = Self::default();
        let [before, after] = position;
        for l in 0..=steps {
            let pairs = || {
                let near =
                    head_order.iter().take_while(|&&v| usize::from(from_head[v as usize]) <= l);
                near.copied().filter(|&v| usize::from(to_candidates[v as usize]) <= steps - l)
            };
            let mut step = PartStep::default();
            let mut size = 0;
            for v in pairs() {
                after[v as usize] = size;
                size += 1;
                if l == 0 {
                    continue;
                }
                let first = step.src.len();
                for &(u, relation) in graph.edges_of(v) {
                    let entering = graph.reciprocal(relation);
                    if usize::from(from_head[u as usize]) < l && !hidden.contains(u, entering, v) {
                        step.src.push(before[u as usize]);
                        step.relations.push(entering);
                    }
                }
                step.counts.push((step.src.len() - first) as u32);
                step.kept.push(before[v as usize]);
            }
            part.sizes.push(size);
            part.heads.push(after[query.head as usize]);
            if l > 0 {
                part.steps.push(step);
                for &v in &*head_order {
                    before[v as usize] = NONE;
                }
            }
            std::mem::swap(before, after);
        }
        part.reached = query.candidates.iter().map(|&v| before[v as usize]).collect();
        for &v in &query.candidates {
            let edges = graph.edges_of(v).iter();
            let entering = edges.map(|&(u, relation)| (u, graph.reciprocal(relation)));
            let first = part.entering.1.len();
            let open = entering.filter(|&(u, relation)| !hidden.contains(u, relation, v));
            part.entering.1.extend(open.map(|(_, relation)| relation));
            part.entering.0.push((part.entering.1.len() - first) as u32);
        }
        for v in head_order.drain(..) {
            from_head[v as usize] = FAR;
            before[v as usize] = NONE;
            after[v as usize] = NONE;
        }
        for v in candidate_order.drain(..) {
            to_candidates[v as usize] = FAR;
        }
        part
    }
}

/// A relation in which every destination has at most one edge.
fn at_most_one(
    num_src: usize,
    sources: impl Iterator<Item = Option<u32>>,
) -> Result<Relation, GraphError> {
    let (mut offsets, mut src) = (vec![0], Vec::new());
    for source in sources {
        src.extend(source);
        offsets.push(src.len() as u32);
    }
    Relation::from_rows(num_src, offsets, src)
}

impl QueryPaths {
    /// Finds pairs and edges of the queries for `steps` steps. The result does not depend on the number of threads.
    pub(super) fn new(
        graph: &FactGraph,
        queries: &[TailQuery],
        which: HiddenFacts,
        dropped: Option<DroppedFacts>,
        steps: usize,
    ) -> Result<Self, GraphError> {
        let make = |scratch: &mut Scratch, q| Part::new(graph, q, (which, dropped), steps, scratch);
        let new = || Scratch::new(graph.num_entities());
        // A scratch costs as much as a search, so each thread takes several queries.
        let parts: Vec<Part> =
            queries.par_iter().enumerate().with_min_len(8).map_init(new, make).collect();
        let relations = 2 * graph.num_relations() as u32;
        let sizes: Vec<Vec<u32>> =
            (0..=steps).map(|l| parts.iter().map(|p| p.sizes[l]).collect()).collect();
        let total = |l: usize| sizes[l].iter().sum::<u32>() as usize;
        let heads = |l: usize| {
            let at = (0..)
                .zip(&parts)
                .flat_map(|(q, p)| (0..p.sizes[l]).map(move |i| (p.heads[l] == i).then_some(q)));
            at_most_one(queries.len(), at)
        };
        let mut path_steps = Vec::with_capacity(steps);
        for l in 1..=steps {
            let edges: usize = parts.iter().map(|p| p.steps[l - 1].src.len()).sum();
            let mut offsets = Vec::with_capacity(total(l) + 1);
            offsets.push(0);
            let (mut src, mut types) = (Vec::with_capacity(edges), Vec::with_capacity(edges));
            let (mut kept, mut base, mut end) = (Vec::with_capacity(total(l)), 0, 0);
            for (q, part) in (0..).zip(&parts) {
                let step = &part.steps[l - 1];
                offsets.extend(step.counts.iter().map(|&n| {
                    end += n;
                    end
                }));
                src.extend(step.src.iter().map(|u| u + base));
                types.extend(step.relations.iter().map(|r| q * relations + r));
                kept.extend(step.kept.iter().map(|&u| (u != NONE).then(|| u + base)));
                base += part.sizes[l - 1];
            }
            path_steps.push(PathStep {
                edges: Relation::from_rows(total(l - 1), offsets, src)?,
                types,
                kept: at_most_one(total(l - 1), kept.into_iter())?,
                heads: heads(l)?,
            });
        }
        let mut base = 0;
        let (mut reached, mut query_of) = (Vec::new(), Vec::new());
        let (mut offsets, mut entering, mut end) = (vec![0], Vec::new(), 0);
        for (q, part) in (0..).zip(&parts) {
            reached.extend(part.reached.iter().map(|&v| (v != NONE).then(|| v + base)));
            base += part.sizes[steps];
            query_of.resize(query_of.len() + part.reached.len(), q);
            offsets.extend(part.entering.0.iter().map(|&n| {
                end += n;
                end
            }));
            entering.extend(part.entering.1.iter().map(|r| q * relations + r));
        }
        Ok(Self {
            heads: heads(0)?,
            steps: path_steps,
            reached: at_most_one(total(steps), reached.into_iter())?,
            entering: Relation::from_rows(queries.len() * relations as usize, offsets, entering)?,
            query_of,
        })
    }
}

#[cfg(test)]
mod tests {
    use burn_gnn_data::Triple;

    use super::*;

    /// A path 0 -0-> 1 -1-> 2 -0-> 3, and an entity 4 without facts.
    fn path() -> FactGraph {
        let facts = [(0, 0, 1), (1, 1, 2), (2, 0, 3)];
        let facts = facts.map(|(head, relation, tail)| Triple { head, relation, tail });
        FactGraph::new(5, 2, &facts).unwrap()
    }

    fn query(candidates: &[u32], hidden: &[u32]) -> TailQuery {
        TailQuery { head: 0, relation: 0, candidates: candidates.into(), hidden: hidden.into() }
    }

    #[test]
    fn only_pairs_between_head_and_candidates_have_a_state() {
        let q = [query(&[2, 4], &[])];
        let paths = QueryPaths::new(&path(), &q, HiddenFacts::Answer, None, 2).unwrap();
        // Entity 1 after one step; entity 2 after two. Entity 0 is two steps from the candidate, so it is needed before
        // the first step alone.
        assert_eq!(paths.heads.dst(), [0]);
        assert_eq!((paths.steps[0].edges.src(), &*paths.steps[0].types), (&[0][..], &[0][..]));
        assert_eq!((paths.steps[1].edges.src(), &*paths.steps[1].types), (&[0][..], &[1][..]));
        assert_eq!(paths.steps[1].kept.num_edges(), 0);
        assert_eq!((paths.reached.src(), paths.reached.dst()), (&[0][..], &[0][..]));
        // Edges 1 -1-> 2 and 3 -2-> 2 enter entity 2.
        assert_eq!(paths.entering.src(), [1, 2]);
        assert_eq!(paths.entering.num_dst(), 2);
    }

    #[test]
    fn hidden_facts_are_not_read() {
        let q = [query(&[1], &[1])];
        let paths = QueryPaths::new(&path(), &q, HiddenFacts::Answer, None, 2).unwrap();
        assert_eq!(paths.reached.num_edges(), 0);
        // The edge 2 -3-> 1 is left, 0 -0-> 1 is hidden.
        assert_eq!(paths.entering.src(), [3]);
        // Relation 1 between the same entities is another fact.
        let q = [TailQuery { relation: 1, ..query(&[1], &[1]) }];
        let one = QueryPaths::new(&path(), &q, HiddenFacts::Answer, None, 2).unwrap();
        assert_eq!(one.reached.num_edges(), 1);
        let all = QueryPaths::new(&path(), &q, HiddenFacts::AllBetween, None, 2).unwrap();
        assert_eq!(all.reached.num_edges(), 0);
    }

    #[test]
    fn a_batch_is_the_union_of_its_queries() {
        let (a, b) = (query(&[2, 4, 1], &[]), TailQuery { head: 3, ..query(&[1], &[]) });
        let both = QueryPaths::new(&path(), &[a.clone(), b.clone()], HiddenFacts::Answer, None, 3)
            .unwrap();
        let [a, b] =
            [a, b].map(|q| QueryPaths::new(&path(), &[q], HiddenFacts::Answer, None, 3).unwrap());
        for (l, step) in both.steps.iter().enumerate() {
            let (a, b) = (&a.steps[l], &b.steps[l]);
            assert_eq!(step.edges.num_edges(), a.edges.num_edges() + b.edges.num_edges());
            assert_eq!(step.edges.num_dst(), a.edges.num_dst() + b.edges.num_dst());
            let moved = b.types.iter().map(|t| t + 4);
            assert_eq!(step.types, a.types.iter().copied().chain(moved).collect::<Vec<_>>());
        }
        assert_eq!(both.query_of, [0, 0, 0, 1]);
    }

    #[test]
    fn dropped_facts_are_dropped_in_both_directions() {
        let facts: Vec<Triple> =
            (0..400).map(|i| Triple { head: i, relation: 0, tail: i + 1 }).collect();
        let graph = FactGraph::new(401, 1, &facts).unwrap();
        let dropped = DroppedFacts { prob: 0.25, stream: Stream::new(1, "dropped facts", 0) };
        let q = TailQuery { head: 0, relation: 0, candidates: (1..400).collect(), hidden: vec![] };
        let paths = QueryPaths::new(&graph, &[q], HiddenFacts::Answer, Some(dropped), 1).unwrap();
        let [out, back] = [0, 1].map(|r| paths.entering.src().iter().filter(|&&t| t == r).count());
        // Facts 0 to 398 enter a candidate forwards, and facts 1 to 399 backwards.
        assert!((250..350).contains(&out) && out.abs_diff(back) <= 1, "{out} {back}");
    }
}
