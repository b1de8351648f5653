//! What layers refuse, by argument, range and value.

use burn::tensor::Device;
use burn_gnn_models::*;

use crate::formulas::two_types;

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
