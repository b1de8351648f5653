//! Opens parts that were cut on disk as parts of a distributed run.

use std::path::Path;

use burn::tensor::TensorData;
use burn_gnn_dist::{Communicator, DistError, OwnEdges, Partition};
use burn_gnn_graph::{EdgeReader, EdgeType};
use burn_gnn_store::{StoreError, StoredPart};

/// The part of this rank out of files that hold no other rank's ([`StoredPart`]), with the weights and times of
/// edges as the columns `weight` and `time`. The graph was never in memory: [`CscBuild`](burn_gnn_store::CscBuild)
/// wrote it and [`StreamCut`](burn_gnn_store::StreamCut) cut it. Losses and gradients are those of the whole graph.
/// Collective.
///
/// Features, labels and masks are columns that are added to it, a row for each of [`Partition::inner_nids`].
///
/// ```
/// use burn::tensor::{Device, TensorData};
/// use burn_gnn::dist::run_ranks;
/// use burn_gnn::models::{GcnConfig, TrainConfig};
/// use burn_gnn::ranks::{stored_partition, train_part};
/// use burn_gnn::store::{CscBuild, EdgeIter, StoredCsc, StreamCut};
/// # let dir = tempfile::tempdir()?;
/// # let dir = dir.path();
/// let (file, parts) = (dir.join("ring.csc"), dir.join("parts"));
/// CscBuild::new(&file, 6, 6).run(EdgeIter::new((0..6).map(|v| (v, (v + 1) % 6))))?;
/// let csc = StoredCsc::open(&file)?;
/// StreamCut::new(2).assign(&csc)?.write(&csc, &parts)?;
/// drop(csc);
///
/// let device = Device::flex();
/// let trained = run_ranks(2, |comm| -> anyhow::Result<_> {
///     let part = stored_partition(&parts, "ring", &*comm)?;
///     let ids = part.inner_nids().to_vec();
///     let column = |of: fn(u64) -> i64| TensorData::new(ids.iter().map(|&v| of(v)).collect(), [ids.len()]);
///     let x = TensorData::new(ids.iter().map(|&v| v as f32).collect::<Vec<_>>(), [ids.len(), 1]);
///     let part = part.with_node_column("_N", "x", x)?.with_node_column("_N", "y", column(|v| v as i64 % 2))?;
///     let part = part.with_node_column("_N", "train_mask", TensorData::new(vec![true; ids.len()], [ids.len()]))?;
///     let config = TrainConfig::new().with_epochs(2).with_progress(false);
///     Ok(train_part(&part, comm, "_N", &config, &device, |_, device| GcnConfig::new(1, 2).try_init(device), |_| {})?)
/// })?;
/// # assert_eq!(trained[0].history.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// On every rank: what keeps the files of one from being read; parts of different partitionings; more or fewer
/// ranks than parts.
///
/// # Cost
/// The part's edges in memory, 16 bytes each and 12 more while they are sorted; two exchanges of 8 bytes per halo node.
pub fn stored_partition(
    dir: impl AsRef<Path>,
    graph_name: &str,
    comm: &dyn Communicator,
) -> Result<Partition, DistError> {
    let (rank, size) = (comm.rank(), comm.size());
    let read = || -> Result<_, DistError> {
        let of_graph = |e: StoreError| DistError::Graph(e.into());
        let part = StoredPart::open(dir, rank).map_err(of_graph)?;
        if part.number().1 != size {
            return Err(DistError::WrongRank {
                rank,
                size,
                part: rank,
                num_parts: part.number().1,
                trainers: 1,
            });
        }
        let StoredEdges { src, dst, edge_ids, columns } =
            StoredEdges::read(&part).map_err(of_graph)?;
        let (inner, halo, owners) =
            (part.inner().to_vec(), part.halo().to_vec(), part.owners().to_vec());
        let (graph_name, path, etype) =
            (graph_name.to_owned(), part.csc().path().to_owned(), EdgeType::new("_N", "_E", "_N"));
        Ok((
            OwnEdges {
                graph_name,
                fingerprint: part.fingerprint(),
                path,
                etype,
                inner,
                halo,
                owners,
                src,
                dst,
                edge_ids,
            },
            columns,
        ))
    };
    let (own, columns) = match read() {
        Ok((own, columns)) => (Ok(own), columns),
        Err(e) => (Err(e), vec![]),
    };
    columns.into_iter().try_fold(Partition::from_own_edges(own, comm)?, |part, (name, data)| {
        part.with_edge_column("_E", name, data)
    })
}

/// The edges of a stored part by ascending edge id.
struct StoredEdges {
    src: Vec<u32>,
    dst: Vec<u32>,
    edge_ids: Vec<u64>,
    columns: Vec<(&'static str, TensorData)>,
}

impl StoredEdges {
    fn read(part: &StoredPart) -> Result<Self, StoreError> {
        let csc = part.csc();
        let (inner, count) = (part.inner().len() as u32, csc.num_edges());
        let (mut src, mut dst, mut ids) = (vec![], vec![], vec![]);
        csc.sources_of(0..count, &mut src)?;
        let has_ids = csc.edge_ids_of(0..count, &mut ids)?;
        for v in 0..inner {
            let (start, len) = part.whole_row(v)?;
            dst.extend(std::iter::repeat_n(v, len as usize));
            if !has_ids {
                ids.extend(start..start + u64::from(len));
            }
        }
        let (mut weights, mut times) = (vec![], vec![]);
        let (has_weights, has_times) =
            (csc.weights_of(0..count, &mut weights)?, csc.times_of(0..count, &mut times)?);
        if !ids.is_sorted() {
            let mut order: Vec<u32> = (0..ids.len() as u32).collect();
            order.sort_unstable_by_key(|&e| ids[e as usize]);
            fn by<T: Copy>(values: &mut Vec<T>, order: &[u32]) {
                *values = order.iter().map(|&e| values[e as usize]).collect();
            }
            by(&mut src, &order);
            by(&mut dst, &order);
            by(&mut ids, &order);
            if has_weights {
                by(&mut weights, &order);
            }
            if has_times {
                by(&mut times, &order);
            }
        }
        let n = ids.len();
        let weights = has_weights.then(|| ("weight", TensorData::new(weights, [n])));
        let times = has_times.then(|| ("time", TensorData::new(times, [n])));
        Ok(Self { src, dst, edge_ids: ids, columns: weights.into_iter().chain(times).collect() })
    }
}
