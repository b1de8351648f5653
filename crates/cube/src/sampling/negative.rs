//! Samples negative pairs on a device, with the same random draws as on the host.

use burn::tensor::{Bool, Device, Int, Tensor};
use burn_cubecl::CubeDevice;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_graph::GraphError;
use burn_gnn_sampling::internal::GlobalDraws;
use burn_gnn_sampling::{NegativeSampler, Negatives, SampleKey};
use cubecl::prelude::*;

use super::draw::insert;
use super::error::{DeviceSampleError, cube_device};
use super::ids::{Ids, ints};
use crate::device::launch::{address, arg, grid};
use crate::device::upload::{check_size, upload};
use crate::numeric::philox::{philox, pick};

/// A [`NegativeSampler`] that draws on a device. For the same key, the pairs equal those of the host, bit for bit.
///
/// Positive pairs are tensors on the device, and so are the negative pairs. Both can be the seeds of
/// [`DeviceSampler::sample_tensors`](crate::DeviceSampler::sample_tensors).
///
/// ```no_run
/// use burn::tensor::{Device, DeviceKind, Tensor};
/// use burn_gnn_cube::DeviceNegativeSampler;
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{NegativeSampler, SampleKey};
/// let device = Device::wgpu(DeviceKind::DefaultDevice);
/// let g = Graph::homogeneous(4, vec![0, 0, 1], vec![0, 1, 2])?;
/// let sampler = DeviceNegativeSampler::new(NegativeSampler::new(&g, "_E")?, &device)?;
/// let (src, dst) = (Tensor::from_ints([0, 1], &device), Tensor::from_ints([1, 2], &device));
/// let negatives = sampler.per_source(src, dst, 3, SampleKey::new(7))?; // three for each pair
/// assert_eq!(negatives.src().dims(), [6]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cost
/// Device memory: 4 bytes per edge, and per node of the endpoint that is kept. Time: one thread per positive pair, with
/// `O(k · log degree)`, or `O(k²)` with [`with_unique`](NegativeSampler::with_unique). Global pairs have one thread per pair,
/// and `O(nodes)` on the host per call.
#[derive(Debug)]
pub struct DeviceNegativeSampler {
    sampler: NegativeSampler,
    device: CubeDevice,
    indptr: CubeTensor,
    indices: CubeTensor,
}

/// Negative pairs on a device, see [`Negatives`].
#[derive(Clone, Debug)]
pub struct DeviceNegatives {
    src: Ids,
    dst: Ids,
    /// 1 if a pair is known to have no edge.
    strict: Ids,
    /// Numbers of nodes of both endpoints.
    nodes: [usize; 2],
}

impl DeviceNegatives {
    /// Sources, `[pairs]`.
    pub fn src(&self) -> Tensor<1, Int> {
        self.src.tensor(self.nodes[0])
    }
    /// Destinations, `[pairs]`.
    pub fn dst(&self) -> Tensor<1, Int> {
        self.dst.tensor(self.nodes[1])
    }
    /// Whether each pair is known to have no edge, `[pairs]`; see [`Negatives::is_strict`].
    pub fn is_strict(&self) -> Tensor<1, Bool> {
        self.strict.tensor(2).bool()
    }
    /// The pairs on the host.
    pub fn to_host(&self) -> Negatives {
        let is_strict = self.strict.read().into_iter().map(|flag| flag == 1).collect();
        Negatives { src: self.src.read(), dst: self.dst.read(), is_strict }
    }
}

/// How nodes are drawn, as a compile-time argument of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NegativeOptions {
    strict: bool,
    unique: bool,
    shared: bool,
}

/// How many of the ascending numbers `row[start..end]` are at most `x`. With `outside`, each number is reduced by its
/// index first.
#[cube]
fn count_at_most(row: &[u32], start: u32, end: u32, x: u32, #[comptime] outside: bool) -> u32 {
    let mut low = 0u32;
    let mut high = end - start;
    while low < high {
        let middle = (low + high) / 2u32;
        let mut found = row[(start + middle) as usize];
        if comptime!(outside) {
            found -= middle;
        }
        if found <= x {
            low = middle + 1u32;
        } else {
            high = middle;
        }
    }
    low
}

/// Draws `k` nodes for every positive pair.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
fn pairs_kernel(
    kept: &[u32],
    replaced: &[u32],
    indptr: &[u32],
    indices: &[u32],
    out_kept: &mut [u32],
    out: &mut [u32],
    strict: &mut [u32],
    n: usize,
    k: u32,
    nodes: u32,
    key_0: u32,
    key_1: u32,
    #[comptime] how: NegativeOptions,
) {
    let i = ABSOLUTE_POS;
    if i >= n {
        terminate!();
    }
    let u = kept[i];
    let start = indptr[u as usize];
    let end = indptr[u as usize + 1];
    let from = i * k as usize;
    let mut low = replaced[i];
    let mut high = u;
    // Number of nodes that must not be drawn.
    let mut stop = end;
    if comptime!(how.shared) {
        low = 0xffff_ffffu32;
        high = 0xffff_ffffu32;
    }
    if comptime!(how.shared || !how.strict) {
        stop = start;
    }
    let left = nodes - (stop - start);
    let mut fits = k;
    if left == 0u32 {
        fits = 0u32;
    }
    if comptime!(how.unique) {
        if left < k {
            fits = left;
        }
    }
    let mut words = Vector::<u32, Const<4>>::new(0u32);
    let mut block = 0u32;
    let mut at = 4u32;
    for taken in 0..k {
        let mut bound = nodes;
        let mut x = taken;
        let mut drawn = false;
        if taken < fits {
            bound = left;
            if comptime!(how.unique) {
                // Floyd's algorithm; if all nodes are taken, it needs no random numbers.
                bound = left - fits + taken + 1u32;
                drawn = fits == left;
            }
        }
        while !drawn {
            if at == 4u32 {
                words = philox(low, high, block, 0u32, key_0, key_1);
                block += 1u32;
                at = 0u32;
            }
            let word = pick(words, at);
            at += 1u32;
            let rest = word * bound;
            x = word.mul_hi(bound);
            drawn = rest >= bound || rest >= (0u32 - bound) % bound;
        }
        let mut sorted = false;
        if comptime!(how.unique) {
            sorted = taken < fits;
        }
        if sorted {
            let mut known = false;
            for j in 0..taken {
                if out[from + j as usize] == x {
                    known = true;
                }
            }
            if known {
                x = left - fits + taken;
            }
            insert(out, from, taken as usize, x);
        } else {
            out[from + taken as usize] = x;
        }
    }
    for j in 0..k {
        let here = from + j as usize;
        out_kept[here] = u;
        let mut flag = 0u32;
        if j < fits {
            // The index of the node among the nodes that may be drawn.
            let rank = out[here];
            let node = rank + count_at_most(indices, start, stop, rank, true);
            out[here] = node;
            if comptime!(how.strict) {
                flag = 1u32;
            }
            if comptime!(how.strict && how.shared) {
                let up_to = count_at_most(indices, start, end, node, false);
                if up_to > 0u32 {
                    if indices[(start + up_to - 1u32) as usize] == node {
                        flag = 0u32;
                    }
                }
            }
        }
        strict[here] = flag;
    }
}

/// Draws global pairs by rank. `before` has the first rank of each source, as 64-bit numbers in two words, the low word
/// first.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
fn global_kernel(
    before: &[u32],
    indptr: &[u32],
    indices: &[u32],
    src: &mut [u32],
    dst: &mut [u32],
    strict: &mut [u32],
    n: usize,
    num_src: u32,
    total_low: u32,
    total_high: u32,
    least_low: u32,
    least_high: u32,
    key_0: u32,
    key_1: u32,
    #[comptime] is_strict: bool,
) {
    let i = ABSOLUTE_POS;
    if i >= n {
        terminate!();
    }
    let mut rank_low = 0u32;
    let mut rank_high = 0u32;
    let mut words = Vector::<u32, Const<4>>::new(0u32);
    let mut attempt = 0u32;
    let mut drawn = false;
    while !drawn {
        if (attempt & 1u32) == 0u32 {
            words = philox(i as u32, 0u32, attempt / 2u32, 0u32, key_0, key_1);
        }
        let high = pick(words, 2u32 * (attempt % 2u32));
        let low = pick(words, 2u32 * (attempt % 2u32) + 1u32);
        attempt += 1u32;
        // (high, low) times the total in 128 bits, of which the upper 64 are the rank.
        let word_0 = low * total_low;
        let carry = low.mul_hi(total_low);
        let sum = low * total_high + carry;
        let over_1 = select(sum < carry, 1u32, 0u32);
        let cross = high * total_low;
        let word_1 = sum + cross;
        let over_2 = select(word_1 < cross, 1u32, 0u32);
        let a = low.mul_hi(total_high);
        let b = high.mul_hi(total_low);
        let upper = a + b;
        let over_3 = select(upper < b, 1u32, 0u32);
        let c = high * total_high;
        let upper_2 = upper + c;
        let over_4 = select(upper_2 < c, 1u32, 0u32);
        let word_2 = upper_2 + over_1 + over_2;
        let over_5 = select(word_2 < over_1 + over_2, 1u32, 0u32);
        rank_low = word_2;
        rank_high = high.mul_hi(total_high) + over_3 + over_4 + over_5;
        drawn = word_1 > least_high || (word_1 == least_high && word_0 >= least_low);
    }
    // Binary search for the source that has this rank.
    let mut first = 0u32;
    let mut end = num_src;
    while first + 1u32 < end {
        let middle = (first + end) / 2u32;
        let middle_low = before[(2u32 * middle) as usize];
        let middle_high = before[(2u32 * middle + 1u32) as usize];
        if middle_high < rank_high || (middle_high == rank_high && middle_low <= rank_low) {
            first = middle;
        } else {
            end = middle;
        }
    }
    let rank = rank_low - before[(2u32 * first) as usize];
    let mut node = rank;
    if comptime!(is_strict) {
        let start = indptr[first as usize];
        node += count_at_most(indices, start, indptr[first as usize + 1], rank, true);
    }
    src[i] = first;
    dst[i] = node;
    let mut flag = 0u32;
    if comptime!(is_strict) {
        flag = 1u32;
    }
    strict[i] = flag;
}

impl DeviceNegativeSampler {
    /// A sampler on `device` with the settings of `sampler`.
    ///
    /// # Errors
    /// The device is not a GPU, the edges do not fit in its memory, or a setting is not supported: draws by in-degree or
    /// weight, conditional negatives, and edges with times.
    pub fn new(sampler: NegativeSampler, device: &Device) -> Result<Self, DeviceSampleError> {
        let device = cube_device(device)?;
        if let Some(what) = sampler.device_lacks() {
            return Err(DeviceSampleError::Lacks { what });
        }
        let facts = sampler.device_facts();
        check_size("edges", facts.indices.len(), &device)?;
        // The ranks of global pairs have two words each.
        check_size("row offsets", 2 * facts.indptr.len(), &device)?;
        let (indptr, indices) =
            (upload("row offsets", facts.indptr, &device), upload("edges", facts.indices, &device));
        Ok(Self { sampler, device, indptr, indices })
    }

    /// The sampler on the host.
    pub fn sampler(&self) -> &NegativeSampler {
        &self.sampler
    }

    pub(super) fn device(&self) -> &CubeDevice {
        &self.device
    }

    /// Draws `k` negatives for each positive pair `src[i] -> dst[i]`, both `[pairs]`, with the same source. They are entries
    /// `i * k..(i + 1) * k` of the result, as in [`NegativeSampler::per_source`].
    ///
    /// # Errors
    /// The sampler draws sources; the tensors differ in length, are on another device, or have another element type than
    /// i32 and u32; ids are out of range; there are 2³² pairs or more.
    pub fn per_source(
        &self,
        src: Tensor<1, Int>,
        dst: Tensor<1, Int>,
        k: usize,
        key: SampleKey,
    ) -> Result<DeviceNegatives, GraphError> {
        self.of_pairs(false, ("src", src), ("dst", dst), k, key)
    }

    /// Draws `k` negatives for each positive pair `src[i] -> dst[i]`, both `[pairs]`, with the same destination. They are
    /// entries `i * k..(i + 1) * k` of the result, as in [`NegativeSampler::per_destination`].
    ///
    /// # Errors
    /// The sampler draws destinations; otherwise as for [`per_source`](Self::per_source).
    pub fn per_destination(
        &self,
        src: Tensor<1, Int>,
        dst: Tensor<1, Int>,
        k: usize,
        key: SampleKey,
    ) -> Result<DeviceNegatives, GraphError> {
        self.of_pairs(true, ("dst", dst), ("src", src), k, key)
    }

    fn of_pairs(
        &self,
        of_sources: bool,
        (arg_kept, kept): (&'static str, Tensor<1, Int>),
        (arg_replaced, replaced): (&'static str, Tensor<1, Int>),
        k: usize,
        key: SampleKey,
    ) -> Result<DeviceNegatives, GraphError> {
        let key = self.sampler.device_pairs(of_sources, key)?;
        let facts = self.sampler.device_facts();
        let ([pairs], [others]) = (kept.dims(), replaced.dims());
        if pairs != others {
            let (relation, arg, why) = (
                facts.name.to_owned(),
                arg_replaced.to_owned(),
                "one per entry of the other endpoint",
            );
            return Err(GraphError::Length { relation, arg, why, expected: pairs, actual: others });
        }
        let of = format!("edge type `{}`", facts.name);
        let kept = Ids::new(arg_kept, &of, kept, facts.nodes[0], &self.device)?;
        let replaced = Ids::new(arg_replaced, &of, replaced, facts.nodes[1], &self.device)?;
        let n = self.room(pairs as u128 * k as u128)?;
        let [out_kept, out, strict] = [(); 3].map(|()| Ids { list: ints(&self.device, n), len: n });
        if n > 0 {
            let client = self.indptr.client.clone();
            let (count, dim) = grid(&client, pairs);
            let how = NegativeOptions {
                strict: facts.strict,
                unique: facts.unique,
                shared: facts.shared,
            };
            // SAFETY: ids were checked, nodes that pairs keep have offsets and these positions of nodes; outputs have
            // `k` entries for each of the pairs; threads beyond the pairs return early.
            unsafe {
                pairs_kernel::launch_unchecked(
                    &client,
                    count,
                    dim,
                    address([&self.indices, &self.indptr, &out.list], pairs),
                    arg(&kept.list),
                    arg(&replaced.list),
                    arg(&self.indptr),
                    arg(&self.indices),
                    arg(&out_kept.list),
                    arg(&out.list),
                    arg(&strict.list),
                    pairs,
                    k as u32,
                    facts.nodes[1] as u32,
                    key[0],
                    key[1],
                    how,
                );
            }
        }
        let (src, dst) = if of_sources { (out, out_kept) } else { (out_kept, out) };
        Ok(DeviceNegatives { src, dst, strict, nodes: self.endpoints() })
    }

    /// Draws `count` pairs without an edge, with equal probability, as in [`NegativeSampler::global`].
    ///
    /// # Errors
    /// As for [`NegativeSampler::global`]; the sampler draws distinct pairs ([`NegativeSampler::with_unique`]), which
    /// depend on each other; there are 2³² pairs or more.
    pub fn global(&self, count: usize, key: SampleKey) -> Result<DeviceNegatives, GraphError> {
        let GlobalDraws { key, strict: is_strict, before } =
            self.sampler.device_global(count, key)?;
        let facts = self.sampler.device_facts();
        let n = self.room(count as u128)?;
        let [src, dst, strict] = [(); 3].map(|()| Ids { list: ints(&self.device, n), len: n });
        let total = before.last().copied().unwrap_or(0);
        // If there are no pairs of nodes, `count` is 0.
        if n > 0 && total > 0 {
            let words: Vec<u32> =
                before.iter().flat_map(|&rank| [rank as u32, (rank >> 32) as u32]).collect();
            let before = upload("ranks of pairs", &words, &self.device);
            // Smallest low word that is accepted (Lemire).
            let least = total.wrapping_neg() % total;
            let client = self.indptr.client.clone();
            let (count, dim) = grid(&client, n);
            // SAFETY: ranks lie below the last of `before`, so that the source found is one, of whose nodes or free
            // ones the rest is the number; outputs have an entry for every pair; threads beyond the pairs return early.
            unsafe {
                global_kernel::launch_unchecked(
                    &client,
                    count,
                    dim,
                    address([&self.indices, &before, &src.list], n),
                    arg(&before),
                    arg(&self.indptr),
                    arg(&self.indices),
                    arg(&src.list),
                    arg(&dst.list),
                    arg(&strict.list),
                    n,
                    facts.nodes[0] as u32,
                    total as u32,
                    (total >> 32) as u32,
                    least as u32,
                    (least >> 32) as u32,
                    key[0],
                    key[1],
                    is_strict,
                );
            }
        }
        Ok(DeviceNegatives { src, dst, strict, nodes: self.endpoints() })
    }

    /// Numbers of source and destination nodes.
    fn endpoints(&self) -> [usize; 2] {
        let facts = self.sampler.device_facts();
        let [kept, drawn] = facts.nodes;
        if facts.of_sources { [drawn, kept] } else { [kept, drawn] }
    }

    /// Returns an error if there are more pairs than fit in an array.
    fn room(&self, pairs: u128) -> Result<usize, GraphError> {
        let most = u128::from(self.device.client().properties().memory.max_page_size / 4)
            .min(u128::from(u32::MAX - 1));
        if pairs <= most {
            return Ok(pairs as usize);
        }
        let expected = format!("at most {most} pairs in a buffer of the device");
        Err(GraphError::Setting { arg: "negatives", expected, found: pairs.to_string() })
    }
}
