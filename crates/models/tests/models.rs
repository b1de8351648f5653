//! Layers compared with formulas in plain loops, on both CPU backends, in f64.

use approx::assert_relative_eq;
use burn::module::Param;
use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use burn_gnn_graph::{Graph, Relation};
use burn_gnn_models::*;
use burn_gnn_ops::GraphView;
use burn_gnn_sampling::{NeighborSampler, SampleKey};
use burn_gnn_testutil::{devices, matrix, values};

/// One tensor per node type, by name.
fn typed(g: &Graph, x: &[Tensor<2>]) -> NodeTensors {
    NodeTensors::from_list(g.schema(), x.iter().cloned().map(Some))
}

fn close(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for (x, y) in a.iter().zip(b) {
        assert_relative_eq!(x, y, epsilon = 1e-11, max_relative = 1e-11);
    }
}

/// Self loop, parallel edges, a node without in-edges, an isolated node.
fn homo() -> Graph {
    Graph::homogeneous(6, vec![0, 1, 1, 2, 3, 3, 4], vec![1, 1, 2, 4, 4, 4, 0]).unwrap()
}

fn dot(x: &[f64], row: usize, w: &[f64], d: usize, o: usize) -> Vec<f64> {
    (0..o).map(|j| (0..d).map(|i| x[row * d + i] * w[i * o + j]).sum()).collect()
}

#[test]
fn gcn_conv_is_its_formula() {
    for device in devices() {
        let g = homo();
        let r = g.relation("_E").unwrap();
        let (din, dout): (Vec<_>, Vec<_>) = (
            r.in_degrees().map(|d| f64::from(d.max(1))).collect(),
            r.out_degrees().map(|d| f64::from(d.max(1))).collect(),
        );
        for (norm, l, p) in [
            (DegreeNorm::None, 0.0, 0.0),
            (DegreeNorm::Left, -1.0, 0.0),
            (DegreeNorm::Right, 0.0, -1.0),
            (DegreeNorm::Both, -0.5, -0.5),
        ] {
            for (i, o) in [(3, 5), (5, 2)] {
                for weighted in [false, true] {
                    let mut layer = to_dtype(
                        seeded(9, || GcnConvConfig::new(i, o).with_norm(norm).init(&device)),
                        FloatDType::F64,
                    );
                    layer.bias =
                        Some(Param::from_tensor(matrix(&device, "bias", 1, o).reshape([o])));
                    let x = matrix(&device, "x", 6, i);
                    let w = matrix(&device, "w", 7, 1).reshape([7]);
                    let y = layer.forward(
                        g.edge_type("_E").unwrap().with_weight(weighted.then(|| w.clone())),
                        x.clone(),
                    );
                    let (xs, ws, weight, bias) = (
                        values(&x),
                        values(&w),
                        values(&layer.weight.as_ref().unwrap().val()),
                        values(&layer.bias.as_ref().unwrap().val()),
                    );
                    let mut want: Vec<f64> = (0..6).flat_map(|_| vec![0.0; o]).collect();
                    for (e, w) in ws.iter().enumerate() {
                        let (u, v) = (r.src()[e] as usize, r.dst()[e] as usize);
                        let c = dout[u].powf(l) * din[v].powf(p) * if weighted { *w } else { 1.0 };
                        for (j, m) in dot(&xs, u, &weight, i, o).into_iter().enumerate() {
                            want[v * o + j] += c * m;
                        }
                    }
                    want.iter_mut().enumerate().for_each(|(k, y)| *y += bias[k % o]);
                    close(&values(&y), &want);
                }
            }
        }
    }
}

fn hetero() -> Graph {
    Graph::builder()
        .nodes("a", 4)
        .nodes("b", 3)
        .nodes("c", 2) // no relation at all
        .edges(("a", "r", "b"), vec![0, 0, 3, 1], vec![2, 2, 0, 2])
        .edges(("b", "s", "a"), vec![1, 2], vec![0, 3])
        .edges(("a", "t", "a"), vec![2, 2], vec![2, 1])
        .edges(("b", "empty", "b"), vec![], vec![])
        .build()
        .unwrap()
}

#[test]
fn rel_graph_conv_is_its_formula() {
    for device in devices() {
        let g = hetero();
        let schema = g.schema().clone();
        for (i, o) in [(4, 6), (6, 4)] {
            for weights in [RelWeights::Full, RelWeights::Basis(2), RelWeights::BlockDiagonal(2)] {
                for norm in [RelNorm::Right, RelNorm::None] {
                    let config =
                        RelGraphConvConfig::new(i, o, 4).with_weights(weights).with_norm(norm);
                    let layer = to_dtype(seeded(5, || config.init(&device)), FloatDType::F64);
                    let x: Vec<_> = [4, 3, 2]
                        .iter()
                        .enumerate()
                        .map(|(t, &n)| matrix(&device, &format!("x{t}"), n, i))
                        .collect();
                    let ys = layer.forward(&g, typed(&g, &x));
                    let w = values(&layer.weight.val());
                    let matrix_of = |r: usize| -> Vec<f64> {
                        let mut m = vec![0.0; i * o];
                        match weights {
                            RelWeights::Full => m.copy_from_slice(&w[r * i * o..(r + 1) * i * o]),
                            RelWeights::Basis(b) => {
                                let c = values(&layer.coeff.as_ref().unwrap().val());
                                (0..b).for_each(|k| {
                                    m.iter_mut()
                                        .enumerate()
                                        .for_each(|(p, m)| *m += c[r * b + k] * w[k * i * o + p])
                                });
                            }
                            RelWeights::BlockDiagonal(b) => {
                                let (bi, bo) = (i / b, o / b);
                                for k in 0..b {
                                    for p in 0..bi {
                                        for q in 0..bo {
                                            m[(k * bi + p) * o + k * bo + q] =
                                                w[((r * b + k) * bi + p) * bo + q];
                                        }
                                    }
                                }
                            }
                        }
                        m
                    };
                    let own = values(&layer.loop_weight.as_ref().unwrap().val());
                    let mut want: Vec<Vec<f64>> = x
                        .iter()
                        .map(|x| {
                            (0..x.dims()[0]).flat_map(|v| dot(&values(x), v, &own, i, o)).collect()
                        })
                        .collect();
                    for (r, rel) in g.relations().iter().enumerate() {
                        let (s, d) = schema.endpoints(r);
                        let deg: Vec<_> = rel.in_degrees().collect();
                        for e in 0..rel.num_edges() {
                            let (u, v) = (rel.src()[e] as usize, rel.dst()[e] as usize);
                            let c =
                                if norm == RelNorm::Right { 1.0 / f64::from(deg[v]) } else { 1.0 };
                            for (j, m) in
                                dot(&values(&x[s]), u, &matrix_of(r), i, o).into_iter().enumerate()
                            {
                                want[d][v * o + j] += c * m;
                            }
                        }
                    }
                    for ((_, y), want) in ys.iter().zip(&want) {
                        close(&values(y), want);
                    }
                }
            }
        }
    }
}

#[test]
fn weights_of_edges_multiply_messages() {
    let device = Device::flex();
    let g = hetero();
    let layer =
        to_dtype(seeded(0, || RelGraphConvConfig::new(3, 3, 4).init(&device)), FloatDType::F64);
    let x: Vec<_> = [4, 3, 2].iter().map(|&n| matrix(&device, "x", n, 3)).collect();
    let weighted = |w: f64| {
        g.relations().iter().enumerate().fold(g.edge_types(), |edges, (r, relation)| {
            edges
                .with_weight(r, Tensor::<1>::full([relation.num_edges()], w, (&device, DType::F64)))
                .unwrap()
        })
    };
    let (a, b) = (layer.forward(&g, typed(&g, &x)), layer.forward(weighted(1.0), typed(&g, &x)));
    close(&values(&a["b"]), &values(&b["b"]));
    let own = layer.forward(weighted(0.0), typed(&g, &x));
    close(
        &values(&own["a"]),
        &values(&x[0].clone().matmul(layer.loop_weight.as_ref().unwrap().val())),
    );
}

#[test]
fn gradients_of_a_model_are_finite_differences() {
    for device in devices() {
        let device = device.autodiff();
        let g = hetero();
        let inputs = [("b", TypeInput::Features(3))];
        let config =
            RgcnConfig::new(2).with_hidden(4).with_weights(RelWeights::Basis(2)).with_dropout(0.3);
        let model =
            to_dtype(seeded(0, || config.try_init(&g, inputs, &device)).unwrap(), FloatDType::F64);
        let x = NodeTensors::from([("b", matrix(&device.clone().inner(), "x", 3, 3))]);
        let rows = Rows::new(&[0, 2], &[1, 0, 0, -1], 2).unwrap();
        let loss = |m: &Rgcn| rows.cross_entropy(m.logits(&g.at_step(1, 4), &x, "a"));
        let grads = loss(&model).backward();
        let got = values(&model.net.convs[0].weight.val().grad(&grads).unwrap());
        let base = values(&model.net.convs[0].weight.val());
        let shape = model.net.convs[0].weight.val().dims();
        for k in (0..base.len()).step_by(5) {
            let at = |delta: f64| {
                let mut w = base.clone();
                w[k] += delta;
                let mut m = model.clone();
                m.net.convs[0].weight = Param::from_tensor(Tensor::from_data(
                    TensorData::new(w, shape),
                    (&device, DType::F64),
                ));
                values(&loss(&m))[0]
            };
            let h = 1e-6;
            assert_relative_eq!(
                (at(h) - at(-h)) / (2.0 * h),
                got[k],
                epsilon = 1e-8,
                max_relative = 1e-5
            );
        }
    }
}

/// The layer of one-hot inputs is the relational convolution with bases on an identity matrix, values and gradients.
#[test]
fn one_hot_inputs_are_rows_of_an_identity_matrix() {
    const NODES: [usize; 3] = [4, 3, 2];
    const TYPES: [&str; 3] = ["a", "b", "c"];
    let (hidden, bases, all) = (3, 2, NODES.iter().sum::<usize>());
    for device in devices() {
        let device = device.autodiff();
        let g = hetero();
        for own in [true, false] {
            let config = RgcnConfig::new(2)
                .with_hidden(hidden)
                .with_weights(RelWeights::Basis(bases))
                .with_one_hot(true)
                .with_self_loop(own);
            let model = to_dtype(
                seeded(0, || config.try_init(&g, TypeMap::default(), &device)).unwrap(),
                FloatDType::F64,
            );
            let conv = model.net.one_hot.as_ref().unwrap();
            assert_eq!(conv.row_columns(), hidden * (bases + usize::from(own)));
            let rows: Vec<_> = (0..3).map(|t| model.embedding.rows(TYPES[t]).unwrap()).collect();
            let tables: Vec<Vec<f64>> = rows.iter().map(values).collect();
            let node = |i: usize| {
                if i < 4 {
                    (0, i)
                } else if i < 7 {
                    (1, i - 4)
                } else {
                    (2, i - 7)
                }
            };
            let of = |i: usize, column: usize| {
                tables[node(i).0][node(i).1 * conv.row_columns() + column]
            };
            let leaf = |data: Vec<f64>, shape: &[usize]| TensorData::new(data, shape.to_vec());
            let mut oracle = to_dtype(
                RelGraphConvConfig::new(all, hidden, 4)
                    .with_weights(RelWeights::Basis(bases))
                    .with_self_loop(own)
                    .init(&device),
                FloatDType::F64,
            );
            let weight = (0..bases)
                .flat_map(|b| (0..all).map(move |i| (b, i)))
                .flat_map(|(b, i)| (0..hidden).map(move |h| of(i, h * bases + b)));
            oracle.weight = Param::from_tensor(Tensor::from_data(
                leaf(weight.collect(), &[bases, all, hidden]),
                (&device, DType::F64),
            ));
            oracle.coeff = Some(Param::from_tensor(conv.coeff.val().detach().require_grad()));
            if own {
                let own = (0..all)
                    .flat_map(|i| (0..hidden).map(move |h| of(i, hidden * bases + h)))
                    .collect();
                oracle.loop_weight = Some(Param::from_tensor(Tensor::from_data(
                    leaf(own, &[all, hidden]),
                    (&device, DType::F64),
                )));
            }
            let identity = Tensor::<2>::eye(all, &device.clone().inner()).cast(DType::F64);
            let starts = [0, 4, 7];
            let x = (0..3)
                .map(|t| {
                    Tensor::from_inner(
                        identity.clone().slice([starts[t]..starts[t] + NODES[t], 0..all]),
                    )
                })
                .collect();
            let x: Vec<Tensor<2>> = x;
            let (got, want) = (
                conv.forward(&g, typed(&g, &rows)).into_values(),
                oracle.forward(&g, typed(&g, &x)).into_values(),
            );
            let loss = |y: &[Tensor<2>]| {
                let each = y.iter().enumerate().map(|(t, y)| {
                    (y.clone()
                        * Tensor::from_inner(matrix(
                            &device.clone().inner(),
                            &format!("c{t}"),
                            NODES[t],
                            hidden,
                        )))
                    .sum()
                });
                each.reduce(|a, b| a + b).unwrap().backward()
            };
            for t in 0..3 {
                close(&values(&got[t]), &values(&want[t]));
            }
            let (ours, theirs) = (loss(&got), loss(&want));
            close(
                &values(&conv.coeff.val().grad(&ours).unwrap()),
                &values(&oracle.coeff.as_ref().unwrap().val().grad(&theirs).unwrap()),
            );
            let of_weight = values(&oracle.weight.val().grad(&theirs).unwrap());
            for t in 0..3 {
                // No relation starts from a type without gradient.
                let of_rows = model
                    .embedding
                    .rows(TYPES[t])
                    .unwrap()
                    .grad(&ours)
                    .map_or(vec![0.0; tables[t].len()], |g| values(&g));
                let want = (0..NODES[t])
                    .flat_map(|v| (0..hidden * bases).map(move |c| (v, c)))
                    .map(|(v, c)| {
                        let (h, b) = (c / bases, c % bases);
                        of_weight[(b * all + starts[t] + v) * hidden + h]
                    });
                let got = of_rows
                    .chunks_exact(conv.row_columns())
                    .flat_map(|row| row[..hidden * bases].to_vec());
                close(&got.collect::<Vec<_>>(), &want.collect::<Vec<_>>());
            }
        }
    }
}

/// All neighbours sampled: the rows of the whole graph; so too layer by layer.
#[test]
fn one_hot_inputs_of_blocks() {
    for device in devices() {
        let g = hetero();
        let config = RgcnConfig::new(2)
            .with_hidden(3)
            .with_num_layers(3)
            .with_weights(RelWeights::Basis(2))
            .with_one_hot(true);
        let model = to_dtype(
            seeded(0, || config.try_init(&g, TypeMap::default(), &device)).unwrap(),
            FloatDType::F64,
        );
        let whole = values(&model.forward(&g, NodeTensors::default())["a"]);
        let sampler = NeighborSampler::new(&g, [-1, -1, -1]).unwrap();
        let batch =
            sampler.sample([(&g.schema().ntypes()[0], &[2u32, 0][..])], SampleKey::new(1)).unwrap();
        let part = values(&model.forward_blocks(&batch.blocks, NodeTensors::default())["a"]);
        close(&part, &[&whole[4..6], &whole[..2]].concat());
        let layerwise =
            infer(&model, &g, NodeTensors::default(), "a", &InferenceConfig::new()).unwrap();
        close(&values(&layerwise), &whole);
    }
}

#[test]
fn one_hot_inputs_that_cannot_be() {
    let (g, device) = (hetero(), Device::flex());
    let base = RgcnConfig::new(2).with_one_hot(true);
    let text = |config: RgcnConfig| {
        config.try_init(&g, TypeMap::default(), &device).unwrap_err().to_string()
    };
    assert!(text(base.clone()).contains("RelWeights::Basis"));
    let bases = base.with_weights(RelWeights::Basis(2));
    assert!(text(bases.clone().with_num_layers(1)).contains("2.."));
    let features =
        bases.try_init(&g, [("b", TypeInput::Features(3))], &device).unwrap_err().to_string();
    assert!(features.contains("one_hot") && features.contains("`b`"), "{features}");
}

/// A view with its own numbering of nodes, as a partition has.
struct Renumbered {
    graph: Graph,
    ids: std::sync::Arc<[u64]>,
}

impl GraphView for Renumbered {
    fn schema(&self) -> &burn_gnn_graph::Schema {
        self.graph.schema()
    }
    fn relation(&self, etype: usize) -> &Relation {
        &self.graph.relations()[etype]
    }
    fn num_src(&self, t: usize) -> usize {
        self.graph.node_counts()[t]
    }
    fn num_dst(&self, t: usize) -> usize {
        self.graph.node_counts()[t]
    }
    fn total_nodes(&self, t: usize) -> u64 {
        GraphView::total_nodes(&self.graph, t)
    }
    fn total_edges(&self, e: usize) -> u64 {
        GraphView::total_edges(&self.graph, e)
    }
    fn src_rows(&self, _: &'static str, x: Vec<Tensor<2>>) -> Vec<Tensor<2>> {
        x
    }
    fn in_degrees(&self, e: usize) -> std::borrow::Cow<'_, [u32]> {
        GraphView::in_degrees(&self.graph, e)
    }
    fn out_degrees(&self, e: usize) -> std::borrow::Cow<'_, [u32]> {
        GraphView::out_degrees(&self.graph, e)
    }
    fn original_ids(&self, _: usize) -> Option<std::sync::Arc<[u64]>> {
        Some(self.ids.clone())
    }
    fn original_edge_ids(&self, _: usize) -> Option<std::sync::Arc<[u64]>> {
        None
    }
}

#[test]
fn random_parts_follow_original_ids_not_rows() {
    let device = Device::flex();
    let g = homo();
    let renumbered = Renumbered { graph: g.clone(), ids: (0..6).rev().collect() };
    let rows = |g: &dyn GraphView| seeded(7, || NodeEmbedding::new(g, ["_N"], 5, &device).unwrap());
    let (a, b) = (rows(&g), rows(&renumbered));
    let flip = |v: Vec<f64>| v.chunks(5).rev().flatten().copied().collect::<Vec<_>>();
    assert_eq!(values(&a.rows("_N").unwrap()), flip(values(&b.rows("_N").unwrap())));
    let (ones, key) = (
        Tensor::<2>::ones([6, 5], &device.clone().autodiff()),
        seeded(7, || DropoutKey::new(&device)),
    );
    let dropped = |g: &dyn GraphView, step, x: Tensor<2>| {
        values(&key.dropout(&GraphView::at_step(&g, 3, step), .., 0.4, x))
    };
    let (a, b) = (dropped(&g, 8, ones.clone()), dropped(&renumbered, 8, ones.clone()));
    assert_eq!(a, flip(b));
    assert!(a.contains(&0.0));
    assert_ne!(a, dropped(&g, 9, ones.clone()));
    assert_eq!(dropped(&g, 8, ones.clone().inner()), values(&ones));
}

#[test]
fn training_learns_keeps_the_best_epoch_and_repeats() {
    for device in devices() {
        // Two cliques joined by one edge, labels by clique.
        let pairs: Vec<(u32, u32)> = (0..10u32)
            .flat_map(|u| (0..10u32).map(move |v| (u, v)))
            .filter(|(u, v)| u != v && (u / 5 == v / 5 || u + v == 9 && u * v == 20))
            .collect();
        let (src, dst) = pairs.into_iter().unzip();
        let g = Graph::homogeneous(10, src, dst).unwrap().add_self_loops("_E").unwrap();
        let labels: Vec<i64> = (0..10).map(|i| i / 5).collect();
        let task = NodeTask {
            graph: &g,
            features: Tensor::<2>::eye(10, &device).into(),
            target: "_N".into(),
            train: Rows::new(&[0, 9], &labels, 2).unwrap(),
            val: Rows::new(&[1, 2, 7, 8], &labels, 2).unwrap(),
            test: Rows::default(),
        };
        let config =
            FitConfig::new().with_epochs(60).with_lr(0.05).with_seed(1).with_progress(false);
        let run = |patience: Option<usize>| {
            let model = seeded(1, || GcnConfig::new(10, 2).init(&device.clone().autodiff()));
            fit(model, &task, &task.train, &task.val, &config.clone().with_patience(patience))
                .unwrap()
        };
        let (a, b) = (run(None), run(None));
        assert_eq!(a.history, b.history);
        // Without dropout, which makes the other loss uneven.
        let val_loss = |epoch: usize| a.history[epoch].val_loss.unwrap();
        assert!(val_loss(59) < 0.3 * val_loss(0), "{:?}", a.history[59]);
        let all = Rows::new(&(0..10).collect::<Vec<_>>(), &labels, 2).unwrap();
        assert_eq!(evaluate(&a.model, &task, &all).unwrap().accuracy(), 1.0);
        let best = a.history.iter().map(|e| e.val_score.unwrap()).fold(0.0, f64::max);
        assert_eq!(a.history[a.kept_epoch].val_score.unwrap(), best);
        let line = a.to_string();
        let kept = format!("; kept epoch {} (validation {:.1} %)", a.kept_epoch, 100.0 * best);
        assert!(line.starts_with("trained 60 epochs in ") && line.ends_with(&kept), "{line}");
        assert!(line.contains(&format!(" s: {}; kept", a.history[59])), "{line}");
        for patience in [1, 2] {
            let short = run(Some(patience));
            let (epochs, kept) = (short.history.len(), short.kept_epoch);
            assert!(epochs < 60 && epochs == kept + 1 + patience, "kept {kept} of {epochs}");
            assert_eq!(short.history, a.history[..epochs]);
        }
    }
}

#[test]
fn a_rank_without_rows_has_a_tracked_zero_loss() {
    for device in devices() {
        let device = device.autodiff();
        for n in [0, 3] {
            let x = Tensor::<2>::ones([n, 2], &device).require_grad();
            let rows = Rows { total: 5, ..Rows::default() };
            let loss = rows.cross_entropy(x.clone() * 2.0);
            assert!(loss.is_tracked());
            assert_eq!(values(&loss.clone().inner()), [0.0]);
            let grads = loss.backward();
            assert_eq!(values(&x.grad(&grads).unwrap()), vec![0.0; 2 * n]);
        }
    }
}

#[test]
fn refusals_name_argument_range_and_value() {
    let device = Device::flex();
    let text = |e: ModelError| e.to_string();
    let blocks = RelGraphConvConfig::new(6, 4, 1)
        .with_weights(RelWeights::BlockDiagonal(3))
        .try_init(&device);
    assert_eq!(
        text(blocks.unwrap_err()),
        "`blocks` = 3 must divide d_output = 4; choose d_output as a multiple of 3"
    );
    let bases =
        RelGraphConvConfig::new(6, 4, 1).with_weights(RelWeights::Basis(0)).try_init(&device);
    assert_eq!(text(bases.unwrap_err()), "`bases` must lie in 1.., got 0");
    let unknown = RgcnConfig::new(2).try_init(&hetero(), [("d", TypeInput::Embedding)], &device);
    assert!(text(unknown.unwrap_err()).contains("unknown node type"));
    let all = TypeMap::<TypeInput>::default;
    assert!(
        text(RgcnConfig::new(2).with_dropout(1.0).try_init(&hetero(), all(), &device).unwrap_err())
            .contains("0.0..1.0, got 1")
    );
    assert!(
        text(
            RgcnConfig::new(2).with_num_layers(0).try_init(&hetero(), all(), &device).unwrap_err()
        )
        .contains("`num_layers`")
    );
    assert_eq!(
        text(Rows::new(&[1], &[0, -1], 2).unwrap_err()),
        "`label of node 1` must lie in 0..2, got -1"
    );
    assert_eq!(
        text(Rows::new(&[7], &[0, -1], 2).unwrap_err()),
        "`node of the split` must lie in 0..2, got 7"
    );
    let g = homo();
    let mut task = NodeTask {
        graph: &g,
        features: Tensor::<2>::ones([6, 2], &device).into(),
        target: "_N".into(),
        train: Rows::default(),
        val: Rows::default(),
        test: Rows::default(),
    };
    let run = |task: &NodeTask<'_, Graph>, lr: f64| {
        let model = seeded(0, || GcnConfig::new(2, 2).init(&device.clone().autodiff()));
        fit(
            model,
            task,
            &task.train,
            &task.val,
            &FitConfig::new().with_epochs(5).with_lr(lr).with_progress(false),
        )
        .map(|_| ())
    };
    assert!(matches!(run(&task, 0.1), Err(ModelError::NothingToTrain)));
    task.train = Rows::new(&[1], &[0, 1, 0, 0, 0, 0], 2).unwrap();
    assert_eq!(
        text(run(&task, f64::NAN).unwrap_err()),
        "`lr` must lie in positive finite numbers, got NaN"
    );
    assert!(matches!(run(&task, 1e38), Err(ModelError::Diverged { .. })));
    let hasty = FitConfig::new().with_patience(Some(0)).with_progress(false);
    let hasty = fit(
        GcnConfig::new(2, 2).init(&device.clone().autodiff()),
        &task,
        &task.train,
        &task.val,
        &hasty,
    );
    assert_eq!(text(hasty.unwrap_err()), "`patience` must lie in positive finite numbers, got 0");
    let two = |device: &Device, task: &NodeTask<'_, Graph>| {
        let config = FitConfig::new().with_epochs(1).with_progress(false);
        fit(GcnConfig::new(2, 2).init(device), task, &task.train, &task.val, &config).unwrap_err()
    };
    let plain = text(two(&device, &task));
    assert!(plain.contains("`device.autodiff()`"), "{plain}");
    task.val = Rows::new(&[2], &[0, 0, 4, 0, 0, 0], 5).unwrap();
    assert_eq!(
        text(two(&device.clone().autodiff(), &task)),
        "`label` must lie in 0..2, the classes of the model, got 4"
    );
}

/// Before the first pass, on every rank; without the check layers panic.
#[test]
fn features_of_another_size_are_not_trained_on() {
    fn refused<M: NodeClassifier>(name: &str, model: M) {
        let (g, device) = (homo(), Device::flex());
        let mut task = NodeTask {
            graph: &g,
            features: Tensor::<2>::ones([6, 3], &device).into(),
            target: "_N".into(),
            train: Rows::new(&[1], &[0, 1, 0, 0, 0, 0], 2).unwrap(),
            val: Rows::default(),
            test: Rows::default(),
        };
        assert_eq!(model.feature_sizes("_N"), [("_N".to_owned(), 2)], "{name}");
        let run = |task: &NodeTask<'_, Graph>| {
            let config = FitConfig::new().with_epochs(1).with_progress(false);
            fit(model.clone(), task, &task.train, &task.val, &config).map(drop)
        };
        assert_eq!(
            run(&task).unwrap_err().to_string(),
            "`feature size of _N`: expected 2 (as the model was made for), got 3; give 2",
            "{name}"
        );
        task.features = NodeTensors::default();
        let text = run(&task).unwrap_err().to_string();
        assert!(text.contains("expected features of size 2, got none"), "{name}: {text}");
        task.features = Tensor::<2>::ones([6, 2], &device).into();
        run(&task).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    let (g, device) = (homo(), Device::flex().autodiff());
    refused("gcn", GcnConfig::new(2, 2).init(&device));
    refused("sage", SageConfig::new(2, 2).init(&device));
    refused("gat", GatConfig::new(2, 2).init(&device));
    refused("gin", GinConfig::new(2, 2).init(&device));
    let inputs = || [("_N", TypeInput::Features(2))];
    refused("rgcn", RgcnConfig::new(2).init(&g, inputs(), &device));
    refused("hgt", HgtConfig::new(2).init(&g, inputs(), &device));
}

/// Not by a loss that is no number, whose error asks for a lower learning rate.
#[test]
fn features_that_are_no_numbers_are_named() {
    for device in devices() {
        let g = homo();
        let labels = [0, 1, 0, 0, 0, 0];
        for (value, what) in [(f32::NAN, "NaN"), (f32::INFINITY, "infinity")] {
            let mut x = [1.0f32; 12];
            (x[7], x[10]) = (value, value);
            let task = NodeTask {
                graph: &g,
                features: Tensor::<2>::from_data(TensorData::new(x.to_vec(), [6, 2]), &device)
                    .into(),
                target: "_N".into(),
                train: Rows::new(&[1], &labels, 2).unwrap(),
                val: Rows::default(),
                test: Rows::default(),
            };
            let model = GcnConfig::new(2, 2).init(&device.clone().autodiff());
            let config = FitConfig::new().with_progress(false);
            let text = fit(model, &task, &task.train, &task.val, &config).unwrap_err().to_string();
            assert!(
                text.starts_with("node type `_N`: expected finite features, found NaN or an infinity, first in column 1 of node 3"),
                "{what}: {text}"
            );
        }
    }
}

#[test]
fn majority_is_taken_from_training_rows() {
    let labels = [0, 1, 1, 2, 2, 2];
    let rows = |ids: &[u32]| Rows::new(ids, &labels, 3).unwrap();
    assert_eq!(majority_class(&rows(&[0, 1, 2]), &rows(&[3, 4, 1, 0]), 3), (1, 0.25));
}

/// Every product and sum of a model enters the setting, so no layer meets two element types; parameters stay in f32.
#[test]
fn a_model_under_mixed_precision() {
    let device = Device::flex().autodiff();
    let x = matrix(&Device::flex(), "x", 6, 10).cast(FloatDType::F32);
    let model = seeded(1, || GcnConfig::new(10, 2).init(&device));
    let run = |precision| {
        let y = burn_gnn_ops::with_precision(precision, || {
            model.forward(&homo().without_dropout(), x.clone())
        });
        let grads = (y.clone().cast(FloatDType::F32)
            * matrix(&Device::flex(), "c", 6, 2).cast(FloatDType::F32))
        .sum()
        .backward();
        let dw = model.layers[0].weight.as_ref().unwrap().val().grad(&grads).unwrap();
        assert_eq!(dw.dtype(), DType::F32);
        (y.dtype(), values(&y), values(&dw))
    };
    let (_, y, dw) = run(burn_gnn_ops::Precision::Full);
    let (dtype, low, low_dw) = run(burn_gnn_ops::Precision::BF16);
    assert_eq!(dtype, DType::BF16);
    let size = |x: &[f64]| x.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    for (want, got) in [(y, low), (dw, low_dw)] {
        let off: Vec<f64> = want.iter().zip(&got).map(|(a, b)| a - b).collect();
        // Eight bits of a number, rounded at a handful of places.
        assert!(size(&off) > 0.0 && size(&off) < 0.05 * size(&want), "{want:?} {got:?}");
    }
}
