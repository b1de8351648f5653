//! Gradients of several results of one operation, until all of them are there.
//!
//! Autodiff knows operations of one result, and adds up what several of them pass to one input. So
//! each result lays its gradient down here and passes on a tensor of one entry, which says only
//! that backward of the input is due.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

/// What was laid down so far, in a form that the backend chooses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shelf(Arc<Mutex<Option<Box<dyn Any + Send>>>>);

impl Shelf {
    /// Works on what was laid down so far, which `new` begins, and may do so in parallel: nobody
    /// else asks meanwhile, for Burn locks a graph during its backward, whichever thread runs that.
    pub(crate) fn with<T: Send + 'static>(&self, new: impl FnOnce() -> T, work: impl FnOnce(&mut T)) {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Backward of all results and of the input runs on one backend, so what is there is a `T`.
        let mut laid = shelf.take().and_then(|laid| laid.downcast::<T>().ok()).unwrap_or_else(|| Box::new(new()));
        work(&mut laid);
        *shelf = Some(laid);
    }
    /// What was laid down, once.
    pub(crate) fn take<T: 'static>(&self) -> Option<T> {
        let laid = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        laid.downcast::<T>().ok().map(|laid| *laid)
    }
}
