//! Defines [`DeviceSampler`]: a sampler of the host, and its arrays on a device.

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

/// A [`NeighborSampler`] that samples on a GPU.
///
/// The edges are copied to the device once. [`sample`](Self::sample) and similar methods take seeds from the host and
/// return blocks on the host, which layers read. [`sample_tensors`](Self::sample_tensors) takes seeds on the device, and
/// its batch stays there.
///
/// For the same key, batches equal those of the host bit for bit, including masks, excluded edges, disjoint trees and seed
/// times. There are three exceptions. The weighted strategies ([`Strategy::Weighted`](burn_gnn_sampling::Strategy::Weighted)
/// and [`Strategy::InDegree`](burn_gnn_sampling::Strategy::InDegree)) draw other edges from the same distribution; their
/// keys have 24 bits, so an edge with less than 2⁻²⁴ of the weight of its row may be drawn too often.
/// [`Strategy::Labor`](burn_gnn_sampling::Strategy::Labor) is not supported.
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
/// Device memory: the in-edges of the graph; 4 bytes per edge for each of
/// [`Strategy::TopK`](burn_gnn_sampling::Strategy::TopK), [`Strategy::Latest`](burn_gnn_sampling::Strategy::Latest),
/// weights and times; a bit per edge for masks. Each batch that is sampled at the same time takes 4 bytes per node and, if
/// edges are excluded, a bit per edge.
///
/// Time: one thread per node of a batch. It grows with the square of the fan-out and, with weights, masks, excluded edges,
/// `TopK` or `Latest`, with the degree. The host synchronises with the device twice per hop and relation, once per type of
/// seeds, and once per batch.
#[derive(Debug)]
pub struct DeviceSampler {
    pub(super) sampler: NeighborSampler,
    pub(super) device: CubeDevice,
    /// A pool of tables, one for every batch that was sampled at the same time.
    pub(super) tables: Mutex<Vec<Tables>>,
    /// Arrays by edge type (`ids`: by node type), uploaded on first use.
    pub(super) weights: Vec<Derived<CubeTensor>>,
    pub(super) masks: Vec<Derived<CubeTensor>>,
    pub(super) orders: Vec<Derived<CubeTensor>>,
    pub(super) times: Vec<Derived<(TimeRanks, CubeTensor)>>,
    pub(super) ids: Vec<Derived<CubeTensor>>,
}

/// Tables that a batch uses while it is sampled.
#[derive(Debug)]
pub(super) struct Tables {
    /// Row of each node in the batch, by node type.
    pub(super) rows: Vec<CubeTensor>,
    /// By edge type, a bit per edge id: whether the edge is excluded. Allocated on first use.
    pub(super) excluded: Vec<Option<CubeTensor>>,
}

impl Tables {
    /// The bits of the excluded edges of a type, if there are any.
    pub(super) fn excluded(&self, etype: usize, edges: &[Ids]) -> Option<&CubeTensor> {
        self.excluded[etype].as_ref().filter(|_| edges[etype].len > 0)
    }
}

impl DeviceSampler {
    /// A sampler on `device` with the settings of `sampler`.
    ///
    /// # Errors
    /// The device is not a GPU, or cannot bind all arrays of a kernel; the graph does not fit in device memory; the
    /// strategy is not supported ([`Strategy::Labor`](burn_gnn_sampling::Strategy::Labor)).
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

    /// Tables without rows and without excluded edges.
    pub(super) fn tables(&self) -> Tables {
        let rows = self.graph().node_counts().iter().map(|&n| ones(&self.device, n)).collect();
        Tables { rows, excluded: vec![None; self.graph().relations().len()] }
    }

    /// The original ids of the nodes of a type, if they differ from node ids.
    pub(super) fn original(&self, ntype: usize) -> Option<&CubeTensor> {
        let ids = self.sampler.device_node_ids(ntype)?;
        Some(self.ids[ntype].get_or_compute(|| upload("ids", ids, &self.device)))
    }

    /// The times of the edges of a type, if they have any: by position, as ranks among the distinct times.
    pub(super) fn times(&self, etype: usize) -> Option<&(TimeRanks, CubeTensor)> {
        self.sampler.times_of(etype)?;
        let make = || {
            let mut ranks = self.sampler.device_times(etype).unwrap_or_default();
            let list = upload("times", &std::mem::take(&mut ranks.of_edges), &self.device);
            (ranks, list)
        };
        Some(self.times[etype].get_or_compute(make))
    }

    /// An uninitialised array of `n` numbers.
    pub(super) fn ints(&self, n: usize) -> CubeTensor {
        ints(&self.device, n)
    }
}

/// Number of arrays of the kernel that draws: nodes, row offsets, output offsets, output positions, and the arrays that
/// the settings of the sampler need. Arrays of excluded edges and trees are not included.
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
