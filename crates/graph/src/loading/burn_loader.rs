//! Loaders as Burn's training loop takes them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use burn::data::dataloader::{DataLoader, DataLoaderIterator, Progress};
use burn::data::dataset::DatasetError;
use burn::tensor::Device;

use super::{BatchMaker, Loader, LoaderEpoch};

struct Pass<M: BatchMaker>(LoaderEpoch<M>);

impl<M: BatchMaker> Iterator for Pass<M> {
    type Item = Result<M::Batch, DatasetError>;
    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.map_err(DatasetError::new))
    }
}

impl<M: BatchMaker> DataLoaderIterator<M::Batch> for Pass<M> {
    fn progress(&self) -> Progress {
        let (done, all) = self.0.progress();
        Progress::new(done, all, Some("seeds".to_owned()))
    }
}

impl<M: BatchMaker> DataLoader<M::Batch> for Loader<M> {
    /// The next epoch.
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<M::Batch> + 'a> {
        Box::new(Pass(self.epoch(self.next_epoch.fetch_add(1, Ordering::Relaxed))))
    }
    fn num_items(&self) -> usize {
        self.maker.num_seeds()
    }
    fn to_device(&self, device: &Device) -> Arc<dyn DataLoader<M::Batch>> {
        Arc::new(self.with_maker(self.maker.to_device(device)))
    }
    fn slice(&self, start: usize, end: usize) -> Arc<dyn DataLoader<M::Batch>> {
        Arc::new(self.with_maker(self.maker.slice(start, end)))
    }
}
