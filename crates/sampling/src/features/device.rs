//! Caches the features of hot nodes in device memory.

use burn::tensor::{Device, Tensor, TensorData};

use crate::features::by_part::{ByPart, select};
use crate::features::hot_nodes::{Hits, HotNodes, share, within};
use crate::features::source::FeatureSource;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::internal::{check_ids, setting};

/// Caches the features of hot nodes in device memory, in front of [`TieredRows`](crate::TieredRows) or any other source
/// (GraphLearn-for-PyTorch: `Feature` with `split_ratio` and `device_group_list`).
///
/// Devices are organised in groups. Each group caches all hot rows, distributed over its `n` devices: hot row `i` is on
/// device `i mod n`. A batch for a device reads hot rows from the group of the device and the others from the source; the
/// result does not depend on the split. A batch for a device outside all groups reads only the source.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_sampling::RowType;
/// use burn_gnn_sampling::{DeviceRows, FeatureSource, MemoryRows};
/// let device = Device::flex(); // or Device::cuda(0)
/// let all = MemoryRows::new(&[0.0, 1.0, 2.0, 3.0], 1, RowType::F32)?;
/// let rows = DeviceRows::with_ratio(all, &[3, 1, 0, 2], 0.5, &[vec![device.clone()]])?; // rows 3 and 1 on the device
/// let x = rows.gather_tensor(&[0, 1, 3], &device)?;
/// assert_eq!(x.into_data().try_to_vec::<f32>().unwrap(), [0.0, 1.0, 3.0]);
/// assert_eq!((rows.hits().hot, rows.hits().cold), (2, 1));
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// # Cost
/// `4 · width` bytes per hot row and group on devices, and 4 bytes per row on the host. A gather copies cold rows to the
/// device once, and reorders all rows there.
#[derive(Debug)]
pub struct DeviceRows<S> {
    groups: Vec<Group>,
    hot: HotNodes,
    source: S,
}

/// Cached rows of one group, `[rows, width]` on each of its devices.
#[derive(Debug)]
struct Group(Vec<(Device, Tensor<2>)>);

/// Rows that are read from the source at a time when a group is filled, which bounds the memory on the host.
const PIECE: usize = 1 << 16;

impl<S: FeatureSource> DeviceRows<S> {
    /// Caches the first `round(split_ratio · rows)` ids of `hot_order`, which are in descending order of hotness, on the
    /// devices of each group.
    ///
    /// # Errors
    /// A ratio outside `0.0..=1.0`; ids that are out of range, repeated or too few; a group without devices; a device that
    /// occurs twice; a source that cannot be read.
    pub fn with_ratio(
        source: S,
        hot_order: &[u32],
        split_ratio: f64,
        groups: &[Vec<Device>],
    ) -> Result<Self, GraphError> {
        let hot = share(hot_order, split_ratio, source.num_rows())?;
        Self::with_rows(source, hot, groups)
    }

    /// Caches as many of the first ids of `hot_order` as fit into `budget` bytes per device. Groups must have equal sizes.
    ///
    /// # Errors
    /// As [`with_ratio`](Self::with_ratio).
    pub fn with_budget(
        source: S,
        hot_order: &[u32],
        budget: usize,
        groups: &[Vec<Device>],
    ) -> Result<Self, GraphError> {
        let devices = groups.iter().map(Vec::len).min().unwrap_or(0);
        let hot = within(hot_order, budget, source.width(), devices);
        Self::with_rows(source, hot, groups)
    }

    fn with_rows(source: S, hot: &[u32], groups: &[Vec<Device>]) -> Result<Self, GraphError> {
        let index = HotNodes::new(hot, source.num_rows())?;
        let mut known: Vec<&Device> = vec![];
        for (g, group) in groups.iter().enumerate() {
            if group.is_empty() {
                return Err(setting(
                    "groups",
                    "at least one device in every group",
                    &format!("none in group {g}"),
                ));
            }
            for device in group {
                if known.contains(&device) {
                    return Err(setting(
                        "groups",
                        "every device once",
                        &format!("{device:?} twice"),
                    ));
                }
                known.push(device);
            }
        }
        let group = |devices: &Vec<Device>| {
            let share = |(d, device): (usize, &Device)| {
                let ids: Vec<u32> = hot.iter().skip(d).step_by(devices.len()).copied().collect();
                Ok((device.clone(), upload(&source, &ids, device)?))
            };
            devices.iter().enumerate().map(share).collect::<Result<_, GraphError>>().map(Group)
        };
        let groups = groups.iter().map(group).collect::<Result<_, _>>()?;
        Ok(Self { groups, hot: index, source })
    }

    /// Number of rows read from devices and from the source since construction.
    pub fn hits(&self) -> Hits {
        self.hot.hits()
    }
    /// The source of the rows that are not cached.
    pub fn source(&self) -> &S {
        &self.source
    }
}

/// Rows of a source as a tensor.
fn upload(
    source: &impl FeatureSource,
    ids: &[u32],
    device: &Device,
) -> Result<Tensor<2>, GraphError> {
    let mut parts = vec![];
    for ids in ids.chunks(PIECE) {
        parts.push(source.gather_tensor(ids, device)?);
    }
    match parts.len() {
        0 => Ok(Tensor::from_data(TensorData::new(Vec::<f32>::new(), [0, source.width()]), device)),
        1 => Ok(parts.swap_remove(0)),
        _ => Ok(Tensor::cat(parts, 0)),
    }
}

impl<S: FeatureSource> FeatureSource for DeviceRows<S> {
    fn num_rows(&self) -> usize {
        self.hot.num_rows()
    }
    fn width(&self) -> usize {
        self.source.width()
    }
    /// Reads only the source, as the destination is host memory.
    fn read_rows(&self, ids: &[u32], out: &mut [f32]) -> Result<(), GraphError> {
        self.source.read_rows(ids, out)
    }
    fn gather_tensor(&self, ids: &[u32], device: &Device) -> Result<Tensor<2>, GraphError> {
        check_ids("ids", "the features", ids, self.num_rows())?;
        let device = &device.clone().without_autodiff();
        let Some(Group(shares)) = self.groups.iter().find(|g| g.0.iter().any(|(d, _)| d == device))
        else {
            self.hot.count(0, ids.len());
            return self.source.gather_tensor(ids, device);
        };
        // One part per device of the group, and one for the source.
        let n = shares.len();
        let place = |&id: &u32| match self.hot.place(id) {
            None => (n, id),
            Some(place) => (place as usize % n, place / n as u32),
        };
        let asked = ByPart::new(n + 1, ids.iter().map(place));
        let cold = asked.rows[n].len();
        self.hot.count(ids.len() - cold, cold);
        let found = asked.gather(device, |part, rows| match shares.get(part) {
            Some((owner, share)) => Ok(select(share, rows, owner, device)),
            None => self.source.gather_tensor(rows, device),
        })?;
        found.map_or_else(|| self.source.gather_tensor(&[], device), Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::memory::MemoryRows;
    use crate::features::row_type::RowType;

    fn source() -> MemoryRows {
        let rows: Vec<f32> = (0..40).map(|i| i as f32).collect();
        MemoryRows::new(&rows, 4, RowType::F32).unwrap()
    }

    /// Any split, any groups: two devices that share the rows, each a separate group, one of no group.
    #[test]
    fn rows_do_not_depend_on_the_split() {
        let (a, b) = (Device::flex(), burn_gnn_testutil::other_device());
        let order = [7u32, 0, 9, 3, 1, 2, 4, 5, 6, 8];
        let ids = [9u32, 1, 7, 7, 8, 0, 3, 2];
        for ratio in [0.0, 0.3, 0.5, 1.0] {
            for groups in [
                vec![],
                vec![vec![a.clone()]],
                vec![vec![a.clone()], vec![b.clone()]],
                vec![vec![a.clone(), b.clone()]],
            ] {
                let rows = DeviceRows::with_ratio(source(), &order, ratio, &groups).unwrap();
                for device in [&a, &b] {
                    for ids in [&ids[..], &[7], &[8], &[]] {
                        let x = rows.gather_tensor(ids, device).unwrap();
                        assert_eq!(
                            (x.dims(), x.device()),
                            ([ids.len(), 4], device.clone()),
                            "{ratio} {groups:?}"
                        );
                        assert_eq!(
                            x.into_data().try_to_vec::<f32>().unwrap(),
                            source().gather(ids).unwrap(),
                            "{ratio} {groups:?}"
                        );
                    }
                }
                assert_eq!(rows.gather(&ids).unwrap(), source().gather(&ids).unwrap());
            }
        }
        let rows =
            DeviceRows::with_budget(source(), &order, 2 * 16, &[vec![a.clone(), b]]).unwrap();
        rows.gather_tensor(&ids, &a).unwrap();
        assert_eq!(rows.hits(), Hits { hot: 5, cold: 3 });
    }

    #[test]
    fn what_is_refused() {
        let text = |order: &[u32], ratio, groups: &[Vec<Device>]| {
            DeviceRows::with_ratio(source(), order, ratio, groups).unwrap_err().to_string()
        };
        let flex = Device::flex();
        assert!(text(&[0], 1.5, &[]).contains("a share in 0.0..=1.0"));
        assert!(text(&[0], 0.5, &[]).contains("at least 5 ids"));
        assert!(text(&[0, 1, 0, 2, 3], 0.5, &[]).contains("`hot_order`"));
        assert!(text(&[0, 1, 99, 2, 3], 0.5, &[]).contains("hot_order"));
        assert!(text(&[0, 1, 2, 3, 4], 0.5, &[vec![]]).contains("none in group 0"));
        assert!(
            text(&[0, 1, 2, 3, 4], 0.5, &[vec![flex.clone()], vec![flex]])
                .contains("every device once")
        );
        let e = DeviceRows::with_ratio(source(), &[], 0.0, &[])
            .unwrap()
            .gather_tensor(&[10], &Device::flex())
            .unwrap_err();
        assert!(matches!(e, GraphError::IdOutOfRange { .. }), "{e}");
    }
}
