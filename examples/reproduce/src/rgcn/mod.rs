//! Trains an R-GCN on a partitioned heterogeneous graph, full batch, one rank per part.
//!
//! `h_v' = relu( Σ_r 1/|N_r(v)| Σ_{u in N_r(v)} W_r h_u + W_0 h_v )`, cross entropy on labelled nodes
//! (Schlichtkrull et al., ESWC 2018).
//!
//! ```sh
//! cargo run --release --example reproduce -- rgcn                      # the crates graph of this repository
//! cargo run --release --example reproduce -- rgcn --data DIR        # your own, in the .npy or table layout
//! ```
//!
//! Data by default: the crates graph inside the library, made from this project's `cargo metadata` by the example
//! `crates_graph`; the class of a crate is the top level of its first category. Accuracy to expect: see README.md.

mod args;

use crate::common::data::{data_set, load};
use crate::common::report::{Outcome, accuracy_on};
use crate::common::{device, out_dir, report};
use anyhow::Result;
pub(crate) use args::Args;
use args::Method;
use burn::tensor::Device;
use burn_gnn::data::datasets::Known;
use burn_gnn::dist::{PartitionConfig, PartitionMethod, load_partition, partition_graph};
use burn_gnn::graph::Graph;
use burn_gnn::models::plot::learning_curves;
use burn_gnn::models::{NodeTask, load_weights, save_weights, seeded};
use burn_gnn::ranks::fit_parts;

pub(crate) fn run(args: &Args) -> Result<()> {
    let device = device(args.backend, args.dtype)?;
    let mut set = data_set(args.data.as_deref(), Known::Crates)?;
    if !set.inverse_edges_stored {
        set.graph = set.graph.with_inverse_relations("-inv")?;
    }
    let mut data = load(set, args.split.as_deref(), &device, device.settings().float_dtype)?;
    if args.mean_features {
        data.mean_features()?;
    }
    println!("{data}");
    let inputs = data.inputs();
    let init = |graph: &Graph, self_loop: bool, device: &Device| {
        Ok::<_, anyhow::Error>(args.model(data.num_classes, self_loop).try_init(
            graph,
            inputs.clone(),
            device,
        )?)
    };
    let autodiff = device.clone().autodiff();
    if args.seeds.seeds.is_some() {
        return args.seeds.run(&data, &args.training(), args.json, || {
            init(&data.graph, args.self_loop, &autodiff)
        });
    }

    let (out, _guard) = out_dir(args.out.as_deref())?;
    let method = match args.method {
        Method::Metis => PartitionMethod::Metis,
        Method::Random => PartitionMethod::Random,
    };
    let cut = partition_graph(
        &data.graph,
        &PartitionConfig::new("graph", args.parts).with_method(method).with_seed(args.seed),
    )?;
    let index = cut.write(&out)?;
    println!("{}", cut.table()?);

    let load = |rank| load_partition(&index, rank);
    let build = |task: &NodeTask<'_, _>, device: &Device| {
        args.model(data.num_classes, args.self_loop).try_init(task.graph, task.inputs(), device)
    };
    let trained = fit_parts(
        args.parts,
        load,
        data.target_type(),
        &args.training().on_epoch(report::epoch),
        &device,
        build,
    )?;

    // The model of the whole graph, through a file, judged without partitions.
    let weights = out.join("rgcn.bpk");
    save_weights(&trained.model, &weights)?;
    let model = load_weights(init(&data.graph, args.self_loop, &device)?, &weights)?;
    // Without edges a node's own row is all there is.
    let bare = data.without_edges()?;
    let no_graph = accuracy_on(
        &bare,
        &data,
        seeded(args.seed, || init(&bare, true, &autodiff))?,
        &args.training(),
    )?;
    let outcome = Outcome {
        parts: args.parts,
        seed: args.seed,
        edge_cut: cut.edge_cut(),
        ..Outcome::new(&model, &trained, &data, no_graph)?
    };
    args.plot.draw(&format!("R-GCN on {}", data.name), || learning_curves(&trained.history))?;
    outcome.print(args.out.is_some().then_some(&*weights), args.json);
    Ok(())
}
