//! Samples batches for link prediction on a device.

use std::borrow::Cow;

use burn::tensor::{Bool, Device, Int, Tensor};
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_graph::internal::check_ids;
use burn_gnn_graph::{EdgeKey, GraphError};
use burn_gnn_sampling::internal::{add_parallel_edges, has_parallel_edges};
use burn_gnn_sampling::{LinkExclusion, SampleKey, SampledBatch, Sampler, SeedKind, Seeds};

use super::batch::{DeviceBatch, pick};
use super::device_sampler::DeviceSampler;
use super::ids::Ids;
use super::negative::DeviceNegativeSampler;
use crate::device::upload::upload;
use crate::message::layout::endpoints;

/// Samples batches for link prediction on a device: seed edges, negative pairs with the same sources, and the blocks that
/// compute the endpoints of all pairs. For the same key, batches equal those of a
/// [`LinkSampler`](burn_gnn_sampling::LinkSampler) with
/// [`NegativePairs::PerSource`](burn_gnn_sampling::NegativePairs::PerSource), bit for bit.
///
/// ```no_run
/// use burn::tensor::{Device, DeviceKind, Tensor};
/// use burn_gnn_cube::{DeviceLinkSampler, DeviceNegativeSampler, DeviceSampler};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{NegativeSampler, NeighborSampler, SampleKey};
/// let device = Device::wgpu(DeviceKind::DefaultDevice);
/// let g = Graph::homogeneous(5, vec![0, 1, 2, 3], vec![1, 2, 3, 4])?;
/// let negatives = DeviceNegativeSampler::new(NegativeSampler::new(&g, ..)?, &device)?;
/// let links = DeviceLinkSampler::new(DeviceSampler::new(NeighborSampler::new(&g, [-1])?, &device)?, ..)?.with_negatives(negatives, 2)?;
/// let batch = links.sample(Tensor::from_ints([1, 3], &device), SampleKey::new(0))?;
/// assert_eq!((batch.positive.src.dims(), batch.negative.dst.dims()), ([2], [4]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cost
/// The cost of [`DeviceNegativeSampler::per_source`] and [`DeviceSampler::sample_tensors`], and 8 bytes of device memory per
/// edge of the type. If excluded edges have parallel edges, the ids of the seeds are copied to the host, which finds them.
#[derive(Debug)]
pub struct DeviceLinkSampler {
    sampler: DeviceSampler,
    etype: usize,
    negatives: Option<(DeviceNegativeSampler, usize)>,
    exclusion: LinkExclusion,
    /// The edge type of reverse edges, from `exclusion`.
    reverse_type: Option<usize>,
    /// The reverse edge of each edge, for [`LinkExclusion::Reverse`].
    reverse: Option<CubeTensor>,
    /// Whether excluded edges may have parallel edges.
    has_parallel: bool,
}

/// Pairs of rows among the output nodes of a [`DeviceBatch`], both `[pairs]`.
#[derive(Clone, Debug)]
pub struct DeviceLinkRows {
    /// Rows of the source type.
    pub src: Tensor<1, Int>,
    /// Rows of the destination type.
    pub dst: Tensor<1, Int>,
}

/// A batch of seed edges on a device; see [`LinkBatch`](burn_gnn_sampling::LinkBatch).
#[derive(Clone, Debug)]
pub struct DeviceLinkBatch {
    /// Blocks that compute the endpoints of all pairs.
    pub batch: DeviceBatch,
    /// The seed edges.
    pub positive: DeviceLinkRows,
    /// The negative pairs, grouped by positive pair.
    pub negative: DeviceLinkRows,
    /// Whether each negative pair is known to be no edge, `[pairs]`; see
    /// [`Negatives::is_strict`](burn_gnn_sampling::Negatives::is_strict).
    pub is_strict: Tensor<1, Bool>,
}

impl DeviceLinkSampler {
    /// A sampler of edges of a type, without negatives; seed edges are excluded from message passing.
    ///
    /// # Errors
    /// The type is unknown or ambiguous; edges have times, which this sampler does not support: use a `LinkSampler` with
    /// the [`DeviceSampler`].
    pub fn new(sampler: DeviceSampler, etype: impl EdgeKey) -> Result<Self, GraphError> {
        sampler.sampler().check_untimed()?;
        let etype = sampler.graph().schema().etype(etype)?;
        Self {
            sampler,
            etype,
            negatives: None,
            exclusion: LinkExclusion::Seeds,
            reverse_type: None,
            reverse: None,
            has_parallel: false,
        }
        .with_parallel_edges()
    }

    /// Tests whether the excluded types have parallel edges.
    fn with_parallel_edges(mut self) -> Result<Self, GraphError> {
        let excluded = (self.exclusion != LinkExclusion::Nothing).then_some(self.etype);
        let relations = self.sampler.graph().relations();
        self.has_parallel = false;
        for t in excluded.into_iter().chain(self.reverse_type) {
            self.has_parallel |= has_parallel_edges(&relations[t])?;
        }
        Ok(self)
    }

    /// Adds `per_source` negative pairs per positive pair, with the same source.
    ///
    /// # Errors
    /// `negatives` samples another edge type, samples sources, or is on another device.
    pub fn with_negatives(
        mut self,
        negatives: DeviceNegativeSampler,
        per_source: usize,
    ) -> Result<Self, GraphError> {
        let invalid = |expected: &str, found: String| GraphError::Setting {
            arg: "negatives",
            expected: expected.to_owned(),
            found,
        };
        let host = negatives.sampler();
        if !host.is_for(&self.sampler.graph().relations()[self.etype]) {
            return Err(invalid(
                "a sampler of the edge type of the seeds",
                "one of other edges".to_owned(),
            ));
        }
        host.device_pairs(false, SampleKey::new(0))?;
        if *negatives.device() != self.sampler.device {
            return Err(invalid(
                &format!("a sampler on {:?}", self.sampler.device),
                format!("one on {:?}", negatives.device()),
            ));
        }
        self.negatives = Some((negatives, per_source));
        Ok(self)
    }

    /// Sets the edges that are excluded from message passing.
    ///
    /// # Errors
    /// As for [`LinkSampler::with_exclusion`](burn_gnn_sampling::LinkSampler::with_exclusion).
    pub fn with_exclusion(mut self, exclusion: LinkExclusion) -> Result<Self, GraphError> {
        self.reverse_type = exclusion.check(self.sampler.graph(), self.etype)?;
        self.reverse = match &exclusion {
            LinkExclusion::Reverse(ids) => Some(upload("reverse edges", ids, &self.sampler.device)),
            LinkExclusion::Nothing | LinkExclusion::Seeds | LinkExclusion::ReverseType(_) => None,
        };
        self.exclusion = exclusion;
        self.with_parallel_edges()
    }

    /// The sampler of the blocks.
    pub fn sampler(&self) -> &DeviceSampler {
        &self.sampler
    }
    /// The edge type of seeds.
    pub fn etype(&self) -> usize {
        self.etype
    }

    /// Samples a batch of seed edges, given by id, `[seeds]`.
    ///
    /// # Errors
    /// As for [`DeviceNegativeSampler::per_source`] and [`DeviceSampler::sample_tensors`].
    pub fn sample(
        &self,
        edges: Tensor<1, Int>,
        key: SampleKey,
    ) -> Result<DeviceLinkBatch, GraphError> {
        let (g, device) = (self.sampler.graph(), edges.device());
        let of = format!("edge type `{}`", g.schema().etypes()[self.etype]);
        let ids = Ids::new(
            "edges",
            &of,
            edges,
            g.relations()[self.etype].num_edges(),
            &self.sampler.device,
        )?;
        self.around(&ids, &device, key)
    }

    /// Samples a batch of validated seed edges, with tensors on `device`.
    fn around(
        &self,
        ids: &Ids,
        device: &Device,
        key: SampleKey,
    ) -> Result<DeviceLinkBatch, GraphError> {
        let g = self.sampler.graph();
        let (relation, (s, d)) = (&g.relations()[self.etype], g.schema().endpoints(self.etype));
        let (n, of_edges) = (ids.len, endpoints(relation, &self.sampler.device));
        let node = |table: &CubeTensor, t: usize| pick(ids, table).tensor(g.node_counts()[t]);
        let (src, dst) = (node(&of_edges.src, s), node(&of_edges.dst, d));
        let pairs = |(sampler, k): &(DeviceNegativeSampler, usize)| {
            Ok((sampler.per_source(src.clone(), dst.clone(), *k, key)?, *k))
        };
        let drawn = self.negatives.as_ref().filter(|_| n > 0).map(pairs).transpose()?;
        let k = drawn.as_ref().map_or(0, |drawn| drawn.1);
        let drawn = drawn.map(|drawn| drawn.0).filter(|_| k > 0);

        // If both endpoints have the same node type, they are one list of seeds, with sources first, as on the host.
        let mut seeds: Vec<Vec<Tensor<1, Int>>> = vec![vec![]; g.node_counts().len()];
        if n > 0 {
            seeds[s].push(src);
            seeds[d].push(dst);
            seeds[d].extend(drawn.as_ref().map(|drawn| drawn.dst()));
        }
        let seeds = seeds
            .into_iter()
            .enumerate()
            .filter(|(_, lists)| !lists.is_empty())
            .map(|(t, lists)| (t, Tensor::cat(lists, 0)));
        let batch = self.sampler.sample_tensors(seeds, self.excluded(ids)?, key)?;

        let first = if s == d { n } else { 0 };
        let [of_src, of_dst] = [batch.seeds(s), batch.seeds(d)];
        let part = |rows: &Tensor<1, Int>, from: usize, len: usize| match len {
            0 => Tensor::empty([0], device),
            len => rows.clone().slice(from..from + len),
        };
        let positive = DeviceLinkRows { src: part(&of_src, 0, n), dst: part(&of_dst, first, n) };
        let negative = DeviceLinkRows {
            src: match n * k {
                0 => Tensor::empty([0], device),
                pairs => positive.src.clone().reshape([n, 1]).repeat_dim(1, k).reshape([pairs]),
            },
            dst: part(&of_dst, first + n, n * k),
        };
        let is_strict = drawn
            .map_or_else(|| Tensor::<1, Int>::empty([0], device).bool(), |drawn| drawn.is_strict());
        Ok(DeviceLinkBatch { batch, positive, negative, is_strict })
    }

    /// The edges that a batch of seeds excludes.
    fn excluded(&self, seeds: &Ids) -> Result<Vec<(usize, Tensor<1, Int>)>, GraphError> {
        let relations = self.sampler.graph().relations();
        let bound = |t: usize| relations[t].num_edges();
        if seeds.len == 0 || self.exclusion == LinkExclusion::Nothing {
            return Ok(vec![]);
        }
        if self.has_parallel {
            let mut excluded = vec![vec![]; relations.len()];
            self.exclusion.leave_out(self.etype, self.reverse_type, &seeds.read(), &mut excluded);
            let of_type = |(t, mut edges): (usize, Vec<u32>)| {
                add_parallel_edges(&relations[t], &mut edges)?;
                Ok((t, Ids::upload("excluded", &edges, &self.sampler.device)?.tensor(bound(t))))
            };
            let some = excluded.into_iter().enumerate().filter(|(_, edges)| !edges.is_empty());
            return some.map(of_type).collect();
        }
        let own = seeds.tensor(bound(self.etype));
        Ok(match (self.reverse_type, &self.reverse) {
            (Some(t), _) if t != self.etype => vec![(t, seeds.tensor(bound(t))), (self.etype, own)],
            (_, Some(reverse)) => vec![(
                self.etype,
                Tensor::cat(vec![own, pick(seeds, reverse).tensor(bound(self.etype))], 0),
            )],
            _ => vec![(self.etype, own)],
        })
    }
}

/// Lets a [`Loader`](burn_gnn_sampling::Loader) prefetch batches of edges of one type. Seeds are copied from the host to
/// the device, where the batch stays. If the loader gathers features, it copies the ids of the nodes to the host.
impl Sampler for DeviceLinkSampler {
    type Seed = u32;
    type Batch = DeviceLinkBatch;
    type Error = GraphError;

    fn sample_batch(&self, seeds: &Seeds, key: SampleKey) -> Result<DeviceLinkBatch, GraphError> {
        self.check(seeds)?;
        let (g, edges) = (self.sampler.graph(), &seeds.ids()[self.etype]);
        let bound = g.relations()[self.etype].num_edges();
        check_ids(
            "edges",
            &format!("edge type `{}`", g.schema().etypes()[self.etype]),
            edges,
            bound,
        )?;
        let ids = Ids::upload("edges", edges, &self.sampler.device)?;
        let device = ids.tensor(bound).device();
        self.around(&ids, &device, key)
    }
    fn check(&self, seeds: &Seeds) -> Result<(), GraphError> {
        let etypes = self.sampler.graph().schema().etypes();
        seeds.expect(SeedKind::Edges, etypes.len())?;
        seeds.expect_untimed()?;
        match (0..etypes.len()).find(|&t| t != self.etype && !seeds.ids()[t].is_empty()) {
            None => Ok(()),
            Some(t) => {
                let expected = format!(
                    "edges of `{}`, of which the sampler makes batches",
                    etypes[self.etype]
                );
                Err(GraphError::Setting {
                    arg: "seeds",
                    expected,
                    found: format!("some of `{}`", etypes[t]),
                })
            }
        }
    }
}

impl SampledBatch for DeviceLinkBatch {
    type Id = u32;

    fn nodes(&self, ntype: usize) -> Cow<'_, [u32]> {
        SampledBatch::nodes(&self.batch, ntype)
    }
    fn num_blocks(&self) -> usize {
        self.batch.num_blocks()
    }
    fn edges(&self, block: usize, etype: usize) -> Cow<'_, [u32]> {
        self.batch.edges(block, etype)
    }
    fn num_edges(&self) -> usize {
        self.batch.num_edges()
    }
}
