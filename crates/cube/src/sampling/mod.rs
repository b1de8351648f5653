//! Neighbour sampling and blocks on a device, with the draws of the host.

mod draw;
mod number;

use std::sync::{Mutex, PoisonError};

use burn::backend::DispatchDevice;
use burn::tensor::{DType, Device, Shape};
use burn_cubecl::CubeDevice;
use burn_cubecl::ops::into_data_sync;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_graph::{BlockSampler, Derived, GraphError, HopDraws, HopEdges, HopFound, MiniBatch, NeighborSampler, SampleKey};

use crate::device::{check_size, dummy, upload};
use crate::error::CubeError;
use crate::launch::{address, arg, empty, grid};
use crate::layout::csc;
use crate::scan::exclusive_sums;
use draw::{How, count_kernel, uniform_kernel, weighted_kernel};
use number::{copy_kernel, first_kernel, forget_kernel, offer_kernel, row_kernel, settle_kernel};

/// Why a device cannot sample.
#[derive(Debug)]
pub enum DeviceSampleError {
    /// The graph does not fit.
    Device(CubeError),
    /// The device is no graphics processor.
    NoKernels {
        /// The device.
        device: Box<Device>,
    },
    /// A setting that the host alone knows.
    Lacks {
        /// Which one.
        what: &'static str,
    },
}

impl std::fmt::Display for DeviceSampleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Device(e) => e.fmt(f),
            Self::NoKernels { device } => {
                write!(f, "sampling on a device needs one of a graphics backend, got {device:?}; there `NeighborSampler` samples by itself")
            }
            Self::Lacks { what } => write!(f, "devices do not sample with {what}; `NeighborSampler` does on the host"),
        }
    }
}

impl std::error::Error for DeviceSampleError {}

impl From<CubeError> for DeviceSampleError {
    fn from(e: CubeError) -> Self {
        Self::Device(e)
    }
}

/// A [`NeighborSampler`] whose draws, and the numbering of the nodes that they find, are a device's.
///
/// The edges are copied to the device once; seeds go there, blocks come back. Uniform samples are those of the host for the same
/// key, bit for bit; weighted ones are of the same distribution (keys of 24 bits, so a weight below 2⁻²⁴ of the sum of its
/// row may be drawn too often).
///
/// ```no_run
/// use burn::tensor::{Device, DeviceKind};
/// use burn_gnn_cube::DeviceSampler;
/// use burn_gnn_graph::{Graph, NeighborSampler, SampleKey};
/// let g = Graph::homogeneous(5, vec![1, 2, 3, 4, 0], vec![0, 0, 0, 1, 4])?;
/// let sampler = DeviceSampler::new(NeighborSampler::new(&g, [2, -1])?, &Device::wgpu(DeviceKind::DefaultDevice))?;
/// let batch = sampler.sample([("_N", [0])], SampleKey::new(7))?;
/// assert_eq!(batch.output_nodes(0), [0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cost
/// On the device the graph's in-edges, and 4 bytes for every node for each of the batches that are made at the same
/// time; a unit for every node of a batch, whose time grows with the square of the fan-out, with weights with the degree
/// too. Two waits for the device for every hop and relation.
#[derive(Debug)]
pub struct DeviceSampler {
    sampler: NeighborSampler,
    device: CubeDevice,
    /// The row of each node in a batch, by type: one for every batch that was made at the same time.
    rows: Mutex<Vec<Vec<CubeTensor>>>,
    /// Weights of edges, by edge type, and ids that draws belong to, by node type, once they were needed.
    weights: Vec<Derived<CubeTensor>>,
    ids: Vec<Derived<CubeTensor>>,
}

/// Nodes of a type in the batch so far.
struct Nodes {
    list: CubeTensor,
    len: usize,
}

/// What was found of a relation, on the device.
struct Found {
    etype: usize,
    num_dst: usize,
    edges: usize,
    indptr: CubeTensor,
    src: CubeTensor,
    positions: CubeTensor,
}

impl DeviceSampler {
    /// Samples on `device`, as `sampler` does on the host.
    ///
    /// # Errors
    /// A device without kernels, a graph that does not fit, or a setting that only the host knows: masks, disjoint trees, strategies other
    /// than uniform and weighted draws.
    pub fn new(sampler: NeighborSampler, device: &Device) -> Result<Self, DeviceSampleError> {
        let DispatchDevice::Cube(device) = device.clone().without_autodiff().as_dispatch().clone() else {
            return Err(DeviceSampleError::NoKernels { device: Box::new(device.clone()) });
        };
        if let Some(what) = sampler.device_lacks() {
            return Err(DeviceSampleError::Lacks { what });
        }
        for relation in sampler.graph().relations() {
            crate::check_device(relation, &device)?;
        }
        let most = sampler.graph().node_counts().iter().copied().max().unwrap_or(0);
        check_size("nodes", most, &device)?;
        let cells = |n: usize| (0..n).map(|_| Derived::new()).collect();
        let (weights, ids) = (cells(sampler.graph().relations().len()), cells(sampler.graph().node_counts().len()));
        Ok(Self { sampler, device, rows: Mutex::default(), weights, ids })
    }

    /// The sampler on the host.
    pub fn sampler(&self) -> &NeighborSampler {
        &self.sampler
    }

    /// A batch around seeds, given per node type; seeds given twice share a row.
    ///
    /// # Errors
    /// Unknown type or one named twice, a seed out of range, more nodes and edges of one hop and relation than 32 bits number.
    pub fn sample<N: AsRef<str>, I: AsRef<[u32]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I)>,
        key: SampleKey,
    ) -> Result<MiniBatch, GraphError> {
        let seeds = self.sampler.device_seeds(seeds)?;
        let rows = || self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken out, so that nothing is locked meanwhile and a batch that unwinds leaves no rows behind.
        let known = rows().pop();
        let mut tables = known.unwrap_or_else(|| self.tables());
        let batch = self.grow(&seeds, key, &mut tables)?;
        rows().push(tables);
        Ok(batch)
    }

    /// One entry for every node, all ones.
    fn tables(&self) -> Vec<CubeTensor> {
        let counts = self.sampler.graph().node_counts();
        let table = |&n: &usize| {
            let table = self.ints(n);
            let (count, dim) = grid(&table.client, n.max(1));
            // SAFETY: the table has at least `n` entries; units beyond them leave first.
            unsafe { forget_kernel::launch_unchecked(&table.client, count, dim, address(&[&table], n), arg(&table), n) };
            table
        };
        counts.iter().map(table).collect()
    }

    /// Room for `n` numbers.
    fn ints(&self, n: usize) -> CubeTensor {
        let client = self.device.client();
        burn_cubecl::ops::numeric::empty_device_contiguous_dtype(client, self.device.clone(), Shape::from([n.max(4)]), DType::U32)
    }

    fn grow(&self, seeds: &[Vec<u32>], key: SampleKey, rows: &mut [CubeTensor]) -> Result<MiniBatch, GraphError> {
        let (mut nodes, mut rows_of_seeds) = (vec![], vec![]);
        for ((ids, table), &total) in seeds.iter().zip(&*rows).zip(self.sampler.graph().node_counts()) {
            let (unique, of) = number_seeds(ids, total);
            nodes.push(Nodes { len: unique.len(), list: upload("seeds", &unique, &self.device) });
            rows_of_seeds.push(of);
            if let Some(nodes) = nodes.last() {
                settle(nodes, table, 0, true);
            }
        }
        let mut hops = vec![];
        for hop in 0..self.sampler.hops() {
            let num_dst: Vec<usize> = nodes.iter().map(|n| n.len).collect();
            let found: Vec<Found> = {
                let draws = self.sampler.device_hop(hop, key);
                // In the order of relations, which is that of new rows of a type.
                draws.iter().map(|draw| self.draw(draw, &num_dst, &mut nodes, rows)).collect::<Result<_, _>>()?
            };
            hops.push((found, num_dst, nodes.iter().map(|n| n.len).collect::<Vec<_>>()));
        }
        for (nodes, table) in nodes.iter().zip(&*rows) {
            settle(nodes, table, 0, false);
        }
        let etypes = self.sampler.graph().relations().len();
        let hops = hops.into_iter().map(|(found, num_dst, num_src)| {
            let mut edges: Vec<Option<HopEdges>> = vec![None; etypes];
            for f in found {
                let read = |x, n| if n == 0 { vec![] } else { read(x, n) };
                let (indptr, src, positions) = (read(f.indptr, f.num_dst + 1), read(f.src, f.edges), read(f.positions, f.edges));
                edges[f.etype] = Some(HopEdges { indptr, src, positions });
            }
            HopFound { edges, num_dst, num_src }
        });
        let hops: Vec<HopFound> = hops.collect();
        let nodes = nodes.into_iter().map(|n| read(n.list, n.len)).collect();
        self.sampler.device_batch(nodes, hops, rows_of_seeds)
    }

    /// Draws edges of one relation for the nodes there were before this hop, and numbers their sources.
    fn draw(&self, draw: &HopDraws<'_>, num_dst: &[usize], nodes: &mut [Nodes], rows: &[CubeTensor]) -> Result<Found, GraphError> {
        let (s, d) = self.sampler.graph().schema().ends(draw.etype);
        let num_dst = num_dst[d];
        // Kernels count edges, and number nodes and edges together, in 32 bits. Without replacement a node has no more than its own edges.
        let drawn = num_dst as u64 * u64::from(draw.fanout);
        let most = if draw.replace { drawn } else { drawn.min(draw.relation.num_edges() as u64) };
        let (count, limit) = (nodes[s].len as u64 + most, u64::from(u32::MAX - 1));
        if count > limit {
            let relation = self.sampler.graph().schema().etypes()[draw.etype].to_string();
            return Err(GraphError::TooLarge { relation, what: "nodes and edges of a batch", count, limit });
        }
        let layout = csc(draw.relation, &self.device);
        let how = How { replace: draw.replace, weighted: draw.weights.is_some(), keyed: draw.ids.is_some() };
        let dst = nodes[d].list.clone();
        let client = dst.client.clone();
        let none = dummy(&dst);
        let weights = draw.weights.map_or(&none, |w| self.weights[draw.etype].get_or_compute(|| upload_floats(w, &self.device)));
        let ids = draw.ids.map_or(&none, |ids| self.ids[d].get_or_compute(|| upload("ids", ids, &self.device)));
        let counts = self.ints(num_dst);
        let (count, dim) = grid(&client, num_dst.max(1));
        // SAFETY: nodes of a batch are nodes of the graph, for which the layout has offsets and they positions of edges, for which
        // there are weights; units beyond `num_dst` leave first.
        unsafe {
            count_kernel::launch_unchecked(
                &client,
                count,
                dim,
                address(&[&layout.indices], num_dst),
                arg(&dst),
                arg(&layout.indptr),
                arg(weights),
                arg(&counts),
                num_dst,
                draw.fanout,
                how,
            );
        }
        let indptr = exclusive_sums(&counts, num_dst);
        let edges = last(&indptr, num_dst);
        let positions = self.ints(edges);
        if edges > 0 {
            let (count, dim) = grid(&client, num_dst);
            let addresses = address(&[&layout.indices, &positions], num_dst);
            // SAFETY: as above; `positions` has room for the edges of every node from its offset on, of which there are no more than
            // its draws, and draws lie in the row of the node.
            unsafe {
                if how.weighted {
                    let keys = empty(&positions, Shape::from([edges.max(4)]), DType::F32);
                    weighted_kernel::launch_unchecked(
                        &client,
                        count,
                        dim,
                        addresses,
                        arg(&dst),
                        arg(&layout.indptr),
                        arg(&indptr),
                        arg(ids),
                        arg(weights),
                        arg(&positions),
                        arg(&keys),
                        num_dst,
                        draw.key[0],
                        draw.key[1],
                        how,
                    );
                } else {
                    uniform_kernel::launch_unchecked(
                        &client,
                        count,
                        dim,
                        addresses,
                        arg(&dst),
                        arg(&layout.indptr),
                        arg(&indptr),
                        arg(ids),
                        arg(&positions),
                        num_dst,
                        draw.key[0],
                        draw.key[1],
                        how,
                    );
                }
            }
        }
        let src = self.number(&positions, &layout.indices, edges, &mut nodes[s], &rows[s]);
        Ok(Found { etype: draw.etype, num_dst, edges, indptr, src, positions })
    }

    /// The row of the source of every edge found; new nodes go behind the others.
    fn number(&self, positions: &CubeTensor, indices: &CubeTensor, edges: usize, nodes: &mut Nodes, rows: &CubeTensor) -> CubeTensor {
        let (found, first, src) = (self.ints(edges), self.ints(edges), self.ints(edges));
        if edges == 0 {
            return src;
        }
        let client = found.client.clone();
        let next = nodes.len as u32;
        let launch = || grid(&client, edges);
        let addresses = || address(&[indices, rows, &found], edges);
        // SAFETY: positions are those of edges of the relation, their sources nodes for which `rows` has an entry; all other arrays
        // have one for every edge, and units beyond the edges leave first.
        unsafe {
            let (count, dim) = launch();
            offer_kernel::launch_unchecked(
                &client,
                count,
                dim,
                addresses(),
                arg(positions),
                arg(indices),
                arg(&found),
                arg(rows),
                edges,
                next,
            );
            let (count, dim) = launch();
            first_kernel::launch_unchecked(&client, count, dim, addresses(), arg(&found), arg(rows), arg(&first), edges, next);
        }
        let order = exclusive_sums(&first, edges);
        let new = last(&order, edges);
        let list = self.ints(nodes.len + new);
        let (count, dim) = grid(&client, nodes.len.max(1));
        // SAFETY: `list` has room for the nodes so far and the new ones, of which `order` counts the edges that met one first; offers that
        // stayed lie below `next + edges`, so that `order` has an entry for them.
        unsafe {
            copy_kernel::launch_unchecked(&client, count, dim, address(&[&list], nodes.len), arg(&nodes.list), arg(&list), nodes.len);
            let (count, dim) = launch();
            row_kernel::launch_unchecked(
                &client,
                count,
                dim,
                addresses(),
                arg(&found),
                arg(rows),
                arg(&order),
                arg(&src),
                arg(&list),
                edges,
                next,
            );
        }
        let from = nodes.len;
        *nodes = Nodes { list, len: from + new };
        settle(nodes, rows, from, true);
        src
    }
}

impl BlockSampler for DeviceSampler {
    fn on_host(&self) -> &NeighborSampler {
        &self.sampler
    }
    fn blocks(&self, ntype: &str, seeds: &[u32], key: SampleKey) -> Result<MiniBatch, GraphError> {
        self.sample([(ntype, seeds)], key)
    }
}

/// Weights as they are.
fn upload_floats(values: &[f32], device: &CubeDevice) -> CubeTensor {
    let values: Vec<f64> = values.iter().map(|&w| f64::from(w)).collect();
    crate::device::upload_floats(&values, device, DType::F32)
}

/// Writes, or forgets, the rows of nodes from `from` on.
fn settle(nodes: &Nodes, rows: &CubeTensor, from: usize, known: bool) {
    let n = nodes.len - from;
    if n == 0 {
        return;
    }
    let (count, dim) = grid(&rows.client, n);
    // SAFETY: nodes of a batch are nodes of the graph, for which `rows` has an entry; units beyond the last leave first.
    unsafe {
        settle_kernel::launch_unchecked(&rows.client, count, dim, address(&[rows], n), arg(&nodes.list), arg(rows), from, n, known);
    }
}

/// The first `n` numbers of an array.
fn read(x: CubeTensor, n: usize) -> Vec<u32> {
    let data = into_data_sync(x);
    let mut all: Vec<u32> = data.bytes().chunks_exact(4).map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect();
    all.truncate(n);
    all
}

/// Number `at` of an array.
fn last(x: &CubeTensor, at: usize) -> usize {
    let place = at..at + 1;
    read(burn_cubecl::kernel::slice(x.clone(), std::slice::from_ref(&place)), 1)[0] as usize
}

/// Each seed once, and the row of every one.
fn number_seeds(ids: &[u32], total: usize) -> (Vec<u32>, Vec<u32>) {
    let mut row = std::collections::HashMap::with_capacity(ids.len().min(total));
    let mut unique = vec![];
    let of = ids.iter().map(|&v| {
        *row.entry(v).or_insert_with(|| {
            unique.push(v);
            unique.len() as u32 - 1
        })
    });
    let of = of.collect();
    (unique, of)
}
