//! Builds, partitions, samples and trains on a graph larger than memory, under a memory limit.
//!
//! ```sh
//! cargo run --release --example billion                                             # 4 million edges in 256 MiB, under a minute
//! cargo run --release --example billion -- --edges 1600000000 --memory 4GiB --out DIR --width 128 --hidden 256 --infer-share 0.001
//! ```
//!
//! A graph with communities and hubs is written to disk (edges as `.npy`, features in 16 bits), sorted into a file
//! of in-edges, cut into parts, sampled; GraphSAGE is trained for an epoch on sampled batches and computes the rows
//! of all nodes layer by layer. No phase holds the edges or the features.

mod args;
mod caches;
mod check;
mod checkpoint;
mod generate;
mod learn;
mod limit;
mod order;
mod phases;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use args::{Args, Order};
use burn_gnn::sampling::{Loader, NeighborSampler, Seeds, Traversal};
use burn_gnn_store::{
    CscBuild, NpyEdges, RenumberedEdges, Renumbering, StoredGraph, StoredRows, StreamCut,
};
use checkpoint::Checkpoint;
use clap::Parser;
use generate::Shape;
use limit::Limit;
use phases::Phases;

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::FAILURE
        }
    }
}

/// Where everything is.
struct Files {
    dir: PathBuf,
    src: PathBuf,
    dst: PathBuf,
    rows: PathBuf,
    graph: PathBuf,
    /// Original ids of the nodes, in the order of the files.
    nodes: PathBuf,
    /// Says what was generated, when all of it was.
    done: PathBuf,
}

impl Files {
    fn new(dir: &Path) -> Self {
        let at = |name: &str| dir.join(name);
        Self {
            dir: dir.into(),
            src: at("src.npy"),
            dst: at("dst.npy"),
            rows: at("rows"),
            graph: at("graph"),
            nodes: at("nodes"),
            done: at("generated.json"),
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let temporary = std::env::temp_dir().join(format!("burn-gnn-billion-{}", std::process::id()));
    let dir = args.out.clone().unwrap_or(temporary);
    std::fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    let files = Files::new(&dir);
    let settings = serde_json::to_string(args)?;
    let reuse =
        args.keep && std::fs::read_to_string(&files.done).is_ok_and(|found| found == settings);
    if !reuse && std::fs::read_dir(&dir)?.next().is_some() {
        if !args.keep {
            bail!(
                "{}: expected an empty folder, found files in it; choose another one, or `--keep` to go on with those of the same graph",
                dir.display()
            );
        }
        if files.done.exists() {
            bail!(
                "{}: expected the files of {settings}, found those of another graph; choose another folder",
                dir.display()
            );
        }
    }
    let limit = Limit::new(args.memory);
    let out = work(args, &files, &limit, reuse, &settings);
    if !args.keep {
        // It was empty before.
        let removed =
            std::fs::remove_dir_all(&dir).with_context(|| format!("removing {}", dir.display()));
        return out.and(removed);
    }
    out
}

fn work(args: &Args, files: &Files, limit: &Limit, reuse: bool, settings: &str) -> Result<()> {
    let (n, shape) = (args.num_nodes() as usize, Shape::new(args));
    let say = |text: String| {
        if !args.json {
            println!("{text}");
        }
    };
    let build = CscBuild::new(files.graph.join("edges.csc"), n, n)
        .with_memory((args.memory / 3).max(4 << 20))
        .with_progress(true);
    let build = build.with_stream_name(settings);
    say(format!(
        "{} edges, {n} nodes, limit {} bytes by {}",
        args.edges,
        args.memory,
        limit.describe()
    ));
    say(format!("build: {}", build.plan(args.edges)?));
    let mut phases = Phases::new(limit, &files.dir, args.json);

    // Features stand in the order of the files.
    let generated = |order: Option<&Renumbering>| -> Result<()> {
        shape.write_rows(&files.rows, args.width, order)?;
        Ok(std::fs::write(&files.done, settings)?)
    };
    phases.run("generate", || match reuse {
        true => Ok(()),
        false => {
            shape.write_edges(&files.src, &files.dst)?;
            if args.order == Order::Kept { generated(None) } else { Ok(()) }
        }
    })?;
    let edges = || -> Result<NpyEdges> { Ok(NpyEdges::of_two(&files.src, &files.dst)?) };
    let find = || -> Result<Arc<Renumbering>> {
        if reuse {
            return Ok(Arc::new(Renumbering::open(&files.nodes)?));
        }
        let order = order::find(args, &files.dir, settings, edges)?;
        order.write(&files.nodes)?;
        generated(Some(&order))?;
        Ok(Arc::new(order))
    };
    let order = if args.order == Order::Kept { None } else { Some(phases.run("order", find)?) };
    let stored = phases.run("build", || {
        std::fs::create_dir_all(&files.graph)?;
        if !(reuse && files.graph.join("graph.json").exists()) {
            build.run(RenumberedEdges::new(edges()?, order.clone(), order.clone()))?;
            StoredGraph::create(&files.graph, [("_N", n)], [(("_N", "_E", "_N"), "edges.csc")])?;
        }
        Ok(StoredGraph::open(&files.graph)?)
    })?;
    // By original ids, in whatever order the files are.
    let graph = stored.by_original_ids(order.clone().map(|of| ("_N", of)))?;
    let rows = learn::Rows { file: Arc::new(StoredRows::open(&files.rows)?), order };
    let csc = &stored.files()[0];
    phases.run("partition", || {
        let parts = StreamCut::new(args.parts).assign(csc)?;
        let written = parts.write(csc, files.dir.join("parts"))?;
        if args.check {
            written.verify(csc)?;
        }
        say(format!(
            "{} parts, {:.1} % of edges between them",
            args.parts,
            100.0 * parts.cut(csc)?
        ));
        Ok(())
    })?;
    let seeds_per_s = phases.run("sample", || {
        let ids = learn::seeds(args, args.sample.unwrap_or_else(|| (n / 5).min(2_000_000)));
        // A batch per thread: the numbering of new nodes, which is a third of the work, is not parallel inside of one.
        let sampler = NeighborSampler::new(&graph, &args.fanouts[..])?.with_one_thread();
        let seeds = Seeds::nodes(&graph, [("_N", &ids)])?;
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let loader = Loader::new(sampler, seeds, args.batch.max(1))?
            .with_seed(args.seed)
            .with_workers(workers);
        let (began, mut edges) = (Instant::now(), 0);
        for batch in loader.with_traversal(Traversal::ByOrder).epoch(1) {
            edges += batch?.batch.total_edges();
        }
        let per_s = ids.len() as f64 / began.elapsed().as_secs_f64();
        say(format!(
            "{per_s:.0} seeds/s, {:.1} edges per seed",
            edges as f64 / ids.len().max(1) as f64
        ));
        Ok(per_s)
    })?;
    let count = args.train.unwrap_or_else(|| (n * 108 / 10_000).max(n.min(16_384))).max(1);
    let checkpoint = Checkpoint::new(&files.dir.join("train.checkpoint"), args, count)?;
    let kept = (args.checkpoint_every > 0).then_some(&checkpoint);
    let trained = phases.run("train", || {
        learn::train_stored(args, &shape, &graph, &rows, learn::seeds(args, count), kept)
    })?;
    let learn::Trained { net, losses, first, stats } = trained;
    if first > 0 {
        say(format!("training went on from step {first}"));
    }
    say(format!(
        "{count} training nodes, loss {:?} to {:?}; {stats} ({})",
        losses.first(),
        losses.last(),
        rows.file.engine()
    ));
    let equal = if args.check {
        check::equal(args, &shape, &graph, edges()?, count, &losses)?
    } else {
        None
    };
    phases.run("infer", || {
        let (correct, all) = learn::infer(args, &shape, &graph, &rows, &net, &files.dir)?;
        say(format!("{all} nodes, {:.1} % in their class", 100.0 * correct as f64 / all as f64));
        Ok(())
    })?;
    if args.check {
        say(format!("batches and losses equal to those in memory: {equal:?}"));
    }
    if let Some(checkpoint) = kept {
        checkpoint.remove();
    }
    let epochs = match args.caches {
        true => Some(caches::compare(
            args,
            &shape,
            &graph,
            &rows,
            &learn::seeds(args, count),
            &files.dir,
            (&mut phases, &say),
        )?),
        false => None,
    };
    let line = serde_json::json!({
        "edges": args.edges,
        "nodes": n,
        "limit_bytes": args.memory,
        "limit": limit.describe(),
        "order": args.order,
        "phases": phases.done,
        "seeds_per_s": seeds_per_s,
        "hit_rate": stats.hit_rate(),
        "bytes_read": stats.bytes_read,
        "read_wait_s": stats.wait.as_secs_f64(),
        "first_step": first,
        "batches_equal_in_memory": equal,
        "losses": losses,
        "caches": epochs.as_ref().map(|e| &e.0),
        "fewest_rows_read": epochs.as_ref().map(|e| e.1),
    });
    if args.json {
        println!("{line}");
    }
    if equal == Some(false) {
        bail!("batches or losses are not those in memory");
    }
    Ok(())
}
