//! Training on a GPU backend gives the losses of the CPU, because initial weights and dropout masks
//! are the same.

use burn::tensor::{Device, FloatDType};
use burn_gnn::data::Dataset;
use burn_gnn::models::{FitConfig, GatConfig, GcnConfig, NodeClassifier, RgcnConfig, fit, seeded};

use crate::common::data::{Loaded, load};
use crate::dataset;

const EPOCHS: usize = 20;

/// Relative tolerance: f32 sums in a different order, whose differences Adam and ReLUs near 0
/// amplify in later epochs. NVIDIA's tensor cores multiply weights in TF32, of 11 bits.
fn tolerance() -> f64 {
    if crate::common::cuda().is_some() { 3e-2 } else { 1e-3 }
}

/// Compares the losses of both devices, which must decrease and agree.
fn compare<M: NodeClassifier>(
    set: &Dataset,
    config: &FitConfig,
    model: impl Fn(&Loaded, &Device) -> M,
) {
    let Some(gpu) = crate::gpu() else { return };
    let losses = |device: &Device| -> Vec<f64> {
        let data = load(set.clone(), None, device, FloatDType::F32).unwrap();
        let model = seeded(0, || model(&data, &device.clone().autodiff()));
        let config = config.clone().with_epochs(EPOCHS).with_progress(false);
        let task = data.task(&data.graph);
        fit(model, &task, &task.train, &task.val, &config)
            .unwrap()
            .history
            .iter()
            .map(|e| e.loss)
            .collect()
    };
    let (want, got) = (losses(&Device::flex()), losses(&gpu));
    assert!(want[EPOCHS - 1] < want[0], "{want:?}");
    let worst = want.iter().zip(&got).map(|(a, b)| (a - b).abs() / a.abs()).fold(0.0, f64::max);
    println!("{} on {gpu:?}: worst relative difference of losses {worst:.1e}", set.name);
    assert!(got.len() == EPOCHS && worst <= tolerance(), "{worst:e}: {got:?} instead of {want:?}");
}

fn width(data: &Loaded) -> usize {
    data.width().unwrap()
}

fn cora() -> Option<Dataset> {
    let mut set = dataset("cora")?;
    set.graph = set.graph.add_self_loops(0).unwrap();
    Some(set)
}

#[test]
fn gcn_on_cora() {
    let Some(set) = cora() else { return };
    let model =
        |data: &Loaded, device: &Device| GcnConfig::new(width(data), data.num_classes).init(device);
    compare(&set, &FitConfig::new().with_weight_decay(5e-4), model);
}

#[test]
fn gat_on_cora() {
    let Some(set) = cora() else { return };
    let model =
        |data: &Loaded, device: &Device| GatConfig::new(width(data), data.num_classes).init(device);
    compare(&set, &FitConfig::new().with_weight_decay(5e-4), model);
}

#[test]
fn rgcn_on_aifb() {
    let Some(mut set) = dataset("aifb") else { return };
    set.graph = set.graph.with_inverse_relations("-inv").unwrap();
    let config = RgcnConfig::new(set.num_classes).with_hidden(32).with_dropout(0.3);
    compare(&set, &FitConfig::new(), |data, device| {
        config.try_init(&data.graph, data.inputs(), device).unwrap()
    });
}

/// Mini-batches whose blocks are sampled on the device, with features cached there.
#[cfg(any(feature = "wgpu", feature = "cuda"))]
#[test]
fn sage_by_mini_batches() {
    use burn::optim::GradientsParams;
    use burn::tensor::Tensor;
    use burn_gnn::graph::{Graph, Stream};
    use burn_gnn::models::{FusedAdamConfig, Rows, SageConfig};
    use burn_gnn::ops::{DeviceSampler, edges_to_device};
    use burn_gnn::sampling::RowType;
    use burn_gnn::sampling::{
        BlockSampler, DeviceRows, FeatureSource, GraphFeatures, Loader, MemoryRows,
        NeighborSampler, Seeds,
    };

    const NODES: u32 = 800;
    const WIDTH: usize = 12;
    let Some(gpu) = crate::gpu() else { return };
    let s = Stream::new(3, "edges", 0);
    // Classes alternate; eight of ten edges connect nodes of the same class.
    let end = |v: u32, k: u64| (s.uniform(u64::from(v), k) * f64::from(NODES)) as u32;
    let pairs = (0..NODES).flat_map(|v| (0..10).map(move |k| (v, k)));
    let (src, dst): (Vec<u32>, Vec<u32>) =
        pairs.map(|(v, k)| (if k < 8 { end(v, k) / 4 * 4 + v % 4 } else { end(v, k) }, v)).unzip();
    let g = Graph::homogeneous(NODES as usize, src, dst).unwrap();
    let noise = Stream::new(3, "rows", 0);
    let value = |i: u32| {
        noise.normal(u64::from(i), 0) as f32
            + f32::from(u8::from(i / WIDTH as u32 % 4 == i % WIDTH as u32))
    };
    let values: Vec<f32> = (0..NODES * WIDTH as u32).map(value).collect();
    let seeds: Vec<u32> = (0..NODES / 2).collect();

    fn losses<S: BlockSampler + 'static>(
        sampler: S,
        rows: impl FeatureSource + 'static,
        seeds: &[u32],
        device: &Device,
    ) -> Vec<f64> {
        let g = sampler.on_host().graph().clone();
        let features = GraphFeatures::new(&g, device).with_nodes("_N", rows).unwrap();
        let loader = Loader::new(sampler, Seeds::nodes(&g, [("_N", seeds)]).unwrap(), 64)
            .unwrap()
            .with_features(features);
        let config = SageConfig::new(WIDTH, 4).with_hidden(16).with_num_layers(2).with_dropout(0.2);
        let mut net = seeded(0, || config.init(&device.clone().autodiff()));
        let (mut optimizer, mut all) = (FusedAdamConfig::new().init(), vec![]);
        for epoch in 0..3 {
            for b in loader.epoch(epoch) {
                let b = b.unwrap();
                let labels: Vec<i64> =
                    b.seeds(0).unwrap().iter().map(|&v| i64::from(v % 4)).collect();
                let rows =
                    Rows::new(&(0..labels.len() as u32).collect::<Vec<_>>(), &labels, 4).unwrap();
                let x = b.x(..).unwrap();
                assert_eq!(&x.device(), device);
                let loss =
                    rows.cross_entropy(net.forward_blocks(&b.batch.blocks, Tensor::from_inner(x)));
                all.push(f64::from(loss.clone().into_scalar::<f32>()));
                net = optimizer.step(
                    0.01,
                    net.clone(),
                    GradientsParams::from_grads(loss.backward(), &net),
                );
            }
        }
        all
    }
    let sampler = || NeighborSampler::new(&g, [4, 3]).unwrap();
    let source = || MemoryRows::new(&values, WIDTH, RowType::F32).unwrap();
    let want = losses(sampler(), source(), &seeds, &Device::flex());
    let order: Vec<u32> = (0..NODES).rev().collect();
    let rows = DeviceRows::with_ratio(source(), &order, 0.5, &[vec![gpu.clone()]]).unwrap();
    assert!(edges_to_device(&g, &gpu).unwrap() >= 4 * 4 * u64::from(10 * NODES));
    let got = losses(DeviceSampler::new(sampler(), &gpu).unwrap(), rows, &seeds, &gpu);
    assert!(want.len() == 21 && want[20] < want[0], "{want:?}");
    let worst = want.iter().zip(&got).map(|(a, b)| (a - b).abs() / a.abs()).fold(0.0, f64::max);
    assert!(
        got.len() == want.len() && worst <= tolerance(),
        "{worst:e}: {got:?} instead of {want:?}"
    );
}
