//! Every model learns.

use burn::tensor::Tensor;
use burn_gnn_graph::Graph;
use burn_gnn_models::*;

use crate::devices;

#[test]
fn models_learn_two_cliques() {
    let pairs = (0..10u32)
        .flat_map(|u| (0..10u32).map(move |v| (u, v)))
        .filter(|(u, v)| u / 5 == v / 5 || u + v == 9);
    let (src, dst) = pairs.unzip();
    let g = Graph::homogeneous(10, src, dst).unwrap();
    let labels: Vec<i64> = (0..10).map(|i| i / 5).collect();
    fn learns<M: NodeClassifier + burn::module::ModuleDisplay>(
        name: &str,
        model: M,
        g: &Graph,
        labels: &[i64],
        x: Option<Tensor<2>>,
    ) {
        let rows = |ids: &[u32]| Rows::new(ids, labels, 2).unwrap();
        let (train_rows, val) = (rows(&[0, 9]), rows(&[1, 2, 7, 8]));
        let task = NodeTask {
            graph: g,
            features: x.into_iter().map(|x| ("_N", x)).collect(),
            target: "_N".into(),
            train: train_rows,
            val,
            test: Rows::default(),
        };
        let config =
            FitConfig::new().with_epochs(60).with_lr(0.02).with_seed(1).with_progress(false);
        let trained = fit(model, &task, &task.train, &task.val, &config).unwrap();
        let all = rows(&(0..10).collect::<Vec<_>>());
        assert!(evaluate(&trained.model, &task, &all).unwrap().accuracy() >= 0.9, "{name}");
    }
    for device in &devices() {
        let d = &device.clone().autodiff();
        let x = Some(Tensor::<2>::eye(10, device));
        seeded(0, || {
            learns("sage", SageConfig::new(10, 2).with_hidden(16).init(d), &g, &labels, x.clone());
            learns(
                "gat",
                GatConfig::new(10, 2).with_dropout(0.2).with_attn_dropout(0.2).init(d),
                &g,
                &labels,
                x.clone(),
            );
            learns(
                "gin",
                GinConfig::new(10, 2).with_hidden(8).with_num_layers(2).with_dropout(0.0).init(d),
                &g,
                &labels,
                x.clone(),
            );
            let hgt = HgtConfig::new(2)
                .with_hidden(8)
                .with_num_heads(2)
                .try_init(&g, [("_N", TypeInput::Features(10))], d)
                .unwrap();
            learns("hgt", hgt, &g, &labels, x.clone());
        });
    }
}
