//! Devices, graphs, numbers and comparisons.

use burn::backend::DispatchDevice;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::{DType, Device, DeviceType, TensorData};
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{CubeBackend, CubeDevice};
use burn_gnn_graph::{Derived, Relation};
use burn_gnn_testutil::{Kind, NO_ADAPTER, graphs, skip};

/// An NVIDIA GPU where CUDA is compiled in. Else the software adapter of wgpu; its default one where there is no software,
/// or `BURN_GNN_TEST_DEVICE=gpu` asks for it.
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

/// The device of tests that [`adapter`] lets run.
pub(crate) fn device() -> CubeDevice {
    found().expect("a test asks for the adapter first")
}

/// Whether there is a device; the test is skipped where it is `None`.
pub(crate) fn adapter() -> Option<()> {
    if found().is_none() {
        skip(Kind::Gpu, NO_ADAPTER);
    }
    found().map(drop)
}

/// Numbers that repeat (SplitMix64).
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
    /// In `[-1, 1)`, an f32.
    pub(crate) fn number(&mut self) -> f64 {
        f64::from((self.word() >> 40) as f32 / (1u64 << 23) as f32 - 1.0)
    }
    pub(crate) fn numbers(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.number()).collect()
    }
    /// Away from 0, for divisors.
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

/// Equal up to `tolerance`, relative to numbers above 1; NaN equals NaN.
pub(crate) fn close(what: &str, got: &CubeTensor, want: &[f64], tolerance: f64) {
    let got = read(got);
    assert_eq!(got.len(), want.len(), "{what}: number of entries");
    for (i, (&g, &w)) in got.iter().zip(want).enumerate() {
        let same =
            (g.is_nan() && w.is_nan()) || g == w || (g - w).abs() <= tolerance * w.abs().max(1.0);
        assert!(same, "{what}, entry {i}: got {g}, want {w}");
    }
}

/// The corners of all operators, and rows that are longer than a block of threads.
pub(crate) fn named() -> Vec<(&'static str, Relation)> {
    let mut all = graphs::named();
    all.push(("long rows", graphs::with_hub(6, 5, 1500, 3)));
    all
}

/// Where column `j` of a row of shape `out` is in a row of shape `own`, by NumPy's rules.
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

/// Feature shape of the result of two operands.
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
