//! Broadcasts models to all ranks, and checks that they are equal.

use std::hash::{BuildHasher, RandomState};

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Bool, Int, Tensor, TensorData};
use twox_hash::XxHash3_64;

use crate::comm::{Communicator, Failure};
use crate::error::DistError;

/// The module of rank 0 on every rank: each float, int and bool parameter takes the bits that rank 0 has, as torch's
/// `DistributedDataParallel` does when it is made. Collective.
///
/// Every rank makes its own module of the same structure first and passes it by value. Devices, parameter ids and what
/// requires gradients stay those of this rank. Fields with `#[module(skip)]` stay as they are: keys of dropout masks
/// are made equal by making the module from one seed ([`broadcast_seed`]). Rows that ranks own, such as those of a
/// partitioned embedding, must not be in `module`.
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
/// [`DistError::Replicas`] on all ranks where a rank has another number of parameters, or one of another kind, dtype or
/// shape.
///
/// # Cost
/// A copy of all parameters in host memory and their bytes sent to every rank, once.
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

/// An error on every rank unless all ranks have the same parameters, bit for bit. Collective.
///
/// What it compares is a hash of each float, int and bool parameter. Fields with `#[module(skip)]` are not seen.
/// Without this check, ranks whose models differ train on without any error: sums of gradients are equal everywhere,
/// what they are added to is not.
///
/// # Errors
/// [`DistError::Replicas`] on all ranks, with the first parameter that differs from rank 0's and what to do.
///
/// # Cost
/// One pass over the parameters in host memory, 8 bytes per parameter tensor sent to every rank.
pub fn check_replicas<M: Module>(comm: &dyn Communicator, module: &M) -> Result<(), DistError> {
    let own = Parameters::of(module, false);
    let hashes = own.hashes.iter().flat_map(|h| h.to_le_bytes()).collect();
    compare(comm, "check replicas", &own.paths, hashes, |hashes| {
        let hash = |h: &[u8; 8]| format!("values with hash {:016x}", u64::from_le_bytes(*h));
        hashes.as_chunks::<8>().0.iter().map(hash).collect()
    })
}

/// A random seed that all ranks share: rank 0 draws it. Collective.
///
/// Models whose initial weights and dropout keys are functions of it are the same on all ranks, without a seed that the
/// user picks: `seeded(broadcast_seed(&*comm)?, || config.init(&device))` with `seeded` of `burn-gnn-models`. For a run
/// that can be repeated, pass a fixed seed to `seeded` instead.
///
/// # Errors
/// Some rank failed.
pub fn broadcast_seed(comm: &dyn Communicator) -> Result<u64, Failure> {
    // The standard library seeds its hashers from the operating system.
    let own = RandomState::new().hash_one(std::process::id());
    let bytes = comm.broadcast("broadcast seed", 0, own.to_le_bytes().to_vec())?;
    let seed = bytes.try_into().map(u64::from_le_bytes);
    seed.map_err(|_| Failure {
        rank: comm.rank(),
        message: "`broadcast seed`: rank 0 sent no seed".into(),
    })
}

/// Compares one text per parameter with those of rank 0; every rank sees what all sent, so all find the same
/// difference.
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

/// What a module holds, parameter by parameter in the order of its fields.
#[derive(Default)]
struct Parameters {
    path: Vec<String>,
    paths: Vec<String>,
    /// Kind, dtype and shape.
    kinds: Vec<String>,
    hashes: Vec<u64>,
    lengths: Vec<usize>,
    keep: bool,
    /// Of all parameters, if they are kept.
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

/// Booleans as one byte each, however a device stores them.
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
    // A reparameterization is visited behind its base.
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

/// Gives parameters their values out of the bytes of all, whose number was compared.
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
