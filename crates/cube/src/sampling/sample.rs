//! Samples batches and induced subgraphs around seeds of the host or of the device.

use std::sync::PoisonError;

use burn::tensor::{Int, Tensor};
use burn_gnn_graph::{EdgeKey, GraphError, KHop, NodeKey};
use burn_gnn_sampling::{BlockSampler, MiniBatch, NeighborSampler, SampleKey};

use super::batch::DeviceBatch;
use super::device_sampler::{DeviceSampler, Tables};
use super::ids::{Ids, number_at};
use super::induced::DeviceSubgraph;
use super::trees::Trees;

impl DeviceSampler {
    /// Samples a batch around seeds, given per node type; duplicate seeds share a row.
    ///
    /// # Errors
    /// A type is unknown or occurs twice; a seed is out of range; a hop has more nodes and edges of a relation than 32-bit
    /// numbers; edges have times, so seeds need times ([`sample_before`](Self::sample_before)).
    pub fn sample<N: NodeKey, I: AsRef<[u32]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I)>,
        key: SampleKey,
    ) -> Result<MiniBatch, GraphError> {
        let none: [(usize, &[u32]); 0] = [];
        self.sample_excluding(seeds, none, key)
    }

    /// [`sample`](Self::sample) that never draws some edges, given by id per edge type. It corresponds to
    /// [`NeighborSampler::sample_excluding`].
    ///
    /// # Errors
    /// As for [`sample`](Self::sample); an edge id is out of range.
    pub fn sample_excluding<N: NodeKey, I: AsRef<[u32]>, K: EdgeKey, E: AsRef<[u32]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I)>,
        edges: impl IntoIterator<Item = (K, E)>,
        key: SampleKey,
    ) -> Result<MiniBatch, GraphError> {
        let seeds = self.graph().node_selection("seeds", seeds)?;
        let edges = self.graph().edge_selection("edges", edges)?;
        self.make(self.upload("seeds", &seeds)?, None, self.upload("edges", &edges)?, key)?
            .into_batch(&self.sampler)
    }

    /// [`sample`](Self::sample) over edges strictly before the time of their seed, at every hop, with a separate tree per
    /// seed. It corresponds to [`NeighborSampler::sample_before`].
    ///
    /// # Errors
    /// As for [`NeighborSampler::sample_before`]; a hop has more than 2³⁰ nodes and edges of a relation, or more than fit in
    /// a buffer of the device.
    pub fn sample_before<N: NodeKey, I: AsRef<[u32]>, T: AsRef<[i64]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I, T)>,
        key: SampleKey,
    ) -> Result<MiniBatch, GraphError> {
        let (seeds, times) = self.sampler.seeds_before(seeds)?;
        let none = self.upload("edges", &vec![vec![]; self.graph().relations().len()])?;
        self.make(self.upload("seeds", &seeds)?, Some(times.concat()), none, key)?
            .into_batch(&self.sampler)
    }

    /// Samples a batch around seeds that are on the device, given per node type; duplicate seeds share a row. The edges
    /// `excluded`, given by id per edge type, are never drawn. The batch stays on the device: [`DeviceBatch`] has its nodes
    /// and edges as tensors, and can be converted to a [`MiniBatch`].
    ///
    /// ```no_run
    /// use burn::tensor::{Device, DeviceKind, Tensor};
    /// use burn_gnn_cube::DeviceSampler;
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_sampling::{NeighborSampler, SampleKey};
    /// let device = Device::wgpu(DeviceKind::DefaultDevice);
    /// let g = Graph::homogeneous(5, vec![1, 2, 3, 4, 0], vec![0, 0, 0, 1, 4])?;
    /// let sampler = DeviceSampler::new(NeighborSampler::new(&g, [2, -1])?, &device)?;
    /// let (seeds, excluded) = (Tensor::from_ints([0, 4], &device), Tensor::from_ints([1], &device));
    /// let batch = sampler.sample_tensors([("_N", seeds)], [("_E", excluded)], SampleKey::new(7))?;
    /// let features = Tensor::<2>::zeros([5, 8], &device);
    /// let x = features.select(0, batch.nodes("_N")); // rows of the input nodes; ids never leave the device
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A type is unknown or occurs twice; ids are out of range, on another device, or of another element type than i32 and
    /// u32; a hop has more nodes and edges of a relation than 32-bit numbers; edges have times, which seeds cannot have in
    /// this method.
    ///
    /// # Cost
    /// One more synchronisation with the device per tensor, because its ids are validated there.
    pub fn sample_tensors<N: NodeKey, K: EdgeKey>(
        &self,
        seeds: impl IntoIterator<Item = (N, Tensor<1, Int>)>,
        excluded: impl IntoIterator<Item = (K, Tensor<1, Int>)>,
        key: SampleKey,
    ) -> Result<DeviceBatch, GraphError> {
        let (seeds, excluded) = self.checked(seeds, excluded)?;
        self.make(seeds, None, excluded, key)
    }

    /// The subgraph induced by all nodes of a batch. It corresponds to [`NeighborSampler::induced`]. The edges `dropped`,
    /// given by id per edge type, are neither followed nor part of the subgraph. Without hops it is induced by the seeds.
    ///
    /// # Errors
    /// As for [`sample_excluding`](Self::sample_excluding). If edges have times, use `NeighborSampler::induced_before` on
    /// the host.
    ///
    /// # Cost
    /// The cost of a batch plus the in-degrees of its nodes, and one more synchronisation with the device per relation.
    pub fn induced<N: NodeKey, I: AsRef<[u32]>, K: EdgeKey, E: AsRef<[u32]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I)>,
        dropped: impl IntoIterator<Item = (K, E)>,
        key: SampleKey,
    ) -> Result<KHop, GraphError> {
        let seeds = self.graph().node_selection("seeds", seeds)?;
        let dropped = self.graph().edge_selection("dropped", dropped)?;
        self.make_induced(self.upload("seeds", &seeds)?, self.upload("dropped", &dropped)?, key)?
            .to_khop(&self.sampler)
    }

    /// [`induced`](Self::induced) for seeds and dropped edges on the device; the subgraph stays on the device.
    ///
    /// # Errors
    /// As for [`sample_tensors`](Self::sample_tensors).
    pub fn induced_tensors<N: NodeKey, K: EdgeKey>(
        &self,
        seeds: impl IntoIterator<Item = (N, Tensor<1, Int>)>,
        dropped: impl IntoIterator<Item = (K, Tensor<1, Int>)>,
        key: SampleKey,
    ) -> Result<DeviceSubgraph, GraphError> {
        let (seeds, dropped) = self.checked(seeds, dropped)?;
        self.make_induced(seeds, dropped, key)
    }

    /// Validates ids per node type and edge type.
    fn checked<N: NodeKey, K: EdgeKey>(
        &self,
        seeds: impl IntoIterator<Item = (N, Tensor<1, Int>)>,
        excluded: impl IntoIterator<Item = (K, Tensor<1, Int>)>,
    ) -> Result<(Vec<Ids>, Vec<Ids>), GraphError> {
        let (graph, schema) = (self.graph(), self.graph().schema());
        let nodes = self.lists("seeds", "node type", graph.node_counts().len(), seeds, |key| {
            let t = schema.ntype(key)?;
            Ok((t, schema.ntypes()[t].clone(), graph.node_counts()[t]))
        })?;
        let edges =
            self.lists("excluded", "edge type", graph.relations().len(), excluded, |key| {
                let t = schema.etype(key)?;
                Ok((t, schema.etypes()[t].to_string(), graph.relations()[t].num_edges()))
            })?;
        Ok((nodes, edges))
    }

    /// Validates the ids of each of `types` types. `find` resolves a key to the number of the type, its name, and the
    /// exclusive upper bound of its ids.
    fn lists<K>(
        &self,
        arg: &'static str,
        what: &'static str,
        types: usize,
        given: impl IntoIterator<Item = (K, Tensor<1, Int>)>,
        find: impl Fn(K) -> Result<(usize, String, usize), GraphError>,
    ) -> Result<Vec<Ids>, GraphError> {
        let mut lists: Vec<Option<Ids>> = vec![None; types];
        for (key, ids) in given {
            let (t, name, bound) = find(key)?;
            if lists[t].is_some() {
                return Err(GraphError::Duplicate { what, name });
            }
            let of = format!("{what} `{name}`");
            lists[t] = Some(Ids::new(arg, &of, ids, bound, &self.device)?);
        }
        let or_none =
            |ids: Option<Ids>| ids.map_or_else(|| Ids::upload(arg, &[], &self.device), Ok);
        lists.into_iter().map(or_none).collect()
    }

    /// Samples a batch around validated seeds, which may have times, and never draws the edges `excluded`.
    fn make(
        &self,
        seeds: Vec<Ids>,
        times: Option<Vec<i64>>,
        excluded: Vec<Ids>,
        key: SampleKey,
    ) -> Result<DeviceBatch, GraphError> {
        if times.is_none() {
            self.sampler.check_untimed()?;
        }
        let trees = (self.sampler.is_disjoint() || times.is_some())
            .then(|| self.trees(&seeds, times.as_deref()))
            .transpose()?;
        let (batch, ()) = self.with_batch(seeds, trees, &excluded, key, |_, _| Ok(()))?;
        Ok(DeviceBatch { times, ..batch })
    }

    /// The subgraph induced by the nodes of a batch.
    fn make_induced(
        &self,
        seeds: Vec<Ids>,
        dropped: Vec<Ids>,
        key: SampleKey,
    ) -> Result<DeviceSubgraph, GraphError> {
        self.sampler.check_untimed()?;
        let between =
            |batch: &DeviceBatch, tables: &_| self.edges_between(batch.clone(), &dropped, tables);
        Ok(self.with_batch(seeds, None, &dropped, key, between)?.1)
    }

    /// Samples a batch and calls `f` with it and with the tables that have its rows. No other batch uses these tables until
    /// this function returns.
    fn with_batch<T>(
        &self,
        seeds: Vec<Ids>,
        trees: Option<Trees>,
        excluded: &[Ids],
        key: SampleKey,
        f: impl FnOnce(&DeviceBatch, &Tables) -> Result<T, GraphError>,
    ) -> Result<(DeviceBatch, T), GraphError> {
        let pool = || self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        // The tables are removed from the pool, so no lock is held, and tables of a batch that fails or panics are dropped
        // with their rows.
        let known = pool().pop();
        let mut tables = known.unwrap_or_else(|| self.tables());
        self.exclude(excluded, &mut tables, true);
        let batch = self.grow(seeds, trees, excluded, key, &tables)?;
        let made = f(&batch, &tables)?;
        self.forget(&batch, &tables);
        self.exclude(excluded, &mut tables, false);
        // Launches of other threads do not wait for launches of this thread, so synchronise before another batch uses the
        // tables.
        if let Some(rows) = tables.rows.first() {
            number_at(rows, 0);
        }
        pool().push(tables);
        Ok((batch, made))
    }

    fn upload(&self, what: &'static str, lists: &[Vec<u32>]) -> Result<Vec<Ids>, GraphError> {
        lists.iter().map(|ids| Ids::upload(what, ids, &self.device)).collect()
    }
}

impl BlockSampler for DeviceSampler {
    fn on_host(&self) -> &NeighborSampler {
        &self.sampler
    }
    fn blocks_excluding(
        &self,
        seeds: &[Vec<u32>],
        times: Option<&[Vec<i64>]>,
        excluded: &[Vec<u32>],
        key: SampleKey,
    ) -> Result<MiniBatch, GraphError> {
        let (seeds, times, excluded) = self.sampler.batch_request(seeds, times, excluded)?;
        let (seeds, excluded) =
            (self.upload("seeds", &seeds)?, self.upload("excluded", &excluded)?);
        self.make(seeds, times.map(|times| times.concat()), excluded, key)?
            .into_batch(&self.sampler)
    }
}
