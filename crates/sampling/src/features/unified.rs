//! Concatenates feature rows on devices, in memory and in mapped files.

use std::ops::Range;

use burn::tensor::{DType, Device, Tensor, TensorData};

use crate::features::by_part::{ByPart, select};
use crate::features::mapped::MappedRows;
use crate::features::memory::MemoryRows;
use crate::features::placement::Placement;
use crate::features::row_type::RowType;
use crate::features::source::FeatureSource;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::internal::{check_ids, setting};

/// One feature table in several concatenated parts: tensors on devices, tensors in memory, and mapped files
/// (GraphLearn-for-PyTorch: `UnifiedTensor.init_from`).
///
/// The first part stores the first rows, and so on. A gather reads each part where it is stored, with one call per part.
/// Rows are constants: no gradient reaches the tensors.
///
/// To cache the features of hot nodes with arbitrary ids, see [`DeviceRows`](crate::DeviceRows).
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_sampling::Placement;
/// use burn_gnn_sampling::{FeatureSource, UnifiedRows};
/// let device = Device::flex(); // or Device::cuda(0)
/// let rows = UnifiedRows::from_tensors([
///     (Tensor::from_data([[0.0], [1.0]], &device), Placement::Device(device.clone())),
///     (Tensor::from_data([[2.0], [3.0]], &device), Placement::Memory),
/// ])?;
/// let x = rows.gather_tensor(&[3, 0, 2], &device)?;
/// assert_eq!(x.into_data().try_to_vec::<f32>().unwrap(), [3.0, 0.0, 2.0]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// # Cost
/// A gather copies the rows of each part on another device once, and reorders all rows on the requested device.
#[derive(Debug)]
pub struct UnifiedRows {
    parts: Vec<Part>,
    /// First row of each part, then the number of all rows.
    starts: Vec<usize>,
    width: usize,
    kept: RowType,
}

/// One part.
#[derive(Debug)]
enum Part {
    Device(Device, Box<Tensor<2>>),
    Memory(MemoryRows),
    Mapped(MappedRows),
}

impl Part {
    /// Reads rows as f32.
    fn read(&self, rows: &[u32]) -> Result<Vec<f32>, GraphError> {
        match self {
            Self::Device(..) if rows.is_empty() => Ok(vec![]),
            Self::Device(owner, x) => {
                Ok(select(x, rows, owner, owner).into_data().iter::<f32>().collect())
            }
            Self::Memory(source) => source.gather(rows),
            Self::Mapped(source) => source.gather(rows),
        }
    }
    /// Reads rows (at least one) as a tensor on `device`, in its default float type.
    fn read_tensor(&self, rows: &[u32], device: &Device) -> Result<Tensor<2>, GraphError> {
        let dtype = device.settings().float_dtype;
        match self {
            // Converted before the move, as the target device may not support the type.
            Self::Device(owner, x) if device.supports_dtype(x.dtype()) => {
                Ok(select(x, rows, owner, device).cast(dtype))
            }
            Self::Device(owner, x) => {
                Ok(select(x, rows, owner, owner).cast(dtype).to_device(device))
            }
            Self::Memory(source) => source.gather_tensor(rows, device),
            Self::Mapped(source) => source.gather_tensor(rows, device),
        }
    }
}

impl UnifiedRows {
    /// Concatenates tensors `[rows, width]` of f32, f16 or bf16. Each is moved to its placement: a device or host memory.
    ///
    /// # Errors
    /// No tensors; [`GraphError::RowsMismatch`] if width or dtype differ from the first tensor; another dtype, or a dtype
    /// that the device does not support; [`Placement::Mapped`].
    pub fn from_tensors(
        tensors: impl IntoIterator<Item = (Tensor<2>, Placement)>,
    ) -> Result<Self, GraphError> {
        let mut new: Option<Self> = None;
        for (x, placement) in tensors {
            let ([rows, width], dtype, x) = (x.dims(), x.dtype(), x.without_autodiff());
            let kept = match dtype {
                DType::F32 => RowType::F32,
                DType::F16 => RowType::F16,
                DType::BF16 => RowType::BF16,
                other => {
                    return Err(setting(
                        "tensors",
                        "rows of f32, f16 or bf16",
                        &format!("{other:?}"),
                    ));
                }
            };
            let table =
                new.get_or_insert_with(|| Self { parts: vec![], starts: vec![0], width, kept });
            table.check(width, kept)?;
            let part = match placement {
                Placement::Memory => Part::Memory(MemoryRows::from_tensor_as(x, kept)?),
                Placement::Device(device) => {
                    let device = device.without_autodiff();
                    if !device.supports_dtype(dtype) {
                        return Err(setting(
                            "placement",
                            &format!("a device that supports {dtype:?}"),
                            &format!("{device:?}"),
                        ));
                    }
                    let x = if x.device() == device { x } else { x.to_device(&device) };
                    Part::Device(device, Box::new(x))
                }
                Placement::Mapped => {
                    let expected = "memory or a device for a tensor (use `with_mapped` for a file)";
                    return Err(setting("placement", expected, "Mapped"));
                }
            };
            table.push(part, rows);
        }
        new.ok_or(GraphError::Empty {
            arg: "tensors",
            remedy: "give at least one tensor, which may have no rows",
        })
    }

    /// Appends the rows of a mapped file.
    ///
    /// # Errors
    /// [`GraphError::RowsMismatch`] if width or type differ from the other rows.
    pub fn with_mapped(mut self, rows: MappedRows) -> Result<Self, GraphError> {
        self.check(rows.width(), rows.row_type())?;
        let count = rows.num_rows();
        self.push(Part::Mapped(rows), count);
        Ok(self)
    }

    /// Element type of the rows.
    pub fn row_type(&self) -> RowType {
        self.kept
    }
    /// Placement and rows of each part.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = (Placement, Range<usize>)> + '_ {
        self.parts.iter().zip(self.starts.windows(2)).map(|(part, rows)| {
            let placement = match part {
                Part::Device(device, _) => Placement::Device(device.clone()),
                Part::Memory(_) => Placement::Memory,
                Part::Mapped(_) => Placement::Mapped,
            };
            (placement, rows[0]..rows[1])
        })
    }

    /// Checks that the next part has the width and type of the others.
    fn check(&self, width: usize, kept: RowType) -> Result<(), GraphError> {
        let part = self.parts.len();
        if width != self.width {
            let (expected, actual) = (self.width.to_string(), width.to_string());
            return Err(GraphError::RowsMismatch { part, what: "feature size", expected, actual });
        }
        if kept != self.kept {
            let (expected, actual) = (format!("{:?}", self.kept), format!("{kept:?}"));
            return Err(GraphError::RowsMismatch { part, what: "dtype", expected, actual });
        }
        Ok(())
    }
    fn push(&mut self, part: Part, rows: usize) {
        self.parts.push(part);
        self.starts.push(self.num_rows() + rows);
    }
    /// Groups ids by part.
    fn by_part(&self, ids: &[u32]) -> ByPart {
        let place = |&id: &u32| {
            // An empty part has the same first row as the next one: the last such part has the row.
            let part = self.starts.partition_point(|&start| start <= id as usize) - 1;
            (part, id - self.starts[part] as u32)
        };
        ByPart::new(self.parts.len(), ids.iter().map(place))
    }
}

impl FeatureSource for UnifiedRows {
    fn num_rows(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }
    fn width(&self) -> usize {
        self.width
    }
    fn read_rows(&self, ids: &[u32], out: &mut [f32]) -> Result<(), GraphError> {
        let (asked, width) = (self.by_part(ids), self.width);
        let found = self.parts.iter().zip(&asked.rows).map(|(part, rows)| part.read(rows));
        let found = found.collect::<Result<Vec<_>, _>>()?;
        if width > 0 {
            for (out, &(part, row)) in out.chunks_exact_mut(width).zip(&asked.of) {
                out.copy_from_slice(&found[part][row * width..][..width]);
            }
        }
        Ok(())
    }
    fn gather_tensor(&self, ids: &[u32], device: &Device) -> Result<Tensor<2>, GraphError> {
        check_ids("ids", "the features", ids, self.num_rows())?;
        let device = &device.clone().without_autodiff();
        let rows = self
            .by_part(ids)
            .gather(device, |part, rows| self.parts[part].read_tensor(rows, device))?;
        let none =
            || Tensor::from_data(TensorData::new(Vec::<f32>::new(), [0, self.width]), device);
        Ok(rows.unwrap_or_else(none))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::format::write_rows;
    use crate::features::source::{IndexedRows, NO_ROW};

    /// Rows `first..first + rows` of the table whose number `i` is `i`, in rows of 3.
    fn tensor(first: usize, rows: usize, device: &Device) -> Tensor<2> {
        let numbers: Vec<f32> = (first * 3..(first + rows) * 3).map(|i| i as f32).collect();
        Tensor::from_data(TensorData::new(numbers, [rows, 3]), device)
    }

    #[test]
    fn parts_are_one_table() {
        let (a, b) = (Device::flex(), burn_gnn_testutil::other_device());
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("rows");
        write_rows(&file, &MemoryRows::from_tensor(tensor(9, 4, &a)), RowType::F32).unwrap();
        let tensors = [
            // Moved to the other device, a part without rows, one that stays, one in memory.
            (tensor(0, 2, &a), Placement::Device(b.clone())),
            (tensor(2, 0, &a), Placement::Device(a.clone())),
            (tensor(2, 5, &a), Placement::Device(a.clone())),
            (tensor(7, 2, &b), Placement::Memory),
        ];
        let rows = UnifiedRows::from_tensors(tensors)
            .unwrap()
            .with_mapped(MappedRows::open(&file).unwrap())
            .unwrap();
        assert_eq!((rows.num_rows(), rows.width(), rows.row_type()), (13, 3, RowType::F32));
        let places: Vec<_> = rows.parts().collect();
        let on = |device: &Device| Placement::Device(device.clone());
        assert_eq!(
            places,
            [
                (on(&b), 0..2),
                (on(&a), 2..2),
                (on(&a), 2..7),
                (Placement::Memory, 7..9),
                (Placement::Mapped, 9..13)
            ]
        );
        let expected = |ids: &[u32]| {
            ids.iter().flat_map(|&id| (0..3).map(move |j| (id * 3 + j) as f32)).collect::<Vec<_>>()
        };
        for ids in [&[12u32, 0, 7, 2, 2, 6, 1, 8, 9][..], &[1, 0], &[4], &[8], &[10, 9], &[]] {
            assert_eq!(rows.gather(ids).unwrap(), expected(ids));
            for device in [&a, &b, &a.clone().autodiff()] {
                let x = rows.gather_tensor(ids, device).unwrap();
                assert_eq!((x.dims(), x.device()), ([ids.len(), 3], device.clone()));
                assert_eq!(
                    x.into_data().try_to_vec::<f32>().unwrap(),
                    expected(ids),
                    "{ids:?} on {device:?}"
                );
            }
        }
        assert!(matches!(
            rows.gather_tensor(&[13], &a),
            Err(GraphError::IdOutOfRange { id: 13, bound: 13, .. })
        ));
        assert!(matches!(
            rows.gather(&[13]),
            Err(GraphError::IdOutOfRange { id: 13, bound: 13, .. })
        ));
        let indexed: IndexedRows<_> = rows.with_id2index(vec![12, NO_ROW, 0]).unwrap();
        let x = indexed.gather_tensor(&[2, 0], &a).unwrap();
        assert_eq!(x.into_data().try_to_vec::<f32>().unwrap(), expected(&[0, 12]));
        assert!(matches!(indexed.gather(&[1]), Err(GraphError::UnknownId { position: 0, id: 1 })));
    }

    /// Numbers of 16 bits stay so in memory, and come out as f32.
    #[test]
    fn narrow_rows() {
        let device = Device::flex();
        let half = |first| tensor(first, 2, &device).cast(DType::F16);
        let rows = UnifiedRows::from_tensors([
            (half(0), Placement::Memory),
            (half(2), Placement::Device(device.clone())),
        ])
        .unwrap();
        assert_eq!(rows.row_type(), RowType::F16);
        assert_eq!(rows.gather(&[3, 0]).unwrap(), [9.0, 10.0, 11.0, 0.0, 1.0, 2.0]);
        let x = rows.gather_tensor(&[3, 0], &device).unwrap();
        assert_eq!(x.dtype(), DType::F32);
        assert_eq!(x.into_data().try_to_vec::<f32>().unwrap(), [9.0, 10.0, 11.0, 0.0, 1.0, 2.0]);
        // A device without f16 reads them all the same, and keeps none.
        let x = rows.gather_tensor(&[2, 1], &burn_gnn_testutil::other_device()).unwrap();
        assert_eq!(x.into_data().try_to_vec::<f32>().unwrap(), [6.0, 7.0, 8.0, 3.0, 4.0, 5.0]);
        let e = UnifiedRows::from_tensors([(
            half(0),
            Placement::Device(burn_gnn_testutil::other_device()),
        )])
        .unwrap_err();
        assert!(matches!(e, GraphError::Setting { arg: "placement", .. }), "{e}");
    }

    #[test]
    fn what_is_refused() {
        let device = Device::flex();
        let memory = |x| (x, Placement::Memory);
        let three = || memory(tensor(0, 2, &device));
        let two = Tensor::<2>::zeros([1, 2], &device);
        let e = UnifiedRows::from_tensors([three(), three(), memory(two.clone())]).unwrap_err();
        assert_eq!(
            e.to_string(),
            "features in several parts: part 2 has feature size 2, part 0 has 3; convert one of them"
        );
        let half = tensor(0, 2, &device).cast(DType::F16);
        let e = UnifiedRows::from_tensors([three(), (half, Placement::Device(device.clone()))])
            .unwrap_err();
        assert_eq!(
            e.to_string(),
            "features in several parts: part 1 has dtype F16, part 0 has F32; convert one of them"
        );
        let e = UnifiedRows::from_tensors([memory(two.clone().cast(DType::F64))])
            .unwrap_err()
            .to_string();
        assert_eq!(e, "`tensors`: expected rows of f32, f16 or bf16, got F64");
        let e =
            UnifiedRows::from_tensors([(two.clone(), Placement::Mapped)]).unwrap_err().to_string();
        assert!(
            e.starts_with("`placement`: expected memory or a device")
                && e.contains("`with_mapped`"),
            "{e}"
        );
        assert!(matches!(
            UnifiedRows::from_tensors([]),
            Err(GraphError::Empty { arg: "tensors", .. })
        ));
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("rows");
        for kept in [RowType::BF16, RowType::I8 { scale: 1.0 }] {
            write_rows(&file, &MemoryRows::from_tensor(tensor(0, 2, &device)), kept).unwrap();
            let e = UnifiedRows::from_tensors([three()])
                .unwrap()
                .with_mapped(MappedRows::open(&file).unwrap())
                .unwrap_err();
            assert!(matches!(e, GraphError::RowsMismatch { part: 1, what: "dtype", .. }), "{e}");
        }
        write_rows(&file, &MemoryRows::from_tensor(two), RowType::F32).unwrap();
        let e = UnifiedRows::from_tensors([three()])
            .unwrap()
            .with_mapped(MappedRows::open(&file).unwrap())
            .unwrap_err();
        assert!(matches!(e, GraphError::RowsMismatch { part: 1, what: "feature size", .. }), "{e}");
    }
}
