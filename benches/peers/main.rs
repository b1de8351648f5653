//! Measures operators and training for comparison with other systems: one JSON line per entry.
//!
//! ```sh
//! cargo bench -p burn-gnn-benches -- ops arxiv-like cora-like    # single operators
//! cargo bench -p burn-gnn-benches -- train arxiv-like mag-slice  # epochs
//! cargo bench -p burn-gnn-benches -- sample arxiv-like mag-slice # neighbour sampling with blocks
//! cargo bench -p burn-gnn-benches -- minibatch arxiv-like        # an epoch of GraphSAGE by mini-batches
//! cargo bench -p burn-gnn-benches -- messages arxiv-like         # user-defined message and reduce functions compared with builtin ones
//! cargo bench -p burn-gnn-benches -- reorder arxiv-like          # sampling, gathering and GSpMM in different orders of nodes
//! cargo bench -p burn-gnn-benches -- tables [PYTHON]             # reading tables; CSV, Parquet and Matrix Market next to pandas and SciPy
//! cargo bench -p burn-gnn-benches -- database write FOLDER        # ten million rows in five tables, as Parquet files
//! cargo bench -p burn-gnn-benches -- database FOLDER              # from these files to a graph: time and peak memory
//! cargo bench -p burn-gnn-benches -- database predict FOLDER TASK # the time of one prediction after loading
//! cargo bench -p burn-gnn-benches -- database epoch FOLDER TASK   # an epoch of typed GraphSAGE, next to benches/relational/pyg.py
//! cargo bench -p burn-gnn-benches -- partition arxiv-like 8 metis # a partitioning with its files (see partition.rs for methods)
//! cargo bench -p burn-gnn-benches -- precision arxiv-like        # f32 against f16 and bf16
//! cargo bench -p burn-gnn-benches -- memory arxiv-like gcn       # peak memory of three epochs (gcn, sage, gat; then f16 or bf16); copy_u_max, BENCH_ALLOCATOR=counted: what it keeps
//! BENCH_ALLOCATOR=counted cargo bench -p burn-gnn-benches -- plan arxiv-like gcn # predicted memory against bytes in use
//! cargo bench -p burn-gnn-benches -- calls                       # overhead of one call
//! cargo bench -p burn-gnn-benches -- dense                       # dropout and embeddings compared with Burn's
//! cargo bench -p burn-gnn-benches -- features                    # rows of features in f32, f16 and int8: gathered, and averaged
//! cargo bench -p burn-gnn-benches -- ranking 100000 1000000 64   # exact ranks and top 10 of queries x candidates, embeddings of 64 numbers
//! cargo bench -p burn-gnn-benches -- events tgn 1 7 20000         # training events of a stream, those up to 7 tenths of it; tgat; 10: ten times the stream
//! cargo bench -p burn-gnn-benches -- knowledge FOLDER complex 128 256 # epochs of a knowledge graph: decoder, numbers per entity, queries per batch
//! cargo bench -p burn-gnn-benches -- machine                     # bandwidth of memory
//! cargo bench -p burn-gnn-benches -- merge round1.jsonl round2.jsonl
//! cargo bench -p burn-gnn-benches -- write FOLDER arxiv-like     # graphs as .npy files
//! ```
//!
//! Graphs: `cora-like`, `arxiv-like`, `products-slice`, and for `train` and `sample` also `mag-slice` and `am-slice`;
//! they are made in memory, see `graphs.rs`; `write.rs` writes them for other systems. Environment: `BENCH_THREADS`
//! (2), `BENCH_SECONDS` per entry (4), `BENCH_LEAST` repetitions (3), `BENCH_ONLY=text` for some entries,
//! `BENCH_ALLOCATOR` (see `alloc.rs`), `BENCH_BACKEND` (flex; wgpu, cuda and so on with the feature of that name):
//! where tensors are, and blocks are sampled. Times end after the queue of the device is finished.
//!
//! `median_ms` and `min_ms` are wall times, `cpu_ms` is the median CPU time of all threads. CSR and CSC
//! are built before; `fwd+bwd` is forward and the backward of a cotangent of ones that is made once.

mod alloc;
mod disk;
mod graphs;
mod links;
mod machine;
mod measure;
mod merge;
mod operators;
mod relational;
mod training;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use burn_gnn::ops::Precision;

use crate::disk::{database, partition, reorder, tables, write};
use crate::links::{events, knowledge, ranking};
use crate::operators::{calls, dense, features, inject, messages, ops, precision};
use crate::training::{plan, sampling, train, typed};

#[global_allocator]
static ALLOCATOR: alloc::Chosen = alloc::Chosen;

fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<()> {
    let Some((section, rest)) = args.split_first() else {
        bail!(
            "name a section: ops GRAPH..., train GRAPH..., sample GRAPH..., minibatch GRAPH..., messages GRAPH..., reorder GRAPH..., partition GRAPH PARTS METHOD, tables, database [write] FOLDER, precision GRAPH..., memory GRAPH KIND, plan GRAPH KIND, calls, dense, features, ranking QUERIES CANDIDATES DIM, events MODEL SCALE TENTHS [EVENTS], knowledge FOLDER DECODER DIM BATCH, machine, merge FILES..., write FOLDER GRAPH..."
        );
    };
    if section == "merge" {
        return merge::run(rest);
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(measure::settings().threads)
        .build_global()
        .context("starting threads")?;
    let before = measure::memory_mb().0;
    inject::check();
    let homogeneous = |name: &str| {
        graphs::homogeneous(name)
            .with_context(|| format!("no graph of one type is called `{name}`; there are cora-like, arxiv-like, products-slice"))
    };
    match section.as_str() {
        "ops" => {
            for name in rest {
                ops::run(name, &homogeneous(name)?)?;
            }
        }
        "precision" => {
            for name in rest {
                precision::run(name, &homogeneous(name)?)?;
            }
        }
        "train" => {
            for name in rest {
                let typed = || graphs::typed(name).expect("its name was matched");
                match name.as_str() {
                    "am-slice" => typed::am(name, typed),
                    "mag-slice" => typed::mag(name, typed),
                    _ => train::run(name, || homogeneous(name))?,
                }
            }
        }
        "sample" => {
            for name in rest {
                sampling::run(name)?;
            }
        }
        "minibatch" => {
            for name in rest {
                sampling::minibatch(name)?;
            }
        }
        "messages" => {
            for name in rest {
                messages::run(name, &homogeneous(name)?)?;
            }
        }
        "reorder" => {
            for name in rest {
                let g = homogeneous(name)?;
                reorder::run(name, g.nodes, g.src, g.dst, &g.task.features, &g.task.train)?;
            }
        }
        "tables" => tables::run(rest.first().map(String::as_str))?,
        "database" => match rest {
            [what, folder] if what == "write" => database::write(folder.as_ref())?,
            [what, folder, task] if what == "predict" => {
                relational::predict(folder.as_ref(), task)?
            }
            [what, folder, task] if what == "epoch" => relational::epoch(folder.as_ref(), task, 3)?,
            [folder] => database::run(folder.as_ref())?,
            _ => bail!(
                "database: name a folder; `write` and a folder; `predict` or `epoch`, a folder and a task"
            ),
        },
        "partition" => match rest {
            [name, parts, method] => {
                partition::run(name, parts.parse().context("reading the number of parts")?, method)?
            }
            _ => bail!(
                "partition: name a graph, a number of parts and a method ({})",
                partition::METHODS.join(", ")
            ),
        },
        "plan" => match rest {
            [name, kind] => plan::run(name, kind, || homogeneous(name), before)?,
            _ => bail!("plan: name a graph and a set-up ({})", plan::KINDS.join(", ")),
        },
        "calls" => calls::run(),
        "dense" => dense::run(),
        "features" => features::run()?,
        "ranking" | "events" | "knowledge" => run_links(section, rest)?,
        "machine" => machine::run(),
        "write" => {
            let (folder, names) = rest.split_first().context("write: name a folder and graphs")?;
            for name in names {
                write::run(folder.as_ref(), name)?;
            }
        }
        "memory" if matches!(rest, [_, op] if op == "copy_u_max") => {
            ops::saved(&rest[0], &homogeneous(&rest[0])?)?
        }
        "memory" => {
            let (name, kind, precision) = match rest {
                [name, kind] => (name, kind, Precision::Full),
                [name, kind, casts] if casts == "f16" => (name, kind, Precision::F16),
                [name, kind, casts] if casts == "bf16" => (name, kind, Precision::BF16),
                _ => bail!(
                    "memory: name a graph, a network ({}) and, if operators shall cast, f16 or bf16",
                    train::KINDS.join(", ")
                ),
            };
            if !train::KINDS.contains(&kind.as_str()) {
                bail!("unknown network `{kind}`; there are {}", train::KINDS.join(", "));
            }
            train::memory(name, kind, precision, homogeneous(name)?, before)?;
        }
        other => {
            bail!(
                "unknown section `{other}`; there are ops, train, sample, minibatch, messages, reorder, partition, tables, precision, memory, plan, ranking, events, knowledge, machine, merge and write"
            )
        }
    }
    Ok(())
}

/// Sections of the module `links`, whose arguments are numbers.
fn run_links(section: &str, rest: &[String]) -> Result<()> {
    let number = |text: &String| {
        text.parse::<usize>().with_context(|| format!("{section}: reading `{text}` as a number"))
    };
    match (section, rest) {
        ("ranking", [queries, candidates, d]) => {
            ranking::run(number(queries)?, number(candidates)?, number(d)?)
        }
        ("events", [model, scale, end, events @ ..]) if events.len() < 2 => {
            let events = events.first().map(number).transpose()?;
            events::run(model, number(scale)? as u64, number(end)?, events)
        }
        ("knowledge", [folder, kind, d, batch]) => {
            knowledge::run(folder.as_ref(), kind, number(d)?, number(batch)?)
        }
        _ => bail!("{section}: other arguments than expected; call without a section for a list"),
    }
}
