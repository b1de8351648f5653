//! Queries degrees, endpoints and ids of edges across ranks.

use burn_gnn_graph::{EdgeKey, GraphError, NodeKey};
use bytemuck::Pod;

use super::dist_graph::DistGraph;
use super::fetch::{Counters, Wanted, fetch_one};
use super::owners::Owners;
use crate::error::DistError;
use crate::exchange::{Pack, Unpack, agree, round_trip};

/// In-edges of some nodes, by type-wise ids; see [`DistGraph::in_subgraph`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InEdges {
    /// Source of each edge.
    pub src: Vec<u64>,
    /// Destination of each edge.
    pub dst: Vec<u64>,
    /// Id of each edge.
    pub ids: Vec<u64>,
}

impl DistGraph {
    /// Number of edges of a type into each of `nodes`, in the whole graph. Collective.
    ///
    /// # Errors
    /// On all ranks: an unknown or ambiguous type; an id that is out of range for destinations.
    pub fn in_degrees(&self, etype: impl EdgeKey, nodes: &[u64]) -> Result<Vec<u32>, DistError> {
        let table = self.etype(etype).and_then(|t| {
            let (csc, d) = (self.inner.local.relations()[t].csc(), self.schema().endpoints(t).1);
            Wanted::made(&self.inner.nodes, d, nodes, move |row| csc.row(row).len() as u32)
        });
        self.read_rows("in-degrees", table)
    }

    /// Number of edges of a type out of each of `nodes`, in the whole graph. Collective.
    ///
    /// # Errors
    /// On all ranks: an unknown or ambiguous type; an id that is out of range for sources.
    pub fn out_degrees(&self, etype: impl EdgeKey, nodes: &[u64]) -> Result<Vec<u32>, DistError> {
        let table = self.etype(etype).and_then(|t| {
            let (degrees, s) = (&self.inner.out_degrees[t], self.schema().endpoints(t).0);
            Wanted::made(&self.inner.nodes, s, nodes, move |row| degrees[row])
        });
        self.read_rows("out-degrees", table)
    }

    /// Sources and destinations of edges of a type, by type-wise ids. Collective.
    ///
    /// # Errors
    /// On all ranks: an unknown or ambiguous type; an id out of range.
    pub fn find_edges(
        &self,
        etype: impl EdgeKey,
        edges: &[u64],
    ) -> Result<(Vec<u64>, Vec<u64>), DistError> {
        let table = self.etype(etype).and_then(|t| {
            let (inner, (s, d)) = (&self.inner, self.schema().endpoints(t));
            let relation = &inner.local.relations()[t];
            let endpoints = move |row: usize| {
                [inner.typewise(s, relation.src()[row]), inner.typewise(d, relation.dst()[row])]
            };
            Wanted::made(&inner.edges, t, edges, endpoints)
        });
        let endpoints: Vec<[u64; 2]> = self.read_rows("endpoints of edges", table)?;
        Ok(endpoints.into_iter().map(|[u, v]| (u, v)).unzip())
    }

    /// Ids of the edges `u[i] -> v[i]` of a type. Of parallel edges the first is returned. Collective.
    ///
    /// # Errors
    /// On all ranks: an unknown or ambiguous type; lists of different lengths; an id out of range; a pair without an
    /// edge.
    pub fn edge_ids(
        &self,
        etype: impl EdgeKey,
        u: &[u64],
        v: &[u64],
    ) -> Result<Vec<u64>, DistError> {
        let (comm, inner) = (&*self.comm, &self.inner);
        let checked = self.etype(etype).and_then(|t| {
            let (s, d) = self.schema().endpoints(t);
            if u.len() != v.len() {
                let (expected, found) =
                    (format!("one per entry of `u`, {}", u.len()), v.len().to_string());
                return Err(DistError::Config { arg: "v", expected, found });
            }
            inner.nodes.check(s, u)?;
            inner.nodes.check(d, v)?;
            Ok((t, s, d))
        });
        let (t, s, d) = agree(comm, "edge ids: arguments", checked)?;
        // The owner of the destination owns the edge.
        let owners: Vec<(usize, u32)> = v.iter().map(|&v| inner.nodes.locate(d, v)).collect();
        let mut pairs = vec![(vec![], vec![]); comm.size()];
        for (&u, &(owner, row)) in u.iter().zip(&owners) {
            pairs[owner].0.push(u);
            pairs[owner].1.push(row);
        }
        let requests =
            pairs.iter().map(|(u, rows)| Pack::default().with::<u64>(u).with::<u32>(rows));
        let relation = &inner.local.relations()[t];
        let answer = |mut request: Unpack| {
            let u = request.list::<u64>()?;
            let rows = request.list_of::<u32>(u.len())?;
            let (csc, count) = (relation.csc(), inner.nodes.count(d));
            let find = |(&u, &row): (&u64, &u32)| {
                if row as usize >= count {
                    return Err(request.malformed());
                }
                let found = inner
                    .local_node(s, u)
                    .and_then(|u| csc.row(row as usize).find(|&p| csc.indices()[p] == u));
                Ok(found.map_or(u64::MAX, |p| inner.edges.id(t, u64::from(csc.edge_id(p)))))
            };
            let ids = u.iter().zip(&rows).map(find).collect::<Result<Vec<_>, _>>()?;
            Ok(Pack::numbers(&ids))
        };
        let answers =
            round_trip(comm, ["edge ids: pairs", "edge ids"], Ok(requests.collect()), answer)?;
        let mut answers: Vec<_> = answers.iter().map(|a| a.numbers::<u64>().into_iter()).collect();
        let next = |&(owner, _): &(usize, u32)| answers[owner].next().unwrap_or(u64::MAX);
        let ids: Vec<u64> = owners.iter().map(next).collect();
        let missing = ids.iter().position(|&id| id == u64::MAX);
        let found = missing.map_or(Ok(ids), |position| {
            let relation = self.schema().etypes()[t].to_string();
            Err(DistError::NoSuchEdge { relation, position, src: u[position], dst: v[position] })
        });
        agree(comm, "edge ids: result", found)
    }

    /// All in-edges of `nodes`, which are listed per node type. The result has the edges of each edge type, in the
    /// order of the nodes and, for one node, in ascending edge id. Collective.
    ///
    /// # Errors
    /// On all ranks: an unknown type or one that occurs twice; an id out of range.
    pub fn in_subgraph<N: NodeKey, I: AsRef<[u64]>>(
        &self,
        nodes: impl IntoIterator<Item = (N, I)>,
    ) -> Result<Vec<InEdges>, DistError> {
        let (comm, inner, schema) = (&*self.comm, &self.inner, self.schema());
        let nodes = self.select_nodes(nodes);
        let mut rows: Vec<Vec<Vec<u32>>> =
            vec![vec![vec![]; inner.nodes.names().len()]; comm.size()];
        let requests = nodes.map(|nodes| {
            for (t, ids) in nodes.iter().enumerate() {
                for &id in ids {
                    let (owner, row) = inner.nodes.locate(t, id);
                    rows[owner][t].push(row);
                }
            }
            let pack = |by_type: &Vec<Vec<u32>>| {
                by_type.iter().fold(Pack::default(), |p, rows| p.with(rows))
            };
            (rows.iter().map(pack).collect(), nodes)
        });
        let (requests, nodes) = match requests {
            Ok((requests, nodes)) => (Ok(requests), nodes),
            Err(e) => (Err(e), vec![]),
        };
        let answer = |mut request: Unpack| {
            let rows = (0..inner.nodes.names().len())
                .map(|t| inner.nodes.read_rows(t, &mut request))
                .collect::<Result<Vec<_>, _>>()?;
            let mut out = Pack::default();
            for (t, r) in inner.local.relations().iter().enumerate() {
                let (s, d) = schema.endpoints(t);
                let csc = r.csc();
                let counts: Vec<u32> =
                    rows[d].iter().map(|&v| csc.row(v as usize).len() as u32).collect();
                let positions = || rows[d].iter().flat_map(|&v| csc.row(v as usize));
                let src: Vec<u64> =
                    positions().map(|p| inner.typewise(s, csc.indices()[p])).collect();
                let ids: Vec<u64> =
                    positions().map(|p| inner.edges.id(t, u64::from(csc.edge_id(p)))).collect();
                out.list(&counts);
                out.list(&src);
                out.list(&ids);
            }
            Ok(out)
        };
        let mut readers = round_trip(comm, ["in-edges: nodes", "in-edges"], requests, answer)?;
        let mut out = Vec::with_capacity(schema.etypes().len());
        for t in 0..schema.etypes().len() {
            let (_, d) = schema.endpoints(t);
            let mut lists = Vec::with_capacity(comm.size());
            for (reader, rows) in readers.iter_mut().zip(&rows) {
                let (counts, src) = (reader.list_of::<u32>(rows[d].len())?, reader.list::<u64>()?);
                if counts.iter().map(|&n| n as usize).sum::<usize>() != src.len() {
                    return Err(reader.malformed().into());
                }
                let ids = reader.list_of::<u64>(src.len())?;
                lists.push((counts.into_iter(), src.into_iter(), ids.into_iter()));
            }
            let mut found = InEdges::default();
            for &v in &nodes[d] {
                let (counts, src, ids) = &mut lists[inner.nodes.locate(d, v).0];
                let n = counts.next().unwrap_or(0) as usize;
                found.src.extend(src.take(n));
                found.ids.extend(ids.take(n));
                found.dst.resize(found.src.len(), v);
            }
            out.push(found);
        }
        Ok(out)
    }

    /// Orders lists of ids by node type and checks the range of ids.
    pub(crate) fn select_nodes<N: NodeKey, I: AsRef<[u64]>>(
        &self,
        lists: impl IntoIterator<Item = (N, I)>,
    ) -> Result<Vec<Vec<u64>>, DistError> {
        self.select(&self.inner.nodes, lists, |key| self.schema().ntype(key))
    }

    /// Orders lists of ids by edge type and checks the range of ids.
    pub(crate) fn select_edges<K: EdgeKey, I: AsRef<[u64]>>(
        &self,
        lists: impl IntoIterator<Item = (K, I)>,
    ) -> Result<Vec<Vec<u64>>, DistError> {
        self.select(&self.inner.edges, lists, |key| self.schema().etype(key))
    }

    /// Orders lists of ids by type and checks the range of ids. `number` returns the number of a type.
    pub(crate) fn select<K, I: AsRef<[u64]>>(
        &self,
        owners: &Owners,
        lists: impl IntoIterator<Item = (K, I)>,
        number: impl Fn(K) -> Result<usize, GraphError>,
    ) -> Result<Vec<Vec<u64>>, DistError> {
        let mut out: Vec<Option<Vec<u64>>> = vec![None; owners.names().len()];
        for (key, ids) in lists {
            let t = number(key)?;
            owners.check(t, ids.as_ref())?;
            if out[t].replace(ids.as_ref().to_vec()).is_some() {
                return Err(owners.named_twice(t).into());
            }
        }
        Ok(out.into_iter().map(Option::unwrap_or_default).collect())
    }

    fn etype(&self, etype: impl EdgeKey) -> Result<usize, DistError> {
        Ok(self.schema().etype(etype)?)
    }
    pub(crate) fn read_rows<T: Pod>(
        &self,
        name: &'static str,
        table: Result<Wanted<'_>, DistError>,
    ) -> Result<Vec<T>, DistError> {
        let what = table
            .as_ref()
            .map_or_else(|_| String::new(), |w| format!("{}/{}", w.owners.what(), w.ty));
        let rows = fetch_one(&*self.comm, name, &what, table, &Counters::default())?;
        Ok(bytemuck::pod_collect_to_vec(&rows))
    }
}
