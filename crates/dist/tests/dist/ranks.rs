//! Runs tests on ranks: threads of this process, or the processes that `mpirun` has started.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use burn_gnn_dist::{Communicator, PartitionedGraph, SeedSplit, run_ranks};
use tempfile::TempDir;

/// The communicator of the processes, under `mpirun`.
static WORLD: Mutex<Option<Arc<dyn Communicator>>> = Mutex::new(None);

/// Makes runs whose number of ranks is that of the processes use them as ranks.
#[allow(dead_code)] // Of the tests under `mpirun`.
pub(crate) fn set_world(comm: Option<Arc<dyn Communicator>>) {
    *WORLD.lock().unwrap_or_else(PoisonError::into_inner) = comm;
}

fn world(size: Option<usize>) -> Option<Arc<dyn Communicator>> {
    let world = WORLD.lock().unwrap_or_else(PoisonError::into_inner).clone();
    world.filter(|w| size.is_none_or(|n| n == w.size()))
}

/// Runs `f` on all ranks and returns the results by rank; processes exchange them.
#[track_caller]
pub(crate) fn run<R: Wire + Send, E: Display>(
    size: usize,
    f: impl Fn(Arc<dyn Communicator>) -> Result<R, E> + Sync,
) -> Vec<R> {
    let Some(comm) = world(Some(size)) else { return run_ranks(size, f).unwrap() };
    let value = f(comm.clone()).unwrap_or_else(|e| panic!("rank {}: {e}", comm.rank()));
    let mut bytes = vec![];
    value.put(&mut bytes);
    comm.all_gather("values of a test", bytes)
        .unwrap()
        .iter()
        .map(|b| R::take(&mut &b[..]))
        .collect()
}

/// A folder that all ranks share, removed on drop.
pub(crate) struct Shared {
    path: PathBuf,
    _own: Option<TempDir>,
}

impl Shared {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(comm) = world(None).filter(|_| !std::thread::panicking()) {
            comm.barrier("remove the shared folder").unwrap();
        }
    }
}

pub(crate) fn shared_dir() -> Shared {
    let Some(comm) = world(None) else {
        let own = tempfile::tempdir().unwrap();
        return Shared { path: own.path().to_owned(), _own: Some(own) };
    };
    let own = (comm.rank() == 0).then(|| tempfile::tempdir().unwrap());
    let name =
        own.as_ref().map_or_else(Vec::new, |d| d.path().to_str().unwrap().as_bytes().to_vec());
    let name = comm.broadcast("folder of a test", 0, name).unwrap();
    Shared { path: String::from_utf8(name).unwrap().into(), _own: own }
}

/// Writes the files of a partitioning once and returns the path of the metadata.
pub(crate) fn written(parts: &PartitionedGraph, dir: &Shared) -> PathBuf {
    let comm = world(None);
    if comm.as_ref().is_none_or(|c| c.rank() == 0) {
        parts.write(dir.path()).unwrap();
    }
    if let Some(comm) = comm {
        comm.barrier("parts are written").unwrap();
    }
    dir.path().join(format!("{}.json", parts.config().graph_name))
}

/// A value that can be sent between processes.
pub(crate) trait Wire {
    fn put(&self, out: &mut Vec<u8>);
    fn take(from: &mut &[u8]) -> Self;
}

macro_rules! number {
    ($($t:ty),*) => {$(
        impl Wire for $t {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend(self.to_le_bytes());
            }
            fn take(from: &mut &[u8]) -> Self {
                let (head, rest) = from.split_first_chunk().unwrap();
                *from = rest;
                Self::from_le_bytes(*head)
            }
        }
    )*};
}
number!(u8, u32, u64, usize, i64, f32, f64);

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        u8::from(*self).put(out);
    }
    fn take(from: &mut &[u8]) -> Self {
        u8::take(from) != 0
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        self.iter().for_each(|x| x.put(out));
    }
    fn take(from: &mut &[u8]) -> Self {
        (0..usize::take(from)).map(|_| T::take(from)).collect()
    }
}

impl<T: Wire, const N: usize> Wire for [T; N] {
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|x| x.put(out));
    }
    fn take(from: &mut &[u8]) -> Self {
        std::array::from_fn(|_| T::take(from))
    }
}

impl Wire for String {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_bytes().to_vec().put(out);
    }
    fn take(from: &mut &[u8]) -> Self {
        Self::from_utf8(Vec::take(from)).unwrap()
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        self.iter().for_each(|x| x.put(out));
    }
    fn take(from: &mut &[u8]) -> Self {
        bool::take(from).then(|| T::take(from))
    }
}

impl<T: Wire, E: Wire> Wire for Result<T, E> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_ok().put(out);
        match self {
            Ok(x) => x.put(out),
            Err(e) => e.put(out),
        }
    }
    fn take(from: &mut &[u8]) -> Self {
        if bool::take(from) { Ok(T::take(from)) } else { Err(E::take(from)) }
    }
}

macro_rules! tuple {
    ($($t:ident $i:tt),*) => {
        #[allow(unused_variables)] // Of the empty one.
        impl<$($t: Wire),*> Wire for ($($t,)*) {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$i.put(out);)*
            }
            #[allow(clippy::unused_unit)]
            fn take(from: &mut &[u8]) -> Self {
                ($($t::take(from),)*)
            }
        }
    };
}
tuple!();
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4);

impl Wire for SeedSplit {
    fn put(&self, out: &mut Vec<u8>) {
        self.ids.put(out);
        self.counts.put(out);
    }
    fn take(from: &mut &[u8]) -> Self {
        Self { ids: Vec::take(from), counts: Vec::take(from) }
    }
}
