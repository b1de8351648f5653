//! Requests hops from the owners of a frontier, and merges their replies.
//!
//! Rows are numbered as [`NeighborSampler`](burn_gnn_sampling::NeighborSampler) does: the new nodes of each source type
//! in the order of relations, destinations and edges.

use std::sync::Arc;

use burn_gnn_graph::{Relation, Schema};
use burn_gnn_sampling::{BatchGraphInfo, Block, MiniBatch, SampleKey};
use hashbrown::HashMap;

use super::batch::DistBatch;
use super::dist_sampler::DistSampler;
use super::hop_answers::{Degrees, Facts, Kind, degrees_of, joins_two};
use crate::comm::Failure;
use crate::error::DistError;
use crate::exchange::{Pack, Unpack, agree, round_trip};

/// Marks a source without a row.
const NONE: u32 = u32::MAX;

/// The nodes of a batch during sampling, and the data that their owners sent.
struct Nodes {
    /// Type-wise ids by row, per node type.
    ids: Vec<Vec<u64>>,
    /// Row of each node, in each tree: see [`Nodes::insert`].
    row: Vec<HashMap<u64, u32>>,
    /// Number of nodes of each type in the whole graph.
    totals: Vec<u64>,
    trees: Option<Trees>,
    originals: Vec<Vec<u64>>,
    /// Out-degrees per edge type, by row of the source type.
    out_degrees: Vec<Vec<u32>>,
    /// In-degrees per edge type, by row of the destination type: of all rows for edge types on one node type, otherwise
    /// of rows that are destinations.
    in_degrees: Vec<Vec<u32>>,
}

/// Disjoint trees, one per seed.
struct Trees {
    /// Tree by row, per node type.
    of_rows: Vec<Vec<u32>>,
    /// Type and row of each root.
    roots: Vec<(usize, u32)>,
    times: Option<Vec<i64>>,
}

/// Rows of a batch, grouped by the owners of their nodes.
struct ByOwner {
    /// Per node type, the owner of each row.
    owner: Vec<Vec<u32>>,
    /// For each owner and type, row numbers on this rank and on the owner.
    here: Vec<Vec<Vec<u32>>>,
    there: Vec<Vec<Vec<u32>>>,
}

/// Reply of one owner for one node type.
struct Sources {
    /// Type-wise ids of the sources that are not destinations.
    ids: Vec<u64>,
    originals: Vec<u64>,
    /// One list per [`degrees_of`] the type.
    degrees: Vec<Vec<u32>>,
    /// Row in the batch of each source, destinations first; [`NONE`] until the first edge from it is merged.
    rows: Vec<u32>,
    /// Number of sources without facts, which come first.
    without_ids: usize,
}

/// Reply of one owner for one relation, which is read sequentially.
struct Found {
    counts: std::vec::IntoIter<u32>,
    in_degrees: std::vec::IntoIter<u32>,
    /// For each edge: source row and local id on the owner, and original id. Their number is the sum of `counts`.
    src: Vec<u32>,
    ids: Vec<u32>,
    originals: Vec<u64>,
    /// Number of edges read so far.
    read: usize,
}

/// Edges of one relation of one block.
struct Edges {
    indptr: Vec<u32>,
    src: Vec<u32>,
    ids: Vec<u64>,
    originals: Vec<u64>,
}

/// Sizes and edges of one block.
struct Hop {
    num_src: Vec<usize>,
    num_dst: Vec<usize>,
    relations: Vec<Relation>,
    ids: Vec<Vec<u64>>,
    originals: Vec<Arc<[u64]>>,
}

impl DistSampler {
    /// Samples a batch around validated seeds per node type, over edges before `times` if given. `excluded` are own
    /// edges by local id.
    pub(crate) fn grow(
        &self,
        seeds: &[Vec<u64>],
        times: Option<&[Vec<i64>]>,
        excluded: &[Vec<u32>],
        key: SampleKey,
    ) -> Result<DistBatch, DistError> {
        let (schema, inner) = (self.graph.schema(), &self.graph.inner);
        let (types, etypes) = (schema.ntypes().len(), schema.etypes().len());
        let kind = Kind { disjoint: self.disjoint || times.is_some(), timed: times.is_some() };
        let totals: Vec<u64> = (0..types).map(|t| inner.nodes.total(t)).collect();
        let bounds = |times: &[Vec<i64>]| {
            times.iter().flatten().map(|&time| self.whole.visible_before(time)).collect()
        };
        let trees = if kind.disjoint {
            let count = seeds.iter().map(|ids| ids.len() as u64).sum::<u64>();
            // The key of a row combines tree and id in one number.
            let limit = (u64::MAX / totals.iter().copied().max().unwrap_or(1).max(1))
                .min(u64::from(u32::MAX));
            let checked = if count <= limit {
                Ok(())
            } else {
                Err(DistError::TooLarge { what: "seeds with disjoint trees", count, limit })
            };
            agree(&*self.graph.comm, "trees", checked)?;
            Some(Trees { of_rows: vec![vec![]; types], roots: vec![], times: times.map(bounds) })
        } else {
            None
        };
        let mut nodes = Nodes {
            ids: vec![vec![]; types],
            row: vec![HashMap::new(); types],
            totals: totals.clone(),
            trees,
            originals: vec![vec![]; types],
            out_degrees: vec![vec![]; etypes],
            in_degrees: vec![vec![]; etypes],
        };
        let rows = seeds
            .iter()
            .enumerate()
            .map(|(t, ids)| ids.iter().map(|&id| nodes.plant(t, id)).collect())
            .collect();
        let mut hops = (0..self.hops())
            .map(|hop| self.hop(hop, &mut nodes, kind, excluded, key))
            .collect::<Result<Vec<_>, _>>()?;
        hops.reverse();
        if kind.timed && !hops.is_empty() {
            self.degrees(&mut nodes)?;
        }
        let totals = (totals, (0..etypes).map(|e| inner.edges.total(e)).collect());
        let (mut blocks, mut edges) = (vec![], vec![]);
        if !hops.is_empty() {
            let facts = BatchGraphInfo::new(
                schema,
                totals,
                nodes.originals,
                (nodes.in_degrees, nodes.out_degrees),
            )?;
            for hop in hops {
                blocks.push(
                    Block::from_parts(
                        &facts,
                        hop.num_src,
                        hop.num_dst,
                        hop.relations,
                        hop.originals,
                    )?
                    .with_key(key),
                );
                edges.push(hop.ids);
            }
        }
        let roots = nodes.trees.map(|trees| trees.of_rows);
        Ok(DistBatch {
            schema: self.graph.schema().clone(),
            mini: MiniBatch { blocks, seeds: rows, roots },
            nodes: nodes.ids,
            edges,
        })
    }

    fn by_owner(&self, nodes: &Nodes) -> ByOwner {
        let (types, ranks) = (nodes.ids.len(), self.graph.comm.size());
        let empty = || vec![vec![vec![]; types]; ranks];
        let mut out = ByOwner { owner: vec![vec![]; types], here: empty(), there: empty() };
        for (t, ids) in nodes.ids.iter().enumerate() {
            for (row, &id) in (0u32..).zip(ids) {
                let (p, position) = self.graph.inner.nodes.locate(t, id);
                out.owner[t].push(p as u32);
                out.here[p][t].push(row);
                out.there[p][t].push(position);
            }
        }
        out
    }

    /// Requests the degrees of all rows before the times of their trees from the owners of the nodes.
    fn degrees(&self, nodes: &mut Nodes) -> Result<(), DistError> {
        let (comm, schema) = (&*self.graph.comm, self.graph.schema());
        let ByOwner { here, there, .. } = self.by_owner(nodes);
        let pack = |(here, there): (&Vec<Vec<u32>>, &Vec<Vec<u32>>)| {
            let mut p = Pack::default();
            for (t, (rows, positions)) in here.iter().zip(there).enumerate() {
                p.list(positions);
                p.list(&rows.iter().map(|&row| nodes.time(t, row)).collect::<Vec<i64>>());
            }
            p
        };
        let requests = Ok(here.iter().zip(&there).map(pack).collect());
        let answers = round_trip(comm, ["degrees: nodes", "degrees"], requests, |request| {
            self.serve_degrees(request)
        })?;
        for (mut answer, here) in answers.into_iter().zip(&here) {
            for (t, rows) in here.iter().enumerate() {
                for which in degrees_of(schema, t) {
                    let degrees = answer.list_of::<u32>(rows.len())?;
                    rows.iter()
                        .zip(degrees)
                        .for_each(|(&row, degree)| put(nodes.list_of(which), row as usize, degree));
                }
            }
        }
        Ok(())
    }

    fn hop(
        &self,
        hop: usize,
        nodes: &mut Nodes,
        kind: Kind,
        excluded: &[Vec<u32>],
        key: SampleKey,
    ) -> Result<Hop, DistError> {
        let (comm, schema) = (&*self.graph.comm, self.graph.schema());
        let num_dst: Vec<usize> = nodes.ids.iter().map(Vec::len).collect();
        let ByOwner { owner, here, there } = self.by_owner(nodes);
        let pack = |(here, there): (&Vec<Vec<u32>>, &Vec<Vec<u32>>)| {
            let mut p = Pack::default();
            for (t, (rows, positions)) in here.iter().zip(there).enumerate() {
                p.list(positions);
                if let Some(trees) = &nodes.trees {
                    p.list(
                        &rows.iter().map(|&row| trees.of_rows[t][row as usize]).collect::<Vec<_>>(),
                    );
                }
            }
            if let Some(trees) = &nodes.trees {
                // Seeds come without facts, which their owners send in the first hop.
                let root = |&(t, row): &(usize, u32)| {
                    if hop == 0 { 0 } else { nodes.originals[t][row as usize] as u32 }
                };
                p.list(&trees.roots.iter().map(root).collect::<Vec<_>>());
                trees.times.iter().for_each(|times| p.list(times));
            }
            p
        };
        let requests = Ok(here.iter().zip(&there).map(pack).collect());
        let answers = round_trip(comm, ["neighbours: nodes", "neighbours"], requests, |request| {
            self.serve(hop, request, kind, excluded, key)
        })?;

        let (mut sources, mut found) = (vec![], vec![]);
        for (mut answer, here) in answers.into_iter().zip(here) {
            let asked: Vec<usize> = here.iter().map(Vec::len).collect();
            let given = self.sources(&self.facts(hop, kind), here, nodes, &mut answer)?;
            found.push(self.found(&self.facts(hop, kind), &given, &asked, &mut answer)?);
            sources.push(given);
        }
        for t in 0..num_dst.len() {
            nodes.reserve(
                t,
                degrees_of(schema, t),
                sources.iter().map(|given| given[t].ids.len()).sum(),
            );
        }
        let mut all: Vec<Edges> = Vec::with_capacity(schema.etypes().len());
        #[allow(clippy::needless_range_loop)] // The index is used for several lists.
        for e in 0..schema.etypes().len() {
            let (s, d) = schema.endpoints(e);
            let mut edges =
                Edges::with_room(owner[d].len(), found.iter().map(|f| f[e].src.len()).sum());
            for (row, &p) in owner[d].iter().enumerate() {
                let tree = nodes.trees.as_ref().map_or(0, |trees| trees.of_rows[d][row]);
                let (p, of) = (p as usize, &mut found[p as usize][e]);
                nodes.in_degrees[e].extend(of.in_degrees.next());
                let next = of.read..of.read + of.counts.next().unwrap_or(0) as usize;
                of.read = next.end;
                let meet = |&src: &u32| nodes.meet(s, tree, schema, &mut sources[p][s], src);
                edges.src.extend(of.src[next.clone()].iter().map(meet));
                edges.ids.extend(
                    of.ids[next.clone()]
                        .iter()
                        .map(|&id| self.graph.inner.edges.id_on(e, p, u64::from(id))),
                );
                edges.originals.extend_from_slice(&of.originals[next]);
                edges.indptr.push(edges.src.len() as u32);
            }
            all.push(edges);
        }
        let num_src: Vec<usize> = nodes.ids.iter().map(Vec::len).collect();
        let mut out = Hop { num_src, num_dst, relations: vec![], ids: vec![], originals: vec![] };
        for (e, edges) in all.into_iter().enumerate() {
            let (s, d) = schema.endpoints(e);
            out.relations.push(Relation::from_csc(
                out.num_src[s],
                out.num_dst[d],
                &edges.indptr,
                &edges.src,
                None,
            )?);
            out.ids.push(edges.ids);
            out.originals.push(edges.originals.into());
        }
        Ok(out)
    }

    /// Decodes the reply of an owner for the nodes of rows `here`.
    fn sources(
        &self,
        facts: &Facts,
        here: Vec<Vec<u32>>,
        nodes: &mut Nodes,
        answer: &mut Unpack,
    ) -> Result<Vec<Sources>, Failure> {
        let (schema, all) = (self.graph.schema(), facts.all);
        let mut out = Vec::with_capacity(here.len());
        for (t, mut rows) in here.into_iter().enumerate() {
            let ids = answer.list::<u64>()?;
            if ids.iter().any(|&id| id >= self.graph.inner.nodes.total(t)) {
                return Err(answer.malformed());
            }
            let (dst, count) = (rows.len(), ids.len() + if all { rows.len() } else { 0 });
            let originals = answer.list_of::<u64>(count)?;
            let lists = degrees_of(schema, t).filter(|_| facts.degrees);
            let degrees =
                lists.map(|_| answer.list_of::<u32>(count)).collect::<Result<Vec<_>, _>>()?;
            rows.resize(dst + ids.len(), NONE);
            let of =
                Sources { ids, originals, degrees, rows, without_ids: if all { 0 } else { dst } };
            if all {
                for (i, &row) in of.rows[..dst].iter().enumerate() {
                    nodes.learn(t, schema, row, &of, i);
                }
            }
            out.push(of);
        }
        Ok(out)
    }

    /// Decodes the reply of an owner for the in-edges of the requested nodes; `asked` is their number per node type.
    fn found(
        &self,
        facts: &Facts,
        given: &[Sources],
        asked: &[usize],
        answer: &mut Unpack,
    ) -> Result<Vec<Found>, Failure> {
        let schema = self.graph.schema();
        let relation = |e: usize| {
            let (s, d) = schema.endpoints(e);
            let counts = answer.list_of::<u32>(asked[d])?;
            let in_degrees = if facts.in_degrees && joins_two(schema, e) {
                answer.list_of::<u32>(asked[d])?
            } else {
                vec![]
            };
            let total = counts.iter().map(|&n| n as usize).sum();
            let (src, ids, originals) = (
                answer.list_of::<u32>(total)?,
                answer.list_of::<u32>(total)?,
                answer.list_of::<u64>(total)?,
            );
            if src.iter().any(|&u| u as usize >= given[s].rows.len()) {
                return Err(answer.malformed());
            }
            Ok(Found {
                counts: counts.into_iter(),
                in_degrees: in_degrees.into_iter(),
                src,
                ids,
                originals,
                read: 0,
            })
        };
        (0..schema.etypes().len()).map(relation).collect()
    }
}

impl Edges {
    fn with_room(dst: usize, edges: usize) -> Self {
        let mut indptr = Vec::with_capacity(dst + 1);
        indptr.push(0);
        Self {
            indptr,
            src: Vec::with_capacity(edges),
            ids: Vec::with_capacity(edges),
            originals: Vec::with_capacity(edges),
        }
    }
}

impl Nodes {
    /// Reserves memory for new nodes of a type.
    fn reserve(&mut self, t: usize, degrees: impl Iterator<Item = Degrees>, new: usize) {
        let rows = self.ids[t].len() + new;
        self.ids[t].reserve(new);
        self.row[t].reserve(new);
        let room = |len: usize| rows.saturating_sub(len);
        let len = self.originals[t].len();
        self.originals[t].reserve(room(len));
        for which in degrees {
            let list = self.list_of(which);
            list.reserve(room(list.len()));
        }
    }
    /// Inserts a seed and returns its row. With disjoint trees, it starts the next tree.
    fn plant(&mut self, t: usize, id: u64) -> u32 {
        let Some(trees) = &mut self.trees else { return self.insert(t, 0, id).0 };
        let tree = trees.roots.len() as u32;
        trees.roots.push((t, self.ids[t].len() as u32));
        self.insert(t, tree, id).0
    }
    /// Inserts a node of a tree. Returns its row and whether it is new.
    fn insert(&mut self, t: usize, tree: u32, id: u64) -> (u32, bool) {
        let next = self.ids[t].len() as u32;
        let row = *self.row[t].entry(u64::from(tree) * self.totals[t] + id).or_insert(next);
        if row == next {
            self.ids[t].push(id);
            self.trees.iter_mut().for_each(|trees| trees.of_rows[t].push(tree));
        }
        (row, row == next)
    }
    /// Time of the tree of a row.
    fn time(&self, t: usize, row: u32) -> i64 {
        let time =
            |trees: &Trees| Some(trees.times.as_ref()?[trees.of_rows[t][row as usize] as usize]);
        self.trees.as_ref().and_then(time).unwrap_or(i64::MAX)
    }
    /// Row of source `src` in the reply of an owner.
    #[inline]
    fn meet(&mut self, t: usize, tree: u32, schema: &Schema, of: &mut Sources, src: u32) -> u32 {
        let src = src as usize;
        if of.rows[src] == NONE {
            let new = src - (of.rows.len() - of.ids.len());
            let (row, is_new) = self.insert(t, tree, of.ids[new]);
            of.rows[src] = row;
            if is_new {
                self.learn(t, schema, row, of, src);
            }
        }
        of.rows[src]
    }
    /// Stores the facts that an owner sent about its source `src`, which has row `row`.
    fn learn(&mut self, t: usize, schema: &Schema, row: u32, of: &Sources, src: usize) {
        let (at, row) = (src - of.without_ids, row as usize);
        put(&mut self.originals[t], row, of.originals[at]);
        for (which, degrees) in degrees_of(schema, t).zip(&of.degrees) {
            put(self.list_of(which), row, degrees[at]);
        }
    }
    /// A list of degrees, by row.
    fn list_of(&mut self, which: Degrees) -> &mut Vec<u32> {
        match which {
            Degrees::In(e) => &mut self.in_degrees[e],
            Degrees::Out(e) => &mut self.out_degrees[e],
        }
    }
}

/// Writes entry `at`. Entries before it may be written later.
fn put<T: Copy + Default>(list: &mut Vec<T>, at: usize, value: T) {
    if list.len() <= at {
        list.resize(at + 1, T::default());
    }
    list[at] = value;
}
