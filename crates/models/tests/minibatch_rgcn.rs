//! R-GCN trained by neighbour sampling compared with full-batch training: accuracy on real graphs, means over seeds.

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_data::{Dataset, crates_graph, load_dataset};
use burn_gnn_models::{
    Counts, FitConfig, FusedAdamConfig, NodeTask, NodeTensors, Rgcn, RgcnConfig, Rows, TypeInput,
    TypeMap, evaluate, fit, seeded,
};
use burn_gnn_sampling::RowType;
use burn_gnn_sampling::{FeatureSource, GraphFeatures, Loader, MemoryRows, NeighborSampler, Seeds};
use burn_gnn_testutil::data;

const SEEDS: u64 = 3;
const EPOCHS: usize = 30;

struct Task {
    set: Dataset,
    values: Vec<Option<(Vec<f32>, usize)>>,
    target: usize,
}

impl Task {
    fn new(mut set: Dataset) -> Self {
        if !set.inverse_edges_stored {
            set.graph = set.graph.with_inverse_relations("-inv").unwrap();
        }
        let dense =
            |t: &String| set.features.get(t).map(|f| (f.row_normalized().to_dense(), f.cols()));
        let values = set.graph.schema().ntypes().iter().map(dense).collect();
        let target = set.graph.schema().ntype(&set.target).unwrap();
        Self { set, values, target }
    }
    fn model(&self, seed: u64, dropout: f64) -> Rgcn {
        let sizes = self.values.iter().map(|v| v.as_ref().map(|v| TypeInput::Features(v.1)));
        let inputs = TypeMap::from_list(self.set.graph.schema(), sizes);
        let config = RgcnConfig::new(self.set.num_classes).with_hidden(32).with_dropout(dropout);
        seeded(seed, || config.try_init(&self.set.graph, inputs, &Device::flex().autodiff()))
            .unwrap()
    }
    fn features(&self) -> NodeTensors {
        let tensor = |v: &(Vec<f32>, usize)| {
            Tensor::from_data(TensorData::new(v.0.clone(), [v.0.len() / v.1, v.1]), &Device::flex())
        };
        NodeTensors::from_list(
            self.set.graph.schema(),
            self.values.iter().map(|v| v.as_ref().map(tensor)),
        )
    }
    fn rows(&self, ids: &[u32]) -> Rows {
        Rows::new(ids, &self.set.labels, self.set.num_classes).unwrap()
    }

    /// Test accuracy of the epoch that is best on validation nodes.
    fn whole(&self, seed: u64) -> f64 {
        let split = self.set.splits.values().next().unwrap();
        let (train_rows, val) = (self.rows(&split.train), self.rows(&split.val));
        let task = NodeTask {
            graph: &self.set.graph,
            features: self.features(),
            target: self.set.target.clone(),
            train: train_rows,
            val,
            test: Rows::default(),
        };
        let config = FitConfig::new().with_epochs(EPOCHS).with_seed(seed).with_progress(false);
        let trained = fit(self.model(seed, 0.3), &task, &task.train, &task.val, &config).unwrap();
        evaluate(&trained.model, &task, &self.rows(&split.test)).unwrap().accuracy()
    }

    fn sampled(&self, seed: u64, fanouts: [i64; 2], batch: usize) -> f64 {
        let split = self.set.splits.values().next().unwrap();
        let (val, test) = (self.rows(&split.val), self.rows(&split.test));
        let sampler = NeighborSampler::new(&self.set.graph, fanouts).unwrap();
        let seeds = Seeds::nodes(&self.set.graph, [(&self.set.target, &split.train)]).unwrap();
        let mut features = GraphFeatures::new(&self.set.graph, &Device::flex());
        for (ntype, v) in self.set.graph.schema().ntypes().iter().zip(&self.values) {
            if let Some((values, width)) = v {
                let rows = MemoryRows::new(values, *width, RowType::F32).unwrap();
                assert_eq!(rows.num_rows(), self.set.graph.num_nodes(ntype).unwrap());
                features = features.with_nodes(ntype, rows).unwrap();
            }
        }
        let loader =
            Loader::new(sampler, seeds, batch).unwrap().with_features(features).with_seed(seed);
        let mut net = self.model(seed, 0.3);
        let mut optimizer = FusedAdamConfig::new().init();
        let mut best = (-1.0, 0.0);
        let x = self.features();
        for epoch in 0..EPOCHS as u64 {
            for b in loader.epoch(epoch) {
                let b = b.unwrap();
                let labels: Vec<i64> = b
                    .seeds(self.target)
                    .unwrap()
                    .iter()
                    .map(|&v| self.set.labels[v as usize])
                    .collect();
                let rows = Rows::new(
                    &(0..labels.len() as u32).collect::<Vec<_>>(),
                    &labels,
                    self.set.num_classes,
                )
                .unwrap();
                let x: NodeTensors =
                    b.features().map(|(ntype, x)| (ntype, Tensor::from_inner(x))).collect();
                let logits = net.forward_blocks(&b.batch.blocks, &x)[&self.set.target].clone();
                let grads =
                    GradientsParams::from_grads(rows.cross_entropy(logits).backward(), &net);
                net = optimizer.step(0.01, net, grads);
            }
            let logits = net.valid().forward(&self.set.graph, &x)[&self.set.target].clone();
            let accuracy = |rows: &Rows| Counts::new(&logits, rows).accuracy();
            if accuracy(&val) > best.0 {
                best = (accuracy(&val), accuracy(&test));
            }
        }
        best.1
    }

    fn compare(&self, name: &str, fanouts: [i64; 2], batch: usize) {
        let mean = |f: &dyn Fn(u64) -> f64| (0..SEEDS).map(f).sum::<f64>() / SEEDS as f64;
        let (whole, sampled) =
            (mean(&|seed| self.whole(seed)), mean(&|seed| self.sampled(seed, fanouts, batch)));
        println!("{name}: whole graph {:.2} %, sampled {:.2} %", 100.0 * whole, 100.0 * sampled);
        assert!(sampled >= whole - 0.01, "{name}: whole graph {whole}, sampled {sampled}");
    }
}

#[test]
fn on_the_crates_graph() {
    Task::new(crates_graph()).compare("crates graph", [25, 25], 256);
}

#[test]
fn acm() {
    let Some(folder) = data("acm") else { return };
    Task::new(load_dataset(folder).unwrap()).compare("acm", [25, 25], 64);
}
