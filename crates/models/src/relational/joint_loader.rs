//! Joins the batches of several tasks, for models with several heads.

use burn_gnn_sampling::LoadedBatch;

use crate::error::ModelError;
use crate::relational::database_sampler::{DatabaseBatch, DatabaseLoader};
use crate::training::batches::Batches;

/// A batch of a task, with batches of other tasks that train the same encoders.
#[derive(Clone, Debug)]
pub struct JointBatch {
    /// The batch that scores and metrics are computed of.
    pub main: LoadedBatch<DatabaseBatch, u32>,
    /// Batches whose losses are added to that of the main one.
    pub others: Vec<LoadedBatch<DatabaseBatch, u32>>,
}

/// Batches of a task, each with a batch of every other task: a model with several heads learns all of them. An epoch is
/// one of the main task; shorter other tasks start again.
pub struct JointLoader {
    main: DatabaseLoader,
    others: Vec<DatabaseLoader>,
}

impl JointLoader {
    /// Joins loaders. Without `others`, batches are those of `main`.
    ///
    /// # Errors
    /// Another task without seeds.
    pub fn new(main: DatabaseLoader, others: Vec<DatabaseLoader>) -> Result<Self, ModelError> {
        let empty = others.iter().position(|loader| loader.num_batches() == 0);
        let range = "loaders with at least one batch";
        ModelError::check_range("others", range, empty.unwrap_or(0), empty.is_none())?;
        Ok(Self { main, others })
    }
}

impl Batches<JointBatch> for JointLoader {
    fn batches(&self, epoch: u64) -> impl Iterator<Item = Result<JointBatch, ModelError>> {
        let per_epoch = self.main.num_batches() as u64;
        let mut others: Vec<_> = self
            .others
            .iter()
            .map(|loader| {
                // Where the epochs before have left the other task, so that a resumed run goes on there.
                let (first, count) = (epoch * per_epoch, loader.num_batches() as u64);
                let start = burn_gnn_sampling::LoaderState {
                    epoch: first / count,
                    batch: (first % count) as usize,
                };
                let rest = (start.epoch + 1..).flat_map(|epoch| loader.epoch(epoch));
                loader.resume(start).chain(rest)
            })
            .collect();
        self.main.epoch(epoch).map(move |main| {
            let next = |other: &mut dyn Iterator<Item = Result<_, ModelError>>| {
                other.next().unwrap_or_else(|| unreachable!("epochs follow each other"))
            };
            let others = others.iter_mut().map(|other| next(other));
            Ok(JointBatch { main: main?, others: others.collect::<Result<_, _>>()? })
        })
    }
}
