use burn::module::{Module, Param, ParamId, ParameterValue};
use burn::tensor::{Bool, DType, Device, Distribution, Int, Tensor, TensorData};
use burn_gnn_dist::{DistError, broadcast_module, broadcast_seed, check_replicas};

use crate::ranks::run;

/// A parameter of each kind, and an empty one.
#[derive(Module, Debug)]
struct Model {
    inner: Vec<Layer>,
    steps: Param<Tensor<1, Int>>,
    mask: Param<Tensor<2, Bool>>,
    #[module(skip)]
    key: u64,
}

#[derive(Module, Debug)]
struct Layer {
    weight: Param<Tensor<2>>,
    bias: Option<Param<Tensor<1>>>,
}

fn constant<T: ParameterValue>(value: T) -> Param<T> {
    Param::initialized(ParamId::new(), value)
}

/// Initialised as Burn's layers are, by the random generator of the device, which threads share and processes do not.
fn drawn(rank: usize, device: &Device, dtypes: [DType; 3]) -> Model {
    let normal = |dtype| Tensor::<2>::random([7, 3], Distribution::Default, (device, dtype));
    let layer = |dtype, bias| Layer {
        weight: Param::from_tensor(normal(dtype)),
        bias: if bias {
            Some(Param::from_tensor(Tensor::zeros([0], device)).no_grad())
        } else {
            None
        },
    };
    Model {
        inner: dtypes.into_iter().enumerate().map(|(i, dtype)| layer(dtype, i == 1)).collect(),
        steps: constant(Tensor::from_data(
            TensorData::from([rank as i64, 5]),
            (device, DType::I64),
        )),
        mask: constant(Tensor::from_data([[rank.is_multiple_of(2), rank == 1]], device)),
        key: rank as u64,
    }
}

fn bits(model: &Model) -> Vec<Vec<u8>> {
    let layers = model.inner.iter().flat_map(|l| {
        let bias = l.bias.iter().map(|b| b.val().into_data());
        std::iter::once(l.weight.val().into_data()).chain(bias)
    });
    let all = layers
        .chain([model.steps.val().into_data(), model.mask.val().into_data().convert::<bool>()]);
    all.map(|d| d.as_bytes().to_vec()).collect()
}

/// Models without a shared seed are an error; after a broadcast all ranks have the bits of rank 0.
pub(crate) fn models_are_made_equal(n: usize) {
    // The other backend has no f16.
    for (device, third) in
        [(Device::flex(), DType::F16), (burn_gnn_testutil::other_device().autodiff(), DType::F32)]
    {
        let ranks = run(n, |comm| {
            let rank = comm.rank();
            let model = drawn(rank, &device, [DType::F32, DType::F64, third]);
            let error = check_replicas(&*comm, &model).unwrap_err().to_string();
            let (before, tracked) = (bits(&model), model.inner[0].weight.is_require_grad());
            let id = model.inner[0].weight.id;
            let model = broadcast_module(&*comm, model)?;
            check_replicas(&*comm, &model)?;
            assert_eq!(
                (model.inner[0].weight.is_require_grad(), model.inner[0].weight.id, model.key),
                (tracked, id, rank as u64)
            );
            assert!(model.inner[1].bias.as_ref().is_some_and(|b| !b.is_require_grad()));
            assert_eq!(before == bits(&model), rank == 0);
            Ok::<_, DistError>((error, before, bits(&model)))
        });
        for (error, _, after) in &ranks {
            assert_eq!(*error, ranks[0].0);
            assert!(
                error.starts_with(
                    "parameter `inner.0.weight` on rank 1: expected values with hash "
                ),
                "{error}"
            );
            assert!(error.contains("call `broadcast_module` before the first step"), "{error}");
            assert_eq!(*after, ranks[0].1);
        }
    }
}

/// Modules of different structure are an error on all ranks that names the difference.
pub(crate) fn models_must_have_one_structure(n: usize) {
    let device = Device::flex();
    let texts = run(n, |comm| {
        let last = comm.rank() + 1 == comm.size();
        let text = |change: &dyn Fn(&mut Model)| {
            let mut model = drawn(0, &device, [DType::F32; 3]);
            if last {
                change(&mut model);
            }
            let both = [
                check_replicas(&*comm, &model).unwrap_err(),
                broadcast_module(&*comm, model).unwrap_err(),
            ];
            assert!(
                both.iter().all(|e| matches!(e, DistError::Replicas { rank, .. } if *rank > 0)),
                "{both:?}"
            );
            both[1].to_string()
        };
        let texts = [
            text(&|m| drop(m.inner.pop())),
            text(&|m| m.mask = constant(Tensor::from_data([[true], [false]], &device))),
            text(&|m| m.steps = m.steps.clone().map(|s| s.cast(DType::I32))),
        ];
        // The next call works.
        comm.barrier("after")?;
        Ok::<_, DistError>(texts.to_vec())
    });
    for texts in &ranks_agree(texts) {
        let rank = n - 1;
        assert!(
            texts[0].starts_with(&format!(
                "the number of parameters on rank {rank}: expected 6 as on rank 0, found 5;"
            )),
            "{texts:?}"
        );
        assert!(
            texts[1].contains("parameter `mask`")
                && texts[1].contains("[1, 2] as on rank 0, found bool"),
            "{texts:?}"
        );
        assert!(
            texts[2].contains("parameter `steps`")
                && texts[2].contains("expected int I64 [2] as on rank 0, found int I32"),
            "{texts:?}"
        );
    }
}

fn ranks_agree(texts: Vec<Vec<String>>) -> Vec<Vec<String>> {
    assert!(texts.iter().all(|t| *t == texts[0]), "{texts:?}");
    texts
}

/// All ranks get the same random seed, and another one from the next call.
pub(crate) fn ranks_share_a_seed(n: usize) {
    let seeds =
        run(n, |comm| Ok::<_, DistError>([broadcast_seed(&*comm)?, broadcast_seed(&*comm)?]));
    assert!(seeds.iter().all(|s| *s == seeds[0]) && seeds[0][0] != seeds[0][1], "{seeds:?}");
}
