//! Global negative sampling: pairs of nodes without an edge, from all pairs of the graph.

use burn_gnn_graph::internal::room;
use burn_gnn_sampling::internal::{Draws, FreePairs};
use burn_gnn_sampling::{NegativeSampler, Negatives, SampleKey};

use crate::comm::Communicator;
use crate::error::DistError;
use crate::exchange::{Pack, Unpack, agree, round_trip};
use crate::graph::DistGraph;

/// Samples the same pairs as [`NegativeSampler::global`] on one machine, keyed by their positions in the batch of all
/// ranks. Ids are those of the input graph.
///
/// Drawing a pair needs no communication. The owner of the source checks whether the pair has an edge.
#[derive(Debug)]
pub(super) struct GlobalNegatives {
    etype: usize,
    /// Number of pairs for each seed edge.
    k: usize,
    /// Sampler with the edges of own sources.
    own: NegativeSampler,
    /// All pairs without an edge; `None` if edges have times, since these pairs then depend on the time.
    free: Option<FreePairs>,
}

/// A drawn pair that has not been checked yet.
struct Open<'a> {
    /// Position of the pair in the result.
    at: usize,
    time: i64,
    draws: Draws<'a>,
}

/// Queries to the owners of sources: a source, a number and a time each.
#[derive(Default)]
struct Queries {
    src: Vec<u32>,
    numbers: Vec<u32>,
    times: Vec<i64>,
}

impl Queries {
    fn push(&mut self, src: u32, number: u32, time: i64) {
        self.src.push(src);
        self.numbers.push(number);
        self.times.push(time);
    }
}

/// Time of pairs if edges have no times.
const ANY_TIME: i64 = i64::MAX;

impl GlobalNegatives {
    /// A sampler of `k` pairs for each seed edge, from a sampler with the edges of own sources. Collective.
    pub(super) fn new(
        g: &DistGraph,
        etype: usize,
        k: usize,
        own: NegativeSampler,
        timed: bool,
    ) -> Result<Self, DistError> {
        let mut new = Self { etype, k, own, free: None };
        if !timed {
            new.free = new.free_pairs(g, &[ANY_TIME])?.pop();
        }
        Ok(new)
    }
    /// Number of pairs for each seed edge.
    pub(super) fn k(&self) -> usize {
        self.k
    }

    /// Samples pairs for own seed edges, given by their positions in the batch, with times if edges have times.
    /// Collective.
    pub(super) fn draw(
        &self,
        g: &DistGraph,
        positions: &[u64],
        times: Option<&[i64]>,
        key: SampleKey,
    ) -> Result<Negatives, DistError> {
        let (n, m) = self.totals(g);
        let pairs = (positions.len() as u128).saturating_mul(self.k as u128);
        // Unchecked pairs need more memory than checked ones.
        let open = room::<Open<'_>>(
            pairs,
            || format!("draws of {pairs} negative pairs"),
            "sample fewer at a time",
        );
        let reserved =
            open.and_then(|open| Ok((open, Negatives::with_room(pairs)?))).map_err(DistError::from);
        let stream = self.own.global_stream(key);
        let (mut open, mut out) = agree(&*g.comm, "global negatives: number", reserved)?;
        for (i, &position) in positions.iter().enumerate() {
            let time = times.map_or(ANY_TIME, |times| times[i]);
            for j in 0..self.k {
                let draws = Draws::new(&stream, position * self.k as u64 + j as u64);
                open.push(Open { at: i * self.k + j, time, draws });
            }
        }
        out.src.resize(open.len(), 0);
        out.dst.resize(open.len(), 0);
        out.is_strict.resize(open.len(), false);
        // Without times, pairs without an edge are numbered, so every draw succeeds.
        let mut tries = if times.is_none() { 0 } else { NegativeSampler::TRIES };
        while any(&*g.comm, !open.is_empty())? {
            if tries == 0 {
                self.exactly(g, open, &mut out)?;
                break;
            }
            tries -= 1;
            let mut asked = Queries::default();
            for o in &mut open {
                let (u, v) = o.draws.pair(n, m);
                asked.push(u, v, o.time);
            }
            let has_edge =
                |u: u32, v: u32, time: i64| Some(u32::from(self.own.has_edge(u, v, Some(time))));
            let has_edge = self.query_owners(g, "negatives: edges", &asked, has_edge)?;
            let mut answers = has_edge.iter().zip(asked.src.iter().zip(&asked.numbers));
            open.retain(|o| {
                let Some((0, (&u, &v))) = answers.next() else { return true };
                put(&mut out, o.at, (u, v), true);
                false
            });
        }
        Ok(out)
    }

    /// Draws each of these pairs from all pairs without an edge, or from all pairs if every pair has an edge.
    /// Collective.
    fn exactly(
        &self,
        g: &DistGraph,
        open: Vec<Open<'_>>,
        out: &mut Negatives,
    ) -> Result<(), DistError> {
        let (n, m) = self.totals(g);
        let (mut asked, mut positions) = (Queries::default(), vec![]);
        let mut open = open;
        open.sort_by_key(|o| o.time);
        let mut rest = open.into_iter().peekable();
        // One time at a time, because the pairs of a time need a number for every source.
        loop {
            let time = rest.peek().map(|o| o.time);
            if !any(&*g.comm, time.is_some())? {
                break;
            }
            let of_time =
                if self.free.is_some() { None } else { self.free_pairs(g, time.as_slice())?.pop() };
            while let Some(mut o) = rest.next_if(|o| Some(o.time) == time) {
                match self.free.as_ref().or(of_time.as_ref()).filter(|free| free.total() > 0) {
                    None => put(out, o.at, o.draws.pair(n, m), false),
                    Some(free) => {
                        let (u, position) = free.find(o.draws.below_wide(free.total()));
                        asked.push(u, position, o.time);
                        positions.push(o.at);
                    }
                }
            }
        }
        let free = |u: u32, position: u32, time: i64| {
            let is_one = u64::from(position) < self.own.num_free(u, Some(time));
            is_one.then(|| self.own.free(u, position, Some(time)))
        };
        let dst = self.query_owners(g, "negatives: pairs without an edge", &asked, free)?;
        for ((at, u), v) in positions.into_iter().zip(asked.src).zip(dst) {
            put(out, at, (u, v), true);
        }
        Ok(())
    }

    /// Counts all pairs without an edge before each of these times, which may differ between ranks. Collective.
    fn free_pairs(&self, g: &DistGraph, times: &[i64]) -> Result<Vec<FreePairs>, DistError> {
        let (comm, s) = (&*g.comm, g.schema().endpoints(self.etype).0);
        let requests = vec![Pack::default().with(times); comm.size()];
        let answer = |mut request: Unpack| {
            let times = request.list::<i64>()?;
            let mut out = Pack::default();
            if !times.is_empty() {
                // The constructor has checked that ids fit into `u32`.
                let own: Vec<u32> = g.inner.own_originals(s).iter().map(|&u| u as u32).collect();
                out.list(&own);
                for time in times {
                    let free = |&u: &u32| self.own.num_free(u, Some(time)) as u32;
                    out.list(&own.iter().map(free).collect::<Vec<_>>());
                }
            }
            Ok(out)
        };
        let names = ["pairs without an edge: times", "pairs without an edge"];
        let answers = round_trip(comm, names, Ok(requests), answer)?;
        if times.is_empty() {
            return Ok(vec![]);
        }
        let mut counts = vec![vec![0u64; self.totals(g).0 as usize]; times.len()];
        for mut answer in answers {
            let src = answer.list::<u32>()?;
            for counts in &mut counts {
                for (&u, count) in src.iter().zip(answer.list_of::<u32>(src.len())?) {
                    *counts.get_mut(u as usize).ok_or_else(|| answer.malformed())? =
                        u64::from(count);
                }
            }
        }
        Ok(counts.into_iter().map(|counts| FreePairs::new(counts.into_iter())).collect())
    }

    /// Sends queries to the owners of the sources and returns their replies, in the order of the queries. `answer`
    /// returns `None` for an invalid query. Collective.
    fn query_owners(
        &self,
        g: &DistGraph,
        name: &str,
        queries: &Queries,
        answer: impl Fn(u32, u32, i64) -> Option<u32>,
    ) -> Result<Vec<u32>, DistError> {
        let (comm, s, num_src) = (&*g.comm, g.schema().endpoints(self.etype).0, self.totals(g).0);
        let originals: Vec<u64> = queries.src.iter().map(|&u| u64::from(u)).collect();
        let ids = g.find_nodes(&g.ntypes()[s], &originals)?;
        let owners: Vec<usize> = ids.iter().map(|&id| g.inner.nodes.locate(s, id).0).collect();
        let mut by_owner: Vec<Queries> = (0..comm.size()).map(|_| Queries::default()).collect();
        for (i, &p) in owners.iter().enumerate() {
            by_owner[p].push(queries.src[i], queries.numbers[i], queries.times[i]);
        }
        let requests =
            by_owner.iter().map(|q| Pack::default().with(&q.src).with(&q.numbers).with(&q.times));
        let reply = |mut request: Unpack| {
            let src = request.list::<u32>()?;
            let (numbers, times) =
                (request.list_of::<u32>(src.len())?, request.list_of::<i64>(src.len())?);
            let of = |((&u, &number), &time): ((&u32, &u32), &i64)| {
                if u64::from(u) < num_src { answer(u, number, time) } else { None }
            };
            let answers: Option<Vec<u32>> = src.iter().zip(&numbers).zip(&times).map(of).collect();
            Ok(Pack::default().with(&answers.ok_or_else(|| request.malformed())?))
        };
        let queries = format!("{name}: queries");
        let replies = round_trip(comm, [&queries, name], Ok(requests.collect()), reply)?;
        let mut lists = Vec::with_capacity(comm.size());
        for (mut reply, queries) in replies.into_iter().zip(&by_owner) {
            lists.push(reply.list_of::<u32>(queries.src.len())?.into_iter());
        }
        Ok(owners.into_iter().filter_map(|p| lists[p].next()).collect())
    }

    /// Number of sources and destinations in the whole graph.
    fn totals(&self, g: &DistGraph) -> (u64, u64) {
        let (s, d) = g.schema().endpoints(self.etype);
        (g.inner.nodes.total(s), g.inner.nodes.total(d))
    }
}

fn put(out: &mut Negatives, at: usize, (u, v): (u32, u32), is_strict: bool) {
    out.src[at] = u;
    out.dst[at] = v;
    out.is_strict[at] = is_strict;
}

/// Whether `here` is true on any rank. Collective.
fn any(comm: &dyn Communicator, here: bool) -> Result<bool, DistError> {
    let all = comm.all_gather("negatives: open pairs", vec![u8::from(here)])?;
    Ok(all.iter().any(|b| *b == [1]))
}
