//! Opens parts of graphs in files as parts of a distributed run.

use std::path::Path;

use burn::tensor::TensorData;
use burn_gnn_dist::{Communicator, DistError, OwnEdges, OwnNodes, OwnPart, Partition};
use burn_gnn_graph::{EdgeReader, GraphError, Relation};
use burn_gnn_store::{StoreError, StoredPart};

/// Opens the part of this rank from its files ([`StoredPart`]), with the weights and times of edges
/// as the columns `weight` and `time`. It serves graphs larger than memory, which
/// [`CscBuild`](burn_gnn_store::CscBuild) has written and [`StreamCut`](burn_gnn_store::StreamCut)
/// has partitioned. Losses and gradients equal those of the whole graph. Collective.
///
/// Add features, labels and masks as columns, with one row per inner node of a type
/// ([`Partition::inner_nids`]).
///
/// ```
/// use burn::tensor::{Device, TensorData};
/// use burn_gnn::dist::run_ranks;
/// use burn_gnn::models::{FitConfig, GcnConfig};
/// use burn_gnn::ranks::{fit_part, stored_partition};
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
///     let ids = part.inner_nids("_N").to_vec();
///     let column = |of: fn(u64) -> i64| TensorData::new(ids.iter().map(|&v| of(v)).collect(), [ids.len()]);
///     let x = TensorData::new(ids.iter().map(|&v| v as f32).collect::<Vec<_>>(), [ids.len(), 1]);
///     let part = part.with_node_column("_N", "x", x)?.with_node_column("_N", "y", column(|v| v as i64 % 2))?;
///     let part = part.with_node_column("_N", "train_mask", TensorData::new(vec![true; ids.len()], [ids.len()]))?;
///     let config = FitConfig::new().with_epochs(2).with_progress(false);
///     Ok(fit_part(&part, comm, "_N", &config, &device, |_, device| GcnConfig::new(1, 2).try_init(device))?)
/// })?;
/// # assert_eq!(trained[0].history.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// On every rank: the files of a rank cannot be read; the parts are of different partitionings; the
/// number of ranks is not the number of parts.
///
/// # Cost
/// The edges of the part in memory, 16 bytes each, and 12 more while they are sorted; two exchanges
/// of 8 bytes per halo node.
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
        let schema = part.schema().clone();
        // Check this before reading the parts.
        let (count, limit) =
            ((0..schema.etypes().len()).map(|e| part.csc(e).num_edges()).sum(), Relation::LIMIT);
        if count > limit {
            let relation = format!("part {rank}");
            return Err(GraphError::TooLarge { relation, what: "edges", count, limit }.into());
        }
        let (mut edges, mut columns) = (vec![], vec![]);
        for e in 0..schema.etypes().len() {
            let StoredEdges { own, columns: of } = StoredEdges::read(&part, e).map_err(of_graph)?;
            edges.push(own);
            columns.extend(of.into_iter().map(|(name, data)| (e, name, data)));
        }
        let nodes = |t| OwnNodes {
            inner: part.inner(t).to_vec(),
            halo: part.halo(t).to_vec(),
            owners: part.owners(t).to_vec(),
        };
        let own = OwnPart {
            graph_name: graph_name.to_owned(),
            fingerprint: part.fingerprint(),
            path: part.path().to_owned(),
            nodes: (0..schema.ntypes().len()).map(nodes).collect(),
            edges,
            schema,
        };
        Ok((own, columns))
    };
    let (own, columns) = match read() {
        Ok((own, columns)) => (Ok(own), columns),
        Err(e) => (Err(e), vec![]),
    };
    columns.into_iter().try_fold(Partition::from_own_part(own, comm)?, |part, (e, name, data)| {
        part.with_edge_column(e, name, data)
    })
}

/// Reads the edges of one type of a stored part, by ascending edge id.
struct StoredEdges {
    own: OwnEdges,
    columns: Vec<(&'static str, TensorData)>,
}

impl StoredEdges {
    fn read(part: &StoredPart, e: usize) -> Result<Self, StoreError> {
        let (csc, (_, d)) = (part.csc(e), part.schema().endpoints(e));
        let (inner, count) = (part.inner(d).len() as u32, csc.num_edges());
        let (mut src, mut dst, mut ids) = (vec![], vec![], vec![]);
        csc.sources_of(0..count, &mut src)?;
        let has_ids = csc.edge_ids_of(0..count, &mut ids)?;
        for v in 0..inner {
            let (start, len) = part.whole_row(e, v)?;
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
        let own = OwnEdges { src, dst, edge_ids: ids };
        Ok(Self { own, columns: weights.into_iter().chain(times).collect() })
    }
}
