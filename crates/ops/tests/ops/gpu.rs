//! Every operator on a GPU backend: values and gradients equal those of the CPU, and two runs have the same bits.
//!
//! The tests run on CUDA if it is compiled in and finds a GPU, otherwise on wgpu, which software Vulkan supports. GPU
//! backends share all code of this crate, so one of them is enough. Without an adapter the tests are skipped.

use burn::tensor::{DType, Device, DeviceType, Tensor};
use burn_gnn_ops::*;
use burn_gnn_sampling::RowType;
use burn_gnn_sampling::{DeviceRows, FeatureSource, MemoryRows};
use burn_gnn_testutil::{Kind, NO_ADAPTER, skip};
use proptest::prelude::*;

use crate::calls::{Call, Gspmm};
use crate::families::{self, Family, Typed};
use burn_gnn_testutil::{assert_close, graphs};

/// Tolerance relative to 1 + |expected|, for sums of up to a hundred terms in f32 in another order and another `exp`.
const TOLERANCE: f64 = 2e-5;

pub(crate) fn device() -> Option<Device> {
    #[cfg(feature = "cuda")]
    if !Device::enumerate(DeviceType::Cuda).is_empty() {
        return Some(Device::cuda(0));
    }
    #[cfg(feature = "wgpu")]
    if !Device::enumerate(DeviceType::Wgpu).is_empty() {
        return Some(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice));
    }
    skip(Kind::Gpu, NO_ADAPTER);
    None
}

/// Whether Burn computes products of f32 with weights on NVIDIA's tensor cores in TF32.
fn by_tensor_cores(family: &Family) -> bool {
    #[cfg(feature = "cuda")]
    let cuda = !Device::enumerate(DeviceType::Cuda).is_empty();
    #[cfg(not(feature = "cuda"))]
    let cuda = false;
    cuda && ["matmul", "relational"].iter().any(|name| family.name.starts_with(name))
}

/// Error bound of sums of products in TF32. A factor has 11 bits and a relative error of 2^-10, whether it is rounded or
/// truncated, and a term has at most two products of two factors. The family is linear in each operand, so its result for
/// absolute values is the sum of the magnitudes of the terms.
fn tf32_error(family: &Family, g: &Typed, values: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let sizes: Vec<Vec<f64>> =
        values.iter().map(|values| values.iter().map(|x| x.abs()).collect()).collect();
    let mut sums = family.run(g, &sizes, (&Device::flex(), DType::F64), false);
    sums.iter_mut().flatten().for_each(|x| *x *= 4.0 * 2f64.powi(-10));
    sums
}

/// Compares values and gradients of one operator on both devices.
fn agree(what: &str, family: &Family, g: &Typed, device: &Device, seed: u64) {
    let values = family.values(g, seed);
    let [want, got] =
        [&Device::flex(), device].map(|device| family.run(g, &values, (device, DType::F32), false));
    let what = format!("{}, {what}", family.name);
    let tf32 = by_tensor_cores(family).then(|| tf32_error(family, g, &values));
    for (i, (want, got)) in want.iter().zip(&got).enumerate() {
        assert_eq!(want.len(), got.len(), "{what}, {i}: lengths");
        for (at, (want, got)) in want.iter().zip(got).enumerate() {
            let allowed = TOLERANCE * (1.0 + want.abs()) + tf32.as_ref().map_or(0.0, |e| e[i][at]);
            assert!((want - got).abs() <= allowed, "{what}, {i}, {at}: {got} against {want}");
        }
    }
    if family.selects {
        // Results are messages, each of which is rounded once.
        assert_eq!(got.last(), want.last(), "{what}: selected values");
    }
}

#[test]
fn named_graphs() {
    let Some(device) = device() else { return };
    // Graphs without edges are in the next test.
    for (name, relation) in graphs::named().into_iter().filter(|(_, r)| r.num_edges() > 0) {
        let g = Typed::new(&relation);
        for family in families::all(3) {
            agree(name, &family, &g, &device, 1);
        }
    }
}

/// Empty operands and results: no empty buffer is allocated, no empty grid is launched.
#[test]
fn graphs_without_edges() {
    let Some(device) = device() else { return };
    for (name, relation) in graphs::named().into_iter().filter(|(_, r)| r.num_edges() == 0) {
        for operation in Gspmm::all() {
            let call = Call {
                dtype: DType::F32,
                ..Call::new(&relation, operation, (&[2, 3], &[2, 1]), 1)
            };
            call.kernel(&device).assert_near(
                &format!("{name}, {operation:?}"),
                &call.kernel(&Device::flex()),
                0.0,
            );
        }
        let x = |rows: usize| Tensor::<2>::ones([rows, 3], &device);
        let (n, m) = (relation.num_src(), relation.num_dst());
        assert_eq!(
            gsddmm::<2, 2, 2>(&relation, SddmmOp::Dot, Target::Src, Target::Dst, x(n), x(m)).dims(),
            [0, 1],
            "{name}"
        );
        assert_eq!(edge_softmax(&relation, x(0), NormBy::Dst).dims(), [0, 3], "{name}");
        let z = Tensor::<3>::ones([n, 2, 3], &device);
        let a = |rows: usize| Tensor::<2>::ones([rows, 2], &device);
        let y = gat_attention(&relation, z, a(n), a(m), &GatOptions::default());
        assert_eq!(crate::f64s(y), vec![0.0; m * 6], "{name}");
        let weight = RelationalWeight::Full(Tensor::ones([2, 3, 4], &device));
        let y = relational_aggregate(
            &RelationalIndex::new(&relation, &[0u8; 0], 2),
            x(n),
            weight,
            None,
        );
        assert_eq!(crate::f64s(y), vec![0.0; m * 4], "{name}");
        assert_eq!(crate::f64s(matmul_rows(x(0), x(3))), [0.0; 0]);
    }
}

/// Rows wider than a vector, skewed degrees.
#[test]
fn wide_rows() {
    let Some(device) = device() else { return };
    let g = Typed::new(&graphs::random(40, 30, 600, 2.0));
    for width in [8, 33] {
        for family in families::few(width) {
            agree(&format!("width {width}"), &family, &g, &device, 2);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    /// Graphs with edges only: in debug builds of Burn 0.22.1 the element-wise operations of this test overflow on GPU
    /// tensors without entries. Graphs without edges are tested above.
    #[test]
    fn any_graph_is_as_on_the_cpu(relation in graphs::any_relation(1..40), seed in 0u64..1000) {
        if let Some(device) = device() {
            let g = Typed::new(&relation);
            for family in families::all(5) {
                agree("any graph", &family, &g, &device, seed);
            }
        }
    }
}

/// Rows by id; the remaining rows of the table are kept.
#[test]
fn steps_of_adam() {
    let Some(device) = device() else { return };
    for decay in crate::operators::adam::DECAYS {
        for n in [1, 7, 100] {
            let [want, got] = [&Device::flex(), &device]
                .map(|device| crate::operators::adam::run(device, DType::F32, n, decay));
            for (i, (want, got)) in want.iter().zip(&got).enumerate() {
                assert_close(&format!("{decay:?}, {i}"), got, want, 1e-6);
            }
        }
    }
    crate::operators::adam::some_rows(&device, DType::F32);
}

/// Sums do not depend on the order of threads.
#[test]
fn two_runs_are_the_same_bits() {
    let Some(device) = device() else { return };
    let g = Typed::new(&graphs::random(300, 200, 5_000, 2.0));
    for family in families::few(9) {
        let values = family.values(&g, 3);
        let [first, second] =
            [(); 2].map(|()| family.run(&g, &values, (&device, DType::F32), false));
        let bits = |x: &[Vec<f64>]| x.iter().flatten().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert!(bits(&first) == bits(&second), "{}", family.name);
    }
}

/// Caches on a group of this device, on this device and the CPU, and replicated: rows are returned unchanged, wherever
/// hot rows are cached.
#[test]
fn cached_rows_on_devices() {
    let Some(device) = device() else { return };
    let cpu = Device::flex();
    let (rows, width) = (500u32, 6);
    let values: Vec<f32> = (0..rows * width).map(|i| i as f32 - 0.25).collect();
    let source = || MemoryRows::new(&values, width as usize, RowType::F32).unwrap();
    let order: Vec<u32> = (0..rows).map(|i| i * 7 % rows).collect();
    let ids: Vec<u32> = (0..200).map(|i| i * i % rows).collect();
    let want = source().gather(&ids).unwrap();
    for groups in [
        vec![vec![device.clone()]],
        vec![vec![device.clone(), cpu.clone()]],
        vec![vec![device.clone()], vec![cpu.clone()]],
    ] {
        for ratio in [0.0, 0.4, 1.0] {
            let kept = DeviceRows::with_ratio(source(), &order, ratio, &groups).unwrap();
            for to in [&device, &cpu] {
                let x = kept.gather_tensor(&ids, to).unwrap();
                assert_eq!(
                    (x.dims(), x.device()),
                    ([200, width as usize], to.clone()),
                    "{groups:?} {ratio}"
                );
                assert_eq!(x.into_data().try_to_vec::<f32>().unwrap(), want, "{groups:?} {ratio}");
            }
            // The hot ids that each device of the group caches.
            let hot = &order[..(ratio * f64::from(rows)).round() as usize];
            let in_groups = groups.iter().flatten().count() as u64;
            let want = in_groups * ids.iter().filter(|id| hot.contains(id)).count() as u64;
            assert_eq!(
                (kept.hits().hot, kept.hits().cold),
                (want, 400 - want),
                "{groups:?} {ratio}"
            );
        }
    }
}

/// Operands on the CPU and on the GPU are an error that names both devices.
#[test]
fn devices_are_not_mixed() {
    let Some(device) = device() else { return };
    let (relation, cpu) = (graphs::small(), Device::flex());
    let here = |rows: usize| Tensor::<2>::ones([rows, 2], &device);
    let there = |rows: usize| Tensor::<2>::ones([rows, 2], &cpu);
    let is_device = |e: OpsError| {
        let text = e.to_string();
        assert!(
            matches!(e, OpsError::Device { .. }) && text.ends_with("move one of them"),
            "{text}"
        );
    };
    is_device(
        try_gspmm::<2, 2, 2>(&relation, BinaryOp::Mul, Reduce::Sum, here(5), there(8)).unwrap_err(),
    );
    is_device(
        try_gsddmm::<2, 2, 2>(&relation, SddmmOp::Dot, Target::Src, Target::Dst, there(5), here(4))
            .unwrap_err(),
    );
    is_device(try_matmul_rows(here(3), there(2)).unwrap_err());
    let z = Tensor::<3>::ones([5, 2, 1], &device);
    is_device(try_attention(&relation, there(8), z, None).unwrap_err());
    let options = AggregateOptions::default();
    is_device(
        try_weighted_aggregate(&relation, here(5), Some(Tensor::ones([8], &cpu)), None, &options)
            .unwrap_err(),
    );
    is_device(
        try_bias_activation(here(3), Some(Tensor::ones([2], &cpu)), Activation::Relu, None)
            .unwrap_err(),
    );
    let index = RelationalIndex::new(&relation, &[0u8; 8], 1);
    let weight = RelationalWeight::Full(Tensor::ones([1, 2, 3], &cpu));
    is_device(try_relational_aggregate(&index, here(5), weight, None).unwrap_err());
    let stack = burn_gnn_graph::RelationStack::new(
        4,
        &[5, 5],
        &[(0, relation.clone()), (1, relation.clone())],
    )
    .unwrap();
    assert!(matches!(
        try_multi_gspmm(&stack, vec![here(5), there(5)], Reduce::Sum),
        Err(OpsError::Member { what: "device", .. })
    ));
    // A graph can be used on several devices.
    for device in [&device, &cpu, &device] {
        let y = copy_u_sum(&relation, Tensor::<2>::ones([5, 2], device));
        assert_eq!(crate::f64s(y), [2.0, 2.0, 4.0, 4.0, 0.0, 0.0, 2.0, 2.0]);
    }
}

/// Rows without messages are +0.
#[test]
fn rows_without_messages_are_positive_zeros() {
    let Some(device) = device() else { return };
    crate::properties::all_operators::rows_without_messages("gpu", (&device, DType::F32), false);
}
