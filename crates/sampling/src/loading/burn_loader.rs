//! Adapts loaders to Burn's `DataLoader`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use burn::data::dataloader::{DataLoader, DataLoaderIterator, Progress};
use burn::data::dataset::DatasetError;
use burn::tensor::Device;

use crate::batch::sampler::Sampler;
use crate::loading::epoch::LoaderEpoch;
use crate::loading::features::{BatchFeatures, LoadedBatch};
use crate::loading::loader::Loader;

type BatchOf<S> = LoadedBatch<<S as Sampler>::Batch, <S as Sampler>::Seed>;

struct Pass<S: Sampler, F: BatchFeatures<S>>(LoaderEpoch<S, F>);

impl<S: Sampler, F: BatchFeatures<S>> Iterator for Pass<S, F> {
    type Item = Result<BatchOf<S>, DatasetError>;
    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.map_err(DatasetError::new))
    }
}

impl<S: Sampler, F: BatchFeatures<S>> DataLoaderIterator<BatchOf<S>> for Pass<S, F> {
    fn progress(&self) -> Progress {
        let (done, all) = self.0.progress();
        Progress::new(done, all, Some("seeds".to_owned()))
    }
}

impl<S: Sampler, F: BatchFeatures<S>> DataLoader<BatchOf<S>> for Loader<S, F> {
    /// Starts the next epoch.
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<BatchOf<S>> + 'a> {
        Box::new(Pass(self.epoch(self.next_epoch.fetch_add(1, Ordering::Relaxed))))
    }
    fn num_items(&self) -> usize {
        self.parts.seeds.len()
    }
    fn to_device(&self, device: &Device) -> Arc<dyn DataLoader<BatchOf<S>>> {
        Arc::new(self.with(self.parts.seeds.clone(), self.parts.features.to_device(device)))
    }
    fn slice(&self, start: usize, end: usize) -> Arc<dyn DataLoader<BatchOf<S>>> {
        Arc::new(
            self.with(Arc::new(self.parts.seeds.slice(start, end)), self.parts.features.clone()),
        )
    }
}
