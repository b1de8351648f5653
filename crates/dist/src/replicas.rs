//! Broadcasts models to all ranks, and checks that replicas are equal.

use std::hash::{BuildHasher, RandomState};

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Bool, Int, Tensor, TensorData};
use twox_hash::XxHash3_64;

use crate::comm::{Communicator, Failure};
use crate::error::DistError;

/// Sets each float, int and bool parameter of a module to the bits of rank 0, as torch's `DistributedDataParallel` does
/// on construction. Collective.
///
/// Every rank first creates a module of the same structure and passes it by value. Devices, parameter ids and
/// `require_grad` flags of this rank are kept. Fields with `#[module(skip)]` do not change: to get equal keys of
/// dropout masks, create the module from a shared seed ([`broadcast_seed`]). `module` must not contain rows that are
/// distributed over ranks, such as those of a partitioned embedding.
///
/// ```
/// use burn::module::{Module, Param};
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_gnn_dist::{DistError, broadcast_module, check_replicas, run_ranks};
/// #[derive(Module, Debug)]
/// struct Scale {
///     weight: Param<Tensor<1>>,
/// }
/// run_ranks(2, |comm| {
///     let own = Scale { weight: Param::from_tensor(Tensor::random([8], Distribution::Default, &Device::flex())) };
///     assert!(check_replicas(&*comm, &own).is_err());
///     let model = broadcast_module(&*comm, own)?;
///     check_replicas(&*comm, &model)
/// })?;
/// # Ok::<(), DistError>(())
/// ```
///
/// # Errors
/// [`DistError::Replicas`] on all ranks if the number of parameters differs between ranks, or the kind, dtype or shape
/// of one of them.
///
/// # Cost
/// One copy of all parameters in host memory; their bytes are sent to every rank once.
pub fn broadcast_module<M: Module>(comm: &dyn Communicator, module: M) -> Result<M, DistError> {
    let own = Parameters::of(&module, comm.rank() == 0);
    let kinds = own.kinds.iter().map(String::as_bytes).collect::<Vec<_>>().join(&0);
    compare(comm, "broadcast module: shapes", &own.paths, kinds, |kinds| {
        kinds
            .split(|&b| b == 0)
            .filter(|k| !k.is_empty())
            .map(|k| String::from_utf8_lossy(k).into_owned())
            .collect()
    })?;
    let bytes = comm.broadcast("broadcast module: parameters", 0, own.bytes)?;
    if bytes.len() != own.lengths.iter().sum::<usize>() {
        let message = format!(
            "`broadcast module`: rank 0 sent {} bytes; do all ranks run the same program?",
            bytes.len()
        );
        return Err(Failure { rank: comm.rank(), message }.into());
    }
    Ok(module.map(&mut Replace { rest: &bytes }))
}

/// Returns an error on every rank unless the parameters of all ranks are equal, bit for bit. Collective.
///
/// Compares a hash of each float, int and bool parameter. Fields with `#[module(skip)]` are ignored. Without this
/// check, ranks train different models without an error: they apply the same gradients to different parameters.
///
/// # Errors
/// [`DistError::Replicas`] on all ranks, with the first parameter that differs from rank 0 and the remedy.
///
/// # Cost
/// One pass over the parameters in host memory; 8 bytes per parameter tensor are sent to every rank.
pub fn check_replicas<M: Module>(comm: &dyn Communicator, module: &M) -> Result<(), DistError> {
    check_replicas_except(comm, module, |_| false)
}

/// [`check_replicas`] without the parameters whose path (field names joined by dots) `skip` selects: those whose rows
/// ranks own. Collective.
///
/// # Errors
/// As [`check_replicas`].
pub fn check_replicas_except<M: Module>(
    comm: &dyn Communicator,
    module: &M,
    skip: impl Fn(&str) -> bool,
) -> Result<(), DistError> {
    let mut own = Parameters::of(module, false);
    let mut keep = own.paths.iter().map(|path| !skip(path)).collect::<Vec<_>>().into_iter();
    own.hashes.retain(|_| keep.next().unwrap_or(true));
    own.paths.retain(|path| !skip(path));
    let hashes = own.hashes.iter().flat_map(|h| h.to_le_bytes()).collect();
    compare(comm, "check replicas", &own.paths, hashes, |hashes| {
        let hash = |h: &[u8; 8]| format!("values with hash {:016x}", u64::from_le_bytes(*h));
        hashes.as_chunks::<8>().0.iter().map(hash).collect()
    })
}

/// Draws a random seed on rank 0 and returns it on all ranks. Collective.
///
/// Use it to create equal models on all ranks without choosing a seed:
/// `seeded(broadcast_seed(&*comm)?, || config.init(&device))` with `seeded` of `burn-gnn-models` gives the same initial
/// weights and dropout keys on all ranks. For a repeatable run, pass a fixed seed to `seeded` instead.
///
/// # Errors
/// Some rank failed.
pub fn broadcast_seed(comm: &dyn Communicator) -> Result<u64, Failure> {
    // Hashers of the standard library are seeded by the operating system.
    let own = RandomState::new().hash_one(std::process::id());
    let bytes = comm.broadcast("broadcast seed", 0, own.to_le_bytes().to_vec())?;
    let seed = bytes.try_into().map(u64::from_le_bytes);
    seed.map_err(|_| Failure {
        rank: comm.rank(),
        message: "`broadcast seed`: the message of rank 0 is not a seed; do all ranks run the same program?".into(),
    })
}

/// Compares one description per parameter with those of rank 0. Every rank receives all descriptions, so all ranks find
/// the same difference.
fn compare(
    comm: &dyn Communicator,
    name: &str,
    paths: &[String],
    own: Vec<u8>,
    read: impl Fn(&[u8]) -> Vec<String>,
) -> Result<(), DistError> {
    let all = comm.all_gather(name, own)?;
    let Some(rank) = all.iter().position(|bytes| *bytes != all[0]) else { return Ok(()) };
    let (expected, found) = (read(&all[0]), read(&all[rank]));
    let differs = |what: String, expected: String, found: String| {
        Err(DistError::Replicas { what, rank, expected, found })
    };
    if expected.len() != found.len() {
        return differs(
            "the number of parameters".into(),
            expected.len().to_string(),
            found.len().to_string(),
        );
    }
    let pairs = expected.into_iter().zip(found).enumerate();
    let (i, (expected, found)) = pairs.into_iter().find(|(_, (a, b))| a != b).unwrap_or_default();
    let path = paths.get(i).map_or_else(|| format!("number {i}"), |path| format!("`{path}`"));
    differs(format!("parameter {path}"), expected, found)
}

/// Descriptions of the parameters of a module, in the order of its fields.
#[derive(Default)]
struct Parameters {
    path: Vec<String>,
    paths: Vec<String>,
    /// Kind, dtype and shape.
    kinds: Vec<String>,
    hashes: Vec<u64>,
    lengths: Vec<usize>,
    keep: bool,
    /// Bytes of all parameters, if `keep` is set.
    bytes: Vec<u8>,
}

impl Parameters {
    fn of<M: Module>(module: &M, keep: bool) -> Self {
        let mut parameters = Self { keep, ..Self::default() };
        module.visit(&mut parameters);
        parameters
    }
    fn add(&mut self, kind: &str, data: TensorData) {
        let bytes = data.as_bytes();
        let kind = format!("{kind} {:?} {:?}", data.dtype(), data.shape().as_slice());
        self.hashes
            .push(XxHash3_64::oneshot_with_seed(XxHash3_64::oneshot(kind.as_bytes()), bytes));
        self.lengths.push(bytes.len());
        if self.keep {
            self.bytes.extend_from_slice(bytes);
        }
        self.paths.push(self.path.join("."));
        self.kinds.push(kind);
    }
}

/// Converts booleans to one byte each, independent of how the device stores them.
fn bools<const D: usize>(tensor: Tensor<D, Bool>) -> TensorData {
    tensor.into_data().convert::<bool>()
}

impl ModuleVisitor for Parameters {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }
    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }
    // The base of a reparameterization is visited before it.
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.add("float", param.base().into_data());
    }
    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.add("int", param.base().into_data());
    }
    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.add("bool", bools(param.base()));
    }
}

/// Replaces the values of parameters by consecutive ranges of bytes, whose total length has been checked.
struct Replace<'a> {
    rest: &'a [u8],
}

impl Replace<'_> {
    fn next(&mut self, own: &TensorData) -> TensorData {
        let (bytes, rest) = self.rest.split_at(own.as_bytes().len());
        self.rest = rest;
        TensorData::from_bytes_vec(bytes.to_vec(), own.shape().clone(), own.dtype())
    }
}

impl ModuleMapper for Replace<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (id, own, mapper) = param.consume();
        let (device, dtype, tracked) = (own.device(), own.dtype(), own.is_require_grad());
        let new = Tensor::from_data(self.next(&own.into_data()), (&device, dtype))
            .set_require_grad(tracked);
        Param::from_mapped_value(id, new, mapper)
    }
    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        param.map(|own| {
            let (device, dtype) = (own.device(), own.dtype());
            Tensor::from_data(self.next(&own.into_data()), (&device, dtype))
        })
    }
    fn map_bool<const D: usize>(
        &mut self,
        param: Param<Tensor<D, Bool>>,
    ) -> Param<Tensor<D, Bool>> {
        param.map(|own| {
            let device = own.device();
            Tensor::from_data(self.next(&bools(own)), &device)
        })
    }
}
