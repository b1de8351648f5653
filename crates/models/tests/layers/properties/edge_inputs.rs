//! Edge weights and edge features reach every layer of a model, on graphs and blocks, in training, evaluation and inference.
//! A model whose layers do not read them panics.

use burn::module::Module;
use burn::tensor::{Device, FloatDType, Tensor, activation};
use burn_gnn_models::*;
use burn_gnn_ops::{Activation, EdgeTypes, GraphView};
use burn_gnn_sampling::{Fanouts, NeighborSampler, SampleKey};
use burn_gnn_testutil::panic_text;

use crate::fixtures::views::graph;
use crate::{assert_close, devices, matrix, values};

fn x(device: &Device) -> Tensor<2> {
    matrix(device, "x", 6, 4)
}
fn w(device: &Device) -> Tensor<1> {
    matrix(device, "w", 8, 1).squeeze_dim(1)
}
fn wide<M: Module>(model: M) -> M {
    to_dtype(model, FloatDType::F64)
}

#[test]
fn a_model_is_its_layers_with_weights() {
    let g = graph();
    for device in &devices() {
        let (x, w) = (x(device), w(device));
        let edges = g.edge_types().with_weight(.., w.clone()).unwrap();
        let layer = |a| g.edge_type("_E").unwrap().with_weight(w.clone()).then(a);
        let gcn = wide(GcnConfig::new(4, 2).with_hidden(5).init(device));
        let [first, last] = [&gcn.layers[0], &gcn.layers[1]];
        let want = last
            .forward(layer(Activation::None), first.forward(layer(Activation::Relu), x.clone()));
        assert_close("gcn", &values(&gcn.forward(&edges, x.clone())), &values(&want), 1e-12);

        let gin = wide(
            GinConfig::new(4, 2).with_hidden(5).with_num_layers(2).with_heads(false).init(device),
        );
        let h = activation::relu(gin.layers[0].forward(layer(Activation::None), x.clone()));
        let want = gin.layers[1].forward(layer(Activation::None), h);
        assert_close("gin", &values(&gin.forward(&edges, x.clone())), &values(&want), 1e-12);

        let rgcn = RgcnConfig::new(2).with_hidden(5);
        let rgcn = wide(rgcn.init(&g, [("_N", TypeInput::Features(4))], device));
        let h = x.clone().matmul(rgcn.net.projections[0].val());
        let h = rgcn.net.convs[0].forward(&edges, [("_N", h)]);
        let want = rgcn.net.convs[1].forward(&edges, h.map(|_, h| activation::relu(h)));
        let got = rgcn.forward(&edges, [("_N", x.clone())]);
        assert_close("rgcn", &values(&got["_N"]), &values(&want["_N"]), 1e-12);

        let f = matrix(device, "e", 8, 3);
        let gat = GatConfig::new(4, 2).with_hidden(6).with_num_heads(2).with_d_edge(Some(3));
        let gat = wide(gat.init(device));
        let layer = |a| g.edge_type("_E").unwrap().with_features(f.clone()).then(a);
        let h = gat.layers[0].forward(layer(Activation::Elu(1.0)), x.clone());
        let want = gat.layers[1].forward(layer(Activation::None), h);
        let edges = g.edge_types().with_features(.., f.clone()).unwrap();
        assert_close("gat", &values(&gat.forward(&edges, x)), &values(&want), 1e-12);
    }
}

/// What the whole graph gives, chunks of inference and blocks give; training and evaluation see the weights too.
fn everywhere<M: NodeClassifier + Layerwise>(
    name: &str,
    model: M,
    edges_of: impl for<'a> Fn(EdgeTypes<'a>, &dyn Fn(Tensor<2>) -> Tensor<2>) -> EdgeTypes<'a>,
    device: &Device,
) {
    let g = graph();
    let model = wide(model);
    let x = NodeTensors::from(x(device));
    let edges = edges_of(g.edge_types(), &|all| all);
    let want = model.logits(&edges, &x, "_N");
    let config = InferenceConfig::new();
    for nodes in [1, 2, 100] {
        let got = infer(&model, &edges, &x, "_N", &config.clone().with_max_nodes(nodes)).unwrap();
        assert_close(&format!("{name}, infer"), &values(&got), &values(&want), 1e-10);
    }
    let sampler = NeighborSampler::new(&g, Fanouts::all(model.num_layers())).unwrap();
    let batch = sampler.sample([("_N", [4, 0])], SampleKey::new(0)).unwrap();
    let views = EdgeBlocks::new(&batch.blocks, |block| {
        let rows = |all: Tensor<2>| select_rows(all, block.edge_ids("_E"));
        Ok::<_, ModelError>(edges_of(block.edge_types(), &rows))
    })
    .unwrap();
    let input = x.clone().map(|_, x| select_rows(x, batch.blocks[0].src_nodes("_N")));
    let got = model.logits_over(&views, &input, "_N");
    let outputs = batch.blocks[batch.blocks.len() - 1].dst_nodes("_N");
    assert_close(
        &format!("{name}, blocks"),
        &values(&got),
        &values(&select_rows(want.clone(), outputs)),
        1e-10,
    );
    let rows = Rows::new(&[0, 2, 3], &[0, 1, 0, 1, 1, 0], 2).unwrap();
    let task = NodeTask {
        graph: &edges,
        features: x,
        target: "_N".into(),
        train: rows.clone(),
        val: Rows::default(),
        test: Rows::default(),
    };
    let loss = Counts::new(&want, &rows).loss / 3.0;
    assert_close(name, &[evaluate(&model, &task, &rows).unwrap().mean_loss()], &[loss], 1e-10);
    let config = FitConfig::new().with_epochs(1).with_progress(false);
    let trained = fit(model.train(), &task, &task.train, &task.val, &config).unwrap();
    assert_close(name, &[trained.history[0].loss], &[loss], 1e-10);
}

#[test]
fn weights_and_features_go_everywhere() {
    for device in &devices() {
        seeded(2, || {
            /// Gives a closure its lifetimes.
            fn of<F>(f: F) -> F
            where
                F: for<'a> Fn(EdgeTypes<'a>, &dyn Fn(Tensor<2>) -> Tensor<2>) -> EdgeTypes<'a>,
            {
                f
            }
            let weight = of(|edges, rows| {
                let w = rows(matrix(device, "w", 8, 1)).squeeze_dim::<1>(1);
                edges.with_weight(.., w).unwrap()
            });
            let features =
                of(|edges, rows| edges.with_features(.., rows(matrix(device, "e", 8, 3))).unwrap());
            let gcn = GcnConfig::new(4, 2).with_hidden(5).with_dropout(0.0);
            everywhere("gcn", gcn.init(device), weight, device);
            let sage = SageConfig::new(4, 2).with_hidden(5).with_dropout(0.0);
            everywhere("sage", sage.init(device), weight, device);
            let gat = GatConfig::new(4, 2).with_hidden(6).with_num_heads(2);
            let gat = gat.with_dropout(0.0).with_attn_dropout(0.0);
            everywhere("gat", gat.init(device), weight, device);
            let gin = GinConfig::new(4, 2).with_hidden(5).with_num_layers(2).with_dropout(0.0);
            everywhere("gin", gin.init(device), weight, device);
            everywhere(
                "gat with features",
                gat.with_d_edge(Some(3)).init(device),
                features,
                device,
            );
        });
    }
}

#[test]
fn models_refuse_what_their_layers_do_not_read() {
    let (g, d) = (graph(), &Device::flex());
    let x = || NodeTensors::from([("_N", x(d).cast(FloatDType::F32))]);
    let weighted = g.edge_types().with_weight("_E", w(d).cast(FloatDType::F32)).unwrap();
    let hgt = HgtConfig::new(2).with_hidden(4).with_num_heads(2);
    let hgt = hgt.init(&g, [("_N", TypeInput::Features(4))], d);
    let text = panic_text(|| hgt.forward(&weighted, x()));
    assert!(
        text.starts_with("hgt_conv: expected no edge weights, got some of `_N:_E:_N`"),
        "{text}"
    );
    let featured = g.edge_types().with_features("_E", matrix(d, "e", 8, 3)).unwrap();
    let gcn = GcnConfig::new(4, 2).init(d);
    let text = panic_text(|| gcn.forward(&featured, x()["_N"].clone()));
    assert!(text.starts_with("gcn_conv: expected no edge features"), "{text}");
    let gat = GatConfig::new(4, 2).init(d);
    let text = panic_text(|| gat.forward(&featured, x()["_N"].clone()));
    assert!(text.contains("gat_conv: expected no edge features"), "{text}");

    let sampler = NeighborSampler::new(&g, [-1, -1]).unwrap();
    let batch = sampler.sample([("_N", [4])], SampleKey::new(0)).unwrap();
    let e = infer(&gcn, &batch.blocks[0], x(), "_N", &InferenceConfig::new()).unwrap_err();
    assert!(e.to_string().contains("`g` must lie in whole graphs"), "{e}");
    let e = g.edge_types().with_weight("_E", Tensor::<1>::ones([7], d)).unwrap_err().to_string();
    assert_eq!(
        e,
        "`edge weight` of relation `_N:_E:_N`: expected length 8 (one per edge of the type), got 7; give 8 entries"
    );
}
