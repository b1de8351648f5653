//! Devices, graphs, random numbers and comparisons for the tests.

use burn::backend::DispatchDevice;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::{DType, Device, DeviceType, TensorData};
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{CubeBackend, CubeDevice};
use burn_gnn_graph::{Derived, Relation};
use burn_gnn_testutil::{Kind, NO_ADAPTER, graphs, skip};

/// An NVIDIA GPU if CUDA is compiled in, otherwise the software adapter of wgpu. If there is no software adapter, or
/// `BURN_GNN_TEST_DEVICE=gpu` is set, the default adapter of wgpu.
fn find() -> Option<CubeDevice> {
    #[cfg(feature = "cuda")]
    if !Device::enumerate(DeviceType::Cuda).is_empty() {
        return Some(CubeDevice::Cuda(cubecl::device::CudaDevice::new(0)));
    }
    #[cfg(feature = "wgpu")]
    {
        use cubecl::device::{WgpuDevice, WgpuDeviceKind};
        let [software, default] = [WgpuDeviceKind::Cpu, WgpuDeviceKind::DefaultDevice]
            .map(|kind| CubeDevice::Wgpu(WgpuDevice::new(kind)));
        let asked = std::env::var("BURN_GNN_TEST_DEVICE").is_ok_and(|which| which == "gpu");
        let all = Device::enumerate(DeviceType::Wgpu);
        let here = all.contains(&Device::new(DispatchDevice::Cube(software.clone())));
        if !all.is_empty() {
            return Some(if asked || !here { default } else { software });
        }
    }
    None
}

fn found() -> Option<CubeDevice> {
    static DEVICE: Derived<Option<CubeDevice>> = Derived::new();
    DEVICE.get_or_compute(find).clone()
}

/// The device of the tests, if [`adapter`] has found one.
pub(crate) fn device() -> CubeDevice {
    found().expect("tests call `adapter` first")
}

/// `Some` if there is a device; otherwise the test is recorded as skipped.
pub(crate) fn adapter() -> Option<()> {
    if found().is_none() {
        skip(Kind::Gpu, NO_ADAPTER);
    }
    found().map(drop)
}

/// A reproducible random number generator (SplitMix64).
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }
    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.word() % n as u64) as usize
    }
    /// An f32 in `[-1, 1)`.
    pub(crate) fn number(&mut self) -> f64 {
        f64::from((self.word() >> 40) as f32 / (1u64 << 23) as f32 - 1.0)
    }
    pub(crate) fn numbers(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.number()).collect()
    }
    /// A number that is not close to 0, for divisors.
    pub(crate) fn divisors(&mut self, n: usize) -> Vec<f64> {
        self.numbers(n).into_iter().map(|x| if x < 0.0 { x - 0.5 } else { x + 0.5 }).collect()
    }
}

pub(crate) fn tensor(values: &[f64], shape: &[usize]) -> CubeTensor {
    tensor_of(values, shape, DType::F32)
}

pub(crate) fn tensor_of(values: &[f64], shape: &[usize], dtype: DType) -> CubeTensor {
    assert_eq!(values.len(), shape.iter().product::<usize>());
    CubeBackend::float_from_data(
        TensorData::new(values.to_vec(), shape.to_vec()).convert_dtype(dtype),
        &device(),
    )
}

pub(crate) fn read(x: &CubeTensor) -> Vec<f64> {
    let data = burn_cubecl::ops::into_data_sync(x.clone());
    data.convert_dtype(DType::F64).try_to_vec().unwrap()
}

pub(crate) fn read_ids(x: &CubeTensor) -> Vec<u32> {
    let data = burn_cubecl::ops::into_data_sync(x.clone());
    data.try_to_vec::<i32>().unwrap().into_iter().map(|v| v as u32).collect()
}

pub(crate) fn bytes(x: &CubeTensor) -> Vec<u8> {
    burn_cubecl::ops::into_data_sync(x.clone()).bytes().to_vec()
}

pub(crate) fn shape(x: &CubeTensor) -> Vec<usize> {
    x.meta.shape().to_vec()
}

/// Asserts that numbers differ by at most `tolerance`, absolute below 1 and relative above. NaN equals NaN.
pub(crate) fn close(what: &str, got: &CubeTensor, want: &[f64], tolerance: f64) {
    let got = read(got);
    assert_eq!(got.len(), want.len(), "{what}: number of entries");
    for (i, (&g, &w)) in got.iter().zip(want).enumerate() {
        let same =
            (g.is_nan() && w.is_nan()) || g == w || (g - w).abs() <= tolerance * w.abs().max(1.0);
        assert!(same, "{what}, entry {i}: got {g}, want {w}");
    }
}

/// The named graphs of corner cases, and a graph with rows that are longer than a thread block.
pub(crate) fn named() -> Vec<(&'static str, Relation)> {
    let mut all = graphs::named();
    all.push(("long rows", graphs::with_hub(6, 5, 1500, 3)));
    all
}

/// The entry of a row of shape `own` that column `j` of a row of shape `out` reads, by NumPy broadcasting.
pub(crate) fn offset(own: &[usize], out: &[usize], mut j: usize) -> usize {
    let (mut at, mut stride) = (0, 1);
    for axis in (0..out.len()).rev() {
        let i = j % out[axis];
        j /= out[axis];
        if let Some(k) = (axis + own.len()).checked_sub(out.len()) {
            if own[k] != 1 {
                at += i * stride;
            }
            stride *= own[k];
        }
    }
    at
}

/// The broadcast feature shape of two operands.
pub(crate) fn joined(lhs: &[usize], rhs: &[usize]) -> Vec<usize> {
    let rank = lhs.len().max(rhs.len());
    let axis = |s: &[usize], i: usize| (i + s.len()).checked_sub(rank).map_or(1, |k| s[k]);
    (0..rank).map(|i| if axis(lhs, i) == 1 { axis(rhs, i) } else { axis(lhs, i) }).collect()
}

pub(crate) fn size(shape: &[usize]) -> usize {
    shape.iter().product()
}

pub(crate) fn dims(rows: usize, features: &[usize]) -> Vec<usize> {
    let mut dims = vec![rows];
    dims.extend_from_slice(features);
    dims
}
