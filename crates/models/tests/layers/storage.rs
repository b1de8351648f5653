//! Layers come back from files: Burn's records, safetensors, and the names of DGL and PyTorch Geometric.

use burn::module::Module;
use burn::store::{ModuleRecord, ModuleSnapshot, SafetensorsStore};
use burn::tensor::{Device, FloatDType, Tensor};
use burn_gnn_models::*;
use burn_gnn_ops::GraphView;

use crate::registry::{each_far_layer, each_layer};
use crate::views::graph;
use crate::{devices, matrix, values};

fn round_trip<M: Module + ModuleSnapshot>(
    name: &str,
    make: impl Fn(u64) -> M,
    run: impl Fn(&M, &dyn GraphView, Tensor<2>, Tensor<2>, Mode) -> Tensor<2>,
    device: &Device,
) {
    let g = graph();
    let result = |layer: &M| values(&run(layer, &g, matrix(device, "x", 6, 4), matrix(device, "e", 8, 3), Mode::Eval));
    let layer = |seed| to_dtype(make(seed), FloatDType::F64);
    let (saved, other) = (layer(1), layer(2));
    let want = result(&saved);
    if saved.num_params() > 0 {
        assert_ne!(result(&other), want, "{name}: seeds make no difference");
    }
    let record = ModuleRecord::from_bytes(saved.clone().into_record().into_bytes().unwrap()).unwrap();
    assert_eq!(result(&other.clone().load_record(record)), want, "{name}: record");
    let mut store = SafetensorsStore::from_bytes(None);
    saved.save_into(&mut store).unwrap();
    let mut loaded = other;
    loaded.load_from(&mut SafetensorsStore::from_bytes(Some(store.get_bytes().unwrap()))).unwrap();
    assert_eq!(result(&loaded), want, "{name}: safetensors");
}

#[test]
fn saved_layers_come_back() {
    for device in &devices() {
        macro_rules! on_device {
            ($name:expr, $make:expr, $run:expr $(,)?) => {
                round_trip($name, $make, $run, device)
            };
        }
        each_layer!(on_device, device);
        each_far_layer!(on_device, device);
    }
}

/// Names of a state dict, and the same layer again from it.
fn names<M: Pretrained>(saved: M, other: M, from: Framework) -> Vec<String> {
    let state = StateDict::of(&saved, from);
    let bytes = state.to_safetensors().unwrap();
    let loaded = StateDict::from_safetensors(&bytes).unwrap().load(other, from).unwrap();
    let again = StateDict::of(&loaded, from);
    for ((name, a), (_, b)) in state.tensors().zip(again.tensors()) {
        assert_eq!(a, b, "{name}");
    }
    let mut names: Vec<String> = state.tensors().map(|(n, _)| n.to_owned()).collect();
    names.sort();
    names
}

#[test]
fn names_are_those_of_dgl_and_pyg() {
    let d = &Device::flex();
    macro_rules! check {
        ($config:expr, $from:ident, $($name:literal),+ $(,)?) => {
            let make = |seed| $config.with_seed(seed).init(d);
            assert_eq!(names(make(1), make(2), Framework::$from), [$($name),+]);
        };
    }
    check!(GraphConvConfig::new(3, 2), Dgl, "bias", "weight");
    check!(GraphConvConfig::new(3, 2), Pyg, "bias", "lin.weight");
    check!(SageConvConfig::new(3, 2), Pyg, "lin_l.bias", "lin_l.weight", "lin_r.weight");
    check!(
        SageConvConfig::new(3, 2).with_aggregator(SageAggregator::Lstm),
        Dgl,
        "fc_neigh.weight",
        "fc_self.bias",
        "fc_self.weight",
        "lstm.bias_hh_l0",
        "lstm.bias_ih_l0",
        "lstm.weight_hh_l0",
        "lstm.weight_ih_l0",
    );
    check!(GatConvConfig::new(3, 2, 2), Pyg, "att_dst", "att_src", "bias", "lin.weight");
    check!(GatConvConfig::new(3, 2, 2).with_d_dst(Some(4)), Dgl, "attn_l", "attn_r", "bias", "fc_dst.weight", "fc_src.weight");
    check!(Gatv2ConvConfig::new(3, 2, 2), Pyg, "att", "lin_l.bias", "lin_l.weight", "lin_r.bias", "lin_r.weight");
    check!(GinConvConfig::new(vec![3, 4, 2]), Pyg, "nn.0.bias", "nn.0.weight", "nn.2.bias", "nn.2.weight");
    check!(
        RelGraphConvConfig::new(4, 2, 3).with_weights(RelWeights::Basis(2)).with_layer_norm(true),
        Dgl,
        "h_bias",
        "layer_norm_weight.bias",
        "layer_norm_weight.weight",
        "linear_r.W",
        "linear_r.coeff",
        "loop_weight",
    );
    check!(SgConvConfig::new(3, 2), Dgl, "fc.bias", "fc.weight");
    check!(
        GatedGraphConvConfig::new(2, 1).with_num_etypes(1),
        Dgl,
        "gru.bias_hh",
        "gru.bias_ih",
        "gru.weight_hh",
        "gru.weight_ih",
        "linears.0.bias",
        "linears.0.weight",
    );
    check!(
        JumpingKnowledgeConfig::new(Jumping::Lstm).with_d(2),
        Pyg,
        "att.bias",
        "att.weight",
        "lstm.bias_hh_l0",
        "lstm.bias_hh_l0_reverse",
        "lstm.bias_ih_l0",
        "lstm.bias_ih_l0_reverse",
        "lstm.weight_hh_l0",
        "lstm.weight_hh_l0_reverse",
        "lstm.weight_ih_l0",
        "lstm.weight_ih_l0_reverse",
    );
    check!(TypedLinearConfig::new(3, 2, 2), Dgl, "W");
    check!(AttentionReadoutConfig::new(3), Dgl, "gate_nn.bias", "gate_nn.weight");
}

#[test]
fn state_dicts_that_do_not_fit_are_refused() {
    let d = &Device::flex();
    let state = StateDict::of(&GraphConvConfig::new(3, 2).init(d), Framework::Dgl);
    let refuse = |config: GraphConvConfig, from| state.load(config.init(d), from).unwrap_err().to_string();
    assert_eq!(refuse(GraphConvConfig::new(3, 4), Framework::Dgl), "state dict: tensor `weight` must have shape [3, 4], got [3, 2]");
    assert!(refuse(GraphConvConfig::new(3, 2), Framework::Pyg).contains("parameter `weight` is looked for under `lin.weight`"));
    assert!(refuse(GraphConvConfig::new(3, 2).with_bias(false), Framework::Dgl).contains("no parameter of the layer takes [\"bias\"]"));
    assert!(StateDict::from_safetensors(b"no such file").unwrap_err().to_string().contains("expected a safetensors file"));
}
