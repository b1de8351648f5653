//! What layers refuse, by argument, range and value.

use std::panic::{AssertUnwindSafe, catch_unwind};

use burn::tensor::{Device, FloatDType, Int, Tensor, TensorData};
use burn_gnn_models::*;

use crate::formulas::two_types;
use crate::matrix;

#[test]
fn refusals_of_layers() {
    let d = &Device::flex();
    let text = |e: ModelError| e.to_string();
    assert_eq!(text(GatConvConfig::new(3, 2, 0).try_init(d).unwrap_err()), "`heads` must lie in 1.., got 0");
    assert!(text(GatConvConfig::new(3, 2, 1).with_attn_dropout(1.0).try_init(d).unwrap_err()).contains("0.0..1.0, got 1"));
    assert!(text(GatConvConfig::new(3, 2, 1).with_slope(f64::NAN).try_init(d).unwrap_err()).contains("`slope`"));
    let shared = Gatv2ConvConfig::new(3, 2, 1).with_share_weights(true).with_d_dst(Some(4)).try_init(d);
    assert_eq!(text(shared.unwrap_err()), "`d_dst`: expected 3 (the weight of sources serves destinations too), got 4");
    assert!(text(GinConvConfig::new(vec![3]).try_init(d).unwrap_err()).contains("`number of widths`"));
    assert!(text(GineConvConfig::new(3, vec![4, 2]).try_init(d).unwrap_err()).starts_with("`widths[0]`: expected 3"));
    assert!(text(EdgeConvConfig::new(3, vec![]).try_init(d).unwrap_err()).contains("got 0"));
    assert!(text(PnaConvConfig::new(3, 2, 0.0).try_init(d).unwrap_err()).contains("`delta`"));
    assert!(text(AppnpConvConfig::new().with_alpha(1.5).try_init().unwrap_err()).contains("0.0..=1.0, got 1.5"));
    assert!(text(TransformerConvConfig::new(3, 2, 1).with_root_weight(false).with_beta(true).try_init(d).unwrap_err()).contains("`beta`"));
    assert!(text(HgtConvConfig::new(3, 2, 1, 1, 2).with_relations(Some(vec![0])).try_init(d).unwrap_err()).contains("one per edge type"));
    assert!(text(HanConvConfig::new(vec![3], 2, 1).try_init(two_types().schema(), d).unwrap_err()).contains("one per node type"));
    assert!(text(LinkScorerConfig::new(LinkScore::ComplEx, 2, 3).try_init(d).unwrap_err()).contains("must divide d = 3"));
    assert!(text(JumpingKnowledgeConfig::new(Jumping::Lstm).with_layers(1).try_init(d).unwrap_err()).contains("layers · d / 2"));
    assert!(text(GatedGraphConvConfig::new(0, 1).try_init(d).unwrap_err()).contains("`hidden`"));
    assert!(
        text(HgtConfig::new(2).with_hidden(6).init(&two_types(), &[TypeInput::Embedding; 2], d).unwrap_err())
            .contains("must divide hidden")
    );
}

fn panic_of<T>(f: impl FnOnce() -> T) -> String {
    let Err(panic) = catch_unwind(AssertUnwindSafe(f)) else { panic!("expected a panic") };
    panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|&s| s.to_owned())).unwrap_or_default()
}

#[test]
fn link_scorers_check_relations_and_shapes() {
    let d = &Device::flex();
    let ids = |ids: &[i64]| Tensor::<1, Int>::from_data(TensorData::new(ids.to_vec(), [ids.len()]), d);
    let (h, narrow, short) = (matrix(d, "h", 3, 4), matrix(d, "t", 3, 2), matrix(d, "t", 2, 4));
    for score in [LinkScore::DistMult, LinkScore::ComplEx, LinkScore::TransEL1, LinkScore::TransEL2] {
        let scorer = crate::formulas::drawn(LinkScorerConfig::new(score, 2, 4).init(d));
        let forward = |h: &Tensor<2>, r: &[i64], t: &Tensor<2>| panic_of(|| scorer.forward(h.clone(), ids(r), t.clone()));
        let all = |h: &Tensor<2>, r: &[i64], t: &Tensor<2>| panic_of(|| scorer.against_all(h.clone(), ids(r), t.clone()));
        assert_eq!(forward(&h, &[0, 5, 9], &h), "link_scorer: `relations[1]` must lie in 0..2, got 5");
        assert_eq!(all(&h, &[0, 1, -1], &short), "link_scorer: `relations[2]` must lie in 0..2, got -1");
        assert_eq!(forward(&h, &[0, 1], &h), "link_scorer: `relations`: expected 3 (one per head), got 2");
        assert_eq!(forward(&h, &[0, 1, 1], &short), "link_scorer: `rows of tails`: expected 3 (one per head), got 2");
        assert_eq!(all(&h, &[0, 1, 1], &narrow), "link_scorer: `columns of tails`: expected 4 (those of the relations), got 2");
        assert_eq!(all(&narrow, &[0, 1, 1], &h), "link_scorer: `columns of heads`: expected 4 (those of the relations), got 2");
        assert_eq!(scorer.against_all(h.clone(), ids(&[0, 1, 1]), short.clone()).dims(), [3, 2]);
    }
}

#[test]
fn edge_types_out_of_range() {
    let (d, g) = (&Device::flex(), two_types());
    let x = || matrix(d, "x", 4, 4).cast(FloatDType::F32);
    let want = "`etype` must lie in 0..3 (edge types in the order of the schema; `Schema::etype` gives the number of a name), got 3";
    let far = [
        panic_of(|| GraphConvConfig::new(4, 2).init(d).forward_on(&g, 3, x(), None)),
        panic_of(|| SageConvConfig::new(4, 2).init(d).forward_on(&g, 3, x(), None)),
        panic_of(|| GatConvConfig::new(4, 2, 1).init(d).forward_on(&g, 3, x(), None, Mode::Eval)),
        panic_of(|| Gatv2ConvConfig::new(4, 2, 1).init(d).forward_on(&g, 3, x(), Mode::Eval)),
        panic_of(|| GinConvConfig::new(vec![4, 2]).init(d).forward_on(&g, 3, x())),
        panic_of(|| GineConvConfig::new(4, vec![4, 2]).init(d).forward_on(&g, 3, x(), matrix(d, "e", 1, 4))),
        panic_of(|| EdgeConvConfig::new(4, vec![2]).init(d).forward_on(&g, 3, x())),
        panic_of(|| PnaConvConfig::new(4, 2, 0.9).init(d).forward_on(&g, 3, x(), None)),
        panic_of(|| PnaConvConfig::from_graph(&g, 3, 4, 2)),
        panic_of(|| SgConvConfig::new(4, 2).init(d).forward_on(&g, 3, x(), None)),
        panic_of(|| Mode::Train { seed: 0, step: 0 }.edge_dropout(&g, 3, "layer", 0.5)),
    ];
    for (i, text) in far.iter().enumerate() {
        assert_eq!(text, want, "call {i}");
    }
    let norm = EdgeWeightNorm::new().forward(&g, 3, Tensor::ones([4], d)).unwrap_err();
    assert_eq!(norm.to_string(), "`etype` must lie in 0..3, got 3");
    let rows = panic_of(|| Mode::Train { seed: 0, step: 0 }.dropout(&g, 2, "layer", 0.5, x()));
    assert_eq!(rows, "`ntype` must lie in 0..2 (node types in the order of the schema; `Schema::ntype` gives the number of a name), got 2");
}
