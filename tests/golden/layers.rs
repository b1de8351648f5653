//! Family `layers`: whole layers. Weights are loaded by name, in the same way as users load weights
//! of DGL.

use burn::module::{ModuleMapper, Param};
use burn::tensor::{DType, Device, FloatDType, Gradients, Int, Tensor, TensorData};
use burn_gnn::graph::Graph;
use burn_gnn::models::*;
use burn_gnn::ops::{Edges, GraphView};
use serde_json::Value;

use super::{Case, text};

pub(crate) fn run_layers(case: &Case<'_>, device: &Device) -> Result<(), String> {
    let layer = Layer { case, device, config: &case.json["config"] };
    match text(case.json, "layer")? {
        "GraphConv" => layer.gcn_conv(),
        "EdgeWeightNorm+GraphConv" => layer.edge_weight_norm(),
        "SAGEConv" => layer.sage_conv(),
        "GATConv" => layer.gat_conv(),
        "GATv2Conv" => layer.gatv2_conv(),
        "RelGraphConv" => layer.rel_graph_conv(),
        "GINConv" => layer.gin_conv(),
        "HeteroGraphConv" => layer.hetero_graph_conv(),
        "HGTConv" => layer.hgt_conv(),
        other => Err(format!("unknown layer `{other}`")),
    }
}

/// Tracked inputs by role.
type Inputs<const D: usize> = Vec<(String, Tensor<D>)>;

struct Layer<'a> {
    case: &'a Case<'a>,
    device: &'a Device,
    config: &'a Value,
}

/// Compared outputs, and the scalar loss.
#[derive(Default)]
struct Outputs(Option<Tensor<1>>);

impl Outputs {
    fn add<const D: usize>(
        &mut self,
        layer: &Layer<'_>,
        role: &str,
        out: Tensor<D>,
    ) -> Result<(), String> {
        layer.case.compare("outputs", role, out.clone())?;
        let part = (out * layer.case.tensor("grad_outputs", role, layer.device)?).sum();
        self.0 = Some(match self.0.take() {
            Some(sum) => sum + part,
            None => part,
        });
        Ok(())
    }
}

/// Replaces every parameter by its gradient.
struct ByGradient<'a>(&'a Gradients);

impl ModuleMapper for ByGradient<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let value = param.val();
        let grad = value.grad(self.0).unwrap_or_else(|| value.without_autodiff().zeros_like());
        Param::from_tensor(grad)
    }
}

fn degree_norm(name: &str) -> Result<DegreeNorm, String> {
    match name {
        "none" => Ok(DegreeNorm::None),
        "left" => Ok(DegreeNorm::Left),
        "right" => Ok(DegreeNorm::Right),
        "both" => Ok(DegreeNorm::Both),
        other => Err(format!("unknown norm `{other}`")),
    }
}

fn aggregator(name: &str) -> Result<Reduce, String> {
    match name {
        "sum" => Ok(Reduce::Sum),
        "mean" => Ok(Reduce::Mean),
        "max" => Ok(Reduce::Max),
        "min" => Ok(Reduce::Min),
        other => Err(format!("unknown aggregator `{other}`")),
    }
}

impl Layer<'_> {
    fn flag(&self, key: &str, default: bool) -> bool {
        self.config[key].as_bool().unwrap_or(default)
    }

    fn shape(&self, group: &str, role: &str) -> Option<Vec<usize>> {
        let name = self.case.json[group][role].as_str()?;
        Some(self.case.tensors.tensor(name).ok()?.shape().to_vec())
    }

    /// Returns the shape of a required weight.
    fn weight(&self, name: &str) -> Result<Vec<usize>, String> {
        self.shape("params", name).ok_or_else(|| format!("no `params.{name}`"))
    }

    fn graph(&self) -> Result<Graph, String> {
        self.case.graph()
    }

    fn input<const D: usize>(&self, role: &str) -> Result<Tensor<D>, String> {
        self.case.tensor("inputs", role, self.device)
    }

    /// Returns one tensor for both endpoints, or one tensor for each.
    fn endpoints(&self) -> Result<(ConvInput, Inputs<2>), String> {
        if self.shape("inputs", "x").is_some() {
            let x = self.input::<2>("x")?;
            return Ok((x.clone().into(), vec![("x".to_owned(), x)]));
        }
        let (src, dst) = (self.input::<2>("x_src")?, self.input::<2>("x_dst")?);
        Ok((
            (src.clone(), dst.clone()).into(),
            vec![("x_src".to_owned(), src), ("x_dst".to_owned(), dst)],
        ))
    }

    fn edge_weight(&self) -> Result<(Option<Tensor<1>>, Inputs<1>), String> {
        if self.shape("inputs", "edge_weight").is_none() {
            return Ok((None, vec![]));
        }
        let w = self.input::<1>("edge_weight")?;
        Ok((Some(w.clone()), vec![("edge_weight".to_owned(), w)]))
    }

    /// Returns the layer with the parameters of the case, in the precision of the case.
    fn load<M: Pretrained>(&self, layer: M) -> Result<M, String> {
        let params = self.case.json["params"].as_object().cloned().unwrap_or_default();
        let mut views = vec![];
        for (name, tensor) in &params {
            let tensor = tensor.as_str().ok_or_else(|| format!("`params.{name}` is no name"))?;
            views
                .push((name.clone(), self.case.tensors.tensor(tensor).map_err(|e| e.to_string())?));
        }
        let bytes = safetensors::serialize(views, None).map_err(|e| e.to_string())?;
        let state = StateDict::from_safetensors(&bytes).map_err(|e| e.to_string())?;
        let layer =
            if self.case.dtype()? == DType::F64 { to_dtype(layer, FloatDType::F64) } else { layer };
        state.load(layer, Framework::Dgl).map_err(|e| e.to_string())
    }

    /// Compares gradients of inputs and parameters, and checks that the layer has all parameters of
    /// the case.
    fn gradients<M: Pretrained>(
        &self,
        layer: M,
        outputs: Outputs,
        x: &Inputs<2>,
        w: &Inputs<1>,
    ) -> Result<(), String> {
        let grads = outputs.0.ok_or("no output")?.backward();
        for (role, x) in x {
            self.case.compare_grad(role, x, &grads)?;
        }
        for (role, w) in w {
            self.case.compare_grad(role, w, &grads)?;
        }
        let layer = layer.map(&mut ByGradient(&grads));
        let state = StateDict::of(&layer, Framework::Dgl);
        let mut expected: Vec<&str> = self.case.roles("params").collect();
        for (name, data) in state.tensors() {
            // Entries that PyTorch saves but does not train: a fixed ε, the second name of a shared
            // weight.
            let fixed = name == "eps" && !self.flag("learn_eps", true);
            if fixed || self.flag("share_weights", false) && name.starts_with("fc_dst.") {
                continue;
            }
            let role = format!("param/{name}");
            // DGL stores the blocks of block-diagonal weights flat.
            let (bytes, own, dtype) = data.clone().into_parts();
            let shape = self.shape("grads", &role).unwrap_or_else(|| own.to_vec());
            self.case.compare_grad_data(&role, TensorData::from_bytes(bytes, shape, dtype))?;
            expected.retain(|e| *e != name);
        }
        if expected.is_empty() {
            Ok(())
        } else {
            Err(format!("the layer has no parameter for {expected:?}"))
        }
    }

    /// Creates a layer with the shapes of the weights that begin with `prefix`.
    fn gcn_conv_config(&self, prefix: &str, norm: DegreeNorm) -> Result<GcnConvConfig, String> {
        let w = self.weight(&format!("{prefix}weight"))?;
        Ok(GcnConvConfig::new(w[0], w[1]).with_norm(norm).with_bias(self.flag("bias", true)))
    }

    fn gcn_conv(&self) -> Result<(), String> {
        let conv = self.gcn_conv_config("", degree_norm(text(self.config, "norm")?)?)?;
        let conv = self.load(conv.init(self.device))?;
        let (x, (weight, weights)) = (self.input::<2>("x")?, self.edge_weight()?);
        let mut outputs = Outputs::default();
        let g = self.graph()?;
        let edges = Edges::from(&g).with_weight(weight);
        // The layer reads no features of destinations.
        let (endpoints, none) = (
            edges.endpoints(),
            Tensor::zeros([edges.num_dst(), 0], (self.device, self.case.dtype()?)),
        );
        let input = if endpoints.0 == endpoints.1 {
            ConvInput::Same(x.clone())
        } else {
            ConvInput::Pair(x.clone(), none)
        };
        outputs.add(self, "out", conv.forward(edges, input))?;
        self.gradients(conv, outputs, &vec![("x".to_owned(), x)], &weights)
    }

    fn edge_weight_norm(&self) -> Result<(), String> {
        let conv = self.load(self.gcn_conv_config("", DegreeNorm::None)?.init(self.device))?;
        let (g, x, weight) =
            (self.graph()?, self.input::<2>("x")?, self.input::<1>("edge_weight")?);
        let norm = EdgeWeightNorm::new().with_norm(degree_norm(text(self.config, "norm")?)?);
        let normed = norm.forward(&g, weight.clone()).map_err(|e| e.to_string())?;
        let mut outputs = Outputs::default();
        outputs.add(self, "norm_weight", normed.clone())?;
        outputs.add(self, "out", conv.forward(Edges::from(&g).with_weight(normed), x.clone()))?;
        self.gradients(
            conv,
            outputs,
            &vec![("x".to_owned(), x)],
            &vec![("edge_weight".to_owned(), weight)],
        )
    }

    /// Creates a SAGE layer with the shapes of the weights that begin with `prefix`.
    fn sage(&self, prefix: &str) -> Result<SageConvConfig, String> {
        let w = self.weight(&format!("{prefix}fc_neigh.weight"))?;
        let aggregator = match text(self.config, "aggregator")? {
            "mean" => SageAggregator::Mean,
            "gcn" => SageAggregator::Gcn,
            "pool" => SageAggregator::Pool,
            "lstm" => SageAggregator::Lstm,
            other => return Err(format!("unknown aggregator `{other}`")),
        };
        let d_dst = self.shape("params", &format!("{prefix}fc_self.weight")).map(|s| s[1]);
        Ok(SageConvConfig::new(w[1], w[0])
            .with_d_dst(d_dst)
            .with_aggregator(aggregator)
            .with_bias(self.flag("bias", true)))
    }

    fn sage_conv(&self) -> Result<(), String> {
        let conv = self.load(self.sage("")?.init(self.device))?;
        let ((x, inputs), (weight, weights)) = (self.endpoints()?, self.edge_weight()?);
        let mut outputs = Outputs::default();
        outputs.add(
            self,
            "out",
            conv.forward(Edges::from(&self.graph()?).with_weight(weight), x),
        )?;
        self.gradients(conv, outputs, &inputs, &weights)
    }

    fn heads(&self, y: Tensor<2>, [heads, d]: [usize; 2]) -> Tensor<3> {
        let [rows, _] = y.dims();
        y.reshape([rows, heads, d])
    }

    fn gat_conv(&self) -> Result<(), String> {
        let attn = self.weight("attn_l")?;
        let both = self.shape("params", "fc_dst.weight");
        let fc = self.weight(if both.is_some() { "fc_src.weight" } else { "fc.weight" })?;
        let slope = self.config["negative_slope"].as_f64().unwrap_or(0.2);
        let conv = GatConvConfig::new(fc[1], attn[2], attn[1])
            .with_d_dst(both.map(|s| s[1]))
            .with_negative_slope(slope)
            .with_residual(self.flag("residual", false))
            .with_bias(self.flag("bias", true));
        let conv = self.load(conv.try_init(self.device).map_err(|e| e.to_string())?)?;
        let ((x, inputs), (weight, weights), g) =
            (self.endpoints()?, self.edge_weight()?, self.graph()?);
        let mut outputs = Outputs::default();
        // Without attention weights, the layer runs in one fused pass; with them, in separate
        // operators.
        let fused = conv.forward(Edges::from(&g).with_weight(weight.clone()), x.clone());
        self.case.compare("outputs", "out", self.heads(fused.clone(), [attn[1], attn[2]]))?;
        if self.shape("outputs", "attention").is_some() {
            let (y, attention) =
                conv.forward_with_attention(Edges::from(&g).with_weight(weight), x);
            self.case.compare("outputs", "out", self.heads(y, [attn[1], attn[2]]))?;
            outputs.add(self, "attention", attention.unsqueeze_dim::<3>(2))?;
        }
        outputs.add(self, "out", self.heads(fused, [attn[1], attn[2]]))?;
        self.gradients(conv, outputs, &inputs, &weights)
    }

    fn gatv2_conv(&self) -> Result<(), String> {
        let (attn, fc) = (self.weight("attn")?, self.weight("fc_src.weight")?);
        let slope = self.config["negative_slope"].as_f64().unwrap_or(0.2);
        let conv = Gatv2ConvConfig::new(fc[1], attn[2], attn[1])
            .with_d_dst(self.shape("params", "fc_dst.weight").map(|s| s[1]))
            .with_share_weights(self.flag("share_weights", false))
            .with_negative_slope(slope)
            .with_residual(self.flag("residual", false))
            .with_bias(self.flag("bias", true));
        let conv = self.load(conv.try_init(self.device).map_err(|e| e.to_string())?)?;
        let ((x, inputs), g) = (self.endpoints()?, self.graph()?);
        let mut outputs = Outputs::default();
        let fused = conv.forward(&g, x.clone());
        let (y, attention) = conv.forward_with_attention(&g, x);
        self.case.compare("outputs", "out", self.heads(y, [attn[1], attn[2]]))?;
        outputs.add(self, "attention", attention.unsqueeze_dim::<3>(2))?;
        outputs.add(self, "out", self.heads(fused, [attn[1], attn[2]]))?;
        self.gradients(conv, outputs, &inputs, &vec![])
    }

    fn rel_graph_conv(&self) -> Result<(), String> {
        let (x, etypes) =
            (self.input::<2>("x")?, self.case.ids(&self.case.json["ints"], "etypes")?);
        let relations = self.config["num_rels"].as_u64().ok_or("no `num_rels`")? as usize;
        let w = self.weight("linear_r.W")?;
        let bases = self.config["num_bases"].as_u64().unwrap_or(0) as usize;
        let d_input = x.dims()[1];
        let (weights, d_output) = match self.config["regularizer"].as_str() {
            Some("bdd") => (RelWeights::BlockDiagonal(bases), w[1] * bases / d_input),
            // With as many bases as relations, DGL uses full weights without coefficients.
            Some("basis") if self.shape("params", "linear_r.coeff").is_some() => {
                (RelWeights::Basis(bases), w[2])
            }
            _ => (RelWeights::Full, w[2]),
        };
        let conv = RelGraphConvConfig::new(d_input, d_output, relations)
            .with_weights(weights)
            .with_norm(RelNorm::None)
            .with_self_loop(self.flag("self_loop", true))
            .with_bias(self.flag("bias", true))
            .with_layer_norm(self.flag("layer_norm", false));
        let conv = self.load(conv.try_init(self.device).map_err(|e| e.to_string())?)?;
        // One relation per edge type.
        let rel = self.case.relation()?;
        let of =
            |r: usize| (0..rel.num_edges()).filter(|&e| etypes[e] == r as i64).collect::<Vec<_>>();
        let mut builder = Graph::builder().nodes("_N", rel.num_src());
        for r in 0..relations {
            let end = |ids: &[u32]| of(r).iter().map(|&e| ids[e]).collect::<Vec<_>>();
            builder = builder.edges(("_N", numbered("r", r), "_N"), end(rel.src()), end(rel.dst()));
        }
        let g = builder.build().map_err(|e| e.to_string())?;
        let norm = if self.flag("normed", false) { Some(self.input::<2>("norm")?) } else { None };
        let weight = |r: usize| {
            norm.as_ref()
                .map(|n| n.clone().select(0, ints(&of(r), self.device)).squeeze_dim::<1>(1))
        };
        let edges =
            (0..relations).try_fold(g.edge_types(), |edges, r| edges.with_weight(r, weight(r)));
        let y = conv.forward(edges.map_err(|e| e.to_string())?, x.clone())["_N"].clone();
        let mut outputs = Outputs::default();
        outputs.add(self, "out", y)?;
        let inputs = std::iter::once(("x".to_owned(), x))
            .chain(norm.map(|n| ("norm".to_owned(), n)))
            .collect();
        self.gradients(conv, outputs, &inputs, &vec![])
    }

    fn gin_conv(&self) -> Result<(), String> {
        let widths = self.shape("params", "apply_func.weight").map_or(vec![], |s| vec![s[1], s[0]]);
        let conv = GinConvConfig::new(widths)
            .with_aggregator(aggregator(text(self.config, "aggregator")?)?)
            .with_init_eps(self.config["init_eps"].as_f64().unwrap_or(0.0))
            .with_learn_eps(self.flag("learn_eps", false));
        let conv = self.load(conv.try_init(self.device).map_err(|e| e.to_string())?)?;
        let (x, inputs) = self.endpoints()?;
        let mut outputs = Outputs::default();
        outputs.add(self, "out", conv.forward(&self.graph()?, x))?;
        self.gradients(conv, outputs, &inputs, &vec![])
    }

    fn hetero_graph_conv(&self) -> Result<(), String> {
        let g = self.graph()?;
        let by = self.config["aggregate"]
            .as_str()
            .filter(|a| *a != "stack")
            .map_or(Ok(Reduce::Sum), aggregator)?;
        let config = HeteroGraphConvConfig::new().with_aggregate(by);
        // One layer per edge type, in the order of the calls of `init`.
        let prefixes = g.schema().etypes().iter().map(|etype| format!("mods.{}.", etype.relation));
        match text(self.config, "module")? {
            "GraphConv" => {
                let norm = degree_norm(text(self.config, "norm")?)?;
                let configs = prefixes
                    .map(|prefix| self.gcn_conv_config(&prefix, norm))
                    .collect::<Result<Vec<_>, _>>()?;
                let mut configs = configs.iter();
                self.hetero(
                    &g,
                    config.init(g.schema(), |_| {
                        configs.next().expect("one for each edge type").init(self.device)
                    }),
                )
            }
            "SAGEConv" => {
                let configs =
                    prefixes.map(|prefix| self.sage(&prefix)).collect::<Result<Vec<_>, _>>()?;
                let mut configs = configs.iter();
                self.hetero(
                    &g,
                    config.init(g.schema(), |_| {
                        configs.next().expect("one for each edge type").init(self.device)
                    }),
                )
            }
            other => Err(format!("unknown module `{other}`")),
        }
    }

    fn hetero<M: Conv + Pretrained>(
        &self,
        g: &Graph,
        conv: HeteroGraphConv<M>,
    ) -> Result<(), String> {
        let conv = self.load(conv)?;
        let (mut inputs, mut x) = (vec![], NodeTensors::default());
        // A type that no layer reads needs no input.
        for ntype in
            g.schema().ntypes().iter().filter(|ntype| self.shape("inputs", ntype).is_some())
        {
            let of_type = self.input::<2>(ntype)?;
            inputs.push((ntype.clone(), of_type.clone()));
            x.insert(ntype, of_type);
        }
        let mut outputs = Outputs::default();
        if self.config["aggregate"] == "stack" {
            self.by_type(
                &mut outputs,
                conv.results(g, x).map(|_, results| Tensor::stack::<3>(results, 1)),
            )?;
        } else {
            self.by_type(&mut outputs, conv.forward(g, x))?;
        }
        self.gradients(conv, outputs, &inputs, &vec![])
    }

    /// Compares the results of node types. A node type without incoming edge types has no result,
    /// in DGL and here.
    fn by_type<const D: usize>(
        &self,
        outputs: &mut Outputs,
        y: TypeMap<Tensor<D>>,
    ) -> Result<(), String> {
        y.into_iter().try_for_each(|(ntype, y)| outputs.add(self, &format!("out/{ntype}"), y))
    }

    fn hgt_conv(&self) -> Result<(), String> {
        let number = |key: &str| {
            self.config[key].as_u64().map(|n| n as usize).ok_or_else(|| format!("no `{key}`"))
        };
        let (ints_of, x) = (&self.case.json["ints"], self.input::<2>("x")?);
        let (ntypes, etypes) =
            (self.case.ids(ints_of, "ntypes")?, self.case.ids(ints_of, "etypes")?);
        let types = number("num_ntypes")?;
        // Nodes by type, and edges by (type, relation, type): edge types of one relation share its weights.
        let nodes: Vec<Vec<usize>> = (0..types)
            .map(|t| (0..ntypes.len()).filter(|&v| ntypes[v] == t as i64).collect())
            .collect();
        let row = |v: u32| {
            nodes[ntypes[v as usize] as usize].iter().position(|&n| n == v as usize).unwrap_or(0)
                as u32
        };
        let rel = self.case.relation()?;
        let mut edges = std::collections::BTreeMap::<(i64, i64, i64), (Vec<u32>, Vec<u32>)>::new();
        // Relations without edges have weights, too.
        for r in (0..number("num_etypes")? as i64).filter(|r| !etypes.contains(r)) {
            edges.insert((0, r, 0), Default::default());
        }
        for (e, &etype) in etypes.iter().enumerate() {
            let (u, v) = (rel.src()[e], rel.dst()[e]);
            let endpoints =
                edges.entry((ntypes[u as usize], etype, ntypes[v as usize])).or_default();
            endpoints.0.push(row(u));
            endpoints.1.push(row(v));
        }
        let mut builder = Graph::builder();
        for (t, nodes) in nodes.iter().enumerate() {
            builder = builder.nodes(numbered("t", t), nodes.len());
        }
        for ((s, r, d), (src, dst)) in edges {
            builder = builder.edges(
                (numbered("t", s as usize), numbered("r", r as usize), numbered("t", d as usize)),
                src,
                dst,
            );
        }
        let g = builder.build().map_err(|e| e.to_string())?;
        let relations =
            g.schema().etypes().iter().map(|t| t.relation[1..].parse().unwrap_or(0)).collect();
        let conv =
            HgtConvConfig::from_graph(&g, x.dims()[1], number("head_size")?, number("num_heads")?)
                .with_relations(Some(relations))
                .with_layer_norm(self.flag("use_norm", false))
                // The test requires gradients, and the vectors have none.
                .with_dropout(0.0);
        let conv = self.load(conv.try_init(self.device).map_err(|e| e.to_string())?)?;
        let by_type = nodes.iter().map(|n| Some(x.clone().select(0, ints(n, self.device))));
        let y = Tensor::cat(
            conv.forward(&g, NodeTensors::from_list(g.schema(), by_type)).into_values(),
            0,
        );
        let order: Vec<usize> = nodes.concat();
        let back: Vec<usize> =
            (0..order.len()).filter_map(|v| order.iter().position(|&n| n == v)).collect();
        let mut outputs = Outputs::default();
        outputs.add(self, "out", y.select(0, ints(&back, self.device)))?;
        self.gradients(conv, outputs, &vec![("x".to_owned(), x)], &vec![])
    }
}

/// Returns a type name for a number such that names sort like numbers.
fn numbered(prefix: &str, number: usize) -> String {
    format!("{prefix}{number:06}")
}

fn ints(ids: &[usize], device: &Device) -> Tensor<1, Int> {
    let ids: Vec<i64> = ids.iter().map(|&i| i as i64).collect();
    let n = ids.len();
    Tensor::from_data(TensorData::new(ids, [n]), &device.clone().without_autodiff())
}
