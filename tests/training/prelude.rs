//! The prelude is short and has no name in common with Burn's prelude.

/// A name in both preludes would be ambiguous where it is used.
mod both {
    pub(super) use burn::prelude::*;
    pub(super) use burn_gnn::prelude::*;
}
#[rustfmt::skip]
#[allow(unused_imports)]
use both::{
    load_dataset, Graph, Conv as _, FitConfig, Gat, GatConfig, GatConv, GatConvConfig, Gcn, GcnConfig, GcnConv, GcnConvConfig, GinConfig, HeteroGraphConv, HeteroGraphConvConfig, HeteroLayer as _, InferenceConfig, NodeTask, NodeTensors, Rgcn, RgcnConfig, Sage, SageConfig, SageConv, SageConvConfig, SeedTask, TypeInput, accuracy, cross_entropy, evaluate, fit, infer, load_weights, save_weights, seeded, EdgeTensor, Edges, GraphView as _, MessagePassing as _, Reduce, GraphFeatures, Loader, MemoryRows, NeighborSampler, Seeds,
};
use both::{Config, Module};

#[test]
fn the_prelude_is_short_and_does_not_collide() {
    let source = include_str!("../../src/lib.rs");
    let body =
        source.split("pub mod prelude {").nth(1).and_then(|rest| rest.split("\n}").next()).unwrap();
    let lists = body.split(';').filter_map(|line| line.rsplit_once("::"));
    let names: Vec<&str> = lists
        .flat_map(|(_, names)| names.split(|c: char| !c.is_alphanumeric() && c != '_'))
        .filter(|n| !n.is_empty())
        .collect();
    assert!(names.len() > 40 && names.len() <= 45, "{} names: {names:?}", names.len());
    let tried = include_str!("prelude.rs")
        .split("use both::{\n")
        .nth(1)
        .and_then(|rest| rest.split("};").next())
        .unwrap();
    for name in names {
        assert!(
            tried.split([' ', ',']).any(|n| n == name),
            "`{name}` is not tested together with the names of `burn::prelude`"
        );
    }
    fn takes<C: Config, M: Module>() {}
    takes::<GcnConvConfig, GcnConv>();
}
