//! Defines the sampler of a device: the sampler on the host, and the arrays that it keeps on the device.

use std::sync::Mutex;

use burn::tensor::Device;
use burn_cubecl::CubeDevice;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_graph::{Derived, Graph};
use burn_gnn_sampling::internal::{HopDraws, TimeRanks};
use burn_gnn_sampling::{NeighborSampler, SampleKey};

use super::error::{DeviceSampleError, cube_device};
use super::ids::{Ids, ints, ones};
use crate::device::upload::{check_arrays, check_device, check_size, upload};

/// A [`NeighborSampler`] whose draws, and the numbering of the nodes that they find, are a device's.
///
/// The edges are copied to the device once. [`sample`](Self::sample) and its like take seeds of the host and return
/// blocks there, as layers take them; [`sample_tensors`](Self::sample_tensors) takes seeds and leaves the batch on the
/// device.
///
/// Batches are those of the host for the same key, bit for bit, with masks, excluded edges, disjoint trees, seed times
/// and every strategy but three: draws by weight ([`Strategy::Weighted`](burn_gnn_sampling::Strategy::Weighted),
/// [`Strategy::InDegree`](burn_gnn_sampling::Strategy::InDegree)) are of the same distribution (keys of 24 bits, so a
/// weight below 2⁻²⁴ of the sum of its row may be drawn too often), and
/// [`Strategy::Labor`](burn_gnn_sampling::Strategy::Labor) is refused.
///
/// ```no_run
/// use burn::tensor::{Device, DeviceKind};
/// use burn_gnn_cube::DeviceSampler;
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{NeighborSampler, SampleKey};
/// let g = Graph::homogeneous(5, vec![1, 2, 3, 4, 0], vec![0, 0, 0, 1, 4])?;
/// let sampler = DeviceSampler::new(NeighborSampler::new(&g, [2, -1])?, &Device::wgpu(DeviceKind::DefaultDevice))?;
/// let batch = sampler.sample([("_N", [0])], SampleKey::new(7))?;
/// assert_eq!(batch.output_nodes(0), [0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cost
/// On the device the graph's in-edges, 4 bytes per edge for [`Strategy::TopK`](burn_gnn_sampling::Strategy::TopK),
/// [`Strategy::Latest`](burn_gnn_sampling::Strategy::Latest), weights and times, a bit per edge for masks, and for each
/// of the batches that are made at the same time 4 bytes per node and, where edges are excluded, a bit per edge. A
/// thread for every node of a batch, whose time grows with the square of the fan-out; with weights, masks, exclusion,
/// `TopK` or `Latest` with the degree too. Two waits for the device for every hop and relation, one for the seeds of a
/// type, one for the batch.
#[derive(Debug)]
pub struct DeviceSampler {
    pub(super) sampler: NeighborSampler,
    pub(super) device: CubeDevice,
    /// What batches write, one for every batch that was made at the same time.
    pub(super) tables: Mutex<Vec<Tables>>,
    /// By edge type, or node type for ids that draws belong to, once they were needed.
    pub(super) weights: Vec<Derived<CubeTensor>>,
    pub(super) masks: Vec<Derived<CubeTensor>>,
    pub(super) orders: Vec<Derived<CubeTensor>>,
    pub(super) times: Vec<Derived<(TimeRanks, CubeTensor)>>,
    pub(super) ids: Vec<Derived<CubeTensor>>,
}

/// What one batch at a time writes.
#[derive(Debug)]
pub(super) struct Tables {
    /// Row of each node in the batch, by node type.
    pub(super) rows: Vec<CubeTensor>,
    /// A bit per edge id, by edge type: whether it is left out. Made when first needed.
    pub(super) excluded: Vec<Option<CubeTensor>>,
}

impl Tables {
    /// Bits of the edges of a type that are left out, if any are.
    pub(super) fn excluded(&self, etype: usize, edges: &[Ids]) -> Option<&CubeTensor> {
        self.excluded[etype].as_ref().filter(|_| edges[etype].len > 0)
    }
}

impl DeviceSampler {
    /// Samples on `device`, as `sampler` does on the host.
    ///
    /// # Errors
    /// A device without kernels, or one that does not bind all arrays that draws need; a graph that does not fit; a
    /// strategy that only the host knows: [`Strategy::Labor`](burn_gnn_sampling::Strategy::Labor).
    pub fn new(sampler: NeighborSampler, device: &Device) -> Result<Self, DeviceSampleError> {
        let device = cube_device(device)?;
        if let Some(what) = sampler.device_lacks() {
            return Err(DeviceSampleError::Lacks { what });
        }
        for relation in sampler.graph().relations() {
            check_device(relation, &device)?;
        }
        let most = sampler.graph().node_counts().iter().copied().max().unwrap_or(0);
        check_size("nodes", most, &device)?;
        for hop in 0..sampler.hops() {
            sampler
                .device_hop(hop, SampleKey::new(0))
                .iter()
                .try_for_each(|draw| check_arrays(arrays_of(draw), &device))?;
        }
        fn cells(n: usize) -> Vec<Derived<CubeTensor>> {
            (0..n).map(|_| Derived::new()).collect()
        }
        let (etypes, ntypes) =
            (sampler.graph().relations().len(), sampler.graph().node_counts().len());
        let (weights, masks, orders, ids) =
            (cells(etypes), cells(etypes), cells(etypes), cells(ntypes));
        let times = (0..etypes).map(|_| Derived::new()).collect();
        Ok(Self { sampler, device, tables: Mutex::default(), weights, masks, orders, times, ids })
    }

    /// The sampler on the host.
    pub fn sampler(&self) -> &NeighborSampler {
        &self.sampler
    }

    pub(super) fn graph(&self) -> &Graph {
        self.sampler.graph()
    }

    /// No node has a row and no edge is left out.
    pub(super) fn tables(&self) -> Tables {
        let rows = self.graph().node_counts().iter().map(|&n| ones(&self.device, n)).collect();
        Tables { rows, excluded: vec![None; self.graph().relations().len()] }
    }

    /// Original ids of the nodes of a type, where they differ.
    pub(super) fn original(&self, ntype: usize) -> Option<&CubeTensor> {
        let ids = self.sampler.device_node_ids(ntype)?;
        Some(self.ids[ntype].get_or_compute(|| upload("ids", ids, &self.device)))
    }

    /// Times of the edges of a type, if they have any: of all edges by position, as places among those that differ.
    pub(super) fn times(&self, etype: usize) -> Option<&(TimeRanks, CubeTensor)> {
        self.sampler.times_of(etype)?;
        let make = || {
            let mut ranks = self.sampler.device_times(etype).unwrap_or_default();
            let list = upload("times", &std::mem::take(&mut ranks.of_edges), &self.device);
            (ranks, list)
        };
        Some(self.times[etype].get_or_compute(make))
    }

    /// Room for `n` numbers.
    pub(super) fn ints(&self, n: usize) -> CubeTensor {
        ints(&self.device, n)
    }
}

/// Arrays of the kernel that draws, but for those of excluded edges and trees: nodes, their offsets, the first edge of
/// each and its position, and what settings of the sampler need.
pub(super) fn arrays_of(draw: &HopDraws<'_>) -> usize {
    let with_keys = draw.ordered || draw.weights.is_some();
    4 + usize::from(draw.ids.is_some()) + usize::from(draw.masked) + if with_keys { 2 } else { 0 }
}

#[cfg(all(test, feature = "wgpu"))]
mod tests {
    use burn_gnn_graph::Graph;
    use burn_gnn_sampling::{NeighborSampler, Strategy};

    use super::*;

    /// Every adapter of WebGPU binds eight buffers, of which a kernel has six for arrays.
    #[test]
    fn uniform_draws_bind_few_arrays() {
        let g = Graph::homogeneous(3, vec![1, 2], vec![0, 0]).unwrap();
        let arrays = |sampler: &NeighborSampler| {
            sampler.device_hop(0, SampleKey::new(0)).iter().map(arrays_of).collect::<Vec<_>>()
        };
        let plain = NeighborSampler::new(&g, [1]).unwrap().with_mask(.., &[true, false]).unwrap();
        assert_eq!(arrays(&plain), [5]);
        let weighted =
            plain.with_weights(.., &[1.0, 2.0]).unwrap().with_strategy(Strategy::Weighted).unwrap();
        assert_eq!(arrays(&weighted), [7]);
    }
}
